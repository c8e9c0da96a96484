//! What makes damage visible. Each row carries a checksum of itself, which no flipped bit passes
//! and which can be checked without its neighbours; and a hash over itself and the row before, so
//! that the last hash of a session stands for its whole history, in this order, in this session.

use locum_kernel::Seq;
use sha2::{Digest as _, Sha256};

pub(crate) type Hash = [u8; 32];

/// How far a session has come: its last event, and the hash of everything up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) last: Seq,
    pub(crate) hash: Hash,
}

/// What a row says besides its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) seq: Seq,
    pub(crate) last: Seq,
    pub(crate) at: i64,
}

/// Before the first entry. The number keeps a session apart from an earlier one of its name.
pub(crate) fn genesis(number: i64, name: &str) -> Head {
    let mut hash = Sha256::new();
    hash.update(b"locum session\0");
    hash.update(number.to_le_bytes());
    hash.update(name);
    Head { last: Seq(0), hash: hash.finalize().into() }
}

pub(crate) fn link(before: &Hash, facts: Facts, text: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(facts.seq.0.to_le_bytes());
    hash.update(facts.last.0.to_le_bytes());
    hash.update(facts.at.to_le_bytes());
    hash.update(text);
    hash.finalize().into()
}

/// The checksum of a row of entries.
pub(crate) fn sum(id: i64, facts: Facts, text: &[u8], hash: &Hash) -> i64 {
    let numbers = [id, facts.at].map(i64::to_le_bytes).concat();
    let seqs = [facts.seq.0, facts.last.0].map(u64::to_le_bytes).concat();
    sum_of(&[&numbers, &seqs, text, hash])
}

/// The length of each part is summed, too: bytes cannot wander from one to the next.
pub(crate) fn sum_of(parts: &[&[u8]]) -> i64 {
    let one = |sum, part: &&[u8]| {
        let sum = crc32c::crc32c_append(sum, &part.len().to_le_bytes());
        crc32c::crc32c_append(sum, part)
    };
    i64::from(parts.iter().fold(0, one))
}

/// What a snapshot is believed by. It is large and guards a whole session, so a hash.
pub(crate) fn seal(id: i64, at: &Hash, bytes: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(b"locum snapshot\0");
    hash.update(id.to_le_bytes());
    hash.update(at);
    hash.update(bytes);
    hash.finalize().into()
}
