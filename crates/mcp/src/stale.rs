//! Whether what is known of a server's tools is still what it has: how often it announced a change,
//! and how much of that was read since.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Stale {
    announced: watch::Sender<u64>,
    read: watch::Sender<u64>,
}

impl Stale {
    pub(crate) fn new() -> Stale {
        Stale { announced: watch::Sender::new(0), read: watch::Sender::new(0) }
    }

    pub(crate) fn announce(&self) {
        self.announced.send_modify(|count| *count += 1);
    }

    fn announced(&self) -> u64 {
        *self.announced.borrow()
    }

    fn read(&self) -> u64 {
        *self.read.borrow()
    }

    /// Waits for an announcement that was not read, and says how far reading now would come.
    pub(crate) async fn wanted(&self) -> u64 {
        let mut announced = self.announced.subscribe();
        let news = announced.wait_for(|count| *count > self.read()).await.map(|count| *count);
        // We hold the sender.
        news.unwrap_or_default()
    }

    /// Whatever came of it: what cannot be read is not waited for.
    pub(crate) fn was_read(&self, so_far: u64) {
        self.read.send_replace(so_far);
    }

    /// Waits until everything announced so far was read, no longer than this. Whether there was
    /// anything.
    pub(crate) async fn caught_up(&self, patience: Duration) -> bool {
        let wanted = self.announced();
        if self.read() >= wanted {
            return false;
        }
        let mut read = self.read.subscribe();
        // A server that takes longer is believed when it is done.
        let _late = timeout(patience, read.wait_for(|count| *count >= wanted)).await;
        true
    }
}
