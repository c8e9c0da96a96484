//! Entries in memory: for tests, and the shortest statement of what a store must do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use locum_kernel::{Entry, Seq};

use crate::{Error, Journal, last_of};

#[derive(Clone, Debug, Default)]
pub struct Memory {
    sessions: BTreeMap<String, Kept>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    last: Seq,
    entries: Vec<Entry>,
}

impl Journal for Memory {
    fn append(&mut self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error> {
        let (path, session) = (PathBuf::from("(memory)"), session.to_owned());
        let Some(last) = last_of(entry, expected) else {
            return Err(Error::Misplaced { path, session, expected, found: entry.seq });
        };
        let found = self.sessions.get(&session).map_or(Seq(0), |kept| kept.last);
        if found != expected {
            return Err(Error::Conflict { path, session, expected, found });
        }
        let kept = self.sessions.entry(session).or_default();
        kept.entries.push(entry.clone());
        kept.last = last;
        Ok(())
    }

    fn load(&self, session: &str) -> Result<Vec<Entry>, Error> {
        Ok(self.sessions.get(session).map(|kept| kept.entries.clone()).unwrap_or_default())
    }
}
