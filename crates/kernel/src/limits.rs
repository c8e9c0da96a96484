//! Every bound of the kernel in one place, each with its reason.

/// Longest message a person or channel may send. Longer text belongs in a file.
pub const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Pictures shown at once; more is a film.
pub const PICTURES_MAX: usize = 16;
/// What a picture is taken to cost in a context, until the provider's count replaces it.
pub const PICTURE_TOKENS: u64 = 1_600;
/// Times in a row an agent may hand in what does not match before it has failed.
pub const FLAWS_MAX: u32 = 5;
/// Longest cause of a failure and reason of a person.
pub const CAUSE_BYTES_MAX: usize = 2_000;
/// Longest name of a channel, sender, message or address, and of an agent.
pub const NAME_BYTES_MAX: usize = 1_000;
pub const LABEL_BYTES_MAX: usize = 64;
/// Names of one message that a model is told about: more is a list, not a request.
pub const MENTIONS_MAX: usize = 8;
/// How much of a message is looked through for them.
pub const MENTIONS_BYTES_MAX: usize = 32 * 1024;
/// Names like one that means nobody, and those one could be.
pub const NAMES_NEAR_MAX: usize = 10;
/// Longest tool or child result kept inline; the edge spills what is longer and gives a handle.
pub const RESULT_BYTES_MAX: usize = 32 * 1024;
/// Longest text of one model reply. No provider emits this much; more is a broken stream.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// Longest arguments of one tool use, as JSON text. Above it the call is not run.
pub const ARGUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of tool arguments, against stack exhaustion in whoever walks them.
pub const ARGUMENT_DEPTH_MAX: usize = 64;
/// Tool uses kept of one reply; no model asks for more in earnest.
pub const CALLS_PER_REPLY_MAX: usize = 128;
/// Inputs waiting in a session's queue. A hundred unread messages is a stuck agent.
pub const QUEUE_MAX: usize = 100;
/// Notes waiting in one agent's inbox.
pub const INBOX_MAX: usize = 1_000;
/// Asks open at once in a session.
pub const ASKS_OPEN_MAX: usize = 1_000;
/// Questions of one running call that are open at once, and that it may put at all: more is a
/// server that plays with a person.
pub const WONDERS_OPEN_MAX: usize = 8;
pub const WONDERS_MAX: u32 = 64;
/// Choices offered with one of them.
pub const OPTIONS_MAX: usize = 64;
/// Answered asks remembered, so that a late answer is told who was first.
pub const ASKS_CLOSED_MAX: usize = 1_000;
/// How long an external message id is remembered: a provider may redeliver for weeks.
pub const DEDUPE_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Messages of one sender this close together become one input.
pub const COALESCE_MS: u64 = 2_000;

/// The same call this often in a row, with nothing else between, asks before it runs: twice can be
/// a second try, three times is a loop.
pub const REPEATS_MAX: u32 = 3;
/// The same for calls that change nothing. Polling is legitimate; twenty looks are not patience.
pub const REPEATS_HARMLESS_MAX: u32 = 20;
/// Calls that take turns, with the same results, for this many rounds ask before the next: three
/// can be patience, because one of them may wait and another look.
pub const ROUNDS_MAX: u32 = 4;
/// So many calls can take turns and be noticed.
pub const ROUND_CALLS_MAX: usize = 4;
/// The same call denied this often in a row is told to whoever makes it: a model that has not read
/// why may read that.
pub const DENIALS_TOLD: u32 = 3;
/// And this often stops it: it will not find another way by itself.
pub const DENIALS_MAX: u32 = 5;
/// How many times the bound is once somebody has said "go on" for more than this one call.
pub const REPEATS_LIFTED: u32 = 10;

/// Model tries per turn, the first one included.
pub const TRIES_MAX: u32 = 8;
/// First wait between tries; doubles each time.
pub const RETRY_BASE_MS: u64 = 2_000;
/// Longest Retry-After that is waited for; beyond it the failure is told at once.
pub const RETRY_AFTER_MAX_MS: u64 = 15 * 60 * 1000;

/// Deepest nesting any configuration may allow.
pub const DEPTH_CEILING: u32 = 64;
/// Most agents a session may ever hold; ids stay small and views stay readable.
pub const AGENTS_CEILING: usize = 100_000;
/// Model calls per exchange when nothing else is said.
pub const TURNS_DEFAULT: u32 = 25;
/// Most model calls `platform__spawn_interactive_subagent` may ask for.
pub const INTERACTIVE_TURNS_MAX: u32 = 10;
/// `wait` without a timeout; and the longest one.
pub const WAIT_DEFAULT_S: u64 = 60;
pub const WAIT_MAX_S: u64 = 3_600;
/// A running call that has been quiet this long is worth a look.
pub const QUIET_MS: u64 = 30_000;

/// Share of the context window, in percent, at which the history is compacted.
pub const COMPACT_AT_PERCENT: u64 = 80;
/// Commands and files listed one by one in a receipt; more are counted.
pub const RECEIPT_LIST_MAX: usize = 64;
/// Rows of the *Open workers* section and of `list_agents`; more are counted.
pub const WORKER_ROWS_MAX: usize = 32;
/// Definitions named in the catalogue of a prompt.
pub const CATALOGUE_ROWS_MAX: usize = 64;
/// Latest words of an agent kept for its row.
pub const LATEST_BYTES_MAX: usize = 240;
