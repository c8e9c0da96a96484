//! Inputs: everything that can happen to a session. Past tense, plain data. An input is either
//! turned into facts or refused with a reason a person can read.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::{
    AgentId, AskId, Config, Copied, Definition, Digest, InputId, Key, Message, Offer, Output,
    Reply, Rights, Rule, ToolSpec, Verdict, Who, Wonder,
};

#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The world as it is now. The first one opens the session; later ones record what differs.
    Configured(Box<Config>),
    /// A new process took the session over, in this world. `captured` is what cut calls had
    /// printed. One input: what was cut is settled before the new world starts anything.
    Restarted { config: Box<Config>, captured: Vec<(Key, String)> },
    /// Nobody drives the session from here on; it may still be told things.
    Left,
    /// What the edge can bring has changed.
    Offered { offers: Vec<Offer> },
    /// Tools that are new or otherwise than they were, and those that are gone. `beside` are the
    /// others of a server that was brought: whoever has one of them gets what is new. `to` is for
    /// whom one was brought that took its time.
    Retooled { tools: Vec<ToolSpec>, gone: Vec<String>, beside: Vec<String>, to: Option<AgentId> },

    /// Somebody said something.
    Said(Message),
    /// A waiting input was rewritten, thrown away, or put before another (`None`: last).
    Edited { input: InputId, text: String },
    Dropped { input: InputId, by: Who },
    Moved { input: InputId, before: Option<InputId> },
    /// Somebody answered an ask. `digest` is what they saw, if their surface quotes it.
    Answered { ask: AskId, verdict: Verdict, by: Who, digest: Option<Digest> },
    /// Somebody acted on an agent.
    Commanded { by: Who, command: Command },

    /// A model answered, whole.
    Replied { key: Key, reply: Reply },
    /// A model call came to nothing.
    Failed { key: Key, failure: Failure },
    /// A tool returned.
    Ran { key: Key, output: Output },
    /// A running tool wants something from a person before it can go on.
    Wondered { key: Key, wonder: Wonder },
    /// It was told what became of that.
    Relayed { key: Key },
    /// A setup ended, well or with a cause.
    Prepared { key: Key, error: Option<String>, ready: Ready },
    /// A message left for its channel, or could not.
    Delivered { key: Key, error: Option<String> },
    /// Somebody looked for the definition of a name that a person said.
    Summoned { key: Key, found: Found },
    /// A deadline passed.
    Ticked,
}

/// What a setup came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Brought for this agent and those below it.
    pub tools: Vec<ToolSpec>,
    /// What the agent should know of it before it begins.
    pub told: Option<String>,
    /// Its own copy of the repository, if it got one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copied>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// `/back`: the agent on top leaves the floor, its work cancelled.
    Back,
    /// `/done [text]`: the agent on top leaves the floor with this result.
    Done { text: String },
    /// `/fg`: a running agent takes the floor.
    Foreground { agent: AgentId },
    /// `/bg`: the agent on top goes on in the background.
    Background,
    /// Stops an agent and everyone below it.
    Cancel { agent: AgentId, why: String },
    /// A paused agent goes on.
    Continue { agent: AgentId, text: Option<String> },
    /// Takes rights away from an agent and everyone below it.
    Narrow { agent: AgentId, to: Rights },
    /// Replaces a resting agent's history by a summary now.
    Compact { agent: AgentId },
    /// What was allowed with this rule is asked again from now on.
    Revoke { rule: Rule },
}

/// What a name that a person said means at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    Made(Box<Definition>),
    /// It is there and cannot be started.
    Not(String),
    /// Nothing of that name: the session's own names are meant.
    Nothing,
}

/// Why a model call came to nothing, classified once, at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// In the provider's words, without secrets.
    #[serde(default)]
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// 429: this provider, for everybody.
    RateLimited,
    /// 529: this provider, for everybody.
    Overloaded,
    /// Any other 5xx.
    Server,
    Timeout,
    /// The stream ended before the message did.
    Cut,
    /// The answer was not one: unparsable, too large.
    Malformed,
    ContextTooLong,
    Auth,
    Quota,
    UnknownModel,
    /// Nobody listens at an address of this machine: a server that somebody has to start.
    Absent,
    Filtered,
    Other,
}

impl FailureKind {
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            FailureKind::RateLimited
            | FailureKind::Overloaded
            | FailureKind::Server
            | FailureKind::Timeout
            | FailureKind::Cut
            | FailureKind::Malformed => true,
            FailureKind::ContextTooLong
            | FailureKind::Auth
            | FailureKind::Quota
            | FailureKind::UnknownModel
            | FailureKind::Absent
            | FailureKind::Filtered
            | FailureKind::Other => false,
        }
    }

    /// The provider asked everybody to slow down, not only this caller.
    #[must_use]
    pub fn is_for_everybody(self) -> bool {
        matches!(self, FailureKind::RateLimited | FailureKind::Overloaded)
    }

    #[must_use]
    pub fn cause(self) -> &'static str {
        match self {
            FailureKind::RateLimited => "rate limit",
            FailureKind::Overloaded => "provider overloaded",
            FailureKind::Server => "provider error",
            FailureKind::Timeout => "no answer in time",
            FailureKind::Cut => "stream cut",
            FailureKind::Malformed => "unreadable answer",
            FailureKind::ContextTooLong => "context too long",
            FailureKind::Auth => "key refused",
            FailureKind::Quota => "quota used up",
            FailureKind::UnknownModel => "unknown model",
            FailureKind::Absent => "nobody there",
            FailureKind::Filtered => "stopped by the content filter",
            FailureKind::Other => "model error",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.cause())?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        // It stands inside a sentence that has an end of its own.
        let message = self.message.strip_suffix('.').filter(|it| !it.ends_with('.'));
        let message = message.unwrap_or(&self.message);
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        Ok(())
    }
}

/// Why an input was not taken. A refused input changes nothing.
#[rustfmt::skip] // One variant, one line: this is the page one reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    NotOpen,
    OtherSession { open: String, given: String },
    /// The channel delivered a message twice; this is the input it became.
    Duplicate { input: InputId },
    Empty,
    TooLarge { bytes: usize, max: usize },
    QueueFull { max: usize },
    InboxFull { agent: AgentId, max: usize },
    UnknownInput { input: InputId },
    UnknownAgent { agent: AgentId },
    /// Neither an agent nor a definition has this name; `near` are those like it, of both kinds.
    Nobody { name: String, near: Vec<String> },
    /// A name that could mean several agents.
    Ambiguous { name: String, could: Vec<String> },
    AgentEnded { agent: AgentId, state: String },
    /// The obligation was met, cancelled or replaced meanwhile.
    Stale { key: Key },
    UnknownAsk { ask: AskId },
    AlreadyAnswered { ask: AskId, verdict: String, by: Who },
    /// What was approved is not what is asked now.
    Changed { ask: AskId },
    /// This verdict does not answer this kind of ask.
    WrongVerdict { ask: AskId, kind: String, verdict: String },
    /// A person's allow cannot lift a deny rule or a ceiling.
    Forbidden { why: String },
    NotOnFloor,
    NotPaused { agent: AgentId, state: String },
    AlreadyOnFloor { agent: AgentId },
    Busy { agent: AgentId, state: String },
    Widens { agent: AgentId },
    /// Nobody can be started here.
    NotBorn { why: String },
    /// What a running tool wonders about is put to nobody.
    Unheard { why: String },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotOpen => f.write_str("the session is not open yet: configure it first"),
            Refusal::OtherSession { open, given } => {
                write!(f, "this is session {open}, not {given}")
            }
            Refusal::Duplicate { input } => write!(f, "already received as {input}"),
            Refusal::Empty => f.write_str("the message is empty"),
            Refusal::TooLarge { bytes, max } => {
                write!(f, "{bytes} bytes are too many, {max} is the most: put long text in a file")
            }
            Refusal::QueueFull { max } => {
                write!(f, "{max} messages are waiting already: let some finish or drop one")
            }
            Refusal::InboxFull { agent, max } => {
                write!(f, "{agent} has {max} unread messages: wait until it reads them")
            }
            Refusal::UnknownInput { input } => {
                write!(f, "{input} is not waiting: it was started, dropped or never existed")
            }
            Refusal::UnknownAgent { agent } => write!(f, "there is no agent {agent}"),
            Refusal::Nobody { name, near } => {
                write!(f, "There is no agent or definition {name:?}.")?;
                if near.is_empty() {
                    return f.write_str(" None has a name like it.");
                }
                write!(f, " Near it: {}.", near.join(", "))
            }
            Refusal::Ambiguous { name, could } => {
                let (many, could) = (could.len(), could.join(", "));
                write!(f, "{name:?} could be {many} agents: {could}.")
            }
            Refusal::AgentEnded { agent, state } => write!(f, "{agent} has ended ({state})"),
            Refusal::Stale { key } => {
                write!(f, "nothing is owed for {key} any more: answered, cancelled or replaced")
            }
            Refusal::UnknownAsk { ask } => write!(f, "there is no ask {ask}"),
            Refusal::AlreadyAnswered { ask, verdict, by } => {
                write!(f, "{ask} was already {verdict} by {by}")
            }
            Refusal::Changed { ask } => {
                write!(f, "{ask} no longer asks for what you saw: look again")
            }
            Refusal::WrongVerdict { ask, kind, verdict } => {
                write!(f, "{ask} is of the kind {kind}: it cannot be {verdict}")
            }
            Refusal::Forbidden { why } => write!(f, "not even with approval: {why}"),
            Refusal::NotOnFloor => f.write_str("only main is on the floor: nobody to go back from"),
            Refusal::NotPaused { agent, state } => {
                write!(f, "{agent} is not paused but {state}: nothing to continue")
            }
            Refusal::AlreadyOnFloor { agent } => write!(f, "{agent} is on the floor already"),
            Refusal::Busy { agent, state } => {
                write!(f, "{agent} is busy ({state}): try when it rests")
            }
            Refusal::NotBorn { why } => f.write_str(why),
            Refusal::Widens { agent } => {
                write!(f, "{agent} has less than that already: rights can only be taken away")
            }
            Refusal::Unheard { why } => write!(f, "not asked: {why}"),
        }
    }
}
