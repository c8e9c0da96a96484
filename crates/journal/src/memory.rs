//! Entries in memory: for tests, and the shortest statement of what a store must do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use locum_kernel::{Entry, Seq};

use crate::{Done, Error, Journal, Listed, Records, Snapshot, When, last_of};

#[derive(Debug, Default)]
pub struct Memory {
    sessions: Mutex<BTreeMap<String, Kept>>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    last: Seq,
    entries: Vec<Entry>,
    snapshot: Option<Snapshot>,
}

impl Memory {
    /// A poisoned lock guards whole entries all the same: each change is one push.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error> {
        let (path, session) = (PathBuf::from("(memory)"), session.to_owned());
        let Some(last) = last_of(entry, expected) else {
            return Err(Error::Misplaced { path, session, expected, found: entry.seq });
        };
        let mut sessions = self.lock();
        let found = sessions.get(&session).map_or(Seq(0), |kept| kept.last);
        if found != expected {
            return Err(Error::Conflict { path, session, expected, found });
        }
        let kept = sessions.entry(session).or_default();
        kept.entries.push(entry.clone());
        kept.last = last;
        Ok(())
    }
}

impl Records for Memory {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let sessions = self.lock();
        let entries = sessions.get(session).map(|kept| kept.entries.as_slice()).unwrap_or_default();
        let from = entries.partition_point(|entry| entry.seq <= after);
        Ok(entries[from..].to_vec())
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        Ok(self.lock().get(session).and_then(|kept| kept.snapshot.clone()))
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        let listed = |(session, kept): (&String, &Kept)| Listed {
            session: session.clone(),
            last: kept.last,
            damaged: None,
        };
        Ok(self.lock().iter().map(listed).collect())
    }
}

impl Journal for Memory {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, _: When, done: Done) {
        done(self.put(session, expected, entry));
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        let mut sessions = self.lock();
        let kept = sessions.get_mut(session);
        let ends =
            |kept: &Kept| kept.last == seq || kept.entries.iter().any(|e| e.seq.0 == seq.0 + 1);
        let Some(kept) = kept.filter(|kept| seq.0 > 0 && ends(kept)) else {
            let (path, session) = (PathBuf::from("(memory)"), session.to_owned());
            return Err(Error::NoSuchEnd { path, session, seq });
        };
        if kept.snapshot.as_ref().is_none_or(|older| older.seq <= seq) {
            kept.snapshot = Some(Snapshot { seq, bytes: bytes.to_vec() });
        }
        Ok(())
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.lock().remove(session);
        Ok(())
    }
}
