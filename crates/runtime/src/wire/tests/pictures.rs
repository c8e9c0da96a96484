//! What is shown and what form an answer must have, in the words of every wire.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Note, Output, Picture, Purpose, Reply, Seq, Source, Use};
use serde_json::{Value, json};

use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::chat::presets::dialect_of;
use crate::wire::picture::Album;
use crate::wire::{Settings, anthropic, chat, gemini, ollama, responses};

#[derive(Debug)]
struct Shelf;

impl Album for Shelf {
    fn bytes(&self, handle: &str) -> Option<Vec<u8>> {
        (handle == "kept").then(|| b"pixels".to_vec())
    }
}

/// `pixels` in the letters all wires use.
const LETTERS: &str = "cGl4ZWxz";

fn picture(handle: &str) -> Picture {
    Picture { handle: handle.into(), media_type: "image/png".into() }
}

/// Somebody shows a picture, the model looks at a file, and the file is a picture too.
fn conversation() -> Asked {
    let source = Source::Person { channel: "cli".into(), sender: "me".into() };
    let pictures = vec![picture("kept"), picture("gone")];
    let shown = Note { pictures, ..Note::new(source, "What is this?".into()) };
    let call = Use::new("read", json!({ "path": "b.png" }));
    let reply = Reply { calls: vec![call], ..Reply::default() };
    let pictures = vec![picture("kept")];
    let output = Output { pictures, ..Output::ok("a picture, 3 by 2") };
    let id = CallId { turn: Seq(2), index: 0 };
    asked(vec![
        line(1, Body::Told(vec![shown])),
        line(2, Body::Replied(reply)),
        line(3, Body::Results(vec![(id, output)])),
    ])
}

/// The body each wire makes of a request, by its name.
fn bodies(asked: &Asked) -> Vec<(&'static str, Value)> {
    let settings = Settings { album: Arc::new(Shelf), ..settings() };
    let dialect = dialect_of("openai", "");
    let bodies = [
        ("anthropic", anthropic::request::Builder::new(&settings).body(asked)),
        ("chat", chat::request::Builder::new(&settings, dialect).body(asked)),
        ("responses", responses::request::Builder::new(&settings).body(asked)),
        ("gemini", gemini::request::Builder::new(&settings).body(asked)),
        ("ollama", ollama::request::Builder::new(&settings).body(asked)),
    ];
    let read = |(name, body): (&'static str, Vec<u8>)| {
        let body = serde_json::from_slice(&body);
        (name, body.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    bodies.map(read).into()
}

/// What each wire makes of the conversation, and where in its body that stands.
const BODIES: &str = include_str!("pictures.json");

#[test]
fn pictures_are_shown_where_they_belong() {
    let expected: Value = serde_json::from_str(BODIES).unwrap();
    for (name, body) in bodies(&conversation()) {
        let expected = &expected[name];
        let found = body.pointer(expected["at"].as_str().unwrap()).unwrap_or(&Value::Null);
        assert_eq!(*found, expected["is"], "{name}: {found:#}");
        assert!(body.to_string().contains(LETTERS), "{name}");
    }
}

#[test]
fn a_form_is_asked_for_where_it_can_be() {
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" } },
        "required": ["n"], "additionalProperties": false,
    });
    let open = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let form = |name: &str| match name {
        "anthropic" => "/output_config/format/schema",
        "chat" => "/response_format/json_schema/schema",
        "responses" => "/text/format/schema",
        "gemini" => "/generationConfig/responseJsonSchema",
        _ => "/format",
    };
    let mut question = asked(vec![person(1, "How many?")]);
    question.request.output = Some(Arc::new(schema.clone()));
    for (name, body) in bodies(&question) {
        assert_eq!(body.pointer(form(name)), Some(&schema), "{name}: {body:#}");
        assert!(body.to_string().contains("must match this JSON schema"), "{name}");
    }
    // Beside tools two of them would call none; all are told in words.
    question.request.tools = vec!["read".into()];
    for (name, body) in bodies(&question) {
        let told = !["gemini", "ollama"].contains(&name);
        assert_eq!(body.pointer(form(name)).is_some(), told, "{name}: {body:#}");
        assert!(body.to_string().contains("must match this JSON schema"), "{name}");
    }
    // One of them takes only schemas that leave nothing open.
    question.request.output = Some(Arc::new(open));
    let (name, body) = &bodies(&question)[0];
    assert!(body.pointer(form(name)).is_none(), "{body:#}");
    // A summary is no answer.
    question.request.purpose = Purpose::Summary { resume: false };
    for (name, body) in bodies(&question) {
        assert!(body.pointer(form(name)).is_none(), "{name}: {body:#}");
    }
}
