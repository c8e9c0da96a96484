//! Folding what running calls wonder about: a question beside the call, then an answer that is
//! owed to it, for as long as it runs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{Agent, Ask, AskId, Call, CallId, Key, Owed, Relay, Session, Verdict};

fn find(agent: &mut Agent, id: CallId) -> Option<&mut Call> {
    agent.turn.iter_mut().flat_map(|turn| &mut turn.calls).find(|call| call.id == id)
}

pub(super) fn ask(session: &mut Session, agent: crate::AgentId, call: CallId, id: AskId) {
    if let Some(call) = find(&mut session[agent], call) {
        call.wonders.push(id);
        call.wondered = call.wondered.saturating_add(1);
    }
}

/// The question is closed; the call that put it hears how, if it still runs.
pub(super) fn settle(session: &mut Session, ask: &Ask, wonder: u64, verdict: &Verdict) {
    let key = session.seq;
    let (agent, Some(id)) = (ask.agent, ask.call) else { return };
    let Some(call) = find(&mut session[agent], id) else { return };
    call.wonders.retain(|open| *open != ask.id);
    if call.is_running() {
        call.relays.push(key);
        let relay = Relay { agent, call: id, wonder, verdict: verdict.clone() };
        session.owed.insert(key, Owed::Relay(Box::new(relay)));
    }
}

pub(super) fn relayed(session: &mut Session, key: Key) {
    let Some(Owed::Relay(relay)) = session.owed.get(&key) else { return };
    let (agent, call) = (relay.agent, relay.call);
    session.owed.remove(&key);
    if let Some(call) = find(&mut session[agent], call) {
        call.relays.retain(|owed| *owed != key);
    }
}

/// A call has its result: nobody is left to hear anything.
pub(super) fn returned(session: &mut Session, agent: crate::AgentId, call: CallId) {
    let Some(call) = find(&mut session[agent], call) else { return };
    for key in core::mem::take(&mut call.relays) {
        session.owed.remove(&key);
    }
}

/// The process that wondered is gone, and the names of its questions with it.
pub(super) fn forget(session: &mut Session) {
    let owed = session.owed.iter();
    let relays = owed.filter(|(_, owed)| matches!(owed, Owed::Relay(_))).map(|(key, _)| *key);
    for key in relays.collect::<Vec<_>>() {
        relayed(session, key);
    }
}
