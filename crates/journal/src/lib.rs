//! Durability, and nothing else: entries go in, in order, and come back exactly as they went in.
//!
//! In reading order: the promise every store keeps, what can go wrong, and the two stores.
//! What is not here: any idea of what an entry means.

mod memory;
mod sqlite;

use std::fmt::Debug;
use std::path::PathBuf;

use locum_kernel::{Entry, Seq, Unreadable};

pub use memory::Memory;
pub use sqlite::Sqlite;

/// Where entries are kept. One decision is one entry, kept whole or not at all.
pub trait Journal: Debug {
    /// Puts an entry after the event numbered `expected`, the last one the caller knows of (zero
    /// in an empty session). When this returns `Ok` the entry survives a power cut. If somebody
    /// else has written meanwhile, nothing is written: the caller no longer owns the session.
    fn append(&mut self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error>;

    /// All entries of a session, oldest first. An unknown session has none.
    fn load(&self, session: &str) -> Result<Vec<Entry>, Error>;
}

/// What can go wrong, always with the place where it did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the journal {}", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("the journal {} is of version {found}; this locum knows {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("cannot read session {session} from {}", path.display())]
    Read { path: PathBuf, session: String, source: rusqlite::Error },
    #[error("cannot write session {session} to {}", path.display())]
    Write { path: PathBuf, session: String, source: rusqlite::Error },
    #[error("the entry at {seq} of session {session} in {} cannot be read", path.display())]
    Damaged { path: PathBuf, session: String, seq: Seq, source: Unreadable },
    #[error("session {session} in {} stands at {found}, not {expected}", path.display())]
    Conflict { path: PathBuf, session: String, expected: Seq, found: Seq },
    #[error("an entry that begins at {found} cannot follow {expected} in {}", path.display())]
    Misplaced { path: PathBuf, session: String, expected: Seq, found: Seq },
}

/// The number of an entry's last event, if the entry can stand right after `expected`.
fn last_of(entry: &Entry, expected: Seq) -> Option<Seq> {
    let events = u64::try_from(entry.events.len()).ok().filter(|events| *events > 0)?;
    let follows = expected.0.checked_add(1) == Some(entry.seq.0);
    follows.then(|| Seq(expected.0.saturating_add(events)))
}
