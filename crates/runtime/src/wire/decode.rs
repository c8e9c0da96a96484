//! A recorded stream read without anybody asking: for tests, and for people who wonder what a
//! provider said.

use std::iter;

use locum_kernel::{Failure, Reply, Usage};
use serde::Serialize;
use serde_json::Value;

use super::chat::presets::Dialect;
use super::chat::stream::{Ending, Stream as Completion};
use super::sse::{Event, Splitter};
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
    decode_in(wire, bytes, iter::empty())
}

/// The same in pieces of these sizes, as a connection brings it; what is left comes in one. It has
/// to make no difference.
pub fn decode_in(
    wire: WireName,
    bytes: &[u8],
    sizes: impl Iterator<Item = usize>,
) -> (Decoded, Result<Reply, Failure>) {
    match wire {
        WireName::Anthropic => {
            read(anthropic::stream::Stream::new(Live::nobody()), Framing::Events, bytes, sizes)
        }
        WireName::OpenAiResponses => {
            read(responses::stream::Stream::new(Live::nobody()), Framing::Events, bytes, sizes)
        }
        WireName::OpenAiChat => {
            // The mark that ends a stream is no event: where only events were recorded it is
            // missing, where all bytes were it is the only sign that they are all.
            let ending = if is_bare(bytes) { Ending::Clean } else { Ending::Marked };
            let decoder = Completion::new(Live::nobody(), Dialect::PLAIN, ending);
            read(decoder, Framing::Events, bytes, sizes)
        }
        WireName::Gemini => {
            read(gemini::stream::Stream::new(Live::nobody()), Framing::LooseEvents, bytes, sizes)
        }
        WireName::Ollama => {
            read(ollama::stream::Stream::new(Live::nobody()), Framing::Lines, bytes, sizes)
        }
    }
}

fn read<D: Decoder>(
    decoder: D,
    framing: Framing,
    bytes: &[u8],
    sizes: impl Iterator<Item = usize>,
) -> (Decoded, Result<Reply, Failure>) {
    let framing = if is_bare(bytes) { Framing::Lines } else { framing };
    let mut reading = Reading::new(decoder, framing);
    let fed = pieces(bytes, sizes).try_for_each(|piece| reading.feed(piece));
    let fed = fed.and_then(|()| reading.end());
    let so_far = reading.decoded();
    (so_far, fed.and_then(|()| reading.finish()))
}

/// What a stream of server-sent events is made of, name and data, read in pieces of these sizes.
pub fn events_in(bytes: &[u8], sizes: impl Iterator<Item = usize>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut events = Vec::new();
    let mut show = |event: Event<'_>| {
        events.push((event.name.to_vec(), event.data.to_vec()));
        Ok::<(), ()>(())
    };
    let mut splitter = Splitter::new(Framing::Events);
    let fed = pieces(bytes, sizes).try_for_each(|piece| splitter.feed(piece, &mut show));
    // Too long to be one: what came before it stands.
    let _ = fed.and_then(|()| splitter.finish(&mut show));
    events
}

/// A size of nought ends it, as the end of the bytes does.
fn pieces(bytes: &[u8], sizes: impl Iterator<Item = usize>) -> impl Iterator<Item = &[u8]> {
    let sizes = sizes.chain(iter::once(usize::MAX));
    sizes.scan(bytes, |rest, size| {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        *rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Some record only the events, without what the wire puts around them.
fn is_bare(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}
