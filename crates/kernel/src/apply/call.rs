//! Folding what happens to one call: asked, started, awaited, returned.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::agent::{enter, set_call};
use super::{ledger, wonder};
use crate::limits::REPEATS_MAX;
use crate::{
    Agent, AgentId, Allow, Ask, AskId, AskKind, Body, CallId, CallState, Digest, Event, Line,
    Output, Owed, Phase, Repeat, Scope, Seq, Session, Time, Timer, Tool, ToolSpec, Verdict,
    WaitFor, Waiting,
};

pub(super) fn asked(session: &mut Session, at: Time, event: &Event) {
    let Event::Asked { agent, call, to, kind, wonder } = event else { return };
    let id = AskId(session.seq.0);
    let (agent, call, to, kind) = (*agent, *call, *to, (**kind).clone());
    let (posted, wonder) = (Vec::new(), *wonder);
    ask(session, Ask { id, agent, call, to, kind, at, posted, wonder });
}

fn ask(session: &mut Session, ask: Ask) {
    let (id, agent, call) = (ask.id, ask.agent, ask.call);
    let wonders = ask.wonder.is_some();
    session.asks.insert(id, ask);
    if let (Some(call), true) = (call, wonders) {
        wonder::ask(session, agent, call, id);
    } else if let Some(call) = call {
        set_call(&mut session[agent], call, CallState::Asked(id));
        enter(session, agent, Phase::Acting);
    } else if let Phase::Paused { ask, .. } = &mut session[agent].phase {
        *ask = Some(id);
    }
}

/// An ask in one line, for a channel or a list.
#[must_use]
pub fn summary(kind: &AskKind) -> alloc::string::String {
    match kind {
        AskKind::Approval(it) => alloc::format!("{} {}", it.tool, it.arguments),
        AskKind::Question { question, options } if options.is_empty() => question.clone(),
        AskKind::Question { question, options } => {
            alloc::format!("{question} ({})", options.join(", "))
        }
        AskKind::Continue { why } => alloc::format!("{why}: continue?"),
        AskKind::Budget { why, .. } => alloc::format!("{why}: add money?"),
    }
}

/// Whoever answered by message is one of those the agent now speaks with.
pub(super) fn answered_from(session: &mut Session, ask: AskId, heard: Waiting) {
    if let Some(agent) = session.asks.get(&ask).map(|ask| ask.agent) {
        session[agent].reply_to.extend(heard.message.reply_to);
    }
}

pub(super) fn settle(session: &mut Session, id: AskId, verdict: &Verdict) {
    let Some(ask) = session.asks.remove(&id) else { return };
    for parcel in &ask.posted {
        session.owed.remove(parcel);
    }
    if let Some(name) = ask.wonder {
        return wonder::settle(session, &ask, name, verdict);
    }
    let agent = &mut session[ask.agent];
    if let Phase::Paused { ask: open, .. } = &mut agent.phase
        && *open == Some(id)
    {
        *open = None;
    }
    let Some(call) = ask.call else { return };
    match verdict {
        Verdict::Allow(Allow { arguments, subjects, scope, .. }) => {
            go_on_repeating(agent, call, *scope);
            set_call(agent, call, CallState::Approved);
            let calls = agent.turn.iter_mut().flat_map(|turn| &mut turn.calls);
            if let (Some(edited), Some(call)) =
                (arguments, calls.into_iter().find(|at| at.id == call))
            {
                call.arguments = Arc::new(edited.clone());
                call.subjects.clone_from(subjects);
                call.made = None;
                call.edited = true;
            }
        }
        Verdict::Deny { .. }
        | Verdict::Answer { .. }
        | Verdict::Continue { .. }
        | Verdict::TopUp { .. }
        | Verdict::Withdrawn { .. } => set_call(agent, call, CallState::Pending),
    }
}

/// Whoever allows a call again has seen that it repeats: the count begins anew, and a wider allow
/// lets it go on for longer.
fn go_on_repeating(agent: &mut Agent, call: CallId, scope: Scope) {
    let Some(call) = agent.call(call) else { return };
    let same = agent.repeat.digest == Some(Digest::of_call(&call.name, &call.arguments));
    if same {
        let lifted = scope != Scope::Once && agent.repeat.times + 1 >= REPEATS_MAX;
        agent.repeat.lifted |= lifted;
        agent.repeat.times = 0;
    }
    agent.repeat.rounds.go_on(scope);
}

/// Counts how often in a row this call was made.
fn repeat(agent: &mut Agent, call: CallId) {
    let Some(call) = agent.call(call).filter(|call| call.ours.is_none()) else { return };
    let digest = Some(Digest::of_call(&call.name, &call.arguments));
    if agent.repeat.digest == digest {
        agent.repeat.times = agent.repeat.times.saturating_add(1);
    } else {
        let rounds = mem::take(&mut agent.repeat.rounds);
        agent.repeat = Repeat { digest, times: 1, rounds, ..Repeat::default() };
    }
    agent.repeat.denied = 0;
}

/// Notes what came of a call. True: something else than from the very same call just before.
fn came_back(agent: &mut Agent, call: CallId, output: &Output) -> bool {
    let Some(call) = agent.call(call).filter(|call| call.ours.is_none()) else { return false };
    let digest = Digest::of_call(&call.name, &call.arguments);
    agent.repeat.rounds.came_back(&digest, output)
}

/// Counts how often in a row this call was denied: to be told no is no reason to stop counting.
fn denied_again(agent: &mut Agent, call: CallId) {
    let Some(call) = agent.call(call) else { return };
    let digest = Some(Digest::of_call(&call.name, &call.arguments));
    if agent.repeat.digest != digest {
        let rounds = mem::take(&mut agent.repeat.rounds);
        agent.repeat = Repeat { digest, rounds, ..Repeat::default() };
    }
    agent.repeat.denied = agent.repeat.denied.saturating_add(1);
}

pub(super) fn start(session: &mut Session, id: AgentId, call: CallId, idempotent: bool) {
    let key = session.seq;
    let since = session.now;
    let agent = &mut session[id];
    set_call(agent, call, CallState::Running { key, idempotent, since });
    agent.tally.calls += 1;
    repeat(agent, call);
    if let Some(desk) = session.desk(id).filter(|_| !idempotent) {
        session[desk].copy.used = true;
    }
    session.owed.insert(key, Owed::Tool(id, call));
    enter(session, id, Phase::Acting);
}

pub(super) fn wait(session: &mut Session, id: AgentId, call: CallId, wait: &WaitFor) {
    let agent = &mut session[id];
    set_call(agent, call, CallState::Awaiting(wait.clone()));
    session.timers.insert((wait.until, Timer::Wait(id, call)));
    enter(session, id, Phase::Acting);
}

pub(super) fn give_back(
    session: &mut Session,
    id: AgentId,
    call: CallId,
    output: &Output,
    reads: &[Seq],
) {
    let seq = session.seq;
    let state = session[id].call(call).map(|call| call.state.clone());
    if let Some(CallState::Running { key, .. }) = state {
        session.owed.remove(&key);
    }
    if let Some(CallState::Awaiting(wait)) = state {
        session.timers.remove(&(wait.until, Timer::Wait(id, call)));
    }
    wonder::returned(session, id, call);
    if let Some(spent) = &output.spent {
        ledger::charge(session, id, &spent.usage, spent.micro_usd);
    }
    let name = session[id].call(call).map(|call| call.name.as_str());
    let tool = name.and_then(|name| session.world.tools.get(name));
    let is_harmless = tool.is_some_and(ToolSpec::is_harmless);
    let agent = &mut session[id];
    if output.denied {
        denied_again(agent, call);
    // To delegate or to wait is to do something else in between.
    } else if agent.call(call).is_some_and(|call| Tool::named(&call.name).is_some()) {
        agent.repeat = Repeat::default();
    } else {
        let moved = came_back(agent, call, output);
        // To look until something is different is how agents wait.
        if moved && is_harmless {
            agent.repeat.times = agent.repeat.times.min(1);
        }
    }
    agent.tally.denied += u32::from(output.denied);
    agent.tally.count(&output.deeds);
    agent.inbox.retain(|(key, _)| !reads.contains(key));
    agent.grow_context(output.tokens());
    set_call(agent, call, CallState::Returned(output.clone()));
    if agent.open_call().is_none() && agent.turn.is_some() {
        let calls = agent.turn.take().map(|turn| turn.calls).unwrap_or_default();
        let results = calls.into_iter().filter_map(|call| {
            let CallState::Returned(output) = call.state else { return None };
            Some((call.id, output))
        });
        let results = results.collect();
        agent.transcript.push(Arc::new(Line { seq, body: Body::Results(results) }));
        enter(session, id, Phase::Resting);
    } else {
        ledger::settle(session, id);
    }
}
