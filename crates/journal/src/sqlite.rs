//! Entries in one database file: the default store. A write-ahead log with a full sync, because
//! kill -9 is not the only way to die: an accepted entry survives a power cut, too.
//!
//! What is promised, exactly:
//! - **Accepted is safe.** `Ok` means synced. An append that failed with `Full`, `Conflict` or
//!   `Fenced` is not there. One that failed with `Write` may still be found when the journal is
//!   opened again (the sync failed, the disk has it all the same); therefore the writer stops.
//! - **One writer.** A kernel lock keeps a second process out ([`crate::lock`]), and every
//!   transaction checks the writer's epoch, so that a process that was stopped, taken over from
//!   and woken again writes nothing.
//! - **Damage is seen** when the journal is opened or the damaged part is read, never folded: rows
//!   by checksum and chain, a lost end by the mark ([`crate::mark`]), snapshots by their seal.
//! - **Damage stays where it is.** A damaged session is refused from then on, under its name and
//!   with its rows untouched, until somebody moves it away with `set_aside` or deletes it. The
//!   others go on, unless a page they share is hit (the header, the list of sessions, the inner
//!   pages above all entries): then those below it, or the whole file, are refused, with a copy.
//! - **Nothing is made anew in place of something lost.**
//!
//! In reading order: `tables`, `catalogue`, `read`, `fence`, `job`, `writer`, `reserve`, `shrink`,
//! `keep`, `look` for those who only read, and `sound` for what they can read of what is damaged.

mod catalogue;
mod fence;
mod job;
mod keep;
mod look;
mod read;
mod reserve;
mod shrink;
mod sound;
mod tables;
mod writer;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use locum_kernel::{Entry, Seq, Unreadable};
use rusqlite::Connection;

use crate::chain::Facts;
use crate::lock::Lock;
use crate::mark::{Found, Marks};
use crate::private;
use crate::{Done, Error, Journal, Listed, Records, Snapshot, Ticket, When, last_of};
use catalogue::{Catalogue, Known};
use fence::Fence;
use job::{Job, Work};
use keep::{beside, keep};
pub use look::Onlooker;
pub use reserve::Kept;
pub use sound::{Loss, Sound};
use tables::{Access, Trouble, VERSION, is_ragged};
use writer::Writer;

/// What a journal may consist of.
const FILES: [&str; 7] = ["", "-wal", "-shm", "-journal", "-mark", "-lock", "-reserve"];

pub struct Sqlite {
    shared: Arc<Shared>,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Apart from the writer's, so that reading waits for no sync. Closed before it: the last to
    /// close empties the log, and a reader cannot.
    reader: Mutex<Connection>,
    writer: Arc<Mutex<Writer>>,
    epoch: i64,
    /// Last, so that it is given back when everything else is closed.
    _lock: Lock,
}

struct Shared {
    path: PathBuf,
    catalogue: Mutex<Catalogue>,
    /// Jobs sent to the thread and not done.
    queued: AtomicUsize,
    /// The reserve had to be used.
    low: AtomicBool,
}

impl Shared {
    /// Changed only by whole sessions: whoever died holding it left nothing half done.
    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sqlite {
    /// Opens the file, and makes it if it is not there. Its folder must exist.
    pub fn open(path: &Path) -> Result<Sqlite, Error> {
        let lock = Lock::acquire(&beside(path, "-lock"))?;
        Sqlite::start(path, lock, false)
    }

    /// The same, whoever has it open: from now on the other writes nothing more. Fails if the
    /// other was stopped in the middle of a write; then only its death helps.
    pub fn take_over(path: &Path) -> Result<Sqlite, Error> {
        let lock = Lock::take_over(&beside(path, "-lock"))?;
        Sqlite::start(path, lock, true)
    }

    fn start(path: &Path, lock: Lock, takes_over: bool) -> Result<Sqlite, Error> {
        for suffix in FILES {
            private::tighten(&beside(path, suffix));
        }
        let mark = beside(path, "-mark");
        let marks = Marks::open(&mark);
        let unusable = |source| Error::File { path: mark.clone(), source };
        let (mut marks, found) = marks.map_err(unusable)?;
        let ragged = is_ragged(path);
        let (damaged, reader) = survey(path, &found)?;
        let made = private::make(path);
        made.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let (connection, fence) = open_to_write(path, &lock, takes_over)?;
        let opened = |connection: &Connection| Catalogue::read(connection, &found);
        let mut catalogue = opened(&connection).map_err(|trouble| broken(path, trouble))?;
        catalogue.mend(&connection, &mut marks).map_err(unusable)?;
        if ragged {
            catalogue.notices.push("the journal ended in the middle of a page".into());
        }
        let reader = reader.map_or_else(|| tables::connect(path, Access::Look), Ok);
        let reader = reader.map_err(|error| broken(path, Trouble::Sql(error)))?;
        let (catalogue, queued) = (Mutex::new(catalogue), AtomicUsize::new(0));
        let low = AtomicBool::new(false);
        let shared = Arc::new(Shared { path: path.to_owned(), catalogue, queued, low });
        let (jobs, inbox) = channel();
        let (stopped, company, reserve) = (false, 1, None);
        let own = Arc::clone(&shared);
        let writer = Writer { shared: own, connection, marks, fence, stopped, company, reserve };
        let writer = Arc::new(Mutex::new(writer));
        let (ours, theirs) = (Arc::clone(&writer), Arc::clone(&shared));
        let thread = thread::Builder::new().name("journal".into());
        let thread = thread.spawn(move || writer::run(&ours, &theirs, &inbox));
        let thread = thread.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let (jobs, thread, reader) = (Some(jobs), Some(thread), Mutex::new(reader));
        let epoch = fence.mine;
        let journal = Sqlite { shared, jobs, thread, reader, writer, epoch, _lock: lock };
        for (session, why) in damaged {
            journal.spoil(&session, why);
        }
        Ok(journal)
    }

    /// What was found wrong beside the sessions and put right, such as a mark that was unreadable.
    pub fn notices(&self) -> Vec<String> {
        self.shared.catalogue().notices.clone()
    }

    /// The number of this writer: higher than any that wrote before it.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Gives a damaged session's name free. Its rows stay, under the name returned here; a
    /// session that is whole keeps its own.
    pub fn set_aside(&self, session: &str) -> Result<String, Error> {
        if self.shared.catalogue().find(session).is_ok() {
            return Ok(session.to_owned());
        }
        let free = |name: &String| !self.shared.catalogue().sessions.contains_key(name);
        let names = (1..=u32::MAX).map(|number| format!("{session}.corrupt-{number}"));
        let name = names.into_iter().find(free).unwrap_or_default();
        self.ask(session, Work::Rename { name: name.clone() }).map(|()| name)
    }

    fn ask(&self, session: &str, work: Work) -> Result<(), Error> {
        let (ticket, done) = Ticket::new(session);
        let (session, when) = (session.to_owned(), When::Now);
        let job = Job { session, work, when, done };
        if let Some(job) = Writer::serve_alone(&self.writer, &self.shared, job) {
            self.send(job);
        }
        ticket.wait()
    }

    fn send(&self, job: Job) {
        self.shared.queued.fetch_add(1, Ordering::AcqRel);
        // A job that is not taken is dropped, and its ticket says so.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// What an append is to the writer. Text is made here and not there: many callers can do that
    /// beside each other.
    fn work(&self, session: &str, expected: Seq, entry: &Entry) -> Result<Work, Error> {
        let place = || (self.shared.path.clone(), session.to_owned());
        let Some(last) = last_of(entry, expected) else {
            let (path, session) = place();
            return Err(Error::Misplaced { path, session, expected, found: entry.seq });
        };
        let json = serde_json::to_string(entry).map_err(|error| {
            let (path, session) = place();
            let source = rusqlite::Error::ToSqlConversionFailure(error.into());
            Error::Write { path, session, source: Arc::new(source) }
        })?;
        let at = i64::try_from(entry.at.0).unwrap_or(i64::MAX);
        Ok(Work::Append { expected, facts: Facts { seq: entry.seq, last, at }, json })
    }

    /// From now on the session is refused. If that cannot be written (a full disk), the next
    /// reader finds the damage again.
    fn spoil(&self, session: &str, why: String) {
        let _ = self.ask(session, Work::Spoil { why });
    }

    /// Something read from a session that is there and whole; none if it is not there.
    fn of<T>(
        &self,
        session: &str,
        read: impl FnOnce(&Connection, &Known) -> Result<T, Trouble>,
    ) -> Result<Option<T>, Error> {
        let (path, named) = (self.shared.path.clone(), session.to_owned());
        let known = self.shared.catalogue().find(session);
        let known = known.map_err(|why| (Trouble::Damage(why), true));
        let result = known.and_then(|known| {
            let Some(known) = known else { return Ok(None) };
            let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            read(&reader, &known).map(Some).map_err(|trouble| (trouble, false))
        });
        match result {
            Ok(found) => Ok(found),
            Err((Trouble::Sql(source), _)) => {
                Err(Error::Read { path, session: named, source: Arc::new(source) })
            }
            Err((Trouble::Damage(why), is_known)) => {
                if !is_known {
                    self.spoil(session, why.clone());
                }
                Err(Error::Damaged { path, session: named, why })
            }
        }
    }
}

fn parse(path: &Path, session: &str, seq: Seq, json: &str) -> Result<Entry, Error> {
    Entry::read(json).map_err(|source| {
        let (path, session) = (path.to_owned(), session.to_owned());
        match source {
            Unreadable::Newer { .. } => Error::Unreadable { path, session, seq, source },
            Unreadable::Broken(why) => {
                Error::Damaged { path, session, why: format!("the entry at {seq}: {why}") }
            }
        }
    })
}

impl Records for Sqlite {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let rows = self.of(session, |reader, known| read::tail(reader, known, after))?;
        let rows = rows.unwrap_or_default().into_iter();
        let entries = rows.map(|(seq, json)| parse(&self.shared.path, session, seq, &json));
        let entries: Result<_, Error> = entries.collect();
        entries.inspect_err(|error| {
            if let Error::Damaged { why, .. } = error {
                self.spoil(session, why.clone());
            }
        })
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        let newest = |reader: &Connection, known: &Known| {
            read::newest_snapshot(reader, known).map_err(Trouble::Sql)
        };
        Ok(self.of(session, newest)?.flatten())
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        Ok(self.shared.catalogue().list())
    }
}

impl Journal for Sqlite {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, when: When, done: Done) {
        match self.work(session, expected, entry) {
            Ok(work) => self.send(Job { session: session.to_owned(), work, when, done }),
            Err(error) => done(Err(error)),
        }
    }

    fn append(&self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error> {
        self.ask(session, self.work(session, expected, entry)?)
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        self.ask(session, Work::Snapshot { seq, bytes: bytes.to_vec() })
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.ask(session, Work::Delete)
    }

    fn is_low(&self) -> bool {
        self.uses_reserve()
    }
}

impl Drop for Sqlite {
    /// Everything submitted is written first.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has told everybody by dropping their tickets.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sqlite({}, writer {})", self.shared.path.display(), self.epoch)
    }
}

type Survey = (Vec<(String, String)>, Option<Connection>);

/// Looks before anything is written: is it ours, is it whole, and has it come as far as its marks
/// say? Returns the damaged sessions, and the connection, if it can be read with. Only after an
/// unclean end can a whole log have been cut, so only then is every session looked at; otherwise
/// each is when it is read.
fn survey(path: &Path, marks: &Found) -> Result<Survey, Error> {
    let length = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    if length(path) == 0 {
        let sessions = marks.live.values().filter(|mark| mark.head.last > Seq(0)).count();
        if sessions > 0 || length(&beside(path, "-wal")) > 0 {
            return Err(Error::Lost { path: path.to_owned(), sessions });
        }
        return Ok((Vec::new(), None));
    }
    let trouble = |trouble| broken(path, trouble);
    if length(&beside(path, "-journal")) > 0 {
        // The power went while the file was made: whoever may only look cannot undo that half.
        let undone = tables::connect(path, Access::Write).map_err(Trouble::from);
        undone.and_then(|undone| tables::version(&undone)).map_err(trouble)?;
    }
    let connection = tables::connect(path, Access::Look);
    let connection = connection.map_err(|error| trouble(error.into()))?;
    match tables::version(&connection).map_err(trouble)? {
        Some(VERSION) => {}
        Some(found) => {
            return Err(Error::Version { path: path.to_owned(), found, known: VERSION });
        }
        // Somebody died before the tables were there; but then nothing was ever acknowledged.
        None if marks.live.is_empty() => return Ok((Vec::new(), None)),
        None => return Err(trouble(Trouble::Damage("its tables are gone".into()))),
    }
    let catalogue = Catalogue::read(&connection, marks).map_err(trouble)?;
    let damaged = match length(&beside(path, "-wal")) {
        0 => Vec::new(),
        _ => catalogue.behind(&connection).map_err(trouble)?,
    };
    if damaged.is_empty() && !catalogue.has_orphans() {
        return Ok((damaged, Some(connection)));
    }
    // Whoever closes a file gives up all locks its process has on it: so this connection, and the
    // lock it holds, ends before the copy is made.
    drop(connection);
    keep(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    Ok((damaged, None))
}

fn open_to_write(path: &Path, lock: &Lock, over: bool) -> Result<(Connection, Fence), Error> {
    let opened = || {
        let connection = tables::connect(path, Access::Write)?;
        let is_new = tables::version(&connection)?.is_none();
        if is_new {
            // Before anything else is written, or it is too late.
            tables::set_incremental(&connection)?;
        }
        tables::set_up(&connection)?;
        if is_new {
            tables::make_tables(&connection)?;
        }
        let fence = if over {
            Fence::put_up(&connection, || lock.is_held())?
        } else {
            // In this order: the fence relies on it.
            let fence = Fence::look(&connection)?;
            lock.is_held().then_some(fence)
        };
        Ok(fence.map(|fence| (connection, fence)))
    };
    let opened = opened().map_err(|trouble| broken(path, trouble))?;
    opened.ok_or_else(|| lock.lost())
}

/// The file as a whole cannot be used. If that is because of what is in it, a copy is kept.
fn broken(path: &Path, trouble: Trouble) -> Error {
    match trouble {
        Trouble::Sql(error) if tables::is_full(&error) => Error::NoRoom { path: path.to_owned() },
        Trouble::Sql(error) => Error::Open { path: path.to_owned(), source: Arc::new(error) },
        Trouble::Damage(why) => match keep(path) {
            Ok(kept) => Error::Corrupt { path: path.to_owned(), kept, why },
            Err(source) => Error::File { path: path.to_owned(), source },
        },
    }
}
