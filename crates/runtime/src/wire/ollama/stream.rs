//! A streamed answer put together: lines in, a whole reply out, or the reason there is none.
//!
//! A reply exists only if the last line said so (`done`). Calls come whole, each in one line.

use locum_kernel::limits::ARGUMENT_BYTES_MAX;
use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use super::event::{Call, Heard};
use super::{THINKING, explained, failure_named};
use crate::live::Live;
use crate::wire::sse::Event;
use crate::wire::{Decoded, DecodedCall, Decoder, failed, malformed};

/// Calls of one answer. No model needs a tenth of it.
const CALLS_MAX: usize = 4_096;
/// One line. A gateway may send a whole answer as one; anything longer is none, and parsed it could
/// take many times its size.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text, reasoning and arguments of one answer together.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Stream {
    live: Live,
    text: String,
    thinking: String,
    calls: Vec<DecodedCall>,
    /// How much of the text and of the thinking listeners have had.
    told: (usize, usize),
    kept_bytes: usize,
    usage: Usage,
    stop: Option<String>,
    begun: bool,
    done: bool,
}

impl Stream {
    pub(crate) fn new(live: Live) -> Stream {
        Stream {
            live,
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            told: (0, 0),
            kept_bytes: 0,
            usage: Usage::default(),
            stop: None,
            begun: false,
            done: false,
        }
    }

    fn hear(&mut self, heard: Heard<'_>, bytes: usize) -> Result<(), Failure> {
        if let Some(error) = heard.error {
            return Err(in_stream(&error));
        }
        if let Some(message) = heard.message {
            self.begun = true;
            self.keep(message.content.len() + message.thinking.len())?;
            if !message.thinking.is_empty() {
                // What was said before comes first.
                self.tell_text();
                self.thinking.push_str(&message.thinking);
            }
            if !message.content.is_empty() {
                self.tell_thinking();
                self.text.push_str(&message.content);
            }
            for call in message.tool_calls.unwrap_or_default() {
                self.call(call, bytes)?;
            }
        }
        self.usage.input = heard.prompt_eval_count.unwrap_or(self.usage.input);
        self.usage.output = heard.eval_count.unwrap_or(self.usage.output);
        if heard.done {
            self.begun = true;
            self.done = true;
            let reason = heard.done_reason.0;
            self.stop = (!reason.is_empty()).then(|| reason.into_owned());
        }
        Ok(())
    }

    fn call(&mut self, call: Call, bytes: usize) -> Result<(), Failure> {
        let name = call.function.name;
        if name.is_empty() {
            return Err(malformed("a call of a tool without a name"));
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(malformed("too many calls in one answer"));
        }
        let given = call.id.filter(|id| !id.is_empty());
        if given.as_ref().is_some_and(|id| self.calls.iter().any(|other| other.id == *id)) {
            return Err(malformed("two calls of one answer have the same id"));
        }
        let id = given.unwrap_or_else(|| format!("call_{}", self.calls.len()));
        self.keep(id.len() + name.len() + bytes)?;
        let arguments = parsed(call.function.arguments, bytes);
        self.calls.push(DecodedCall { id, name, arguments });
        Ok(())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX {
            return Err(malformed("the answer is longer than any answer"));
        }
        Ok(())
    }

    fn tell_text(&mut self) {
        self.live.text(&self.text[self.told.0..]);
        self.told.0 = self.text.len();
    }

    fn tell_thinking(&mut self) {
        self.live.thinking(&self.thinking[self.told.1..]);
        self.told.1 = self.thinking.len();
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure> {
        if self.done {
            return Ok(());
        }
        let bytes = event.data.len();
        if bytes > LINE_BYTES_MAX {
            return Err(malformed("an event longer than any event"));
        }
        // A list would pass for the fields in their order.
        if event.data.trim_ascii_start().first() != Some(&b'{') {
            return Err(malformed("a line that is no object"));
        }
        let heard = serde_json::from_slice(event.data)
            .map_err(|error| malformed(&format!("an event that does not parse: {error}")))?;
        self.hear(heard, bytes)
    }

    fn pause(&mut self) {
        // At most one of them has anything new.
        self.tell_thinking();
        self.tell_text();
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
            calls: self.calls.clone(),
            usage: self.usage,
            stop: self.stop.clone(),
        }
    }

    fn finish(self) -> Result<Reply, Failure> {
        if !self.done {
            let heard = self.kept_bytes;
            let why = format!("the stream ended before the answer did, {heard} bytes into it");
            return Err(failed(FailureKind::Cut, why));
        }
        let stop = self.stop.as_deref().unwrap_or("stop");
        if stop == "load" || stop == "unload" {
            return Err(malformed("the model was loaded but said nothing"));
        }
        let was_cut = stop == "length";
        let of_call = |DecodedCall { name, arguments, .. }: DecodedCall| {
            // No room to write them is not the same as none.
            let none = arguments.as_object().is_some_and(serde_json::Map::is_empty);
            let arguments = if was_cut && none { Value::String(String::new()) } else { arguments };
            Use::new(name, arguments)
        };
        let thinking = json!([{ "type": THINKING, "thinking": self.thinking }]);
        Ok(Reply {
            brings: Vec::new(),
            flaw: None,
            text: self.text,
            reasoning: (!self.thinking.is_empty()).then_some(thinking),
            calls: self.calls.into_iter().map(of_call).collect(),
            usage: self.usage,
            micro_usd: None,
        })
    }
}

/// Arguments are an object, or the text of what came instead: the kernel runs no such call and
/// tells the model. Some gateways put the object into a string.
fn parsed(arguments: Value, bytes: usize) -> Value {
    match arguments {
        Value::Null => json!({}),
        // Far beyond what the kernel runs they are not worth their memory.
        Value::Object(object) if bytes <= 4 * ARGUMENT_BYTES_MAX => Value::Object(object),
        Value::String(text) if bytes <= 4 * ARGUMENT_BYTES_MAX => {
            let object = serde_json::from_str(&text).ok().filter(Value::is_object);
            object.unwrap_or(Value::String(text))
        }
        Value::String(text) => Value::String(text),
        other @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)) => {
            Value::String(other.to_string())
        }
    }
}

/// What a server says went wrong after it had begun to answer. What is not known here is still its
/// fault: it had taken the request.
fn in_stream(error: &Value) -> Failure {
    let words = explained(error).unwrap_or_else(|| "the provider broke off".into());
    let kind = failure_named("", &words);
    failed(if kind == FailureKind::Other { FailureKind::Server } else { kind }, words)
}
