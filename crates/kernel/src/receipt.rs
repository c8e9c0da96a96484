//! The receipt: what an agent really did, counted by the runtime and attached to its result. A
//! model can claim anything; it cannot write this.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::limits::RECEIPT_LIST_MAX;
use crate::{Usage, Who};

/// Something the edge saw a tool do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    Ran { argv: String, exit: i32 },
    Changed { path: String, sha256: String, change: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
}

impl Outcome {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// Why an agent ended. Success after a limit is not plain success, so it has its own word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It called `complete`.
    Completed,
    /// It spoke and had nobody to wait for; its last words are the result.
    Spoke,
    /// The person ended it with `/done`.
    EndedByPerson,
    /// A limit was reached; the text says which. Its outcome may still be done: the grace turn.
    Limit(String),
    /// The model failed for good.
    Model(String),
    /// What it handed in was not what its definition wants; the text says why.
    Flawed(String),
    /// Its setup failed.
    Setup(String),
    /// Somebody stopped it; the text is their reason.
    Stopped(String),
    /// The agent above it ended first.
    ParentEnded,
}

/// An agent's own copy of the repository, where whoever takes its work finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    pub path: String,
    pub branch: String,
}

/// Counts that grow while an agent lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub turns: u32,
    /// Tools it ran; talk with other agents is not counted.
    pub calls: u32,
    pub denied: u32,
    /// Agents it made.
    #[serde(default)]
    pub spawned: u32,
    pub deeds: Vec<Deed>,
    /// Deeds beyond the list's bound.
    #[serde(default)]
    pub deeds_more: u32,
    pub usage: Usage,
    /// Cost of its own model calls, as far as prices are known.
    pub micro_usd: u64,
    /// Its own replies whose price is not known.
    #[serde(default)]
    pub unpriced: u32,
}

impl Tally {
    pub(crate) fn count(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            if self.deeds.len() < RECEIPT_LIST_MAX {
                self.deeds.push(deed.clone());
            } else {
                self.deeds_more = self.deeds_more.saturating_add(1);
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub outcome: Outcome,
    pub why: Why,
    pub by: Who,
    pub tally: Tally,
    /// Cost of the whole subtree.
    pub tree_micro_usd: u64,
    /// Replies in its subtree whose price is not known.
    #[serde(default)]
    pub unpriced: u32,
    /// Children that had not returned when it ended.
    pub children_pending: u32,
    /// Messages it was sent and never read.
    #[serde(default)]
    pub unread: u32,
    pub active_ms: u64,
    /// Its own copy, if anything ran there that could have changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copied>,
}
