//! Folding what happens to one agent: birth, turns, pauses, switches, end.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ledger;
use crate::limits::LATEST_BYTES_MAX;
use crate::{
    Account, Agent, AgentId, Body, Call, CallId, CallState, Compaction, End, Failure, Kind, Limit,
    Line, Lines, Link, Mode, Note, Owed, OwnCopy, Pause, Phase, Purpose, Receipt, Repeat, Reply,
    Retry, Rights, Session, Source, Spawn, Tally, Thought, Trial, Turn, TurnStart, headline,
};

pub(super) fn spawn(session: &mut Session, spawn: &Spawn) {
    let definition = session.world.definitions.get(&spawn.definition);
    let (name, kind) = definition.map_or((String::new(), Kind::Agent), |definition| {
        (definition.name.clone(), definition.kind)
    });
    let parent = spawn.parent.map(|parent| {
        let link = match (spawn.mode, spawn.call) {
            (Mode::Floor | Mode::Call, Some(call)) => Link::Result(call),
            (Mode::Floor | Mode::Call | Mode::Worker, _) => Link::Note,
        };
        (parent, link)
    });
    let depth = spawn.parent.map_or(0, |id| session[id].depth + 1);
    let id = spawn.agent;
    let mut after = BTreeSet::new();
    for other in &spawn.after {
        if let Some(other) = session.agents.get_mut(other.index())
            && !other.has_ended()
        {
            other.followers.push(id);
            after.insert(other.id);
        }
    }
    let reply_to = spawn.parent.map(|id| session[id].reply_to.clone()).unwrap_or_default();
    session.agents.push(Agent {
        id,
        parent,
        depth,
        definition: spawn.definition.clone(),
        name,
        kind,
        label: spawn.label.clone(),
        model: spawn.model.clone(),
        mode: spawn.mode,
        home: spawn.mode,
        // Main is born resting: nobody has asked it anything yet.
        phase: if spawn.parent.is_none() { Phase::Resting } else { Phase::Queued },
        since: session.now,
        slot: false,
        prepared: false,
        turn: None,
        inbox: VecDeque::new(),
        repeat: Repeat::default(),
        transcript: Lines::new(),
        context_tokens: 0,
        ceiling: spawn.ceiling.clone(),
        uses: spawn.uses.clone(),
        limits: spawn.limits.clone(),
        turns_used: 0,
        turns_base: 0,
        account: Account::default(),
        last_turn: None,
        squeezed: false,
        flaws: 0,
        trial: Trial::default(),
        brought: spawn.parent.map(|id| Arc::clone(&session[id].brought)).unwrap_or_default(),
        copy: OwnCopy::default(),
        tally: Tally::default(),
        live: BTreeSet::new(),
        after,
        followers: Vec::new(),
        labels: BTreeMap::new(),
        reply_to,
        reply_later: BTreeSet::new(),
        latest: String::new(),
        fault: None,
        end: None,
    });
    attach(session, spawn, parent.map(|(_, link)| link));
}

/// The parent's side of the link, and the stack.
fn attach(session: &mut Session, spawn: &Spawn, link: Option<Link>) {
    if let Some(id) = spawn.parent {
        // Without a call it is a person who wants them.
        if spawn.call.is_none() {
            begin_exchange(session, id);
        }
        session.tree.spawns = session.tree.spawns.saturating_add(1);
        let parent = &mut session[id];
        parent.live.insert(spawn.agent);
        parent.tally.spawned += 1;
        *parent.labels.entry(spawn.label.clone()).or_default() += 1;
        if let Some(Link::Result(call)) = link {
            set_call(parent, call, CallState::Child(spawn.agent));
            enter(session, id, Phase::Acting);
        }
    }
    if spawn.mode == Mode::Floor {
        // Directly above its parent: somebody the person is talking with stays on top. Without a
        // call it is the person who wants them now.
        let parent = spawn.parent.filter(|_| spawn.call.is_some());
        let above = parent.and_then(|id| session.stack.iter().position(|at| *at == id));
        let place = above.map_or(session.stack.len(), |index| index + 1);
        session.stack.insert(place, spawn.agent);
    }
}

pub(super) fn set_call(agent: &mut Agent, id: CallId, state: CallState) {
    let calls = agent.turn.iter_mut().flat_map(|turn| &mut turn.calls);
    if let Some(call) = calls.into_iter().find(|call| call.id == id) {
        call.state = state;
    }
}

/// The one way a phase changes: whoever leaves the line leaves it here.
pub(super) fn enter(session: &mut Session, id: AgentId, phase: Phase) {
    let now = session.now;
    let agent = &mut session[id];
    let left_line = matches!(agent.phase, Phase::Queued) && !matches!(phase, Phase::Queued);
    agent.phase = phase;
    agent.since = now;
    if left_line {
        leave_line(session, id);
    }
    ledger::settle(session, id);
}

fn leave_line(session: &mut Session, id: AgentId) {
    for line in [&mut session.slots.returning, &mut session.slots.fresh, &mut session.held] {
        if line.front() == Some(&id) {
            line.pop_front();
        } else {
            line.retain(|waiting| *waiting != id);
        }
    }
}

pub(super) fn line_up(session: &mut Session, id: AgentId, returning: bool) {
    enter(session, id, Phase::Queued);
    leave_line(session, id);
    let slots = &mut session.slots;
    if returning { slots.returning.push_back(id) } else { slots.fresh.push_back(id) }
}

pub(super) fn hold(session: &mut Session, id: AgentId) {
    enter(session, id, Phase::Queued);
    leave_line(session, id);
    session.held.push_back(id);
}

pub(super) fn prepare(session: &mut Session, id: AgentId) {
    let key = session.seq;
    session.owed.insert(key, Owed::Setup(id));
    enter(session, id, Phase::Starting { key });
}

pub(super) fn prepared(session: &mut Session, id: AgentId, tools: &[String]) {
    disown(session, id);
    enter(session, id, Phase::Resting);
    session[id].prepared = true;
    equip(session, id, tools);
}

pub(super) fn equip(session: &mut Session, id: AgentId, tools: &[String]) {
    if tools.is_empty() {
        return;
    }
    let agent = &mut session[id];
    Arc::make_mut(&mut agent.brought).extend(tools.iter().cloned());
    for rights in [&mut agent.uses, &mut agent.ceiling] {
        if let Some(named) = &mut rights.tools {
            Arc::make_mut(named).extend(tools.iter().cloned());
        }
    }
}

/// What came of the checks; `Some` is why they failed and whether that is the end of it.
pub(super) fn judge(session: &mut Session, id: AgentId, flaw: Option<(&String, bool)>) {
    let agent = &mut session[id];
    agent.trial.judged = agent.transcript.last().map(|line| line.seq);
    agent.trial.over = flaw.is_none_or(|(_, for_good)| for_good);
    agent.trial.flaw = flaw.filter(|(_, for_good)| *for_good).map(|(why, _)| why.clone());
    agent.trial.failed = flaw.map_or(0, |_| agent.trial.failed.saturating_add(1));
}

/// Whatever model call or setup the agent was owed is owed no more; its reservation is free.
fn disown(session: &mut Session, id: AgentId) {
    let agent = &session[id];
    match &agent.phase {
        Phase::Thinking(thought) => {
            let (key, reserved) = (thought.key, thought.reserved);
            session.owed.remove(&key);
            ledger::release(session, id, reserved);
        }
        Phase::Starting { key } => {
            let key = *key;
            session.owed.remove(&key);
        }
        Phase::Queued | Phase::Acting | Phase::Resting | Phase::Paused { .. } | Phase::Ended => {}
    }
}

pub(super) fn begin_turn(session: &mut Session, start: &TurnStart) {
    let (key, id) = (session.seq, start.agent);
    let agent = &mut session[id];
    let mut notes = Vec::with_capacity(start.reads.len());
    agent.inbox.retain(|(key, note)| {
        let read = start.reads.contains(key);
        if read {
            notes.push(note.clone());
        }
        !read
    });
    // Whoever told it something may have told it to try again.
    if notes.iter().any(|note| !matches!(note.source, Source::Runtime)) {
        agent.repeat = Repeat::default();
    }
    if !notes.is_empty() {
        agent.grow_context(notes.iter().map(Note::tokens).sum());
        agent.transcript.push(Arc::new(Line { seq: key, body: Body::Told(notes) }));
    }
    if start.purpose == Purpose::Answer {
        agent.turns_used += 1;
        agent.tally.turns += 1;
    }
    agent.fault = None;
    if let Some(breach) = &start.grace {
        agent.last_turn = Some(breach.clone());
        if breach.limit == Limit::Time {
            ledger::allow_grace(session, breach);
        }
    }
    let (purpose, reserved, not_before) = (start.purpose, start.reserved, session.now);
    ledger::reserve(session, id, reserved);
    session.owed.insert(key, Owed::Model(id));
    let thought = Thought { key, purpose, attempt: 1, not_before, reserved, failure: None };
    enter(session, id, Phase::Thinking(thought));
}

/// About four bytes make a token; the provider's count replaces this at the next reply.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

pub(super) fn reply(session: &mut Session, id: AgentId, reply: &Reply) {
    let seq = session.seq;
    disown(session, id);
    ledger::charge(session, id, &reply.usage, reply.micro_usd);
    let agent = &mut session[id];
    agent.squeezed = false;
    agent.flaws = if reply.flaw.is_some() { agent.flaws.saturating_add(1) } else { 0 };
    if reply.usage.total() > 0 {
        agent.context_tokens = reply.usage.total();
    } else {
        agent.grow_context(tokens(reply.text.len()));
    }
    if !reply.text.trim().is_empty() {
        agent.latest = headline(&reply.text, LATEST_BYTES_MAX);
    }
    agent.transcript.push(Arc::new(Line { seq, body: Body::Replied(reply.clone()) }));
    if reply.calls.is_empty() {
        enter(session, id, Phase::Resting);
        return;
    }
    let calls = reply.calls.iter().zip(0u16..).map(|(call, index)| Call {
        id: CallId { turn: seq, index },
        name: call.name.clone(),
        arguments: Arc::new(call.arguments.clone()),
        subjects: call.subjects.clone(),
        made: call.made.clone(),
        ours: call.ours,
        edited: false,
        state: CallState::Pending,
        wonders: Vec::new(),
        wondered: 0,
        relays: Vec::new(),
    });
    let reason = headline(&reply.text, LATEST_BYTES_MAX);
    agent.turn = Some(Turn { reason, calls: calls.collect() });
    enter(session, id, Phase::Acting);
}

pub(super) fn retry(session: &mut Session, retry: &Retry) {
    let key = session.seq;
    let agent = &mut session[retry.agent];
    let provider = provider_of(&agent.model);
    let Phase::Thinking(thought) = &mut agent.phase else { return };
    let old = core::mem::replace(&mut thought.key, key);
    thought.attempt = retry.attempt;
    thought.not_before = retry.not_before;
    thought.failure = Some(retry.failure.clone());
    session.owed.remove(&old);
    session.owed.insert(key, Owed::Model(retry.agent));
    if let Some(until) = retry.hold {
        let known = session.rate_limits.entry(provider).or_insert(until);
        *known = (*known).max(until);
    }
}

/// The part of a model's name before the slash: the one whose limits are shared.
pub(crate) fn provider_of(model: &str) -> String {
    String::from(model.split_once('/').map_or(model, |(provider, _)| provider))
}

pub(super) fn fault(session: &mut Session, id: AgentId, failure: &Failure) {
    drop_turn(session, id);
    session[id].fault = Some(Pause::Model(failure.clone()));
}

pub(super) fn overflow(session: &mut Session, id: AgentId) {
    drop_turn(session, id);
    let window = session.model_spec(&session[id].model).window_tokens;
    session[id].context_tokens = session[id].context_tokens.max(window);
}

pub(super) fn drop_turn(session: &mut Session, id: AgentId) {
    disown(session, id);
    enter(session, id, Phase::Resting);
}

pub(super) fn compact(session: &mut Session, it: &Compaction) {
    let seq = session.seq;
    let purpose = session[it.agent].thought().map(|thought| thought.purpose);
    disown(session, it.agent);
    ledger::charge(session, it.agent, &it.usage, it.micro_usd);
    let agent = &mut session[it.agent];
    // What it was told last is kept word for word for as long as it works on it.
    let at_work = agent.transcript.last().is_some_and(|line| line.reply().is_none());
    let mut told = agent.transcript.iter().rev().filter(|line| line.told_bytes() > 0);
    let task = told.next().filter(|_| at_work).cloned();
    let bytes = it.summary.len() + task.as_ref().map_or(0, |line| line.told_bytes());
    let summary = Arc::new(Line { seq, body: Body::Summary(it.summary.clone()) });
    agent.transcript = [summary].into_iter().chain(task).collect();
    agent.context_tokens = tokens(bytes);
    agent.squeezed = purpose == Some(Purpose::Summary { resume: true });
    enter(session, it.agent, Phase::Resting);
}

pub(super) fn pause(session: &mut Session, id: AgentId, why: &Pause) {
    disown(session, id);
    session[id].fault = Some(why.clone());
    enter(session, id, Phase::Paused { why: why.clone(), ask: None });
}

pub(super) fn resume(session: &mut Session, id: AgentId) {
    let agent = &mut session[id];
    let Phase::Paused { why, .. } = &agent.phase else { return };
    let why = why.clone();
    agent.fault = None;
    match why {
        Pause::Limit(breach) => match breach.limit {
            Limit::Turns => {
                agent.turns_used = 0;
                if agent.has_talked_enough() {
                    agent.turns_base = agent.tally.turns;
                }
            }
            Limit::Denials => agent.repeat = Repeat::default(),
            Limit::Tokens | Limit::Time => ledger::renew(session, breach.of),
            Limit::Money => {}
        },
        Pause::Model(_) => {}
    }
    enter(session, id, Phase::Resting);
}

pub(super) fn switch(session: &mut Session, id: AgentId, mode: Mode) {
    let agent = &mut session[id];
    agent.mode = mode;
    // Its pending parent call was answered when it left the floor; the rest comes as a note.
    if mode == Mode::Worker {
        agent.home = Mode::Worker;
        agent.parent = agent.parent.map(|(parent, _)| (parent, Link::Note));
    }
    // Whoever pulled it there sits at a face; those it works for are answered afterwards.
    if mode == Mode::Floor {
        agent.reply_later.append(&mut agent.reply_to);
    } else {
        agent.reply_to.append(&mut agent.reply_later);
    }
    session.stack.retain(|on_stack| *on_stack != id);
    if mode == Mode::Floor {
        session.stack.push(id);
        ledger::give_up_slot(session, id);
        // The floor stands in no line. It may also have nothing to do there: words of its parent
        // wait until the person leaves.
        let agent = &session[id];
        if matches!(agent.phase, Phase::Queued) && agent.turn.is_none() && agent.after.is_empty() {
            enter(session, id, Phase::Resting);
        } else {
            leave_line(session, id);
        }
    }
}

pub(super) fn narrow(session: &mut Session, id: AgentId, ceiling: &Rights) {
    let agent = &mut session[id];
    agent.uses = agent.uses.meet(ceiling);
    agent.ceiling = ceiling.clone();
}

/// A finished agent keeps its result and receipt; its transcript is in the journal.
pub(super) fn end(session: &mut Session, id: AgentId, result: &str, receipt: &Receipt) {
    disown(session, id);
    enter(session, id, Phase::Ended);
    let at = session.now;
    let agent = &mut session[id];
    agent.end = Some(Box::new(End { result: result.into(), receipt: receipt.clone(), at }));
    agent.transcript = Lines::new();
    agent.inbox = VecDeque::new();
    agent.turn = None;
    agent.fault = None;
    let parent = agent.parent.map(|(parent, _)| parent);
    let followers = core::mem::take(&mut agent.followers);
    for follower in followers {
        session[follower].after.remove(&id);
    }
    if let Some(parent) = parent {
        session[parent].live.remove(&id);
    }
    session.stack.retain(|on_stack| *on_stack != id);
    session.grants.retain(|_, grant| grant.root != id);
}

/// A person wants something new of an agent that rests and for which nobody works: whoever it lets
/// work for that is another fan-out than the last.
pub(super) fn begin_exchange(session: &mut Session, id: AgentId) {
    let agent = &session[id];
    if matches!(agent.phase, Phase::Resting) && agent.live.is_empty() {
        session.grants.retain(|_, grant| !(grant.fanout && grant.root == id));
    }
}
