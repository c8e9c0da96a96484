//! Gemini streams whole, cut at every byte, and wrong in every way we know of.

use std::fs;

use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use super::stream::{corpus, streams, walk};
use crate::clock::{Clock as _, System};
use crate::live::{Feed, Live, PieceKind, Told};
use crate::wire::gemini::stream::Stream;
use crate::wire::{self, Framing, Reading, WireName};

fn decode_live(chunks: &[&[u8]], live: Live) -> Result<Reply, Failure> {
    let mut reading = Reading::new(Stream::new(live), Framing::LooseEvents);
    for chunk in chunks {
        reading.feed(chunk)?;
    }
    reading.finish()
}

fn decode(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    decode_live(chunks, Live::nobody())
}

fn sse(events: &[Value]) -> String {
    let one = |event: &Value| format!("data: {event}\r\n\r\n");
    events.iter().map(one).collect()
}

fn parts(parts: &Value) -> Value {
    json!({ "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }] })
}

fn say(text: &str) -> Value {
    parts(&json!([{ "text": text }]))
}

fn end(reason: &str) -> Value {
    json!({
        "candidates": [{ "finishReason": reason, "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": 240, "cachedContentTokenCount": 200,
            "candidatesTokenCount": 30, "thoughtsTokenCount": 12, "totalTokenCount": 282,
        },
    })
}

fn call(name: &str, args: &Value) -> Value {
    json!({ "functionCall": { "name": name, "args": args } })
}

/// One more piece of a call.
fn piece(call: &Value) -> Value {
    parts(&json!([{ "functionCall": call }]))
}

/// Everything an answer can hold.
fn rich() -> String {
    let mut last = end("STOP");
    last["candidates"][0]["content"] = json!({
        "parts": [{ "text": "", "thoughtSignature": "c2ln" }],
    });
    sse(&[
        parts(&json!([{ "text": "Let me ", "thought": true }])),
        parts(&json!([{ "text": "see…", "thought": true }])),
        say("Grüße, "),
        say("\"Welt\" 👋\n"),
        parts(&json!([
            {
                "functionCall": { "id": "f1", "name": "read", "args": { "path": "a", "n": [1] } },
                "thoughtSignature": "Y2FsbA==",
            },
            call("list_agents", &json!({})),
        ])),
        piece(&json!({ "name": "edit", "willContinue": true })),
        piece(&json!({
            "partialArgs": [
                { "jsonPath": "$.edits[0].old", "stringValue": "a", "willContinue": true },
            ],
            "willContinue": true,
        })),
        piece(&json!({
            "partialArgs": [
                { "jsonPath": "$.edits[0].old", "stringValue": "b" },
                { "jsonPath": "$.edits[0].n", "numberValue": 3 },
                { "jsonPath": "$.edits[1]['all']", "boolValue": true },
                { "jsonPath": "$.path", "nullValue": null },
            ],
            "willContinue": true,
        })),
        piece(&json!({})),
        last,
    ])
}

fn rich_reply() -> Reply {
    let call = |name: &str, arguments| Use::new(name, arguments);
    let text = "Grüße, \"Welt\" 👋\n";
    Reply {
        brings: Vec::new(),
        flaw: None,
        text: text.into(),
        reasoning: Some(json!([
            { "type": "gemini_part", "text": text.len() },
            { "type": "gemini_part", "call": 0, "id": "f1", "thoughtSignature": "Y2FsbA==" },
            { "type": "gemini_part", "call": 1 },
            { "type": "gemini_part", "call": 2 },
            { "type": "gemini_part", "text": 0, "thoughtSignature": "c2ln" },
        ])),
        calls: vec![
            call("read", json!({ "path": "a", "n": [1] })),
            call("list_agents", json!({})),
            call(
                "edit",
                json!({
                    "edits": [{ "old": "ab", "n": 3 }, { "all": true }], "path": null,
                }),
            ),
        ],
        usage: Usage { input: 240, output: 42, cached: 200, cache_write: 0, reasoning: 12 },
        micro_usd: None,
    }
}

#[test]
fn a_whole_stream_is_the_same_however_it_is_cut() {
    for stream in [rich(), rich().replace("\r\n", "\n")] {
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), Ok(rich_reply()));
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), Ok(rich_reply()));
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(decode(&[a, b]), Ok(rich_reply()), "cut at {at}");
        }
    }
}

/// A stream that stops early is never a reply, wherever it stops.
fn never_complete_when_cut(name: &str, stream: &[u8]) {
    let whole = stream.trim_ascii_end().len();
    for at in 0..whole {
        let failure = decode(&[&stream[..at]]).expect_err(&format!("{name} cut at {at}"));
        let kinds = [FailureKind::Cut, FailureKind::Malformed];
        assert!(kinds.contains(&failure.kind), "{name} cut at {at}: {failure:?}");
    }
    assert!(decode(&[&stream[..whole]]).is_ok(), "{name} without the last line end");
}

#[test]
fn a_cut_stream_is_never_a_reply() {
    never_complete_when_cut("rich", rich().as_bytes());
    // Neither is one that breaks off after the reason to stop, but inside an event.
    let more = [rich(), "data: {\"usageMetadata\": {".into()].concat();
    assert_eq!(decode(&[more.as_bytes()]).unwrap_err().kind, FailureKind::Cut);
}

#[test]
fn listeners_hear_text_and_thinking_in_order() {
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
    let text = "Grüße, \"Welt\" 👋\n".to_owned();
    assert_eq!(heard, [(PieceKind::Thinking, "Let me see…".into()), (PieceKind::Text, text)]);
}

#[test]
fn what_is_wrong_is_a_failure_of_its_kind() {
    use FailureKind::{
        Auth, ContextTooLong, Cut, Filtered, Malformed, Other, Overloaded, Quota, RateLimited,
        Server, Timeout, UnknownModel,
    };
    let error = |code: u16, status: &str, message: &str| {
        let error = json!({ "code": code, "status": status, "message": message });
        json!({ "error": error })
    };
    let open = piece(&json!({ "name": "read", "willContinue": true }));
    let half = json!([{ "jsonPath": "$.a", "stringValue": "x", "willContinue": true }]);
    let half = piece(&json!({ "partialArgs": half, "willContinue": true }));
    let arg = |arg: Value| piece(&json!({ "partialArgs": [arg], "willContinue": true }));
    let one = arg(json!({ "jsonPath": "$.a", "numberValue": 1 }));
    let same = json!([{ "functionCall": { "id": "1", "name": "a" } }]);
    let twice = json!({ "candidates": [{ "index": 0 }, { "index": 0 }] });
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } });
    let cases: Vec<(&str, Vec<Value>, FailureKind)> = vec![
        ("nothing", vec![], Cut),
        ("no reason", vec![say("a")], Cut),
        ("no answer", vec![json!({ "event_type": "x" })], Malformed),
        ("an open call", vec![open.clone(), end("STOP")], Malformed),
        ("an open call, no room", vec![open.clone(), end("MAX_TOKENS")], Malformed),
        ("a call in a call", vec![open.clone(), open.clone()], Malformed),
        ("half an argument", vec![open.clone(), half.clone(), piece(&json!({}))], Malformed),
        ("an argument in another", vec![open.clone(), half, one.clone()], Malformed),
        ("an argument twice", vec![open.clone(), one.clone(), one], Malformed),
        ("no value", vec![open.clone(), arg(json!({ "jsonPath": "$.a" }))], Malformed),
        (
            "beyond a list",
            vec![open.clone(), arg(json!({ "jsonPath": "$.a[7]", "boolValue": true }))],
            Malformed,
        ),
        ("no path", vec![open, arg(json!({ "numberValue": 1 }))], Malformed),
        ("no name", vec![piece(&json!({ "args": {} })), end("STOP")], Malformed),
        ("an id twice", vec![parts(&same), parts(&same), end("STOP")], Malformed),
        ("an index twice", vec![twice], Malformed),
        ("a bad call", vec![end("MALFORMED_FUNCTION_CALL")], Malformed),
        ("an unknown call", vec![say("a"), end("UNEXPECTED_TOOL_CALL")], Malformed),
        ("unsafe", vec![say("a"), end("SAFETY")], Filtered),
        ("recited", vec![end("RECITATION")], Filtered),
        ("blocklist", vec![end("BLOCKLIST")], Filtered),
        ("prohibited", vec![end("PROHIBITED_CONTENT")], Filtered),
        ("private", vec![end("SPII")], Filtered),
        ("a blocked prompt", vec![blocked], Filtered),
        ("other", vec![say("a"), end("OTHER")], Other),
        ("a reason of tomorrow", vec![say("a"), end("TOMORROW")], Other),
        ("overloaded", vec![say("a"), error(503, "UNAVAILABLE", "busy")], Overloaded),
        ("rate limited", vec![error(429, "RESOURCE_EXHAUSTED", "slow down")], RateLimited),
        ("nothing to have", vec![error(429, "RESOURCE_EXHAUSTED", "limit: 0, model")], Quota),
        ("broken", vec![say("a"), error(500, "INTERNAL", "oops")], Server),
        ("late", vec![error(504, "DEADLINE_EXCEEDED", "late")], Timeout),
        ("only a number", vec![error(503, "", "")], Server),
        ("unknown", vec![error(0, "NEW", "?")], Server),
        ("key", vec![error(400, "INVALID_ARGUMENT", "API key not valid.")], Auth),
        ("no such model", vec![error(404, "NOT_FOUND", "models/x is not found")], UnknownModel),
        (
            "too long",
            vec![error(400, "INVALID_ARGUMENT", "count (9) exceeds the maximum number of tokens")],
            ContextTooLong,
        ),
        ("in a list", vec![json!([error(403, "PERMISSION_DENIED", "no")])], Auth),
    ];
    for (name, events, kind) in cases {
        let failure = decode(&[sse(&events).as_bytes()]).expect_err(name);
        assert_eq!(failure.kind, kind, "{name}: {failure:?}");
    }
}

#[test]
fn bytes_that_are_no_events_are_told_from_events() {
    let whole = sse(&[say("a"), end("STOP")]);
    // Passed over.
    for what in [
        ": a comment\n\n",
        "event: ping\n\n",
        "data: {}\n\n",
        "data: {\"tomorrow\":7}\n\n",
        "data: {\"candidates\":[{\"index\":1,\"content\":{\"parts\":[{\"text\":\"b\"}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"image\":{}},{\"text\":null}]}}]}\n\n",
    ] {
        assert_eq!(decode(&[what.as_bytes(), whole.as_bytes()]).unwrap().text, "a", "{what:?}");
    }
    // Not to be passed over.
    let deep = format!("data: {{\"error\":{}\n\n", "[".repeat(100_000));
    for what in [
        "data: <html>\n\n",
        "data: {\"candidates\":[\n\n",
        "data: {\"candidates\":[{\"index\":-1}]}\n\n",
        "data: [DONE]\n\n",
        "data: 7\n\n",
        "data:\n\n",
        &deep,
    ] {
        let failure = decode(&[what.as_bytes(), whole.as_bytes()]).expect_err(what);
        assert_eq!(failure.kind, FailureKind::Malformed, "{what:?}");
    }
    let mut broken = whole.clone().into_bytes();
    broken[whole.find("\"a\"").unwrap() + 1] = 0xff;
    assert_eq!(decode(&[&broken]).unwrap_err().kind, FailureKind::Malformed, "invalid UTF-8");
    let html = decode(&[b"<html>\n<body>no</body>"]).unwrap_err();
    assert_eq!(html.kind, FailureKind::Malformed);
    let long = [b"data: \"".as_slice(), &vec![b'x'; 9 * 1024 * 1024], b"\"\n\n"].concat();
    assert_eq!(decode(&[&long]).unwrap_err().kind, FailureKind::Malformed);
    let many = vec![parts(&json!([{ "text": "", "thoughtSignature": "s" }])); 5_000];
    assert_eq!(decode(&[sse(&many).as_bytes()]).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn arguments_that_are_no_object_stay_text() {
    let cases = [
        ("STOP", json!({ "name": "a", "args": { "a": 1 } }), json!({ "a": 1 })),
        ("STOP", json!({ "name": "a", "args": null }), json!({})),
        ("STOP", json!({ "name": "a" }), json!({})),
        ("STOP", json!({ "name": "a", "args": [1] }), json!("[1]")),
        ("STOP", json!({ "name": "a", "args": "{\"a\"" }), json!("{\"a\"")),
        // The model had no room to write them: that is not the same as none.
        ("MAX_TOKENS", json!({ "name": "a" }), json!("")),
        ("MAX_TOKENS", json!({ "name": "a", "args": { "a": 1 } }), json!({ "a": 1 })),
    ];
    for (reason, call, expected) in cases {
        let reply = decode(&[sse(&[piece(&call), end(reason)]).as_bytes()]).unwrap();
        assert_eq!(reply.calls[0].arguments, expected, "{call}");
    }
}

#[test]
fn ids_are_made_where_there_are_none() {
    let calls = parts(&json!([call("a", &json!({})), call("a", &json!({}))]));
    let (decoded, _) = wire::decode(WireName::Gemini, sse(&[calls, end("STOP")]).as_bytes());
    let ids: Vec<_> = decoded.calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_0", "call_1"]);
}

#[test]
fn an_error_says_when_to_come_back() {
    let info = |delay: &str| json!([{ "@type": "t/google.rpc.RetryInfo", "retryDelay": delay }]);
    let cases = [
        ("39s", Some(39_000)),
        ("1.5s", Some(1_500)),
        ("0.0001s", Some(1)),
        ("0s", Some(0)),
        ("39", None),
        ("-1s", None),
        (".5s", None),
        ("99999999999999999999s", None),
    ];
    for (delay, expected) in cases {
        let error = json!({ "code": 429, "status": "RESOURCE_EXHAUSTED", "details": info(delay) });
        let failure = decode(&[sse(&[json!({ "error": error })]).as_bytes()]).unwrap_err();
        assert_eq!((failure.kind, failure.status), (FailureKind::RateLimited, Some(429)));
        assert_eq!(failure.retry_after_ms, expected, "{delay}");
    }
    let violation = json!([{ "violations": [{ "quotaId": "GenerateRequestsPerDayPerProject" }] }]);
    let error = json!({ "code": 429, "status": "RESOURCE_EXHAUSTED", "details": violation });
    let failure = decode(&[sse(&[json!({ "error": error })]).as_bytes()]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Quota);
}

#[test]
fn an_error_may_come_as_it_is() {
    let error = json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "busy" } });
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    for bare in [pretty(&error), pretty(&json!([error])), error.to_string()] {
        for before in [String::new(), sse(&[say("a")]), sse(&[say("a"), end("STOP")])] {
            let all = [before, bare.clone()].concat();
            let failure = decode(&[all.as_bytes()]).expect_err(&all);
            assert_eq!(failure.kind, FailureKind::Overloaded, "{all}");
            let single: Vec<_> = all.as_bytes().chunks(1).collect();
            assert_eq!(decode(&single), Err(failure), "{all}");
        }
    }
}

/// Its file, text, calls, input, output and reasoning tokens: as the official SDK has them.
type Recorded = (&'static str, &'static str, &'static [(&'static str, &'static str)], [u64; 3]);

const RECORDED: &[Recorded] = &[
    ("gemini/streams-text.json", "Hello!", &[], [11, 18, 16]),
    ("gemini/streams-tool-call.json", "", &[("get_weather", r#"{"city":"Paris"}"#)], [55, 60, 45]),
    (
        "google-reasoning-gemini3.chunks.txt",
        "There are **3** \"r\"s in strawberry.\n\nSt**r**awbe**rr**y",
        &[],
        [9, 325, 302],
    ),
    (
        "google-reasoning.chunks.txt",
        "There are **3** \"r\"s in strawberry.\n\nHere is the breakdown: st**r**awbe**rr**y.",
        &[],
        [9, 285, 256],
    ),
    (
        "google-text.chunks.txt",
        "There are **3** \"r\"s in strawberry.\n\nst**r**awbe**rr**y",
        &[],
        [9, 208, 185],
    ),
    (
        "google-tool-call.chunks.txt",
        "",
        &[("weather", r#"{"location":"San Francisco"}"#)],
        [29, 60, 45],
    ),
    (
        "google-stream-tool-call-arguments.chunks.txt",
        "",
        &[
            ("getWeather", r#"{"location":"Boston"}"#),
            ("getWeather", r#"{"location":"San Francisco"}"#),
        ],
        [26, 155, 132],
    ),
];

/// Recorded streams, if they stand beside the checkout.
#[test]
fn recorded_streams() {
    let Some(root) = corpus() else { return };
    let mut files = Vec::new();
    walk(&root, &mut files);
    for (name, text, calls, [input, output, reasoning]) in RECORDED {
        let file = files.iter().find(|file| file.to_string_lossy().ends_with(name));
        let file = file.unwrap_or_else(|| panic!("{name} is missing"));
        let stream = streams(file).remove(0);
        let bytes = stream.as_bytes();
        let reply = decode(&[bytes]).unwrap();
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), Ok(reply.clone()), "{name}");
        never_complete_when_cut(name, bytes);
        let of = |call: &Use| (call.name.clone(), call.arguments.to_string());
        let heard: Vec<_> = reply.calls.iter().map(of).collect();
        let calls: Vec<_> = calls.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!((&*reply.text, heard), (*text, calls), "{name}");
        let (input, output, reasoning) = (*input, *output, *reasoning);
        assert_eq!(reply.usage, Usage { input, output, reasoning, ..Usage::default() }, "{name}");
        // As it lies on the disk, too.
        if name.contains(".chunks.") {
            let (decoded, whole) = wire::decode(WireName::Gemini, &fs::read(file).unwrap());
            assert_eq!((decoded.text, whole), (reply.text.clone(), Ok(reply)), "{name}");
        }
    }
}

/// `cargo test --release -p locum-runtime gemini_speed -- --ignored --nocapture`
#[test]
#[ignore = "says how fast it is"]
fn gemini_speed() {
    let deltas = 200_000;
    let mut stream = sse(&[say("some words ")]).repeat(deltas);
    stream.push_str(&sse(&[end("STOP")]));
    let began = System.now();
    for chunk in [16 * 1024, 100] {
        let chunks: Vec<_> = stream.as_bytes().chunks(chunk).collect();
        assert_eq!(decode(&chunks).unwrap().text.len(), deltas * 11);
    }
    let pieces = 50_000;
    let arg = json!([{ "jsonPath": "$.a.b", "stringValue": "word", "willContinue": true }]);
    let open = sse(&[piece(&json!({ "name": "a", "willContinue": true }))]);
    let grow = sse(&[piece(&json!({ "partialArgs": arg, "willContinue": true }))]).repeat(pieces);
    let done = json!({ "partialArgs": [{ "jsonPath": "$.a.b", "stringValue": "" }] });
    let all = [open, grow, sse(&[piece(&done), end("STOP")])].concat();
    let middle = System.now();
    decode(&[all.as_bytes()]).unwrap();
    let spent = |n: usize, ms: u64| n as u64 * 1_000 / ms.max(1);
    let text = spent(2 * deltas, middle.since(began));
    let arguments = spent(pieces, System.now().since(middle));
    eprintln!("{text} deltas/s of text, {arguments} of arguments");
}
