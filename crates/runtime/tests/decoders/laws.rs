//! What holds for every stream of bytes, whatever it says: the decoders do not panic, say the same
//! however the bytes were cut on the way, and call no answer whole that has not ended. Shared by
//! the seeded test beside this file and by the fuzz targets, which have more patience.

use locum_runtime::wire::{WireName, decode, decode_in, events_in};

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The same bytes are always cut alike, so that a finding can be found again.
    pub(crate) fn of(bytes: &[u8]) -> Dice {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Dice(bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from((mixed ^ (mixed >> 31)) % end).unwrap_or_default()
    }
}

/// Everything that must hold of one stream over one wire.
pub(crate) fn check_wire(wire: WireName, bytes: &[u8]) {
    let mut dice = Dice::of(bytes);
    let whole = decode(wire, bytes);
    for longest in [1, 7, 64, 2_048] {
        let mut sizes = dice.clone();
        let cut = decode_in(wire, bytes, std::iter::repeat_with(|| sizes.below(longest) + 1));
        assert_eq!(cut, whole, "{wire:?}: in pieces of up to {longest}");
    }
    let said = whole.0.text.len() + whole.0.reasoning.len();
    // Invalid bytes are refused, not replaced, and escapes are longer than what they stand for.
    assert!(said <= bytes.len(), "{wire:?}: {said} bytes of text came from {}", bytes.len());
    if let Ok(reply) = &whole.1 {
        assert!(reply.text.len() <= bytes.len() && reply.calls.len() <= bytes.len());
    }
    for _ in 0..4 {
        let at = dice.below(bytes.len() + 1);
        check_cut(wire, &whole, bytes, event_end(bytes, at));
    }
}

type Said = (locum_runtime::wire::Decoded, Result<locum_kernel::Reply, locum_kernel::Failure>);

/// Cut between two events, it is whole only if everything that counts had come.
fn check_cut(wire: WireName, whole: &Said, bytes: &[u8], at: usize) {
    let (part, reply) = decode(wire, &bytes[..at]);
    let Ok(reply) = reply else { return };
    assert!(part.stop.is_some() || wire == WireName::Ollama, "{wire:?}: whole without a reason");
    // Neither has an event that ends it: what comes after the reason to stop may add to it.
    let has_last = wire != WireName::Gemini && !(wire == WireName::OpenAiChat && is_bare(bytes));
    if has_last {
        assert_eq!(Ok(&reply), whole.1.as_ref(), "{wire:?}: whole at {at}, and another later");
    }
}

fn is_bare(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

/// Where the event ends in which this place lies.
fn event_end(bytes: &[u8], at: usize) -> usize {
    let ends: [&[u8]; 3] = [b"\n\n", b"\r\r", b"\r\n\r\n"];
    let ends: &[&[u8]] = if is_bare(bytes) { &[b"\n"] } else { &ends };
    let found = (at..bytes.len()).find_map(|from| {
        let end = ends.iter().find(|end| bytes[from..].starts_with(end))?;
        Some(from + end.len())
    });
    found.unwrap_or(bytes.len())
}

/// The splitter against the words of the specification, read line by line.
pub(crate) fn check_events(bytes: &[u8]) {
    let expected = by_the_book(bytes);
    let mut dice = Dice::of(bytes);
    assert_eq!(events_in(bytes, std::iter::empty()), expected, "in one");
    for longest in [1, 3, 17, 4_096] {
        let sizes = std::iter::repeat_with(|| dice.below(longest) + 1);
        assert_eq!(events_in(bytes, sizes), expected, "in pieces of up to {longest}");
    }
}

/// With the one liberty taken here: an event that the end of the stream leaves open counts.
fn by_the_book(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut lines = vec![Vec::new()];
    let mut before = 0;
    for byte in bytes {
        match (before, byte) {
            (b'\r', b'\n') => {}
            (_, b'\r' | b'\n') => lines.push(Vec::new()),
            (_, byte) => lines.last_mut().expect("there is always one").push(*byte),
        }
        before = *byte;
    }
    lines.push(Vec::new());
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':');
        let field = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(&[][..], |at| &line[at + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            [] if colon.is_none() => {
                let (name, data) = (std::mem::take(&mut name), data.take());
                events.extend(data.map(|data| (name, data)));
            }
            b"event" => name = value.to_vec(),
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    events
}
