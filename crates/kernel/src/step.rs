//! The only judgement: one input in, the facts it makes out. Handlers check first and emit
//! afterwards, so that a refused input has changed nothing; then the session is settled: ready
//! agents go on, free slots are given out, the queue is served. Nothing here waits.

mod ask;
mod beside;
mod call;
mod child;
mod command;
mod delegate;
mod fault;
mod hear;
mod limit;
mod load;
mod manage;
mod ours;
mod request;
mod summon;
mod turn;
mod wonder;
mod world;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    Agent, AgentId, AskId, AskKind, AskTo, Breach, CallId, Event, Input, Key, Owed, Phase, Refusal,
    Seq, Session, Thought, Time, apply, summary,
};

pub use delegate::{Wanted, spawn_limit, wanted};
pub use manage::NOBODY_TO_ASK;
pub(crate) use ours::PROGRAM;
pub(crate) use world::is_internal;

/// Decides what an input means. On success the session has already folded the returned events,
/// which together are one journal entry; no events means that nothing new was learned.
pub fn step(session: &mut Session, at: Time, input: Input) -> Result<Vec<Event>, Refusal> {
    let mut step = Step { session, at, events: Vec::new(), ready: VecDeque::new() };
    step.take(input)?;
    step.settle();
    Ok(step.events)
}

/// One decision under way.
struct Step<'s> {
    session: &'s mut Session,
    at: Time,
    events: Vec<Event>,
    /// Agents that may be able to go on.
    ready: VecDeque<AgentId>,
}

impl Step<'_> {
    fn take(&mut self, input: Input) -> Result<(), Refusal> {
        if self.session.agents.is_empty() && !matches!(input, Input::Configured(_)) {
            return Err(Refusal::NotOpen);
        }
        match input {
            Input::Configured(config) => self.configured(&config),
            Input::Restarted { config, captured } => self.restarted(&config, &captured),
            Input::Left => {
                self.left();
                Ok(())
            }
            Input::Offered { offers } => {
                self.offered(offers);
                Ok(())
            }
            Input::Said(message) => self.said(message),
            Input::Edited { input, text } => self.edited(input, text),
            Input::Dropped { input, by } => self.dropped(input, by),
            Input::Moved { input, before } => self.moved(input, before),
            Input::Answered { ask, verdict, by, digest } => {
                self.answered(ask, verdict, &by, digest.as_ref())
            }
            Input::Commanded { by, command } => self.commanded(by, command),
            Input::Replied { key, reply } => self.replied(key, reply),
            Input::Failed { key, failure } => self.failed(key, failure),
            Input::Ran { key, output } => self.ran(key, output),
            Input::Wondered { key, wonder } => self.wondered(key, wonder),
            Input::Relayed { key } => self.relayed(key),
            Input::Retooled { tools, gone, beside, to } => {
                self.retooled(tools, gone, &beside, to);
                Ok(())
            }
            Input::Prepared { key, error, ready } => self.prepared(key, error, ready),
            Input::Delivered { key, error } => self.delivered(key, error),
            Input::Summoned { key, found } => self.summoned(key, found),
            Input::Ticked => {
                // No deadline passes while nobody is there.
                if self.session.left.is_none() {
                    self.ticked();
                }
                Ok(())
            }
        }
    }

    /// Records a fact and folds it. Returns its number.
    fn emit(&mut self, event: Event) -> Seq {
        apply(self.session, self.at, &event);
        self.events.push(event);
        self.session.seq
    }

    /// An agent's words for the person: said to every face, and carried to the channels of the
    /// people it speaks with.
    fn speak(&mut self, id: AgentId, text: &str) {
        self.emit(Event::Spoke { agent: id, text: text.into() });
        self.post(id, text, None);
    }

    fn post(&mut self, id: AgentId, text: &str, ask: Option<AskId>) {
        let to = self.session[id].reply_to.clone();
        for to in to {
            self.emit(Event::Posted { agent: id, to, text: text.into(), ask });
        }
    }

    /// Opens an ask. A person who is on a channel gets it there too.
    fn open_ask(&mut self, agent: AgentId, call: Option<CallId>, to: AskTo, kind: AskKind) {
        let words = ask_words(&kind);
        let (kind, wonder) = (Box::new(kind), None);
        let id = AskId(self.emit(Event::Asked { agent, call, to, kind, wonder }).0);
        if to == AskTo::Person {
            self.post(agent, &words, Some(id));
        }
    }

    /// Runs until nobody can go on without the world. Each round either turns an agent's
    /// readiness into an obligation, a wait or an end, or takes one input from the queue.
    fn settle(&mut self) {
        loop {
            if let Some(id) = self.ready.pop_front() {
                self.advance(id);
            } else if !self.release() && !self.admit() && !self.serve_queue() {
                return;
            }
        }
    }

    /// Lets an agent go on from wherever it stands.
    fn advance(&mut self, id: AgentId) {
        let agent = &self.session[id];
        match agent.phase {
            Phase::Acting => self.work(id),
            Phase::Queued if agent.turn.is_some() => self.work(id),
            Phase::Queued | Phase::Resting if agent.has_reason_to_think() => self.begin_turn(id),
            Phase::Resting => self.rest(id),
            Phase::Queued
            | Phase::Starting { .. }
            | Phase::Thinking(_)
            | Phase::Paused { .. }
            | Phase::Ended => {}
        }
    }

    /// Gives a free slot to the next in line. False if there is none to give or nobody to take.
    fn admit(&mut self) -> bool {
        if !self.session.has_free_slot() {
            return false;
        }
        let Some(id) = self.session.admissible().next() else { return false };
        self.advance(id);
        // Whatever it did, it left its place in line; otherwise this would never end.
        self.session.admissible().next() != Some(id)
    }

    /// Lets the first of those go on for whom enough has been given back. Whoever shares an
    /// account with somebody before it that still lacks something waits behind them.
    fn release(&mut self) -> bool {
        let mut short: Vec<Breach> = Vec::new();
        for id in self.session.held.iter().copied() {
            if short.iter().any(|breach| self.session.binds(breach, id)) {
                continue;
            }
            let Some(shortage) = self.shortage(id).filter(|short| short.waits) else {
                self.advance(id);
                return !self.session.held.contains(&id);
            };
            short.push(shortage.breach);
        }
        false
    }

    /// Whose model call this key is.
    fn thinker(&self, key: Key) -> Result<(&Agent, &Thought), Refusal> {
        let Some(Owed::Model(id)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        let agent = self.agent(*id)?;
        Ok((agent, agent.thought().ok_or(Refusal::Stale { key })?))
    }

    fn agent(&self, id: AgentId) -> Result<&Agent, Refusal> {
        self.session.agent(id).ok_or(Refusal::UnknownAgent { agent: id })
    }

    fn live_agent(&self, id: AgentId) -> Result<&Agent, Refusal> {
        let agent = self.agent(id)?;
        match agent.outcome() {
            None => Ok(agent),
            Some(outcome) => Err(Refusal::AgentEnded { agent: id, state: outcome.word().into() }),
        }
    }
}

/// An ask in words that make sense on a telephone.
fn ask_words(kind: &AskKind) -> String {
    let what = summary(kind);
    match kind {
        AskKind::Approval(it) => {
            format!("needs approval ({}): {what}\n{}", it.because, it.reason)
        }
        AskKind::Question { .. } => format!("asks: {what}"),
        AskKind::Continue { .. } | AskKind::Budget { .. } => format!("stopped. {what}"),
    }
}
