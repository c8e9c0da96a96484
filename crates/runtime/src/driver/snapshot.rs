//! Snapshots save whoever opens a session from folding all of it. One is kept when a session is
//! opened, when a run ends, and now and then in between, because a run may be killed.
//!
//! Those in between are made on another thread, from the journal: no turn waits for them, and they
//! hold nothing that is not safe. That is as much work as opening the session is, so the longer a
//! session is the longer it takes until the next: all of them together cost each event the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locum_journal::{Journal, Records};
use locum_kernel::{Seq, Session};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinHandle, spawn_blocking};

use super::open::unfold_while;
use super::{Driver, Error};
use crate::events::Teller;

/// The version of what a snapshot holds. Changes whenever the session's or the teller's fields
/// do; a snapshot of another version is not read, and everything is folded instead.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "+3");

/// Folding this many entries takes longer than reading a snapshot.
const ENTRIES_MIN: u32 = 1_000;

/// A session has grown by one part in so many before it is worth another snapshot.
const GROWTH: u64 = 4;

#[derive(Deserialize)]
struct Kept {
    format: String,
    session: Session,
    teller: Teller,
}

#[derive(Serialize)]
struct Keep<'s> {
    format: &'static str,
    session: &'s Session,
    teller: &'s Teller,
}

/// What is known of a session's snapshots.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// Entries since the newest, or since one was last tried.
    entries: u32,
    /// Where the newest ends.
    newest: Arc<AtomicU64>,
    making: Option<Making>,
}

/// One that is being made.
#[derive(Debug)]
struct Making {
    task: JoinHandle<()>,
    unwanted: Arc<AtomicBool>,
    /// Entries it was begun for, and what was the newest then.
    entries: u32,
    before: u64,
}

impl Drop for Making {
    /// A thread cannot be stopped, but it can be told that nobody waits for it.
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Release);
    }
}

impl Snapshots {
    pub(super) fn after(newest: Seq, entries: u32) -> Snapshots {
        Snapshots { entries, newest: Arc::new(AtomicU64::new(newest.0)), making: None }
    }

    pub(super) fn grown(&mut self) {
        self.entries = self.entries.saturating_add(1);
    }

    fn is_due(&self, now: Seq) -> bool {
        let newest = self.newest.load(Ordering::Acquire);
        self.entries >= ENTRIES_MIN && now.0.saturating_sub(newest) >= newest / GROWTH
    }
}

impl Driver {
    /// Begins one if it is time and none is being made.
    pub(super) fn begin_snapshot(&mut self) {
        let snapshots = &mut self.snapshots;
        if !snapshots.is_due(self.safe) || self.world.journal.is_low() {
            return;
        }
        if snapshots.making.as_ref().is_some_and(|making| !making.task.is_finished()) {
            return;
        }
        let (journal, key) = (Arc::clone(&self.world.journal), self.key.clone());
        let (newest, unwanted) = (Arc::clone(&snapshots.newest), Arc::default());
        let entries = std::mem::take(&mut snapshots.entries);
        let before = newest.load(Ordering::Acquire);
        let told = Arc::clone(&unwanted);
        let task = spawn_blocking(move || {
            if let Some(seq) = make(journal.as_ref(), &key, &told) {
                newest.store(seq.0, Ordering::Release);
            }
        });
        snapshots.making = Some(Making { task, unwanted, entries, before });
    }

    /// Keeps one at the end, unless there is one that will do.
    pub(super) async fn end_snapshots(&mut self) {
        if let Some(making) = &mut self.snapshots.making {
            making.unwanted.store(true, Ordering::Release);
            // One that panicked has kept none.
            let _ = (&mut making.task).await;
        }
        if let Some(making) = self.snapshots.making.take()
            && self.snapshots.newest.load(Ordering::Acquire) == making.before
        {
            self.snapshots.entries = self.snapshots.entries.saturating_add(making.entries);
        }
        self.keep_snapshot();
    }

    /// Called only when everything is safe. A snapshot that cannot be written is one that is not
    /// there: the next who opens folds a little longer.
    pub(super) fn keep_snapshot(&mut self) {
        // The last room is not for what only saves time.
        if !self.snapshots.is_due(self.session.seq()) || self.world.journal.is_low() {
            return;
        }
        let seq = self.session.seq();
        if put(self.world.journal.as_ref(), &self.key, &self.session, &self.teller).is_some() {
            self.snapshots = Snapshots::after(seq, 0);
        }
    }
}

/// The newest snapshot that can be read.
pub(super) fn newest(records: &dyn Records, key: &str) -> Result<Option<(Session, Teller)>, Error> {
    let kept = records.newest_snapshot(key)?;
    let kept = kept.and_then(|kept| serde_json::from_slice::<Kept>(&kept.bytes).ok());
    Ok(kept.filter(|kept| kept.format == FORMAT).map(|kept| (kept.session, kept.teller)))
}

/// What opening the session would make of it. None: nobody wants it any more, or it cannot be.
fn make(journal: &dyn Journal, key: &str, unwanted: &AtomicBool) -> Option<Seq> {
    let wanted = || !unwanted.load(Ordering::Acquire);
    let (unfolded, to_the_end) = unfold_while(journal, key, wanted).ok()?;
    if !to_the_end || !wanted() {
        return None;
    }
    put(journal, key, &unfolded.session, &unfolded.teller)
}

fn put(journal: &dyn Journal, key: &str, session: &Session, teller: &Teller) -> Option<Seq> {
    let bytes = serde_json::to_vec(&Keep { format: FORMAT, session, teller }).ok()?;
    journal.snapshot(key, session.seq(), &bytes).ok()?;
    Some(session.seq())
}
