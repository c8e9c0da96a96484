//! What an agent has to say, as a Responses request.
//!
//! Nothing is stored with the provider: the input is the whole conversation, item by item, with the
//! reasoning it sealed. The parts come in the order they stay the same, so that the provider finds
//! what it remembers of the beginning; a key names that beginning.

use std::borrow::Cow;
use std::sync::Arc;

use locum_kernel::{Body, CallId, Digest, Line, Note, Output, Purpose, Reply, Seq, Use};
use serde_json::{Value, json};

use crate::provider::Asked;
use crate::schema::Describe;
use crate::wire::Settings;
use crate::wire::history::{Encoding, Histories, Written};
use crate::wire::picture::{Album, Shown, show};
use crate::wire::tuning;
use crate::wire::words::{self, SUMMARISE, put, system, valid_name, whole_at};

/// Longest tool name the provider takes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Builder {
    describe: Arc<dyn Describe>,
    album: Arc<dyn Album>,
    max_tokens: u32,
    histories: Histories<Pen>,
}

/// Who spoke last, so that the user can have the last word.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    last: Option<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Builder {
    pub(crate) fn new(settings: &Settings) -> Builder {
        Builder {
            describe: Arc::clone(&settings.describe),
            album: Arc::clone(&settings.album),
            max_tokens: settings.max_tokens,
            histories: Histories::default(),
        }
    }

    pub(crate) fn body(&self, asked: &Asked) -> Vec<u8> {
        self.histories.write(self, asked, |written| whole(written, asked))
    }

    fn tool(&self, name: &str) -> Value {
        let it = self.describe.describe(name).unwrap_or_default();
        // Strict ones have to list every argument as required, which ours do not.
        json!({
            "type": "function", "name": name, "description": it.about,
            "parameters": it.schema, "strict": false,
        })
    }

    fn told(&self, notes: &[Note], pen: &mut Pen, into: &mut Vec<u8>) {
        let mut said = false;
        for note in notes.iter().filter(|note| words::says_something(note)) {
            said = true;
            let (shown, gone) = show(&*self.album, &note.pictures);
            if shown.is_empty() {
                user(into, pen, &with(words::note(note), gone));
            } else {
                item(into, pen, Role::User, |into| {
                    into.extend_from_slice(br#"{"type":"message","role":"user","content":"#);
                    parts(into, &shown, &with(words::note(note), gone));
                    into.push(b'}');
                });
            }
        }
        if !said {
            user(into, pen, words::NOTHING);
        }
    }

    fn result(&self, call: CallId, output: &Output, into: &mut Vec<u8>) {
        into.extend_from_slice(br#"{"type":"function_call_output","call_id":"#);
        put(into, &call.to_string());
        into.extend_from_slice(br#","output":"#);
        let whole = output.handle.as_ref().map(|handle| whole_at(handle)).unwrap_or_default();
        // There is no other place to say that it failed.
        let text = match (output.is_error, whole.is_empty()) {
            (false, true) => Cow::Borrowed(&*output.text),
            (false, false) => format!("{}{whole}", output.text).into(),
            (true, _) if output.text.is_empty() => format!("[failed]{whole}").into(),
            (true, _) => format!("[failed] {}{whole}", output.text).into(),
        };
        let (shown, gone) = show(&*self.album, &output.pictures);
        let text = with(text, gone);
        if shown.is_empty() {
            put(into, &*text);
        } else {
            parts(into, &shown, &text);
        }
        into.push(b'}');
    }
}

/// A text, and what is missing of what was shown with it.
fn with(text: Cow<'_, str>, gone: Option<String>) -> Cow<'_, str> {
    match gone {
        Some(gone) => format!("{text}\n{gone}").into(),
        None => text,
    }
}

fn parts(into: &mut Vec<u8>, shown: &[Shown<'_>], text: &str) {
    let mut parts: Vec<Value> = shown
        .iter()
        .map(|it| json!({ "type": "input_image", "detail": "auto", "image_url": it.url() }))
        .collect();
    if !text.trim().is_empty() {
        parts.push(json!({ "type": "input_text", "text": text }));
    }
    put(into, &parts);
}

/// The one copy that is made of a history: into the body that is sent.
fn whole(written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let last = last_words(written, asked);
    let head = &written.head.bytes;
    let mut body = Vec::with_capacity(head.len() + written.bytes.len() + last.len());
    body.extend_from_slice(head);
    body.extend_from_slice(&written.bytes);
    body.extend_from_slice(&last);
    body
}

/// What is said after the history and is in no later request: what is true now, or what else the
/// model is to do.
fn last_words(written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let request = &asked.request;
    let (summarise, tail) = match request.purpose {
        Purpose::Answer => (None, "]}"),
        Purpose::Summary { .. } => (Some(SUMMARISE), r#"],"tool_choice":"none"}"#),
    };
    let mut said: Vec<&str> = request.now.as_deref().into_iter().chain(summarise).collect();
    if said.is_empty() && written.pen.last != Some(Role::User) {
        said.push("Go on.");
    }
    let mut last = Vec::new();
    let mut pen = Pen { last: written.pen.last };
    for text in said {
        user(&mut last, &mut pen, text);
    }
    // Without tools there is nothing to choose from.
    let tail = if request.tools.is_empty() { "]}" } else { tail };
    last.extend_from_slice(tail.as_bytes());
    let (temperature, effort) = tuning::plain(asked);
    let reasoning = effort.map(|effort| json!({ "effort": effort }));
    words::set(&mut last, [("temperature", temperature), ("reasoning", reasoning)]);
    if let Some(schema) = words::form(asked) {
        last.pop();
        let form = json!({
            "type": "json_schema", "name": "output", "schema": schema, "strict": false,
        });
        last.extend_from_slice(br#","text":{"format":"#);
        put(&mut last, &form);
        last.extend_from_slice(b"}}");
    }
    last
}

impl Encoding for Builder {
    type Pen = Pen;

    fn head(&self, asked: &Asked, into: &mut Vec<u8>) {
        let request = &asked.request;
        let model = words::model(asked);
        let mut stable = Vec::new();
        stable.extend_from_slice(br#","instructions":"#);
        put(&mut stable, &system(asked));
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request.tools.iter().map(|name| self.tool(name)).collect();
            stable.extend_from_slice(br#","tools":"#);
            put(&mut stable, &tools);
        }
        into.extend_from_slice(br#"{"model":"#);
        put(into, model);
        into.extend_from_slice(br#","max_output_tokens":"#);
        put(into, &self.max_tokens);
        into.extend_from_slice(br#","stream":true,"store":false"#);
        if may_reason(model) {
            into.extend_from_slice(br#","include":["reasoning.encrypted_content"]"#);
        }
        into.extend_from_slice(br#","prompt_cache_key":"#);
        put(into, &cache_key(&stable));
        into.extend_from_slice(&stable);
        into.extend_from_slice(br#","input":["#);
    }

    fn line(&self, line: &Line, pen: &mut Pen, into: &mut Vec<u8>) {
        match &line.body {
            Body::Told(notes) => self.told(notes, pen, into),
            Body::Replied(reply) => replied(line.seq, reply, pen, into),
            Body::Results(results) => {
                for (call, output) in results {
                    item(into, pen, Role::User, |into| self.result(*call, output, into));
                }
            }
            Body::Summary(text) => {
                user(into, pen, &format!("[summary of what came before]\n{text}"));
            }
        }
    }
}

/// Requests that begin alike go where that beginning is remembered: the same for all agents of one
/// definition, at any time, and another once its words or tools change.
fn cache_key(stable: &[u8]) -> String {
    let digest = Digest::of_bytes(stable);
    format!("locum-{}", digest.as_str().chars().take(32).collect::<String>())
}

/// Models that do not reason refuse to be asked for sealed reasoning. All that are not known to be
/// such get the question; compatible servers do not mind it.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let plain = ["gpt-3", "gpt-4", "chatgpt-", "ft:gpt-3", "ft:gpt-4"];
    let chat = name.starts_with("gpt-5") && name.contains("-chat");
    !chat && !plain.iter().any(|prefix| name.starts_with(prefix))
}

/// A reply in the order it was given in, as far as that is known; else reasoning, text, calls.
fn replied(seq: Seq, reply: &Reply, pen: &mut Pen, into: &mut Vec<u8>) {
    let mut text = reply.text.as_str();
    let mut calls = reply.calls.iter().zip(0u16..);
    let mut open = text.trim().is_empty() && reply.calls.is_empty();
    for kept in reply.reasoning.iter().filter_map(Value::as_array).flatten() {
        match kept["type"].as_str().unwrap_or_default() {
            "reasoning" => item(into, pen, Role::Assistant, |into| put(into, kept)),
            "message" => {
                let bytes = kept["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                let (said, rest) = text.split_at_checked(bytes.unwrap_or(0)).unwrap_or((text, ""));
                text = rest;
                assistant(into, pen, said, kept["phase"].as_str());
            }
            "function_call" => {
                if let Some((call, index)) = calls.next() {
                    let id = CallId { turn: seq, index };
                    item(into, pen, Role::Assistant, |into| called(id, call, into));
                }
            }
            // What another provider's model thought means nothing to this one.
            _ => {}
        }
    }
    assistant(into, pen, text, None);
    for (call, index) in calls {
        let id = CallId { turn: seq, index };
        item(into, pen, Role::Assistant, |into| called(id, call, into));
        open = false;
    }
    // Reasoning must be followed by what it led to.
    if open {
        assistant(into, pen, "(nothing)", None);
    }
}

fn called(id: CallId, call: &Use, into: &mut Vec<u8>) {
    into.extend_from_slice(br#"{"type":"function_call","call_id":"#);
    put(into, &id.to_string());
    into.extend_from_slice(br#","name":"#);
    put(into, &valid_name(&call.name, NAME_BYTES_MAX));
    into.extend_from_slice(br#","arguments":"#);
    if call.arguments.is_object() {
        put(into, &call.arguments.to_string());
    } else {
        put(into, &json!({ "unparsable": call.arguments }).to_string());
    }
    into.push(b'}');
}

fn user(into: &mut Vec<u8>, pen: &mut Pen, text: &str) {
    item(into, pen, Role::User, |into| {
        into.extend_from_slice(
            br#"{"type":"message","role":"user","content":[{"type":"input_text","text":"#,
        );
        put(into, text);
        into.extend_from_slice(b"}]}");
    });
}

fn assistant(into: &mut Vec<u8>, pen: &mut Pen, text: &str, phase: Option<&str>) {
    if text.trim().is_empty() {
        return;
    }
    item(into, pen, Role::Assistant, |into| {
        into.extend_from_slice(br#"{"type":"message","role":"assistant""#);
        if let Some(phase) = phase {
            into.extend_from_slice(br#","phase":"#);
            put(into, phase);
        }
        // As parts it would need the id it had, which nobody stored.
        into.extend_from_slice(br#","content":"#);
        put(into, text);
        into.push(b'}');
    });
}

fn item(into: &mut Vec<u8>, pen: &mut Pen, role: Role, write: impl FnOnce(&mut Vec<u8>)) {
    if pen.last.is_some() {
        into.push(b',');
    }
    write(into);
    pen.last = Some(role);
}
