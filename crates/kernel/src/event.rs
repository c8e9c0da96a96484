//! Events: facts, past tense. The journal is a list of entries, and an entry holds the events of
//! one decision. Old entries must fold for ever, so fields are only ever added, with a default.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::{
    AgentId, AgentLimits, AskId, AskKind, AskTo, Audience, CallId, Copied, Definition, Digest,
    Failure, Grant, InputId, Key, Message, Mode, ModelSpec, Note, Offer, Output, PolicyMode,
    Receipt, Reply, Rights, Rule, Seq, Spend, Time, ToolSpec, TreeLimits, Usage, Verdict, WaitFor,
    Who,
};

/// The version of the journal's words. An entry of a newer version is not folded.
pub const VERSION: u32 = 2;

/// One decision: all of its facts, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub v: u32,
    /// The number of its first event.
    pub seq: Seq,
    pub at: Time,
    pub events: Vec<Event>,
}

#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Opened { session: String },
    Configured { changes: Vec<Change> },
    Restarted,
    /// Nobody drives the session: what is started from here on is not begun before a restart.
    Left,

    /// A message was admitted to the queue. The event's number is the input's id.
    Enqueued { message: Message },
    /// A message of the same sender joined a waiting input.
    Merged { input: InputId, message: Message },
    Edited { input: InputId, text: String },
    Moved { input: InputId, before: Option<InputId> },
    Dropped { input: InputId, by: Who },

    /// Something entered an agent's inbox. The event's number is the note's id.
    Heard { agent: AgentId, note: Note },

    Spawned(Box<Spawn>),
    /// A ready agent waits for a slot; `returning` if it had one before.
    Lined { agent: AgentId, returning: bool },
    /// A ready agent waits until running calls give back what is set aside for them.
    Held { agent: AgentId },
    Preparing { agent: AgentId },
    /// `tools` are those that were brought for it, `copy` is that of the repository.
    Prepared {
        agent: AgentId, #[serde(default)] tools: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] copy: Option<Copied>,
    },
    /// A server that was brought for it, or for somebody above it, has these now too.
    Equipped { agent: AgentId, tools: Vec<String> },

    /// A model call is owed.
    TurnBegan(Box<TurnStart>),
    Replied { agent: AgentId, reply: Box<Reply> },
    /// The call is owed again, not before a moment. `hold` keeps the provider's others back too.
    Retrying(Box<Retry>),
    /// The model call failed for good.
    Faulted { agent: AgentId, failure: Failure },
    /// The history does not fit the model's window: it must be compacted before the next try.
    Overflowed { agent: AgentId },
    /// The model call is no longer wanted.
    TurnDropped { agent: AgentId, by: Who },
    Compacted(Box<Compaction>),

    /// A call must be answered for. The event's number is the ask's id.
    Asked {
        agent: AgentId, call: Option<CallId>, to: AskTo, kind: Box<AskKind>,
        /// What the call itself wants to know while it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")] wonder: Option<u64>,
    },
    /// An ask is closed; `input` is the message that answered it, if one did.
    Settled { ask: AskId, verdict: Verdict, by: Who, input: Option<InputId> },
    Granted { grant: Grant },
    Revoked { grant: Key, by: Who },

    /// A tool run is owed. `idempotent` as it was declared then.
    Started { agent: AgentId, call: CallId, idempotent: bool },
    Awaited { agent: AgentId, call: CallId, wait: WaitFor },
    /// A call has its one result. `reads` are notes that the result already tells.
    Returned { agent: AgentId, call: CallId, output: Output, reads: Vec<Seq> },

    /// The checks of its work passed: it has nothing more to answer.
    Proved { agent: AgentId },
    /// They did not; `for_good` if it may not try again.
    Disproved { agent: AgentId, why: String, for_good: bool },

    /// An agent's words for the person.
    Spoke { agent: AgentId, text: String },
    /// A channel must carry an agent's words, or its ask, to an address.
    Posted { agent: AgentId, to: String, text: String, ask: Option<AskId> },
    Delivered { key: Key, error: Option<String> },
    /// A running tool has heard what became of its question.
    Relayed { key: Key },

    Paused { agent: AgentId, why: Pause },
    Continued { agent: AgentId, by: Who },
    ToppedUp { agent: Option<AgentId>, micro_usd: u64 },
    Switched { agent: AgentId, mode: Mode },
    Narrowed { agent: AgentId, ceiling: Rights },
    Ended { agent: AgentId, result: String, receipt: Box<Receipt> },
}

impl Event {
    /// The agent it happened to, if it happened to one; for a birth, the parent.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Event::Heard { agent, .. }
            | Event::Lined { agent, .. }
            | Event::Held { agent }
            | Event::Preparing { agent }
            | Event::Prepared { agent, .. }
            | Event::Equipped { agent, .. }
            | Event::Proved { agent }
            | Event::Disproved { agent, .. }
            | Event::Replied { agent, .. }
            | Event::Faulted { agent, .. }
            | Event::Overflowed { agent }
            | Event::TurnDropped { agent, .. }
            | Event::Asked { agent, .. }
            | Event::Started { agent, .. }
            | Event::Awaited { agent, .. }
            | Event::Returned { agent, .. }
            | Event::Spoke { agent, .. }
            | Event::Posted { agent, .. }
            | Event::Paused { agent, .. }
            | Event::Continued { agent, .. }
            | Event::Switched { agent, .. }
            | Event::Narrowed { agent, .. }
            | Event::Ended { agent, .. } => Some(*agent),
            Event::TurnBegan(turn) => Some(turn.agent),
            Event::Retrying(retry) => Some(retry.agent),
            Event::Compacted(compaction) => Some(compaction.agent),
            Event::Spawned(spawn) => spawn.parent,
            Event::ToppedUp { agent, .. } => *agent,
            Event::Opened { .. }
            | Event::Configured { .. }
            | Event::Restarted
            | Event::Left
            | Event::Enqueued { .. }
            | Event::Merged { .. }
            | Event::Edited { .. }
            | Event::Moved { .. }
            | Event::Dropped { .. }
            | Event::Settled { .. }
            | Event::Granted { .. }
            | Event::Revoked { .. }
            | Event::Delivered { .. }
            | Event::Relayed { .. } => None,
        }
    }
}

/// A model call that is owed from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStart {
    pub agent: AgentId,
    pub purpose: Purpose,
    /// The notes it will see.
    pub reads: Vec<Seq>,
    /// What is set aside for it.
    pub reserved: Spend,
    /// The limit that makes it the agent's last.
    pub grace: Option<Breach>,
}

/// The next try of a model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub agent: AgentId,
    pub attempt: u32,
    pub not_before: Time,
    /// Until when the provider's other calls wait too.
    pub hold: Option<Time>,
    pub failure: Failure,
}

/// A history replaced by its summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    pub agent: AgentId,
    pub summary: String,
    pub before_tokens: u64,
    pub usage: Usage,
    pub micro_usd: Option<u64>,
}

/// A child and its link to the parent, in one fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    pub agent: AgentId,
    pub parent: Option<AgentId>,
    /// The parent's call that made it.
    pub call: Option<CallId>,
    pub definition: Digest,
    pub label: String,
    pub model: String,
    pub mode: Mode,
    pub ceiling: Rights,
    pub uses: Rights,
    pub limits: AgentLimits,
    /// Agents that must end before it starts.
    #[serde(default)]
    pub after: Vec<AgentId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next reply of the conversation.
    Answer,
    /// A summary that will stand for the history so far; `resume` if an answer is due after it.
    Summary { resume: bool },
}

/// Why an agent stopped where it can go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    Limit(Breach),
    Model(Failure),
}

/// A limit that was reached: which, whose (`None`: the tree's) and how much it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    pub limit: Limit,
    pub of: Option<AgentId>,
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Turns,
    Tokens,
    Money,
    Time,
    /// The same call denied again and again.
    Denials,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.max;
        match self.limit {
            Limit::Turns => write!(f, "turn limit {max}/{max}")?,
            Limit::Tokens => write!(f, "token limit {max}")?,
            Limit::Money => write!(f, "money limit {}", usd(max))?,
            Limit::Time => write!(f, "time limit {}s", max / 1_000)?,
            Limit::Denials => write!(f, "limit of {max} denials of one call")?,
        }
        f.write_str(if self.of.is_none() { " of the whole tree" } else { "" })
    }
}

/// Dollars with two digits, or six where two would lie.
pub(crate) fn usd(micro: u64) -> String {
    let (whole, part) = (micro / 1_000_000, micro % 1_000_000);
    if part % 10_000 == 0 {
        alloc::format!("${whole}.{:02}", part / 10_000)
    } else {
        alloc::format!("${whole}.{part:06}")
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pause::Limit(breach) => breach.fmt(f),
            Pause::Model(failure) => failure.fmt(f),
        }
    }
}

/// One difference between the world as it was configured and as it is now.
#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Audience(Audience),
    Mode(PolicyMode),
    Rules(Vec<Rule>),
    Limits(TreeLimits),
    Model(String),
    Workspace(String),
    ModelSpec { name: String, spec: ModelSpec },
    Tool(ToolSpec),
    ToolGone(String),
    /// A definition, journaled whole, once; agents refer to it by the digest of its content.
    Definition { digest: Digest, definition: Box<Definition> },
    DefinitionGone(String),
    /// The same for one that a call named; no name means it from here on.
    Brought { digest: Digest, definition: Box<Definition> },
    /// What the edge can bring when it is named, all of it.
    Offers(Vec<Offer>),
}
