//! What is sent over the Responses wire, spelled out.

use std::sync::Arc;

use locum_kernel::{AgentId, Body, CallId, Line, Note, Output, Purpose, Reply, Seq, Source, Use};
use serde_json::{Value, json};

use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::responses::request::Builder;

fn builder() -> Builder {
    Builder::new(&settings())
}

fn body(asked: &Asked) -> Value {
    let bytes = builder().body(asked);
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn user(text: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": text }]);
    json!({ "type": "message", "role": "user", "content": content })
}

fn assistant(text: &str) -> Value {
    json!({ "type": "message", "role": "assistant", "content": text })
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
}

fn output(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

fn thought(id: &str) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": "sealed" })
}

fn replied(seq: u64, text: &str, reasoning: Option<Value>, calls: &[(&str, Value)]) -> Arc<Line> {
    let calls = calls.iter().map(|(name, arguments)| Use::new(*name, arguments.clone()));
    let calls = calls.collect();
    line(seq, Body::Replied(Reply { text: text.into(), reasoning, calls, ..Reply::default() }))
}

fn results(seq: u64, turn: u64, outputs: Vec<Output>) -> Arc<Line> {
    let of = |(index, output)| (CallId { turn: Seq(turn), index }, output);
    line(seq, Body::Results((0u16..).zip(outputs).map(of).collect()))
}

#[test]
fn the_first_request() {
    let mut asked = asked(vec![person(1, "Hello \"there\"\n")]);
    asked.request.model = "openai/some-model".into();
    asked.request.catalogue = vec!["worker: does one task".into()];
    asked.request.tools = vec!["ls".into()];
    let mut body = body(&asked);
    let key = body["prompt_cache_key"].take();
    let key = key.as_str().unwrap();
    assert!(key.starts_with("locum-") && key.len() <= 64, "{key}");
    assert_eq!(
        body,
        json!({
            "model": "some-model",
            "max_output_tokens": 1000,
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": null,
            "instructions": "You are \"main\", an agent of locum.\n\nBe brief.\n\n\
                             Who can be called:\n- worker: does one task",
            "tools": [{
                "type": "function", "name": "ls", "description": "List a folder.", "strict": false,
                "parameters": { "type": "object", "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "names to pass over" },
                    "limit": { "type": "integer" },
                } },
            }],
            "input": [user("Hello \"there\"\n")],
        })
    );
}

#[test]
fn the_cache_key_is_that_of_the_definition() {
    let key = |asked: &Asked| body(asked)["prompt_cache_key"].as_str().unwrap().to_owned();
    let first = asked(vec![person(1, "a")]);
    let mut later = asked(vec![person(4, "b"), replied(5, "c", None, &[])]);
    later.request.now = Some("now".into());
    assert_eq!(key(&first), key(&later));
    for change in [
        |asked: &mut Asked| asked.definition = "worker".into(),
        |asked: &mut Asked| asked.request.instructions = "Be long.".into(),
        |asked: &mut Asked| asked.request.tools = vec!["ls".into()],
    ] {
        let mut other = asked(vec![person(1, "a")]);
        change(&mut other);
        assert_ne!(key(&first), key(&other), "{other:?}");
    }
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_reasoning() {
    let cases = [
        ("openai/gpt-5.5", true),
        ("openai/o3", true),
        ("openrouter/openai/gpt-oss-120b", true),
        ("openai/gpt-4.1-mini", false),
        ("openrouter/openai/gpt-4o", false),
        ("openai/gpt-5-chat-latest", false),
    ];
    for (model, expected) in cases {
        let mut asked = asked(vec![person(1, "a")]);
        asked.request.model = model.into();
        assert_eq!(body(&asked).get("include").is_some(), expected, "{model}");
    }
}

#[test]
fn a_history_is_told_item_by_item_and_ends_with_what_is_true_now() {
    let foreign = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let calls = [("read", json!({ "path": "a" })), ("odd name!", json!("{\"pa"))];
    let note = |source, text: &str| Note::new(source, text.into());
    let told = vec![
        note(Source::Child(AgentId(3)), "done"),
        note(Source::Runtime, "mind the limit"),
        note(Source::Parent, "hurry"),
        note(Source::Brief, "  "),
    ];
    let mut asked = asked(vec![
        line(1, Body::Summary("we began".into())),
        person(2, "Go"),
        replied(5, "Reading.", Some(json!([thought("r1"), foreign, thought("r2")])), &calls),
        results(7, 5, vec![Output::ok("text"), Output::error("no such tool")]),
        line(8, Body::Told(told)),
        replied(9, " ", None, &[("ls", json!({}))]),
        results(10, 9, vec![Output::ok("")]),
        replied(11, "", Some(json!([thought("r3")])), &[]),
    ]);
    asked.request.now = Some("Open workers:\n- a3".into());
    assert_eq!(
        body(&asked)["input"],
        json!([
            user("[summary of what came before]\nwe began"),
            user("Go"),
            thought("r1"),
            thought("r2"),
            assistant("Reading."),
            call("c5_0", "read", "{\"path\":\"a\"}"),
            call("c5_1", "odd_name_", "{\"unparsable\":\"{\\\"pa\"}"),
            output("c5_0", "text"),
            output("c5_1", "[failed] no such tool"),
            user("[from a3] done"),
            user("[from locum] mind the limit"),
            user("[from your parent] hurry"),
            call("c9_0", "ls", "{}"),
            output("c9_0", ""),
            thought("r3"),
            assistant("(nothing)"),
            user("Open workers:\n- a3"),
        ])
    );
}

#[test]
fn what_was_told_in_another_order_goes_back_in_it() {
    let order = json!([
        thought("r1"),
        { "type": "message", "bytes": 5, "phase": "commentary" },
        { "type": "function_call" },
        thought("r2"),
        { "type": "message", "bytes": 4, "phase": "final_answer" },
    ]);
    let calls = [("ls", json!({})), ("read", json!({}))];
    let phased = |text: &str, phase: &str| {
        let mut message = assistant(text);
        message["phase"] = phase.into();
        message
    };
    let body = body(&asked(vec![person(1, "a"), replied(2, "Grüßdone", Some(order), &calls)]));
    // The first message ends inside a sign: nothing is lost, and nothing breaks.
    let said = body["input"].as_array().unwrap();
    let text: String = said.iter().filter_map(|item| item["content"].as_str()).collect();
    assert_eq!(text, "Grüßdone");
    let order = json!([
        thought("r1"),
        { "type": "message", "bytes": 6, "phase": "commentary" },
        { "type": "function_call" },
        thought("r2"),
        { "type": "message", "bytes": 4, "phase": "final_answer" },
    ]);
    let asked = asked(vec![person(1, "a"), replied(2, "Grüßdone", Some(order), &calls)]);
    assert_eq!(
        self::body(&asked)["input"],
        json!([
            user("a"),
            thought("r1"),
            phased("Grüß", "commentary"),
            call("c2_0", "ls", "{}"),
            thought("r2"),
            phased("done", "final_answer"),
            call("c2_1", "read", "{}"),
            user("Go on."),
        ])
    );
}

#[test]
fn the_user_has_the_last_word() {
    let history = vec![person(1, "a"), replied(2, "b", None, &[])];
    let said = json!([user("a"), assistant("b"), user("Go on.")]);
    assert_eq!(body(&asked(history.clone()))["input"], said);
    assert_eq!(body(&asked(vec![]))["input"], json!([user("Go on.")]));

    let mut summary = asked(history);
    summary.request.tools = vec!["ls".into()];
    summary.request.purpose = Purpose::Summary { resume: true };
    let all = body(&summary);
    assert_eq!(all["tool_choice"], "none");
    let last = all["input"][2]["content"][0]["text"].as_str().unwrap();
    assert!(last.starts_with("Summarise"), "{last:?}");
}

#[test]
fn kept_histories_say_the_same_as_fresh_ones() {
    let kept = builder();
    let mut lines = vec![person(1, "Go")];
    for turn in 0..10u64 {
        let seq = 2 + turn * 3;
        lines.push(replied(seq, "I look.", None, &[("read", json!({ "path": turn }))]));
        lines.push(results(seq + 2, seq, vec![Output::ok("some \"text\"\n")]));
    }
    for end in 1..=lines.len() {
        let mut now = asked(lines[..end].to_vec());
        now.request.now = Some(format!("{end} lines"));
        assert_eq!(kept.body(&now), builder().body(&now), "{end} lines");
    }
}
