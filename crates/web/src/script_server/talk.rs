//! What a request says, whichever wire it came over.

use locum_kernel::Digest;
use locum_runtime::script::{Script, Turn};
use serde_json::Value;

/// Who answers when nobody is named.
const MAIN: &str = "main";

#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) model: String,
    /// What the model is told it is.
    pub(super) system: String,
    turns: Vec<Said>,
    pub(super) stream: bool,
    /// Whether a stream tells its usage, where that is a matter of choice.
    pub(super) stream_usage: bool,
    /// The conversation as it came, by which its places are told apart.
    digest: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Said {
    User(String),
    Heard(String),
    Replied,
}

impl Said {
    fn turn(&self) -> Turn<'_> {
        match self {
            Said::User(text) => Turn::User(text),
            Said::Heard(text) => Turn::Heard(text),
            Said::Replied => Turn::Replied,
        }
    }
}

impl Talk {
    /// With everything but the turns; `conversation` is where they are.
    pub(super) fn new(body: &Value, conversation: &[Value]) -> Result<Talk, String> {
        let Some(model) = body.get("model").and_then(Value::as_str) else {
            return Err("`model` is missing, or is no text.".to_owned());
        };
        let stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        // A system text may tell the time: two tries at one place must still be the same place.
        let is_system = |item: &&Value| matches!(text(item, "role"), "system" | "developer");
        let spoken = conversation.iter().filter(|item| !is_system(item)).map(Value::to_string);
        let digest = Digest::of_bytes(spoken.collect::<Vec<_>>().join("\n").as_bytes());
        let digest = digest.as_str().to_owned();
        Ok(Talk { model: model.to_owned(), stream, digest, ..Talk::default() })
    }

    pub(super) fn user(&mut self, text: String) {
        self.turns.push(Said::User(text));
    }

    pub(super) fn heard(&mut self, text: String) {
        self.turns.push(Said::Heard(text));
    }

    /// What a model says in one go may come back in several parts.
    pub(super) fn replied(&mut self) {
        if self.turns.last() != Some(&Said::Replied) {
            self.turns.push(Said::Replied);
        }
    }

    /// The first system text counts: it says who the model is.
    pub(super) fn system(&mut self, text: String) {
        if self.system.is_empty() {
            self.system = text;
        }
    }

    pub(super) fn turns(&self) -> Vec<Turn<'_>> {
        self.turns.iter().map(Said::turn).collect()
    }

    /// Which agent of the script is meant.
    pub(super) fn agent<'s>(&self, script: &'s Script) -> &'s str {
        let last = self.model.rsplit('/').next().unwrap_or_default();
        let first_line = self.system.trim_start().lines().next().unwrap_or_default();
        let named = |name: &&str| *name == self.model || *name == last;
        let quoted = |name: &'s str| {
            let at = [format!("\"{name}\""), format!("`{name}`")];
            let at = at.iter().filter_map(|quoted| first_line.find(quoted)).min();
            at.map(|at| (at, name))
        };
        let by_model = script.names().find(named);
        by_model.or_else(|| Some(script.names().filter_map(quoted).min()?.1)).unwrap_or(MAIN)
    }

    /// Names this place of this conversation with this agent over this wire.
    pub(super) fn tag(&self, agent: &str, wire: &str) -> String {
        let digest = Digest::of_bytes(format!("{wire}\0{agent}\0{}", self.digest).as_bytes());
        digest.as_str().chars().take(24).collect()
    }
}

/// A list that must be there.
pub(super) fn list<'a>(body: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    let list = body.get(name).and_then(Value::as_array);
    list.ok_or_else(|| format!("`{name}` is missing, or is no list."))
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text of some content: a string, or parts of which some are text.
pub(super) fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            String::new()
        }
    }
}
