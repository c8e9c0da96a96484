//! What is sent to Gemini, spelled out, and over a real socket.

use std::sync::Arc;

use locum_kernel::{AgentId, Body, CallId, FailureKind, Line, Note, Output, Purpose, Reply, Seq};
use locum_kernel::{Source, Use};
use serde_json::{Value, json};

use super::http::{answer_of, response, stream};
use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::WireName;
use crate::wire::gemini::request::Builder;

fn gemini(model: &str, lines: Vec<Arc<Line>>) -> Asked {
    let mut asked = asked(lines);
    asked.request.model = format!("gemini/{model}");
    asked
}

fn builder() -> Builder {
    Builder::new(&settings())
}

fn body(builder: &Builder, asked: &Asked) -> Value {
    let bytes = builder.body(asked);
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn reply(text: &str, calls: &[(&str, Value)], reasoning: Option<Value>) -> Reply {
    let calls = calls.iter().map(|(name, arguments)| Use::new(*name, arguments.clone()));
    Reply { text: text.into(), calls: calls.collect(), reasoning, ..Reply::default() }
}

fn results(seq: u64, turn: u64, outputs: Vec<Output>) -> Arc<Line> {
    let of = |(index, output)| (CallId { turn: Seq(turn), index }, output);
    line(seq, Body::Results((0u16..).zip(outputs).map(of).collect()))
}

#[test]
fn the_first_request() {
    let mut asked = gemini("gemini-2.5-flash", vec![person(1, "Hello \"there\"\n")]);
    asked.request.tools = vec!["ls".into(), "list_agents".into(), "server__tool".into()];
    assert_eq!(
        body(&builder(), &asked),
        json!({
            "generationConfig": {
                "maxOutputTokens": 1000, "thinkingConfig": { "includeThoughts": true },
            },
            "systemInstruction": {
                "parts": [{ "text": "You are \"main\", an agent of locum.\n\nBe brief." }],
            },
            "tools": [{ "functionDeclarations": [
                {
                    "name": "ls", "description": "List a folder.",
                    "parametersJsonSchema": {
                        "type": "object", "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "names to pass over" },
                    "limit": { "type": "integer" },
                },
                    },
                },
                {
                    "name": "list_agents",
                    "description": "List the agents you started: state, why, what they need.",
                },
                {
                    "name": "server__tool", "description": "",
                    "parametersJsonSchema": { "type": "object" },
                },
            ] }],
            "contents": [{ "role": "user", "parts": [{ "text": "Hello \"there\"\n" }] }],
        })
    );
}

#[test]
fn signatures_go_back_with_the_part_they_came_with() {
    let kept = json!([
        { "type": "gemini_part", "thought": "hm", "thoughtSignature": "t" },
        { "type": "gemini_part", "text": 3 },
        { "type": "gemini_part", "call": 0, "id": "f1", "thoughtSignature": "c" },
        { "type": "gemini_part", "call": 1 },
        { "type": "gemini_part", "text": 0, "thoughtSignature": "e" },
    ]);
    let calls = [("read", json!({ "path": "a" })), ("9 odd!", json!("{\"pa"))];
    let told = vec![Note::new(Source::Child(AgentId(3)), "done".into())];
    let mut now = gemini(
        "gemini-3-pro-preview",
        vec![
            person(1, "Go"),
            line(5, Body::Replied(reply("Hm.", &calls, Some(kept)))),
            results(7, 5, vec![Output::ok("text"), Output::error("no such tool")]),
            line(8, Body::Told(told)),
        ],
    );
    now.request.now = Some("Open workers:\n- a3".into());
    assert_eq!(
        body(&builder(), &now)["contents"],
        json!([
            { "role": "user", "parts": [{ "text": "Go" }] },
            { "role": "model", "parts": [
                { "text": "hm", "thought": true, "thoughtSignature": "t" },
                { "text": "Hm." },
                {
                    "functionCall": { "name": "read", "id": "f1", "args": { "path": "a" } },
                    "thoughtSignature": "c",
                },
                { "functionCall": { "name": "_9_odd_", "args": { "unparsable": "{\"pa" } } },
                { "text": "", "thoughtSignature": "e" },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": {
                    "name": "read", "id": "f1", "response": { "output": "text" },
                } },
                { "functionResponse": {
                    "name": "_9_odd_", "response": { "error": "no such tool" },
                } },
            ] },
            { "role": "user", "parts": [
                { "text": "[from a3] done" }, { "text": "Open workers:\n- a3" },
            ] },
        ])
    );
}

#[test]
fn replies_of_other_models_are_taken_too() {
    let foreign = Some(json!([{ "type": "thinking", "thinking": "hm", "signature": "s" }]));
    // What was kept, but of another text.
    let misfit = Some(json!([{ "type": "gemini_part", "text": 90, "thoughtSignature": "x" }]));
    let two = [("ls", json!({})), ("ls", json!({ "path": "b" }))];
    let lines = vec![
        line(2, Body::Replied(reply("Ü", &two, foreign))),
        results(3, 2, vec![Output::ok(""), Output::error("")]),
        line(4, Body::Replied(reply("Ü", &[], misfit))),
        results(6, 5, vec![Output::ok("late")]),
        line(7, Body::Replied(reply(" ", &[], None))),
    ];
    let ls = |args: Value| json!({ "functionCall": { "name": "ls", "args": args } });
    let mut first = ls(json!({}));
    let contents = |first: &Value| {
        json!([
            { "role": "user", "parts": [{ "text": "(what came before is left out)" }] },
            { "role": "model", "parts": [{ "text": "Ü" }, first, ls(json!({ "path": "b" }))] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "ls", "response": { "output": "" } } },
                { "functionResponse": { "name": "ls", "response": { "error": "failed" } } },
            ] },
            { "role": "model", "parts": [{ "text": "Ü" }] },
            { "role": "user", "parts": [{ "text": "[result of c5_0] late" }] },
            { "role": "model", "parts": [{ "text": "(nothing)" }] },
            { "role": "user", "parts": [{ "text": "Go on." }] },
        ])
    };
    let builder = builder();
    let old = body(&builder, &gemini("gemini-2.0-flash", lines.clone()));
    assert_eq!(old["contents"], contents(&first));
    assert_eq!(old["generationConfig"], json!({ "maxOutputTokens": 1000 }));
    // The same history, kept, for a model that wants signatures.
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    for model in ["gemini-3.1-pro-preview", "gemini-flash-latest", "gemini-4"] {
        let new = body(&builder, &gemini(model, lines.clone()));
        assert_eq!(new["contents"], contents(&first), "{model}");
    }
}

#[test]
fn a_summary_uses_no_tools() {
    let mut summary = gemini("gemma-3", vec![person(1, "a")]);
    summary.request.tools = vec!["ls".into()];
    summary.request.purpose = Purpose::Summary { resume: true };
    let all = body(&builder(), &summary);
    assert_eq!(all["toolConfig"], json!({ "functionCallingConfig": { "mode": "NONE" } }));
    let last = &all["contents"][0]["parts"][1]["text"];
    assert!(last.as_str().unwrap().starts_with("Summarise"), "{last:?}");
    summary.request.tools = Vec::new();
    assert_eq!(body(&builder(), &summary).get("toolConfig"), None);
}

#[test]
fn kept_histories_say_the_same_as_fresh_ones() {
    let kept = builder();
    let mut lines = vec![person(1, "Go")];
    for turn in 0..20 {
        let seq = 2 + turn * 3;
        let call = [("read", json!({ "path": format!("f{turn}") }))];
        lines.push(line(seq, Body::Replied(reply("I look.", &call, None))));
        lines.push(results(seq + 2, seq, vec![Output::ok(format!("{turn}"))]));
        let now = gemini("gemini-3", lines.clone());
        assert_eq!(kept.body(&now), builder().body(&now), "{turn} turns");
    }
}

#[test]
fn over_a_socket() {
    let whole = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\
                 \"finishReason\":\"STOP\"}]}\r\n\r\n";
    let asked = || gemini("tuned model?x", vec![person(1, "Hello")]);
    let (answer, request) = answer_of(WireName::Gemini, asked(), stream(whole));
    assert_eq!(answer.unwrap().text, "hi");
    let path = "POST /v1beta/models/tuned%20model%3Fx:streamGenerateContent?alt=sse HTTP/1.1\r\n";
    assert!(request.starts_with(path), "{request}");
    assert!(request.contains("x-goog-api-key: sk-very-secret\r\n"), "{request}");

    let limited = json!([{ "error": {
        "code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s" }],
    } }]);
    let limited = response("429 Too Many Requests", "", &limited.to_string());
    let failure = answer_of(WireName::Gemini, asked(), limited).0.unwrap_err();
    assert_eq!(
        (failure.kind, failure.status, failure.retry_after_ms, &*failure.message),
        (FailureKind::RateLimited, Some(429), Some(7_000), "slow down")
    );
    let cut = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let cut = format!("{cut}{:x}\r\n{whole}\r\n", whole.len()).into_bytes();
    let failure = answer_of(WireName::Gemini, asked(), cut).0.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cut, "a response that does not end is not whole");
}
