//! What is under way, by key. The only place that spawns: a task is started because something is
//! owed, and dropped as soon as it no longer is. So nothing runs that the state does not know of.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use locum_kernel::{Input, Key};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

#[derive(Debug, Default)]
pub(crate) struct Inflight {
    tasks: JoinSet<(Key, Input)>,
    running: BTreeMap<Key, Running>,
}

#[derive(Debug)]
struct Running {
    handle: AbortHandle,
    /// What to say if the task dies of a fault of ours.
    panicked: fn(Key) -> Input,
}

impl Inflight {
    pub(crate) fn has(&self, key: Key) -> bool {
        self.running.contains_key(&key)
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    pub(crate) fn start(
        &mut self,
        key: Key,
        panicked: fn(Key) -> Input,
        task: impl Future<Output = Input> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(async move { (key, task.await) });
        self.running.insert(key, Running { handle, panicked });
    }

    /// Drops what is no longer owed.
    pub(crate) fn keep(&mut self, owed: &BTreeSet<Key>) {
        self.running.retain(|key, running| {
            let keep = owed.contains(key);
            if !keep {
                running.handle.abort();
            }
            keep
        });
    }

    /// The next task that ends; never, if none is under way.
    pub(crate) async fn next(&mut self) -> Input {
        loop {
            let Some(ended) = self.tasks.join_next().await else {
                return std::future::pending().await;
            };
            if let Some(input) = self.heard(ended) {
                return input;
            }
        }
    }

    /// A task that has ended already.
    pub(crate) fn try_next(&mut self) -> Option<Input> {
        loop {
            let ended = self.tasks.try_join_next()?;
            if let Some(input) = self.heard(ended) {
                return Some(input);
            }
        }
    }

    /// A task that was dropped too late is heard all the same, and found stale.
    fn heard(&mut self, ended: Result<(Key, Input), JoinError>) -> Option<Input> {
        match ended {
            Ok((key, input)) => {
                self.running.remove(&key);
                Some(input)
            }
            Err(error) => {
                let (key, running) = self.forget(error.id())?;
                error.is_panic().then(|| (running.panicked)(key))
            }
        }
    }

    fn forget(&mut self, id: Id) -> Option<(Key, Running)> {
        let key = self.running.iter().find(|(_, it)| it.handle.id() == id).map(|(key, _)| *key)?;
        self.running.remove(&key).map(|running| (key, running))
    }

    /// Ends everything; whatever was under way is owed again when somebody opens the session.
    pub(crate) async fn stop(&mut self) {
        self.running.clear();
        self.tasks.shutdown().await;
    }
}
