//! What is sent to Ollama, spelled out, and over a real socket.

use std::sync::Arc;

use locum_kernel::{Body, CallId, FailureKind, Line, Output, Purpose, Reply, Seq, Use};
use serde_json::{Value, json};

use super::http::{answer_of, response};
use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::ollama::request::Builder;
use crate::wire::{Settings, WireName};

fn ollama(lines: Vec<Arc<Line>>) -> Asked {
    let mut asked = asked(lines);
    asked.request.model = "ollama/library/qwen3:8b".into();
    asked
}

fn builder(context: Option<u32>) -> Builder {
    Builder::new(&Settings { context, ..settings() })
}

fn body(builder: &Builder, asked: &Asked) -> Value {
    let bytes = builder.body(asked);
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

#[test]
fn the_first_request() {
    let mut asked = ollama(vec![person(1, "Hello \"there\"\n")]);
    asked.request.tools = vec!["ls".into()];
    let mut expected = json!({
        "model": "library/qwen3:8b",
        "stream": true,
        "options": { "num_predict": 1000 },
        "tools": [{ "type": "function", "function": {
            "name": "ls", "description": "List a folder.",
            "parameters": { "type": "object", "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "names to pass over" },
                    "limit": { "type": "integer" },
                } },
        } }],
        "messages": [
            { "role": "system", "content": "You are \"main\", an agent of locum.\n\nBe brief." },
            user("Hello \"there\"\n"),
        ],
    });
    assert_eq!(body(&builder(None), &asked), expected);
    expected["options"]["num_ctx"] = json!(32_768);
    assert_eq!(body(&builder(Some(32_768)), &asked), expected);
}

#[test]
fn a_history_with_calls_and_thoughts() {
    let call = |name: &str, arguments| Use::new(name, arguments);
    let reply = Reply {
        text: "Reading.".into(),
        reasoning: Some(json!([
            { "type": "thinking", "thinking": "foreign" },
            { "type": "ollama_thinking", "thinking": "hm" },
        ])),
        calls: vec![call("read", json!({ "path": "a" })), call("odd name!", json!("{\"pa"))],
        ..Reply::default()
    };
    let id = |index| CallId { turn: Seq(5), index };
    let results = vec![(id(0), Output::ok("text")), (id(1), Output::error("no such tool"))];
    let lines = vec![
        line(1, Body::Summary("we began".into())),
        line(2, Body::Told(Vec::new())),
        line(5, Body::Replied(reply)),
        line(7, Body::Results(results)),
        line(8, Body::Replied(Reply::default())),
    ];
    let called = |id: &str, name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "function": function })
    };
    let messages = [
        user("[summary of what came before]\nwe began"),
        user("(nothing)"),
        json!({
            "role": "assistant", "content": "Reading.", "thinking": "hm",
            "tool_calls": [
                called("c5_0", "read", json!({ "path": "a" })),
                called("c5_1", "odd_name_", json!({ "unparsable": "{\"pa" })),
            ],
        }),
        json!({ "role": "tool", "content": "text", "tool_name": "read", "tool_call_id": "c5_0" }),
        json!({
            "role": "tool", "content": "error: no such tool", "tool_name": "odd_name_",
            "tool_call_id": "c5_1",
        }),
        json!({ "role": "assistant", "content": "(nothing)" }),
    ];
    let kept = builder(None);
    let all = body(&kept, &ollama(lines.clone()));
    assert_eq!(all["messages"].as_array().unwrap()[1..7], messages);
    assert_eq!(all["messages"][7], user("Go on."));
    assert_eq!(all.get("tools"), None);

    let mut summary = ollama(lines);
    summary.request.now = Some("Open workers:\n- a3".into());
    summary.request.tools = vec!["ls".into()];
    summary.request.purpose = Purpose::Summary { resume: true };
    let all = body(&kept, &summary);
    assert_eq!(all.get("tools"), None, "a summary uses no tools");
    assert_eq!(all["messages"].as_array().unwrap()[1..7], messages);
    assert_eq!(all["messages"][7], user("Open workers:\n- a3"));
    let last = &all["messages"][8]["content"];
    assert!(last.as_str().unwrap().starts_with("Summarise"), "{last:?}");
    summary.request.purpose = Purpose::Answer;
    assert!(body(&kept, &summary).get("tools").is_some());
}

#[test]
fn over_a_socket() {
    let whole = "{\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"done\":false}\n\
                 {\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true}\n";
    let asked = || ollama(vec![person(1, "Hello")]);
    let lines = response("200 OK", "content-type: application/x-ndjson\r\n", whole);
    let (answer, request) = answer_of(WireName::Ollama, asked(), lines);
    assert_eq!(answer.unwrap().text, "hi");
    assert!(request.starts_with("POST /api/chat HTTP/1.1\r\n"), "{request}");

    let missing = json!({ "error": "model 'qwen3:8b' not found" }).to_string();
    let missing = response("404 Not Found", "content-type: application/json\r\n", &missing);
    let failure = answer_of(WireName::Ollama, asked(), missing).0.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::UnknownModel, Some(404)));
    let words = "model 'qwen3:8b' not found (get it with: ollama pull qwen3:8b)";
    assert_eq!(failure.message, words);
}
