//! One item of a response: a message, reasoning or a call, from its first piece to its end.
//!
//! The pieces are for whoever listens. What counts is the item as the provider gives it when it is
//! done; only where a server leaves that empty do the pieces stand for it.

use locum_kernel::Failure;
use locum_kernel::limits::ARGUMENT_BYTES_MAX;
use serde_json::{Map, Value};

use crate::wire::malformed;

#[derive(Debug)]
pub(super) struct Item {
    /// The provider's name for it. Some servers change it on the way.
    id: String,
    pub(super) body: Body,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Done,
    /// Done, but the model had no room to end it.
    Short,
}

#[derive(Debug)]
pub(super) enum Body {
    Message {
        said: Said,
        refusal: String,
        /// Whether it is the answer or said on the way; the provider wants to hear it again.
        phase: Option<String>,
    },
    Reasoning {
        said: Said,
        /// As it came when it was done.
        whole: Option<Value>,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// A tool of the provider's own, or something of tomorrow.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    Other,
}

impl Kind {
    pub(super) fn of(item: &Value) -> Kind {
        match text(item, "type") {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Other,
        }
    }
}

impl Item {
    /// An item that begins.
    pub(super) fn begun(item: &Value) -> Item {
        let mut begun = Item::new(Kind::of(item));
        text(item, "id").clone_into(&mut begun.id);
        if let Body::Call { id, name, .. } = &mut begun.body {
            text(item, "call_id").clone_into(id);
            text(item, "name").clone_into(name);
        }
        begun
    }

    pub(super) fn new(kind: Kind) -> Item {
        let said = Said::default();
        let body = match kind {
            Kind::Message => Body::Message { said, refusal: String::new(), phase: None },
            Kind::Reasoning => Body::Reasoning { said, whole: None },
            Kind::Call => {
                let (id, name, arguments) = Default::default();
                Body::Call { id, name, arguments }
            }
            Kind::Other => Body::Other,
        };
        Item { id: String::new(), body, state: State::Open }
    }

    pub(super) fn kind(&self) -> Kind {
        match &self.body {
            Body::Message { .. } => Kind::Message,
            Body::Reasoning { .. } => Kind::Reasoning,
            Body::Call { .. } => Kind::Call,
            Body::Other => Kind::Other,
        }
    }

    /// The same item told again, as far as names go.
    pub(super) fn is(&self, item: &Value) -> bool {
        let same = |ours: &str, name: &str| !ours.is_empty() && ours == text(item, name);
        let call = match &self.body {
            Body::Call { id, .. } => same(id, "call_id"),
            Body::Message { .. } | Body::Reasoning { .. } | Body::Other => false,
        };
        self.kind() == Kind::of(item) && (call || same(&self.id, "id"))
    }

    /// Pieces of a call may go by the name of the item or by that of the call.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let call = match &self.body {
            Body::Call { id, .. } => id == name,
            Body::Message { .. } | Body::Reasoning { .. } | Body::Other => false,
        };
        !name.is_empty() && (call || self.id == name)
    }

    /// The item is done, and this is what it came to. Says how many bytes are kept of it.
    pub(super) fn settle(&mut self, item: Value) -> Result<usize, Failure> {
        if self.kind() != Kind::of(&item) {
            return Err(malformed("an item ends as another than it began"));
        }
        let short = text(&item, "status") == "incomplete";
        self.state = if short { State::Short } else { State::Done };
        match &mut self.body {
            Body::Message { said, refusal, phase } => {
                said.settle(joined(&item["content"], "output_text", ""));
                let refused = joined(&item["content"], "refusal", "");
                if !refused.is_empty() {
                    *refusal = refused;
                }
                *phase = item["phase"].as_str().map(str::to_owned);
                Ok(said.text.len() + refusal.len())
            }
            Body::Reasoning { said, whole } => {
                let summary = joined(&item["summary"], "summary_text", BETWEEN);
                let content = joined(&item["content"], "reasoning_text", BETWEEN);
                said.settle(if summary.is_empty() { content } else { summary });
                let sealed = text(&item, "encrypted_content").len();
                *whole = Some(item);
                Ok(2 * said.text.len() + sealed)
            }
            Body::Call { id, name, arguments } => {
                agree(id, text(&item, "call_id"))?;
                agree(name, text(&item, "name"))?;
                if name.is_empty() {
                    return Err(malformed("a call of a tool without a name"));
                }
                match &item["arguments"] {
                    Value::String(whole) if whole.is_empty() => {}
                    Value::String(whole) => whole.clone_into(arguments),
                    // Compatible servers may send them parsed.
                    object @ Value::Object(_) => *arguments = object.to_string(),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
                }
                Ok(name.len() + arguments.len())
            }
            Body::Other => Ok(0),
        }
    }
}

/// Between the parts of a summary, each of which is a paragraph.
const BETWEEN: &str = "\n\n";

/// What was said in pieces, and how much of it listeners have had.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    part: Option<Part>,
    /// Where that part begins.
    from: usize,
    told: usize,
}

/// Which part of an item a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Content(u64),
    Summary(u64),
}

impl Said {
    pub(super) fn add(&mut self, part: Part, kind: Kind, piece: &str) -> usize {
        let before = self.text.len();
        if self.part != Some(part) {
            if kind == Kind::Reasoning && !self.text.is_empty() {
                self.text.push_str(BETWEEN);
            }
            (self.part, self.from) = (Some(part), self.text.len());
        }
        self.text.push_str(piece);
        self.text.len() - before
    }

    /// A part is over: some servers say it only now.
    pub(super) fn end(&mut self, part: Part, kind: Kind, whole: &str) -> usize {
        let heard = self.part == Some(part) && self.text.len() > self.from;
        if heard || whole.is_empty() { 0 } else { self.add(part, kind, whole) }
    }

    fn settle(&mut self, whole: String) {
        if whole.is_empty() {
            return;
        }
        // Listeners cannot unhear; they get the rest only if it is the rest.
        if !whole.starts_with(&self.text[..self.told]) {
            self.told = whole.len();
        }
        self.text = whole;
    }

    pub(super) fn untold(&mut self) -> &str {
        let from = std::mem::replace(&mut self.told, self.text.len());
        &self.text[from..]
    }
}

fn text<'v>(item: &'v Value, field: &str) -> &'v str {
    item[field].as_str().unwrap_or_default()
}

/// The texts of all parts of a kind.
fn joined(parts: &Value, kind: &str, between: &str) -> String {
    let field = if kind == "refusal" { "refusal" } else { "text" };
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = parts.iter().filter(|part| part["type"].as_str() == Some(kind));
    of_kind.map(|part| text(part, field)).collect::<Vec<_>>().join(between)
}

/// A call is told twice, and must be the same call both times.
fn agree(known: &mut String, told: &str) -> Result<(), Failure> {
    if !known.is_empty() && !told.is_empty() && known != told {
        return Err(malformed("a call ends as another than it began"));
    }
    if known.is_empty() {
        told.clone_into(known);
    }
    Ok(())
}

/// Reasoning as the provider takes it back, if it does: nothing is stored there, so what is not in
/// the item itself is nowhere.
pub(super) fn given_back(item: Value) -> Option<Value> {
    let Value::Object(mut item) = item else { return None };
    let has = |item: &Map<String, Value>, field: &str| match item.get(field) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    };
    if !has(&item, "encrypted_content") && !has(&item, "content") {
        return None;
    }
    item.remove("status");
    item.retain(|_, value| !value.is_null());
    item.entry("summary").or_insert_with(|| Value::Array(Vec::new()));
    Some(Value::Object(item))
}

/// Arguments are an object, or the text the model wrote instead: the kernel runs no such call and
/// tells the model. Nothing written means no arguments, if the item was ended in order.
pub(super) fn parsed(arguments: &str, state: State) -> Value {
    // Far beyond what the kernel runs they are not worth their memory.
    let object = match state {
        State::Done if arguments.is_empty() => Some(Value::Object(Map::new())),
        State::Done if arguments.len() <= 4 * ARGUMENT_BYTES_MAX => {
            serde_json::from_str(arguments).ok().filter(Value::is_object)
        }
        State::Done | State::Open | State::Short => None,
    };
    object.unwrap_or_else(|| Value::String(arguments.to_owned()))
}
