//! What the tools take. The names in contracts are the first ones; the others are what models
//! have learnt elsewhere and say anyway.

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Read {
    #[serde(alias = "file_path")]
    pub path: String,
    /// The first line to show, counted from 1.
    pub offset: Option<usize>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Write {
    #[serde(alias = "file_path")]
    pub path: String,
    pub content: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Edit {
    #[serde(alias = "file_path")]
    pub path: String,
    pub edits: Vec<Swap>,
}

/// One text for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Swap {
    #[serde(alias = "old_string", alias = "old_text")]
    pub old: String,
    #[serde(alias = "new_string", alias = "new_text")]
    pub new: String,
    /// Everywhere, and not only in the one place.
    #[serde(default, alias = "replace_all")]
    pub all: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ls {
    pub path: Option<String>,
    pub limit: Option<usize>,
    /// Names to pass over first, for the next page.
    pub offset: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Glob {
    pub pattern: String,
    pub path: Option<String>,
    pub limit: Option<usize>,
    /// Paths to pass over first, for the next page.
    pub offset: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Grep {
    pub pattern: String,
    pub path: Option<String>,
    /// Only files whose path or name matches.
    pub glob: Option<String>,
    pub limit: Option<usize>,
    /// Matching lines to pass over first, for the next page.
    pub offset: Option<usize>,
    pub ignore_case: Option<bool>,
    /// Lines to show around each match.
    pub context: Option<usize>,
    /// The pattern is plain text and not a regular expression.
    pub literal: Option<bool>,
}
