//! What changed, for people who watch and for receipts.

use std::time::Duration;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

/// A diff above this is cut.
const DIFF_BYTES_MAX: usize = 16 << 10;
/// Two texts that have nothing in common take long to compare, and nobody reads the result.
const DIFF_TIME: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// From the workspace, or absolute in another root. Without links.
    pub path: String,
    pub kind: ChangeKind,
    /// SHA-256 of the content before, in hexadecimal; None: there was none, or it was large.
    pub before: Option<String>,
    pub after: String,
    /// Unified; empty for a new file and where one side is not text.
    pub diff: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Created,
    Changed,
}

impl Change {
    pub(crate) fn new(
        path: String,
        kind: ChangeKind,
        before: Option<String>,
        after: &[u8],
        diff: String,
    ) -> Change {
        Change { path, kind, before, after: hex(&Sha256::digest(after)), diff }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn unified(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut text = diff.unified_diff().header(path, path).to_string();
    if text.len() > DIFF_BYTES_MAX {
        let rest = text.len() - DIFF_BYTES_MAX;
        let end = text.floor_char_boundary(DIFF_BYTES_MAX);
        let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
        text.truncate(end);
        let note = format!("[… {rest} more bytes of the diff]\n");
        text.push_str(&note);
    }
    text
}
