//! What is sent, spelled out; and that keeping histories changes nothing but the time it takes.

use std::cell::Cell;
use std::sync::Arc;

use locum_kernel::{AgentId, Body, CallId, Line, Note, Output, Purpose, Reply, Seq, Source, Use};
use serde_json::{Value, json};

use super::{asked, line, person, settings};
use crate::provider::Asked;
use crate::wire::anthropic::request::Builder;
use crate::wire::history::{Encoding, Histories};

fn builder() -> Builder {
    Builder::new(&settings())
}

fn body(builder: &Builder, asked: &Asked) -> Value {
    let bytes = builder.body(asked);
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn replied(seq: u64, text: &str, calls: &[(&str, Value)]) -> Arc<Line> {
    let calls = calls.iter().map(|(name, arguments)| Use::new(*name, arguments.clone()));
    let reply = Reply { text: text.into(), calls: calls.collect(), ..Reply::default() };
    line(seq, Body::Replied(reply))
}

fn results(seq: u64, turn: u64, outputs: Vec<Output>) -> Arc<Line> {
    let of = |(index, output)| (CallId { turn: Seq(turn), index }, output);
    line(seq, Body::Results((0u16..).zip(outputs).map(of).collect()))
}

fn note(source: Source, text: &str) -> Note {
    Note::new(source, text.into())
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

#[test]
fn the_first_request() {
    let mut asked = asked(vec![person(1, "Hello \"there\"\n")]);
    asked.request.catalogue = vec!["worker: does one task".into()];
    asked.request.tools = vec!["ls".into(), "server__tool".into()];
    assert_eq!(
        body(&builder(), &asked),
        json!({
            "model": "some-model",
            "max_tokens": 1000,
            "stream": true,
            "tools": [
                {
                    "name": "ls", "description": "List a folder.",
                    "input_schema": {
                        "type": "object", "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "names to pass over" },
                    "limit": { "type": "integer" },
                },
                    },
                },
                { "name": "server__tool", "description": "", "input_schema": { "type": "object" } },
            ],
            "system": [{
                "type": "text", "cache_control": mark(),
                "text": "You are \"main\", an agent of locum.\n\nBe brief.\n\n\
                         Who can be called:\n- worker: does one task",
            }],
            "messages": [{
                "role": "user",
                "content": [
                    { "type": "text", "text": "Hello \"there\"\n", "cache_control": mark() },
                ],
            }],
        })
    );
}

#[test]
fn a_history_alternates_and_ends_with_what_is_true_now() {
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let foreign = json!({ "type": "reasoning", "id": "r1" });
    let reply = Reply {
        text: "Reading.".into(),
        reasoning: Some(json!([thinking, foreign])),
        calls: vec![
            Use::new("read", json!({ "path": "a" })),
            Use::new("odd name!", json!("{\"pa")),
        ],
        ..Reply::default()
    };
    let told = vec![
        note(Source::Child(AgentId(3)), "done"),
        note(Source::Runtime, "mind the limit"),
        note(Source::Parent, "hurry"),
        note(Source::Brief, "  "),
    ];
    let mut asked = asked(vec![
        line(1, Body::Summary("we began".into())),
        person(2, "Go"),
        line(5, Body::Replied(reply)),
        results(7, 5, vec![Output::ok("text"), Output::error("no such tool")]),
        line(8, Body::Told(told)),
        replied(9, " ", &[("ls", json!({}))]),
        results(10, 9, vec![Output::ok("")]),
    ]);
    asked.request.now = Some("Open workers:\n- a3".into());
    let text = |text: &str| json!({ "type": "text", "text": text });
    let marked = |mut block: Value| {
        block["cache_control"] = mark();
        block
    };
    assert_eq!(
        body(&builder(), &asked)["messages"],
        json!([
            { "role": "user", "content": [
                text("[summary of what came before]\nwe began"), text("Go"),
            ] },
            { "role": "assistant", "content": [
                thinking,
                text("Reading."),
                { "type": "tool_use", "id": "c5_0", "name": "read", "input": { "path": "a" } },
                {
                    "type": "tool_use", "id": "c5_1", "name": "odd_name_",
                    "input": { "unparsable": "{\"pa" },
                },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c5_0", "content": "text" },
                {
                    "type": "tool_result", "tool_use_id": "c5_1", "content": "no such tool",
                    "is_error": true,
                },
                text("[from a3] done"),
                text("[from locum] mind the limit"),
                marked(text("[from your parent] hurry")),
            ] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "c9_0", "name": "ls", "input": {} },
            ] },
            { "role": "user", "content": [
                marked(json!({ "type": "tool_result", "tool_use_id": "c9_0" })),
                text("Open workers:\n- a3"),
            ] },
        ])
    );
}

#[test]
fn the_user_has_the_last_word() {
    let text = |role: &str, text: &str| {
        let content = [json!({ "type": "text", "text": text })];
        json!({ "role": role, "content": content })
    };
    let mut history = vec![person(1, "a"), replied(2, "b", &[])];
    let mut all = body(&builder(), &asked(history.clone()));
    all["messages"][0]["content"][0].as_object_mut().unwrap().remove("cache_control");
    let said = [text("user", "a"), text("assistant", "b"), text("user", "Go on.")];
    assert_eq!(all["messages"], json!(said));
    assert_eq!(body(&builder(), &asked(vec![]))["messages"], json!([text("user", "Go on.")]));

    history.push(person(3, "c"));
    let mut summary = asked(history);
    summary.request.tools = vec!["ls".into()];
    summary.request.purpose = Purpose::Summary { resume: true };
    let all = body(&builder(), &summary);
    assert_eq!(all["tool_choice"], json!({ "type": "none" }));
    let last = all["messages"][2]["content"].as_array().unwrap();
    assert!(last[1]["text"].as_str().unwrap().starts_with("Summarise"), "{last:?}");
}

/// A long conversation: every turn a call and its result.
fn long(turns: u64, bytes: usize) -> Vec<Arc<Line>> {
    let mut lines = vec![person(1, "Go")];
    for turn in 0..turns {
        let seq = 2 + turn * 3;
        let result = format!("{turn} {}", "some \"text\"\n".repeat(bytes / 12));
        lines.push(replied(seq, "I look.", &[("read", json!({ "path": format!("f{turn}") }))]));
        lines.push(results(seq + 2, seq, vec![Output::ok(result)]));
    }
    lines
}

#[test]
fn kept_histories_say_the_same_as_fresh_ones() {
    let kept = builder();
    let lines = long(20, 40);
    for end in (1..=lines.len()).step_by(2) {
        let mut now = asked(lines[..end].to_vec());
        now.request.now = Some(format!("{end} lines"));
        assert_eq!(kept.body(&now), builder().body(&now), "{end} lines");
    }
    // Other instructions, a shorter history, and another session with the same numbers.
    for lines in [&lines[..], &lines[..5]] {
        let mut other = asked(lines.to_vec());
        other.request.instructions = format!("Be {} lines long.", lines.len());
        assert_eq!(kept.body(&other), builder().body(&other));
    }
    let elsewhere = asked(long(20, 41));
    assert_eq!(kept.body(&elsewhere), builder().body(&elsewhere));
    let compacted = asked([&[line(90, Body::Summary("short".into()))], &lines[39..]].concat());
    assert_eq!(kept.body(&compacted), builder().body(&compacted));
}

#[test]
fn histories_are_forgotten_with_their_lines_and_by_age() {
    let kept = Builder::with_room(&settings(), 60_000);
    let first = asked(long(4, 1_000));
    kept.body(&first);
    assert_eq!(kept.kept().0, 1);
    drop(first);
    let second = asked(long(4, 1_000));
    kept.body(&second);
    assert_eq!(kept.kept().0, 1, "the first is gone with its lines");
    let more: Vec<Asked> = (0..20).map(|_| asked(long(4, 1_000))).collect();
    for it in &more {
        kept.body(it);
        assert!(kept.kept().1 <= 60_000, "{:?}", kept.kept());
    }
    assert!(kept.kept().0 > 3, "{:?}", kept.kept());
    assert_eq!(kept.body(&second), builder().body(&second), "forgotten, not wrong");
}

/// Says how often it was asked to write.
#[derive(Default)]
struct Counting {
    heads: Cell<usize>,
    lines: Cell<usize>,
}

impl Encoding for Counting {
    type Pen = ();

    fn head(&self, _: &Asked, _: &mut Vec<u8>) {
        self.heads.set(self.heads.get() + 1);
    }

    fn line(&self, line: &Line, (): &mut (), into: &mut Vec<u8>) {
        self.lines.set(self.lines.get() + 1);
        into.extend_from_slice(&line.seq.0.to_be_bytes());
    }
}

#[test]
fn every_line_is_encoded_once() {
    let (counting, histories) = (Counting::default(), Histories::default());
    let lines = long(100, 10);
    for end in (1..=lines.len()).step_by(2) {
        let bytes = histories
            .write(&counting, &asked(lines[..end].to_vec()), |written| written.bytes.len());
        assert_eq!(bytes, end * 8);
    }
    assert_eq!((counting.heads.get(), counting.lines.get()), (1, lines.len()));
    // Another agent of the same kind has another history, but the same head.
    let sibling = asked(long(3, 10));
    histories.write(&counting, &sibling, |_| ());
    assert_eq!((counting.heads.get(), counting.lines.get()), (1, lines.len() + 7));
}
