//! Streams whole, cut at every byte, and wrong in every way we know of.

use std::fs;
use std::path::{Path, PathBuf};

use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use crate::live::{Feed, Live, PieceKind, Told};
use crate::wire::Framing;
use crate::wire::Reading;
use crate::wire::anthropic::stream::Stream;

/// What a decoder makes of these chunks, as the connection code would feed them.
fn decode_live(chunks: &[&[u8]], live: Live) -> Result<Reply, Failure> {
    let mut reading = Reading::new(Stream::new(live), Framing::Events);
    for chunk in chunks {
        reading.feed(chunk)?;
    }
    reading.finish()
}

fn decode(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    decode_live(chunks, Live::nobody())
}

/// Events as the provider sends them.
fn sse(events: &[Value]) -> String {
    let one =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(one).collect()
}

fn start() -> Value {
    let usage = json!({
        "input_tokens": 10, "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 30, "output_tokens": 1,
    });
    json!({ "type": "message_start", "message": { "id": "m1", "usage": usage } })
}

fn open(index: u64, block: &Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn text(index: u64) -> Value {
    open(index, &json!({ "type": "text", "text": "" }))
}

fn call(index: u64) -> Value {
    open(index, &json!({ "type": "tool_use", "id": "t1", "name": "read", "input": {} }))
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn say(index: u64, text: &str) -> Value {
    delta(index, &json!({ "type": "text_delta", "text": text }))
}

fn arguments(index: u64, json: &str) -> Value {
    delta(index, &json!({ "type": "input_json_delta", "partial_json": json }))
}

fn close(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn end(reason: &str) -> Value {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 42 } })
}

fn stop() -> Value {
    json!({ "type": "message_stop" })
}

fn ping() -> Value {
    json!({ "type": "ping" })
}

/// Everything a message can hold.
fn rich() -> String {
    sse(&[
        start(),
        ping(),
        open(0, &json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "Let me " })),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "see…" })),
        delta(0, &json!({ "type": "signature_delta", "signature": "c2ln" })),
        close(0),
        open(1, &json!({ "type": "redacted_thinking", "data": "b3BhcXVl" })),
        close(1),
        text(2),
        say(2, "Grüße, "),
        ping(),
        say(2, "\"Welt\" 👋\n"),
        close(2),
        call(3),
        arguments(3, ""),
        arguments(3, "{\"path\": \"a"),
        arguments(3, ".txt\", \"n\": [1, {}]}"),
        close(3),
        open(4, &json!({ "type": "tool_use", "id": "t2", "name": "list_agents", "input": {} })),
        close(4),
        end("tool_use"),
        stop(),
    ])
}

fn rich_reply() -> Reply {
    let call = |name: &str, arguments| Use::new(name, arguments);
    Reply {
        brings: Vec::new(),
        flaw: None,
        text: "Grüße, \"Welt\" 👋\n".into(),
        reasoning: Some(json!([
            { "type": "thinking", "thinking": "Let me see…", "signature": "c2ln" },
            { "type": "redacted_thinking", "data": "b3BhcXVl" },
        ])),
        calls: vec![
            call("read", json!({ "path": "a.txt", "n": [1, {}] })),
            call("list_agents", json!({})),
        ],
        usage: Usage { input: 240, output: 42, cached: 200, cache_write: 30, reasoning: 0 },
        micro_usd: None,
    }
}

#[test]
fn a_whole_stream_is_the_same_however_it_is_cut() {
    for stream in [rich(), rich().replace('\n', "\r\n"), rich().replace('\n', "\r")] {
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), Ok(rich_reply()));
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), Ok(rich_reply()));
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(decode(&[a, b]), Ok(rich_reply()), "cut at {at}");
        }
    }
}

/// Where the last event is complete; what comes after it is nobody's.
fn complete_at(stream: &[u8]) -> usize {
    let text = String::from_utf8_lossy(stream);
    let last = text.find("\"message_stop\"").unwrap();
    last + text[last..].find('}').unwrap() + 1
}

/// A stream that stops early is never a reply, wherever it stops.
fn never_complete_when_cut(name: &str, stream: &[u8], step: usize) {
    for at in (0..complete_at(stream)).rev().step_by(step) {
        let cut = decode(&[&stream[..at]]);
        let failure = cut.expect_err(&format!("{name} cut at {at} is a reply"));
        let kinds = [FailureKind::Cut, FailureKind::Malformed];
        assert!(kinds.contains(&failure.kind), "{name} cut at {at}: {failure:?}");
    }
    assert!(decode(&[&stream[..complete_at(stream)]]).is_ok(), "{name} without the last line end");
}

#[test]
fn a_cut_stream_is_never_a_reply() {
    never_complete_when_cut("rich", rich().as_bytes(), 1);
}

#[test]
fn listeners_hear_text_and_thinking_in_order_and_no_more_often_than_it_arrives() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let live = feed.live(locum_kernel::Seq(0), crate::line::AgentRef::nobody());
    decode_live(&[rich().as_bytes()], live).unwrap();
    drop(feed);
    let mut heard = Vec::new();
    let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while let Some(told) = tasks.block_on(reader.next()) {
        if let Told::Piece { piece, .. } = told {
            heard.push((piece.kind, piece.text.clone()));
        }
    }
    assert_eq!(
        heard,
        [
            (PieceKind::Thinking, "Let me see…".to_owned()),
            (PieceKind::Text, "Grüße, \"Welt\" 👋\n".to_owned()),
        ]
    );
}

#[test]
fn what_is_wrong_is_a_failure_of_its_kind() {
    use FailureKind::{Auth, Cut, Filtered, Malformed, Overloaded, RateLimited, Server};
    let said = |events: &[Value]| [&[start()], events].concat();
    let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "no" } });
    let refusal = json!({
        "type": "message_delta",
        "delta": { "stop_reason": "refusal", "stop_details": { "explanation": "not this" } },
    });
    let cases: Vec<(&str, Vec<Value>, FailureKind)> = vec![
        ("nothing", vec![], Cut),
        ("only a start", said(&[]), Cut),
        ("no message_stop", said(&[text(0), say(0, "a"), close(0), end("end_turn")]), Cut),
        ("no start", vec![text(0), say(0, "a"), close(0), end("end_turn"), stop()], Malformed),
        ("no reason", said(&[text(0), say(0, "a"), close(0), stop()]), Malformed),
        ("an open block", said(&[text(0), say(0, "a"), end("end_turn"), stop()]), Malformed),
        ("an open call", said(&[call(0), arguments(0, "{}"), end("tool_use"), stop()]), Malformed),
        ("max_tokens in a call", said(&[call(0), end("max_tokens"), stop()]), Malformed),
        ("an index twice", said(&[text(0), text(0)]), Malformed),
        ("an index again", said(&[text(0), close(0), text(0)]), Malformed),
        ("a delta for nobody", said(&[say(0, "a")]), Malformed),
        ("a delta after the end", said(&[text(0), close(0), say(0, "a")]), Malformed),
        ("an end for nobody", said(&[close(3)]), Malformed),
        ("two ends", said(&[text(0), close(0), close(0)]), Malformed),
        ("arguments in a text", said(&[text(0), arguments(0, "{}")]), Malformed),
        ("text in a call", said(&[call(0), say(0, "a")]), Malformed),
        ("a call that is none", said(&[text(0), close(0), end("tool_use"), stop()]), Malformed),
        ("no name", said(&[open(0, &json!({ "type": "tool_use", "id": "t" }))]), Malformed),
        (
            "a second answer in the first",
            said(&[
                call(0),
                arguments(0, "{\"a\":"),
                json!({
                    "type": "message_start", "message": { "id": "m2" }
                }),
            ]),
            Malformed,
        ),
        ("overloaded", said(&[text(0), say(0, "a"), error("overloaded_error")]), Overloaded),
        ("rate limited", said(&[error("rate_limit_error")]), RateLimited),
        ("broken", said(&[error("api_error")]), Server),
        ("unknown", said(&[error("new_error")]), Server),
        ("before anything", vec![error("authentication_error")], Auth),
        ("refused", said(&[refusal, stop()]), Filtered),
    ];
    for (name, events, kind) in cases {
        let failure = decode(&[sse(&events).as_bytes()]).expect_err(name);
        assert_eq!(failure.kind, kind, "{name}: {failure:?}");
    }
}

#[test]
fn bytes_that_are_no_events_are_told_from_events() {
    let whole = sse(&[start(), text(0), say(0, "a"), close(0), end("end_turn"), stop()]);
    let put = |what: &str| {
        let at = whole.find("event: content_block_stop").unwrap();
        [&whole[..at], what, &whole[at..]].concat()
    };
    // Passed over.
    for what in [
        ": a comment\n\n",
        "event: tomorrow\ndata: {\"type\":\"tomorrow\",\"delta\":7,\"index\":\"x\"}\n\n",
        "event: ping\n\n",
        "id: 7\nretry: 10\n\n",
        "data: {}\n\n",
        &sse(&[delta(0, &json!({ "type": "citations_delta", "citation": {} }))]),
    ] {
        assert_eq!(decode(&[put(what).as_bytes()]).unwrap().text, "a", "{what:?}");
    }
    // Not to be passed over.
    let deep = format!("data: {{\"type\":\"message_delta\",\"usage\":{}\n\n", "[".repeat(100_000));
    for what in [
        "data: <html>\n\n",
        "data: {\"type\":\"content_block_delta\"\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{}}\n\n",
        "data: [DONE]\n\n",
        "data: 7\n\n",
        &deep,
    ] {
        let failure = decode(&[put(what).as_bytes()]).expect_err(what);
        assert_eq!(failure.kind, FailureKind::Malformed, "{what:?}");
    }
    let mut broken = whole.clone().into_bytes();
    let at = whole.find("\"text\":\"a\"").unwrap() + 8;
    broken[at] = 0xff;
    assert_eq!(decode(&[&broken]).unwrap_err().kind, FailureKind::Malformed, "invalid UTF-8");
    // An error a gateway put in, which names only the event.
    let gateway = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    assert_eq!(decode(&[put(gateway).as_bytes()]).unwrap_err().kind, FailureKind::Overloaded);
    // What follows the end is nobody's.
    let after = format!("{whole}data: garbage\n\n{}", sse(&[start()]));
    assert_eq!(decode(&[after.as_bytes()]).unwrap().text, "a");
}

#[test]
fn arguments_that_do_not_parse_stay_text() {
    let cases = [
        ("tool_use", "{\"a\": 1}", json!({ "a": 1 })),
        ("tool_use", "", json!({})),
        ("tool_use", "{\"a\": ", json!("{\"a\": ")),
        ("tool_use", "[1]", json!("[1]")),
        ("tool_use", "{} {}", json!("{} {}")),
        ("tool_use", "{'a': 1}", json!("{'a': 1}")),
        ("max_tokens", "{\"a\": ", json!("{\"a\": ")),
        // The model had no room to write them: that is not the same as none.
        ("max_tokens", "", json!("")),
    ];
    for (reason, written, expected) in cases {
        let events = [start(), call(0), arguments(0, written), close(0), end(reason), stop()];
        let reply = decode(&[sse(&events).as_bytes()]).unwrap();
        assert_eq!(reply.calls[0].arguments, expected, "{written:?}");
    }
}

#[test]
fn a_stutter_at_the_beginning_is_no_second_answer() {
    let events = [start(), start(), text(0), say(0, "a"), close(0), end("end_turn"), stop()];
    assert_eq!(decode(&[sse(&events).as_bytes()]).unwrap().text, "a");
}

/// Part of the first block was told before the second took its place.
#[test]
fn a_block_that_begins_again_is_no_answer_and_no_panic() {
    let events = [start(), text(0), say(0, "told"), text(0), say(0, "b"), close(0)];
    let events: Vec<String> = events.iter().map(|event| sse(std::slice::from_ref(event))).collect();
    let chunks: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    assert_eq!(decode(&chunks).unwrap_err().kind, FailureKind::Malformed);
    // Together with what comes before and after it.
    let chunks: Vec<&[u8]> = vec![chunks[0], chunks[1], chunks[2]];
    let again = events[3..].concat();
    let chunks = [chunks, vec![again.as_bytes()]].concat();
    assert_eq!(decode(&chunks).unwrap_err().kind, FailureKind::Malformed);
}

/// Recorded streams, if they stand beside the checkout.
#[test]
fn recorded_streams() {
    let Some(root) = corpus() else { return };
    let mut files = Vec::new();
    walk(&root, &mut files);
    let mut whole = 0;
    for file in files {
        for (at, stream) in streams(&file).into_iter().enumerate() {
            let name = format!("{} {at}", file.display());
            if !stream.contains("message_start") {
                continue;
            }
            let bytes = stream.as_bytes();
            let one = decode(&[bytes]);
            assert_eq!(one, decode(&bytes.chunks(1).collect::<Vec<_>>()), "{name}");
            match (one, expected_failure(&name)) {
                (Ok(_), None) => never_complete_when_cut(&name, bytes, 17),
                (Ok(reply), Some(kind)) => panic!("{name} should be {kind:?}: {reply:?}"),
                (Err(failure), kind) => assert_eq!(Some(failure.kind), kind, "{name}: {failure:?}"),
            }
            whole += 1;
        }
    }
    assert!(whole > 20, "only {whole} recorded streams were found");
}

fn expected_failure(name: &str) -> Option<FailureKind> {
    let failures = [
        ("spliced-message-start", FailureKind::Malformed),
        ("incomplete_partial_json", FailureKind::Malformed),
        ("refusal", FailureKind::Filtered),
    ];
    failures.iter().find(|(part, _)| name.contains(part)).map(|(_, kind)| *kind)
}

pub(super) fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let named = std::env::var_os("LOCUM_CORPUS").map(PathBuf::from);
    let found = named.or(Some(beside)).map(|root| root.join("sse")).filter(|root| root.is_dir());
    if found.is_none() {
        eprintln!("skipped: no recordings stand beside this checkout (LOCUM_CORPUS names them)");
    }
    found
}

pub(super) fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

/// The streams in a file: raw, one event a line, or inside a recording.
pub(super) fn streams(file: &Path) -> Vec<String> {
    let name = file.to_string_lossy();
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    if name.ends_with(".chunks.txt") {
        let events: Vec<String> = text.lines().map(|line| format!("data: {line}\n\n")).collect();
        return vec![events.concat()];
    }
    if name.ends_with(".json") {
        let recording: Value = serde_json::from_str(&text).unwrap();
        let all = recording["interactions"].as_array().cloned().unwrap_or_default();
        let body = |it: &Value| it["response"]["body"].as_str().map(str::to_owned);
        return all.iter().filter_map(body).collect();
    }
    let raw = [".txt", ".sse", ".bin"].iter().any(|end| name.ends_with(end));
    if raw { vec![text] } else { Vec::new() }
}
