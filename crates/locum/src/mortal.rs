//! A store that lets the process die at a chosen append, so that the crash matrix can be there
//! for every one of them. Only in debug builds: what people install has no such door.
//!
//! `LOCUM_DIE_AT=before:N`: from the Nth append on nothing reaches the disk, though the process
//! goes on for a moment, as one does whose disk is slow; whatever it does in that moment must be
//! harmless. `after:N`: the Nth has reached the disk, and nobody is told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use locum_journal::{Done, Error, Journal, Listed, Records, Snapshot, When};
use locum_kernel::{Entry, Seq};

const VARIABLE: &str = "LOCUM_DIE_AT";

/// Long enough for a tool of a script to start that should not. A real command takes longer, and
/// `LOCUM_DIE_MOMENT_MS` says how long.
const MOMENT: Duration = Duration::from_millis(15);
const LONGER: &str = "LOCUM_DIE_MOMENT_MS";

fn moment() -> Duration {
    let said = std::env::var(LONGER).ok().and_then(|text| text.parse().ok());
    said.map_or(MOMENT, Duration::from_millis)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Before(u64),
    After(u64),
}

#[derive(Debug)]
pub(crate) struct Mortal<J> {
    inner: J,
    death: Option<Death>,
    appends: AtomicU64,
}

impl<J> Mortal<J> {
    pub(crate) fn new(inner: J) -> Mortal<J> {
        let death = std::env::var(VARIABLE).ok().and_then(|text| parse(&text));
        Mortal { inner, death, appends: AtomicU64::new(0) }
    }
}

fn parse(text: &str) -> Option<Death> {
    let (kind, number) = text.split_once(':')?;
    let number = number.parse().ok()?;
    match kind {
        "before" => Some(Death::Before(number)),
        "after" => Some(Death::After(number)),
        _ => None,
    }
}

impl<J: Journal> Records for Mortal<J> {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        self.inner.tail(session, after)
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        self.inner.newest_snapshot(session)
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        self.inner.sessions()
    }
}

impl<J: Journal> Journal for Mortal<J> {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, when: When, done: Done) {
        let number = self.appends.fetch_add(1, Ordering::Relaxed) + 1;
        match self.death {
            Some(Death::Before(at)) if number >= at => {
                // Dropped, it would say that the writer is gone; nobody must hear anything.
                std::mem::forget(done);
                if number == at {
                    let moment = moment();
                    let die = move || {
                        thread::sleep(moment);
                        std::process::abort();
                    };
                    thread::spawn(die);
                }
            }
            Some(Death::After(at)) if number == at => {
                let die: Done = Box::new(|_| std::process::abort());
                self.inner.submit_then(session, expected, entry, when, die);
            }
            Some(Death::Before(_) | Death::After(_)) | None => {
                self.inner.submit_then(session, expected, entry, when, done);
            }
        }
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        self.inner.snapshot(session, seq, bytes)
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.inner.delete(session)
    }

    fn is_low(&self) -> bool {
        self.inner.is_low()
    }
}

#[cfg(test)]
mod tests {
    use super::{Death, parse};

    #[test]
    fn deaths() {
        let cases = [
            ("before:3", Some(Death::Before(3))),
            ("after:12", Some(Death::After(12))),
            ("after", None),
            ("after:", None),
            ("during:3", None),
        ];
        for (text, death) in cases {
            assert_eq!(parse(text), death, "{text}");
        }
    }
}
