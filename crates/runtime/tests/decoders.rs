//! Every decoder against streams that were damaged on the way, by dice that fall alike every time:
//! the short form of `cargo xtask fuzz`, which looks for minutes and is led by what it has seen.
#![expect(clippy::expect_used, reason = "in a test, a panic is the message")]

#[path = "decoders/laws.rs"]
mod laws;

use laws::{Dice, check_events, check_wire};
use locum_kernel::FailureKind;
use locum_runtime::wire::{WireName, decode};

/// A valid stream of each wire: of our own server, where it speaks the wire.
const STREAMS: [(WireName, &[u8]); 5] = [
    (
        WireName::Anthropic,
        include_bytes!("../../locum/tests/script_server/anthropic.sse").as_slice(),
    ),
    (WireName::OpenAiChat, include_bytes!("../../locum/tests/script_server/chat.sse").as_slice()),
    (
        WireName::OpenAiResponses,
        include_bytes!("../../locum/tests/script_server/responses.sse").as_slice(),
    ),
    (WireName::Gemini, include_bytes!("decoders/gemini.sse").as_slice()),
    (WireName::Ollama, include_bytes!("decoders/ollama.jsonl").as_slice()),
];

/// What is likely to matter where it does not belong.
const WORDS: &[&[u8]] = &[
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b"data: ",
    b"data:",
    b"event: error\n",
    b": ping\n\n",
    b"data: [DONE]\n\n",
    b"\xEF\xBB\xBF",
    b"\xC3",
    b"\xFF",
    b"\0",
    b"null",
    b"1e400",
    b"-1",
    b"18446744073709551616",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"{}",
    b"[]",
    b"\"done\":true",
    b"\"error\":{\"message\":\"no\"}",
];

/// Damaged streams per wire: about a second for all of them, unoptimised.
const ROUNDS: usize = 300;

#[test]
fn a_valid_stream_cut_anywhere_is_no_answer_or_the_whole_one() {
    for (wire, stream) in STREAMS {
        check_valid(wire, wire.word(), stream);
        check_wire(wire, stream);
        check_events(stream);
    }
}

#[test]
fn a_damaged_stream_is_read_alike_however_it_is_cut() {
    for (wire, stream) in STREAMS {
        for seed in 0..ROUNDS {
            let damaged = damage(stream, Dice::new(seed as u64));
            check_wire(wire, &damaged);
            check_events(&damaged);
        }
    }
}

/// A valid stream cut anywhere is no answer, or the whole one.
fn check_valid(wire: WireName, name: &str, bytes: &[u8]) {
    let (_, whole) = decode(wire, bytes);
    let whole = whole.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    for at in 0..bytes.len() {
        match decode(wire, &bytes[..at]).1 {
            Ok(reply) => assert_eq!(reply, whole, "{name}: cut at {at} of {}", bytes.len()),
            Err(failure) => {
                let kinds = [FailureKind::Cut, FailureKind::Malformed];
                assert!(kinds.contains(&failure.kind), "{name}: cut at {at}: {failure:?}");
            }
        }
    }
}

fn damage(stream: &[u8], mut dice: Dice) -> Vec<u8> {
    let mut bytes = stream.to_vec();
    for _ in 0..=dice.below(4) {
        let (at, to) = (dice.below(bytes.len() + 1), dice.below(bytes.len() + 1));
        let (at, to) = (at.min(to), at.max(to));
        match dice.below(5) {
            0 if at < bytes.len() => {
                bytes[at] = u8::try_from(dice.below(256)).expect("fewer than 256");
            }
            1 => drop(bytes.drain(at..to.min(at + 40))),
            2 => {
                let again = bytes[at..to.min(at + 400)].to_vec();
                bytes.splice(to..to, again);
            }
            3 => bytes.truncate(to),
            _ => drop(bytes.splice(at..at, WORDS[dice.below(WORDS.len())].iter().copied())),
        }
    }
    bytes
}
