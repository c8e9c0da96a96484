//! What a shell line would really run, for rules that allow or deny commands.
//!
//! A line is read by a parser of the shell's grammar, not split at marks. Every command in it is a
//! **part**: both sides of `&&` and `|`, the inside of `$(…)`, loops and `sh -c '…'`, what a
//! wrapper such as `timeout` starts, and every file a redirect opens (`> file`, `< file`). A part
//! is written in one way however it was quoted: words after quoting, joined by single blanks, a
//! word with other marks in single quotes.
//!
//! What only the running shell knows (`$X`, `*.rs`, `$(date)`) is written as [`UNKNOWN`]. Who
//! matches patterns must let nothing but a `*` stand for it when allowing, and must take it for
//! anything at all when denying.
//!
//! Where shells differ, where a command changes what later words mean, or where the grammar ends,
//! the reading is [`Reading::Opaque`]: nobody may take such a line for harmless. It is written for
//! what `sh`, `bash`, `dash` and `zsh` have in common; whatever only one of them understands is
//! opaque or leads to the same parts.
//!
//! In reading order: `glyph` (characters that do not look like what they are), `word`, `reader`
//! (quoting and expansion), `grammar` (lists and compound commands), `redirect`, `peel` (wrappers),
//! `wrapper` and `runner` (their options), `suspect` (commands in words that are not understood),
//! `guard`, `git`, `client` and `script` (what makes a harmless program run another).

mod client;
mod git;
mod glyph;
mod grammar;
mod guard;
mod peel;
mod reader;
mod redirect;
mod runner;
mod script;
mod suspect;
mod word;
mod wrapper;

use std::fmt;

/// Stands in a part for what only the running shell knows.
pub const UNKNOWN: char = '…';
/// Stands before a part that is run by another part, which says so itself (`npx tsc` runs `tsc`).
/// Who allows that other part allows this one; who denies must look at both.
pub const WITHIN: &str = "+run ";
/// The longest line that is read. No command anybody means to run is longer.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// The deepest nesting of substitutions, loops and shells within shells.
pub const DEPTH_MAX: u32 = 32;
/// The most parts of a line: no person would read more before allowing them.
pub const PARTS_MAX: usize = 256;

/// What a line would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Exactly these parts, in the order of the text.
    Plain(Vec<String>),
    /// More than can be told from the text.
    Opaque {
        why: Why,
        /// The parts found nevertheless: enough to deny, never to allow.
        seen: Vec<String>,
    },
}

/// Why nobody can tell what a line runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    TooLong,
    TooDeep,
    TooMany,
    /// A character that does not look like what it is.
    Glyph(char),
    /// The grammar does not hold, or only in some shells.
    Syntax(&'static str),
    /// It is understood, and does more than its words say.
    Hides(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot tell what this runs: ")?;
        match self {
            Why::TooLong => write!(f, "it is longer than {LINE_BYTES_MAX} bytes"),
            Why::TooDeep => write!(f, "it is nested deeper than {DEPTH_MAX}"),
            Why::TooMany => write!(f, "it has more than {PARTS_MAX} commands"),
            Why::Glyph(glyph) => {
                write!(f, "it has the character U+{:04X}, which hides", u32::from(*glyph))
            }
            Why::Syntax(what) => f.write_str(what),
            Why::Hides(what) => f.write_str(what),
        }
    }
}

/// Reads a line. Never fails: what cannot be read is opaque.
#[must_use]
pub fn read(line: &str) -> Reading {
    let mut found = Found::default();
    found.read(line, 0);
    found.reading()
}

/// What has been found so far.
#[derive(Debug, Default)]
struct Found {
    parts: Vec<String>,
    bytes: usize,
    /// Commands without any effect, told only if there is nothing else.
    idle: Vec<String>,
    doubt: Option<Why>,
    /// How many runners are around what is read, whose own line is a part already.
    within: u32,
    /// How often it was guessed where a command could begin.
    guesses: u32,
}

impl Found {
    fn read(&mut self, line: &str, depth: u32) {
        if line.len() > LINE_BYTES_MAX {
            return self.doubt(Why::TooLong);
        }
        if depth > DEPTH_MAX {
            return self.doubt(Why::TooDeep);
        }
        if let Some(glyph) = line.chars().find(|glyph| glyph::hides(*glyph)) {
            self.doubt(Why::Glyph(glyph));
        }
        let mut reader = reader::Reader::new(line, depth, self);
        if let Err(why) = reader.line() {
            self.doubt(why);
        }
    }

    fn part(&mut self, part: String) {
        let part = if self.within > 0 { format!("{WITHIN}{part}") } else { part };
        // They are written down with the call: what a line has found must not be much more.
        let full = self.parts.len() >= PARTS_MAX || self.bytes + part.len() > 2 * LINE_BYTES_MAX;
        if full {
            self.doubt(Why::TooMany);
        } else if !self.parts.contains(&part) {
            self.bytes += part.len();
            self.parts.push(part);
        }
    }

    /// The first doubt is the one that is told.
    fn doubt(&mut self, why: Why) {
        self.doubt.get_or_insert(why);
    }

    fn hides(&mut self, what: impl Into<String>) {
        self.doubt(Why::Hides(what.into()));
    }

    fn reading(mut self) -> Reading {
        if self.parts.is_empty() {
            self.parts.append(&mut self.idle);
        }
        match self.doubt {
            Some(why) => Reading::Opaque { why, seen: self.parts },
            None if self.parts.is_empty() => {
                Reading::Opaque { why: Why::Syntax("there is no command"), seen: self.parts }
            }
            None => Reading::Plain(self.parts),
        }
    }
}
