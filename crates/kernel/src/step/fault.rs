//! Model failures: tried again as state, with the provider's others held back too; told upwards
//! when tries are used up. A failure is a value, so no handler can swallow what it means.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;

use super::Step;
use crate::limits::{RETRY_AFTER_MAX_MS, RETRY_BASE_MS, TRIES_MAX};
use crate::{
    AgentId, Event, Failure, FailureKind, Key, Mode, Outcome, Pause, Purpose, Refusal, Retry, Who,
    Why, mix, short,
};

impl Step<'_> {
    pub(super) fn failed(&mut self, key: Key, mut failure: Failure) -> Result<(), Refusal> {
        failure.message = short(failure.message);
        let (agent, thought) = self.thinker(key)?;
        let (id, attempt) = (agent.id, thought.attempt);
        let patient = failure.retry_after_ms.is_none_or(|ms| ms <= RETRY_AFTER_MAX_MS);
        if failure.kind.is_retryable() && patient && attempt < TRIES_MAX {
            let wait_ms = backoff_ms(attempt, key).max(failure.retry_after_ms.unwrap_or(0));
            let not_before = self.at.plus_ms(wait_ms);
            let hold = failure.kind.is_for_everybody().then_some(not_before);
            let attempt = attempt + 1;
            let retry = Retry { agent: id, attempt, not_before, hold, failure };
            self.emit(Event::Retrying(Box::new(retry)));
            return Ok(());
        }
        let fresh = !agent.squeezed && agent.last_turn.is_none();
        let compactable = thought.purpose == Purpose::Answer && fresh;
        if failure.kind == FailureKind::ContextTooLong && compactable {
            self.emit(Event::Overflowed { agent: id });
            self.ready.push_back(id);
            return Ok(());
        }
        let by_hand = thought.purpose == (Purpose::Summary { resume: false });
        self.emit(Event::Faulted { agent: id, failure: failure.clone() });
        if by_hand {
            self.speak(id, &format!("Could not compact: {failure}."));
            self.ready.push_back(id);
        } else {
            self.fault(id, failure);
        }
        Ok(())
    }

    /// Floor and call agents fail upwards; a worker stops where it can go on; main says what
    /// happened and rests. The session never wedges.
    fn fault(&mut self, id: AgentId, failure: Failure) {
        let agent = &self.session[id];
        if agent.is_main() {
            let text = format!("The model call failed: {failure}.");
            self.speak(id, &text);
        } else if agent.mode == Mode::Worker && agent.last_turn.is_none() {
            self.pause(id, &Pause::Model(failure));
        } else {
            let text = format!("the model call failed: {failure}");
            let why = Why::Model(failure.to_string());
            self.finish(id, Outcome::Failed, text, why, Who::Runtime);
        }
    }
}

/// 2 s, doubled each time, and up to a fifth more, hashed from the key so that a replay waits
/// exactly as long.
fn backoff_ms(attempt: u32, key: Key) -> u64 {
    let base = RETRY_BASE_MS << (attempt - 1).min(16);
    base + mix(key.0, u64::from(attempt)) % (base / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_jitters_within_a_fifth() {
        for key in 1..200 {
            for attempt in 1..TRIES_MAX {
                let base = RETRY_BASE_MS << (attempt - 1);
                let wait = backoff_ms(attempt, Key { 0: key });
                assert!((base..=base + base / 5).contains(&wait), "{attempt}: {wait}");
                assert_eq!(wait, backoff_ms(attempt, Key { 0: key }));
            }
        }
        let spread = (1..200).map(|key| backoff_ms(1, Key { 0: key }));
        assert!(spread.collect::<alloc::collections::BTreeSet<_>>().len() > 50);
    }
}
