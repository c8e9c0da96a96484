//! The ask: anything that waits for a person or a parent. Approvals, questions, continues and
//! budget top-ups are one record in one queue, and a verdict is the answer to one of them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentId, AskId, CallId, Class, Digest, Key, Rule, Subjects, Time, Who};

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
    /// A tool that runs wants to know: what it calls its question. The call goes on meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wonder: Option<u64>,
}

/// A question of a tool that is running and waits for the answer itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wonder {
    /// Chosen by the edge, which is told the answer under it.
    pub id: u64,
    /// On whose behalf the tool asks, such as the name of a server.
    pub from: String,
    pub question: String,
    #[serde(default)]
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskTo {
    Person,
    Parent,
}

#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    Approval(Box<Approval>),
    Question { question: String, options: Vec<String> },
    Continue { why: String },
    /// `micro_usd` is the smallest top-up that lets the next request through.
    Budget { why: String, micro_usd: u64 },
}

/// A call that needs a person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub tool: String,
    pub arguments: Value,
    pub class: Class,
    /// What the agent said beside the call.
    pub reason: String,
    /// Why it is asked: the rule or the mode.
    pub because: String,
    pub digest: Digest,
}

impl AskKind {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            AskKind::Approval(_) => "approval",
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
    /// The asking agent's siblings too, also those to come, until their parent begins another
    /// exchange or ends.
    Fanout,
    /// The whole session; the edge also writes it down as a rule of the project.
    Project,
}

#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow(Allow),
    Deny { message: Option<String> },
    Answer { text: String },
    Continue { text: Option<String> },
    TopUp { micro_usd: u64 },
    /// Nobody needs the answer any more; only the kernel gives this verdict.
    Withdrawn { why: String },
}

/// How a call is allowed; by default this one, once, as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allow {
    pub scope: Scope,
    /// Run with these arguments instead.
    pub arguments: Option<Value>,
    /// What the edge's parser found in these arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Subjects>,
    /// Widen the grant from these exact arguments to a pattern of the subject.
    pub pattern: Option<String>,
    pub expires: Option<Time>,
}

impl Verdict {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allow(_) => "allowed",
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
    /// Only those below the root, and only in its exchange: the next fan-out is another one.
    #[serde(default)]
    pub fanout: bool,
    pub expires: Option<Time>,
    pub by: Who,
    /// The same as rules, if it is meant for the project: the edge keeps them for later sessions.
    /// There are none when no rule says exactly what was allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
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
