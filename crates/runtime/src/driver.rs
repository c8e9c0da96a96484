//! One session's loop: take what is ready, decide, write it down, do what is owed. Nothing is
//! told before the entry that explains it is safe.
//!
//! There is no code for recovery: opening a session folds its journal, and what is owed then is
//! done then. For now one effect is done at a time, on this thread; the loop stays the same when
//! they run beside each other.

use std::collections::VecDeque;

use locum_journal::Journal;
use locum_kernel::{
    AgentId, Effect, Entry, Failure, FailureKind, Input, Key, Output, Refusal, Seq, Session, Time,
    Unfoldable, VERSION, deadline, errand, fold, owed, parcel, prompt, step,
};

use crate::clock::Clock;
use crate::events::Teller;
use crate::line::Line;
use crate::provider::{Asked, Provider};

/// What a session needs around it.
#[derive(Debug)]
pub struct World<'w> {
    pub journal: &'w dyn Journal,
    pub clock: &'w dyn Clock,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the journal failed")]
    Journal(#[from] locum_journal::Error),
    #[error("session {session} cannot be read: {why}")]
    Unfoldable { session: String, why: Unfoldable },
    #[error("session {session} did not take it: {why}")]
    Refused { session: String, why: Refusal },
}

#[derive(Debug)]
pub struct Driver<'w> {
    world: World<'w>,
    key: String,
    session: Session,
    teller: Teller,
    ready: VecDeque<Input>,
}

impl<'w> Driver<'w> {
    /// Opens a session as its journal left it, or a new one. `cwd` is what `run.started` says.
    pub fn open(key: &str, cwd: String, world: World<'w>) -> Result<Driver<'w>, Error> {
        let mut session = Session::new();
        let mut teller = Teller::new(cwd);
        for entry in world.journal.load(key)? {
            fold(&mut session, &entry)
                .map_err(|why| Error::Unfoldable { session: key.to_owned(), why })?;
            // These lines were told when they happened; only their numbers count.
            teller.tell(&session, &entry);
        }
        let key = key.to_owned();
        Ok(Driver { world, key, session, teller, ready: VecDeque::new() })
    }

    /// Nothing has ever happened in it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.session.seq().0 == 0
    }

    #[must_use]
    pub fn teller(&self) -> &Teller {
        &self.teller
    }

    pub fn post(&mut self, input: Input) {
        self.ready.push_back(input);
    }

    /// Goes on until nothing is owed and no deadline is left; then says how it ended.
    pub fn run(
        &mut self,
        provider: &dyn Provider,
        tell: &mut dyn FnMut(&Line),
    ) -> Result<Line, Error> {
        loop {
            while let Some(input) = self.ready.pop_front() {
                self.decide(input, tell)?;
            }
            match self.next() {
                Next::Wait(moment) => self.world.clock.sleep_until(moment),
                Next::Tick => self.ready.push_back(Input::Ticked),
                Next::Perform(effect) => {
                    let input = self.perform(provider, &effect);
                    self.ready.push_back(input);
                }
                Next::Rest => {
                    return Ok(self.teller.result(&self.session, self.world.clock.now()));
                }
            }
        }
    }

    /// One decision: judged, written, and only then told.
    fn decide(&mut self, input: Input, tell: &mut dyn FnMut(&Line)) -> Result<(), Error> {
        let at = self.world.clock.now();
        let before = self.session.seq();
        let events = match step(&mut self.session, at, input) {
            Ok(events) => events,
            // Answered, cancelled or replaced while it was under way: nobody waits for it.
            Err(Refusal::Stale { .. }) => return Ok(()),
            Err(why) => return Err(Error::Refused { session: self.key.clone(), why }),
        };
        debug_assert_eq!(self.session.check(), Ok(()), "after {events:?}");
        if events.is_empty() {
            return Ok(());
        }
        let seq = Seq(before.0 + 1);
        let entry = Entry { v: VERSION, seq, at, events };
        // If this fails the session here knows more than the journal: it must not go on, and
        // whoever opens it again finds it as it was before.
        self.world.journal.append(&self.key, before, &entry)?;
        self.teller.tell(&self.session, &entry).iter().for_each(tell);
        Ok(())
    }

    /// What to do next: the effect that may start first, unless a deadline comes before it.
    fn next(&self) -> Next {
        let now = self.world.clock.now();
        let due = deadline(&self.session);
        if due.is_some_and(|due| due <= now) {
            return Next::Tick;
        }
        let effects = owed(&self.session).into_iter();
        let first = effects.min_by_key(|effect| (not_before(effect), effect.key()));
        match (first, due) {
            (Some(effect), _) if not_before(&effect) <= now => Next::Perform(effect),
            (Some(effect), Some(due)) => Next::Wait(due.min(not_before(&effect))),
            (Some(effect), None) => Next::Wait(not_before(&effect)),
            (None, Some(due)) => Next::Wait(due),
            (None, None) => Next::Rest,
        }
    }

    fn perform(&self, provider: &dyn Provider, effect: &Effect) -> Input {
        match *effect {
            Effect::CallModel { key, agent, .. } => self.call_model(provider, key, agent),
            Effect::RunTool { key, .. } => {
                let tool = errand(&self.session, key).map(|errand| errand.tool).unwrap_or_default();
                Input::Ran { key, output: Output::error(format!("Tool not found: {tool}")) }
            }
            Effect::Prepare { key, .. } => Input::Prepared { key, error: None },
            Effect::Deliver { key, .. } => {
                let to = parcel(&self.session, key).map(|parcel| parcel.to).unwrap_or_default();
                Input::Delivered { key, error: Some(format!("there is no channel to {to}")) }
            }
        }
    }

    fn call_model(&self, provider: &dyn Provider, key: Key, agent: AgentId) -> Input {
        let now = self.world.clock.now();
        let found = self.teller.progress(agent).zip(prompt(&self.session, agent, now));
        let Some((progress, request)) = found else {
            return Input::Failed { key, failure: nobody(agent) };
        };
        let asked = Asked {
            definition: progress.definition,
            label: progress.label,
            replies: progress.replies,
            failures: progress.failures,
            request: &request,
        };
        match provider.answer(&asked) {
            Ok(reply) => Input::Replied { key, reply },
            Err(failure) => Input::Failed { key, failure },
        }
    }
}

/// The kernel owes nothing to agents it does not have; if it ever did, the session must still not
/// wedge.
fn nobody(agent: AgentId) -> Failure {
    let (kind, message) = (FailureKind::Other, format!("there is no agent {agent}"));
    Failure { kind, status: None, retry_after_ms: None, message }
}

enum Next {
    Perform(Effect),
    Wait(Time),
    Tick,
    Rest,
}

fn not_before(effect: &Effect) -> Time {
    match effect {
        Effect::CallModel { not_before, .. } | Effect::Deliver { not_before, .. } => *not_before,
        Effect::RunTool { .. } | Effect::Prepare { .. } => Time(0),
    }
}
