//! What an agent has to say, as a request to generate content.
//!
//! The parts come in the order they stay the same, so that the provider finds the beginning of the
//! next request in its cache without being told: system text and tools for an agent's life, the
//! history until it is compacted, and last what is true only now.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Note, Output, Picture, Purpose, Reply, Seq};
use serde_json::{Value, json};

use super::{PART, schema};
use crate::provider::Asked;
use crate::schema::Describe;
use crate::wire::Settings;
use crate::wire::history::{Encoding, Histories, Written};
use crate::wire::picture::{Album, show};
use crate::wire::tuning;
use crate::wire::words::{self, GO_ON, LEFT_OUT, NOTHING, SUMMARISE, put, system, valid_name};

/// Longest tool name the provider takes.
const NAME_BYTES_MAX: usize = 64;

/// Stands for a signature where there is none, because another model made the call: the provider
/// takes no calls without one from version 3 on, and this in its place.
const UNSIGNED: &[u8] = br#","thoughtSignature":"skip_thought_signature_validator""#;

#[derive(Debug)]
pub(crate) struct Builder {
    describe: Arc<dyn Describe>,
    album: Arc<dyn Album>,
    max_tokens: u32,
    histories: Histories<Pen>,
}

/// Where writing a history stopped: inside the last message, after its last part.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    role: Option<Role>,
    /// The last reply and its calls: results are known by name here, and by the provider's id.
    turn: Option<Seq>,
    calls: Vec<Called>,
    /// The places of signatures that are missing.
    unsigned: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Called {
    name: String,
    id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    /// Results are the user's too, but in a message of their own.
    Results,
    Model,
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
        let mut tool = json!({ "name": name, "description": it.about });
        if let Some(parameters) = schema::parameters(&it.schema) {
            tool["parametersJsonSchema"] = parameters;
        }
        tool
    }

    fn told(&self, notes: &[Note], pen: &mut Pen, into: &mut Vec<u8>) {
        let mut said = false;
        for note in notes.iter().filter(|note| words::says_something(note)) {
            said = true;
            self.pictures(&note.pictures, pen, into);
            let text = words::note(note);
            if !text.trim().is_empty() {
                write_text(into, pen, Role::User, &text);
            }
        }
        if !said {
            write_text(into, pen, Role::User, NOTHING);
        }
    }

    fn pictures(&self, pictures: &[Picture], pen: &mut Pen, into: &mut Vec<u8>) {
        let (shown, gone) = show(&*self.album, pictures);
        for picture in shown {
            part(into, pen, Role::User, |into| {
                into.extend_from_slice(br#"{"inlineData":{"mimeType":"#);
                put(into, picture.media_type);
                into.extend_from_slice(br#","data":"#);
                put(into, &picture.letters);
                into.extend_from_slice(b"}}");
            });
        }
        if let Some(gone) = gone {
            write_text(into, pen, Role::User, &gone);
        }
    }
}

/// The one copy that is made of a history: into the body that is sent.
fn whole(written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let last = last_words(written, asked);
    let head = &written.head.bytes;
    let signed = version(words::model(asked)) >= (3, 0);
    let unsigned = if signed { &*written.pen.unsigned } else { &[] };
    let size = head.len() + written.bytes.len() + last.len() + unsigned.len() * UNSIGNED.len();
    let mut body = Vec::with_capacity(size);
    body.extend_from_slice(head);
    let mut from = 0;
    for place in unsigned {
        body.extend_from_slice(&written.bytes[from..*place]);
        body.extend_from_slice(UNSIGNED);
        from = *place;
    }
    body.extend_from_slice(&written.bytes[from..]);
    body.extend_from_slice(&last);
    body
}

/// What is said after the history and is in no later request: what is true now, or what else the
/// model is to do.
fn last_words(written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let request = &asked.request;
    let (summarise, tail) = match request.purpose {
        Purpose::Answer => (None, "]}"),
        Purpose::Summary { .. } => {
            (Some(SUMMARISE), r#"],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}"#)
        }
    };
    let mut said: Vec<&str> = request.now.as_deref().into_iter().chain(summarise).collect();
    if said.is_empty() && matches!(written.pen.role, None | Some(Role::Model)) {
        said.push(GO_ON);
    }
    let mut last = Vec::new();
    // The pen only has to know where the history stopped.
    let mut pen = Pen { role: written.pen.role, ..Pen::default() };
    for text in said {
        write_text(&mut last, &mut pen, Role::User, text);
    }
    last.extend_from_slice(b"]}");
    // Without tools there is nothing to choose from.
    let tail = if request.tools.is_empty() { "]}" } else { tail };
    last.extend_from_slice(tail.as_bytes());
    last
}

impl Encoding for Builder {
    type Pen = Pen;

    fn head(&self, asked: &Asked, into: &mut Vec<u8>) {
        let request = &asked.request;
        into.extend_from_slice(br#"{"generationConfig":{"maxOutputTokens":"#);
        put(into, &self.max_tokens);
        let model = words::model(asked);
        let (temperature, amount) = tuning::generation(asked, version(model));
        if thinks(model) {
            let mut thinking = json!({ "includeThoughts": true });
            if let Some((name, amount)) = amount {
                thinking[name] = amount;
            }
            into.extend_from_slice(br#","thinkingConfig":"#);
            put(into, &thinking);
        }
        if let Some(temperature) = temperature {
            into.extend_from_slice(br#","temperature":"#);
            put(into, &temperature);
        }
        // Beside tools it is told in words only: older models refuse both at once.
        if let Some(schema) = words::form(asked).filter(|_| request.tools.is_empty()) {
            into.extend_from_slice(br#","responseMimeType":"application/json""#);
            into.extend_from_slice(br#","responseJsonSchema":"#);
            put(into, schema);
        }
        into.extend_from_slice(br#"},"systemInstruction":{"parts":[{"text":"#);
        put(into, &system(asked));
        into.extend_from_slice(b"}]}");
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request.tools.iter().map(|name| self.tool(name)).collect();
            into.extend_from_slice(br#","tools":[{"functionDeclarations":"#);
            put(into, &tools);
            into.extend_from_slice(b"}]");
        }
        into.extend_from_slice(br#","contents":["#);
    }

    fn line(&self, line: &Line, pen: &mut Pen, into: &mut Vec<u8>) {
        match &line.body {
            Body::Told(notes) => self.told(notes, pen, into),
            Body::Replied(reply) => replied(line.seq, reply, pen, into),
            Body::Results(results) => {
                for (call, output) in results {
                    result(*call, output, pen, into);
                }
                for (call, output) in results {
                    if !output.pictures.is_empty() {
                        write_text(into, pen, Role::User, &words::shown_by(*call));
                        self.pictures(&output.pictures, pen, into);
                    }
                }
            }
            Body::Summary(text) => write_text(into, pen, Role::User, &words::summary(text)),
        }
    }
}

/// Where a part of a reply belongs and how it was signed.
struct Part<'r> {
    body: Held<'r>,
    signature: Option<&'r str>,
}

enum Held<'r> {
    Text(&'r str),
    Thought(&'r str),
    Call(usize),
}

fn replied(seq: Seq, reply: &Reply, pen: &mut Pen, into: &mut Vec<u8>) {
    if pen.role.is_none() {
        write_text(into, pen, Role::User, LEFT_OUT);
    }
    let parts = parts(reply);
    pen.turn = Some(seq);
    let id = |index: usize| {
        let ours = kept(reply).find(|part| part["call"].as_u64() == Some(index as u64));
        ours.and_then(|part| part["id"].as_str()).map(str::to_owned)
    };
    let calls = reply.calls.iter().enumerate();
    pen.calls =
        calls.map(|(index, call)| Called { name: named(&call.name), id: id(index) }).collect();
    if parts.is_empty() {
        write_text(into, pen, Role::Model, NOTHING);
    }
    let mut signed = false;
    for Part { body, signature } in parts {
        let is_call = matches!(body, Held::Call(_));
        let called = match body {
            Held::Call(index) => pen.calls.get(index).cloned(),
            Held::Text(_) | Held::Thought(_) => None,
        };
        part(into, pen, Role::Model, |into| {
            match body {
                Held::Text(text) => {
                    into.extend_from_slice(br#"{"text":"#);
                    put(into, text);
                }
                Held::Thought(text) => {
                    into.extend_from_slice(br#"{"thought":true,"text":"#);
                    put(into, text);
                }
                Held::Call(index) => {
                    write_call(into, called.as_ref(), &reply.calls[index].arguments);
                }
            }
            if let Some(signature) = signature {
                into.extend_from_slice(br#","thoughtSignature":"#);
                put(into, signature);
            }
            into.push(b'}');
        });
        // Of calls made together only the first is signed.
        if is_call && !signed && signature.is_none() {
            pen.unsigned.push(into.len() - 1);
        }
        signed |= is_call;
    }
}

fn write_call(into: &mut Vec<u8>, called: Option<&Called>, arguments: &Value) {
    into.extend_from_slice(br#"{"functionCall":{"name":"#);
    put(into, called.map_or("_", |called| &called.name));
    if let Some(id) = called.and_then(|called| called.id.as_deref()) {
        into.extend_from_slice(br#","id":"#);
        put(into, id);
    }
    into.extend_from_slice(br#","args":"#);
    if arguments.is_object() {
        put(into, arguments);
    } else {
        put(into, &json!({ "unparsable": arguments }));
    }
    into.push(b'}');
}

/// What this wire left in a reply.
fn kept(reply: &Reply) -> impl Iterator<Item = &Value> {
    let all = reply.reasoning.iter().filter_map(Value::as_array).flatten();
    // What another provider's model thought means nothing to this one.
    all.filter(|part| part["type"] == PART)
}

/// A reply as the parts it came in, or, if it came from elsewhere, its text and its calls.
fn parts(reply: &Reply) -> Vec<Part<'_>> {
    laid_out(reply).unwrap_or_else(|| {
        let text = Some(&*reply.text).filter(|text| !text.trim().is_empty());
        let text = text.map(|text| Part { body: Held::Text(text), signature: None });
        let calls = 0..reply.calls.len();
        let calls = calls.map(|index| Part { body: Held::Call(index), signature: None });
        text.into_iter().chain(calls).collect()
    })
}

/// None if what was kept does not fit the reply.
fn laid_out(reply: &Reply) -> Option<Vec<Part<'_>>> {
    let (mut at, mut calls) = (0usize, 0);
    let mut parts = Vec::new();
    for part in kept(reply) {
        let body = if let Some(length) = part["text"].as_u64() {
            let from = at;
            at = from.checked_add(usize::try_from(length).ok()?)?;
            Held::Text(reply.text.get(from..at)?)
        } else if let Some(thought) = part["thought"].as_str() {
            Held::Thought(thought)
        } else {
            calls += 1;
            Held::Call(calls - 1)
        };
        parts.push(Part { body, signature: part["thoughtSignature"].as_str() });
    }
    let fits = !parts.is_empty() && at == reply.text.len() && calls == reply.calls.len();
    fits.then_some(parts)
}

fn result(call: CallId, output: &Output, pen: &mut Pen, into: &mut Vec<u8>) {
    let called = pen.calls.get(usize::from(call.index)).filter(|_| pen.turn == Some(call.turn));
    let text = words::output(output);
    let Some(called) = called.cloned() else {
        // Its call is gone; what came of it may still matter.
        write_text(into, pen, Role::User, &format!("[result of {call}] {text}"));
        return;
    };
    part(into, pen, Role::Results, |into| {
        into.extend_from_slice(br#"{"functionResponse":{"name":"#);
        put(into, &called.name);
        if let Some(id) = &called.id {
            into.extend_from_slice(br#","id":"#);
            put(into, id);
        }
        let key: &[u8] = if output.is_error { br#"{"error":"# } else { br#"{"output":"# };
        into.extend_from_slice(br#","response":"#);
        into.extend_from_slice(key);
        put(into, &*text);
        into.extend_from_slice(b"}}}");
    });
}

/// As the provider would take it: it also wants no figure and no dash at its beginning.
fn named(name: &str) -> String {
    let name = valid_name(name, NAME_BYTES_MAX);
    if name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_') {
        return name;
    }
    let mut name = format!("_{name}");
    name.truncate(NAME_BYTES_MAX);
    name
}

/// Which version of the family a model is, by its name. Aliases are of the newest; what is of
/// another family counts as old.
fn version(model: &str) -> (u32, u32) {
    let Some(rest) = model.strip_prefix("gemini-") else { return (0, 0) };
    let number = rest.split('-').next().unwrap_or_default();
    let mut figures = number.split('.').map(str::parse);
    match (figures.next(), figures.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        (Some(Ok(major)), _) => (major, 0),
        (Some(Err(_)) | None, _) if rest.ends_with("-latest") => (3, 0),
        (Some(Err(_)) | None, _) => (0, 0),
    }
}

/// It can tell what it thinks; others refuse to be asked.
fn thinks(model: &str) -> bool {
    let other = ["image", "tts", "audio", "embedding"].iter().any(|kind| model.contains(kind));
    version(model) >= (2, 5) && !other
}

fn write_text(into: &mut Vec<u8>, pen: &mut Pen, role: Role, text: &str) {
    part(into, pen, role, |into| {
        into.extend_from_slice(br#"{"text":"#);
        put(into, text);
        into.push(b'}');
    });
}

/// One more part: in the same message if it is the same role's, in a new one if not. The message
/// stays open.
fn part(into: &mut Vec<u8>, pen: &mut Pen, role: Role, write: impl FnOnce(&mut Vec<u8>)) {
    if pen.role == Some(role) {
        into.push(b',');
    } else {
        if pen.role.is_some() {
            into.extend_from_slice(b"]},");
        }
        into.extend_from_slice(match role {
            Role::User | Role::Results => br#"{"role":"user","parts":["#.as_slice(),
            Role::Model => br#"{"role":"model","parts":["#,
        });
    }
    write(into);
    pen.role = Some(role);
}
