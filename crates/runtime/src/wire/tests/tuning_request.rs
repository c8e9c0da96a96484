//! How models are set, in every wire: what is sent, and what is left out because it is refused.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Lines, Output, Reply, Seq, Tuning, Use};
use serde_json::{Value, json};

use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::chat::presets::dialect_of;
use crate::wire::{Settings, anthropic, chat, gemini, ollama, responses};

fn tuned(model: &str, temperature_milli: Option<u32>, effort: Option<&str>) -> Asked {
    let mut asked = asked(vec![person(1, "Hello")]);
    asked.request.model = format!("some/{model}");
    asked.request.tuning = Tuning { temperature_milli, effort: effort.map(Into::into) };
    asked
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

/// What of a body is about the setting, in a fixed order.
fn picked(body: &Value, paths: &[&str]) -> String {
    let found = paths.iter().filter_map(|path| body.pointer(path).map(Value::to_string));
    found.collect::<Vec<_>>().join(" ")
}

fn room() -> Settings {
    Settings { max_tokens: 40_000, ..settings() }
}

const ADAPTIVE: &str = r#"{"type":"adaptive"}"#;

#[test]
fn messages() {
    let paths = ["/temperature", "/thinking", "/output_config"];
    let budget = |tokens: u32| format!(r#"{{"budget_tokens":{tokens},"type":"enabled"}}"#);
    let effort = |word: &str| format!(r#"{{"effort":"{word}"}}"#);
    let cases = [
        ("claude-opus-4-6", None, None, String::new()),
        ("claude-opus-4-6", Some(700), None, "0.7".into()),
        ("claude-opus-4-6", Some(0), None, "0.0".into()),
        // It thinks: no temperature.
        ("claude-opus-4-6", Some(700), Some("low"), format!("{ADAPTIVE} {}", effort("low"))),
        ("claude-sonnet-4-5", Some(700), Some("medium"), budget(8_192)),
        ("claude-3-7-sonnet-latest", None, Some("high"), budget(24_576)),
        ("claude-3-5-haiku-latest", Some(300), Some("high"), "0.3".into()),
        ("claude-opus-4-5", Some(300), Some("high"), format!("0.3 {}", effort("high"))),
        // They refuse a temperature at all times.
        ("claude-opus-4-7", Some(700), None, String::new()),
        ("claude-sonnet-5", Some(700), Some("high"), format!("{ADAPTIVE} {}", effort("high"))),
        (
            "claude-new-preview",
            Some(700),
            Some("medium"),
            format!("{ADAPTIVE} {}", effort("medium")),
        ),
        // More than this provider takes, and words that nobody knows.
        ("claude-opus-4-6", Some(1_700), None, "1.0".into()),
        ("claude-opus-4-6", Some(700), Some("turbo"), "0.7".into()),
        // Somebody else's model that is spoken to in the same way.
        ("glm-9", Some(700), Some("high"), "0.7".into()),
    ];
    for (model, temperature, effort, expected) in cases {
        let builder = anthropic::request::Builder::new(&room());
        let body = read(&builder.body(&tuned(model, temperature, effort)));
        assert_eq!(picked(&body, &paths), expected, "{model} {temperature:?} {effort:?}");
    }
    // The effort and the form are parts of one thing.
    let mut asked = tuned("claude-opus-4-6", None, Some("low"));
    let schema = json!({ "type": "object", "additionalProperties": false });
    asked.request.output = Some(Arc::new(schema.clone()));
    let body = read(&anthropic::request::Builder::new(&room()).body(&asked));
    let format = json!({ "type": "json_schema", "schema": schema });
    assert_eq!(body["output_config"], json!({ "effort": "low", "format": format }));
}

/// A budget leaves room for the answer, and does not begin in the middle of a turn.
#[test]
fn messages_with_a_budget() {
    let with = |max_tokens: u32, lines: Vec<Arc<Line>>| {
        let mut asked = tuned("claude-sonnet-4-5", None, Some("high"));
        asked.request.lines.extend(lines);
        let settings = Settings { max_tokens, ..settings() };
        let body = read(&anthropic::request::Builder::new(&settings).body(&asked));
        body["thinking"]["budget_tokens"].as_u64()
    };
    assert_eq!(with(8_000, Vec::new()), Some(6_000));
    assert_eq!(with(1_000, Vec::new()), None);
    let turn = |reasoning: Option<Value>| {
        let calls = vec![Use::new("ls", json!({}))];
        let reply = Reply { calls, reasoning, ..Reply::default() };
        let result = (CallId { turn: Seq(2), index: 0 }, Output::ok("a"));
        vec![line(2, Body::Replied(reply)), line(3, Body::Results(vec![result]))]
    };
    let thought = json!([{ "type": "thinking", "thinking": "hm", "signature": "s" }]);
    assert_eq!(with(8_000, turn(Some(thought))), Some(6_000));
    assert_eq!(with(8_000, turn(None)), None);
}

#[test]
fn responses_and_chat() {
    let cases = [
        ("gpt-5.4", Some(700), Some("low"), "", "low"),
        ("gpt-5-chat-latest", Some(700), Some("low"), "0.7", ""),
        ("gpt-4.1", Some(250), Some("low"), "0.25", ""),
        ("o4-mini", Some(700), None, "", ""),
        ("gpt-4.1", None, None, "", ""),
        ("gpt-5.4", None, Some("turbo"), "", ""),
        ("llama-4", Some(700), Some("high"), "0.7", "high"),
        ("openai/gpt-5.4", Some(700), Some("medium"), "", "medium"),
        ("anthropic/claude-opus-4.7", Some(700), Some("medium"), "", "medium"),
    ];
    for (model, temperature, effort, warm, hard) in cases {
        let asked = tuned(model, temperature, effort);
        let expected = |hard: String| format!("{warm} {hard}").trim().to_owned();
        let quoted = if hard.is_empty() { String::new() } else { format!("\"{hard}\"") };
        let body = read(&responses::request::Builder::new(&settings()).body(&asked));
        let found = picked(&body, &["/temperature", "/reasoning/effort"]);
        assert_eq!(found, expected(quoted.clone()), "{model} {temperature:?} {effort:?}");
        let dialect = dialect_of("openai", "");
        let body = read(&chat::request::Builder::new(&settings(), dialect).body(&asked));
        let found = picked(&body, &["/temperature", "/reasoning_effort"]);
        assert_eq!(found, expected(quoted), "{model} {temperature:?} {effort:?}");
    }
    let strict = dialect_of("mistral", "");
    let asked = tuned("mistral-large", Some(700), Some("low"));
    let body = read(&chat::request::Builder::new(&settings(), strict).body(&asked));
    assert_eq!(picked(&body, &["/temperature", "/reasoning_effort"]), "0.7");
}

#[test]
fn generating_content() {
    let cases = [
        ("gemini-3-pro-preview", Some(700), Some("low"), r#"0.7 "low""#),
        ("gemini-3-pro-preview", None, Some("medium"), ""),
        ("gemini-3.1-pro", None, Some("medium"), r#""medium""#),
        ("gemini-3-flash", None, Some("medium"), r#""medium""#),
        ("gemini-2.5-flash", Some(1_200), Some("high"), "1.2 24576"),
        ("gemini-2.5-pro", None, Some("low"), "1024"),
        ("gemini-2.5-pro", None, Some("turbo"), ""),
        ("gemini-2.0-flash", Some(700), Some("high"), "0.7"),
    ];
    for (model, temperature, effort, expected) in cases {
        let builder = gemini::request::Builder::new(&settings());
        let body = read(&builder.body(&tuned(model, temperature, effort)));
        let found = picked(
            &body["generationConfig"],
            &["/temperature", "/thinkingConfig/thinkingLevel", "/thinkingConfig/thinkingBudget"],
        );
        assert_eq!(found, expected, "{model} {temperature:?} {effort:?}");
    }
}

#[test]
fn models_of_this_machine() {
    let cases = [
        ("gpt-oss:20b", Some(700), Some("high"), r#"0.7 "high""#),
        ("library/gpt-oss:20b", None, Some("low"), r#""low""#),
        ("qwen3:8b", Some(100), Some("high"), "0.1"),
        ("qwen3:8b", None, None, ""),
    ];
    for (model, temperature, effort, expected) in cases {
        let builder = ollama::request::Builder::new(&settings());
        let body = read(&builder.body(&tuned(model, temperature, effort)));
        assert_eq!(picked(&body, &["/options/temperature", "/think"]), expected, "{model}");
        assert_eq!(body["options"]["num_predict"], 1_000);
    }
}

type Ask<'a> = Box<dyn Fn(&Asked) -> Vec<u8> + 'a>;

/// A history is kept, and with it what comes before; another setting is another request.
#[test]
fn a_kept_history_does_not_keep_the_setting() {
    let lines: Lines = [person(1, "Hello")].into_iter().collect();
    let mut first = tuned("gemini-2.5-pro", Some(100), Some("low"));
    first.request.lines.clone_from(&lines);
    let mut second = tuned("gemini-2.5-pro", Some(900), None);
    second.request.lines = lines;
    let (google, local) =
        (gemini::request::Builder::new(&settings()), ollama::request::Builder::new(&settings()));
    let (plain, kept) = (
        responses::request::Builder::new(&settings()),
        chat::request::Builder::new(&settings(), dialect_of("", "")),
    );
    let messages = anthropic::request::Builder::new(&settings());
    let wires: [Ask<'_>; 5] = [
        Box::new(|asked| google.body(asked)),
        Box::new(|asked| local.body(asked)),
        Box::new(|asked| plain.body(asked)),
        Box::new(|asked| kept.body(asked)),
        Box::new(|asked| messages.body(asked)),
    ];
    for body in wires {
        let warm = |asked: &Asked| {
            let body = read(&body(asked));
            picked(
                &body,
                &["/temperature", "/generationConfig/temperature", "/options/temperature"],
            )
        };
        assert_eq!([warm(&first), warm(&second), warm(&first)], ["0.1", "0.9", "0.1"]);
    }
}
