//! Is it a JSON Schema? Wrong shapes are found here, with their places; whether an output fits
//! the schema is found where outputs are.

use crate::fields::Fields;
use crate::problem::{Place, Problems, quote};
use crate::tree::{Node, Value};

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
];
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
const TABLES: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const COUNTS: &[&str] = &[
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];
const NUMBERS: &[&str] =
    &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const TEXTS: &[&str] =
    &["pattern", "format", "title", "description", "$ref", "$id", "$schema", "$comment"];

pub(crate) fn check(node: &Node, problems: &Problems) {
    if matches!(node.text(), Some("true" | "false")) {
        return;
    }
    let Some(fields) = Fields::of(node, "a schema", problems) else { return };
    for (key, value) in fields.each() {
        let name = key.text.as_str();
        match (name, &value.value) {
            ("type", _) => types(value, problems),
            ("required" | "enum", Value::List(_)) => {}
            ("required" | "enum", _) => wrong(name, value, "a list", problems),
            // Before 2020 a list of schemas was an `items` too.
            ("items", Value::List(items)) => items.iter().for_each(|item| check(item, problems)),
            _ if ONE.contains(&name) => check(value, problems),
            (_, Value::List(items)) if LISTS.contains(&name) => {
                for item in items {
                    check(item, problems);
                }
            }
            _ if LISTS.contains(&name) => wrong(name, value, "a list of schemas", problems),
            (_, Value::Map(entries)) if TABLES.contains(&name) => {
                for (_, entry) in entries {
                    check(entry, problems);
                }
            }
            _ if TABLES.contains(&name) => {
                wrong(name, value, "a table of names with schemas", problems);
            }
            _ if COUNTS.contains(&name) && !fits::<u64>(value) => {
                wrong(name, value, "a whole number", problems);
            }
            // The draft before last had truth values here.
            _ if NUMBERS.contains(&name) && !fits::<f64>(value) && !fits::<bool>(value) => {
                wrong(name, value, "a number", problems);
            }
            (_, Value::List(_) | Value::Map(_)) if TEXTS.contains(&name) => {
                wrong(name, value, "text", problems);
            }
            _ => {}
        }
    }
}

fn fits<T: std::str::FromStr>(node: &Node) -> bool {
    node.text().is_some_and(|text| text.parse::<T>().is_ok())
}

fn types(node: &Node, problems: &Problems) {
    let one = |node: &Node| match node.text() {
        Some(word) if TYPES.contains(&word) => {}
        Some(word) => unknown(word, node.place, problems),
        // `null` without quotes reads as nothing, and here it is the name of a type.
        None if node.is_null() => {}
        None => wrong("type", node, "the name of a type", problems),
    };
    match &node.value {
        Value::List(items) => items.iter().for_each(one),
        Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::Map(_) => one(node),
    }
}

fn unknown(word: &str, at: Place, problems: &Problems) {
    let near = crate::near::nearest(word, TYPES.iter().copied()).unwrap_or("string");
    let why = format!("the types are {}", TYPES.join(", "));
    problems.error(
        at,
        format!("the type {} is not known", quote(word)),
        why,
        format!("write: type: {near}"),
    );
}

fn wrong(name: &str, node: &Node, expected: &str, problems: &Problems) {
    let shown = node.text().map_or_else(|| node.kind().to_owned(), quote);
    let what = format!("\"{name}\" of a schema is {shown}");
    let example = match expected {
        "the name of a type" => "object",
        "a table of names with schemas" => "{name: {type: string}}",
        "a list" => "[one, two]",
        "a list of schemas" => "[{type: string}, {type: number}]",
        "a whole number" | "a number" => "1",
        _ => "some text",
    };
    let how = format!("write: {name}: {example}");
    problems.error(node.place, what, format!("{expected} is expected"), how);
}
