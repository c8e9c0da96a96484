//! The one place that writes, mostly on a thread of its own. Whatever has been submitted while the
//! last sync was under way shares the next transaction and the next sync, over all sessions. A
//! caller whose entry does not fit is refused alone; a transaction that fails, fails for all of
//! it, and nothing of it is there.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locum_kernel::Seq;
use rusqlite::{Connection, ErrorCode};

use super::catalogue::Known;
use super::fence::{Fence, Turn};
use super::job::{Job, Work, gather};
use super::reserve::Reserve;
use super::tables::{self, Trouble, is_damage, is_full, range};
use super::{Shared, read};
use crate::Error;
use crate::chain::{Facts, Head, link};
use crate::mark::Marks;

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Connection,
    pub(super) marks: Marks,
    pub(super) fence: Fence,
    pub(super) stopped: bool,
    /// How many sessions shared the last sync.
    pub(super) company: usize,
    pub(super) reserve: Option<Reserve>,
}

/// Sessions as they will be if the transaction commits; none is one that will be gone.
type Changed = BTreeMap<String, Option<Known>>;

/// Why a whole transaction failed.
enum Failure {
    Fenced(i64),
    Sql(Arc<rusqlite::Error>),
}

/// Why one job failed: only for itself, or for everybody in the transaction.
enum Refused {
    Alone(Error),
    All(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Refused {
        Refused::All(error)
    }
}

/// The thread: until the last sender is gone.
pub(super) fn run(writer: &Mutex<Writer>, shared: &Shared, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        // Gathered under the lock: whoever comes while another writes is still in time.
        let mut writer = lock(writer);
        let (batch, company) = gather(first, jobs, writer.company);
        writer.company = company;
        let served = batch.len();
        writer.serve(batch);
        shared.queued.fetch_sub(served, Ordering::AcqRel);
    }
    // If this fails the marks are old, which is allowed; there is nobody left to tell.
    let _ = lock(writer).marks.sync();
}

/// A transaction that was cut by a panic was rolled back, and memory follows commits.
pub(super) fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    /// A lone caller writes by itself: waking a thread and being woken costs more than the row.
    /// Gives the job back if others wait or have just shared a sync; then it is for the thread.
    pub(super) fn serve_alone(writer: &Mutex<Writer>, shared: &Shared, job: Job) -> Option<Job> {
        let Ok(mut writer) = writer.try_lock() else { return Some(job) };
        if writer.company > 1 || shared.queued.load(Ordering::Acquire) > 0 {
            return Some(job);
        }
        writer.serve(vec![job]);
        None
    }

    fn serve(&mut self, batch: Vec<Job>) {
        let outcome = self.attempt(&batch);
        let broken = matches!(&outcome, Err(Failure::Sql(error)) if is_damage(error));
        if broken && batch.len() > 1 {
            // One of them has met a damaged page. Alone, it fails alone.
            for job in batch {
                self.serve(vec![job]);
            }
            return;
        }
        let results = match outcome {
            Ok(results) => results,
            Err(Failure::Sql(error)) if is_full(&error) => return self.serve_full(batch, error),
            Err(failure) => batch.iter().map(|job| Err(self.failed(job, &failure))).collect(),
        };
        for (job, result) in batch.into_iter().zip(results) {
            (job.done)(result);
        }
    }

    /// The disk is full. What only saves time gives way to the rest, and once there is the reserve.
    fn serve_full(&mut self, batch: Vec<Job>, error: Arc<rusqlite::Error>) {
        let (spare, needed): (Vec<Job>, Vec<Job>) = batch.into_iter().partition(Job::is_spare);
        let again = !needed.is_empty() && (!spare.is_empty() || self.use_reserve());
        let failure = Failure::Sql(error);
        let mut refused = spare;
        if again {
            self.serve(needed);
        } else {
            refused.extend(needed);
        }
        for job in refused {
            let error = self.failed(&job, &failure);
            (job.done)(Err(error));
        }
    }

    fn use_reserve(&mut self) -> bool {
        let Some(reserve) = self.reserve.take() else { return false };
        self.shared.low.store(true, Ordering::Release);
        reserve.release().is_ok()
    }

    fn attempt(&mut self, batch: &[Job]) -> Result<Vec<Result<(), Error>>, Failure> {
        if self.stopped {
            let stopped =
                |job: &Job| Err(Error::Stopped { path: self.path(), session: job.session.clone() });
            return Ok(batch.iter().map(stopped).collect());
        }
        let (mut changed, mut results) = (Changed::new(), Vec::with_capacity(batch.len()));
        let Writer { shared, connection, marks, fence, .. } = self;
        let sql = |error| Failure::Sql(Arc::new(error));
        let turn = Turn::begin(connection).map_err(sql)?;
        if let Err(found) = fence.check(connection).map_err(sql)? {
            self.stopped = true;
            return Err(Failure::Fenced(found));
        }
        for job in batch {
            let mut desk = Desk { shared, connection, marks, changed: &mut changed };
            match desk.perform(job) {
                Ok(()) => results.push(Ok(())),
                Err(Refused::Alone(error)) => results.push(Err(error)),
                Err(Refused::All(error)) => return Err(sql(error)),
            }
        }
        if changed.is_empty() && results.iter().all(Result::is_err) {
            return Ok(results);
        }
        let claimed = fence.claim(connection).map_err(sql)?;
        turn.commit().map_err(|error| {
            self.stopped = !is_full(&error) && !is_busy(&error);
            sql(error)
        })?;
        self.fence = claimed;
        self.settle(changed);
        Ok(results)
    }

    /// The transaction is safe: marks first, then memory, and then callers are told. A mark that
    /// cannot be written stays behind, which it may; a later one takes its place.
    fn settle(&mut self, changed: Changed) {
        let mut catalogue = self.shared.catalogue();
        for (name, known) in changed {
            let Some(mut known) = known else {
                catalogue.forget(&name);
                continue;
            };
            if let Some(head) = known.head {
                if let Err(error) = self.marks.write(known.named.number, known.mark(head)) {
                    catalogue.notices.push(format!("the mark of {name} is behind: {error}"));
                }
                known.least = head;
            }
            catalogue.highest = catalogue.highest.max(known.named.number);
            catalogue.sessions.insert(name, known);
        }
        if let Err(error) = self.marks.tick() {
            catalogue.notices.push(format!("the marks are behind: {error}"));
        }
    }

    fn failed(&self, job: &Job, failure: &Failure) -> Error {
        let (path, session) = (self.path(), job.session.clone());
        match failure {
            Failure::Fenced(found) => {
                Error::Fenced { path, session, mine: self.fence.mine, found: *found }
            }
            Failure::Sql(error) if is_full(error) => Error::Full { path, session },
            Failure::Sql(error) if is_damage(error) => {
                Error::Damaged { path, session, why: error.to_string() }
            }
            Failure::Sql(error) => Error::Write { path, session, source: Arc::clone(error) },
        }
    }

    fn path(&self) -> PathBuf {
        self.shared.path.clone()
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// One job inside a transaction.
struct Desk<'t> {
    shared: &'t Shared,
    connection: &'t Connection,
    marks: &'t mut Marks,
    changed: &'t mut Changed,
}

impl Desk<'_> {
    fn perform(&mut self, job: &Job) -> Result<(), Refused> {
        let session = job.session.as_str();
        match &job.work {
            Work::Append { expected, facts, json } => self.append(session, *expected, *facts, json),
            Work::Snapshot { seq, bytes } => self.snapshot(session, *seq, bytes),
            Work::Delete => self.delete(session),
            Work::Spoil { why } => self.rewrite(session, |known| {
                known.named.damaged.get_or_insert_with(|| why.clone());
            }),
            Work::Rename { name } => {
                self.rewrite(session, |known| known.named.name.clone_from(name))
            }
        }
    }

    fn append(
        &mut self,
        session: &str,
        expected: Seq,
        facts: Facts,
        json: &str,
    ) -> Result<(), Refused> {
        let known = match self.find(session)? {
            Some(known) => known,
            None if expected == Seq(0) => self.make(session)?,
            None => return Err(self.conflict(session, expected, Seq(0))),
        };
        let head = self.head(session, &known)?;
        if head.last != expected {
            return Err(self.conflict(session, expected, head.last));
        }
        let Some(id) = tables::key(known.named.number, facts.seq) else {
            return Err(self.conflict(session, expected, head.last));
        };
        let hash = link(&head.hash, facts, json.as_bytes());
        tables::insert(self.connection, id, facts, &hash, json)?;
        let head = Some(Head { last: facts.last, hash });
        self.changed.insert(session.to_owned(), Some(Known { head, ..known }));
        Ok(())
    }

    /// Its slot is there before it is, so that a full disk is met before the commit, not after.
    fn make(&mut self, session: &str) -> Result<Known, Refused> {
        let highest = self.shared.catalogue().highest;
        let made = self.changed.values().flatten().map(|known| known.named.number);
        let number = made.fold(highest, i64::max) + 1;
        let known = Known::new(number, session);
        self.marks.write(number, known.mark(known.least)).map_err(|source| {
            let path = self.shared.path.clone();
            if source.kind() == ErrorKind::StorageFull {
                return Refused::Alone(Error::Full { path, session: session.to_owned() });
            }
            Refused::Alone(Error::File { path, source })
        })?;
        known.named.write(self.connection)?;
        Ok(known)
    }

    fn snapshot(&mut self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Refused> {
        let path = self.shared.path.clone();
        let missing = || Error::NoSuchEnd { path, session: session.to_owned(), seq };
        let Some(known) = self.find(session)? else { return Err(Refused::Alone(missing())) };
        let mut head = self.head(session, &known)?;
        if head.last != seq {
            let found = read::end_at_or_before(self.connection, &known, Some(seq));
            let found = found.map_err(|trouble| self.trouble(session, trouble))?;
            let ends = found.filter(|head| head.last == seq);
            head = ends.ok_or_else(|| Refused::Alone(missing()))?;
        }
        Ok(read::put_snapshot(self.connection, &known, head, bytes)?)
    }

    /// A damaged session can be deleted, too, as far as its rows can be reached.
    fn delete(&mut self, session: &str) -> Result<(), Refused> {
        let Some(known) = self.any(session) else { return Ok(()) };
        let number = known.named.number;
        // Before any row goes: a job that is refused alone must leave nothing half done.
        let buried = self.marks.bury(number, known.mark(known.least));
        let path = || self.shared.path.clone();
        buried.map_err(|source| Refused::Alone(Error::File { path: path(), source }))?;
        let (from, to) = range(number);
        for sql in [
            "DELETE FROM entry WHERE id >= ? AND id < ?",
            "DELETE FROM snapshot WHERE id >= ? AND id < ?",
        ] {
            self.connection.prepare_cached(sql)?.execute([from, to])?;
        }
        let sql = "DELETE FROM session WHERE number = ?";
        self.connection.prepare_cached(sql)?.execute([number])?;
        self.changed.insert(session.to_owned(), None);
        Ok(())
    }

    /// Changes what is written of a session, not its entries: those stay where they are, whole or
    /// not, and nothing is lost by moving them.
    fn rewrite(&mut self, session: &str, change: impl FnOnce(&mut Known)) -> Result<(), Refused> {
        let Some(mut known) = self.any(session) else { return Ok(()) };
        // What cannot be trusted is not marked.
        known.head = None;
        change(&mut known);
        known.named.write(self.connection)?;
        self.changed.insert(session.to_owned(), None);
        self.changed.insert(known.named.name.clone(), Some(known));
        Ok(())
    }

    fn any(&self, session: &str) -> Option<Known> {
        let stored = || self.shared.catalogue().any(session);
        self.changed.get(session).cloned().unwrap_or_else(stored)
    }

    fn find(&self, session: &str) -> Result<Option<Known>, Refused> {
        let any = self.any(session);
        let damaged = any.as_ref().and_then(|known| known.named.damaged.clone());
        match damaged {
            Some(why) => Err(self.trouble(session, Trouble::Damage(why))),
            None => Ok(any),
        }
    }

    fn head(&self, session: &str, known: &Known) -> Result<Head, Refused> {
        if let Some(head) = known.head {
            return Ok(head);
        }
        read::head(self.connection, known).map_err(|trouble| self.trouble(session, trouble))
    }

    fn trouble(&self, session: &str, trouble: Trouble) -> Refused {
        match trouble {
            Trouble::Sql(error) => Refused::All(error),
            Trouble::Damage(why) => {
                let (path, session) = (self.shared.path.clone(), session.to_owned());
                Refused::Alone(Error::Damaged { path, session, why })
            }
        }
    }

    fn conflict(&self, session: &str, expected: Seq, found: Seq) -> Refused {
        let (path, session) = (self.shared.path.clone(), session.to_owned());
        Refused::Alone(Error::Conflict { path, session, expected, found })
    }
}
