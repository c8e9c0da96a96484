//! What servers tell and ask, on its way to the session: tools that changed, questions beside
//! calls.

use std::sync::Arc;

use locum_kernel::{CallId, Input, Key, Wonder};
use locum_mcp::Event;
use locum_runtime::driver::Handle;

use super::Inner;
use super::wonder::Over;

impl Inner {
    async fn put(&self, handle: &Handle, (key, wonder): (Key, Wonder)) {
        let id = wonder.id;
        match handle.post(Input::Wondered { key, wonder }).await {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => self.wonders.unheard(&self.all, id, &why.to_string()),
            Err(closed) => self.wonders.unheard(&self.all, id, &closed.to_string()),
        }
    }
}

/// A call that runs, and what servers may ask beside it; over when it is dropped.
pub(super) struct Beside {
    inner: Arc<Inner>,
    key: Key,
}

impl Beside {
    pub(super) fn begin(inner: Arc<Inner>, key: Key, server: &str, call: CallId) -> Beside {
        inner.wonders.begin(key, server, call);
        Beside { inner, key }
    }

    pub(super) fn end(self) -> Over {
        self.inner.wonders.end(&self.inner.all, self.key)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.inner.wonders.end(&self.inner.all, self.key);
    }
}

/// Passes on what servers tell for as long as the session is driven. One event at a time: what is
/// told twice meanwhile is told once.
pub(super) async fn run(inner: Arc<Inner>, handle: Handle) {
    // Whoever came up between the listing and now.
    changed(&inner, &handle, None).await;
    loop {
        tokio::select! {
            event = inner.all.next_event() => match event {
                Event::ToolsChanged { server } => changed(&inner, &handle, Some(&server)).await,
                Event::Asked(request) => {
                    if let Some(put) = inner.wonders.asked(&inner.all, request) {
                        inner.put(&handle, put).await;
                    }
                }
                Event::Withdrawn { id } => inner.wonders.withdrawn(id),
                Event::ResourcesChanged { .. }
                | Event::PromptsChanged { .. }
                | Event::ResourceUpdated { .. }
                | Event::State { .. } => {}
            },
            put = inner.wonders.again(&inner.all) => inner.put(&handle, put).await,
        }
    }
}

pub(super) async fn changed(inner: &Inner, handle: &Handle, server: Option<&str>) {
    if let Some(server) = server {
        inner.keep(server);
    }
    let _until_it_is_safe = inner.telling.lock().await;
    let beside = inner.beside(&inner.specs());
    let (tools, gone) = inner.renew();
    if !tools.is_empty() || !gone.is_empty() {
        // A session that was closed needs no tools.
        let _closed = handle.post(Input::Retooled { tools, gone, beside }).await;
    }
}
