//! Forms that servers want filled in: what they ask for in words, and what a person wrote as the
//! values they wait for.

use std::fmt::Write as _;

use locum_runtime::form::mismatch;
use serde_json::{Map, Value};

/// Words in the name of a field that ask for what must not be typed into a question: answers are
/// kept in the journal, and shown on every face.
const SECRETS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "privatekey"];

/// The field that asks for a secret, if one does.
pub(super) fn secret(schema: &Value) -> Option<&str> {
    let is_secret = |name: &str, property: &Value| {
        let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
        let title = property.get("title").and_then(Value::as_str).unwrap_or_default();
        let (name, title) = (plain(name), plain(title));
        let named = SECRETS.iter().any(|word| name.contains(word) || title.contains(word));
        named || property.get("format").and_then(Value::as_str) == Some("password")
    };
    let found = properties(schema).find(|(name, property)| is_secret(name, property));
    found.map(|(name, _)| name.as_str())
}

/// The question, and the choices if there are only so many.
pub(super) fn words(message: &str, schema: &Value) -> (String, Vec<String>) {
    let fields: Vec<(&String, &Value)> = properties(schema).collect();
    match fields.as_slice() {
        [] => (message.to_owned(), vec!["yes".to_owned(), "no".to_owned()]),
        [(name, property)] => {
            let about = about(name, property, is_required(schema, name));
            let choices = choices(property).into_iter().map(|(_, shown)| shown).collect();
            (format!("{message}\nAnswer with {about}."), choices)
        }
        several => {
            let mut text = format!("{message}\nAnswer with a line name=value for each, or JSON:");
            for (name, property) in several {
                let _ = write!(text, "\n  {}", about(name, property, is_required(schema, name)));
            }
            (text, Vec::new())
        }
    }
}

/// What a person wrote, as the object the server waits for; or what is wrong with it.
pub(super) fn read(schema: &Value, text: &str) -> Result<Value, String> {
    let fields: Vec<(&String, &Value)> = properties(schema).collect();
    let text = text.trim();
    let mut given = match fields.as_slice() {
        [] => Map::new(),
        [(name, property)] => Map::from_iter([((*name).clone(), value(name, property, text)?)]),
        several if text.starts_with('{') => object(text, several)?,
        several => lines(text, several)?,
    };
    for (name, property) in fields {
        if let Some(default) = property.get("default") {
            given.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    let given = Value::Object(given);
    match mismatch(schema, &given) {
        None => Ok(given),
        Some(why) => Err(why),
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(name)))
}

/// A value as the server knows it, and as it is shown.
fn choices(property: &Value) -> Vec<(Value, String)> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| (value.clone(), shown(value))).collect();
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| property.get(*key)?.as_array());
    if let Some(values) = titled {
        let choice = |it: &Value| {
            let value = it.get("const")?;
            let title = it.get("title").and_then(Value::as_str);
            Some((value.clone(), title.map_or_else(|| shown(value), str::to_owned)))
        };
        return values.iter().filter_map(choice).collect();
    }
    match kind(property) {
        "boolean" => vec![(Value::Bool(true), "yes".into()), (Value::Bool(false), "no".into())],
        _ => Vec::new(),
    }
}

fn kind(property: &Value) -> &str {
    property.get("type").and_then(Value::as_str).unwrap_or("string")
}

/// `age: a whole number (optional; how old you are)`.
fn about(name: &str, property: &Value, required: bool) -> String {
    let item = property.get("items").unwrap_or(property);
    let choices: Vec<String> = choices(item).into_iter().map(|(_, shown)| shown).collect();
    let what = match kind(property) {
        "array" if choices.is_empty() => "several, with commas between".to_owned(),
        "array" => format!("some of {}, with commas between", choices.join(", ")),
        _ if !choices.is_empty() => format!("one of {}", choices.join(", ")),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        _ => match property.get("format").and_then(Value::as_str) {
            Some(format) => format!("text ({format})"),
            None => "text".to_owned(),
        },
    };
    let default = property.get("default").map(|value| format!("{value} if left out"));
    let optional = (!required && default.is_none()).then(|| "optional".to_owned());
    let said = ["title", "description"].iter().filter_map(|key| property.get(*key)?.as_str());
    let more: Vec<String> =
        optional.into_iter().chain(default).chain(said.map(str::to_owned)).collect();
    if more.is_empty() {
        format!("{name}: {what}")
    } else {
        format!("{name}: {what} ({})", more.join("; "))
    }
}

fn value(name: &str, property: &Value, text: &str) -> Result<Value, String> {
    if kind(property) == "array" {
        let item = property.get("items").unwrap_or(&Value::Null);
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        return parts.map(|part| value(name, item, part)).collect();
    }
    let choices = choices(property);
    if !choices.is_empty() {
        let same = |shown: &str| shown.eq_ignore_ascii_case(text);
        let raw = |value: &Value| value.as_str().map_or_else(|| same(&value.to_string()), same);
        let found = choices.iter().find(|(value, shown)| same(shown) || raw(value));
        let all = || choices.iter().map(|(_, it)| it.as_str()).collect::<Vec<_>>().join(", ");
        let found = found.map(|(value, _)| value.clone());
        return found.ok_or_else(|| format!("{name} must be one of {}, not {text:?}", all()));
    }
    let number = |what: &str| format!("{name} must be {what}, not {text:?}");
    match kind(property) {
        "integer" => text.parse::<i64>().map(Value::from).map_err(|_| number("a whole number")),
        "number" => {
            let parsed = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            parsed.map(Value::Number).ok_or_else(|| number("a number"))
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn object(text: &str, fields: &[(&String, &Value)]) -> Result<Map<String, Value>, String> {
    let given: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Object(given) = given else { return Err("it must be a JSON object".to_owned()) };
    let unknown = given.keys().find(|name| !fields.iter().any(|(known, _)| known == name));
    unknown.map_or(Ok(()), |name| Err(format!("nobody asks for {name:?}")))?;
    Ok(given)
}

fn lines(text: &str, fields: &[(&String, &Value)]) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, rest) = line
            .split_once('=')
            .ok_or_else(|| format!("{line:?} is no name=value; each field is a line of its own"))?;
        let (name, rest) = (name.trim(), rest.trim());
        let field = fields.iter().find(|(known, _)| *known == name);
        let (_, property) = field.ok_or_else(|| format!("nobody asks for {name:?}"))?;
        given.insert(name.to_owned(), value(name, property, rest)?);
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(property: &Value) -> Value {
        json!({ "type": "object", "properties": { "it": property }, "required": ["it"] })
    }

    #[test]
    fn one_field_takes_the_whole_text() {
        let colours = json!({ "type": "string", "enum": ["red", "blue"] });
        let titled = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red one" }] });
        let several = json!({ "type": "array", "items": { "enum": ["a", "b"] } });
        let cases = [
            (json!({ "type": "string" }), " a=b, c ", "{\"it\":\"a=b, c\"}"),
            (json!({ "type": "integer" }), "42", "{\"it\":42}"),
            (json!({ "type": "integer" }), "4.2", "it must be a whole number, not \"4.2\""),
            (
                json!({ "type": "integer", "maximum": 9 }),
                "10",
                "At /it: 10 is greater than the maximum of 9.",
            ),
            (json!({ "type": "number" }), "4.5", "{\"it\":4.5}"),
            (json!({ "type": "number" }), "NaN", "it must be a number, not \"NaN\""),
            (json!({ "type": "boolean" }), "Yes", "{\"it\":true}"),
            (json!({ "type": "boolean" }), "false", "{\"it\":false}"),
            (json!({ "type": "boolean" }), "perhaps", "it must be one of yes, no, not \"perhaps\""),
            (colours.clone(), "BLUE", "{\"it\":\"blue\"}"),
            (colours, "green", "it must be one of red, blue, not \"green\""),
            (titled.clone(), "red one", "{\"it\":\"r\"}"),
            (titled, "r", "{\"it\":\"r\"}"),
            (several.clone(), "a, b", "{\"it\":[\"a\",\"b\"]}"),
            (several, "a, c", "it must be one of a, b, not \"c\""),
            (
                json!({ "type": "string", "minLength": 3 }),
                "ab",
                "At /it: \"ab\" is shorter than 3 characters.",
            ),
        ];
        for (property, text, expected) in cases {
            let read = read(&one(&property), text).map(|value| value.to_string());
            assert_eq!(read.unwrap_or_else(|why| why), expected, "{text:?}");
        }
    }

    #[test]
    fn several_fields_take_lines_or_json() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "age": { "type": "integer", "default": 7 } } });
        let cases = [
            ("name=Ann\nage = 30", "{\"age\":30,\"name\":\"Ann\"}"),
            ("name=a=b", "{\"age\":7,\"name\":\"a=b\"}"),
            ("{\"name\":\"Ann\"}", "{\"age\":7,\"name\":\"Ann\"}"),
            ("{\"name\":1}", "At /name: 1 is not of type \"string\"."),
            ("{\"nmae\":1}", "nobody asks for \"nmae\""),
            ("age=1", "At the value itself: \"name\" is a required property."),
            ("Ann", "\"Ann\" is no name=value; each field is a line of its own"),
            ("who=Ann", "nobody asks for \"who\""),
        ];
        for (text, expected) in cases {
            let read = read(&schema, text).map(|value| value.to_string());
            assert_eq!(read.unwrap_or_else(|why| why), expected, "{text:?}");
        }
        let (asked, choices) = words("Who?", &schema);
        assert_eq!(
            asked,
            "Who?\nAnswer with a line name=value for each, or JSON:\n  age: a whole number (7 if \
             left out)\n  name: text"
        );
        assert!(choices.is_empty());
    }

    #[test]
    fn secrets_are_noticed_by_what_they_are_called() {
        let cases = [
            ("name", json!({}), false),
            ("API_Key", json!({}), true),
            ("pw", json!({ "title": "Your password" }), true),
            ("pw", json!({ "format": "password" }), true),
            ("github-token", json!({}), true),
        ];
        for (name, property, expected) in cases {
            let schema = json!({ "properties": { name: property } });
            assert_eq!(secret(&schema).is_some(), expected, "{name}");
        }
    }
}
