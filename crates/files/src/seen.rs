//! Who has read what: nobody changes a file on the strength of what it said yesterday. Bounded:
//! what was read longest ago is forgotten first, and has to be read again before it is changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::meta::Stamp;

/// Enough for every file a long session touches.
const MARKS_MAX: usize = 8192;

/// What a file was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Content([u8; 32]),
    /// Of a file too large to be looked through each time.
    Stamp(Stamp),
}

impl Mark {
    pub(crate) fn of(bytes: &[u8]) -> Mark {
        Mark::Content(Sha256::digest(bytes).into())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    marks: Mutex<Marks>,
}

/// Who, where, and with whom it was left.
type Key = (String, PathBuf);

#[derive(Debug, Default)]
struct Marks {
    by: HashMap<Key, (u64, Mark)>,
    turn: u64,
}

impl Seen {
    pub(crate) fn note(&self, reader: &str, path: PathBuf, mark: Mark) {
        // A thread that died while it held the map left it whole: every change is one insertion.
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.turn += 1;
        let turn = marks.turn;
        marks.by.insert((reader.to_owned(), path), (turn, mark));
        if marks.by.len() > MARKS_MAX {
            let mut turns: Vec<u64> = marks.by.values().map(|(turn, _)| *turn).collect();
            // Half at once, so that a full map is not sorted at every read.
            let (_, middle, _) = turns.select_nth_unstable(MARKS_MAX / 2);
            let middle = *middle;
            marks.by.retain(|_, (turn, _)| *turn > middle);
        }
    }

    pub(crate) fn mark(&self, reader: &str, path: &Path) -> Option<Mark> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.by.get(&(reader.to_owned(), path.to_owned())).map(|(_, mark)| *mark)
    }

    pub(crate) fn forget(&self, reader: &str) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.by.retain(|(who, _), _| who != reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let seen = Seen::default();
        for number in 0..3 * MARKS_MAX {
            seen.note("a", number.to_string().into(), Mark::of(b"x"));
            assert!(seen.marks.lock().unwrap().by.len() <= MARKS_MAX);
        }
        let last = (3 * MARKS_MAX - 1).to_string();
        assert!(seen.mark("a", Path::new(&last)).is_some());
        assert!(seen.mark("a", Path::new("0")).is_none());
        assert!(seen.mark("b", Path::new(&last)).is_none());
        seen.forget("a");
        assert!(seen.mark("a", Path::new(&last)).is_none());
    }
}
