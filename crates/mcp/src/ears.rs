//! Listens for what changes at a server of the newer kind, which tells only those who asked.

use std::sync::Arc;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient};

use crate::event::{Asks, Event};
use crate::stale::Stale;

/// Listens for what changes at a modern server.
pub(crate) struct Ears {
    pub(crate) server: String,
    pub(crate) asks: Arc<Asks>,
    pub(crate) stale: Arc<Stale>,
}

impl Ears {
    pub(crate) async fn listen(self, peer: Peer<RoleClient>, filter: SubscriptionFilter) {
        let Ok(mut heard) = peer.listen(filter).await else { return };
        while let Ok(Some(notification)) = heard.next().await {
            let server = self.server.clone();
            #[expect(clippy::wildcard_enum_match_arm, reason = "the protocol's, and it grows")]
            match notification {
                ServerNotification::ToolListChangedNotification(_) => self.stale.announce(),
                ServerNotification::PromptListChangedNotification(_) => {
                    self.asks.queue.push(Event::PromptsChanged { server });
                }
                ServerNotification::ResourceListChangedNotification(_) => {
                    self.asks.queue.push(Event::ResourcesChanged { server });
                }
                ServerNotification::ResourceUpdatedNotification(update) => {
                    let uri = update.params.uri;
                    self.asks.queue.push(Event::ResourceUpdated { server, uri });
                }
                // Nothing else was asked for.
                _ => {}
            }
        }
    }
}
