//! A streamed answer put together: responses in, a whole reply out, or the reason there is none.
//!
//! This wire has no last event: an answer is whole if a reason to stop was given, no call is left
//! open, and the response then ended as it should. What is signed has to go back with the very part
//! it came with, so the parts are kept apart wherever a signature is near.

use locum_kernel::limits::ARGUMENT_BYTES_MAX;
use locum_kernel::{Failure, FailureKind, Reply, Use};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::event::{Call, Candidate, Counts, Heard, Part};
use super::{PART, in_stream};
use crate::live::Live;
use crate::wire::sse::Event;
use crate::wire::{Decoded, DecodedCall, Decoder, failed, malformed};

/// Parts of one answer. No model needs a tenth of it.
const PARTS_MAX: usize = 4_096;
/// One event. A gateway may send a whole answer as one; anything longer is none, and parsed it
/// could take many times its size.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text, reasoning and arguments of one answer together.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Stream {
    live: Live,
    parts: Vec<Piece>,
    /// How much listeners have had of the last part.
    told: usize,
    kept_bytes: usize,
    usage: Counts,
    stop: Option<String>,
    why: Option<String>,
    begun: bool,
    /// Something came that was no event.
    broken: bool,
}

#[derive(Debug)]
struct Piece {
    body: Body,
    signature: String,
}

#[derive(Debug)]
enum Body {
    Text(String),
    Thought(String),
    Call { id: String, name: String, input: Input },
}

#[derive(Debug)]
enum Input {
    /// None if the model wrote none.
    Whole(Option<Value>),
    Open(Arguments),
}

impl Stream {
    pub(crate) fn new(live: Live) -> Stream {
        Stream {
            live,
            parts: Vec::new(),
            told: 0,
            kept_bytes: 0,
            usage: Counts::default(),
            stop: None,
            why: None,
            begun: false,
            broken: false,
        }
    }

    fn hear(&mut self, heard: Heard<'_>, bytes: usize) -> Result<(), Failure> {
        if let Some(error) = heard.error {
            return Err(in_stream(&error));
        }
        self.usage.learn(heard.usage_metadata);
        if let Some(feedback) = heard.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            self.begun = true;
            self.stop = Some(reason.clone());
            let why = feedback.block_reason_message;
            let why = why.unwrap_or_else(|| format!("the provider refused the prompt: {reason}"));
            return Err(failed(FailureKind::Filtered, why));
        }
        // One answer was asked for; others are nobody's.
        let mut ours = heard.candidates.into_iter().filter(|it| it.index == 0);
        let Some(candidate) = ours.next() else { return Ok(()) };
        if ours.next().is_some() {
            return Err(malformed("two answers of one response have the same index"));
        }
        self.begun = true;
        self.take(candidate, bytes)
    }

    fn take(&mut self, candidate: Candidate<'_>, bytes: usize) -> Result<(), Failure> {
        for part in candidate.content.map(|content| content.parts).unwrap_or_default() {
            let Part { text, thought, thought_signature, function_call } = part;
            self.keep(text.len() + thought_signature.len())?;
            match function_call {
                Some(call) => self.call(call, &thought_signature, bytes)?,
                None => self.say(&text, thought, &thought_signature)?,
            }
        }
        self.stop = candidate.finish_reason.or(self.stop.take());
        self.why = candidate.finish_message.or(self.why.take());
        Ok(())
    }

    fn say(&mut self, text: &str, thought: bool, signature: &str) -> Result<(), Failure> {
        if signature.is_empty() {
            // Also what is no text at all: pictures, code that was run elsewhere.
            if text.is_empty() {
                return Ok(());
            }
            match self.parts.last_mut() {
                Some(Piece { body: Body::Text(said), signature })
                    if !thought && signature.is_empty() =>
                {
                    said.push_str(text);
                    return Ok(());
                }
                Some(Piece { body: Body::Thought(said), signature })
                    if thought && signature.is_empty() =>
                {
                    said.push_str(text);
                    return Ok(());
                }
                Some(_) | None => {}
            }
        }
        let text = text.to_owned();
        self.push(if thought { Body::Thought(text) } else { Body::Text(text) }, signature)
    }

    fn push(&mut self, body: Body, signature: &str) -> Result<(), Failure> {
        if self.parts.len() >= PARTS_MAX {
            return Err(malformed("too many parts in one answer"));
        }
        self.tell();
        self.told = 0;
        self.parts.push(Piece { body, signature: signature.to_owned() });
        Ok(())
    }

    /// A call, or one more piece of the one that is open.
    fn call(&mut self, call: Call<'_>, signature: &str, bytes: usize) -> Result<(), Failure> {
        let open = self.parts.iter().rposition(Piece::is_open);
        match open {
            Some(at) => self.go_on(at, call, signature),
            None if call.name.is_empty() => Err(malformed("a call of a tool without a name")),
            None => self.begin(call, signature, bytes),
        }
    }

    fn begin(&mut self, call: Call<'_>, signature: &str, bytes: usize) -> Result<(), Failure> {
        let Call { id, name, args, partial_args, will_continue } = call;
        let again =
            |piece: &Piece| matches!(&piece.body, Body::Call { id: other, .. } if *other == *id);
        if !id.is_empty() && self.parts.iter().any(again) {
            return Err(malformed("two calls of one answer have the same id"));
        }
        let mut kept = id.len() + name.len();
        let input = if will_continue || !partial_args.is_empty() {
            let mut arguments = Arguments::default();
            arguments.begin(args.unwrap_or_default())?;
            for piece in partial_args {
                kept += arguments.add(piece)?;
            }
            if will_continue {
                Input::Open(arguments)
            } else {
                Input::Whole(Some(closed(arguments)?))
            }
        } else {
            kept += bytes;
            Input::Whole(args.map(|args| parsed(args, bytes)))
        };
        self.keep(kept)?;
        let (id, name) = (id.0.into_owned(), name.0.into_owned());
        self.push(Body::Call { id, name, input }, signature)
    }

    fn go_on(&mut self, at: usize, call: Call<'_>, signature: &str) -> Result<(), Failure> {
        let mut kept = 0;
        let piece = &mut self.parts[at];
        if let Body::Call { id, input, .. } = &mut piece.body
            && let Input::Open(arguments) = input
        {
            // A name begins a call, and the one before it never ended.
            if !call.name.is_empty() || !call.id.is_empty() && *call.id != **id {
                return Err(malformed("a call begins inside another"));
            }
            arguments.begin(call.args.unwrap_or_default())?;
            for piece in call.partial_args {
                kept += arguments.add(piece)?;
            }
            if !call.will_continue {
                *input = Input::Whole(Some(closed(std::mem::take(arguments))?));
            }
        }
        if !signature.is_empty() {
            signature.clone_into(&mut piece.signature);
        }
        self.keep(kept)
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept_bytes += bytes;
        if self.kept_bytes > KEPT_BYTES_MAX {
            return Err(malformed("the answer is longer than any answer"));
        }
        Ok(())
    }

    /// Tells listeners what they have not had of the part that speaks.
    fn tell(&mut self) {
        let Some(piece) = self.parts.last() else { return };
        match &piece.body {
            Body::Text(text) => {
                self.live.text(&text[self.told..]);
                self.told = text.len();
            }
            Body::Thought(text) => {
                self.live.thinking(&text[self.told..]);
                self.told = text.len();
            }
            Body::Call { .. } => {}
        }
    }

    fn reply(self) -> Result<Reply, Failure> {
        let stop = self.stop.unwrap_or_default();
        if let Some(kind) = stopped(&stop) {
            let why = self.why.unwrap_or_else(|| format!("the provider stopped the model: {stop}"));
            return Err(failed(kind, why));
        }
        if self.parts.iter().any(Piece::is_open) {
            return Err(malformed(&format!("the answer ended ({stop}) inside a call")));
        }
        let mut reply = Reply { usage: self.usage.usage(), ..Reply::default() };
        let mut parts = Vec::new();
        for Piece { body, signature } in self.parts {
            let mut part = json!({ "type": PART });
            if !signature.is_empty() {
                part["thoughtSignature"] = signature.into();
            }
            match body {
                // Places are told by their length: the text itself is in the reply.
                Body::Text(text) => {
                    part["text"] = text.len().into();
                    reply.text.push_str(&text);
                }
                // Nobody asks for what the model thought unless it is signed.
                Body::Thought(_) if part.get("thoughtSignature").is_none() => continue,
                Body::Thought(text) => part["thought"] = text.into(),
                Body::Call { id, name, input } => {
                    part["call"] = reply.calls.len().into();
                    if !id.is_empty() {
                        part["id"] = id.into();
                    }
                    let arguments = input.into_value(stop == "MAX_TOKENS");
                    reply.calls.push(Use::new(name, arguments));
                }
            }
            parts.push(part);
        }
        let needed =
            |part: &Value| part.get("thoughtSignature").is_some() || part.get("id").is_some();
        reply.reasoning = parts.iter().any(needed).then_some(Value::Array(parts));
        Ok(reply)
    }
}

impl Decoder for Stream {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure> {
        let bytes = event.data.len();
        if bytes > EVENT_BYTES_MAX {
            return Err(malformed("an event longer than any event"));
        }
        // Errors come as a list of one where a list of responses was under way.
        let listed = event.data.trim_ascii_start().first() == Some(&b'[');
        let heard = if listed {
            serde_json::from_slice::<Vec<Heard<'_>>>(event.data)
        } else {
            serde_json::from_slice::<Heard<'_>>(event.data).map(|heard| vec![heard])
        };
        let heard = heard.map_err(|error| {
            self.broken = true;
            malformed(&format!("an event that does not parse: {error}"))
        })?;
        heard.into_iter().try_for_each(|heard| self.hear(heard, bytes))
    }

    fn pause(&mut self) {
        self.tell();
    }

    /// Only the end of the response says so.
    fn is_done(&self) -> bool {
        false
    }

    fn has_begun(&self) -> bool {
        self.begun
    }

    fn decoded(&self) -> Decoded {
        let mut decoded =
            Decoded { usage: self.usage.usage(), stop: self.stop.clone(), ..Decoded::default() };
        for piece in &self.parts {
            match &piece.body {
                Body::Text(text) => decoded.text.push_str(text),
                Body::Thought(text) => decoded.reasoning.push_str(text),
                Body::Call { id, name, input } => {
                    let nth = decoded.calls.len();
                    let id = if id.is_empty() { format!("call_{nth}") } else { id.clone() };
                    let arguments = input.value();
                    decoded.calls.push(DecodedCall { id, name: name.clone(), arguments });
                }
            }
        }
        decoded
    }

    fn finish(self) -> Result<Reply, Failure> {
        if self.stop.is_none() || self.broken {
            let heard = self.kept_bytes;
            let why = format!("the stream ended before the answer did, {heard} bytes into it");
            return Err(failed(FailureKind::Cut, why));
        }
        self.reply()
    }
}

impl Piece {
    fn is_open(&self) -> bool {
        matches!(&self.body, Body::Call { input: Input::Open(_), .. })
    }
}

impl Input {
    /// Nothing written means no arguments, unless the answer was cut short just there.
    fn into_value(self, was_cut: bool) -> Value {
        match self {
            Input::Whole(Some(value)) => value,
            Input::Whole(None) if was_cut => Value::String(String::new()),
            Input::Whole(None) => json!({}),
            Input::Open(arguments) => Value::String(arguments.into_value().to_string()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Input::Whole(value) => value.clone().unwrap_or_else(|| json!({})),
            Input::Open(arguments) => Value::String(arguments.value().to_string()),
        }
    }
}

fn closed(arguments: Arguments) -> Result<Value, Failure> {
    if !arguments.is_whole() {
        return Err(malformed("a call ended inside one of its arguments"));
    }
    Ok(arguments.into_value())
}

/// Arguments are an object, or the text of what came instead: the kernel runs no such call and
/// tells the model.
fn parsed(args: Value, bytes: usize) -> Value {
    match args {
        Value::Null => json!({}),
        // Far beyond what the kernel runs they are not worth their memory.
        Value::Object(args) if bytes <= 4 * ARGUMENT_BYTES_MAX => Value::Object(args),
        Value::String(text) => Value::String(text),
        args @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)) => {
            Value::String(args.to_string())
        }
    }
}

/// What is wrong with an answer that stopped for this reason; `FUNCTION_CALL` is said by stand-ins.
fn stopped(reason: &str) -> Option<FailureKind> {
    match reason {
        "STOP" | "MAX_TOKENS" | "FUNCTION_CALL" => None,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Some(FailureKind::Filtered),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
            Some(FailureKind::Malformed)
        }
        _ => Some(FailureKind::Other),
    }
}
