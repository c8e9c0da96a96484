//! One session's loop: take what is ready, decide, write it down, do what is owed.
//!
//! There is no code for recovery: opening a session folds its journal, and what is owed then is
//! done then. There is none for cancelling: what is no longer owed is dropped.
//!
//! **Durable and fast.** A decision is written in the background. Until it is safe nothing of it
//! leaves: no line is told, no post acknowledged, no tool that changes anything started. What is
//! harmless to lose and do again (a model call, a read) starts at once, so that a loop of reads
//! runs at the speed of an unsynced one. If a write fails, the session here knows more than the
//! journal and must not go on; whoever opens it again finds it as it was.
//!
//! In reading order: this loop, `reconcile` (what is owed against what runs), `open` (the fold,
//! from a snapshot if there is one), `snapshot` (when one is kept).

mod open;
mod reconcile;
mod snapshot;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use locum_journal::{Journal, When};
use locum_kernel::{
    AgentId, Ask, AskTo, Effect, Entry, Event, Grant, Input, Ready, Refusal, Seq, Session, Time,
    Unfoldable, VERSION, View, deadline, owed, step, view,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::events::Teller;
use crate::inflight::Inflight;
use crate::library::{self, Library};
use crate::line::Line;
use crate::live::{Feed, Reader};
use crate::provider::Provider;
use crate::subjects;
use crate::tool::Toolbox;
use snapshot::Snapshots;

pub use open::{look, retell, take_alone, taken_before};
pub(crate) use reconcile::OUR_FAULT;

/// What a session needs around it.
#[derive(Clone, Debug)]
pub struct World {
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
}

/// Who does what is owed.
#[derive(Clone, Debug)]
pub struct Hands {
    pub provider: Arc<dyn Provider>,
    pub tools: Arc<dyn Toolbox>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the journal failed")]
    Journal(#[from] locum_journal::Error),
    #[error("session {session} cannot be read: {why}")]
    Unfoldable { session: String, why: Unfoldable },
    #[error("session {session} did not take it: {why}")]
    Refused { session: String, why: Refusal },
    /// What had happened by then is written down, on room that was kept back for it.
    #[error("the disk is full: nothing more is begun in session {session}")]
    Full { session: String },
}

/// When a run is over, if nobody stops it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing is owed and no deadline is left: nobody is there to be waited for.
    Rest,
    /// The same, or only people can help: they may do so when the process is gone.
    Parked,
    /// The same as at rest, and no person is waited for.
    Answered,
}

/// Something from outside.
#[derive(Debug)]
enum Post {
    /// Told the number of its first event once it is safe, or why it was not taken.
    Take(Box<Input>, oneshot::Sender<Answer>),
    /// The session as it is now.
    Look(oneshot::Sender<View>),
}

/// A way to reach a session that is being driven.
#[derive(Clone, Debug)]
pub struct Handle(mpsc::Sender<Post>);

/// Why a post has no answer: the session is no longer driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has just been closed")]
pub struct Closed;

impl Handle {
    /// Returns once it is safe, with the number of its first event, or with why it was refused.
    pub async fn post(&self, input: Input) -> Result<Answer, Closed> {
        let (ack, answer) = oneshot::channel();
        self.0.send(Post::Take(Box::new(input), ack)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }

    pub async fn view(&self) -> Result<View, Closed> {
        let (told, answer) = oneshot::channel();
        self.0.send(Post::Look(told)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}

/// A decision that is on its way to the disk.
#[derive(Debug)]
struct Unsafe {
    last: Seq,
    lines: Vec<Line>,
    /// What it allowed for longer than once.
    grants: Vec<Grant>,
    /// What posts are told when it is.
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
}

/// The number of a post's first event, or why it was refused.
type Answer = Result<Seq, Refusal>;

type Synced = Result<(), locum_journal::Error>;

/// Says how a write went when it is let go, also if the writer died without a word: nobody must
/// wait for that for ever.
struct Word {
    sync: mpsc::UnboundedSender<Synced>,
    session: String,
    given: Option<Synced>,
}

impl Word {
    fn give(mut self, synced: Synced) {
        self.given = Some(synced);
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        let died = || {
            let (path, session) = ("(journal)".into(), mem::take(&mut self.session));
            Err(locum_journal::Error::Stopped { path, session })
        };
        // A driver that is gone has nobody to tell.
        let _ = self.sync.send(self.given.take().unwrap_or_else(died));
    }
}

#[derive(Debug)]
pub struct Driver {
    world: World,
    key: String,
    session: Session,
    /// Who brings definitions, if any can be brought.
    library: Option<Arc<dyn Library>>,
    teller: Teller,
    /// Who has ended since the tools were last told.
    ended: Vec<AgentId>,
    inflight: Inflight,
    feed: Feed,
    /// The first event of this process. Until it is safe the journal does not know that anybody
    /// has come, and would let the next who opens it begin the same things.
    came: Seq,
    /// The last event that is safe.
    safe: Seq,
    unsafe_yet: VecDeque<Unsafe>,
    posts: mpsc::Receiver<Post>,
    handle: Handle,
    syncs: mpsc::UnboundedReceiver<Synced>,
    sync: mpsc::UnboundedSender<Synced>,
    /// What is brought again for those who lived before this process.
    revived: JoinSet<()>,
    snapshots: Snapshots,
    /// Who keeps what is allowed for the project.
    keeper: Option<mpsc::UnboundedSender<Grant>>,
}

/// Decisions that may be under way to the disk at once. A loop of reads is let run this far ahead
/// of the disk and no further.
const UNSAFE_MAX: usize = 1_024;

/// Posts that may wait to be taken; who comes later waits at the door.
const POSTS_MAX: usize = 64;

impl Driver {
    /// Nothing has ever happened in it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.session.seq().0 == 0
    }

    #[must_use]
    pub fn teller(&self) -> &Teller {
        &self.teller
    }

    /// Who brings the definitions that calls and people name.
    pub fn set_library(&mut self, library: Arc<dyn Library>) {
        self.library = Some(library);
    }

    /// What `run.started` says of the folder.
    pub fn set_cwd(&mut self, cwd: String) {
        self.teller.set_cwd(cwd);
    }

    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    #[must_use]
    pub fn subscribe(&self) -> Reader {
        let mut reader = self.feed.subscribe();
        reader.caught_up(self.teller.told());
        reader
    }

    /// What is allowed from here on for longer than once, each told when it is safe. Whoever keeps
    /// it for later also looks at what the session was granted before: this process may be the
    /// second, and the first may have died between the grant and its keeping.
    pub fn grants(&mut self) -> mpsc::UnboundedReceiver<Grant> {
        let (keeper, grants) = mpsc::unbounded_channel();
        self.keeper = Some(keeper);
        grants
    }

    /// Decides at once. What is refused changes nothing; what is only too late is no error.
    pub fn take(&mut self, input: Input) -> Result<(), Error> {
        match self.decide(input, When::Soon) {
            Ok(_) | Err(Refusal::Stale { .. }) => Ok(()),
            Err(why) => Err(Error::Refused { session: self.key.clone(), why }),
        }
    }

    /// Whether all of these would be taken, one after another. Nothing is.
    pub fn foresee(&self, inputs: &[Input]) -> Result<(), Error> {
        let refused = |why| Error::Refused { session: self.key.clone(), why };
        let (mut session, at) = (self.session.clone(), self.world.clock.now());
        for input in inputs.iter().cloned() {
            let input = library::addressed(self.library.as_deref(), &session, at, input);
            match input.and_then(|input| step(&mut session, at, input)) {
                Ok(_) | Err(Refusal::Stale { .. }) => {}
                Err(why) => return Err(refused(why)),
            }
        }
        Ok(())
    }

    /// Goes on until it is over; then says how it ended. Everything told is safe by then.
    pub async fn run(&mut self, hands: &Hands, until: Until) -> Result<Line, Error> {
        self.revive(hands);
        loop {
            if self.world.journal.is_low() {
                return Err(self.wind_up().await);
            }
            self.look_for_news()?;
            let wake = self.reconcile(hands);
            if self.is_over(until) {
                self.end_snapshots().await;
                let parked = until == Until::Parked;
                let now = self.world.clock.now();
                return Ok(self.close(self.teller.result(&self.session, now, parked)));
            }
            self.wait(wake).await?;
            self.take_what_is_ready()?;
        }
    }

    /// What was prepared for agents that still live is not there in a new process.
    fn revive(&mut self, hands: &Hands) {
        let live = self.session.agents().iter().filter(|agent| agent.is_prepared());
        for id in live.map(locum_kernel::Agent::id) {
            if let Some(kit) = self.session.kit(id).filter(|kit| !kit.servers.is_empty()) {
                let (again, handle) = (hands.tools.prepare(id, kit.clone()), self.handle());
                self.revived.spawn(async move {
                    // Who needs one waits for it, and says what is wrong if it does not come.
                    let Ok(Ready { tools, .. }) = again.await else { return };
                    let beside = tools.iter().map(|tool| tool.name.clone()).collect();
                    // A session that was closed needs no tools.
                    let _closed = handle
                        .post(Input::Retooled { tools, gone: Vec::new(), beside, to: Some(id) })
                        .await;
                });
            }
        }
    }

    /// What can be brought is known before a model is asked what to do.
    fn look_for_news(&mut self) -> Result<(), Error> {
        let library = self.library.as_ref();
        match library.and_then(|library| library.news(self.world.clock.now())) {
            Some(offers) => self.take(Input::Offered { offers }),
            None => Ok(()),
        }
    }

    /// Stops whatever is under way and waits until every decision is safe. What was stopped is
    /// owed again when the session is opened again. `exit` is what the process will end with.
    pub async fn stop(&mut self, exit: u8) -> Result<Line, Error> {
        self.drain().await?;
        self.end_snapshots().await;
        Ok(self.close(self.teller.stopped(&self.session, self.world.clock.now(), exit)))
    }

    async fn drain(&mut self) -> Result<(), Error> {
        self.inflight.stop().await;
        while !self.unsafe_yet.is_empty() {
            let synced = self.syncs.recv().await;
            self.synced(synced.unwrap_or(Ok(())))?;
        }
        Ok(())
    }

    /// Lets the session go. Once this returns whoever listens has heard the end: a task that was
    /// only told to stop would keep the feed open for as long as nobody lets it run.
    pub async fn release(mut self) {
        self.inflight.stop().await;
    }

    fn close(&self, last: Line) -> Line {
        self.feed.lines(vec![last.clone()], self.safe);
        last
    }

    fn is_over(&self, until: Until) -> bool {
        if !self.unsafe_yet.is_empty() || !owed(&self.session).is_empty() {
            return false;
        }
        let asks = |ask: &Ask| ask.to == AskTo::Person;
        let waits_for_people = self.session.asks().any(asks) || self.session.stack().len() > 1;
        let rests = deadline(&self.session).is_none();
        match until {
            Until::Rest => rests,
            Until::Parked => rests || waits_for_people,
            Until::Answered => rests && !waits_for_people,
        }
    }

    /// Until something happens: a write is safe, a task ends, somebody posts, a moment comes.
    async fn wait(&mut self, wake: Option<Time>) -> Result<(), Error> {
        let clock = Arc::clone(&self.world.clock);
        let alarm = async move {
            match wake {
                Some(moment) => clock.sleep_until(moment).await,
                None => std::future::pending().await,
            }
        };
        let full = self.unsafe_yet.len() >= UNSAFE_MAX;
        tokio::select! {
            biased;
            Some(synced) = self.syncs.recv() => self.synced(synced),
            input = self.inflight.next(), if !full => self.take(input),
            Some(post) = self.posts.recv(), if !full => {
                self.posted(post);
                Ok(())
            }
            () = alarm, if !full => Ok(()),
        }
    }

    /// Whatever else came meanwhile is decided before anything is started, and shares the sync.
    fn take_what_is_ready(&mut self) -> Result<(), Error> {
        while let Ok(synced) = self.syncs.try_recv() {
            self.synced(synced)?;
        }
        while self.unsafe_yet.len() < UNSAFE_MAX {
            if let Some(input) = self.inflight.try_next() {
                self.take(input)?;
            } else if let Ok(post) = self.posts.try_recv() {
                self.posted(post);
            } else {
                break;
            }
        }
        let due = deadline(&self.session);
        if due.is_some_and(|due| due <= self.world.clock.now()) {
            self.take(Input::Ticked)?;
        }
        Ok(())
    }

    fn posted(&mut self, post: Post) {
        let (input, ack) = match post {
            Post::Take(input, ack) => (*input, ack),
            // Whoever asked may have gone.
            Post::Look(told) => {
                return drop(told.send(view(&self.session, self.world.clock.now())));
            }
        };
        let decided = self.decide(input, When::Now);
        let answer = decided.map(|first| first.unwrap_or(self.session.seq()));
        match self.unsafe_yet.back_mut() {
            // A refusal, too, is told when what it rests on is safe: "received already" and
            // "answered already" are promises.
            Some(decision) => decision.answers.push((ack, answer)),
            None => drop(ack.send(answer)),
        }
    }

    /// One decision: judged, and on its way to the disk under the number returned. None: nothing
    /// has changed. `when` is how much whoever brought it is in a hurry.
    fn decide(&mut self, mut input: Input, when: When) -> Result<Option<Seq>, Refusal> {
        let at = self.world.clock.now();
        subjects::fill(&self.session, &mut input);
        let input = library::addressed(self.library.as_deref(), &self.session, at, input)?;
        let before = self.session.seq();
        let events = step(&mut self.session, at, input)?;
        debug_assert_eq!(self.session.check(), Ok(()), "after {events:?}");
        if events.is_empty() {
            return Ok(None);
        }
        let first = Seq(before.0 + 1);
        let mut grants = Vec::new();
        for event in &events {
            if let Event::Ended { agent, .. } = event {
                self.ended.push(*agent);
            }
            if let Event::Granted { grant } = event {
                grants.push(grant.clone());
            }
        }
        let entry = Entry { v: VERSION, seq: first, at, events };
        let lines = self.teller.tell(&self.session, &entry);
        let last = self.session.seq();
        let when = if self.is_waited_for(first) { When::Now } else { when };
        self.unsafe_yet.push_back(Unsafe { last, lines, grants, answers: Vec::new() });
        let word = Word { sync: self.sync.clone(), session: self.key.clone(), given: None };
        let done = Box::new(move |result| word.give(result));
        self.world.journal.submit_then(&self.key, before, &entry, when, done);
        self.snapshots.grown();
        Ok(Some(first))
    }

    /// Somebody waits for a decision if it lets something start that is not harmless, or if
    /// nothing is under way any more: then whoever looks on waits.
    fn is_waited_for(&self, first: Seq) -> bool {
        let effects = owed(&self.session);
        let waits =
            |effect: &Effect| self.explained_by(effect) >= first && !self.is_harmless(effect);
        effects.is_empty() || effects.iter().any(waits)
    }

    /// The oldest decision on its way is safe: now it may be told.
    fn synced(&mut self, synced: Synced) -> Result<(), Error> {
        synced?;
        let Some(decision) = self.unsafe_yet.pop_front() else { return Ok(()) };
        self.safe = decision.last;
        self.feed.lines(decision.lines, decision.last);
        if let Some(keeper) = &self.keeper {
            // Whoever keeps them may have gone.
            decision.grants.into_iter().for_each(|grant| drop(keeper.send(grant)));
        }
        for (ack, answer) in decision.answers {
            // Whoever asked may have gone.
            let _ = ack.send(answer);
        }
        self.begin_snapshot();
        Ok(())
    }
}
