//! Durability, and nothing else: entries go in, in order, and come back exactly as they went in.
//!
//! In reading order: the promise every store keeps (here), what can go wrong (`error`), how a
//! caller waits for a sync (`ticket`), the store in memory (`memory`); then the durable one: what
//! makes damage visible (`chain`), who may read (`private`) and write (`lock`), how far a session
//! had come (`mark`), and the database (`sqlite`). What is not here: any idea of what an entry
//! means.

mod chain;
mod error;
mod lock;
mod mark;
mod memory;
mod private;
mod sqlite;
mod ticket;

use std::fmt::Debug;

use locum_kernel::{Entry, Seq};

pub use error::Error;
pub use lock::Holder;
pub use memory::Memory;
pub use sqlite::{Kept, Loss, Onlooker, Sound, Sqlite};
pub use ticket::{Done, Ticket};

/// What was kept, for whoever only wants to read it.
pub trait Records: Debug + Send + Sync {
    /// All entries of a session, oldest first. An unknown session has none.
    fn load(&self, session: &str) -> Result<Vec<Entry>, Error> {
        self.tail(session, Seq(0))
    }

    /// The entries that begin after the event numbered `after`, oldest first.
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error>;

    /// The newest snapshot that is whole and belongs to this history; `tail` goes on from it.
    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error>;

    /// Every session there is, by name.
    fn sessions(&self) -> Result<Vec<Listed>, Error>;
}

/// Where entries are kept. One decision is one entry, kept whole or not at all. A store is shared
/// by all sessions of a process, so that their entries can share a sync.
pub trait Journal: Records {
    /// Puts an entry after the event numbered `expected`, the last one the caller knows of (zero
    /// in an empty session). `done` is called once, maybe on another thread, and must be quick:
    /// others wait behind it. After `Ok` the entry survives a power cut. If somebody else has
    /// written meanwhile, nothing is written: the caller no longer owns the session. Entries are
    /// written in the order they were submitted, so a caller may submit a second one before the
    /// first is done; if the first fails, the second finds the wrong `expected` and fails too.
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, when: When, done: Done);

    /// The same, for whoever wants to look or wait later.
    fn submit(&self, session: &str, expected: Seq, entry: &Entry) -> Ticket {
        let (ticket, done) = Ticket::new(session);
        self.submit_then(session, expected, entry, When::Now, done);
        ticket
    }

    /// The same, and waits.
    fn append(&self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error> {
        self.submit(session, expected, entry).wait()
    }

    /// Keeps what the caller made of all events up to `seq`, which must end an entry. When to do
    /// this is the caller's choice; the journal does not look inside.
    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error>;

    /// Forgets a session, its snapshots, and that it was there. An unknown one is no error.
    fn delete(&self, session: &str) -> Result<(), Error>;

    /// There was no room left but what was kept back for this: what has happened can still be
    /// written down, and nothing new should be begun.
    fn is_low(&self) -> bool {
        false
    }
}

/// How much a caller is in a hurry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Somebody waits for it.
    Now,
    /// Nobody waits yet: it may stay a few milliseconds to share the sync of what comes next.
    Soon,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the last event in it.
    pub seq: Seq,
    pub bytes: Vec<u8>,
}

/// A session in the list of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub session: String,
    /// The number of its last event, as far as that can be said of a damaged one.
    pub last: Seq,
    /// Why it is set aside, if it is.
    pub damaged: Option<String>,
}

/// The number of an entry's last event, if the entry can stand right after `expected`.
fn last_of(entry: &Entry, expected: Seq) -> Option<Seq> {
    let events = u64::try_from(entry.events.len()).ok().filter(|events| *events > 0)?;
    let follows = expected.0.checked_add(1) == Some(entry.seq.0);
    follows.then(|| Seq(expected.0.saturating_add(events)))
}
