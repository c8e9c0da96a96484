//! Completions whole, cut at every byte, as everybody sends them, and wrong in every way we know.

use std::time::Instant;

use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use super::stream::{corpus, streams, walk};
use crate::live::{Feed, Live, PieceKind, Told};
use crate::wire::chat::presets::{Dialect, dialect_of};
use crate::wire::chat::stream::{Ending, Stream};
use crate::wire::{Framing, Reading};

fn read(chunks: &[&[u8]], stream: Stream, framing: Framing) -> Result<Reply, Failure> {
    let mut reading = Reading::new(stream, framing);
    for chunk in chunks {
        reading.feed(chunk)?;
    }
    reading.finish()
}

/// As the connection code feeds it.
pub(super) fn decode(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    read(chunks, Stream::new(Live::nobody(), Dialect::PLAIN, Ending::Clean), Framing::Events)
}

/// As it is when nobody vouches for the end.
fn decode_marked(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    read(chunks, Stream::new(Live::nobody(), Dialect::PLAIN, Ending::Marked), Framing::Events)
}

pub(super) fn decode_as(name: &str, events: &[Value]) -> Result<Reply, Failure> {
    let dialect = dialect_of(name, "");
    let stream = Stream::new(Live::nobody(), dialect, Ending::Clean);
    read(&[sse(events).as_bytes()], stream, Framing::Events)
}

pub(super) fn sse(events: &[Value]) -> String {
    let one = |event: &Value| format!("data: {event}\n\n");
    events.iter().map(one).collect::<String>() + "data: [DONE]\n\n"
}

pub(super) fn choice(delta: &Value) -> Value {
    json!({ "id": "c1", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

pub(super) fn say(text: &str) -> Value {
    choice(&json!({ "content": text }))
}

pub(super) fn call(call: &Value) -> Value {
    choice(&json!({ "tool_calls": [call] }))
}

pub(super) fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

pub(super) fn usage() -> Value {
    json!({ "choices": [], "usage": {
        "prompt_tokens": 240, "completion_tokens": 42, "total_tokens": 282,
        "prompt_tokens_details": { "cached_tokens": 200, "cache_write_tokens": 30 },
        "completion_tokens_details": { "reasoning_tokens": 7 },
    } })
}

/// Everything an answer can hold.
fn rich_events() -> Vec<Value> {
    vec![
        choice(&json!({ "role": "assistant", "content": "", "refusal": null })),
        choice(&json!({ "reasoning_content": "Let me ", "reasoning": "Let me " })),
        choice(&json!({ "reasoning": "see…", "content": null })),
        say("Grüße, "),
        say("\"Welt\" 👋\n"),
        call(&json!({
            "index": 0, "id": "t1", "type": "function",
            "function": { "name": "read", "arguments": "" },
        })),
        call(&json!({ "index": 0, "function": { "arguments": "{\"path\": \"a" } })),
        call(&json!({ "index": 1, "id": "t2", "function": { "name": "list_agents" } })),
        call(&json!({ "index": 0, "function": { "arguments": ".txt\", \"n\": [1, {}]}" } })),
        end("tool_calls"),
        usage(),
    ]
}

fn rich() -> String {
    format!(": OPENROUTER PROCESSING\n\n{}", sse(&rich_events()))
}

pub(super) fn used(name: &str, arguments: Value) -> Use {
    Use::new(name, arguments)
}

fn rich_reply() -> Reply {
    Reply {
        brings: Vec::new(),
        flaw: None,
        text: "Grüße, \"Welt\" 👋\n".into(),
        reasoning: None,
        calls: vec![
            used("read", json!({ "path": "a.txt", "n": [1, {}] })),
            used("list_agents", json!({})),
        ],
        usage: Usage { input: 240, output: 42, cached: 200, cache_write: 30, reasoning: 7 },
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
            assert_eq!(decode_marked(&[a, b]), Ok(rich_reply()), "cut at {at}");
        }
    }
}

/// A stream that stops early is never a reply, wherever it stops, if only its mark ends it.
fn never_complete_when_cut(name: &str, stream: &[u8], step: usize) {
    let text = String::from_utf8_lossy(stream);
    let mark = text.rfind("[DONE]").unwrap() + "[DONE]".len();
    let reason = text.find("\"finish_reason\":\"").unwrap();
    for at in (0..mark).rev().step_by(step) {
        let failure = decode_marked(&[&stream[..at]]);
        let failure = failure.expect_err(&format!("{name} cut at {at} is a reply"));
        let kinds = [FailureKind::Cut, FailureKind::Malformed];
        assert!(kinds.contains(&failure.kind), "{name} cut at {at}: {failure:?}");
        // Where the transport vouches for the end, at least the reason must have come.
        assert!(at > reason || decode(&[&stream[..at]]).is_err(), "{name} cut at {at}");
    }
    assert!(decode_marked(&[&stream[..mark]]).is_ok(), "{name} without the last line end");
}

#[test]
fn a_cut_stream_is_never_a_reply() {
    never_complete_when_cut("rich", rich().as_bytes(), 1);
}

#[test]
fn a_clean_end_needs_no_mark_but_a_torn_one_is_no_end() {
    let stream = rich().replace("data: [DONE]\n\n", "");
    assert_eq!(decode(&[stream.as_bytes()]), Ok(rich_reply()));
    assert_eq!(decode(&[stream.trim_end().as_bytes()]), Ok(rich_reply()));
    assert_eq!(decode_marked(&[stream.as_bytes()]).unwrap_err().kind, FailureKind::Cut);
    let torn = stream.trim_end().strip_suffix('}').unwrap();
    assert_eq!(decode(&[torn.as_bytes()]).unwrap_err().kind, FailureKind::Cut);
    let half_mark = format!("{stream}data: [DO");
    assert_eq!(decode(&[half_mark.as_bytes()]).unwrap_err().kind, FailureKind::Cut);
}

#[test]
fn listeners_hear_text_and_thinking_in_order_and_no_more_often_than_it_arrives() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let live = feed.live(locum_kernel::Seq(0), crate::line::AgentRef::nobody());
    let stream = Stream::new(live, Dialect::PLAIN, Ending::Clean);
    read(&[rich().as_bytes()], stream, Framing::Events).unwrap();
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
    use FailureKind::{
        Auth, ContextTooLong, Filtered, Malformed, Other, Overloaded, Quota, RateLimited, Server,
    };
    let error = |error: Value| vec![say("a"), json!({ "error": error })];
    let code = |code: Value| error(json!({ "code": code, "message": "no" }));
    let ls =
        |id: &str, name: &str| call(&json!({ "index": 0, "id": id, "function": { "name": name } }));
    let cases: Vec<(&str, Vec<Value>, FailureKind)> = vec![
        ("nothing", vec![], Malformed),
        ("no reason", vec![say("a")], Malformed),
        ("a call that is none", vec![say("a"), end("tool_calls")], Malformed),
        ("no name", vec![ls("x", ""), end("tool_calls")], Malformed),
        ("two names", vec![ls("x", "ls"), ls("x", "rm"), end("tool_calls")], Malformed),
        (
            "arguments of nobody",
            vec![call(&json!({ "function": { "arguments": "{}" } }))],
            Malformed,
        ),
        ("refused", vec![choice(&json!({ "refusal": "not this" })), end("stop")], Filtered),
        ("filtered", vec![say("a"), end("content_filter")], Filtered),
        ("broken", vec![say("a"), end("error")], Server),
        ("no room", vec![say("a"), end("insufficient_system_resource")], Overloaded),
        ("429", code(json!(429)), RateLimited),
        ("502", code(json!(502)), Server),
        ("402", code(json!(402)), Quota),
        ("400", code(json!(400)), Other),
        ("a name", code(json!("context_length_exceeded")), ContextTooLong),
        ("an unknown name", code(json!("who_knows")), Server),
        (
            "a type",
            error(json!({ "type": "invalid_request_error", "code": "invalid_api_key" })),
            Auth,
        ),
        ("type over code", error(json!({ "type": "overloaded_error", "code": "xyz" })), Overloaded),
        ("words", error(json!("The maximum context length is 5 tokens")), ContextTooLong),
        ("moderated", error(json!({ "code": 403, "metadata": { "reasons": ["x"] } })), Filtered),
        (
            "after the reason",
            vec![end("length"), json!({ "choices": [], "error": { "code": 500 } })],
            Server,
        ),
        (
            "in a choice",
            vec![json!({ "choices": [{ "error": { "code": 429 }, "delta": {} }] })],
            RateLimited,
        ),
    ];
    for (name, events, kind) in cases {
        let failure = decode(&[sse(&events).as_bytes()]).expect_err(name);
        assert_eq!(failure.kind, kind, "{name}: {failure:?}");
    }
    let behind = json!({ "code": 502, "message": "It broke", "metadata": { "raw": "no disk" } });
    let failure = decode(&[sse(&error(behind)).as_bytes()]).unwrap_err();
    assert_eq!(failure.message, "It broke: no disk");
    let named = "event: error\ndata: {\"message\":\"slow\",\"code\":429}\n\n";
    assert_eq!(decode(&[named.as_bytes()]).unwrap_err().kind, RateLimited);
}

#[test]
fn bytes_that_are_no_events_are_told_from_events() {
    let (before, after) = (format!("data: {}\n\n", say("a")), sse(&[end("stop")]));
    let put = |what: &str| [&before, what, &after].concat();
    for what in [
        ": keep-alive\n\n",
        "event: ping\ndata: {}\n\n",
        "data:\n\n",
        "data: {\"type\":\"tomorrow\",\"usage\":7}\n\n",
        "id: 7\nretry: 10\n\n",
        "data: {\"choices\":null,\"error\":null}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":null}]}\n\n",
    ] {
        assert_eq!(decode(&[put(what).as_bytes()]).unwrap().text, "a", "{what:?}");
    }
    let deep = format!("data: {{\"choices\":{}\n\n", "[".repeat(100_000));
    let indexed = |index: &str| {
        let call = format!("{{\"index\":{index},\"id\":\"x\"}}");
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
    };
    for what in [
        "data: <html>\n\n",
        "data: {\"choices\":[{\"delta\"\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n",
        "data: {\"choices\":[{\"index\":-1,\"delta\":{}}]}\n\n",
        "data: 7\n\n",
        &indexed("-1"),
        &indexed("\"0\""),
        &deep,
    ] {
        let failure = decode(&[put(what).as_bytes()]).expect_err(what);
        assert_eq!(failure.kind, FailureKind::Malformed, "{what:?}");
    }
    let broken = put("").replace("\"a\"", "\"Q\"").into_bytes();
    let broken: Vec<u8> = broken.iter().map(|it| if *it == b'Q' { 0xff } else { *it }).collect();
    assert_eq!(decode(&[&broken]).unwrap_err().kind, FailureKind::Malformed, "invalid UTF-8");
    for page in ["<html>\n<body>Sign in</body>", "data: [DONE]\n\n", "data: {}\n\n"] {
        assert_eq!(decode(&[page.as_bytes()]).unwrap_err().kind, FailureKind::Malformed, "{page}");
    }
    let after = format!("{}data: garbage\n\n{}", put(""), sse(&[say("b")]));
    assert_eq!(decode(&[after.as_bytes()]).unwrap().text, "a", "what follows is nobody's");
    let many: Vec<Value> = (0..2_000).map(|index| call(&json!({ "index": index }))).collect();
    assert_eq!(decode(&[sse(&many).as_bytes()]).unwrap_err().kind, FailureKind::Malformed);
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
            if !stream.contains("chat.completion.chunk") {
                continue;
            }
            let name = format!("{} {at}", file.display());
            let bytes = stream.as_bytes();
            let one = decode(&[bytes]);
            assert_eq!(one, decode(&bytes.chunks(1).collect::<Vec<_>>()), "{name}");
            let refused = stream.contains("\"refusal\":\"I");
            match one.as_ref().map_err(|failure| failure.kind) {
                Ok(_) => assert!(!refused, "{name}"),
                Err(kind) => assert!(refused && kind == FailureKind::Filtered, "{name}: {one:?}"),
            }
            if !refused && stream.contains("[DONE]") {
                never_complete_when_cut(&name, bytes, 17);
            }
            whole += 1;
        }
    }
    assert!(whole > 50, "only {whole} recorded streams were found");
}

#[test]
#[ignore = "measures; run it with --release --nocapture"]
#[expect(clippy::print_stdout, reason = "that is what it is for")]
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn speed() {
    let delta = format!("data: {}\n\n", say(" token"));
    let events = 1_000_000;
    let body = delta.repeat(events);
    let started = Instant::now();
    let chunks: Vec<&[u8]> = body.as_bytes().chunks(4_096).collect();
    let failure = decode(&chunks).unwrap_err();
    let rate = f64::from(u32::try_from(events).unwrap()) / started.elapsed().as_secs_f64();
    println!("{rate:.0} deltas/s ({failure:?})");
}
