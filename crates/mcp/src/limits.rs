//! Every bound of this crate, with its reason. A server is a stranger's program: whatever it may
//! send without end has a number here.

use std::time::Duration;

/// One message. The largest honest ones are pictures and file contents; the SDK's own limit.
pub(crate) const MESSAGE_BYTES: usize = 16 << 20;
/// Bytes of rubbish on a server's output, in one stretch, before it is called broken.
pub(crate) const RUBBISH_BYTES: usize = 16 << 20;
/// Text of one result; a model's whole window is about this much.
pub(crate) const TEXT_BYTES: usize = 1 << 20;
/// Pictures of one result, decoded, all together.
pub(crate) const IMAGE_BYTES: usize = 8 << 20;
/// Pictures, sounds and links of one result.
pub(crate) const PARTS: usize = 64;
/// Tools, resources or prompts of one server.
pub(crate) const LISTED: usize = 1_000;
/// Pages of one listing: a server that always has a next page ends here.
pub(crate) const PAGES: usize = 100;
/// Name, description and schema of one tool. Longer ones would fill a model's window.
pub(crate) const TOOL_BYTES: usize = 256 << 10;
/// Questions of one server that wait for somebody at once.
pub(crate) const ASKS: usize = 16;
/// One question, as JSON.
pub(crate) const ASK_BYTES: usize = 256 << 10;
/// Rounds of `input_required` in one call.
pub(crate) const ROUNDS: usize = 10;
/// Calls under way at one server; more wait for their turn within their own time.
pub(crate) const CALLS: usize = 32;
/// Requests and notifications of one server in our hands at once.
pub(crate) const HANDLED: usize = 64;
/// Messages to one server that it has not read yet; beyond that we stop reading from it.
pub(crate) const UNREAD: usize = 128;
/// Messages of one server in a second that are answers to nothing.
pub(crate) const CHATTER: u32 = 1_000;
/// Reports of progress that wait for their reader.
pub(crate) const PROGRESS: usize = 32;
/// Resources of one server that are watched.
pub(crate) const WATCHED: usize = 64;
/// What a server wrote to its log, and how long one line of it may be.
pub(crate) const LOG_LINES: usize = 200;
pub(crate) const LOG_LINE_BYTES: usize = 2 << 10;
/// Bytes of log read in a second; a server that writes more waits for us, not we for it.
pub(crate) const LOG_BYTES_PER_SECOND: usize = 4 << 20;

/// Unless the configuration says otherwise.
pub(crate) const CALL_TIME: Duration = Duration::from_mins(1);
/// Packages are fetched on a first start; and the SDK waits ten seconds for an old server.
pub(crate) const START_TIME: Duration = Duration::from_mins(1);
/// Between asking a server to leave and making it.
pub(crate) const LEAVE_TIME: Duration = Duration::from_secs(2);
/// Lists are read again at most this often, whatever a server announces.
pub(crate) const LIST_PAUSE: Duration = Duration::from_millis(500);
/// A call waits this long for a server that may start again soon.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
pub(crate) const BACKOFF_FIRST: Duration = Duration::from_secs(1);
pub(crate) const BACKOFF_LAST: Duration = Duration::from_mins(1);
/// A server that ran this long has earned a fresh start.
pub(crate) const GOOD_TIME: Duration = Duration::from_mins(1);
/// Requests in a row that nobody answered before a server is started anew.
pub(crate) const SILENCES: u32 = 3;

/// 1 s · 2^n, at most a minute.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    BACKOFF_FIRST.saturating_mul(doubled).min(BACKOFF_LAST)
}

#[cfg(test)]
mod tests {
    #[test]
    fn backoff_doubles_and_stops() {
        let seconds = [1, 2, 3, 6, 7, 8, 31, 32, 33, 100].map(|n| super::backoff(n).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60, 60, 60]);
    }
}
