//! A streamed completion put together: chunks in, a whole reply out, or the reason there is none.
//!
//! Nothing in this wire closes a call, and not everybody sends the mark that ends a stream. What
//! has to be there is the reason to stop: it comes after the last word. Then either the mark, or an
//! end that is known to be one (`Ending`). Whatever breaks off before is a failure, however much of
//! it was heard, so that half a call can never be run.

use locum_kernel::{Failure, FailureKind, Reply, Usage};
use serde_json::{Value, json};

use super::calls::Calls;
use super::event::{Choice, Chunk, Counts, Delta, Shape};
use super::presets::{Dialect, Quirk};
use super::{failure_named, name_and_words};
use crate::live::Live;
use crate::wire::sse::Event;
use crate::wire::{Decoded, Decoder, failed, malformed};

/// One chunk. A whole answer may come as one; anything longer is none, and parsed it could take
/// many times its size.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text, reasoning and arguments of one answer together.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the end of the bytes is worth, if no mark came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Somebody vouches that nothing is missing: the transport, or whoever recorded only events.
    Clean,
    /// Nobody does: only the mark counts.
    Marked,
}

#[derive(Debug)]
pub(crate) struct Stream {
    live: Live,
    dialect: Dialect,
    ending: Ending,
    begun: bool,
    text: String,
    thinking: String,
    refusal: String,
    /// Reasoning as the provider wants it back.
    details: Vec<Value>,
    calls: Calls,
    speaking: Voice,
    /// How much of the text and of the thinking listeners have had.
    told: [usize; 2],
    kept_bytes: usize,
    usage: Counts,
    stop: Option<String>,
    done: bool,
    /// Part of something came that was no chunk.
    torn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Text = 0,
    Thinking = 1,
}

impl Stream {
    pub(crate) fn new(live: Live, dialect: Dialect, ending: Ending) -> Stream {
        Stream {
            live,
            dialect,
            ending,
            begun: false,
            text: String::new(),
            thinking: String::new(),
            refusal: String::new(),
            details: Vec::new(),
            calls: Calls::default(),
            speaking: Voice::Thinking,
            told: [0; 2],
            kept_bytes: 0,
            usage: Counts::default(),
            stop: None,
            done: false,
            torn: false,
        }
    }

    fn hear(&mut self, chunk: Chunk<'_>) -> Result<(), Failure> {
        if let Some(error) = chunk.error {
            return Err(in_stream(&error));
        }
        self.begun |= chunk.choices.is_some();
        self.usage.learn(chunk.x_groq.and_then(|extra| extra.usage));
        for choice in chunk.choices.into_iter().flatten() {
            // Only one answer was asked for.
            if choice.index.unwrap_or(0) == 0 {
                self.choose(choice)?;
            }
        }
        self.usage.learn(chunk.usage);
        Ok(())
    }

    fn choose(&mut self, choice: Choice<'_>) -> Result<(), Failure> {
        if let Some(error) = choice.error {
            return Err(in_stream(&error));
        }
        self.usage.learn(choice.usage);
        let stop = choice.finish_reason.text;
        if !stop.is_empty() {
            self.stop = Some(stop.into_owned());
        }
        match (choice.delta, choice.message) {
            (Some(delta), _) => self.grow(delta),
            (None, Some(message)) => {
                // All of it at once: nothing more can come.
                self.done = self.stop.is_some();
                self.grow(message)
            }
            (None, None) => Ok(()),
        }
    }

    fn grow(&mut self, delta: Delta<'_>) -> Result<(), Failure> {
        let named = &delta.reasoning_content.text;
        let thought = if named.is_empty() { &delta.reasoning.text } else { named };
        self.say(Voice::Thinking, thought)?;
        self.say(Voice::Thinking, &delta.content.thinking)?;
        self.say(Voice::Text, &delta.content.text)?;
        self.refusal.push_str(&delta.refusal.text);
        self.keep(delta.refusal.text.len())?;
        if let Some(Value::Array(details)) = delta.reasoning_details
            && self.dialect.has(Quirk::DetailsBack)
        {
            details.into_iter().try_for_each(|detail| self.detail(detail))?;
        }
        for call in delta.tool_calls.iter().flatten() {
            let added = self.calls.grow(call)?;
            self.keep(added)?;
        }
        Ok(())
    }

    fn say(&mut self, voice: Voice, part: &str) -> Result<(), Failure> {
        if part.is_empty() {
            return Ok(());
        }
        if voice != self.speaking {
            self.tell();
            self.speaking = voice;
        }
        match voice {
            Voice::Text => self.text.push_str(part),
            Voice::Thinking => self.thinking.push_str(part),
        }
        self.keep(part.len())
    }

    /// Reasoning the provider wants back comes in pieces of its own.
    fn detail(&mut self, detail: Value) -> Result<(), Failure> {
        self.keep(detail.to_string().len())?;
        let same = |last: &&mut Value| {
            last["type"] == detail["type"]
                && last["index"] == detail["index"]
                && (detail["id"].is_null() || last["id"] == detail["id"])
        };
        match (self.details.last_mut().filter(same), detail) {
            (Some(last), Value::Object(detail)) => {
                for (field, value) in detail {
                    join(&mut last[field.as_str()], &field, value);
                }
            }
            (_, detail) if detail["type"].is_string() => self.details.push(detail),
            (_, _) => {}
        }
        Ok(())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX {
            return Err(malformed("the answer is longer than any answer"));
        }
        Ok(())
    }

    /// Tells listeners what they have not had of the voice that speaks.
    fn tell(&mut self) {
        let told = &mut self.told[self.speaking as usize];
        let said = match self.speaking {
            Voice::Text => &self.text,
            Voice::Thinking => &self.thinking,
        };
        match self.speaking {
            Voice::Text => self.live.text(&said[*told..]),
            Voice::Thinking => self.live.thinking(&said[*told..]),
        }
        *told = said.len();
    }

    fn counted(&self) -> Usage {
        let mut usage = self.usage.usage();
        if self.dialect.has(Quirk::ReasoningBesideOutput) {
            usage.output = usage.output.saturating_add(usage.reasoning);
        }
        usage
    }

    fn reply(self) -> Result<Reply, Failure> {
        let usage = self.counted();
        let stop = self.stop.ok_or_else(|| malformed("the answer ended without a reason"))?;
        if !self.refusal.is_empty() {
            return Err(failed(FailureKind::Filtered, self.refusal));
        }
        let why = match stop.as_str() {
            "content_filter" => Some((FailureKind::Filtered, "the answer was withheld")),
            "error" => Some((FailureKind::Server, "the provider broke off")),
            "insufficient_system_resource" => Some((FailureKind::Overloaded, "no room for it")),
            _ => None,
        };
        if let Some((kind, why)) = why {
            return Err(failed(kind, why));
        }
        if self.calls.is_empty() && ["tool_calls", "function_call"].contains(&stop.as_str()) {
            return Err(malformed("the answer says it calls a tool, but does not"));
        }
        let was_cut = ["length", "model_length", "max_tokens"].contains(&stop.as_str());
        let mut reasoning = self.details;
        if self.dialect.has(Quirk::ReasoningBack) && !self.thinking.is_empty() {
            reasoning.push(json!({ "type": "reasoning_content", "text": self.thinking }));
        }
        Ok(Reply {
            brings: Vec::new(),
            flaw: None,
            text: self.text,
            reasoning: (!reasoning.is_empty()).then_some(Value::Array(reasoning)),
            calls: self.calls.whole(was_cut)?,
            usage,
            micro_usd: None,
        })
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = self.begun;
            return if self.begun { Ok(()) } else { Err(malformed("an end without a beginning")) };
        }
        if data.len() > EVENT_BYTES_MAX {
            return Err(malformed("an event longer than any event"));
        }
        match serde_json::from_slice::<Chunk<'_>>(data) {
            // Some name only the event, and send the error without its envelope.
            Ok(Chunk { choices: None, error: None, .. }) if event.name == b"error" => {
                Err(in_stream(&serde_json::from_slice(data).unwrap_or_default()))
            }
            Ok(chunk) => self.hear(chunk),
            Err(error) => {
                let shape = serde_json::from_slice(data);
                if matches!(shape, Ok(Shape { choices: None, error: None })) {
                    return Ok(());
                }
                self.torn = true;
                Err(malformed(&format!("an event that does not parse: {error}")))
            }
        }
    }

    fn pause(&mut self) {
        self.tell();
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_begun(&self) -> bool {
        self.begun
    }

    fn decoded(&self) -> Decoded {
        Decoded {
            text: self.text.clone(),
            reasoning: self.thinking.clone(),
            calls: self.calls.decoded(self.stop.is_none()),
            usage: self.counted(),
            stop: self.stop.clone(),
        }
    }

    fn finish(self) -> Result<Reply, Failure> {
        let ended = self.stop.is_some() && self.ending == Ending::Clean && !self.torn;
        if !self.done && !ended {
            let heard = self.kept_bytes;
            let why = format!("the stream ended before the answer did, {heard} bytes into it");
            return Err(failed(FailureKind::Cut, why));
        }
        self.reply()
    }
}

/// Goes on with a field of reasoning: texts grow, everything else is what it was last.
fn join(before: &mut Value, field: &str, value: Value) {
    match (before, value) {
        (_, Value::Null) => {}
        (Value::String(before), Value::String(more))
            if ["text", "summary", "data"].contains(&field) =>
        {
            before.push_str(&more);
        }
        (before, value) => *before = value,
    }
}

/// What a provider says went wrong after it had begun to answer. An error that says nothing more is
/// still the provider's fault: it had taken the request.
fn in_stream(error: &Value) -> Failure {
    let (name, words) = name_and_words(error);
    let kind = failure_named(&name, &words);
    let is_ours = name == "invalid_request_error" || name.starts_with('4');
    let unknown = kind == FailureKind::Other && !is_ours;
    let words = if words.is_empty() { "the provider broke off".into() } else { words };
    failed(if unknown { FailureKind::Server } else { kind }, words)
}
