//! What can go wrong, in words for whoever asked: which path, and what to do about it.

use std::io;

use rustix::io::Errno;

/// A path is repeated in an error only so far.
const NAME_CHARS_MAX: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("Tool not found: {tool}")]
    NoTool { tool: String },
    #[error("{tool} {why}")]
    Arguments { tool: &'static str, why: String },
    #[error("{path} is outside the workspace")]
    Outside { path: String },
    #[error("{path}: `~` is not expanded; name the path from the workspace, or an absolute one")]
    Home { path: String },
    #[error("{path} cannot be a path: {why}")]
    Name { path: String, why: &'static str },
    #[error("{path} does not exist{hint}")]
    Missing { path: String, hint: String },
    #[error("{path} is protected: these tools do not {deed} it")]
    Protected { path: String, deed: &'static str },
    #[error(
        "{path} has {links} names (hard links), and another one is kept from agents: these tools \
         do not read it"
    )]
    Alias { path: String, links: u64 },
    #[error("{path} is not a file; ls shows a folder")]
    Folder { path: String },
    #[error("{path} is not a folder")]
    NotFolder { path: String },
    #[error("{path} is a {kind}, and only files can be read or written")]
    Special { path: String, kind: &'static str },
    #[error(
        "{path} has {links} names (hard links) and the others may be outside the workspace; \
         it is not written. Remove it and write it anew if this one is meant alone"
    )]
    Linked { path: String, links: u64 },
    #[error("{path} is in a folder that may be read but not written")]
    ReadOnly { path: String },
    #[error("{path} goes through too many links, perhaps in a circle")]
    Loop { path: String },
    #[error("{path} was changed by somebody else at this moment; try again")]
    Moved { path: String },
    #[error("{path} exists and you have not read it; read it first")]
    Unread { path: String },
    #[error("{path} changed since you read it; read it again")]
    Stale { path: String },
    #[error("{path} is being written by another program; try again")]
    Busy { path: String },
    #[error("{path} has {bytes} bytes; {tool} takes at most {most}")]
    Large { path: String, tool: &'static str, bytes: u64, most: u64 },
    #[error("{path} is not text ({what}); edit changes only text")]
    NotText { path: String, what: String },
    #[error("{path}: {why}. Nothing was changed")]
    Edit { path: String, why: String },
    #[error("{path} is {encoding} text, which has no {letter:?}; write saves it as UTF-8 instead")]
    Letter { path: String, encoding: &'static str, letter: char },
    #[error("pattern: {why}")]
    Pattern { why: String },
    #[error("{handle} is not kept here; handles are given when a result is too long to show")]
    NoSpill { handle: String },
    #[error("{handle} is damaged: what is on disk is not what was kept")]
    BadSpill { handle: String },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

impl Error {
    pub(crate) fn io(path: &str, error: impl Into<io::Error>) -> Error {
        Error::Io { path: path.to_owned(), source: error.into() }
    }

    pub(crate) fn missing(path: &str) -> Error {
        Error::Missing { path: path.to_owned(), hint: String::new() }
    }

    /// What the kernel says when a name was swapped between looking and opening.
    pub(crate) fn opening(path: &str, errno: Errno) -> Error {
        match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::AGAIN => {
                Error::Moved { path: path.to_owned() }
            }
            Errno::NOENT => Error::missing(path),
            errno => Error::io(path, errno),
        }
    }
}

/// A name as it can be printed in one row: control characters are spelled out, and what is
/// absurdly long is cut.
pub(crate) fn shown(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => escaped(&name[..end]) + "…",
        None => escaped(name),
    }
}

/// The same, whole.
pub(crate) fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for sign in name.chars() {
        if sign.is_control() {
            escaped.extend(sign.escape_default());
        } else {
            escaped.push(sign);
        }
    }
    escaped
}
