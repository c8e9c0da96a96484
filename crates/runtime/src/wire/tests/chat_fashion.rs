//! The chat wire as everybody speaks it: calls, texts, counts and thoughts in every fashion.

use locum_kernel::Usage;
use serde_json::{Value, json};

use super::chat_stream::{call, choice, decode, decode_as, end, say, sse, usage, used};

/// Index, id, name and arguments of one delta of a call.
type Part = (Value, Value, Value, Value);

fn part((index, id, name, arguments): &Part) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    call(&json!({ "index": index, "id": id, "function": function }))
}

fn path(path: &str) -> Value {
    json!(format!("{{\"path\":\"{path}\"}}"))
}

/// The deltas, and how many calls of `ls` they are; the first is for `a`.
#[test]
fn calls_in_every_fashion() {
    let (no, ls) = (|| json!(null), || json!("ls"));
    let (head, tail) = (|| json!("{\"path\":"), || json!("\"a\"}"));
    let cases: Vec<(&str, Vec<Part>, usize)> = vec![
        ("in one", vec![(json!(0), json!("x"), ls(), path("a"))], 1),
        ("an object", vec![(json!(0), json!("x"), ls(), json!({ "path": "a" }))], 1),
        (
            "no index, ids",
            vec![(no(), json!("x"), ls(), path("a")), (no(), json!("y"), ls(), path("b"))],
            2,
        ),
        ("no index, no ids", vec![(no(), no(), ls(), path("a")), (no(), no(), ls(), path("b"))], 2),
        (
            "one index for all",
            vec![(json!(0), json!("x"), ls(), path("a")), (json!(0), json!("y"), ls(), path("b"))],
            2,
        ),
        (
            "indices from 1",
            vec![(json!(1), json!("x"), ls(), path("a")), (json!(2), json!("y"), ls(), path("b"))],
            2,
        ),
        (
            "no index, in pieces",
            vec![(no(), json!("x"), ls(), head()), (no(), no(), no(), tail())],
            1,
        ),
        (
            "no index, the id again",
            vec![(no(), json!("x"), ls(), head()), (no(), json!("x"), no(), tail())],
            1,
        ),
        (
            "an empty name, a new id",
            vec![(json!(0), json!("x"), ls(), head()), (json!(0), json!("y"), json!(""), tail())],
            1,
        ),
        (
            "everything again",
            vec![(json!(0), json!("x"), ls(), head()), (json!(0), json!("x"), ls(), tail())],
            1,
        ),
        (
            "null, then text",
            vec![(json!(0), json!("x"), ls(), no()), (json!(0), no(), no(), path("a"))],
            1,
        ),
    ];
    for (name, parts, count) in cases {
        let parts: Vec<Value> = parts.iter().map(part).collect();
        for reason in ["tool_calls", "stop"] {
            let events = [parts.clone(), vec![end(reason)]].concat();
            let reply = decode(&[sse(&events).as_bytes()]).unwrap();
            let expected = ["a", "b"].map(|path| used("ls", json!({ "path": path })));
            assert_eq!(reply.calls, expected[..count], "{name}, {reason}");
        }
    }
}

#[test]
fn text_usage_and_whole_answers_in_every_fashion() {
    let counts = |input, output| Usage { input, output, ..Usage::default() };
    let told = json!({ "prompt_tokens": 3, "completion_tokens": 4 });
    let last = |field: &str| {
        let mut last = end("stop");
        last[field] = told.clone();
        last
    };
    let mut in_choice = end("stop");
    in_choice["choices"][0]["usage"] = told.clone();
    let mut groq = end("stop");
    groq["x_groq"] = json!({ "id": "r", "usage": told });
    let parts = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
        { "type": "text", "text": "a" }, { "type": "text", "text": "b" },
    ]);
    let other = json!({ "choices": [
        { "index": 1, "delta": { "content": "no" }, "finish_reason": "stop" },
        { "index": 0, "delta": { "content": "ab" } },
    ] });
    let message = json!({ "object": "chat.completion", "choices": [{
        "index": 0, "message": { "role": "assistant", "content": "ab" }, "finish_reason": "stop",
    }], "usage": told });
    let both = json!({ "choices": [{
        "delta": { "content": "b" }, "message": { "content": "ab" }, "finish_reason": "stop",
    }] });
    let cases: Vec<(&str, Vec<Value>, Usage)> = vec![
        ("no usage", vec![say("ab"), end("stop")], counts(0, 0)),
        ("in the last chunk", vec![say("ab"), last("usage")], counts(3, 4)),
        ("in the choice", vec![say("ab"), in_choice], counts(3, 4)),
        ("elsewhere", vec![say("ab"), groq], counts(3, 4)),
        (
            "null after it",
            vec![say("ab"), last("usage"), json!({ "choices": [], "usage": null })],
            counts(3, 4),
        ),
        ("parts", vec![choice(&json!({ "content": parts })), end("stop")], counts(0, 0)),
        ("other choices", vec![other, end("stop")], counts(0, 0)),
        ("a whole message", vec![message], counts(3, 4)),
        ("delta and message", vec![say("a"), both], counts(0, 0)),
        (
            "no reason yet",
            vec![
                json!({ "choices": [{ "delta": { "content": "ab" }, "finish_reason": "" }] }),
                end("eos"),
            ],
            counts(0, 0),
        ),
        (
            "no choices first",
            vec![json!({ "choices": [], "prompt_filter_results": [] }), say("ab"), end("length")],
            counts(0, 0),
        ),
    ];
    for (name, events, usage) in cases {
        let reply = decode(&[sse(&events).as_bytes()]).expect(name);
        assert_eq!((reply.text.as_str(), reply.usage), ("ab", usage), "{name}");
    }
}

#[test]
fn arguments_that_do_not_parse_stay_text() {
    let cases = [
        ("tool_calls", "{\"a\": 1}", json!({ "a": 1 })),
        ("tool_calls", "", json!({})),
        ("tool_calls", "{\"a\": ", json!("{\"a\": ")),
        ("tool_calls", "[1]", json!("[1]")),
        ("tool_calls", "{} {}", json!("{} {}")),
        ("length", "{\"a\": ", json!("{\"a\": ")),
        // The model had no room to write them: that is not the same as none.
        ("length", "", json!("")),
    ];
    for (reason, written, expected) in cases {
        let function = json!({ "name": "read", "arguments": written });
        let events = [call(&json!({ "index": 0, "id": "x", "function": function })), end(reason)];
        let reply = decode(&[sse(&events).as_bytes()]).unwrap();
        assert_eq!(reply.calls[0].arguments, expected, "{written:?}");
    }
}

#[test]
fn reasoning_is_kept_for_those_who_want_it_back() {
    let detail =
        |detail: Value| choice(&json!({ "reasoning": "x", "reasoning_details": [detail] }));
    let events = [
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "Let ", "format": "f" })),
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "me", "format": null })),
        detail(json!({ "type": "reasoning.text", "index": 0, "signature": "sig" })),
        detail(json!({ "type": "reasoning.encrypted", "index": 1, "data": "b3Bh", "id": "r" })),
        detail(json!(7)),
        end("stop"),
    ];
    assert_eq!(
        decode_as("openrouter", &events).unwrap().reasoning,
        Some(json!([
            {
                "type": "reasoning.text", "index": 0,
                "text": "Let me", "format": "f", "signature": "sig",
            },
            { "type": "reasoning.encrypted", "index": 1, "data": "b3Bh", "id": "r" },
        ]))
    );
    let kept = json!([{ "type": "reasoning_content", "text": "xxxxx" }]);
    assert_eq!(decode_as("deepseek", &events).unwrap().reasoning, Some(kept));
    assert_eq!(decode_as("vllm", &events).unwrap().reasoning, None);
    let grok = decode_as("xai", &[say("a"), end("stop"), usage()]).unwrap();
    assert_eq!(grok.usage.output, 49, "it counts reasoning beside the output");
}
