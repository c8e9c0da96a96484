//! What a call of a delegation tool asks for, whichever of the names it was made by.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::{Map, Value};

use super::world::READER;
use crate::limits::{INTERACTIVE_TURNS_MAX, LABEL_BYTES_MAX};
use crate::{Make, Mode, Tool, headline};

/// A birth somebody asked for.
pub(super) struct Request {
    pub(super) name: String,
    pub(super) brief: String,
    pub(super) label: Option<String>,
    pub(super) mode: Mode,
    pub(super) model: Option<String>,
    pub(super) talk_turns_max: Option<u32>,
    pub(super) micro_usd_max: Option<u64>,
    pub(super) after: Vec<String>,
    pub(super) parameters: Option<Value>,
}

/// What a call of a delegation tool asks for.
pub(super) fn request(make: Make, arguments: &Map<String, Value>) -> Result<Request, String> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(String::from);
    let tool = Tool::Make(make).name();
    let needed = |key: &str| text(key).ok_or_else(|| format!("{tool} needs {key:?}"));
    let background = arguments.get("async").and_then(Value::as_bool).unwrap_or(false);
    let (name, mode) = match make {
        Make::UseAgent => (needed("agent")?, Mode::Floor),
        Make::UseSkill => (needed("skill")?, Mode::Floor),
        Make::SpawnInteractive => (needed("recipe_name")?, Mode::Floor),
        Make::SpawnAgent => (needed("agent")?, Mode::Worker),
        Make::CallRecipe => (text("recipe").map_or_else(|| needed("recipe_name"), Ok)?, Mode::Call),
        Make::SessionsSpawn => (READER.into(), Mode::Call),
        Make::Delegate => {
            let name = text("source").or_else(|| text("agent")).or_else(|| text("recipe"));
            let mode = if background { Mode::Worker } else { Mode::Call };
            (name.unwrap_or_else(|| READER.into()), mode)
        }
    };
    let brief = match make {
        Make::SessionsSpawn => needed("prompt")?,
        Make::Delegate => text("instructions").or_else(|| text("message")).unwrap_or_default(),
        Make::UseAgent
        | Make::UseSkill
        | Make::SpawnInteractive
        | Make::SpawnAgent
        | Make::CallRecipe => text("message").unwrap_or_default(),
    };
    let talk_turns_max = match (make, arguments.get("max_turns")) {
        (Make::SpawnInteractive, None | Some(Value::Null)) => Some(INTERACTIVE_TURNS_MAX),
        (Make::SpawnInteractive, Some(turns)) => Some(interactive_turns(turns)?),
        (
            Make::UseAgent
            | Make::UseSkill
            | Make::SpawnAgent
            | Make::CallRecipe
            | Make::SessionsSpawn
            | Make::Delegate,
            _,
        ) => None,
    };
    let mut request = Request {
        name,
        brief,
        label: text("label"),
        mode,
        model: text("model"),
        talk_turns_max,
        micro_usd_max: None,
        after: Vec::new(),
        parameters: arguments.get("parameters").cloned(),
    };
    if let Some(budget) = arguments.get("budget_usd") {
        let budget = micro_usd(budget).ok_or("budget_usd must be an amount such as 0.50")?;
        request.micro_usd_max = Some(budget);
    }
    if let Some(Value::Array(after)) = arguments.get("after") {
        request.after = after.iter().filter_map(Value::as_str).map(String::from).collect();
    }
    Ok(request)
}

/// A whole number in the range, however it was written: `3`, `"3"`, `3.0`. Another one is not bent
/// into it, because a model that counts on more turns than it gets plans badly.
fn interactive_turns(value: &Value) -> Result<u32, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), String::from);
    let (digits, part) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let turns = digits.parse().ok().filter(|_| part.chars().all(|digit| digit == '0'));
    let fits = |turns: &u32| (1..=INTERACTIVE_TURNS_MAX).contains(turns);
    turns.filter(fits).ok_or_else(|| {
        let found = headline(&text, LABEL_BYTES_MAX);
        format!("max_turns is a whole number from 1 to {INTERACTIVE_TURNS_MAX}, not {found}")
    })
}

/// `0.5`, `"2"` or `1.25` dollars, without passing through a float.
fn micro_usd(value: &Value) -> Option<u64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().trim_start_matches('$').into(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    let part: String = part.chars().chain("000000".chars()).take(6).collect();
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part.parse().ok()?)
}
