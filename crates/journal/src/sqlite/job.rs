//! What is asked of the writer, and which of it shares a transaction.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use locum_kernel::Seq;

use crate::chain::Facts;
use crate::{Done, When};

/// Bounds what one transaction holds in memory, and how long the first of it waits.
const BATCH_JOBS: usize = 1_024;
const BATCH_BYTES: usize = 16 << 20;

/// Sessions that shared the last sync were woken together and come back together: waiting this
/// long for the next of them costs less than giving the quickest a sync of its own. A session
/// that is alone never waits, however much it submits, and nobody waits for more than a few.
const GATHER: Duration = Duration::from_micros(150);
const GATHER_WAITS: u32 = 8;

/// What nobody waits for stays this long for the next that comes, which somebody may wait for: a
/// tool's result and the reply to it then share one sync. So often at most.
const LINGER: Duration = Duration::from_millis(1);
const LINGER_WAITS: u32 = 4;

pub(super) struct Job {
    pub(super) session: String,
    pub(super) work: Work,
    pub(super) when: When,
    pub(super) done: Done,
}

pub(super) enum Work {
    Append {
        expected: Seq,
        facts: Facts,
        json: String,
    },
    Snapshot {
        seq: Seq,
        bytes: Vec<u8>,
    },
    Delete,
    /// The session is damaged and is to be refused from now on.
    Spoil {
        why: String,
    },
    /// The session gives up its name.
    Rename {
        name: String,
    },
}

impl Job {
    /// It can be done without: whoever misses it only takes longer.
    pub(super) fn is_spare(&self) -> bool {
        match self.work {
            Work::Snapshot { .. } => true,
            Work::Append { .. } | Work::Delete | Work::Spoil { .. } | Work::Rename { .. } => false,
        }
    }
}

impl Work {
    fn bytes(&self) -> usize {
        match self {
            Work::Append { json, .. } => json.len(),
            Work::Snapshot { bytes, .. } => bytes.len(),
            Work::Delete | Work::Spoil { .. } | Work::Rename { .. } => 0,
        }
    }
}

/// The next batch, and how many sessions it is of.
pub(super) fn gather(first: Job, jobs: &Receiver<Job>, company: usize) -> (Vec<Job>, usize) {
    let mut bytes = first.work.bytes();
    let mut sessions = BTreeSet::from([first.session.clone()]);
    let mut hurry = first.when == When::Now;
    let mut batch = vec![first];
    let (mut waits, mut lingers) = (0, 0);
    while batch.len() < BATCH_JOBS && bytes < BATCH_BYTES {
        let next = match jobs.try_recv().ok() {
            None if !hurry && lingers < LINGER_WAITS => {
                lingers += 1;
                jobs.recv_timeout(LINGER).ok()
            }
            None if sessions.len() < company && waits < GATHER_WAITS => {
                waits += 1;
                jobs.recv_timeout(GATHER).ok()
            }
            next => next,
        };
        let Some(job) = next else { break };
        bytes += job.work.bytes();
        hurry |= job.when == When::Now;
        if !sessions.contains(&job.session) {
            sessions.insert(job.session.clone());
        }
        batch.push(job);
    }
    (batch, sessions.len())
}
