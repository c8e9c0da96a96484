//! The state of a session: everything that is true now, folded from its events. Waiting is a
//! value in here, never a suspended stack. Only [`crate::apply`] changes it.

mod agent;
mod line;
mod rounds;
mod timings;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use rounds::{Round, Rounds};

use crate::{
    AgentId, AgentLimits, Ask, AskId, Audience, Breach, CallId, Closed, Copied, Definition, Digest,
    Failure, Grant, InputId, Key, Kind, Kit, Lines, Made, Message, Mode, ModelSpec, Note, Offer,
    Ours, Output, Pause, PolicyMode, Purpose, Receipt, Relay, Rights, Rule, Seq, Sub, Subjects,
    Tally, Time, ToolSpec, TreeLimits,
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

impl Session {
    /// A session before its first event.
    #[must_use]
    pub fn new() -> Session {
        Session::default()
    }

    /// The number of the last event; the next entry begins after it.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The moment of the last event.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How calls are judged, as it was last told.
    #[must_use]
    pub fn mode(&self) -> PolicyMode {
        self.world.mode
    }

    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.world.rules
    }

    /// A tool of the edge, as it was last declared.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.world.tools.get(name)
    }

    #[must_use]
    pub fn limits(&self) -> &TreeLimits {
        &self.world.limits
    }

    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.world.workspace
    }

    #[must_use]
    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(id.index())
    }

    /// Everybody, in order of birth.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Who holds or has lent the floor, main first.
    #[must_use]
    pub fn stack(&self) -> &[AgentId] {
        &self.stack
    }

    /// What was allowed for longer than once and still holds, oldest first.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// The open asks, oldest first.
    pub fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.values()
    }

    /// The inputs that wait, first in line first.
    pub fn waiting(&self) -> impl Iterator<Item = InputId> {
        self.queue.iter().map(|waiting| waiting.input)
    }

    /// Who hears the person.
    pub(crate) fn top(&self) -> AgentId {
        self.stack.last().copied().unwrap_or(AgentId::MAIN)
    }

    /// `main/builder/tests`: labels from the root down.
    #[must_use]
    pub fn path(&self, id: AgentId) -> String {
        let mut labels = Vec::new();
        let mut at = Some(id);
        while let Some(agent) = at.and_then(|id| self.agent(id)) {
            labels.push(agent.label.as_str());
            at = agent.parent.map(|(parent, _)| parent);
        }
        labels.reverse();
        labels.join("/")
    }

    /// True if `id` is `root` or below it.
    #[must_use]
    pub fn is_within(&self, id: AgentId, root: AgentId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == root {
                return true;
            }
            at = self.agent(id).and_then(|agent| agent.parent.map(|(parent, _)| parent));
        }
        false
    }

    /// Whether a limit holds for an agent too: it is the tree's, its own, or of somebody above.
    pub(crate) fn binds(&self, breach: &Breach, id: AgentId) -> bool {
        breach.of.is_none_or(|of| self.is_within(id, of))
    }

    /// The live agents of a subtree, each before its children.
    pub(crate) fn live_subtree(&self, root: AgentId) -> Vec<AgentId> {
        let mut found = Vec::new();
        let mut todo = Vec::from([root]);
        while let Some(id) = todo.pop() {
            if let Some(agent) = self.agent(id).filter(|agent| !agent.has_ended()) {
                found.push(id);
                todo.extend(agent.live.iter().copied());
            }
        }
        found
    }

    /// What an agent may do itself, under everybody's ceilings. Looked at anew each time, so that
    /// what was taken from somebody above is gone at once.
    pub(crate) fn rights(&self, agent: AgentId) -> Rights {
        let own = self.agent(agent).map(|agent| agent.uses.clone()).unwrap_or_default();
        own.meet(&self.ceiling(agent))
    }

    /// The most an agent may do or hand on, under everybody's ceilings.
    pub(crate) fn ceiling(&self, agent: AgentId) -> Rights {
        let mut at = self.agent(agent);
        let mut rights = Rights::all();
        while let Some(holder) = at {
            rights = rights.meet(&holder.ceiling);
            at = holder.parent.and_then(|(parent, _)| self.agent(parent));
        }
        rights
    }

    /// Whose copy of the repository an agent works in: its own, or that of the nearest above.
    pub(crate) fn desk(&self, agent: AgentId) -> Option<AgentId> {
        let mut at = self.agent(agent);
        while let Some(holder) = at {
            if self.definition(holder).is_some_and(|it| it.kit.worktree) {
                return Some(holder.id);
            }
            at = holder.parent.and_then(|(parent, _)| self.agent(parent));
        }
        None
    }

    /// What is brought for an agent before its first turn.
    #[must_use]
    pub fn kit(&self, agent: AgentId) -> Option<&Kit> {
        Some(&self.definition(self.agent(agent)?)?.kit)
    }

    /// The definitions that only this agent may use.
    #[must_use]
    pub fn subs(&self, agent: AgentId) -> &[Sub] {
        let definition = self.agent(agent).and_then(|agent| self.definition(agent));
        definition.map(|it| it.subs.as_slice()).unwrap_or_default()
    }

    /// What an agent's final words must be, if that is said.
    #[must_use]
    pub fn form(&self, agent: AgentId) -> Option<&Value> {
        self.definition(self.agent(agent)?)?.output.as_deref()
    }

    pub(crate) fn definition(&self, agent: &Agent) -> Option<&Definition> {
        self.world.definitions.get(&agent.definition).map(Arc::as_ref)
    }

    pub(crate) fn model_spec(&self, model: &str) -> ModelSpec {
        self.world.models.get(model).cloned().unwrap_or_default()
    }
}

/// For ids that come out of the state itself; whoever has one from outside asks [`Session::agent`].
impl Index<AgentId> for Session {
    type Output = Agent;

    fn index(&self, id: AgentId) -> &Agent {
        &self.agents[id.index()]
    }
}

impl IndexMut<AgentId> for Session {
    fn index_mut(&mut self, id: AgentId) -> &mut Agent {
        &mut self.agents[id.index()]
    }
}
