//! What can go wrong, always with the place where it did.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use locum_kernel::{Seq, Unreadable};

use crate::Holder;

/// Causes are shared where one failed commit fails many callers.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the journal {}", path.display())]
    Open { path: PathBuf, source: Arc<rusqlite::Error> },
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is in use by {holder}", path.display())]
    Locked { path: PathBuf, holder: Holder },
    #[error("the journal {} is of version {found}; this locum knows {known}", path.display())]
    Version { path: PathBuf, found: u32, known: u32 },
    #[error("{} is not a whole database ({why}); a copy is {}", path.display(), kept.display())]
    Corrupt { path: PathBuf, kept: PathBuf, why: String },
    /// The same, seen by somebody who only looks and so keeps no copy.
    #[error("{} is not a whole database ({why})", path.display())]
    Broken { path: PathBuf, why: String },
    #[error("{} is gone or empty, but had {sessions} sessions", path.display())]
    Lost { path: PathBuf, sessions: usize },
    #[error("session {session} in {} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, session: String, why: String },
    #[error("the entry at {seq} of session {session} in {} cannot be read", path.display())]
    Unreadable { path: PathBuf, session: String, seq: Seq, source: Unreadable },
    #[error("cannot read session {session} from {}", path.display())]
    Read { path: PathBuf, session: String, source: Arc<rusqlite::Error> },
    #[error("cannot write session {session} to {}", path.display())]
    Write { path: PathBuf, session: String, source: Arc<rusqlite::Error> },
    #[error("the disk is full: session {session} was not written to {}", path.display())]
    Full { path: PathBuf, session: String },
    /// Before any session was looked at.
    #[error("the disk is full: {} cannot be opened", path.display())]
    NoRoom { path: PathBuf },
    /// Another process took the journal over; whatever this one still wants to say is too late.
    #[error("{} was taken over by writer {found}; {mine} cannot write {session}", path.display())]
    Fenced { path: PathBuf, session: String, mine: i64, found: i64 },
    /// A sync failed, so what the disk has is unknown until the journal is opened again.
    #[error("the writer of {} has stopped; session {session} was not written", path.display())]
    Stopped { path: PathBuf, session: String },
    #[error("session {session} in {} stands at {found}, not {expected}", path.display())]
    Conflict { path: PathBuf, session: String, expected: Seq, found: Seq },
    #[error("an entry that begins at {found} cannot follow {expected} in {}", path.display())]
    Misplaced { path: PathBuf, session: String, expected: Seq, found: Seq },
    #[error("no entry of session {session} in {} ends at {seq}", path.display())]
    NoSuchEnd { path: PathBuf, session: String, seq: Seq },
}
