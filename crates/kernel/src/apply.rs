//! Folding one fact into the state: the only mutation there is. Total, without judgement, the
//! same live and on replay; whatever refers to something that is not there does nothing.

mod agent;
mod call;
mod ledger;
mod wonder;
mod world;

pub(crate) use agent::{provider_of, tokens};
pub use call::summary;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;

use crate::limits::{ASKS_CLOSED_MAX, DEDUPE_MS};
use crate::{
    AgentId, AskId, Closed, Delivery, Entry, Event, InputId, Key, Message, Note, Owed, Phase, Seq,
    Session, Source, Spawn, Time, VERSION, Waiting, Who,
};

/// Folds a whole entry. An entry that does not follow the state, or whose words are newer than
/// this code, is refused and changes nothing.
pub fn fold(session: &mut Session, entry: &Entry) -> Result<(), Unfoldable> {
    if entry.v > VERSION {
        return Err(Unfoldable::Newer { version: entry.v });
    }
    if entry.seq != next(session) {
        return Err(Unfoldable::OutOfOrder { expected: next(session), found: entry.seq });
    }
    for event in &entry.events {
        apply(session, entry.at, event);
    }
    Ok(())
}

/// The number the next event will have.
fn next(session: &Session) -> Seq {
    Seq(session.seq.0 + 1)
}

/// Why an entry cannot be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfoldable {
    Newer { version: u32 },
    OutOfOrder { expected: Seq, found: Seq },
}

impl core::error::Error for Unfoldable {}

impl core::fmt::Display for Unfoldable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unfoldable::Newer { version } => {
                write!(f, "the journal speaks version {version}, this locum only {VERSION}")
            }
            Unfoldable::OutOfOrder { expected, found } => {
                write!(f, "the journal goes on at {found} where {expected} was expected")
            }
        }
    }
}

/// Folds one event, which takes the next number.
pub fn apply(session: &mut Session, at: Time, event: &Event) {
    pass_time(session, at, event);
    if is_about_nobody(session, event) {
        return;
    }
    match event {
        Event::Opened { session: key } => session.key.clone_from(key),
        Event::Configured { changes } => world::configure(session, changes),
        Event::Restarted => restart(session),
        Event::Left => session.left = Some(session.seq),
        Event::Enqueued { message } => enqueue(session, message),
        Event::Merged { input, message } => merge(session, *input, message),
        Event::Edited { input, text } => edit(session, *input, text),
        Event::Moved { input, before } => shift(session, *input, *before),
        Event::Dropped { input, .. } => session.queue.retain(|waiting| waiting.input != *input),
        Event::Heard { agent, note } => hear(session, *agent, note),
        Event::Spawned(spawn) => agent::spawn(session, spawn),
        Event::Lined { agent, returning } => agent::line_up(session, *agent, *returning),
        Event::Held { agent } => agent::hold(session, *agent),
        Event::Preparing { agent } => agent::prepare(session, *agent),
        Event::Prepared { agent, tools, copy } => {
            agent::prepared(session, *agent, tools);
            session[*agent].copy.place.clone_from(copy);
        }
        Event::Equipped { agent, tools } => agent::equip(session, *agent, tools),
        Event::Proved { agent } => agent::judge(session, *agent, None),
        Event::Disproved { agent, why, for_good } => {
            agent::judge(session, *agent, Some((why, *for_good)));
        }
        Event::TurnBegan(turn) => agent::begin_turn(session, turn),
        Event::Replied { agent, reply } => agent::reply(session, *agent, reply),
        Event::Retrying(retry) => agent::retry(session, retry),
        Event::Faulted { agent, failure } => agent::fault(session, *agent, failure),
        Event::Overflowed { agent } => agent::overflow(session, *agent),
        Event::TurnDropped { agent, .. } => agent::drop_turn(session, *agent),
        Event::Compacted(compaction) => agent::compact(session, compaction),
        Event::Asked { .. } => call::asked(session, at, event),
        Event::Settled { ask, verdict, by, input } => {
            if let Some(heard) = input.and_then(|input| take(session, input)) {
                call::answered_from(session, *ask, heard);
            }
            call::settle(session, *ask, verdict);
            close(session, *ask, verdict.word(), by);
        }
        Event::Granted { grant } => {
            session.grants.insert(grant.id, grant.clone());
        }
        Event::Revoked { grant, .. } => drop(session.grants.remove(grant)),
        Event::Started { agent, call, idempotent } => {
            call::start(session, *agent, *call, *idempotent);
        }
        Event::Awaited { agent, call, wait } => call::wait(session, *agent, *call, wait),
        Event::Returned { agent, call, output, reads } => {
            call::give_back(session, *agent, *call, output, reads);
        }
        // Faces read it from the journal; channels get a parcel of their own.
        Event::Spoke { .. } => {}
        Event::Posted { agent, to, text, ask } => post(session, *agent, to, text, *ask),
        Event::Delivered { key, error } => deliver(session, *key, error.is_some()),
        Event::Relayed { key } => wonder::relayed(session, *key),
        Event::Paused { agent, why } => agent::pause(session, *agent, why),
        Event::Continued { agent, .. } => agent::resume(session, *agent),
        Event::ToppedUp { agent, micro_usd } => ledger::top_up(session, *agent, *micro_usd),
        Event::Switched { agent, mode } => agent::switch(session, *agent, *mode),
        Event::Narrowed { agent, ceiling } => agent::narrow(session, *agent, ceiling),
        Event::Ended { agent, result, receipt } => agent::end(session, *agent, result, receipt),
    }
}

/// Every event has a number and a moment; while nobody drives the session no clock runs.
fn pass_time(session: &mut Session, at: Time, event: &Event) {
    session.seq = next(session);
    let passed_ms = at.since(session.now);
    session.now = at;
    if session.left.is_some() || matches!(event, Event::Left | Event::Restarted) {
        ledger::stand_still(session, passed_ms);
    }
}

/// A fact about somebody who never was changes nothing: no journal can make this panic.
fn is_about_nobody(session: &Session, event: &Event) -> bool {
    let unborn = |it: &Spawn| it.agent.index() != session.agents.len();
    let unknown = event.agent().is_some_and(|id| session.agent(id).is_none());
    unknown || matches!(event, Event::Spawned(spawn) if unborn(spawn))
}

/// A delivery that was under way when the process died may have arrived. Who wondered is gone.
fn restart(session: &mut Session) {
    wonder::forget(session);
    let left = session.left.take();
    session.world.disguised.clear();
    for (key, owed) in &mut session.owed {
        if let Owed::Delivery(delivery) = owed {
            delivery.resent |= left.is_none_or(|left| *key < left);
        }
    }
}

fn enqueue(session: &mut Session, message: &Message) {
    let input = InputId(session.seq.0);
    remember(session, message, input);
    let at = session.now;
    session.queue.push_back(Waiting { input, message: message.clone(), at });
}

fn merge(session: &mut Session, input: InputId, message: &Message) {
    remember(session, message, input);
    let now = session.now;
    if let Some(waiting) = find(&mut session.queue, input) {
        waiting.message.text.push('\n');
        waiting.message.text.push_str(&message.text);
        waiting.message.pictures.extend_from_slice(&message.pictures);
        waiting.at = now;
    }
}

/// What a channel's message id is remembered under.
pub(crate) fn dedupe_key(message: &Message) -> Option<alloc::string::String> {
    message.external_id.as_ref().map(|id| alloc::format!("{}\u{0}{id}", message.channel))
}

fn remember(session: &mut Session, message: &Message, input: InputId) {
    let now = session.now;
    while let Some((at, _)) = session.seen.order.front()
        && now.since(*at) > DEDUPE_MS
    {
        if let Some((_, id)) = session.seen.order.pop_front() {
            session.seen.ids.remove(&id);
        }
    }
    if let Some(id) = dedupe_key(message) {
        session.seen.order.push_back((now, id.clone()));
        session.seen.ids.insert(id, (input, now));
    }
}

fn edit(session: &mut Session, input: InputId, text: &str) {
    if let Some(waiting) = find(&mut session.queue, input) {
        waiting.message.text = text.into();
    }
}

fn shift(session: &mut Session, input: InputId, before: Option<InputId>) {
    let Some(from) = session.queue.iter().position(|waiting| waiting.input == input) else {
        return;
    };
    let Some(waiting) = session.queue.remove(from) else { return };
    let to = before
        .and_then(|before| session.queue.iter().position(|waiting| waiting.input == before))
        .unwrap_or(session.queue.len());
    session.queue.insert(to, waiting);
}

fn find(queue: &mut VecDeque<Waiting>, input: InputId) -> Option<&mut Waiting> {
    queue.iter_mut().find(|waiting| waiting.input == input)
}

/// An input leaves the queue because somebody heard it.
fn take(session: &mut Session, input: InputId) -> Option<Waiting> {
    let place = session.queue.iter().position(|waiting| waiting.input == input)?;
    session.queue.remove(place)
}

/// Who must be answered: the people of the exchange that begins with this note, or one more of
/// those of the exchange under way.
fn expect_answer(session: &mut Session, id: AgentId, note: &Note, heard: Option<Waiting>) {
    let from: BTreeSet<String> = match &note.source {
        Source::Child(child) => {
            session.agent(*child).map(|child| child.reply_to.clone()).unwrap_or_default()
        }
        Source::Person { .. } => {
            let heard = heard.and_then(|heard| heard.message.reply_to);
            heard.into_iter().chain(note.reply_to.iter().cloned()).collect()
        }
        Source::Brief | Source::Parent | Source::Runtime => return,
    };
    let agent = &mut session[id];
    if matches!(agent.phase, Phase::Resting) && !agent.has_reason_to_think() {
        agent.reply_to.clear();
    }
    agent.reply_to.extend(from);
}

fn hear(session: &mut Session, id: AgentId, note: &Note) {
    let seq = session.seq;
    let heard = note.input.and_then(|input| take(session, input));
    expect_answer(session, id, note, heard);
    let person = note.is_from_person();
    if person {
        agent::begin_exchange(session, id);
    }
    let agent = &mut session[id];
    agent.inbox.push_back((seq, note.clone()));
    if person {
        agent.fault = None;
        if agent.mode == crate::definition::Mode::Floor {
            agent.turns_used = 0;
        }
        if agent.is_main() && matches!(agent.phase, Phase::Resting) {
            ledger::new_root(session);
        }
    }
}

fn close(session: &mut Session, ask: AskId, verdict: &str, by: &Who) {
    let at = session.now;
    session.closed.insert(ask, Closed { verdict: verdict.into(), by: by.clone(), at });
    while session.closed.len() > ASKS_CLOSED_MAX {
        session.closed.pop_first();
    }
}

/// Tries of one delivery, and the wait between them.
pub(crate) const DELIVERY_TRIES_MAX: u32 = 3;
const DELIVERY_WAIT_MS: u64 = 5_000;

fn deliver(session: &mut Session, key: Key, failed: bool) {
    let now = session.now;
    let Some(Owed::Delivery(delivery)) = session.owed.get_mut(&key) else { return };
    delivery.tries += 1;
    if failed && delivery.tries < DELIVERY_TRIES_MAX {
        delivery.not_before = now.plus_ms(DELIVERY_WAIT_MS * u64::from(delivery.tries));
    } else {
        session.owed.remove(&key);
    }
}

fn post(session: &mut Session, agent: AgentId, to: &str, text: &str, ask: Option<AskId>) {
    let key = session.seq;
    let (to, text, not_before) = (to.into(), text.into(), session.now);
    let delivery = Delivery { to, agent, text, tries: 0, not_before, resent: false };
    session.owed.insert(key, Owed::Delivery(delivery));
    if let Some(ask) = ask.and_then(|id| session.asks.get_mut(&id)) {
        ask.posted.push(key);
    }
}
