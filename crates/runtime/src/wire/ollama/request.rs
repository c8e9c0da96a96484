//! What an agent has to say, as a chat request.
//!
//! The server reuses what it has computed for a beginning it has seen: system text and tools come
//! first, then the history, and last what is true only now.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Output, Picture, Purpose, Reply, Seq};
use serde_json::{Value, json};

use super::THINKING;
use crate::provider::Asked;
use crate::schema::Describe;
use crate::wire::Settings;
use crate::wire::history::{Encoding, Histories, Written};
use crate::wire::picture::{Album, show};
use crate::wire::tuning;
use crate::wire::words::{self, GO_ON, NOTHING, SUMMARISE, put, system, valid_name};

/// Longest tool name that is sent.
const NAME_BYTES_MAX: usize = 128;

#[derive(Debug)]
pub(crate) struct Builder {
    describe: Arc<dyn Describe>,
    album: Arc<dyn Album>,
    max_tokens: u32,
    context: Option<u32>,
    histories: Histories<Pen>,
}

/// Where writing a history stopped: after the last message.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    /// The model has spoken last.
    answered: bool,
    begun: bool,
    /// The last reply and the names of what it called: results are known by them here.
    turn: Option<Seq>,
    called: Vec<String>,
}

impl Builder {
    pub(crate) fn new(settings: &Settings) -> Builder {
        Builder {
            describe: Arc::clone(&settings.describe),
            album: Arc::clone(&settings.album),
            max_tokens: settings.max_tokens,
            context: settings.context,
            histories: Histories::default(),
        }
    }

    pub(crate) fn body(&self, asked: &Asked) -> Vec<u8> {
        self.histories.write(self, asked, |written| match asked.request.purpose {
            Purpose::Answer => whole(&written.head.bytes, written, asked),
            // There is no other way to say that no tool is to be used.
            Purpose::Summary { .. } => {
                let mut head = Vec::new();
                self.write_head(asked, &[], &mut head);
                whole(&head, written, asked)
            }
        })
    }

    fn tool(&self, name: &str) -> Value {
        let it = self.describe.describe(name).unwrap_or_default();
        let function = json!({ "name": name, "description": it.about, "parameters": it.schema });
        json!({ "type": "function", "function": function })
    }

    /// Something the user says, with what they show.
    fn shown(&self, text: &str, pictures: &[Picture], into: &mut Vec<u8>) {
        let (shown, gone) = show(&*self.album, pictures);
        into.push(b',');
        match gone {
            Some(gone) => write_text(into, "user", &format!("{text}\n{gone}")),
            None => write_text(into, "user", text),
        }
        if !shown.is_empty() {
            into.pop();
            into.extend_from_slice(br#","images":"#);
            put(into, &shown.iter().map(|it| &*it.letters).collect::<Vec<_>>());
            into.push(b'}');
        }
    }

    fn write_head(&self, asked: &Asked, tools: &[String], into: &mut Vec<u8>) {
        into.extend_from_slice(br#"{"model":"#);
        put(into, words::model(asked));
        into.extend_from_slice(br#","stream":true,"options":{"num_predict":"#);
        put(into, &self.max_tokens);
        if let Some(context) = self.context {
            into.extend_from_slice(br#","num_ctx":"#);
            put(into, &context);
        }
        into.push(b'}');
        let (temperature, effort) = tuning::local(asked);
        words::set(into, [("temperature", temperature)]);
        if let Some(effort) = effort {
            into.extend_from_slice(br#","think":"#);
            put(into, effort);
        }
        // Whoever must answer in a form calls no tools: beside them it is told in words only.
        if let Some(schema) = words::form(asked).filter(|_| tools.is_empty()) {
            into.extend_from_slice(br#","format":"#);
            put(into, schema);
        }
        if !tools.is_empty() {
            let tools: Vec<Value> = tools.iter().map(|name| self.tool(name)).collect();
            into.extend_from_slice(br#","tools":"#);
            put(into, &tools);
        }
        into.extend_from_slice(br#","messages":["#);
        write_text(into, "system", &system(asked));
    }
}

/// The one copy that is made of a history: into the body that is sent. What is said after it is in
/// no later request.
fn whole(head: &[u8], written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
    let summarise = match asked.request.purpose {
        Purpose::Answer => None,
        Purpose::Summary { .. } => Some(SUMMARISE),
    };
    let now = asked.request.now.as_deref();
    let mut said: Vec<&str> = now.into_iter().chain(summarise).collect();
    if said.is_empty() && (written.pen.answered || !written.pen.begun) {
        said.push(GO_ON);
    }
    let mut last = Vec::new();
    for text in said {
        last.push(b',');
        write_text(&mut last, "user", text);
    }
    last.extend_from_slice(b"]}");
    [head, &written.bytes, &last].concat()
}

impl Encoding for Builder {
    type Pen = Pen;

    fn head(&self, asked: &Asked, into: &mut Vec<u8>) {
        self.write_head(asked, &asked.request.tools, into);
    }

    fn line(&self, line: &Line, pen: &mut Pen, into: &mut Vec<u8>) {
        pen.begun = true;
        pen.answered = matches!(&line.body, Body::Replied(_));
        match &line.body {
            Body::Told(notes) => {
                let before = into.len();
                for note in notes.iter().filter(|note| words::says_something(note)) {
                    self.shown(&words::note(note), &note.pictures, into);
                }
                if into.len() == before {
                    into.push(b',');
                    write_text(into, "user", NOTHING);
                }
            }
            Body::Replied(reply) => replied(line.seq, reply, pen, into),
            Body::Results(results) => {
                for (call, output) in results {
                    result(*call, output, pen, into);
                }
                for (call, output) in results {
                    if !output.pictures.is_empty() {
                        self.shown(&words::shown_by(*call), &output.pictures, into);
                    }
                }
            }
            Body::Summary(text) => {
                into.push(b',');
                write_text(into, "user", &words::summary(text));
            }
        }
    }
}

fn replied(seq: Seq, reply: &Reply, pen: &mut Pen, into: &mut Vec<u8>) {
    let name = |name: &str| valid_name(name, NAME_BYTES_MAX);
    pen.turn = Some(seq);
    pen.called = reply.calls.iter().map(|call| name(&call.name)).collect();
    into.extend_from_slice(br#",{"role":"assistant","content":"#);
    let silent = reply.text.trim().is_empty() && reply.calls.is_empty();
    put(into, if silent { NOTHING } else { &reply.text });
    let all = reply.reasoning.iter().filter_map(Value::as_array).flatten();
    // What another provider's model thought means nothing to this one.
    let mut ours = all.filter(|item| item["type"] == THINKING);
    if let Some(thinking) = ours.find_map(|item| item["thinking"].as_str()) {
        into.extend_from_slice(br#","thinking":"#);
        put(into, thinking);
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().zip(&pen.called).zip(0u16..);
        let calls: Vec<Value> = calls
            .map(|((call, name), index)| {
                let arguments = if call.arguments.is_object() {
                    call.arguments.clone()
                } else {
                    json!({ "unparsable": call.arguments })
                };
                let id = CallId { turn: seq, index }.to_string();
                json!({ "id": id, "function": { "name": name, "arguments": arguments } })
            })
            .collect();
        into.extend_from_slice(br#","tool_calls":"#);
        put(into, &calls);
    }
    into.push(b'}');
}

fn result(call: CallId, output: &Output, pen: &Pen, into: &mut Vec<u8>) {
    into.extend_from_slice(br#",{"role":"tool","content":"#);
    let text = words::output(output);
    // There is no other place to say so.
    if output.is_error {
        put(into, &format!("error: {text}"));
    } else {
        put(into, &*text);
    }
    let name = pen.called.get(usize::from(call.index)).filter(|_| pen.turn == Some(call.turn));
    if let Some(name) = name {
        into.extend_from_slice(br#","tool_name":"#);
        put(into, name);
    }
    into.extend_from_slice(br#","tool_call_id":"#);
    put(into, &call.to_string());
    into.push(b'}');
}

fn write_text(into: &mut Vec<u8>, role: &str, text: &str) {
    into.extend_from_slice(br#"{"role":"#);
    put(into, role);
    into.extend_from_slice(br#","content":"#);
    put(into, text);
    into.push(b'}');
}
