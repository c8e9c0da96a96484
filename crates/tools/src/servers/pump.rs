//! What servers tell and ask, on its way to the session: tools that changed, questions beside
//! calls.

use std::sync::Arc;

use locum_kernel::{CallId, Input, Key, Wonder};
use locum_mcp::{Event, Kind, Request};
use locum_runtime::driver::Handle;

use super::Inner;
use super::wonder::Over;

const NOBODY: &str = "nobody is there";
/// Of a question, in a line about it.
const QUESTION_CHARACTERS_MAX: usize = 200;

/// Who wanted what, and why it was declined.
fn unanswered(request: &Request, why: &str) -> String {
    let (wanted, asked) = match &request.kind {
        Kind::Elicitation { message, .. } => ("asked", message.clone()),
        Kind::Visit { message, url } => ("wanted a page opened", format!("{message} {url}")),
        Kind::Sampling { text, .. } => ("wanted to ask the model", text.clone()),
    };
    let words = asked.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_long = words.chars().count() > QUESTION_CHARACTERS_MAX;
    let cut = if is_long { "…" } else { "" };
    let asked: String = words.chars().take(QUESTION_CHARACTERS_MAX).collect();
    let server = &request.server;
    format!("note: MCP server {server} {wanted}: {asked}{cut} (declined: {why})")
}

impl Inner {
    /// Puts a question to the session; what people should know of it, if nobody will hear it.
    async fn put(&self, handle: &Handle, (key, wonder): (Key, Wonder)) -> Option<String> {
        let id = wonder.id;
        match handle.post(Input::Wondered { key, wonder }).await {
            Ok(Ok(_)) => None,
            Ok(Err(why)) => {
                let request = self.wonders.unheard(&self.all, id, &why.to_string());
                request.map(|request| unanswered(&request, &why.to_string()))
            }
            Err(closed) => {
                self.wonders.unheard(&self.all, id, &closed.to_string());
                None
            }
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
pub(super) async fn run(inner: Arc<Inner>, handle: Handle, tell: fn(&str)) {
    // Whoever came up between the listing and now.
    changed(&inner, &handle, None).await;
    loop {
        tokio::select! {
            event = inner.all.next_event() => match event {
                Event::ToolsChanged { server } => changed(&inner, &handle, Some(&server)).await,
                Event::Asked(request) => {
                    if let Some(put) = inner.wonders.asked(&inner.all, request) {
                        inner.put(&handle, put).await.iter().for_each(|it| tell(it));
                    }
                }
                Event::Declined(request) => tell(&unanswered(&request, NOBODY)),
                Event::Withdrawn { id } => inner.wonders.withdrawn(id),
                Event::ResourcesChanged { .. }
                | Event::PromptsChanged { .. }
                | Event::ResourceUpdated { .. }
                | Event::State { .. } => {}
            },
            put = inner.wonders.again(&inner.all) => {
                inner.put(&handle, put).await.iter().for_each(|it| tell(it));
            }
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
        let _closed = handle.post(Input::Retooled { tools, gone, beside, to: None }).await;
    }
}
