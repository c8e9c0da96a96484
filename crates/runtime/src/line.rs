//! Lines: what a session tells people and programs, one JSON object each. The names are a
//! contract: fields may be added, none may be renamed.

use std::collections::BTreeMap;

use locum_kernel::{
    AskTo, Class, Copied, Denial, Failed, Mode, Need, Outcome, PolicyMode, Scope, State,
    TreeLimits, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub v: u32,
    /// 1, 2, 3 … over the life of a session, without gaps within a run.
    pub seq: u64,
    pub ts: String,
    pub session: String,
    /// Whom it is about; main, if it is about the whole run.
    pub agent: AgentRef,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    pub id: String,
    pub path: String,
    pub label: String,
    pub parent: Option<String>,
    pub mode: Mode,
    pub depth: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum Body {
    #[serde(rename = "run.started")]
    RunStarted(Box<RunStarted>),
    #[serde(rename = "input.queued")]
    InputQueued(InputLine),
    #[serde(rename = "input.started")]
    InputStarted(InputLine),
    #[serde(rename = "input.dropped")]
    InputDropped(InputLine),
    #[serde(rename = "agent.spawned")]
    AgentSpawned { definition: String, mode: Mode, brief: String, parent_call: Option<String> },
    #[serde(rename = "agent.state")]
    AgentState { state: State, prev: Option<State>, cause: &'static str, attention: AttentionLine },
    #[serde(rename = "floor.changed")]
    FloorChanged { stack: Vec<String>, reason: FloorReason },
    #[serde(rename = "turn.started")]
    TurnStarted { turn: u32, model: String },
    /// Without usage: the turn came to nothing.
    #[serde(rename = "turn.finished")]
    TurnFinished { turn: u32, model: String, usage: Option<UsageLine>, cost_usd: Option<f64> },
    /// Part of a message that is still being said. Not durable: it has the number of the line
    /// before it.
    #[serde(rename = "message.delta")]
    MessageDelta { text: String },
    #[serde(rename = "thinking.delta")]
    ThinkingDelta { text: String },
    /// The reader was too slow: deltas are missing here, lines are not.
    #[serde(rename = "gap")]
    Gap { missed: u64 },
    #[serde(rename = "message")]
    Message { role: &'static str, text: String },
    #[serde(rename = "tool.started")]
    ToolStarted { call: String, name: String, input: Value, class: Option<Class> },
    /// What a tool prints while it runs: how much so far, and the newest of it. Not durable.
    #[serde(rename = "tool.output")]
    ToolOutput { call: String, bytes: u64, tail: String },
    #[serde(rename = "tool.finished")]
    ToolFinished(Box<ToolFinished>),
    #[serde(rename = "ask.opened")]
    AskOpened(Box<AskOpened>),
    #[serde(rename = "ask.closed")]
    AskClosed {
        id: String,
        decision: &'static str,
        scope: Option<Scope>,
        by: String,
        message: Option<String>,
    },
    #[serde(rename = "agent.finished")]
    AgentFinished(Box<AgentFinished>),
    #[serde(rename = "retry")]
    Retry { attempt: u32, max: u32, wait_ms: u64, status: Option<u16>, cause: String },
    /// How many agents are in which state, told when somebody begins or ceases to wait or ends.
    #[serde(rename = "attention")]
    Attention { counts: BTreeMap<&'static str, u32>, needs_you: u32 },
    #[serde(rename = "compacted")]
    Compacted { before_tokens: u64, after_tokens: u64 },
    #[serde(rename = "error")]
    Error {
        code: &'static str,
        message: String,
        cause: &'static str,
        remedy: Vec<String>,
        retryable: bool,
    },
    #[serde(rename = "run.result")]
    RunResult(Box<RunResult>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStarted {
    pub model: String,
    pub cwd: String,
    pub mode: PolicyMode,
    pub limits: TreeLimits,
    pub capabilities: Vec<&'static str>,
    pub resumed: bool,
    /// What was told as opened before, and is still open: whoever is here now was not then.
    pub asks: Vec<OpenAsk>,
}

/// An ask of an earlier run, with everything its `ask.opened` said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenAsk {
    pub agent: AgentRef,
    #[serde(flatten)]
    pub ask: AskOpened,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputLine {
    pub input: String,
    pub channel: String,
    pub from: String,
    /// 1 is the next; 0 no longer waits.
    pub position: usize,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttentionLine {
    pub required: bool,
    pub kind: Need,
    pub since: String,
    pub sentence: String,
    pub action: Option<locum_kernel::Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorReason {
    Pushed,
    Complete,
    MaxTurns,
    Error,
    UserBack,
    UserDone,
    Cancelled,
    Foreground,
    Background,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLine {
    #[serde(rename = "in")]
    pub input: u64,
    #[serde(rename = "out")]
    pub output: u64,
    pub cached: u64,
    pub cache_write: u64,
    pub reasoning: u64,
}

impl From<Usage> for UsageLine {
    fn from(usage: Usage) -> UsageLine {
        let Usage { input, output, cached, cache_write, reasoning } = usage;
        UsageLine { input, output, cached, cache_write, reasoning }
    }
}

impl UsageLine {
    pub(crate) fn add(&mut self, usage: Usage) {
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cached = self.cached.saturating_add(usage.cached);
        self.cache_write = self.cache_write.saturating_add(usage.cache_write);
        self.reasoning = self.reasoning.saturating_add(usage.reasoning);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolFinished {
    pub call: String,
    pub name: String,
    pub ok: bool,
    pub output: String,
    /// The whole text is behind the handle.
    pub truncated: bool,
    pub handle: Option<String>,
    pub ms: u64,
    pub exit: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AskOpened {
    /// Why somebody is asked at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    pub id: String,
    /// Whose answer it waits for.
    pub to: AskTo,
    pub kind: &'static str,
    pub summary: String,
    pub input: Option<Value>,
    pub options: Vec<String>,
    pub scopes: Vec<Scope>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentFinished {
    pub outcome: Outcome,
    pub result: String,
    pub is_error: bool,
    pub reason: String,
    pub by: String,
    pub receipt: ReceiptLine,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReceiptLine {
    pub calls: u32,
    pub commands: Vec<CommandLine>,
    pub files: Vec<FileLine>,
    pub children_pending: u32,
    pub usage: UsageLine,
    pub cost_usd: Option<f64>,
    pub turns: u32,
    pub ms: u64,
    /// Where its work is, if it had a copy of the repository and could change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copied>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandLine {
    pub argv: String,
    pub exit: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileLine {
    pub path: String,
    pub sha256: String,
    pub change: String,
}

/// Why a call was denied, and what the model was told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialReason {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Denial>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    pub status: Status,
    pub text: String,
    pub structured: Option<Value>,
    /// Why what was handed in was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
    /// What that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
    pub usage: UsageLine,
    pub cost_usd: Option<f64>,
    pub agents: Vec<AgentResult>,
    pub denials: Vec<String>,
    /// Why each of them was denied, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denial_reasons: Vec<DenialReason>,
    pub children_pending: usize,
    pub exit: u8,
    /// The command with which a run that stopped goes on.
    pub resume: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentResult {
    pub path: String,
    pub state: State,
    pub own_usd: Option<f64>,
    pub tree_usd: Option<f64>,
}

/// How a run ended. More words come with the things that can end it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    /// What was handed in is not what was wanted.
    Failed,
    /// A call was denied, by a person or because nobody was there to allow it.
    Denied,
    /// Somebody asked, and nobody answered.
    NeedsInput,
    /// A limit was reached.
    Limit,
    /// The model failed for good.
    Error,
    /// What is left waits for a person, who may take their time.
    Parked,
    /// Stopped from outside in the middle; it can go on.
    Cancelled,
}

impl Status {
    /// The exit code that says the same.
    #[must_use]
    pub fn exit(self) -> u8 {
        match self {
            Status::Ok => 0,
            Status::Failed => 1,
            Status::Denied => 3,
            Status::NeedsInput => 4,
            Status::Limit => 5,
            Status::Error => 6,
            Status::Parked => 10,
            Status::Cancelled => 130,
        }
    }
}

/// Micro-dollars as dollars. Through text, because text is exact and a cast is not.
pub(crate) fn usd(micro_usd: u64) -> Option<f64> {
    format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000).parse().ok()
}
