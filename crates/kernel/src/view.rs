//! What people see: the whole session as plain rows, the only types a face knows.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::{
    Agent, AgentId, AskId, AskKind, AskTo, Attention, InputId, Mode, Seq, Session, State, Time,
    attention, state_word, summary,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub session: String,
    pub seq: Seq,
    /// Paths of those who hold or have lent the floor, main first.
    pub stack: Vec<String>,
    pub agents: Vec<Row>,
    pub asks: Vec<Card>,
    pub queue: Vec<Waits>,
    /// How many agents are in each state, by its word.
    pub counts: BTreeMap<String, u32>,
    /// Asks and agents that wait for a person.
    pub needs_you: u32,
    pub slots: SlotsView,
    /// What the current request has cost so far, as far as prices are known.
    pub tree_micro_usd: u64,
    pub tree_tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotsView {
    pub taken: u32,
    pub of: u32,
    pub waiting: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub path: String,
    pub label: String,
    pub definition: String,
    pub mode: Mode,
    pub depth: u32,
    pub state: State,
    pub attention: Attention,
    /// Who may write to it now.
    pub lease: Lease,
    pub position: Option<usize>,
    pub latest: String,
    pub turns: u32,
    pub calls: u32,
    pub own_micro_usd: u64,
    pub tree_micro_usd: u64,
    /// Some price in its own sum is not known, or in its tree's.
    pub unpriced: bool,
    pub tree_unpriced: bool,
    pub active_ms: u64,
    pub result: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lease {
    Person,
    Parent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    pub id: AskId,
    pub agent: AgentId,
    /// `main/builder/tests`: who asks, from the root down.
    pub path: String,
    pub to: AskTo,
    pub kind: AskKind,
    pub summary: String,
    pub at: Time,
    /// Other open asks that want exactly the same for the same parent.
    pub siblings: Vec<AskId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    pub input: InputId,
    pub position: usize,
    pub channel: String,
    pub sender: String,
    pub text: String,
    pub at: Time,
}

/// The session as people see it at a moment.
#[must_use]
pub fn view(session: &Session, now: Time) -> View {
    let line = session.slots.returning.iter().chain(&session.slots.fresh);
    let positions: BTreeMap<AgentId, usize> = line.copied().zip(1..).collect();
    let agents: Vec<Row> = session
        .agents
        .iter()
        .filter_map(|agent| row(session, agent, positions.get(&agent.id).copied(), now))
        .collect();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for row in &agents {
        *counts.entry(row.state.word().into()).or_default() += 1;
    }
    let needs_you = agents.iter().filter(|row| row.attention.kind.is_for_a_person()).count();
    View {
        session: session.key.clone(),
        seq: session.seq,
        stack: session.stack.iter().map(|id| session.path(*id)).collect(),
        agents,
        asks: cards(session),
        queue: queue(session),
        counts,
        needs_you: u32::try_from(needs_you).unwrap_or(u32::MAX),
        slots: SlotsView {
            taken: session.slots.taken,
            of: session.world.limits.slots,
            waiting: session.line_length(),
        },
        tree_micro_usd: session.tree.account.spent.micro_usd,
        tree_tokens: session.tree.account.spent.tokens,
    }
}

fn row(session: &Session, agent: &Agent, position: Option<usize>, now: Time) -> Option<Row> {
    Some(Row {
        id: agent.id,
        parent: agent.parent.map(|(parent, _)| parent),
        path: session.path(agent.id),
        label: agent.label.clone(),
        definition: agent.name.clone(),
        mode: agent.mode,
        depth: agent.depth,
        state: state_word(session, agent),
        attention: attention(session, agent.id, now)?,
        lease: if agent.mode == Mode::Floor { Lease::Person } else { Lease::Parent },
        position,
        latest: agent.latest.clone(),
        turns: agent.tally.turns,
        calls: agent.tally.calls,
        own_micro_usd: agent.tally.micro_usd,
        tree_micro_usd: agent.account.spent.micro_usd,
        unpriced: agent.tally.unpriced > 0,
        tree_unpriced: agent.account.unpriced > 0,
        active_ms: agent.account.clock.read(now),
        result: agent.end.as_ref().map(|end| end.result.clone()),
    })
}

fn cards(session: &Session) -> Vec<Card> {
    let parent_of =
        |id: AgentId| session.agent(id).and_then(|agent| agent.parent).map(|(id, _)| id);
    let mut groups: BTreeMap<(Option<AgentId>, String), Vec<AskId>> = BTreeMap::new();
    let group = |agent: AgentId, kind: &AskKind| match kind {
        AskKind::Approval(it) => Some((parent_of(agent), it.digest.as_str().to_string())),
        AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
    };
    for ask in session.asks.values() {
        if let Some(key) = group(ask.agent, &ask.kind) {
            groups.entry(key).or_default().push(ask.id);
        }
    }
    let siblings = |agent, kind, id| {
        let same = group(agent, kind).and_then(|key| groups.get(&key)).cloned().unwrap_or_default();
        same.into_iter().filter(|other| *other != id).collect()
    };
    session
        .asks
        .values()
        .map(|ask| Card {
            id: ask.id,
            agent: ask.agent,
            path: session.path(ask.agent),
            to: ask.to,
            kind: ask.kind.clone(),
            summary: summary(&ask.kind),
            at: ask.at,
            siblings: siblings(ask.agent, &ask.kind, ask.id),
        })
        .collect()
}

fn queue(session: &Session) -> Vec<Waits> {
    session
        .queue
        .iter()
        .zip(1..)
        .map(|(waiting, position)| Waits {
            input: waiting.input,
            position,
            channel: waiting.message.channel.clone(),
            sender: waiting.message.sender.clone(),
            text: waiting.message.words(),
            at: waiting.at,
        })
        .collect()
}
