//! What an agent has to say, as a Messages request.
//!
//! The parts come in the order they stay the same: model, system text and tools for an agent's
//! life, the history until it is compacted, and last what is true only now. Three marks tell the
//! provider up to where it may remember: the system text (tools come before it) and the last two
//! user messages, so that the next turn finds what this one left.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Note, Output, Purpose, Reply, Seq};
use serde_json::{Value, json};

use crate::provider::Asked;
use crate::schema::Describe;
use crate::wire::Settings;
use crate::wire::history::{Encoding, Histories, Written};
use crate::wire::picture::{Album, Shown, show};
use crate::wire::tuning;
use crate::wire::words::{self, put};

const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// Longest tool name the provider takes.
const NAME_BYTES_MAX: usize = 128;

#[derive(Debug)]
pub(crate) struct Builder {
    describe: Arc<dyn Describe>,
    album: Arc<dyn Album>,
    max_tokens: u32,
    histories: Histories<Pen>,
}

/// Where writing a history stopped: inside the last message, after its last block.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    role: Option<Role>,
    /// In the last two user messages, the place just before their last block ends.
    marks: [Option<usize>; 2],
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

    #[cfg(test)]
    pub(crate) fn with_room(settings: &Settings, bytes: usize) -> Builder {
        Builder { histories: Histories::new(bytes), ..Builder::new(settings) }
    }

    /// How many histories are kept, and their size.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        self.histories.kept()
    }

    pub(crate) fn body(&self, asked: &Asked) -> Vec<u8> {
        self.histories.write(self, asked, |written| whole(written, asked, self.max_tokens))
    }
}

/// The one copy that is made of a history: into the body that is sent.
fn whole(written: &Written<Pen>, asked: &Asked, max_tokens: u32) -> Vec<u8> {
    let mut last = last_words(written, asked);
    settings(asked, max_tokens, &mut last);
    let head = &written.head.bytes;
    let size = head.len() + written.bytes.len() + last.len() + 2 * MARK.len();
    let mut body = Vec::with_capacity(size);
    body.extend_from_slice(head);
    let mut from = 0;
    for mark in written.pen.marks.into_iter().flatten() {
        body.extend_from_slice(&written.bytes[from..mark]);
        body.extend_from_slice(MARK);
        from = mark;
    }
    body.extend_from_slice(&written.bytes[from..]);
    body.extend_from_slice(&last);
    body
}

/// What is said after the history and is in no later request: what is true now, or what else the
/// model is to do. The last word is always the user's.
fn last_words(written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let request = &asked.request;
    let (summarise, tail) = match request.purpose {
        Purpose::Answer => (None, r"]}"),
        Purpose::Summary { .. } => (Some(words::SUMMARISE), r#"],"tool_choice":{"type":"none"}}"#),
    };
    let mut said: Vec<&str> = request.now.as_deref().into_iter().chain(summarise).collect();
    if said.is_empty() && written.pen.role != Some(Role::User) {
        said.push(words::GO_ON);
    }
    let mut last = Vec::new();
    // The pen only has to know where the history stopped.
    let mut pen = Pen { role: written.pen.role, marks: [None; 2] };
    for text in said {
        write_text(&mut last, &mut pen, Role::User, text);
    }
    last.extend_from_slice(b"]}");
    // Without tools there is nothing to choose from.
    let tail = if request.tools.is_empty() { r"]}" } else { tail };
    last.extend_from_slice(tail.as_bytes());
    last
}

/// How it is to answer, at the end of all.
fn settings(asked: &Asked, max_tokens: u32, last: &mut Vec<u8>) {
    let form = words::form(asked).filter(|schema| is_closed(schema));
    let tuning::Messages { temperature, thinking, effort } = tuning::messages(asked, max_tokens);
    let mut output = serde_json::Map::new();
    if let Some(schema) = form {
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    output.extend(effort.map(|effort| ("effort".to_owned(), json!(effort))));
    let output = (!output.is_empty()).then_some(Value::Object(output));
    let set = [("temperature", temperature), ("thinking", thinking), ("output_config", output)];
    words::set(last, set);
}

/// The provider refuses a schema that leaves open what else an object may hold. Such a one is told
/// in words only, as all are.
fn is_closed(schema: &Value) -> bool {
    let mut todo = vec![schema];
    while let Some(at) = todo.pop() {
        match at {
            Value::Object(map) => {
                let is_object = map.get("type").is_some_and(|it| it == "object");
                if is_object && map.get("additionalProperties") != Some(&Value::Bool(false)) {
                    return false;
                }
                todo.extend(map.values());
            }
            Value::Array(items) => todo.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    schema.get("type").is_some_and(|it| it == "object")
}

impl Encoding for Builder {
    type Pen = Pen;

    fn head(&self, asked: &Asked, into: &mut Vec<u8>) {
        let request = &asked.request;
        into.extend_from_slice(br#"{"model":"#);
        put(into, words::model(asked));
        into.extend_from_slice(br#","max_tokens":"#);
        put(into, &self.max_tokens);
        into.extend_from_slice(br#","stream":true"#);
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request.tools.iter().map(|name| self.tool(name)).collect();
            into.extend_from_slice(br#","tools":"#);
            put(into, &tools);
        }
        into.extend_from_slice(br#","system":[{"type":"text","text":"#);
        put(into, &words::system(asked));
        into.extend_from_slice(MARK);
        into.extend_from_slice(br#"}],"messages":["#);
    }

    fn line(&self, line: &Line, pen: &mut Pen, into: &mut Vec<u8>) {
        match &line.body {
            Body::Told(notes) => self.told(notes, pen, into),
            Body::Replied(reply) => replied(line.seq, reply, pen, into),
            Body::Results(results) => {
                for (call, output) in results {
                    block(into, pen, Role::User, |into| self.result(*call, output, into));
                }
            }
            Body::Summary(text) => {
                write_text(into, pen, Role::User, &words::summary(text));
            }
        }
    }
}

impl Builder {
    fn tool(&self, name: &str) -> Value {
        let it = self.describe.describe(name).unwrap_or_default();
        json!({ "name": name, "description": it.about, "input_schema": it.schema })
    }

    fn told(&self, notes: &[Note], pen: &mut Pen, into: &mut Vec<u8>) {
        let mut said = false;
        for note in notes.iter().filter(|note| words::says_something(note)) {
            said = true;
            let (shown, gone) = show(&*self.album, &note.pictures);
            for picture in &shown {
                block(into, pen, Role::User, |into| write_picture(into, picture));
            }
            let text = words::note(note);
            for text in [Some(&*text), gone.as_deref()].into_iter().flatten() {
                if !text.trim().is_empty() {
                    write_text(into, pen, Role::User, text);
                }
            }
        }
        if !said {
            write_text(into, pen, Role::User, words::NOTHING);
        }
    }

    fn result(&self, call: CallId, output: &Output, into: &mut Vec<u8>) {
        into.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
        put(into, &call.to_string());
        let (shown, gone) = show(&*self.album, &output.pictures);
        let text = words::output(output);
        let text = match gone {
            Some(gone) => format!("{text}\n{gone}").into(),
            None => text,
        };
        // Nothing at all is a result too, but no content.
        if shown.is_empty() && !text.is_empty() {
            into.extend_from_slice(br#","content":"#);
            put(into, &*text);
        }
        if !shown.is_empty() {
            into.extend_from_slice(br#","content":["#);
            for picture in &shown {
                write_picture(into, picture);
                into.push(b',');
            }
            into.extend_from_slice(br#"{"type":"text","text":"#);
            put(into, if text.trim().is_empty() { words::NOTHING } else { &*text });
            into.extend_from_slice(b"}]");
        }
        if output.is_error {
            into.extend_from_slice(br#","is_error":true"#);
        }
        into.push(b'}');
    }
}

fn write_picture(into: &mut Vec<u8>, picture: &Shown<'_>) {
    into.extend_from_slice(br#"{"type":"image","source":{"type":"base64","media_type":"#);
    put(into, picture.media_type);
    into.extend_from_slice(br#","data":"#);
    put(into, &picture.letters);
    into.extend_from_slice(b"}}");
}

fn replied(seq: Seq, reply: &Reply, pen: &mut Pen, into: &mut Vec<u8>) {
    // Nobody speaks before the user does.
    if pen.role.is_none() {
        write_text(into, pen, Role::User, words::LEFT_OUT);
    }
    for reasoning in reply.reasoning.iter().filter_map(Value::as_array).flatten() {
        // What another provider's model thought means nothing to this one.
        let ours = ["thinking", "redacted_thinking"];
        if reasoning["type"].as_str().is_some_and(|kind| ours.contains(&kind)) {
            block(into, pen, Role::Assistant, |into| put(into, reasoning));
        }
    }
    if !reply.text.trim().is_empty() {
        write_text(into, pen, Role::Assistant, &reply.text);
    } else if reply.calls.is_empty() {
        write_text(into, pen, Role::Assistant, words::NOTHING);
    }
    for (call, index) in reply.calls.iter().zip(0u16..) {
        block(into, pen, Role::Assistant, |into| {
            into.extend_from_slice(br#"{"type":"tool_use","id":"#);
            put(into, &CallId { turn: seq, index }.to_string());
            into.extend_from_slice(br#","name":"#);
            put(into, &words::valid_name(&call.name, NAME_BYTES_MAX));
            into.extend_from_slice(br#","input":"#);
            if call.arguments.is_object() {
                put(into, &call.arguments);
            } else {
                put(into, &json!({ "unparsable": call.arguments }));
            }
            into.push(b'}');
        });
    }
}

fn write_text(into: &mut Vec<u8>, pen: &mut Pen, role: Role, text: &str) {
    block(into, pen, role, |into| {
        into.extend_from_slice(br#"{"type":"text","text":"#);
        put(into, text);
        into.push(b'}');
    });
}

/// One more block: in the same message if it is the same role's, in a new one if not. The message
/// stays open.
fn block(into: &mut Vec<u8>, pen: &mut Pen, role: Role, write: impl FnOnce(&mut Vec<u8>)) {
    if pen.role == Some(role) {
        into.push(b',');
    } else {
        if pen.role.is_some() {
            into.extend_from_slice(b"]},");
        }
        into.extend_from_slice(match role {
            Role::User => br#"{"role":"user","content":["#.as_slice(),
            Role::Assistant => br#"{"role":"assistant","content":["#,
        });
    }
    write(into);
    if role == Role::User {
        if pen.role != Some(Role::User) {
            pen.marks[0] = pen.marks[1];
        }
        pen.marks[1] = Some(into.len() - 1);
    }
    pen.role = Some(role);
}
