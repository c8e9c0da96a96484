//! A reply as a stream of events, whole or up to where the script cuts it.

use locum_kernel::{Usage, Use};
use locum_runtime::script::{Words, pieces};
use serde_json::Value;

/// When everything was made. A moment that never changes, so that neither do the bytes.
pub(super) const CREATED: u64 = 1_700_000_000;

/// A reply, with all a wire needs to put it in its own words.
#[derive(Clone, Debug)]
pub(super) struct Speech {
    /// As it was asked for.
    pub(super) model: String,
    /// Names this place of this conversation; every id is made from it.
    pub(super) tag: String,
    pub(super) words: Words,
    pub(super) usage: Usage,
    pub(super) chunk: usize,
}

impl Speech {
    pub(super) fn pieces<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        pieces(text, self.chunk)
    }
}

/// The arguments as a model writes them; what is no object was malformed on purpose.
pub(super) fn arguments(call: &Use) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => value.to_string(),
    }
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Around what is said.
    Frame,
    /// A piece of what is said.
    Chunk,
    /// Nothing more is said.
    Last,
}

impl Event {
    pub(super) fn frame(text: String) -> Event {
        Event { kind: Kind::Frame, text }
    }

    pub(super) fn chunk(text: String) -> Event {
        Event { kind: Kind::Chunk, text }
    }

    pub(super) fn last(text: String) -> Event {
        Event { kind: Kind::Last, text }
    }
}

/// An event with a name, which its data repeats.
pub(super) fn named(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

pub(super) fn whole(events: Vec<Event>) -> impl Iterator<Item = String> {
    events.into_iter().map(|event| event.text)
}

/// Up to so many chunks, and never what would end it properly.
pub(super) fn cut(events: Vec<Event>, chunks: usize) -> impl Iterator<Item = String> {
    let mut left = chunks;
    let mut over = false;
    events.into_iter().map_while(move |event| {
        let chunk = event.kind == Kind::Chunk;
        if over || event.kind == Kind::Last || chunk && left == 0 {
            return None;
        }
        left -= usize::from(chunk);
        over = chunk && left == 0;
        Some(event.text)
    })
}
