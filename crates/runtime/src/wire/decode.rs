//! A recorded stream read without anybody asking: for tests, and for people who wonder what a
//! provider said.

use locum_kernel::{Failure, Reply, Usage};
use serde::Serialize;
use serde_json::Value;

use super::chat::presets::Dialect;
use super::chat::stream::{Ending, Stream as Completion};
use super::{Decoder, Framing, Reading, WireName, anthropic, gemini, ollama, responses};
use crate::live::Live;

/// What a stream says, whole or as far as it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Decoded {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<DecodedCall>,
    pub usage: Usage,
    /// Why the model stopped, in the provider's word.
    pub stop: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecodedCall {
    pub id: String,
    pub name: String,
    /// An object, or the text there is of one.
    pub arguments: Value,
}

/// Reads a stream as it was recorded: raw, or one JSON event per line.
pub fn decode(wire: WireName, bytes: &[u8]) -> (Decoded, Result<Reply, Failure>) {
    match wire {
        WireName::Anthropic => {
            read(anthropic::stream::Stream::new(Live::nobody()), Framing::Events, bytes)
        }
        WireName::OpenAiResponses => {
            read(responses::stream::Stream::new(Live::nobody()), Framing::Events, bytes)
        }
        WireName::OpenAiChat => {
            // The mark that ends a stream is no event: where only events were recorded it is
            // missing, where all bytes were it is the only sign that they are all.
            let ending = if is_bare(bytes) { Ending::Clean } else { Ending::Marked };
            let decoder = Completion::new(Live::nobody(), Dialect::PLAIN, ending);
            read(decoder, Framing::Events, bytes)
        }
        WireName::Gemini => {
            read(gemini::stream::Stream::new(Live::nobody()), Framing::LooseEvents, bytes)
        }
        WireName::Ollama => {
            read(ollama::stream::Stream::new(Live::nobody()), Framing::Lines, bytes)
        }
    }
}

fn read<D: Decoder>(
    decoder: D,
    framing: Framing,
    bytes: &[u8],
) -> (Decoded, Result<Reply, Failure>) {
    let framing = if is_bare(bytes) { Framing::Lines } else { framing };
    let mut reading = Reading::new(decoder, framing);
    let fed = reading.feed(bytes).and_then(|()| reading.end());
    let so_far = reading.decoded();
    (so_far, fed.and_then(|()| reading.finish()))
}

/// Some record only the events, without what the wire puts around them.
fn is_bare(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}
