//! What can go wrong, always with what can be done about it.

use std::io;
use std::path::PathBuf;

use crate::{Id, Scope, Secret};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use the memory {}", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the memory {} is of version {found}; this locum knows {known}", path.display())]
    Version { path: PathBuf, found: u32, known: u32 },
    /// The next one to open it begins with an empty memory.
    #[error(
        "the memory {} is damaged ({why}); it was set aside as {} and not changed",
        path.display(), kept.display()
    )]
    Damaged { path: PathBuf, kept: PathBuf, why: String },
    #[error("the memory {} is in use by others for too long", path.display())]
    Busy { path: PathBuf },
    #[error("the disk is full: nothing was written to {}", path.display())]
    Full { path: PathBuf },
    #[error("a note needs a text")]
    Empty,
    #[error("the text has {bytes} bytes and a note at most {max}; keep what matters in it")]
    TooLong { bytes: usize, max: usize },
    #[error("the text was not kept: {0}; say where the secret is kept instead")]
    Secret(Secret),
    #[error("{scope} has {max} notes, and no more fit; forget some first")]
    TooMany { scope: Scope, max: u32 },
    #[error("there is no note {id} that can be seen from here")]
    Unknown { id: Id },
    #[error("the notes of {scope} cannot be seen from here")]
    NotYours { scope: Scope },
    #[error("{place} cannot be kept")]
    InPage { place: String, source: Box<Error> },
}
