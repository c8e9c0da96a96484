//! Reading entries of every version there ever was. An old entry is brought up to today's words
//! before it is folded, so that `apply` knows only one vocabulary.

use alloc::format;
use alloc::string::{String, ToString};
use serde_json::{Value, json};

use crate::{Definition, Entry, VERSION};

impl Entry {
    /// An entry from its JSON text, whatever version wrote it.
    pub fn read(text: &str) -> Result<Entry, Unreadable> {
        // Today's entries begin with today's version: they are parsed once, straight.
        if text.starts_with(&format!("{{\"v\":{VERSION},")) {
            return serde_json::from_str(text).map_err(|why| broken(&why));
        }
        let mut value: Value = serde_json::from_str(text).map_err(|why| broken(&why))?;
        let version = value["v"].as_u64().ok_or_else(|| Unreadable::Broken("no version".into()))?;
        if version > u64::from(VERSION) {
            return Err(Unreadable::Newer { version });
        }
        if version < 2 {
            from_1_to_2(&mut value);
        }
        value["v"] = json!(VERSION);
        serde_json::from_value(value).map_err(|why| broken(&why))
    }
}

fn broken(why: &serde_json::Error) -> Unreadable {
    Unreadable::Broken(why.to_string())
}

/// Why an entry cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    Newer { version: u64 },
    Broken(String),
}

impl core::error::Error for Unreadable {}

impl core::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unreadable::Newer { version } => {
                write!(f, "the journal speaks version {version}, this locum only {VERSION}")
            }
            Unreadable::Broken(why) => write!(f, "an entry is damaged: {why}"),
        }
    }
}

/// Version 1 said only whether a turn was the last, not at which limit; it did not write a
/// definition's digest beside it, nor a parcel apart from the words it carries.
fn from_1_to_2(entry: &mut Value) {
    let events = entry.get_mut("events").and_then(Value::as_array_mut);
    for event in events.into_iter().flatten() {
        if let Some(Value::Object(turn)) = event.get_mut("turn_began") {
            let limit = json!({ "limit": "turns", "of": turn.get("agent"), "max": 0 });
            let last = turn.get("grace") == Some(&json!(true));
            turn.insert("grace".into(), if last { limit } else { Value::Null });
        }
        // Words for a channel were one fact with their parcel.
        if let Some(spoke) = event.get("spoke").filter(|spoke| spoke["to"].is_string()) {
            *event = json!({ "posted": spoke });
        }
        let configured = event.get_mut("configured").and_then(|it| it.get_mut("changes"));
        let changes = configured.and_then(Value::as_array_mut);
        for change in changes.into_iter().flatten() {
            let Some(definition) = change.get("definition").cloned() else { continue };
            if let Ok(typed) = serde_json::from_value::<Definition>(definition.clone()) {
                let digest = typed.digest();
                change["definition"] = json!({ "digest": digest, "definition": definition });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_old_entry_is_an_error_and_no_panic() {
        for event in ["{\"turn_began\":5}", "{\"configured\":5}", "{\"spoke\":5}", "5", "null"] {
            let text = format!("{{\"v\":1,\"seq\":1,\"at\":0,\"events\":[{event}]}}");
            assert!(matches!(Entry::read(&text), Err(Unreadable::Broken(_))), "{event}");
        }
        for text in ["5", "[]", "null", "{\"v\":1}", "{\"v\":1,\"events\":{}}"] {
            assert!(Entry::read(text).is_err(), "{text}");
        }
    }
}
