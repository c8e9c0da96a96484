//! One configured server over its whole life: started when somebody needs it, started again
//! when it dies, later each time, and never the reason that somebody waits without end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::auth::{Login, LoginOptions};
use crate::connection::{Connection, Era, Failure};
use crate::error::Error;
use crate::event::{Asks, Event, State};
use crate::limits;
use crate::parts::Parts;
use crate::spec::{ServerSpec, Settings};
use crate::stale::Stale;
use crate::tool::{Known, Listing};

pub(crate) struct Server {
    parts: Arc<Parts>,
    inner: Mutex<Inner>,
    /// Counts changes of the phase.
    changes: watch::Sender<u64>,
}

struct Inner {
    phase: Phase,
    /// Failed starts and early ends since the last good time.
    attempt: u32,
    era: Era,
    listing: Option<Arc<Listing>>,
    challenge: Option<String>,
    starting: JoinSet<()>,
}

enum Phase {
    Idle,
    Starting,
    Ready { connection: Arc<Connection>, since: Instant },
    Backoff { until: Instant, why: String },
    Broken(Error),
}

/// What a server is reached with never changes, so it is read like its own.
impl std::ops::Deref for Server {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Server {
    pub(crate) fn new(spec: ServerSpec, settings: Arc<Settings>, asks: Arc<Asks>) -> Server {
        let inner = Inner {
            phase: Phase::Idle,
            attempt: 0,
            era: Era::Unknown,
            listing: None,
            challenge: None,
            starting: JoinSet::new(),
        };
        let parts = Arc::new(Parts::new(spec, settings, asks));
        Server { parts, inner: Mutex::new(inner), changes: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        let inner = self.lock();
        match &inner.phase {
            Phase::Idle => State::Idle,
            Phase::Starting => State::Starting,
            Phase::Ready { .. } => State::Ready,
            Phase::Backoff { until, why } => State::Backoff {
                wait: until.saturating_duration_since(Instant::now()),
                attempt: inner.attempt,
                why: why.clone(),
            },
            Phase::Broken(Error::Login { .. }) => State::Login,
            Phase::Broken(error) => State::Broken { why: error.to_string() },
        }
    }

    /// The phase has changed: whoever waits looks again.
    fn announce(&self) {
        let state = self.state();
        self.asks.queue.push(Event::State { server: self.spec.name.clone(), state });
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.lock().listing.clone()
    }

    /// What it had in an earlier life, until it says what it has now.
    pub(crate) fn remember(&self, known: Known) {
        let mut inner = self.lock();
        if inner.listing.is_none() {
            inner.listing = Some(Arc::new(Listing::remembered(known)));
        }
    }

    /// A live connection, now or as soon as there is one. Gives up at once where waiting could
    /// be long.
    pub(crate) async fn connection(self: &Arc<Server>) -> Result<Arc<Connection>, Error> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            let again = match self.look() {
                Look::Found(connection) => return Ok(connection),
                Look::Failed(error) => return Err(error),
                Look::Later(again) => again,
            };
            match again {
                Some(until) => sleep_until(until).await,
                // The sender lives as long as we do.
                None => drop(changes.changed().await),
            }
        }
    }

    /// The same, but the first start that fails is the answer. Another is made later, for whoever
    /// still wants it then: it may have been bad luck.
    pub(crate) async fn first_try(self: &Arc<Server>) -> Result<Arc<Connection>, Error> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            match self.look() {
                Look::Found(connection) => return Ok(connection),
                Look::Failed(error) => return Err(error),
                Look::Later(None) => drop(changes.changed().await),
                Look::Later(Some(until)) => {
                    let mut inner = self.lock();
                    let Phase::Backoff { why, .. } = &inner.phase else { continue };
                    let (server, why) = (self.spec.name.clone(), why.clone());
                    let wait = until.saturating_duration_since(Instant::now());
                    inner.starting.spawn(again(Arc::downgrade(self), until));
                    return Err(Error::Backoff { server, wait, why });
                }
            }
        }
    }

    /// The live connection, if there is one; starts nothing.
    pub(crate) fn connected(&self) -> Option<Arc<Connection>> {
        self.settle();
        match &self.lock().phase {
            Phase::Ready { connection, .. } => Some(Arc::clone(connection)),
            Phase::Idle | Phase::Starting | Phase::Backoff { .. } | Phase::Broken(_) => None,
        }
    }

    fn look(self: &Arc<Server>) -> Look {
        self.settle();
        let mut inner = self.lock();
        let now = Instant::now();
        let due = match &inner.phase {
            Phase::Ready { connection, .. } => return Look::Found(Arc::clone(connection)),
            Phase::Broken(error) => return Look::Failed(error.clone()),
            Phase::Starting => false,
            Phase::Idle => true,
            Phase::Backoff { until, why } => {
                let wait = until.saturating_duration_since(now);
                if wait > limits::PATIENCE {
                    let (server, why) = (self.spec.name.clone(), why.clone());
                    return Look::Failed(Error::Backoff { server, wait, why });
                }
                if !wait.is_zero() {
                    return Look::Later(Some(*until));
                }
                true
            }
        };
        if due {
            inner.phase = Phase::Starting;
            while inner.starting.try_join_next().is_some() {}
            let (parts, era) = (Arc::clone(&self.parts), inner.era);
            inner.starting.spawn(start(Arc::downgrade(self), parts, era));
            drop(inner);
            self.announce();
        }
        Look::Later(None)
    }

    /// Notices that a connection is over.
    fn settle(&self) {
        let mut inner = self.lock();
        let Phase::Ready { connection, since } = &inner.phase else { return };
        let Some(why) = connection.why_ended() else { return };
        if since.elapsed() >= limits::GOOD_TIME {
            inner.attempt = 0;
        }
        self.logs.note(&format!("ended: {why}"));
        let over = step_back(&mut inner, why);
        drop(inner);
        drop(over);
        self.announce();
    }

    fn started(self: &Arc<Server>, result: Result<(Connection, Listing), Failure>) {
        let mut inner = self.lock();
        match result {
            Ok((connection, listing)) => {
                let since = Instant::now();
                let connection = Arc::new(connection);
                let weak = Arc::downgrade(self);
                connection.spawn(follow(weak.clone(), Arc::downgrade(&connection)));
                connection.spawn(refresh(weak, Arc::clone(&connection.client().stale)));
                inner.era = if connection.is_modern() { Era::Unknown } else { Era::Initialize };
                inner.phase = Phase::Ready { connection, since };
                drop(inner);
                self.keep(listing);
            }
            Err(failure) => {
                self.fail(&mut inner, failure);
                drop(inner);
            }
        }
        self.announce();
    }

    fn fail(&self, inner: &mut Inner, failure: Failure) {
        let server = self.spec.name.clone();
        match failure {
            Failure::Hopeless(why) => inner.phase = Phase::Broken(Error::Broken { server, why }),
            Failure::Login(challenge) => {
                inner.challenge = Some(challenge.clone());
                inner.phase = Phase::Broken(Error::Login { server, challenge });
            }
            Failure::Passing(why) | Failure::Odd(why) => drop(step_back(inner, why)),
        }
    }

    /// What the tools are now. Told only if that is new.
    fn keep(&self, listing: Listing) {
        for line in &listing.left_out {
            self.logs.note(&format!("left out {line}"));
        }
        let mut inner = self.lock();
        let same = inner.listing.as_ref().is_some_and(|old| old.is_like(&listing));
        inner.listing = Some(Arc::new(listing));
        drop(inner);
        if !same {
            self.asks.queue.push(Event::ToolsChanged { server: self.spec.name.clone() });
        }
    }

    pub(crate) async fn log_in(&self, options: LoginOptions) -> Result<Login, Error> {
        let challenge = self.lock().challenge.clone();
        self.begin_login(challenge, options).await
    }

    /// A call found out that the login is not, or no longer, enough.
    pub(crate) fn note_challenge(&self, challenge: &str) {
        self.lock().challenge = Some(challenge.to_owned());
    }

    /// Forgets all that went wrong. The next who needs the server starts it.
    pub(crate) fn restart(&self) {
        let mut inner = self.lock();
        inner.attempt = 0;
        inner.starting.abort_all();
        let old = std::mem::replace(&mut inner.phase, Phase::Idle);
        drop(inner);
        if let Phase::Ready { connection, .. } = &old {
            connection.end("it was restarted");
        }
        drop(old);
        self.announce();
    }

    /// Lets the program end in order, within a few seconds. Nothing starts it again.
    pub(crate) async fn shut_down(&self) {
        let broken = Error::Broken {
            server: self.spec.name.clone(),
            why: "everything is being shut down".to_owned(),
        };
        let old = {
            let mut inner = self.lock();
            inner.starting.abort_all();
            std::mem::replace(&mut inner.phase, Phase::Broken(broken))
        };
        if let Phase::Ready { connection, .. } = old {
            connection.end("it was shut down");
            let _ended_or_killed = timeout(limits::LEAVE_TIME * 2, connection.ended()).await;
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Everybody who could need it is gone: ends all that runs for it, without waiting.
    pub(crate) fn let_go(&self) {
        let mut inner = self.lock();
        inner.starting.abort_all();
        let old = std::mem::replace(&mut inner.phase, Phase::Idle);
        drop(inner);
        if let Phase::Ready { connection, .. } = old {
            connection.kill();
        }
    }

    pub(crate) fn watch(&self, uri: &str) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.len() < limits::WATCHED && watched.insert(uri.to_owned())
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

enum Look {
    Found(Arc<Connection>),
    Failed(Error),
    Later(Option<Instant>),
}

/// Returns what is over, to be dropped where no lock is held.
fn step_back(inner: &mut Inner, why: String) -> Phase {
    inner.attempt += 1;
    let until = Instant::now() + limits::backoff(inner.attempt);
    std::mem::replace(&mut inner.phase, Phase::Backoff { until, why })
}

/// Holds no more of the server than it needs: one that nobody has any more is not started, and
/// what was started for it ends.
async fn start(server: Weak<Server>, parts: Arc<Parts>, era: Era) {
    let result = parts.open(era).await;
    if let Some(server) = server.upgrade() {
        server.started(result);
    }
}

/// A start that nobody waits for.
async fn again(server: Weak<Server>, at: Instant) {
    sleep_until(at).await;
    if let Some(server) = server.upgrade() {
        drop(server.look());
    }
}

/// Says that a connection is over as soon as it is.
async fn follow(server: Weak<Server>, connection: Weak<Connection>) {
    let Some(ended) = connection.upgrade().map(|connection| connection.watch_end()) else { return };
    ended.await;
    if let Some(server) = server.upgrade() {
        server.settle();
    }
}

/// Reads the tools again when they changed, however often that is announced. Between two readings
/// it holds nothing that should end.
async fn refresh(server: Weak<Server>, stale: Arc<Stale>) {
    loop {
        let announced = stale.wanted().await;
        if let Some(server) = server.upgrade() {
            let Some(connection) = server.connected() else { return };
            match connection.tools(&server.spec, server.spec.timeout).await {
                Ok(listing) => server.keep(listing),
                Err(error) => server.logs.note(&error.to_string()),
            }
        } else {
            return;
        }
        stale.was_read(announced);
        sleep(limits::LIST_PAUSE).await;
    }
}
