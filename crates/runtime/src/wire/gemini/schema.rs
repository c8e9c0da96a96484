//! JSON schemas as this provider takes them: it knows some of the words, and may refuse a request
//! for those it does not know.

use serde_json::{Map, Value, json};

/// Words that stand as they are.
const PLAIN: &[&str] = &[
    "$id",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "propertyOrdering",
];

/// Deeper than any tool is described; what is below may be anything.
const DEPTH_MAX: usize = 32;

/// The arguments of a tool. None if it takes none.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let none = schema["properties"].as_object().is_some_and(Map::is_empty);
    let open = schema.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
    if none && !open {
        return None;
    }
    let mut taken = translated(schema, 0);
    // Only objects are arguments, whoever described them.
    if taken["type"] != "object" {
        taken["type"] = json!("object");
    }
    Some(taken)
}

fn translated(schema: &Value, depth: usize) -> Value {
    let mut taken = Map::new();
    // `true` and its like: anything is right.
    let Some(schema) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
        return Value::Object(taken);
    };
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        // Beside a reference nothing else may stand.
        taken.insert("$ref".into(), place.replacen("#/definitions/", "#/$defs/", 1).into());
        return Value::Object(taken);
    }
    for (word, value) in schema {
        let (word, value) = match word.as_str() {
            plain if PLAIN.contains(&plain) => (plain, value.clone()),
            "const" => ("enum", json!([value])),
            "exclusiveMinimum" if value.is_number() => ("minimum", value.clone()),
            "exclusiveMaximum" if value.is_number() => ("maximum", value.clone()),
            "properties" => ("properties", each_named(value, depth)),
            "$defs" | "definitions" => ("$defs", each_named(value, depth)),
            "anyOf" | "oneOf" => ("anyOf", each(value, depth)),
            "prefixItems" => ("prefixItems", each(value, depth)),
            // A list here is how tuples were once described.
            "items" if value.is_array() => ("prefixItems", each(value, depth)),
            "items" => ("items", translated(value, depth + 1)),
            "additionalProperties" if value.is_object() => {
                ("additionalProperties", translated(value, depth + 1))
            }
            "additionalProperties" => ("additionalProperties", value.clone()),
            "allOf" => {
                all_of(value, depth, &mut taken);
                continue;
            }
            _ => continue,
        };
        // The tighter word of two stands, whichever came first.
        taken.entry(word).or_insert(value);
    }
    Value::Object(taken)
}

/// What all of these say, as far as one schema can say it.
fn all_of(schemas: &Value, depth: usize, into: &mut Map<String, Value>) {
    for schema in schemas.as_array().into_iter().flatten() {
        let Value::Object(part) = translated(schema, depth + 1) else { continue };
        for (word, value) in part {
            match (into.get_mut(&word), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) if word == "required" => {
                    known.extend(more);
                }
                (Some(_), _) => {}
                (None, value) => {
                    into.insert(word, value);
                }
            }
        }
    }
}

fn each(schemas: &Value, depth: usize) -> Value {
    let all = schemas.as_array().into_iter().flatten();
    all.map(|schema| translated(schema, depth + 1)).collect()
}

fn each_named(schemas: &Value, depth: usize) -> Value {
    let all = schemas.as_object().into_iter().flatten();
    let all = all.map(|(name, schema)| (name.clone(), translated(schema, depth + 1)));
    Value::Object(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_the_provider_does_not_know_are_translated_or_left_out() {
        let cases = [
            (json!({ "type": "object", "properties": {} }), None),
            (json!({ "type": "object" }), Some(json!({ "type": "object" }))),
            (json!(true), Some(json!({ "type": "object" }))),
            (
                json!({
                    "$schema": "s", "type": "object", "additionalProperties": false,
                    "properties": {
                        "pattern": { "type": "string", "pattern": "a+", "default": "a" },
                        "one": { "oneOf": [{ "const": 1 }, { "type": ["string", "null"] }] },
                        "pair": { "items": [{ "type": "string" }, true] },
                        "n": { "exclusiveMinimum": 0, "type": "integer" },
                        "r": { "$ref": "#/definitions/D", "description": "d" },
                    },
                    "definitions": { "D": { "not": {}, "type": "string" } },
                    "required": ["one"],
                }),
                Some(json!({
                    "type": "object", "additionalProperties": false,
                    "properties": {
                        "pattern": { "type": "string" },
                        "one": { "anyOf": [{ "enum": [1] }, { "type": ["string", "null"] }] },
                        "pair": { "prefixItems": [{ "type": "string" }, {}] },
                        "n": { "minimum": 0, "type": "integer" },
                        "r": { "$ref": "#/$defs/D" },
                    },
                    "$defs": { "D": { "type": "string" } },
                    "required": ["one"],
                })),
            ),
            (
                json!({ "allOf": [
                    { "properties": { "a": {} }, "required": ["a"] },
                    { "properties": { "b": {} }, "required": ["b"] },
                ] }),
                Some(json!({
                    "type": "object", "properties": { "a": {}, "b": {} }, "required": ["a", "b"],
                })),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(parameters(&schema), expected, "{schema}");
        }
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(parameters(&deep).unwrap().to_string().len() < 1_000);
    }
}
