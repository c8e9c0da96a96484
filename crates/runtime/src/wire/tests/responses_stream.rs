//! Responses streams whole, cut at every byte, left out in part, and wrong in every way we know of.

use std::path::Path;

use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use super::stream::{corpus, streams, walk};
use crate::clock::{Clock, System};
use crate::live::{Feed, Live, PieceKind, Told};
use crate::wire::responses::stream::Stream;
use crate::wire::{self, Framing, Reading, WireName};

fn decode_live(chunks: &[&[u8]], live: Live) -> Result<Reply, Failure> {
    let mut reading = Reading::new(Stream::new(live), Framing::Events);
    for chunk in chunks {
        reading.feed(chunk)?;
    }
    reading.finish()
}

pub(super) fn decode(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    decode_live(chunks, Live::nobody())
}

pub(super) fn read(events: &[Value]) -> Result<Reply, Failure> {
    decode(&[sse(events).as_bytes()])
}

/// Events as the provider sends them.
pub(super) fn sse(events: &[Value]) -> String {
    let one =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(one).collect()
}

pub(super) fn created() -> Value {
    let response = json!({ "id": "r1", "status": "in_progress", "output": [], "usage": null });
    json!({ "type": "response.created", "response": response, "sequence_number": 0 })
}

pub(super) fn added(index: u64, item: &Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

pub(super) fn done(index: u64, item: &Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

pub(super) fn message(text: &str) -> Value {
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(json!({ "type": "output_text", "text": text, "annotations": [] }));
    }
    json!({ "type": "message", "id": "m1", "role": "assistant", "content": content })
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments, "status": "completed",
    })
}

pub(super) fn say(index: u64, text: &str) -> Value {
    json!({
        "type": "response.output_text.delta", "item_id": "m1", "output_index": index,
        "content_index": 0, "delta": text, "logprobs": [], "obfuscation": "x7",
    })
}

pub(super) fn arguments(index: u64, json: &str) -> Value {
    json!({
        "type": "response.function_call_arguments.delta", "output_index": index, "delta": json,
    })
}

fn think(index: u64, summary: u64, text: &str) -> Value {
    json!({
        "type": "response.reasoning_summary_text.delta", "output_index": index,
        "summary_index": summary, "delta": text,
    })
}

fn usage() -> Value {
    json!({
        "input_tokens": 240, "output_tokens": 42, "total_tokens": 282,
        "input_tokens_details": { "cached_tokens": 200, "cache_write_tokens": 30 },
        "output_tokens_details": { "reasoning_tokens": 7 },
    })
}

pub(super) fn completed(output: &[Value]) -> Value {
    let response = json!({ "id": "r1", "status": "completed", "output": output, "usage": usage() });
    json!({ "type": "response.completed", "response": response })
}

pub(super) fn incomplete(reason: &str, output: &[Value]) -> Value {
    let response = json!({
        "id": "r1", "status": "incomplete", "incomplete_details": { "reason": reason },
        "output": output, "usage": usage(),
    });
    json!({ "type": "response.incomplete", "response": response })
}

pub(super) fn uses(name: &str, arguments: Value) -> Use {
    Use::new(name, arguments)
}

/// Everything a response can hold, its items interleaved.
fn rich() -> Vec<Value> {
    let thought = json!({
        "type": "reasoning", "id": "rs1", "encrypted_content": "c2VhbGVk", "status": "completed",
        "content": null,
        "summary": [
            { "type": "summary_text", "text": "Let me see…" },
            { "type": "summary_text", "text": "So." },
        ],
    });
    let opened = json!({ "type": "reasoning", "id": "rs1", "summary": [] });
    let read = "{\"path\": \"a.txt\", \"n\": [1, {}]}";
    vec![
        created(),
        json!({ "type": "response.in_progress", "response": { "id": "r1" } }),
        added(0, &opened),
        json!({ "type": "response.reasoning_summary_part.added", "output_index": 0 }),
        think(0, 0, "Let me "),
        think(0, 0, "see…"),
        think(0, 1, "So."),
        done(0, &thought),
        added(1, &json!({ "type": "web_search_call", "id": "ws1" })),
        json!({ "type": "response.web_search_call.searching", "output_index": 1 }),
        done(1, &json!({ "type": "web_search_call", "id": "ws1", "action": {} })),
        added(2, &message("")),
        json!({
            "type": "response.content_part.added", "output_index": 2, "content_index": 0,
            "part": { "type": "output_text", "text": "" },
        }),
        say(2, "Grüße, "),
        added(3, &call("c1", "read", "")),
        arguments(3, "{\"path\": \"a"),
        say(2, "\"Welt\" 👋\n"),
        added(4, &call("c2", "list_agents", "")),
        arguments(4, "{}"),
        arguments(3, ".txt\", \"n\": [1, {}]}"),
        json!({
            "type": "response.output_text.done", "output_index": 2, "content_index": 0,
            "text": "Grüße, \"Welt\" 👋\n",
        }),
        done(2, &message("Grüße, \"Welt\" 👋\n")),
        done(4, &call("c2", "list_agents", "{}")),
        json!({
            "type": "response.function_call_arguments.done", "output_index": 3, "arguments": read,
        }),
        done(3, &call("c1", "read", read)),
        completed(&[
            thought,
            message("Grüße, \"Welt\" 👋\n"),
            call("c1", "read", read),
            call("c2", "list_agents", "{}"),
        ]),
    ]
}

fn rich_reply() -> Reply {
    Reply {
        brings: Vec::new(),
        flaw: None,
        text: "Grüße, \"Welt\" 👋\n".into(),
        reasoning: Some(json!([{
            "type": "reasoning", "id": "rs1", "encrypted_content": "c2VhbGVk",
            "summary": [
                { "type": "summary_text", "text": "Let me see…" },
                { "type": "summary_text", "text": "So." },
            ],
        }])),
        calls: vec![
            uses("read", json!({ "path": "a.txt", "n": [1, {}] })),
            uses("list_agents", json!({})),
        ],
        usage: Usage { input: 240, output: 42, cached: 200, cache_write: 30, reasoning: 7 },
        micro_usd: None,
    }
}

#[test]
fn a_whole_stream_is_the_same_however_it_is_cut() {
    let rich = sse(&rich());
    let others = [(rich.replace('\n', "\r\n"), 13), (rich.replace('\n', "\r"), 17)];
    for (stream, step) in [(rich, 1)].into_iter().chain(others) {
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), Ok(rich_reply()));
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), Ok(rich_reply()));
        for at in (0..bytes.len()).step_by(step) {
            let (a, b) = bytes.split_at(at);
            assert_eq!(decode(&[a, b]), Ok(rich_reply()), "cut at {at}");
        }
    }
}

/// Where the last event is complete; what comes after it is nobody's.
fn complete_at(stream: &[u8]) -> usize {
    let text = String::from_utf8_lossy(stream);
    let last = text.rfind("\"response.completed\"").or(text.rfind("\"response.incomplete\""));
    let last = last.unwrap();
    last + text[last..].find('\n').unwrap()
}

/// A stream that stops early is never a reply, wherever it stops.
fn never_complete_when_cut(name: &str, stream: &[u8], step: usize) {
    for at in (0..complete_at(stream)).rev().step_by(step) {
        let failure = decode(&[&stream[..at]]).expect_err(&format!("{name} cut at {at}"));
        let kinds = [FailureKind::Cut, FailureKind::Malformed];
        assert!(kinds.contains(&failure.kind), "{name} cut at {at}: {failure:?}");
    }
    assert!(decode(&[&stream[..complete_at(stream)]]).is_ok(), "{name} without the last line end");
}

#[test]
fn a_cut_stream_is_never_a_reply() {
    never_complete_when_cut("rich", sse(&rich()).as_bytes(), 1);
}

fn heard(events: &[Value]) -> Vec<(PieceKind, String)> {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let live = feed.live(locum_kernel::Seq(0), crate::line::AgentRef::nobody());
    decode_live(&[sse(events).as_bytes()], live).unwrap();
    drop(feed);
    let mut heard = Vec::new();
    let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while let Some(told) = tasks.block_on(reader.next()) {
        if let Told::Piece { piece, .. } = told {
            heard.push((piece.kind, piece.text.clone()));
        }
    }
    heard
}

#[test]
fn listeners_hear_everything_once() {
    let text = |text: &str| (PieceKind::Text, text.to_owned());
    let thought = (PieceKind::Thinking, "Let me see…\n\nSo.".to_owned());
    assert_eq!(heard(&rich()), [thought, text("Grüße, "), text("\"Welt\" 👋\n")]);
    // A server that says it only when it is done, or only at the very end.
    assert_eq!(heard(&[created(), done(0, &message("ab")), completed(&[])]), [text("ab")]);
    assert_eq!(heard(&[created(), completed(&[message("ab")])]), [text("ab")]);
    // A server whose last word is another than its first.
    let other = [created(), added(0, &message("")), say(0, "ab"), done(0, &message("xyz"))];
    let other = [&other[..], &[completed(&[])]].concat();
    assert_eq!(read(&other).unwrap().text, "xyz");
}

#[test]
fn reasoning_is_kept_as_it_has_to_go_back() {
    let thought = |id: &str| json!({ "type": "reasoning", "id": id, "encrypted_content": "x" });
    let kept = |id: &str| {
        let mut kept = thought(id);
        kept["summary"] = json!([]);
        kept
    };
    let phased = |text: &str| {
        let mut message = message(text);
        message["phase"] = "commentary".into();
        message
    };
    let bare = json!({ "type": "reasoning", "id": "r", "summary": [], "encrypted_content": null });
    let open = json!({
        "type": "reasoning", "id": "r", "summary": [],
        "content": [{ "type": "reasoning_text", "text": "hm" }],
    });
    let place = |bytes: u64| json!({ "type": "message", "bytes": bytes });
    let called = json!({ "type": "function_call" });
    let cases = [
        (
            "the usual order",
            vec![thought("a"), message("m"), call("c", "ls", "{}")],
            Some(json!([kept("a")])),
        ),
        ("nothing to open it with", vec![bare, message("m")], None),
        ("not sealed", vec![open.clone(), message("m")], Some(json!([open]))),
        (
            "between others",
            vec![message("mm"), thought("a"), call("c", "ls", "{}"), thought("b")],
            Some(json!([place(2), kept("a"), called])),
        ),
        ("only that", vec![thought("a")], Some(json!([kept("a")]))),
        (
            "a phase",
            vec![phased("mm")],
            Some(json!([{ "type": "message", "bytes": 2, "phase": "commentary" }])),
        ),
    ];
    for (name, output, expected) in cases {
        assert_eq!(read(&[created(), completed(&output)]).unwrap().reasoning, expected, "{name}");
    }
}

#[test]
fn arguments_that_do_not_parse_stay_text() {
    let cases = [
        ("{\"a\": 1}", json!({ "a": 1 })),
        ("", json!({})),
        ("{\"a\": ", json!("{\"a\": ")),
        ("[1]", json!("[1]")),
        ("{} {}", json!("{} {}")),
        ("{'a': 1}", json!("{'a': 1}")),
    ];
    for (written, expected) in cases {
        let reply = read(&[created(), done(0, &call("c1", "read", written)), completed(&[])]);
        assert_eq!(reply.unwrap().calls[0].arguments, expected, "{written:?}");
    }
}

#[test]
fn a_recording_says_what_was_heard() {
    let events = rich();
    let (decoded, reply) = wire::decode(WireName::OpenAiResponses, sse(&events).as_bytes());
    assert_eq!(reply, Ok(rich_reply()));
    let ids: Vec<&str> = decoded.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((ids, decoded.stop.as_deref()), (vec!["c1", "c2"], Some("completed")));
    assert_eq!(decoded.reasoning, "Let me see…\n\nSo.");
    // One event a line says the same; half of it says half.
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let bare = wire::decode(WireName::OpenAiResponses, lines.join("\n").as_bytes());
    assert_eq!(bare, (decoded, reply));
    let (half, cut) = wire::decode(WireName::OpenAiResponses, lines[..16].join("\n").as_bytes());
    assert_eq!((half.text.as_str(), half.stop), ("Grüße, ", None));
    assert_eq!(half.calls[0].arguments, json!("{\"path\": \"a"));
    assert_eq!(cut.unwrap_err().kind, FailureKind::Cut);
}

/// Recorded streams, if they stand beside the checkout.
#[test]
fn recorded_streams() {
    let Some(root) = corpus() else { return };
    let mut files = Vec::new();
    walk(&root, &mut files);
    let mut found = 0;
    for file in files {
        let recorded = [streams(&file), cassette(&file)].concat();
        let recorded = recorded.iter().filter(|it| it.contains("\"response.created\"")).enumerate();
        for (at, stream) in recorded {
            let name = format!("{} {at}", file.display());
            let bytes = stream.as_bytes();
            let one = decode(&[bytes]);
            assert_eq!(one, decode(&bytes.chunks(1).collect::<Vec<_>>()), "{name}");
            found += 1;
            match (one, expected_failure(&name)) {
                (Ok(_), None) => never_complete_when_cut(&name, bytes, 17),
                (Ok(reply), Some(kind)) => panic!("{name} should be {kind:?}: {reply:?}"),
                (Err(failure), kind) => assert_eq!(Some(failure.kind), kind, "{name}: {failure:?}"),
            }
        }
    }
    assert!(found >= 13, "only {found} recorded streams were found");
}

fn expected_failure(name: &str) -> Option<FailureKind> {
    let failures = [
        ("openai-error", FailureKind::Quota),
        // Its first and its last event lack a brace.
        ("parallel-tool-call-wrapper", FailureKind::Malformed),
    ];
    failures.iter().find(|(part, _)| name.contains(part)).map(|(_, kind)| *kind)
}

/// The bodies in a recording that is YAML: blocks of text, indented.
fn cassette(file: &Path) -> Vec<String> {
    if file.extension().is_none_or(|kind| kind != "yaml") {
        return Vec::new();
    }
    let text = std::fs::read_to_string(file).unwrap();
    let mut bodies = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = " ".repeat(line.len() - line.trim_start().len() + 2);
        if line.trim_start().starts_with("string: |") {
            let inside = lines.clone().take_while(|it| it.is_empty() || it.starts_with(&indent));
            bodies.push(inside.map(str::trim_start).collect::<Vec<_>>().join("\n") + "\n");
        }
    }
    bodies
}

/// How many pieces a second are read: `cargo test --release -- --ignored --nocapture pieces`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a measurement")]
fn pieces_a_second() {
    const PIECES: u64 = 400_000;
    let mut stream = sse(&[created(), added(0, &message(""))]);
    stream.push_str(&sse(&[say(0, "some text ")]).repeat(usize::try_from(PIECES).unwrap()));
    stream.push_str(&sse(&[completed(&[])]));
    let chunks: Vec<&[u8]> = stream.as_bytes().chunks(1_400).collect();
    let began = System.now();
    let reply = decode(&chunks).unwrap();
    let took = System.now().since(began).max(1);
    assert_eq!(reply.text.len() as u64, PIECES * 10);
    println!("{} pieces a second", PIECES * 1_000 / took);
}
