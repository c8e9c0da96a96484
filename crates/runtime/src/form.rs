//! What an agent hands in, held against the schema its definition wants it to match. The edge
//! compares; what follows from a flaw is the kernel's to decide.

use std::fmt::Write as _;

use locum_kernel::{Reply, headline};
use serde_json::Value;

/// The tool an agent hands its result in with.
const COMPLETE: &str = "complete";
/// Flaws told at once; the next try shows the rest.
const FLAWS_SHOWN: usize = 3;
const FLAW_BYTES_MAX: usize = 300;

/// What is wrong with what a reply hands in. `None` if it hands in nothing yet, or what is wanted.
#[must_use]
pub fn flaw(schema: &Value, reply: &Reply) -> Option<String> {
    let completed = reply.calls.iter().find(|call| call.name == COMPLETE);
    let handed_in = match completed.map(|call| call.arguments.get("result")) {
        Some(Some(Value::String(text))) => value(text),
        Some(Some(other)) => Ok(other.clone()),
        None if reply.calls.is_empty() => value(&reply.text),
        // A result that is missing is noticed by whoever runs the call.
        Some(None) | None => return None,
    };
    match handed_in {
        Ok(value) => mismatch(schema, &value),
        Err(why) => Some(why),
    }
}

/// The one JSON value a text holds, with or without a fence around it.
pub fn value(text: &str) -> Result<Value, String> {
    let text = unfenced(text.trim());
    serde_json::from_str(text).map_err(|error| {
        let begin = headline(text, 60);
        format!("It must be one JSON value and nothing else ({error}); it begins {begin:?}.")
    })
}

fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    // After the opening fence comes the name of a language, to the end of the line.
    inside.and_then(|rest| rest.split_once('\n')).map_or(text, |(_, rest)| rest.trim())
}

/// How a value fails to match; `None` if it matches.
#[must_use]
pub fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("The schema itself makes no sense: {error}.")),
    };
    let mut flaws = validator.iter_errors(value);
    let mut text = String::new();
    for flaw in flaws.by_ref().take(FLAWS_SHOWN) {
        let place = flaw.instance_path().to_string();
        let place = if place.is_empty() { "the value itself" } else { &place };
        let what = headline(&flaw.to_string(), FLAW_BYTES_MAX);
        let _ = write!(text, "At {place}: {what}. ");
    }
    let more = flaws.count();
    if more > 0 {
        let _ = write!(text, "And {more} more.");
    }
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Whether a schema can be used at all.
pub fn check(schema: &Value) -> Result<(), String> {
    jsonschema::validator_for(schema).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use locum_kernel::Use;
    use serde_json::json;

    use super::*;

    fn said(text: &str) -> Reply {
        Reply { text: text.into(), ..Reply::default() }
    }

    fn called(name: &str, arguments: Value) -> Reply {
        let calls = vec![Use::new(name, arguments)];
        Reply { calls, ..Reply::default() }
    }

    #[test]
    fn what_is_handed_in_is_compared() {
        let schema = json!({
            "type": "object",
            "properties": { "total": { "type": "integer" }, "of": { "enum": ["files", "lines"] } },
            "required": ["total"],
        });
        let cases: &[(Reply, Option<&str>)] = &[
            (said(r#"{"total": 3}"#), None),
            (said("```json\n{\"total\": 3}\n```"), None),
            (said("  ```\n{\"total\": 3}```  "), None),
            (called("complete", json!({ "result": "{\"total\":3}" })), None),
            (called("complete", json!({ "result": { "total": 3 } })), None),
            // Not its last word.
            (called("read", json!({ "path": "a" })), None),
            (called("complete", json!({})), None),
            (said("three"), Some("It must be one JSON value and nothing else")),
            (said("{\"total\": 3} as you asked"), Some("trailing characters")),
            (said("{}"), Some("At the value itself: \"total\" is a required property.")),
            (said("{\"total\": \"3\"}"), Some("At /total: \"3\" is not of type \"integer\".")),
            (said("{\"total\": 1, \"of\": \"x\"}"), Some("At /of: ")),
            (called("complete", json!({ "result": 3 })), Some("is not of type \"object\"")),
        ];
        for (reply, expected) in cases {
            let found = flaw(&schema, reply);
            match expected {
                None => assert_eq!(found, None, "{reply:?}"),
                Some(words) => {
                    let found = found.unwrap_or_default();
                    assert!(found.contains(words), "{reply:?}: {found}");
                }
            }
        }
    }

    #[test]
    fn a_schema_that_makes_no_sense_is_said_to() {
        assert!(check(&json!({ "type": "objekt" })).is_err());
        assert!(check(&json!({ "$ref": "http://127.0.0.1:9/x.json" })).is_err());
        assert!(check(&json!({ "type": "array", "items": { "type": "string" } })).is_ok());
    }
}
