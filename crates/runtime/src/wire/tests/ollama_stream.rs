//! Ollama streams whole, cut at every byte, and wrong in every way we know of.

use locum_kernel::{Failure, FailureKind, Reply, Usage, Use};
use serde_json::{Value, json};

use crate::clock::{Clock as _, System};
use crate::live::PieceKind::{Text, Thinking};
use crate::live::{Feed, Live, Told};
use crate::wire::ollama::stream::Stream;
use crate::wire::{self, Framing, Reading, WireName};

fn decode_live(chunks: &[&[u8]], live: Live) -> Result<Reply, Failure> {
    let mut reading = Reading::new(Stream::new(live), Framing::Lines);
    for chunk in chunks {
        reading.feed(chunk)?;
    }
    reading.finish()
}

fn decode(chunks: &[&[u8]]) -> Result<Reply, Failure> {
    decode_live(chunks, Live::nobody())
}

fn lines(events: &[Value]) -> String {
    let one = |event: &Value| format!("{event}\n");
    events.iter().map(one).collect()
}

fn message(message: &Value) -> Value {
    let mut whole = json!({ "model": "m", "created_at": "t", "message": message, "done": false });
    whole["message"]["role"] = json!("assistant");
    whole
}

fn say(text: &str) -> Value {
    message(&json!({ "content": text }))
}

fn think(text: &str) -> Value {
    message(&json!({ "content": "", "thinking": text }))
}

fn call(call: &Value) -> Value {
    message(&json!({ "content": "", "tool_calls": [call] }))
}

fn end(reason: &str) -> Value {
    json!({
        "model": "m", "created_at": "t", "message": { "role": "assistant", "content": "" },
        "done_reason": reason, "done": true, "total_duration": 5, "prompt_eval_count": 26,
        "eval_count": 298,
    })
}

/// Everything an answer can hold.
fn rich() -> String {
    lines(&[
        think("Let me "),
        think("see…"),
        say("Grüße, "),
        say("\"Welt\" 👋\n"),
        message(&json!({ "content": "", "tool_calls": [
            { "id": "c1", "function": { "index": 0, "name": "read", "arguments": { "n": [1] } } },
            { "function": { "index": 1, "name": "ls", "arguments": {} } },
        ] })),
        call(&json!({ "function": { "name": "ls", "arguments": "{\"path\":\"a\"}" } })),
        end("stop"),
    ])
}

fn rich_reply() -> Reply {
    let call = |name: &str, arguments| Use::new(name, arguments);
    Reply {
        brings: Vec::new(),
        flaw: None,
        text: "Grüße, \"Welt\" 👋\n".into(),
        reasoning: Some(json!([{ "type": "ollama_thinking", "thinking": "Let me see…" }])),
        calls: vec![
            call("read", json!({ "n": [1] })),
            call("ls", json!({})),
            call("ls", json!({ "path": "a" })),
        ],
        usage: Usage { input: 26, output: 298, ..Usage::default() },
        micro_usd: None,
    }
}

#[test]
fn a_whole_stream_is_the_same_however_it_is_cut() {
    for stream in [rich(), rich().replace('\n', "\r\n"), rich().replace('\n', "\n\n")] {
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), Ok(rich_reply()));
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), Ok(rich_reply()));
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(decode(&[a, b]), Ok(rich_reply()), "cut at {at}");
        }
    }
}

#[test]
fn a_cut_stream_is_never_a_reply() {
    let stream = rich();
    let whole = stream.trim_end().len();
    for at in 0..whole {
        let failure = decode(&[&stream.as_bytes()[..at]]).expect_err(&format!("cut at {at}"));
        let kinds = [FailureKind::Cut, FailureKind::Malformed];
        assert!(kinds.contains(&failure.kind), "cut at {at}: {failure:?}");
    }
    assert!(decode(&[&stream.as_bytes()[..whole]]).is_ok(), "without the last line end");
}

#[test]
fn listeners_hear_text_and_thinking_in_order() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let live = feed.live(locum_kernel::Seq(0), crate::line::AgentRef::nobody());
    let stream = lines(&[say("a"), think("b"), think("c"), say("d"), end("stop")]);
    decode_live(&[stream.as_bytes()], live).unwrap();
    drop(feed);
    let mut heard = Vec::new();
    let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while let Some(told) = tasks.block_on(reader.next()) {
        if let Told::Piece { piece, .. } = told {
            heard.push((piece.kind, piece.text.clone()));
        }
    }
    assert_eq!(heard, [(Text, "a".into()), (Thinking, "bc".into()), (Text, "d".into())]);
}

#[test]
fn what_is_wrong_is_a_failure_of_its_kind() {
    use FailureKind::{Auth, ContextTooLong, Cut, Malformed, Overloaded, Server, UnknownModel};
    let error = |words: &str| json!({ "error": words });
    let same = json!({ "id": "c", "function": { "name": "ls" } });
    let cases: Vec<(&str, Vec<Value>, FailureKind)> = vec![
        ("nothing", vec![], Cut),
        ("no end", vec![say("a")], Cut),
        ("no answer", vec![json!({ "a": 1 })], Malformed),
        ("only loaded", vec![end("load")], Malformed),
        ("no name", vec![call(&json!({ "function": { "arguments": {} } }))], Malformed),
        ("no function", vec![call(&json!({}))], Malformed),
        ("an id twice", vec![call(&same), call(&same)], Malformed),
        ("too many calls", vec![call(&json!({ "function": { "name": "ls" } })); 5_000], Malformed),
        ("broken", vec![say("a"), error("an error was encountered while running")], Server),
        ("an object", vec![json!({ "error": { "message": "oops" } })], Server),
        ("no such model", vec![error("model 'x' not found")], UnknownModel),
        ("too long", vec![error("the input exceeds the context length")], ContextTooLong),
        ("busy", vec![error("server busy, please try again")], Overloaded),
        ("elsewhere", vec![error("unauthorized")], Auth),
    ];
    for (name, events, kind) in cases {
        let failure = decode(&[lines(&events).as_bytes()]).expect_err(name);
        assert_eq!(failure.kind, kind, "{name}: {failure:?}");
    }
    let failure =
        decode(&[lines(&[error("model \"x:7b\" not found, try pulling it first")]).as_bytes()]);
    let words = failure.unwrap_err().message;
    assert!(words.ends_with("(get it with: ollama pull x:7b)"), "{words}");
}

#[test]
fn bytes_that_are_no_lines_are_told_from_lines() {
    let whole = lines(&[say("a"), end("stop")]);
    for what in ["\n", "{}\n", "{\"tomorrow\":7}\n", "{\"message\":{\"content\":null}}\n"] {
        assert_eq!(decode(&[what.as_bytes(), whole.as_bytes()]).unwrap().text, "a", "{what:?}");
    }
    let deep = format!("{{\"error\":{}\n", "[".repeat(100_000));
    for what in ["<html>\n", "{\"message\":\n", "[]\n", "7\n", "data: {}\n", &deep] {
        let failure = decode(&[what.as_bytes(), whole.as_bytes()]).expect_err(what);
        assert_eq!(failure.kind, FailureKind::Malformed, "{what:?}");
    }
    let mut broken = whole.clone().into_bytes();
    broken[whole.find("\"a\"").unwrap() + 1] = 0xff;
    assert_eq!(decode(&[&broken]).unwrap_err().kind, FailureKind::Malformed, "invalid UTF-8");
    let long = [b"{\"x\":\"".as_slice(), &vec![b'x'; 9 * 1024 * 1024], b"\"}\n"].concat();
    assert_eq!(decode(&[&long]).unwrap_err().kind, FailureKind::Malformed);
    // What follows the end is nobody's.
    let after = format!("{whole}garbage\n{}", lines(&[say("b")]));
    assert_eq!(decode(&[after.as_bytes()]).unwrap().text, "a");
}

#[test]
fn arguments_that_are_no_object_stay_text() {
    let cases = [
        ("stop", json!({ "a": 1 }), json!({ "a": 1 })),
        ("stop", json!(null), json!({})),
        ("stop", json!("{\"a\": 1}"), json!({ "a": 1 })),
        ("stop", json!("{\"a\": "), json!("{\"a\": ")),
        ("stop", json!([1]), json!("[1]")),
        // The model had no room to write them: that is not the same as none.
        ("length", json!({}), json!("")),
        ("length", json!({ "a": 1 }), json!({ "a": 1 })),
    ];
    for (reason, arguments, expected) in cases {
        let call = call(&json!({ "function": { "name": "a", "arguments": arguments } }));
        let reply = decode(&[lines(&[call, end(reason)]).as_bytes()]).unwrap();
        assert_eq!(reply.calls[0].arguments, expected, "{arguments}");
    }
}

#[test]
fn a_recording_says_what_there_is() {
    let (decoded, whole) = wire::decode(WireName::Ollama, rich().as_bytes());
    let ids: Vec<_> = decoded.calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["c1", "call_1", "call_2"]);
    assert_eq!((&*decoded.reasoning, decoded.stop.as_deref()), ("Let me see…", Some("stop")));
    assert_eq!(whole, Ok(rich_reply()));
    // Servers of some years ago gave no reason.
    let mut old = end("stop");
    old.as_object_mut().unwrap().remove("done_reason");
    let (decoded, whole) = wire::decode(WireName::Ollama, lines(&[say("a"), old]).as_bytes());
    assert_eq!((decoded.stop, whole.unwrap().text), (None, "a".into()));
}

/// `cargo test --release -p locum-runtime ollama_speed -- --ignored --nocapture`
#[test]
#[ignore = "says how fast it is"]
fn ollama_speed() {
    let deltas = 200_000;
    let stream = [lines(&[say("some words ")]).repeat(deltas), lines(&[end("stop")])].concat();
    let began = System.now();
    for chunk in [16 * 1024, 100] {
        let chunks: Vec<_> = stream.as_bytes().chunks(chunk).collect();
        assert_eq!(decode(&chunks).unwrap().text.len(), deltas * 11);
    }
    let ms = System.now().since(began).max(1);
    eprintln!("{} deltas/s", 2 * deltas as u64 * 1_000 / ms);
}
