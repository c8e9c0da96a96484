//! How fast every wire is, beside a plain pass over the same bytes:
//! `cargo test --release -p locum-runtime --lib every_wire -- --ignored --nocapture`.

use std::sync::Arc;

use locum_kernel::{Body, CallId, Line, Output, Reply, Seq, Use};
use serde_json::{Value, json};

use super::{asked, line, person};
use crate::clock::{Clock as _, System};
use crate::provider::Asked;
use crate::wire::anthropic::Messages;
use crate::wire::chat::Chat;
use crate::wire::chat::presets::dialect_of;
use crate::wire::gemini::Generate;
use crate::wire::responses::Responses;
use crate::wire::{Key, Settings, Wire, WireName, decode_in, ollama};

const DELTAS: u32 = 300_000;
/// As many lines as a long day has.
const LINES: u64 = 2_000;
const ROUNDS: u32 = 100;

/// What begins an answer, one piece of it, and what ends it.
fn stream(wire: WireName) -> [String; 3] {
    let sse = |event: Value| format!("data: {event}\n\n");
    let text = " some words";
    match wire {
        WireName::Anthropic => {
            let block = json!({ "type": "text", "text": "" });
            let block =
                json!({ "type": "content_block_start", "index": 0, "content_block": block });
            let delta = json!({ "type": "text_delta", "text": text });
            let delta = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
            let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
            let over = json!({ "type": "content_block_stop", "index": 0 });
            let begin = json!({ "type": "message_start", "message": { "id": "m" } });
            let end = [over, stop, json!({ "type": "message_stop" })].map(sse).concat();
            [sse(begin) + &sse(block), sse(delta), end]
        }
        WireName::OpenAiChat => {
            let chunk = |delta: Value, stop: Value| {
                let choice = json!({ "index": 0, "delta": delta, "finish_reason": stop });
                sse(json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] }))
            };
            let end = chunk(json!({}), json!("stop")) + "data: [DONE]\n\n";
            let begin = chunk(json!({ "role": "assistant" }), Value::Null);
            [begin, chunk(json!({ "content": text }), Value::Null), end]
        }
        WireName::OpenAiResponses => {
            let item = json!({ "type": "message", "id": "i", "content": [] });
            let item = json!({
                "type": "response.output_item.added", "output_index": 0, "item": item,
            });
            let delta = json!({
                "type": "response.output_text.delta", "item_id": "i", "output_index": 0,
                "content_index": 0, "delta": text, "sequence_number": 7,
            });
            let response = json!({ "status": "completed", "output": [] });
            let end = json!({ "type": "response.completed", "response": response });
            [sse(item), sse(delta), sse(end)]
        }
        WireName::Gemini => {
            let part = |text: &str| json!({ "parts": [{ "text": text }], "role": "model" });
            let end = json!({ "candidates": [{ "finishReason": "STOP" }] });
            let delta = sse(json!({ "candidates": [{ "content": part(text) }] }));
            [String::new(), delta, sse(end)]
        }
        WireName::Ollama => {
            let line = |it: Value| format!("{it}\n");
            let message = json!({ "role": "assistant", "content": text });
            let end = json!({ "done": true, "done_reason": "stop" });
            let delta = json!({ "model": "m", "message": message, "done": false });
            [String::new(), line(delta), line(end)]
        }
    }
}

fn deltas_a_second(wire: WireName) -> u64 {
    let [first, delta, last] = stream(wire);
    let stream = [first, delta.repeat(DELTAS as usize), last].concat();
    let began = System.now();
    let (_, reply) = decode_in(wire, stream.as_bytes(), std::iter::repeat(16 * 1024));
    let took = System.now().since(began).max(1);
    assert_eq!(reply.unwrap().text.len(), 11 * DELTAS as usize, "{wire:?}");
    u64::from(DELTAS) * 1_000 / took
}

/// People, replies with a call, and what came of it.
fn long() -> Vec<Arc<Line>> {
    let words = "All work and no play \"makes\" Jack\n".repeat(12);
    let kind = |seq: u64| match seq % 3 {
        0 => person(seq, &words),
        1 => {
            let arguments = json!({ "path": "crates/runtime/src/wire.rs", "text": words });
            let call = Use::new("ls", arguments);
            let reply = Reply { text: words.clone(), calls: vec![call], ..Reply::default() };
            line(seq, Body::Replied(reply))
        }
        _ => {
            let call = CallId { turn: Seq(seq - 1), index: 0 };
            line(seq, Body::Results(vec![(call, Output::ok(words.clone()))]))
        }
    };
    (3..3 + LINES).map(kind).collect()
}

/// Puts a request together.
type Build = Box<dyn Fn(&Asked) -> Vec<u8>>;

/// Milliseconds a hundred requests take: with the history kept, without, and a plain pass over it.
fn requests(make: impl Fn() -> Build) -> [u64; 3] {
    let lines = long();
    let shorter = asked(lines[..lines.len() - 3].to_vec());
    let all = asked(lines);
    let time = |work: &mut dyn FnMut()| {
        let began = System.now();
        (0..ROUNDS).for_each(|_| work());
        System.now().since(began)
    };
    let warm = make();
    warm(&shorter);
    let kept = time(&mut || drop(warm(&all)));
    let cold = time(&mut || drop(make()(&all)));
    let value: Value = serde_json::from_slice(&warm(&all)).unwrap();
    let plain = time(&mut || drop(serde_json::to_vec(&value).unwrap()));
    [kept, cold, plain]
}

fn of<W: Wire>(wire: W) -> Build {
    Box::new(move |asked| wire.body(asked))
}

#[test]
#[ignore = "a measurement"]
fn every_wire() {
    let settings = || Settings::new("http://127.0.0.1:1", Key::new("k"));
    for wire in WireName::ALL {
        let deltas = deltas_a_second(wire);
        let [kept, cold, plain] = requests(|| match wire {
            WireName::Anthropic => of(Messages::new(&settings())),
            WireName::OpenAiChat => of(Chat::new(&settings(), dialect_of("", ""))),
            WireName::OpenAiResponses => of(Responses::new(&settings())),
            WireName::Gemini => of(Generate::new(&settings())),
            WireName::Ollama => of(ollama::Chat::new(&settings())),
        });
        let name = wire.word();
        eprintln!(
            "{name}: {deltas} deltas/s; {LINES} lines in {kept} (kept), {cold} (anew), {plain} \
             (plain pass) hundredths of a millisecond"
        );
    }
}
