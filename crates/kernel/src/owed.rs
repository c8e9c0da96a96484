//! What the world owes the session, by key, and when the session next wants to be woken. Run
//! what is owed and not running, drop what runs and is no longer owed: that is all of starting,
//! cancelling and recovering.

use alloc::vec::Vec;

use crate::{
    Class, Effect, Errand, InputId, Key, Ours, Owed, Parcel, Phase, Relay, Seq, Session, Thought,
    Time, To, mix, provider_of,
};

/// Everything outstanding, oldest first.
#[must_use]
pub fn owed(session: &Session) -> Vec<Effect> {
    let owed = session.owed.iter().filter_map(|(key, owed)| effect(session, *key, owed));
    let mut effects: Vec<Effect> = owed.collect();
    let known = effects.len();
    let named = session.queue.iter().filter(|waiting| session.wants_summons(waiting));
    effects.extend(named.map(|waiting| Effect::Summon { key: Seq(waiting.input.0) }));
    if effects.len() > known {
        effects.sort_by_key(Effect::key);
    }
    effects
}

fn effect(session: &Session, key: Key, owed: &Owed) -> Option<Effect> {
    Some(match owed {
        Owed::Model(agent) => {
            let at = session.agent(*agent)?;
            let Phase::Thinking(thought) = &at.phase else { return None };
            let not_before = starts_at(session, &at.model, thought);
            Effect::CallModel { key, agent: *agent, purpose: thought.purpose, not_before }
        }
        Owed::Tool(agent, call) => Effect::RunTool { key, agent: *agent, call: *call },
        Owed::Setup(agent) => Effect::Prepare { key, agent: *agent },
        Owed::Delivery(delivery) => Effect::Deliver { key, not_before: delivery.not_before },
        Owed::Relay(relay) => Effect::Relay { key, agent: relay.agent, call: relay.call },
    })
}

/// When a call may start: after its own wait, and after a rate limit of its provider. Those
/// held back are let go one after another, spread by their keys over a fifth of the wait.
pub(crate) fn starts_at(session: &Session, model: &str, thought: &Thought) -> Time {
    let Some(until) = session.rate_limits.get(&provider_of(model)) else {
        return thought.not_before;
    };
    if thought.not_before >= *until {
        return thought.not_before;
    }
    let wait = until.since(thought.not_before);
    until.plus_ms(mix(thought.key.0, 1) % (wait / 5 + 1))
}

/// The moment of the next deadline: send [`crate::Input::Ticked`] then.
#[must_use]
pub fn deadline(session: &Session) -> Option<Time> {
    session.timers.first().map(|(time, _)| *time)
}

/// Whether running the tool of this key again is the same as running it once.
#[must_use]
pub fn is_repeatable(session: &Session, key: Key) -> bool {
    let Some(Owed::Tool(agent, id)) = session.owed.get(&key) else { return false };
    let call = session.agent(*agent).and_then(|agent| agent.call(*id));
    let tool = call.and_then(|call| session.world.tools.get(&call.name));
    tool.is_some_and(|tool| tool.class == Class::Read && tool.idempotent)
}

/// What a `RunTool` of this key is to do. `None` if it is no longer owed.
#[must_use]
pub fn errand(session: &Session, key: Key) -> Option<Errand> {
    let Owed::Tool(agent, id) = session.owed.get(&key)? else { return None };
    let holder = session.agent(*agent)?;
    let name = holder.name.clone();
    let call = holder.call(*id)?;
    let kit = session.definition(holder).map(|definition| &definition.kit);
    let tool = session.world.tools.get(&call.name);
    Some(Errand {
        agent: *agent,
        name,
        call: *id,
        tool: call.name.clone(),
        arguments: (*call.arguments).clone(),
        class: tool.map_or(Class::Exec, |tool| tool.class),
        // Checks of its definition may do whatever the agent may hand on; a program is the agent.
        may: match call.ours {
            Some(Ours::Check | Ours::OnFailure) => session.ceiling(*agent).classes,
            Some(Ours::Program) | None => session.rights(*agent).classes,
        },
        idempotent: tool.is_some_and(|tool| tool.idempotent),
        timeout_ms: tool.and_then(|tool| tool.timeout_ms),
        env: kit.map(|kit| kit.env.clone()).unwrap_or_default(),
        checkpoint: kit.is_some_and(|kit| kit.checkpoint),
        desk: session.desk(*agent),
        ours: call.ours,
        identity: tool.and_then(|tool| tool.identity.clone()),
        span: crate::policy::span::span(session, holder, call),
    })
}

/// What a `Deliver` of this key is to carry. `None` if it is no longer owed.
#[must_use]
pub fn parcel(session: &Session, key: Key) -> Option<Parcel> {
    let Owed::Delivery(delivery) = session.owed.get(&key)? else { return None };
    Some(Parcel {
        to: delivery.to.clone(),
        from: session.path(delivery.agent),
        text: delivery.text.clone(),
        resent: delivery.resent,
    })
}

/// What a `Relay` of this key is to tell. `None` if it is no longer owed.
#[must_use]
pub fn relay(session: &Session, key: Key) -> Option<Relay> {
    let Owed::Relay(relay) = session.owed.get(&key)? else { return None };
    Some((**relay).clone())
}

/// What was said to whom a `Summon` of this key is to bring.
#[must_use]
pub fn summons_words(session: &Session, key: Key) -> Option<&str> {
    let waiting = session.queue.iter().find(|waiting| waiting.input == InputId(key.0))?;
    Some(&waiting.message.text)
}

/// The name a `Summon` of this key is to bring a definition for. `None` if it is no longer owed.
#[must_use]
pub fn summons(session: &Session, key: Key) -> Option<&str> {
    let waiting = session.queue.iter().find(|waiting| waiting.input == InputId(key.0))?;
    if let To::Name(name) = &waiting.message.to { Some(name) } else { None }
}
