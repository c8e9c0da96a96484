//! Effects: what the world still owes the session. Imperative, derived from state, never stored.
//! An effect is a reference; what exactly to do is a projection ([`crate::prompt`],
//! [`crate::errand`], [`crate::parcel`], [`crate::relay`], [`crate::summons`]), so that listing a
//! thousand effects copies no text.

use alloc::collections::BTreeSet;
use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentId, CallId, Class, Key, Ours, Purpose, Time, Verdict};

#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    CallModel { key: Key, agent: AgentId, purpose: Purpose, not_before: Time },
    RunTool { key: Key, agent: AgentId, call: CallId },
    Prepare { key: Key, agent: AgentId },
    Deliver { key: Key, not_before: Time },
    /// A running tool must hear what became of its question.
    Relay { key: Key, agent: AgentId, call: CallId },
    /// A person named somebody who is not there yet: their definition must be brought.
    Summon { key: Key },
}

impl Effect {
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Effect::CallModel { key, .. }
            | Effect::RunTool { key, .. }
            | Effect::Prepare { key, .. }
            | Effect::Deliver { key, .. }
            | Effect::Relay { key, .. }
            | Effect::Summon { key } => *key,
        }
    }
}

/// What a tool is to be run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub agent: AgentId,
    /// The name of the definition it was made from.
    pub name: String,
    pub call: CallId,
    pub tool: String,
    pub arguments: Value,
    pub class: Class,
    /// What the agent may do itself: a command of one that may not write must not either.
    pub may: BTreeSet<Class>,
    pub idempotent: bool,
    pub timeout_ms: Option<u64>,
    /// Variables that its commands may see.
    pub env: BTreeSet<String>,
    /// Files are kept before it changes them.
    pub checkpoint: bool,
    /// Whose copy of the repository it works in; `None` is the workspace.
    pub desk: Option<AgentId>,
    /// Set if the runtime made the call.
    pub ours: Option<Ours>,
    /// What the tool said of itself when it was let run: another tool under its name is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(default)]
    pub span: Span,
}

/// How far what was decided about an address holds for where it leads; the last is the narrowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// The machine, also with `www` before its name or without.
    #[default]
    Place,
    /// Rules tell machines apart: this one.
    Host,
    /// Rules tell addresses of this machine apart: nowhere else.
    Address,
}

/// What became of a running tool's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    pub agent: AgentId,
    pub call: CallId,
    pub wonder: u64,
    pub verdict: Verdict,
}

/// What a channel is to carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    pub to: String,
    /// The path of the agent that speaks or asks.
    pub from: String,
    pub text: String,
    /// It may have been sent before a crash; say so.
    pub resent: bool,
}
