//! What is wrong with a file: where, what, why, and how to write it instead.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::PROBLEMS_MAX;

/// A line and a column, both from one. A column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Default for Place {
    fn default() -> Place {
        Place::START
    }
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1 };

    #[must_use]
    pub fn new(line: usize, column: usize) -> Place {
        let fit = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
        Place { line: fit(line), column: fit(column) }
    }

    /// Where a byte of a text stands.
    #[must_use]
    pub fn of_byte(text: &str, byte: usize) -> Place {
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Place::new(line, before[start..].chars().count() + 1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The definition cannot be used.
    Error,
    /// It can be used, and something in it does not do what its author may think.
    Warning,
}

/// One thing to mend. `what` says it in the file's words, `why` gives the rule, `how` the cure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub file: PathBuf,
    pub line: u32,
    pub column: u32,
    pub severity: Severity,
    pub what: String,
    pub why: String,
    pub how: String,
}

impl Problem {
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// One line, as compilers write it, so that editors can jump there.
impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: ", self.file.display(), self.line, self.column)?;
        if self.severity == Severity::Warning {
            write!(out, "warning: ")?;
        }
        let parts = [&self.what, &self.why, &self.how];
        let said: Vec<String> =
            parts.into_iter().filter(|part| !part.is_empty()).map(|part| one_line(part)).collect();
        write!(out, "{}", said.join(", "))
    }
}

/// Control characters of a file must not reach a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

/// A piece of a file, short enough for a message.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("\"{}\"", one_line(&short))
}

/// Problems of one file as they are found. Readers share it, so it is filled through `&self`.
#[derive(Debug)]
pub(crate) struct Problems {
    file: PathBuf,
    /// Lines of the file before the text that places are counted in.
    above: u32,
    list: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(crate) fn new(file: &Path) -> Problems {
        Problems { file: file.to_owned(), above: 0, list: RefCell::default() }
    }

    pub(crate) fn error(
        &self,
        at: Place,
        what: impl Into<String>,
        why: impl Into<String>,
        how: impl Into<String>,
    ) {
        self.push(Severity::Error, at, [what.into(), why.into(), how.into()]);
    }

    pub(crate) fn warn(
        &self,
        at: Place,
        what: impl Into<String>,
        why: impl Into<String>,
        how: impl Into<String>,
    ) {
        self.push(Severity::Warning, at, [what.into(), why.into(), how.into()]);
    }

    /// Unless the same reason was given for something before.
    pub(crate) fn warn_once(&self, at: Place, what: String, why: &str, how: &str) {
        if self.list.borrow().iter().all(|told| told.why != why) {
            self.warn(at, what, why, how);
        }
    }

    fn push(&self, severity: Severity, at: Place, words: [String; 3]) {
        let [what, why, how] = words;
        let line = at.line.saturating_add(self.above);
        let file = self.file.clone();
        let problem = Problem { file, line, column: at.column, severity, what, why, how };
        let mut list = self.list.borrow_mut();
        if list.len() < PROBLEMS_MAX && !list.contains(&problem) {
            list.push(problem);
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.list.borrow().iter().any(Problem::is_error)
    }

    /// Whether something from this line on, and before the other, is an error.
    pub(crate) fn has_error_in(&self, lines: std::ops::Range<u32>) -> bool {
        self.list.borrow().iter().any(|it| it.is_error() && lines.contains(&it.line))
    }

    pub(crate) fn take(self) -> Vec<Problem> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
        list
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// What is wrong with a part that is left out.
    pub(crate) fn extend_as_warnings(&self, found: Vec<Problem>) {
        let soft = |problem: Problem| Problem { severity: Severity::Warning, ..problem };
        self.extend(found.into_iter().map(soft).collect());
    }

    /// Another reader's findings, at the places they were found.
    pub(crate) fn extend(&self, found: Vec<Problem>) {
        let mut list = self.list.borrow_mut();
        let room = PROBLEMS_MAX.saturating_sub(list.len());
        list.extend(found.into_iter().take(room));
    }
}
