//! A transport that a noisy server cannot use to fill our memory. The SDK starts a task for each
//! request and notification it receives and queues every answer; here no more is received while
//! too many are in our hands or too many of our answers wait for their reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Duration, Instant, sleep_until};

use crate::limits;

pub(crate) struct Gate<T> {
    inner: T,
    /// One is held for the next message; it leaves with a request or notification and comes
    /// back when that is dropped.
    room: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    unread: Arc<Unread>,
    second: Instant,
    chatter: u32,
    /// Nothing more will come.
    closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Unread {
    count: AtomicUsize,
    fewer: Notify,
}

/// Rides along in the message; cloning the message must not free its place.
#[derive(Clone)]
struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

struct Sending(Arc<Unread>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.fewer.notify_one();
    }
}

impl<T: Transport<RoleClient>> Gate<T> {
    pub(crate) fn new(inner: T, closed: watch::Sender<bool>) -> Gate<T> {
        Gate {
            inner,
            room: Arc::new(Semaphore::new(limits::HANDLED)),
            permit: None,
            unread: Arc::default(),
            second: Instant::now(),
            chatter: 0,
            closed,
        }
    }

    /// May be dropped at any await: what was achieved is in `self`.
    async fn wait_for_room(&mut self) {
        if self.chatter >= limits::CHATTER {
            sleep_until(self.second + Duration::from_secs(1)).await;
        }
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.chatter = 0;
        }
        loop {
            let fewer = self.unread.fewer.notified();
            if self.unread.count.load(Ordering::Acquire) < limits::UNREAD {
                break;
            }
            fewer.await;
        }
        if self.permit.is_none() {
            // The semaphore is never closed; without a permit the worst is one message more.
            self.permit = Arc::clone(&self.room).acquire_owned().await.ok();
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Gate<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.unread.count.fetch_add(1, Ordering::AcqRel);
        let sending = Sending(Arc::clone(&self.unread));
        let send = self.inner.send(item);
        async move {
            let result = send.await;
            drop(sending);
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.wait_for_room().await;
        let mut message = self.inner.receive().await;
        let extensions = match &mut message {
            Some(JsonRpcMessage::Request(request)) => Some(request.request.extensions_mut()),
            Some(JsonRpcMessage::Notification(notification)) => {
                Some(notification.notification.extensions_mut())
            }
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => None,
            None => {
                self.closed.send_replace(true);
                None
            }
        };
        if let Some(extensions) = extensions {
            self.chatter += 1;
            if let Some(permit) = self.permit.take() {
                extensions.insert(Place { _permit: Arc::new(permit) });
            }
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
