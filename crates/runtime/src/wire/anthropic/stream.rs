//! A streamed message put together: events in, a whole reply out, or the reason there is none.
//!
//! A reply exists only if the provider said it was done: every block closed, a reason to stop, and
//! the last event. Whatever breaks off before that is a failure, however much of it was heard, so
//! that half a call can never be run. What arrived in one piece is told to listeners in one piece.

use std::collections::BTreeMap;

use locum_kernel::limits::ARGUMENT_BYTES_MAX;
use locum_kernel::{Failure, FailureKind, Reply, Use};
use serde_json::Value;

use super::event::{Counts, Delta, Heard, KNOWN, Message, Named};
use super::failure_named;
use crate::live::Live;
use crate::wire::sse::Event;
use crate::wire::{Decoded, DecodedCall, Decoder, failed, malformed};

/// Blocks of one message. No model needs a tenth of it.
const BLOCKS_MAX: usize = 4_096;
/// One event. A gateway may send a whole answer as one; anything longer is none, and parsed it
/// could take many times its size.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text, reasoning and arguments of one message together.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Stream {
    live: Live,
    /// The id of the message, once it began.
    message: Option<String>,
    blocks: BTreeMap<u64, Block>,
    /// The block that spoke last, and how much of it listeners have had.
    speaking: u64,
    told: usize,
    kept_bytes: usize,
    usage: Counts,
    stop: Option<String>,
    why: Option<String>,
    done: bool,
}

#[derive(Debug)]
struct Block {
    body: Body,
    open: bool,
}

#[derive(Debug)]
enum Body {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// Reasoning nobody can read, as it came.
    Redacted(Value),
    Call {
        id: String,
        name: String,
        /// What the block began with; stands if nothing was added.
        input: Value,
        arguments: String,
    },
    /// Something this wire never asked for.
    Other,
}

impl Stream {
    pub(crate) fn new(live: Live) -> Stream {
        Stream {
            live,
            message: None,
            blocks: BTreeMap::new(),
            speaking: 0,
            told: 0,
            kept_bytes: 0,
            usage: Counts::default(),
            stop: None,
            why: None,
            done: false,
        }
    }

    fn hear(&mut self, event: Heard<'_>, name: &[u8]) -> Result<(), Failure> {
        // Gateways that put in an error of their own tend to name only the event.
        let unnamed = event.kind.is_empty() && name == b"error";
        let kind = if unnamed { "error" } else { event.kind.as_ref() };
        match kind {
            "content_block_delta" => {
                let delta = event.delta.ok_or_else(|| malformed("a delta without a delta"))?;
                self.grow(index(event.index)?, &delta)
            }
            "message_start" => self.begin(event.message),
            "content_block_start" => {
                let block = event.content_block.ok_or_else(|| malformed("a block without one"))?;
                self.open(index(event.index)?, block)
            }
            "content_block_stop" => self.close(index(event.index)?),
            "message_delta" => {
                self.begun()?;
                if let Some(delta) = event.delta {
                    self.stop = delta.stop_reason.or(self.stop.take());
                    self.why = delta.stop_details.and_then(|it| explained(&it)).or(self.why.take());
                }
                self.usage.learn(event.usage);
                Ok(())
            }
            "message_stop" => {
                self.begun()?;
                self.done = true;
                Ok(())
            }
            "error" => Err(in_stream(&event.error.unwrap_or_default())),
            _ => Ok(()),
        }
    }

    fn begun(&self) -> Result<(), Failure> {
        let begun = self.message.as_ref().map(|_| ());
        begun.ok_or_else(|| malformed("the stream goes on with a message that never began"))
    }

    /// A message begins once. The same beginning twice in a row is a stutter; anything else is two
    /// answers spliced together.
    fn begin(&mut self, message: Option<Message>) -> Result<(), Failure> {
        let message = message.ok_or_else(|| malformed("a message_start without a message"))?;
        match &self.message {
            Some(before) if *before != message.id || !self.blocks.is_empty() => {
                return Err(malformed("a second message begins in the middle of the first"));
            }
            Some(_) | None => self.message = Some(message.id),
        }
        self.usage.learn(message.usage);
        Ok(())
    }

    fn open(&mut self, index: u64, block: Value) -> Result<(), Failure> {
        self.begun()?;
        if self.blocks.len() >= BLOCKS_MAX {
            return Err(malformed("too many blocks in one message"));
        }
        // The one before stays as it is: listeners have had part of it.
        if self.blocks.contains_key(&index) {
            return Err(malformed("two blocks of one message have the same index"));
        }
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        let body = match block["type"].as_str().unwrap_or_default() {
            "text" => Body::Text(text("text")),
            "thinking" => Body::Thinking { text: text("thinking"), signature: text("signature") },
            "redacted_thinking" => Body::Redacted(block),
            "tool_use" => {
                let name = text("name");
                if name.is_empty() {
                    return Err(malformed("a call of a tool without a name"));
                }
                let (id, input) = (text("id"), block["input"].clone());
                Body::Call { id, name, input, arguments: String::new() }
            }
            _ => Body::Other,
        };
        let kept = body.kept_bytes();
        self.blocks.insert(index, Block { body, open: true });
        self.keep(kept)
    }

    fn grow(&mut self, index: u64, delta: &Delta<'_>) -> Result<(), Failure> {
        if index != self.speaking {
            self.tell();
            (self.speaking, self.told) = (index, 0);
        }
        let block = self.blocks.get_mut(&index).filter(|block| block.open);
        let block = block.ok_or_else(|| malformed("a delta for a block that is not open"))?;
        let added = match (&mut block.body, delta.kind.as_ref()) {
            (Body::Text(text), "text_delta") => push(text, &delta.text),
            (Body::Thinking { text, .. }, "thinking_delta") => push(text, &delta.thinking),
            (Body::Thinking { signature, .. }, "signature_delta") => {
                push(signature, &delta.signature)
            }
            (Body::Call { arguments, .. }, "input_json_delta") => {
                push(arguments, &delta.partial_json)
            }
            // Text that is lost, or arguments that are: nothing that may be passed over.
            (Body::Text(_) | Body::Thinking { .. } | Body::Call { .. }, kind)
                if ["text_delta", "thinking_delta", "input_json_delta"].contains(&kind) =>
            {
                return Err(malformed("a delta of another kind than its block"));
            }
            // Citations and the like.
            (
                Body::Text(_)
                | Body::Thinking { .. }
                | Body::Redacted(_)
                | Body::Call { .. }
                | Body::Other,
                _,
            ) => 0,
        };
        self.keep(added)
    }

    fn close(&mut self, index: u64) -> Result<(), Failure> {
        let block = self.blocks.get_mut(&index).filter(|block| block.open);
        block.ok_or_else(|| malformed("the end of a block that is not open"))?.open = false;
        Ok(())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX {
            return Err(malformed("the answer is longer than any answer"));
        }
        Ok(())
    }

    /// Tells listeners what they have not had of the block that speaks.
    fn tell(&mut self) {
        let Some(block) = self.blocks.get(&self.speaking) else { return };
        match &block.body {
            Body::Text(text) => {
                self.live.text(&text[self.told..]);
                self.told = text.len();
            }
            Body::Thinking { text, .. } => {
                self.live.thinking(&text[self.told..]);
                self.told = text.len();
            }
            Body::Redacted(_) | Body::Call { .. } | Body::Other => {}
        }
    }

    fn reply(self) -> Result<Reply, Failure> {
        let stop = self.stop.ok_or_else(|| malformed("the answer ended without a reason"))?;
        if stop == "refusal" {
            let why = self.why.unwrap_or_else(|| "the model refused to answer".into());
            return Err(failed(FailureKind::Filtered, why));
        }
        if self.blocks.values().any(|block| block.open) {
            return Err(malformed(&format!("the answer ended ({stop}) inside a block")));
        }
        let was_cut = stop == "max_tokens" || stop == "model_context_window_exceeded";
        let mut reply = Reply { usage: self.usage.usage(), ..Reply::default() };
        let mut reasoning = Vec::new();
        for block in self.blocks.into_values() {
            match block.body {
                Body::Text(text) if reply.text.is_empty() => reply.text = text,
                Body::Text(text) => reply.text.push_str(&text),
                // Without its signature the provider does not take it back.
                Body::Thinking { text, signature } if !signature.is_empty() => {
                    reasoning.push(serde_json::json!({
                        "type": "thinking", "thinking": text, "signature": signature,
                    }));
                }
                Body::Redacted(block) => reasoning.push(block),
                Body::Call { name, input, arguments, .. } => {
                    let arguments = parsed(input, arguments, was_cut);
                    reply.calls.push(Use::new(name, arguments));
                }
                Body::Thinking { .. } | Body::Other => {}
            }
        }
        if stop == "tool_use" && reply.calls.is_empty() {
            return Err(malformed("the answer says it calls a tool, but does not"));
        }
        reply.reasoning = (!reasoning.is_empty()).then_some(Value::Array(reasoning));
        Ok(reply)
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure> {
        if self.done {
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
        self.done
    }

    fn has_begun(&self) -> bool {
        self.message.is_some()
    }

    fn decoded(&self) -> Decoded {
        let mut decoded =
            Decoded { usage: self.usage.usage(), stop: self.stop.clone(), ..Decoded::default() };
        for block in self.blocks.values() {
            match &block.body {
                Body::Text(text) => decoded.text.push_str(text),
                Body::Thinking { text, .. } => decoded.reasoning.push_str(text),
                Body::Call { id, name, input, arguments } => {
                    let (id, name) = (id.clone(), name.clone());
                    let arguments = parsed(input.clone(), arguments.clone(), block.open);
                    decoded.calls.push(DecodedCall { id, name, arguments });
                }
                Body::Redacted(_) | Body::Other => {}
            }
        }
        decoded
    }

    fn finish(self) -> Result<Reply, Failure> {
        if !self.done {
            let heard = self.kept_bytes;
            let why = format!("the stream ended before the answer did, {heard} bytes into it");
            return Err(failed(FailureKind::Cut, why));
        }
        self.reply()
    }
}

impl Body {
    fn kept_bytes(&self) -> usize {
        match self {
            Body::Text(text) => text.len(),
            Body::Thinking { text, signature } => text.len() + signature.len(),
            Body::Redacted(block) => block["data"].as_str().map_or(0, str::len),
            Body::Call { name, .. } => name.len(),
            Body::Other => 0,
        }
    }
}

fn index(index: Option<u64>) -> Result<u64, Failure> {
    index.ok_or_else(|| malformed("an event of a block that does not say which"))
}

fn push(text: &mut String, part: &str) -> usize {
    text.push_str(part);
    part.len()
}

/// Arguments are an object, or the text the model wrote instead: the kernel runs no such call and
/// tells the model. Nothing written means no arguments, unless the answer was cut short just there.
fn parsed(input: Value, arguments: String, was_cut: bool) -> Value {
    if arguments.is_empty() {
        let stands = input.is_object() && !was_cut;
        return if stands { input } else { Value::String(String::new()) };
    }
    // Far beyond what the kernel runs they are not worth their memory.
    let object = (arguments.len() <= 4 * ARGUMENT_BYTES_MAX)
        .then(|| serde_json::from_str(&arguments).ok().filter(Value::is_object));
    object.flatten().unwrap_or(Value::String(arguments))
}

fn explained(details: &Value) -> Option<String> {
    details["explanation"].as_str().map(str::to_owned)
}

/// What a provider says went wrong after it had begun to answer. A name not known here is still the
/// provider's fault: it had taken the request.
fn in_stream(error: &Value) -> Failure {
    let (name, words) = (error["type"].as_str(), error["message"].as_str());
    let words = words.unwrap_or("the provider broke off");
    let kind = failure_named(name.unwrap_or_default(), words);
    let unknown = kind == FailureKind::Other && name != Some("invalid_request_error");
    failed(if unknown { FailureKind::Server } else { kind }, words)
}
