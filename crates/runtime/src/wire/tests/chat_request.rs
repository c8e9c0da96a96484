//! What is sent over the chat wire, spelled out, plainly and in the dialects.

use std::sync::Arc;

use locum_kernel::{AgentId, Body, CallId, Line, Note, Output, Purpose, Reply, Seq, Source, Use};
use serde_json::{Value, json};

use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::chat::presets::{Dialect, dialect_of};
use crate::wire::chat::request::Builder;

fn builder(dialect: Dialect) -> Builder {
    Builder::new(&settings(), dialect)
}

fn dialect(name: &str) -> Dialect {
    dialect_of(name, "")
}

fn body(dialect: Dialect, asked: &Asked) -> Value {
    let bytes = builder(dialect).body(asked);
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn messages(dialect: Dialect, asked: &Asked) -> Value {
    let mut body = body(dialect, asked);
    body["messages"].as_array_mut().unwrap().remove(0);
    body["messages"].take()
}

fn results(seq: u64, turn: u64, outputs: Vec<Output>) -> Arc<Line> {
    let of = |(index, output)| (CallId { turn: Seq(turn), index }, output);
    line(seq, Body::Results((0u16..).zip(outputs).map(of).collect()))
}

fn said(seq: u64, text: &str) -> Arc<Line> {
    line(seq, Body::Replied(Reply { text: text.into(), ..Reply::default() }))
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn tool(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// A conversation with calls, results, notes, and what two providers' models thought.
fn history() -> Vec<Arc<Line>> {
    let reply = Reply {
        text: "Reading.".into(),
        reasoning: Some(json!([
            { "type": "thinking", "thinking": "hm", "signature": "s" },
            { "type": "reasoning", "id": "r1" },
            { "type": "reasoning.text", "index": 0, "text": "so" },
            { "type": "reasoning_content", "text": "so" },
        ])),
        calls: vec![
            Use::new("read", json!({ "path": "a" })),
            Use::new("odd name!", json!("{\"pa")),
        ],
        ..Reply::default()
    };
    let silent = Use::new("ls", json!({}));
    let silent = Reply { text: " ".into(), calls: vec![silent], ..Reply::default() };
    vec![
        line(1, Body::Summary("we \"began\"".into())),
        person(2, "Go"),
        line(5, Body::Replied(reply)),
        results(7, 5, vec![Output::ok("text"), Output::error("no such tool")]),
        line(
            8,
            Body::Told(vec![
                Note::new(Source::Child(AgentId(3)), "done".into()),
                Note::new(Source::Brief, "  ".into()),
                Note::new(Source::Parent, "hurry".into()),
            ]),
        ),
        line(9, Body::Replied(silent)),
        results(10, 9, vec![Output::ok("")]),
    ]
}

fn calls(ids: [&str; 2]) -> Value {
    let call = |id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    json!([
        call(ids[0], "read", "{\"path\":\"a\"}"),
        call(ids[1], "odd_name_", "{\"unparsable\":\"{\\\"pa\"}"),
    ])
}

#[test]
fn the_first_request() {
    let mut asked = asked(vec![person(1, "Hello \"there\"\n")]);
    asked.request.model = "openrouter/some/model".into();
    asked.request.catalogue = vec!["worker: does one task".into()];
    asked.request.tools = vec!["ls".into(), "server__tool".into()];
    let plain = json!({
        "model": "some/model",
        "max_tokens": 1000,
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [
            { "type": "function", "function": {
                "name": "ls", "description": "List a folder.",
                "parameters": { "type": "object", "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "names to pass over" },
                    "limit": { "type": "integer" },
                } },
            } },
            { "type": "function", "function": {
                "name": "server__tool", "description": "", "parameters": { "type": "object" },
            } },
        ],
        "messages": [
            { "role": "system", "content": "You are \"main\", an agent of locum.\n\nBe brief.\n\n\
                                           Who can be called:\n- worker: does one task" },
            user("Hello \"there\"\n"),
        ],
    });
    assert_eq!(body(Dialect::PLAIN, &asked), plain);
    let mut openai = plain.clone();
    openai["max_completion_tokens"] = openai["max_tokens"].take();
    openai.as_object_mut().unwrap().remove("max_tokens");
    openai["parallel_tool_calls"] = json!(true);
    assert_eq!(body(dialect("openai"), &asked), openai);
    let mut mistral = plain;
    mistral.as_object_mut().unwrap().remove("stream_options");
    mistral["parallel_tool_calls"] = json!(true);
    assert_eq!(body(dialect("mistral"), &asked), mistral);
}

#[test]
fn a_history_takes_turns_and_ends_with_what_is_true_now() {
    let mut asked = asked(history());
    asked.request.now = Some("Open workers:\n- a3".into());
    let ls = json!({ "name": "ls", "arguments": "{}" });
    let plain = json!([
        user("[summary of what came before]\nwe \"began\"\n\nGo"),
        { "role": "assistant", "content": "Reading.", "tool_calls": calls(["c5_0", "c5_1"]) },
        tool("c5_0", "text"),
        tool("c5_1", "[failed] no such tool"),
        user("[from a3] done\n\n[from your parent] hurry"),
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c9_0", "type": "function", "function": ls },
        ] },
        tool("c9_0", "(nothing)"),
        user("Open workers:\n- a3"),
    ]);
    assert_eq!(messages(Dialect::PLAIN, &asked), plain);
    let mut deepseek = plain.clone();
    deepseek[1]["reasoning_content"] = json!("so");
    assert_eq!(messages(dialect("deepseek"), &asked), deepseek);
    let mut openrouter = plain;
    openrouter[1]["reasoning_details"] =
        json!([{ "type": "reasoning.text", "index": 0, "text": "so" }]);
    assert_eq!(messages(dialect("openrouter"), &asked), openrouter);
    let heard = json!({ "role": "assistant", "content": "(heard)" });
    let mistral = json!([
        user("[summary of what came before]\nwe \"began\"\n\nGo"),
        {
            "role": "assistant", "content": "Reading.",
            "tool_calls": calls(["000005000", "000005001"]),
        },
        tool("000005000", "text"),
        tool("000005001", "[failed] no such tool"),
        heard,
        user("[from a3] done\n\n[from your parent] hurry"),
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "000009000", "type": "function", "function": ls },
        ] },
        tool("000009000", "(nothing)"),
        heard,
        user("Open workers:\n- a3"),
    ]);
    assert_eq!(messages(dialect("mistral"), &asked), mistral);
}

#[test]
fn the_model_never_has_the_last_word() {
    let spoke = |text: &str| json!({ "role": "assistant", "content": text });
    let all = messages(Dialect::PLAIN, &asked(vec![person(1, "a"), said(2, "b"), said(3, "")]));
    let go_on = user("Go on.");
    assert_eq!(all, json!([user("a"), spoke("b"), go_on, spoke("(nothing)"), go_on]));
    assert_eq!(messages(Dialect::PLAIN, &asked(vec![])), json!([go_on]));
    let all = messages(Dialect::PLAIN, &asked(vec![said(2, "b"), person(3, "c")]));
    let left_out = user("(what came before is left out)");
    assert_eq!(all, json!([left_out, spoke("b"), user("c")]));

    let mut summary = asked(vec![person(1, "a"), said(2, "b"), person(3, "c")]);
    summary.request.purpose = Purpose::Summary { resume: true };
    assert_eq!(body(Dialect::PLAIN, &summary).get("tool_choice"), None);
    summary.request.tools = vec!["ls".into()];
    let all = body(Dialect::PLAIN, &summary);
    assert_eq!(all["tool_choice"], "none");
    let last = all["messages"][3]["content"].as_str().unwrap();
    assert!(last.starts_with("c\n\nSummarise"), "{last:?}");
}

#[test]
fn kept_histories_say_the_same_as_fresh_ones() {
    for dialect in [Dialect::PLAIN, dialect("mistral")] {
        let kept = builder(dialect);
        let lines = history();
        for end in 1..=lines.len() {
            let mut now = asked(lines[..end].to_vec());
            now.request.now = Some(format!("{end} lines"));
            assert_eq!(kept.body(&now), builder(dialect).body(&now), "{end} lines");
        }
    }
}
