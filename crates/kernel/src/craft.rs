//! What a definition brings along besides words and rights, and how the edge brings a definition
//! when a call names it: files are read where they are needed, the kernel only hears of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, Kind, Subjects};

/// A definition the edge can bring when a call names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub name: String,
    pub kind: Kind,
    /// One line for the catalogue that models choose from.
    #[serde(default)]
    pub about: String,
}

/// What the edge made of the definition a call names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// It is known by this digest.
    Of(Digest),
    /// Why there is none, in words the model can act on.
    Not(String),
}

/// A definition that only agents made from this one may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sub {
    pub offer: Offer,
    /// Where the edge finds it.
    pub file: String,
    /// What it is built with unless the call says otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Two of it do not run at the same time.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_turn: bool,
}

/// What must hold before an agent's work is accepted: commands that must all end with 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub checks: Vec<Check>,
    /// Run when a check failed, before the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Check>,
    pub check_timeout_s: u64,
    pub on_failure_timeout_s: u64,
    /// How often it may try again.
    pub tries_max: u32,
}

/// A shell line, with what the edge's parser found in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Subjects>,
}

/// Another program that does the whole work instead of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub command: Vec<String>,
    pub input: ProgramInput,
}

/// How a program is told its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramInput {
    Stdin,
    /// As the last argument.
    Arg,
}

/// Why the runtime itself made a call in an agent's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ours {
    /// Of its work before it is accepted.
    Check,
    /// After a check that failed.
    OnFailure,
    /// It is a program.
    Program,
}

/// What an agent failed with when what it left is not what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    /// Its words or its work, which were not accepted.
    Work,
    /// It is a program, which hands nothing in that could be judged. It has no exit code if it
    /// was killed, or never ran.
    Program { exit: Option<i32> },
}

/// What the edge furnishes an agent with. The kernel only passes it on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kit {
    /// The file it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(skip_serializing_if = "Tuning::is_usual")]
    pub tuning: Tuning,
    /// Variables that its commands may see although they would be kept from others.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<String>,
    /// Folders that its program may write to besides the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// A copy of the repository of its own.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub worktree: bool,
    /// Files are kept before it changes them.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub checkpoint: bool,
    /// Servers that are started for it, in the edge's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Value>,
}

impl Kit {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Kit::default()
    }

    /// Something must be there before its first turn.
    #[must_use]
    pub fn needs_setup(&self) -> bool {
        self.worktree || !self.servers.is_empty()
    }
}

/// How a model is set for an agent, where its provider has such a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// Thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_milli: Option<u32>,
    /// How hard it thinks, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

impl Tuning {
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Tuning::default()
    }
}
