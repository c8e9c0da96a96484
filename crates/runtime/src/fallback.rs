//! Who answers when the first cannot: a chain of models, each asked when the one before it is out
//! of quota, refuses the key, does not exist, or stays down.
//!
//! Falling back is told the way every other trouble is told: the call comes to nothing, with a
//! cause that says who is asked next, and the kernel tries again. So it is in the journal, on every
//! screen and in `retry` lines, and nothing here has to speak. Only on the last try, after which
//! nobody would ask again, the next model is asked at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use locum_kernel::limits::{RETRY_AFTER_MAX_MS, TRIES_MAX};
use locum_kernel::{Failure, FailureKind, Reply, Time};

use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task};

/// Tries that one model gets before the next is asked; the others get what is left.
const TRIES_EACH: u32 = TRIES_MAX / 2;
/// How long a model is left alone after it was given up. Long enough not to pay for finding out
/// again with every turn, short enough to come back.
const REST_MS: u64 = 5 * 60 * 1_000;

#[derive(Debug)]
pub struct Fallback(Arc<Chain>);

#[derive(Debug)]
struct Chain {
    /// Answers under any name.
    models: Arc<dyn Provider>,
    /// Who is asked after the model that was meant.
    others: Vec<String>,
    /// Until when each is left alone. Kept in memory only: after a restart everybody is tried anew.
    rests: Mutex<BTreeMap<String, Time>>,
    clock: Arc<dyn Clock>,
}

impl Fallback {
    #[must_use]
    pub fn new(models: Arc<dyn Provider>, others: Vec<String>, clock: Arc<dyn Clock>) -> Fallback {
        Fallback(Arc::new(Chain { models, others, rests: Mutex::default(), clock }))
    }
}

impl Provider for Fallback {
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        let chain = Arc::clone(&self.0);
        Box::pin(async move { chain.answer(asked, live).await })
    }
}

impl Chain {
    async fn answer(&self, asked: Asked, live: Live) -> Result<Reply, Failure> {
        let meant = &asked.request.model;
        let others = self.others.iter().filter(|name| *name != meant);
        let names: Vec<String> = [meant].into_iter().chain(others).cloned().collect();
        let now = self.clock.now();
        let is_awake = |name: &String| !self.is_resting(name, now);
        // If nobody is awake, the one that was meant is as good as any.
        let mut at = names.iter().position(is_awake).unwrap_or(0);
        let tried = asked.tries.saturating_add(1);
        loop {
            let mut question = asked.clone();
            question.request.model.clone_from(&names[at]);
            let failure = match self.models.answer(question, live.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let failure = if at == 0 { failure } else { of(&names[at], &failure) };
            if !is_given_up(&failure, tried) {
                return Err(failure);
            }
            let now = self.clock.now();
            self.rest(&names[at], now.plus_ms(REST_MS));
            let later = names.iter().enumerate().skip(at + 1);
            let next = later.into_iter().find(|(_, name)| !self.is_resting(name, now));
            let Some((next, name)) = next else { return Err(failure) };
            if tried < TRIES_MAX {
                return Err(told(&failure, name));
            }
            at = next;
        }
    }

    fn is_resting(&self, name: &str, now: Time) -> bool {
        let rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.get(name).is_some_and(|until| *until > now)
    }

    fn rest(&self, name: &str, until: Time) {
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.insert(name.to_owned(), until);
    }
}

/// Whether asking the same model again makes no sense any more.
fn is_given_up(failure: &Failure, tried: u32) -> bool {
    match failure.kind {
        FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::UnknownModel
        | FailureKind::Absent => true,
        FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Cut
        | FailureKind::Malformed => {
            let patient = failure.retry_after_ms.is_none_or(|ms| ms <= RETRY_AFTER_MAX_MS);
            tried >= TRIES_EACH || !patient
        }
        // Another model would be asked the same thing.
        FailureKind::ContextTooLong | FailureKind::Filtered | FailureKind::Other => false,
    }
}

/// A failure of somebody other than the model that was meant: its provider must not be held back.
fn of(name: &str, failure: &Failure) -> Failure {
    let kind = if failure.kind.is_for_everybody() { FailureKind::Server } else { failure.kind };
    let message = format!("{name}: {}", failure.message);
    Failure { kind, message, ..failure.clone() }
}

/// The same failure as one that is worth another try, which will be somebody else's.
fn told(failure: &Failure, next: &str) -> Failure {
    let kind = FailureKind::Server;
    // The kind that is told would otherwise hide what it was.
    let hidden = (failure.kind != kind).then(|| format!("{}: ", failure.kind.cause()));
    let cause = hidden.unwrap_or_default();
    let message = format!("{cause}{}; falling back to {next}", failure.message);
    Failure { kind, status: failure.status, retry_after_ms: None, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::asked_for_tests;

    /// Says what it was told to, by the model's name.
    #[derive(Debug)]
    struct Fickle(BTreeMap<&'static str, FailureKind>);

    impl Provider for Fickle {
        fn answer(&self, asked: Asked, _: Live) -> Task<Result<Reply, Failure>> {
            let model = asked.request.model;
            let answer = match self.0.get(model.as_str()) {
                Some(kind) => Err(crate::wire::failed(*kind, "no")),
                None => Ok(Reply { text: model, ..Reply::default() }),
            };
            Box::pin(std::future::ready(answer))
        }
    }

    /// Every look is a little later.
    #[derive(Debug, Default)]
    struct Hasty(std::sync::atomic::AtomicU64);

    impl Clock for Hasty {
        fn now(&self) -> Time {
            Time(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) * 20_000)
        }

        fn sleep_until(&self, _: Time) -> Task<()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn chain(bad: &[(&'static str, FailureKind)]) -> Fallback {
        let fickle = Fickle(bad.iter().copied().collect());
        let others = vec!["a/1".into(), "b/2".into(), "c/3".into()];
        Fallback::new(Arc::new(fickle), others, Arc::new(Hasty::default()))
    }

    /// Who answered or what was said, on one try after the other.
    fn tries(chain: &Fallback, count: u32) -> Vec<String> {
        let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = |tries: u32| {
            let mut asked = asked_for_tests("a/1");
            asked.tries = tries;
            match tasks.block_on(chain.answer(asked, Live::nobody())) {
                Ok(reply) => reply.text,
                Err(failure) => failure.to_string(),
            }
        };
        (0..count).map(ask).collect()
    }

    #[test]
    fn the_next_is_asked_when_the_one_before_is_given_up() {
        use FailureKind::{Absent, Auth, ContextTooLong, Quota, RateLimited, Server};
        type Case<'a> = (&'a [(&'static str, FailureKind)], u32, &'a [&'a str]);
        let cases: [Case<'_>; 7] = [
            (&[], 1, &["a/1"]),
            (
                &[("a/1", Quota)],
                2,
                &["provider error: quota used up: no; falling back to b/2", "b/2"],
            ),
            (
                &[("a/1", Absent)],
                2,
                &["provider error: nobody there: no; falling back to b/2", "b/2"],
            ),
            (
                &[("a/1", Server)],
                5,
                &[
                    "provider error: no",
                    "provider error: no",
                    "provider error: no",
                    "provider error: no; falling back to b/2",
                    "b/2",
                ],
            ),
            (
                &[("a/1", Auth), ("b/2", RateLimited), ("c/3", Quota)],
                5,
                &[
                    "provider error: key refused: no; falling back to b/2",
                    "provider error: b/2: no",
                    "provider error: b/2: no",
                    "provider error: b/2: no; falling back to c/3",
                    "quota used up: c/3: no",
                ],
            ),
            (&[("a/1", ContextTooLong)], 1, &["context too long: no"]),
            (
                &[("a/1", Auth), ("b/2", Auth), ("c/3", Auth)],
                3,
                &[
                    "provider error: key refused: no; falling back to b/2",
                    "provider error: key refused: b/2: no; falling back to c/3",
                    "key refused: c/3: no",
                ],
            ),
        ];
        for (bad, count, expected) in cases {
            assert_eq!(tries(&chain(bad), count), expected, "{bad:?}");
        }
    }

    #[test]
    fn the_last_try_asks_everybody() {
        let chain = chain(&[("a/1", FailureKind::Server), ("b/2", FailureKind::Quota)]);
        let mut asked = asked_for_tests("a/1");
        asked.tries = TRIES_MAX - 1;
        let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let reply = tasks.block_on(chain.answer(asked, Live::nobody())).unwrap();
        assert_eq!(reply.text, "c/3");
    }

    #[test]
    fn who_was_given_up_is_asked_again_after_a_while() {
        let chain = chain(&[("a/1", FailureKind::Quota)]);
        let first_tries = |count| (0..count).map(|_| tries(&chain, 1).remove(0));
        let told = first_tries(40).filter(|told| told.contains("falling back")).count();
        assert!((2..=4).contains(&told), "{told} of 40 tries, twenty seconds apart");
    }
}
