//! What an agent has to say, as a Chat Completions request.
//!
//! The parts come in the order they stay the same: model and tools for an agent's life, then the
//! messages, of which the system text is the first and what is true only now the last. Providers of
//! this wire remember the longest beginning they have seen; nothing has to be marked.
//!
//! Many models' templates want users and assistants to take turns, so what a user says in a row is
//! one message. Its text is a plain string: not everybody takes parts.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Output, Picture, Purpose, Reply, Seq};
use serde_json::{Value, json};

use super::presets::{Dialect, Quirk};
use crate::provider::Asked;
use crate::schema::Describe;
use crate::wire::Settings;
use crate::wire::history::{Encoding, Histories, Written};
use crate::wire::picture::{Album, Shown, show};
use crate::wire::tuning;
use crate::wire::words::{self, put};

/// Longest tool name the provider takes.
const NAME_BYTES_MAX: usize = 64;

/// Stands between a result and a user where the two may not meet.
const HEARD: &str = "(heard)";

#[derive(Debug)]
pub(crate) struct Builder {
    describe: Arc<dyn Describe>,
    album: Arc<dyn Album>,
    max_tokens: u32,
    dialect: Dialect,
    histories: Histories<Pen>,
}

/// Where writing a history stopped. A user's message stays open, inside its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pen {
    role: Option<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    /// The user too, with pictures: a message that is closed.
    Shown,
    Assistant,
    Tool,
}

impl Builder {
    pub(crate) fn new(settings: &Settings, dialect: Dialect) -> Builder {
        Builder {
            describe: Arc::clone(&settings.describe),
            album: Arc::clone(&settings.album),
            max_tokens: settings.max_tokens,
            dialect,
            histories: Histories::default(),
        }
    }

    pub(crate) fn body(&self, asked: &Asked) -> Vec<u8> {
        self.histories.write(self, asked, |written| self.whole(written, asked))
    }

    /// The one copy that is made of a history: into the body that is sent.
    fn whole(&self, written: &Written<Pen>, asked: &Asked) -> Vec<u8> {
        let last = self.last_words(written.pen, asked);
        let head = &written.head.bytes;
        let mut body = Vec::with_capacity(head.len() + written.bytes.len() + last.len());
        body.extend_from_slice(head);
        body.extend_from_slice(&written.bytes);
        body.extend_from_slice(&last);
        body
    }

    /// What is said after the history and is in no later request: what is true now, or what else
    /// the model is to do. The last word is never the model's own.
    fn last_words(&self, mut pen: Pen, asked: &Asked) -> Vec<u8> {
        let request = &asked.request;
        let summarise = match request.purpose {
            Purpose::Answer => None,
            Purpose::Summary { .. } => Some(words::SUMMARISE),
        };
        let mut said: Vec<&str> = request.now.as_deref().into_iter().chain(summarise).collect();
        if said.is_empty() && matches!(pen.role, None | Some(Role::Assistant)) {
            said.push(words::GO_ON);
        }
        let mut last = Vec::new();
        for text in said {
            self.user(text, &mut pen, &mut last);
        }
        close(pen, &mut last);
        last.push(b']');
        // Without tools there is nothing to choose from.
        if summarise.is_some() && !request.tools.is_empty() {
            last.extend_from_slice(br#","tool_choice":"none""#);
        }
        if let Some(schema) = words::form(asked).filter(|_| self.dialect.has(Quirk::JsonSchema)) {
            let form = json!({ "name": "output", "schema": schema, "strict": false });
            last.extend_from_slice(br#","response_format":{"type":"json_schema","json_schema":"#);
            put(&mut last, &form);
            last.push(b'}');
        }
        last.push(b'}');
        let (temperature, effort) = tuning::plain(asked);
        let effort = effort.filter(|_| !self.dialect.has(Quirk::NoEffort)).map(Value::from);
        words::set(&mut last, [("temperature", temperature), ("reasoning_effort", effort)]);
        last
    }

    fn tool(&self, name: &str) -> Value {
        let it = self.describe.describe(name).unwrap_or_default();
        let function = json!({ "name": name, "description": it.about, "parameters": it.schema });
        json!({ "type": "function", "function": function })
    }

    /// One more text of the user: in the same message if the last word was theirs.
    fn user(&self, text: &str, pen: &mut Pen, into: &mut Vec<u8>) {
        if pen.role == Some(Role::User) {
            // An empty line between them, whose last byte lies over the quote that opens the text.
            into.extend_from_slice(br"\n\");
            let quote = into.len();
            put(into, text);
            into[quote] = b'n';
        } else {
            self.make_way(*pen, into);
            into.extend_from_slice(br#",{"role":"user","content":"#);
            put(into, text);
        }
        into.pop();
        pen.role = Some(Role::User);
    }

    /// Some want the model to say something between the result of a call and the user.
    fn make_way(&self, pen: Pen, into: &mut Vec<u8>) {
        if pen.role == Some(Role::Tool) && self.dialect.has(Quirk::NoUserAfterTool) {
            self.assistant(&Reply { text: HEARD.into(), ..Reply::default() }, Seq(0), into);
        }
    }

    /// A text of the user with what they show.
    fn shown(&self, text: &str, pictures: &[Picture], pen: &mut Pen, into: &mut Vec<u8>) {
        let (shown, gone) = show(&*self.album, pictures);
        let text = gone.map_or_else(|| text.to_owned(), |gone| format!("{text}\n{gone}"));
        if shown.is_empty() {
            return self.user(&text, pen, into);
        }
        close(*pen, into);
        self.make_way(*pen, into);
        let url = |it: &Shown<'_>| json!({ "type": "image_url", "image_url": { "url": it.url() } });
        let mut parts: Vec<Value> = shown.iter().map(url).collect();
        if !text.trim().is_empty() {
            parts.insert(0, json!({ "type": "text", "text": text }));
        }
        into.extend_from_slice(br#",{"role":"user","content":"#);
        put(into, &parts);
        into.push(b'}');
        pen.role = Some(Role::Shown);
    }

    fn replied(&self, seq: Seq, reply: &Reply, pen: &mut Pen, into: &mut Vec<u8>) {
        match pen.role {
            None => self.user(words::LEFT_OUT, pen, into),
            Some(Role::Assistant) => self.user(words::GO_ON, pen, into),
            Some(Role::User | Role::Shown | Role::Tool) => {}
        }
        close(*pen, into);
        self.assistant(reply, seq, into);
        pen.role = Some(Role::Assistant);
    }

    fn assistant(&self, reply: &Reply, seq: Seq, into: &mut Vec<u8>) {
        into.extend_from_slice(br#",{"role":"assistant","content":"#);
        if !reply.text.trim().is_empty() {
            put(into, &reply.text);
        } else if reply.calls.is_empty() {
            put(into, words::NOTHING);
        } else {
            put(into, &Value::Null);
        }
        self.reasoning(reply, into);
        for (call, index) in reply.calls.iter().zip(0u16..) {
            let begin = if index == 0 { br#","tool_calls":["#.as_slice() } else { b"," };
            into.extend_from_slice(begin);
            into.extend_from_slice(br#"{"id":"#);
            put(into, &self.id(CallId { turn: seq, index }));
            into.extend_from_slice(br#","type":"function","function":{"name":"#);
            put(into, &words::valid_name(&call.name, NAME_BYTES_MAX));
            into.extend_from_slice(br#","arguments":"#);
            let arguments = if call.arguments.is_object() {
                call.arguments.to_string()
            } else {
                json!({ "unparsable": call.arguments }).to_string()
            };
            put(into, &arguments);
            into.extend_from_slice(b"}}");
        }
        let end = if reply.calls.is_empty() { b"}".as_slice() } else { b"]}" };
        into.extend_from_slice(end);
    }

    /// What the model thought goes back only to those who ask for it, and only in their own words.
    fn reasoning(&self, reply: &Reply, into: &mut Vec<u8>) {
        let items = || reply.reasoning.iter().filter_map(Value::as_array).flatten();
        let kind = |item: &Value| item["type"].as_str().unwrap_or_default().to_owned();
        if self.dialect.has(Quirk::ReasoningBack) {
            for item in items().filter(|item| kind(item) == "reasoning_content").take(1) {
                into.extend_from_slice(br#","reasoning_content":"#);
                put(into, &item["text"]);
            }
        }
        if self.dialect.has(Quirk::DetailsBack) {
            let ours: Vec<&Value> =
                items().filter(|item| kind(item).starts_with("reasoning.")).collect();
            if !ours.is_empty() {
                into.extend_from_slice(br#","reasoning_details":"#);
                put(into, &ours);
            }
        }
    }

    fn result(&self, call: CallId, output: &Output, into: &mut Vec<u8>) {
        into.extend_from_slice(br#",{"role":"tool","tool_call_id":"#);
        put(into, &self.id(call));
        into.extend_from_slice(br#","content":"#);
        let failed = if output.is_error { "[failed] " } else { "" };
        let whole = output.handle.as_ref().map(|it| words::whole_at(it)).unwrap_or_default();
        if output.text.is_empty() && whole.is_empty() {
            put(into, if output.is_error { "[failed]" } else { words::NOTHING });
        } else {
            put(into, &format!("{failed}{}{whole}", output.text));
        }
        into.push(b'}');
    }

    fn id(&self, call: CallId) -> String {
        if self.dialect.has(Quirk::NineSignIds) { nine_signs(call) } else { call.to_string() }
    }
}

impl Encoding for Builder {
    type Pen = Pen;

    fn head(&self, asked: &Asked, into: &mut Vec<u8>) {
        let request = &asked.request;
        into.extend_from_slice(br#"{"model":"#);
        put(into, words::model(asked));
        into.extend_from_slice(if self.dialect.has(Quirk::MaxCompletionTokens) {
            br#","max_completion_tokens":"#.as_slice()
        } else {
            br#","max_tokens":"#
        });
        put(into, &self.max_tokens);
        into.extend_from_slice(br#","stream":true"#);
        if !self.dialect.has(Quirk::NoStreamOptions) {
            into.extend_from_slice(br#","stream_options":{"include_usage":true}"#);
        }
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request.tools.iter().map(|name| self.tool(name)).collect();
            into.extend_from_slice(br#","tools":"#);
            put(into, &tools);
            if self.dialect.has(Quirk::ParallelCalls) {
                into.extend_from_slice(br#","parallel_tool_calls":true"#);
            }
        }
        into.extend_from_slice(br#","messages":[{"role":"system","content":"#);
        put(into, &words::system(asked));
        into.push(b'}');
    }

    fn line(&self, line: &Line, pen: &mut Pen, into: &mut Vec<u8>) {
        match &line.body {
            Body::Told(notes) => {
                let mut said = false;
                for note in notes.iter().filter(|note| words::says_something(note)) {
                    said = true;
                    self.shown(&words::note(note), &note.pictures, pen, into);
                }
                if !said {
                    self.user(words::NOTHING, pen, into);
                }
            }
            Body::Replied(reply) => self.replied(line.seq, reply, pen, into),
            Body::Results(results) => {
                for (call, output) in results {
                    close(*pen, into);
                    self.result(*call, output, into);
                    pen.role = Some(Role::Tool);
                }
                for (call, output) in results {
                    if !output.pictures.is_empty() {
                        self.shown(&words::shown_by(*call), &output.pictures, pen, into);
                    }
                }
            }
            Body::Summary(text) => self.user(&words::summary(text), pen, into),
        }
    }
}

/// Ends the message that is open.
fn close(pen: Pen, into: &mut Vec<u8>) {
    if pen.role == Some(Role::User) {
        into.extend_from_slice(br#""}"#);
    }
}

/// Six signs for the turn, three for the place in it. They repeat after two billion.
fn nine_signs(call: CallId) -> String {
    let mut left = call.turn.0 % 36_u64.pow(6) * 36_u64.pow(3) + u64::from(call.index) % 46_656;
    let mut signs = [b'0'; 9];
    for sign in signs.iter_mut().rev() {
        *sign = b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(left % 36).unwrap_or(0)];
        left /= 36;
    }
    signs.into_iter().map(char::from).collect()
}
