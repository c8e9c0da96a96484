//! The state of a session: everything that is true now, folded from its events. Waiting is a
//! value in here, never a suspended stack. Only [`crate::apply`] changes it.

mod agent;
mod line;
mod rounds;
mod session;
mod timings;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use rounds::{Round, Rounds};

use crate::{
    AgentId, AgentLimits, Ask, AskId, Audience, Breach, CallId, Closed, Copied, Definition, Digest,
    Failure, Grant, InputId, Key, Kind, Lines, Made, Message, Mode, ModelSpec, Note, Offer, Ours,
    Output, Pause, PolicyMode, Purpose, Receipt, Relay, Rights, Rule, Seq, Subjects, Tally, Time,
    ToolSpec, TreeLimits,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub(crate) key: String,
    /// The number of the last event.
    pub(crate) seq: Seq,
    pub(crate) now: Time,
    pub(crate) world: World,
    /// In order of birth: an id is an index.
    pub(crate) agents: Vec<Agent>,
    /// Who holds or has lent the floor, main first. Only the last one hears the person.
    pub(crate) stack: Vec<AgentId>,
    pub(crate) queue: VecDeque<Waiting>,
    pub(crate) seen: Seen,
    pub(crate) asks: BTreeMap<AskId, Ask>,
    pub(crate) closed: BTreeMap<AskId, Closed>,
    pub(crate) grants: BTreeMap<Key, Grant>,
    pub(crate) owed: BTreeMap<Key, Owed>,
    pub(crate) timers: BTreeSet<(Time, Timer)>,
    pub(crate) slots: Slots,
    /// Providers that asked everybody to wait, and until when.
    pub(crate) rate_limits: BTreeMap<String, Time>,
    pub(crate) tree: Tree,
    /// Since when nobody drives it.
    #[serde(default)]
    pub(crate) left: Option<Seq>,
    /// Agents that could go on if running calls gave back what is set aside for them.
    pub(crate) held: VecDeque<AgentId>,
}

/// The world as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct World {
    pub(crate) audience: Audience,
    pub(crate) mode: PolicyMode,
    pub(crate) rules: Vec<Rule>,
    pub(crate) limits: TreeLimits,
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) workspace: String,
    pub(crate) models: BTreeMap<String, ModelSpec>,
    pub(crate) tools: BTreeMap<String, ToolSpec>,
    /// Every definition some agent was made from or may be, by content.
    pub(crate) definitions: BTreeMap<Digest, Arc<Definition>>,
    /// What names mean today.
    pub(crate) catalogue: BTreeMap<String, Digest>,
    /// Tools that say another thing of themselves than when this process was told of them.
    #[serde(default)]
    pub(crate) disguised: BTreeSet<String>,
    /// What the edge can bring when it is named.
    #[serde(default)]
    pub(crate) offers: BTreeMap<String, Offer>,
}

/// An input that waits its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) input: InputId,
    pub(crate) message: Message,
    pub(crate) at: Time,
}

/// External ids already admitted, oldest first, forgotten after a month.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) ids: BTreeMap<String, (InputId, Time)>,
    pub(crate) order: VecDeque<(Time, String)>,
}

/// Agents off the floor that are ready but have no slot. Those that had one go first, so that
/// begun work is finished before new work starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slots {
    pub(crate) taken: u32,
    /// Slots that were held when their number was lowered, until they are given back.
    pub(crate) excused: u32,
    pub(crate) returning: VecDeque<AgentId>,
    pub(crate) fresh: VecDeque<AgentId>,
}

/// Something the world owes, by the key of the event that created it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owed {
    Model(AgentId),
    Tool(AgentId, CallId),
    Setup(AgentId),
    Delivery(Delivery),
    Relay(Box<Relay>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) to: String,
    pub(crate) agent: AgentId,
    pub(crate) text: String,
    pub(crate) tries: u32,
    pub(crate) not_before: Time,
    pub(crate) resent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Timer {
    /// The active time of an agent, or of the tree, is used up.
    Limit(Option<AgentId>),
    /// A `wait` ends.
    Wait(AgentId, CallId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    pub tokens: u64,
    pub micro_usd: u64,
}

impl Spend {
    pub(crate) fn add(&mut self, other: Spend) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.micro_usd = self.micro_usd.saturating_add(other.micro_usd);
    }

    pub(crate) fn sub(&mut self, other: Spend) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.micro_usd = self.micro_usd.saturating_sub(other.micro_usd);
    }
}

/// Time that runs only while somebody is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clock {
    pub(crate) ms: u64,
    pub(crate) running_since: Option<Time>,
    /// What had run when the limit was last extended.
    pub(crate) base_ms: u64,
    /// What a grace turn may take beyond the limit; a limit stays reached meanwhile.
    pub(crate) grace_ms: u64,
}

impl Clock {
    pub(crate) fn read(&self, now: Time) -> u64 {
        self.ms.saturating_add(self.running_since.map_or(0, |since| now.since(since)))
    }

    /// From the moment it began to run until its timer.
    pub(crate) fn left_ms(&self, max: u64) -> u64 {
        max.saturating_add(self.base_ms).saturating_add(self.grace_ms).saturating_sub(self.ms)
    }

    pub(crate) fn against_limit(&self, now: Time) -> u64 {
        self.read(now).saturating_sub(self.base_ms)
    }
}

/// What is counted: for one agent with everyone below it, or for the whole tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) spent: Spend,
    /// Replies whose price is not known.
    pub(crate) unpriced: u32,
    /// Set aside for requests that are under way.
    pub(crate) reserved: Spend,
    pub(crate) tokens_base: u64,
    /// Added by top-ups.
    pub(crate) topped_up: u64,
    pub(crate) clock: Clock,
}

/// What the root input has caused so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) spawns: u32,
    pub(crate) active: u32,
    pub(crate) account: Account,
}

/// How an agent's end reaches its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Link {
    /// As the one result of this call.
    Result(CallId),
    /// As a note in the parent's inbox.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub(crate) id: AgentId,
    pub(crate) parent: Option<(AgentId, Link)>,
    pub(crate) depth: u32,
    pub(crate) definition: Digest,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) label: String,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    /// The mode it was made in, to which `/bg` returns it.
    pub(crate) home: Mode,
    pub(crate) phase: Phase,
    /// When the phase began.
    pub(crate) since: Time,
    pub(crate) slot: bool,
    pub(crate) prepared: bool,
    pub(crate) turn: Option<Turn>,
    pub(crate) inbox: VecDeque<(Seq, Note)>,
    pub(crate) transcript: Lines,
    /// How full the context window is, as last reported plus an estimate of what came since.
    pub(crate) context_tokens: u64,
    pub(crate) ceiling: Rights,
    pub(crate) uses: Rights,
    pub(crate) limits: AgentLimits,
    /// Model calls since the allowance was last renewed.
    pub(crate) turns_used: u32,
    /// All it had made when its conversation was last extended.
    #[serde(default)]
    pub(crate) turns_base: u32,
    pub(crate) account: Account,
    /// The limit that makes the turn under way its last.
    pub(crate) last_turn: Option<Breach>,
    /// A context that was too long has been compacted once for this turn.
    pub(crate) squeezed: bool,
    /// How often in a row it handed in what does not match.
    #[serde(default)]
    pub(crate) flaws: u32,
    #[serde(default)]
    pub(crate) trial: Trial,
    /// Tools that were brought for it or for somebody above it.
    #[serde(default)]
    pub(crate) brought: Arc<BTreeSet<String>>,
    #[serde(default)]
    pub(crate) copy: OwnCopy,
    pub(crate) tally: Tally,
    #[serde(default)]
    pub(crate) repeat: Repeat,
    pub(crate) live: BTreeSet<AgentId>,
    pub(crate) after: BTreeSet<AgentId>,
    pub(crate) followers: Vec<AgentId>,
    /// Labels its children have had, and how often.
    pub(crate) labels: BTreeMap<String, u32>,
    /// Where the people of its current exchange must be answered, where a channel is needed.
    pub(crate) reply_to: BTreeSet<String>,
    /// The same while somebody at a face holds it on the floor.
    pub(crate) reply_later: BTreeSet<String>,
    /// Its latest words, for rows and inspection.
    pub(crate) latest: String,
    /// Why its last exchange failed, until somebody speaks to it again.
    pub(crate) fault: Option<Pause>,
    pub(crate) end: Option<Box<End>>,
}

/// An agent's own copy of the repository, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnCopy {
    pub(crate) place: Option<Copied>,
    /// Something ran there that could change it.
    pub(crate) used: bool,
}

/// How an agent's work stood up to the checks of its definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// The last line that was judged.
    pub(crate) judged: Option<Seq>,
    /// Nothing more is to be answered after it.
    pub(crate) over: bool,
    pub(crate) failed: u32,
    /// Why it was given up.
    pub(crate) flaw: Option<String>,
}

/// How often in a row an agent has made one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repeat {
    pub(crate) digest: Option<Digest>,
    pub(crate) times: u32,
    /// Somebody has said that it may go on.
    pub(crate) lifted: bool,
    /// How often in a row it was denied instead.
    #[serde(default)]
    pub(crate) denied: u32,
    #[serde(default)]
    pub(crate) rounds: Rounds,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Ready, but waits for a slot or for the agents it comes after.
    Queued,
    Starting {
        key: Key,
    },
    Thinking(Thought),
    /// Its reply's calls are being worked through.
    Acting,
    /// Nothing to do until it is told something.
    Resting,
    Paused {
        why: Pause,
        ask: Option<AskId>,
    },
    Ended,
}

/// A model call that is owed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thought {
    pub(crate) key: Key,
    pub(crate) purpose: Purpose,
    /// 1 is the first try.
    pub(crate) attempt: u32,
    pub(crate) not_before: Time,
    pub(crate) reserved: Spend,
    /// What went wrong last time.
    pub(crate) failure: Option<Failure>,
}

/// A reply whose calls do not all have their results yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) reason: String,
    pub(crate) calls: Vec<Call>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) arguments: Arc<Value>,
    pub(crate) subjects: Option<Subjects>,
    #[serde(default)]
    pub(crate) made: Option<Made>,
    #[serde(default)]
    pub(crate) ours: Option<Ours>,
    /// A person changed its arguments.
    pub(crate) edited: bool,
    pub(crate) state: CallState,
    /// What it wonders about while it runs, and how often it has.
    #[serde(default)]
    pub(crate) wonders: Vec<AskId>,
    #[serde(default)]
    pub(crate) wondered: u32,
    /// Answers it is still to hear.
    #[serde(default)]
    pub(crate) relays: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallState {
    /// Its turn has not come.
    Pending,
    /// Waits for a verdict or an answer.
    Asked(AskId),
    /// Allowed by a person; will run as soon as there is a slot.
    Approved,
    Running {
        key: Key,
        idempotent: bool,
        since: Time,
    },
    /// A child works on it.
    Child(AgentId),
    Awaiting(WaitFor),
    Returned(Output),
}

/// What a `wait` waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFor {
    pub all: bool,
    pub agents: Vec<AgentId>,
    /// Those that needed their parent already when the wait began: no news.
    #[serde(default)]
    pub known: Vec<AgentId>,
    pub until: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) result: String,
    pub(crate) receipt: Receipt,
    pub(crate) at: Time,
}
