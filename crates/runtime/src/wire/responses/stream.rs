//! A streamed response put together: events in, a whole reply out, or the reason there is none.
//!
//! A reply exists only if the provider said how the response ended, and a call only if its item was
//! done before. Servers that leave out the ends of items may give all of them with the last event;
//! text that was never ended stands if the response was completed, a call does not.

use std::collections::BTreeMap;

use locum_kernel::{Failure, FailureKind, Reply, Usage};
use serde_json::{Value, json};

use super::event::{Heard, KNOWN, Named, Response};
use super::fault::in_stream;
use super::item::{Body, Item, Kind, Part, State, parsed};
use super::reply::{End, reply};
use crate::live::Live;
use crate::wire::sse::Event;
use crate::wire::{Decoded, DecodedCall, Decoder, failed, malformed};

/// Items of one response. No model needs a tenth of it.
const ITEMS_MAX: usize = 1_024;
/// One event. The last one repeats the whole answer; anything longer is none, and parsed it could
/// take many times its size.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text, reasoning and arguments of one response together.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Stream {
    live: Live,
    begun: bool,
    /// The id of the response, once it is known.
    id: Option<String>,
    items: BTreeMap<u64, Item>,
    /// The server says when an item begins. One that does not is believed without.
    announces: bool,
    /// The item that spoke last.
    speaking: u64,
    kept_bytes: usize,
    usage: Usage,
    end: Option<End>,
    stop: Option<String>,
}

impl Stream {
    pub(crate) fn new(live: Live) -> Stream {
        Stream {
            live,
            begun: false,
            id: None,
            items: BTreeMap::new(),
            announces: false,
            speaking: 0,
            kept_bytes: 0,
            usage: Usage::default(),
            end: None,
            stop: None,
        }
    }

    fn hear(&mut self, event: Heard<'_>, name: &[u8]) -> Result<(), Failure> {
        let named = std::str::from_utf8(name).unwrap_or_default();
        // Gateways that put in an error of their own tend to name only the event, or nothing.
        let kind = match (event.kind.as_ref(), &event.error) {
            ("", Some(_)) => "error",
            ("", None) => named,
            (kind, _) => kind,
        };
        self.begun |= kind.starts_with("response.");
        let content = Part::Content(event.content_index.unwrap_or(0));
        let summary = Part::Summary(event.summary_index.unwrap_or(0));
        match kind {
            "response.output_text.delta" => self.say(Kind::Message, content, &event),
            "response.reasoning_summary_text.delta" => self.say(Kind::Reasoning, summary, &event),
            "response.reasoning_text.delta" => self.say(Kind::Reasoning, content, &event),
            "response.function_call_arguments.delta" | "response.function_call_arguments.done" => {
                self.argue(&event)
            }
            "response.output_text.done" => self.said(Kind::Message, content, &event),
            "response.reasoning_summary_text.done" => self.said(Kind::Reasoning, summary, &event),
            "response.reasoning_text.done" => self.said(Kind::Reasoning, content, &event),
            "response.refusal.delta" | "response.refusal.done" => self.refuse(&event),
            "response.output_item.added" => self.open(event.output_index, event.item),
            "response.output_item.done" => {
                let item = event.item.ok_or_else(|| malformed("the end of no item"))?;
                let at = event.output_index.unwrap_or_else(|| self.place_of(&item));
                self.close(at, item)
            }
            "response.created" | "response.in_progress" => {
                self.same(&event.response.unwrap_or_default())
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.end(kind, event.response.unwrap_or_default())
            }
            "error" => {
                let flat = json!({ "code": event.code, "message": event.message });
                Err(in_stream(&event.error.unwrap_or(flat)))
            }
            _ => Ok(()),
        }
    }

    /// Two responses in one stream are two answers spliced together.
    fn same(&mut self, response: &Response) -> Result<(), Failure> {
        let Some(id) = response.id.as_deref().filter(|id| !id.is_empty()) else { return Ok(()) };
        match &self.id {
            Some(known) if known != id => {
                Err(malformed("a second response in the middle of the first"))
            }
            Some(_) => Ok(()),
            None => {
                self.id = Some(id.to_owned());
                Ok(())
            }
        }
    }

    fn open(&mut self, at: Option<u64>, item: Option<Value>) -> Result<(), Failure> {
        self.announces = true;
        // Seen of real servers: an item that is nothing.
        let Some(item) = item else { return Ok(()) };
        self.insert(at.unwrap_or_else(|| self.next_place()), Item::begun(&item))
    }

    fn next_place(&self) -> u64 {
        self.items.last_key_value().map_or(0, |(at, _)| at.saturating_add(1))
    }

    /// Where an item belongs that ends without saying so: with the one of its name, or the only one
    /// of its kind; else it is one of its own.
    fn place_of(&self, item: &Value) -> u64 {
        let open = self.items.iter().filter(|(_, it)| it.state == State::Open);
        let named = open.clone().find(|(_, it)| it.is(item));
        let mut alike = open.filter(|(_, it)| it.kind() == Kind::of(item));
        let only = match (alike.next(), alike.next()) {
            (Some(only), None) => Some(only),
            (Some(_) | None, _) => None,
        };
        named.or(only).map_or_else(|| self.next_place(), |(at, _)| *at)
    }

    fn insert(&mut self, index: u64, item: Item) -> Result<(), Failure> {
        if self.items.len() >= ITEMS_MAX {
            return Err(malformed("too many items in one response"));
        }
        if self.items.insert(index, item).is_some() {
            return Err(malformed("two items of one response have the same index"));
        }
        Ok(())
    }

    fn close(&mut self, index: u64, item: Value) -> Result<(), Failure> {
        match self.items.get(&index).map(|item| item.state) {
            Some(State::Open) => {}
            Some(State::Done | State::Short) => {
                return Err(malformed("the end of an item that is not open"));
            }
            None => self.insert(index, Item::begun(&item))?,
        }
        self.turn_to(index);
        let kept = self.items.get_mut(&index).map_or(Ok(0), |open| open.settle(item))?;
        self.keep(kept)
    }

    fn turn_to(&mut self, index: u64) {
        if index != self.speaking {
            self.tell();
            self.speaking = index;
        }
    }

    /// The item a piece belongs to. None: it is nobody's, and nothing is lost with it.
    fn item(&mut self, event: &Heard<'_>, kind: Kind) -> Result<Option<&mut Body>, Failure> {
        let named = || self.items.iter().rev().find(|(_, item)| item.is_called(&event.item_id));
        let index = match event.output_index.or_else(|| named().map(|(at, _)| *at)) {
            None if !self.announces => 0,
            at => index(at)?,
        };
        if !self.announces && !self.items.contains_key(&index) {
            self.insert(index, Item::new(kind))?;
        }
        self.turn_to(index);
        let item = self.items.get_mut(&index).filter(|item| item.state == State::Open);
        let item = item.ok_or_else(|| malformed("a piece of an item that is not open"))?;
        match (item.kind(), kind) {
            (Kind::Other, _) | (_, Kind::Reasoning | Kind::Other) if item.kind() != kind => {
                Ok(None)
            }
            (is, kind) if is == kind => Ok(Some(&mut item.body)),
            (..) => Err(malformed("a piece of another kind than its item")),
        }
    }

    fn say(&mut self, kind: Kind, part: Part, event: &Heard<'_>) -> Result<(), Failure> {
        let added = match self.item(event, kind)? {
            Some(Body::Message { said, .. } | Body::Reasoning { said, .. }) => {
                said.add(part, kind, &event.delta)
            }
            Some(Body::Call { .. } | Body::Other) | None => 0,
        };
        self.keep(added)
    }

    fn said(&mut self, kind: Kind, part: Part, event: &Heard<'_>) -> Result<(), Failure> {
        let added = match self.item(event, kind)? {
            Some(Body::Message { said, .. } | Body::Reasoning { said, .. }) => {
                said.end(part, kind, &event.text)
            }
            Some(Body::Call { .. } | Body::Other) | None => 0,
        };
        self.keep(added)
    }

    fn argue(&mut self, event: &Heard<'_>) -> Result<(), Failure> {
        let Some(Body::Call { arguments, .. }) = self.item(event, Kind::Call)? else {
            return Ok(());
        };
        // Those that are done stand for all their pieces.
        if !event.arguments.is_empty() {
            arguments.clear();
        }
        arguments.push_str(&event.delta);
        arguments.push_str(&event.arguments);
        self.keep(event.delta.len() + event.arguments.len())
    }

    fn refuse(&mut self, event: &Heard<'_>) -> Result<(), Failure> {
        let Some(Body::Message { refusal, .. }) = self.item(event, Kind::Message)? else {
            return Ok(());
        };
        if !event.refusal.is_empty() {
            refusal.clear();
        }
        refusal.push_str(&event.delta);
        refusal.push_str(&event.refusal);
        self.keep(event.delta.len() + event.refusal.len())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX {
            return Err(malformed("the answer is longer than any answer"));
        }
        Ok(())
    }

    /// Tells listeners what they have not had of the item that speaks.
    fn tell(&mut self) {
        let Some(item) = self.items.get_mut(&self.speaking) else { return };
        match &mut item.body {
            Body::Message { said, .. } => self.live.text(said.untold()),
            Body::Reasoning { said, .. } => self.live.thinking(said.untold()),
            Body::Call { .. } | Body::Other => {}
        }
    }

    fn end(&mut self, event: &str, response: Response) -> Result<(), Failure> {
        self.same(&response)?;
        self.usage = response.usage.unwrap_or_default().usage();
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let status = response.status.as_deref().unwrap_or_default();
        let output = response.output.unwrap_or_default();
        let end = match (event, status) {
            ("response.failed", _) | (_, "failed" | "cancelled") => {
                self.stop = Some("failed".into());
                return Err(in_stream(&response.error.unwrap_or_default()));
            }
            ("response.incomplete", _) | (_, "incomplete") => End::Incomplete,
            ("response.completed", _) | (_, "completed") => {
                End::Completed { listed: !output.is_empty() }
            }
            (..) => return Err(malformed("the response ended without saying how")),
        };
        self.fill(output)?;
        let word = match end {
            End::Completed { .. } => "completed",
            End::Incomplete => "incomplete",
        };
        self.stop = Some(reason.unwrap_or_else(|| word.to_owned()));
        self.end = Some(end);
        Ok(())
    }

    /// Takes from the whole output what was not told on the way.
    fn fill(&mut self, output: Vec<Value>) -> Result<(), Failure> {
        let mut known: BTreeMap<u64, bool> = self.items.keys().map(|at| (*at, false)).collect();
        for (at, item) in (0u64..).zip(output) {
            let kind = Kind::of(&item);
            if kind == Kind::Other {
                continue;
            }
            // Positions may shift and names may change: the next of its kind is the same one too.
            let next = |is: &dyn Fn(&Item) -> bool| {
                let free =
                    self.items.iter().find(|(at, item)| known.get(at) == Some(&false) && is(item));
                free.map(|(at, _)| *at)
            };
            let found =
                next(&|heard| heard.is(&item)).or_else(|| next(&|heard| heard.kind() == kind));
            let Some(found) = found else {
                let at = if self.items.contains_key(&at) { self.next_place() } else { at };
                self.close(at, item)?;
                continue;
            };
            known.insert(found, true);
            if self.items.get(&found).is_some_and(|item| item.state == State::Open) {
                self.close(found, item)?;
            }
        }
        Ok(())
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure> {
        // Some end every stream like this; what ends a response is said before.
        if self.end.is_some() || event.data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        if event.data.len() > EVENT_BYTES_MAX {
            return Err(malformed("an event longer than any event"));
        }
        match serde_json::from_slice::<Heard<'_>>(event.data) {
            Ok(heard) => self.hear(heard, event.name),
            Err(error) => match serde_json::from_slice::<Named<'_>>(event.data) {
                Ok(Named { kind }) if !KNOWN.contains(&kind.as_ref()) => Ok(()),
                Ok(_) | Err(_) => Err(malformed(&format!("an event that does not parse: {error}"))),
            },
        }
    }

    fn pause(&mut self) {
        self.tell();
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn has_begun(&self) -> bool {
        self.begun
    }

    fn decoded(&self) -> Decoded {
        let mut decoded =
            Decoded { usage: self.usage, stop: self.stop.clone(), ..Decoded::default() };
        for item in self.items.values() {
            match &item.body {
                Body::Message { said, .. } => decoded.text.push_str(&said.text),
                Body::Reasoning { said, .. } => decoded.reasoning.push_str(&said.text),
                Body::Call { id, name, arguments } => {
                    let (id, name) = (id.clone(), name.clone());
                    let arguments = parsed(arguments, item.state);
                    decoded.calls.push(DecodedCall { id, name, arguments });
                }
                Body::Other => {}
            }
        }
        decoded
    }

    fn finish(self) -> Result<Reply, Failure> {
        let Some(end) = self.end else {
            let heard = self.kept_bytes;
            let why = format!("the stream ended before the answer did, {heard} bytes into it");
            return Err(failed(FailureKind::Cut, why));
        };
        let reply = reply(self.items.into_values(), end, self.stop.as_deref())?;
        Ok(Reply { usage: self.usage, ..reply })
    }
}

fn index(index: Option<u64>) -> Result<u64, Failure> {
    index.ok_or_else(|| malformed("an event of an item that does not say which"))
}
