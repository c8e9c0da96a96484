//! The ask: anything that waits for a person or a parent. Approvals, questions, continues and
//! budget top-ups are one record in one queue, and a verdict is the answer to one of them.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::Class;
use crate::digest::Digest;
use crate::id::{AgentId, AskId, CallId, Key, Time};
use crate::message::Who;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub agent: AgentId,
    /// The call that waits; `None` for a continue or a top-up, where the agent itself waits.
    pub call: Option<CallId>,
    pub to: AskTo,
    pub kind: AskKind,
    pub at: Time,
    /// Parcels that carry it to channels.
    #[serde(default)]
    pub posted: Vec<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskTo {
    Person,
    Parent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    Approval {
        tool: String,
        arguments: Value,
        class: Class,
        /// What the agent said beside the call.
        reason: String,
        /// Why it is asked: the rule or the mode.
        because: String,
        digest: Digest,
    },
    Question {
        question: String,
        options: Vec<String>,
    },
    Continue {
        why: String,
    },
    Budget {
        why: String,
        /// Smallest top-up that lets the next request through.
        micro_usd: u64,
    },
}

impl AskKind {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            AskKind::Approval { .. } => "approval",
            AskKind::Question { .. } => "question",
            AskKind::Continue { .. } => "continue",
            AskKind::Budget { .. } => "budget",
        }
    }
}

/// How far an allow reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call, this time.
    #[default]
    Once,
    /// The asking agent and everyone below it, until it ends.
    Agent,
    /// The asking agent's siblings too, until their parent ends.
    Fanout,
    /// The whole session; the edge also writes it down as a rule of the project.
    Project,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow {
        #[serde(default)]
        scope: Scope,
        /// Run with these arguments instead.
        #[serde(default)]
        arguments: Option<Value>,
        /// Widen the grant from these exact arguments to a pattern of the subject.
        #[serde(default)]
        pattern: Option<String>,
        #[serde(default)]
        expires: Option<Time>,
    },
    Deny {
        #[serde(default)]
        message: Option<String>,
    },
    Answer {
        text: String,
    },
    Continue {
        #[serde(default)]
        text: Option<String>,
    },
    TopUp {
        micro_usd: u64,
    },
    /// Nobody needs the answer any more; only the kernel gives this verdict.
    Withdrawn {
        why: String,
    },
}

impl Verdict {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allow { .. } => "allowed",
            Verdict::Deny { .. } => "denied",
            Verdict::Answer { .. } => "answered",
            Verdict::Continue { .. } => "continued",
            Verdict::TopUp { .. } => "topped up",
            Verdict::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// A remembered allow. It reaches no further than its root's subtree and ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: Key,
    /// Holds for this agent and everyone below it.
    pub root: AgentId,
    pub tool: String,
    pub covers: Covers,
    /// Only those below the root, and only for as long as there are any.
    #[serde(default)]
    pub fanout: bool,
    pub expires: Option<Time>,
    pub by: Who,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// Exactly the arguments that were seen.
    Digest(Digest),
    /// Every call whose subjects match.
    Pattern(String),
}

/// How an ask ended, for whoever answers second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub verdict: String,
    pub by: Who,
    pub at: Time,
}
