//! `locum decode` through the real binary: every wire, whole and cut, and files that are none.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// One wire's words for the same answer: a thought, a text, a call.
struct Wire {
    name: &'static str,
    events: Vec<Value>,
    /// What ends the stream and is no event.
    mark: &'static str,
    stop: &'static str,
    usage: [u64; 5],
}

const ARGUMENTS: &str = "{\"path\":\"a\"}";

fn wires() -> [Wire; 2] {
    [anthropic(), openai_chat()]
}

fn anthropic() -> Wire {
    let usage = json!({
        "input_tokens": 3, "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 5, "output_tokens": 1,
    });
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": usage } })];
    let call = json!({ "type": "tool_use", "id": "x", "name": "ls", "input": {} });
    let blocks = [
        (json!({ "type": "thinking" }), json!({ "type": "thinking_delta", "thinking": "hm" })),
        (json!({ "type": "text" }), json!({ "type": "text_delta", "text": "Grüße" })),
        (call, json!({ "type": "input_json_delta", "partial_json": ARGUMENTS })),
    ];
    for (index, (block, delta)) in blocks.into_iter().enumerate() {
        let of = |kind: &str| json!({ "type": format!("content_block_{kind}"), "index": index });
        let (mut start, mut part) = (of("start"), of("delta"));
        start["content_block"] = block;
        part["delta"] = delta;
        events.extend([start, part, of("stop")]);
    }
    let (delta, usage) = (json!({ "stop_reason": "tool_use" }), json!({ "output_tokens": 6 }));
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    Wire { name: "anthropic", events, mark: "", stop: "tool_use", usage: [12, 6, 4, 5, 0] }
}

fn openai_chat() -> Wire {
    let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let call = |call: Value| delta(json!({ "tool_calls": [call] }));
    let usage = json!({
        "prompt_tokens": 12, "completion_tokens": 6,
        "prompt_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 5 },
        "completion_tokens_details": { "reasoning_tokens": 2 },
    });
    let end = json!({ "index": 0, "delta": {}, "finish_reason": "tool_calls" });
    let events = vec![
        delta(json!({ "role": "assistant", "reasoning_content": "hm" })),
        delta(json!({ "content": "Grüße" })),
        call(json!({ "index": 0, "id": "x", "function": { "name": "ls", "arguments": "" } })),
        call(json!({ "index": 0, "function": { "arguments": ARGUMENTS } })),
        json!({ "choices": [end] }),
        json!({ "choices": [], "usage": usage }),
    ];
    let (mark, stop, usage) = ("[DONE]", "tool_calls", [12, 6, 4, 5, 2]);
    Wire { name: "openai-chat", events, mark, stop, usage }
}

fn run(arguments: &[&str], bytes: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever does not read it has failed before, which is told below.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

fn decode(wire: &str, bytes: &[u8]) -> (Option<i32>, Value) {
    let output = run(&["decode", "--wire", wire, "-"], bytes);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (output.status.code(), serde_json::from_str(&text).unwrap())
}

impl Wire {
    fn raw(&self) -> String {
        let mark = Some(self.mark.to_owned()).filter(|mark| !mark.is_empty());
        let events = self.events.iter().map(Value::to_string).chain(mark);
        let events: Vec<String> = events.map(|event| format!("data: {event}\n\n")).collect();
        events.concat()
    }

    fn said(&self) -> Value {
        let [input, output, cached, cache_write, reasoning] = self.usage;
        json!({
            "text": "Grüße",
            "reasoning": "hm",
            "calls": [{ "id": "x", "name": "ls", "arguments": { "path": "a" } }],
            "usage": {
                "in": input, "out": output, "cached": cached,
                "cache_write": cache_write, "reasoning": reasoning,
            },
            "stop": self.stop,
            "error": null,
        })
    }
}

#[test]
fn every_wire_says_the_same_in_both_kinds_of_recording() {
    for wire in wires() {
        let bare: Vec<String> = wire.events.iter().map(Value::to_string).collect();
        for recording in [wire.raw(), wire.raw().replace('\n', "\r\n"), bare.join("\n")] {
            let (exit, said) = decode(wire.name, recording.as_bytes());
            assert_eq!((exit, &said), (Some(0), &wire.said()), "{}", wire.name);
        }
    }
}

/// Whoever adds a wire is reminded here.
#[test]
fn no_wire_is_forgotten() {
    let output = run(&["decode", "--wire", "telegraph", "-"], b"");
    let all: Vec<&str> = wires().iter().map(|wire| wire.name).collect();
    let expected = format!("a wire is one of {}", all.join(", "));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(&expected), "{errors}");
}

#[test]
fn a_cut_recording_is_told_and_has_no_calls() {
    for wire in wires() {
        let raw = wire.raw();
        let whole = raw.trim_end().len();
        for at in (0..whole).step_by(41).chain([whole - 1]) {
            let (exit, said) = decode(wire.name, &raw.as_bytes()[..at]);
            assert_eq!(exit, Some(1), "{} cut at {at}: {said}", wire.name);
            assert_eq!(said["calls"], json!([]), "{} cut at {at}", wire.name);
            assert!(said["error"]["kind"].is_string(), "{} cut at {at}: {said}", wire.name);
        }
    }
}

#[test]
fn what_is_no_stream_and_what_was_refused() {
    for wire in wires() {
        for page in ["<html>Sign in</html>", "", "data: 7\n\n", "{\"interactions\":[]}"] {
            let (exit, said) = decode(wire.name, page.as_bytes());
            assert_eq!(exit, Some(1), "{} {page:?}: {said}", wire.name);
        }
    }
    let refused = r#"{"choices":[{"delta":{"refusal":"not this"},"finish_reason":"stop"}]}"#;
    let (exit, said) = decode("openai-chat", refused.as_bytes());
    assert_eq!(exit, Some(0), "a refusal is a whole answer: {said}");
    assert_eq!(said["error"], json!({ "kind": "filtered", "message": "not this" }));
}

#[test]
fn wires_and_files_that_are_not_there() {
    let cases = [
        (["decode", "--wire", "telegraph", "-"], "error[E100]", "a wire is one of anthropic,"),
        (["decode", "--wire", "anthropic", "no/such"], "error[E115]", "no/such cannot be read"),
    ];
    for (arguments, code, words) in cases {
        let output = run(&arguments, b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.starts_with(code) && errors.contains(words), "{errors}");
        assert!(errors.lines().last().unwrap().starts_with("do: "), "{errors}");
    }
}
