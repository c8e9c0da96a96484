//! SHA-256 and canonical JSON: what a grant binds to. Written here because the kernel depends on
//! nothing but serde, and a digest that guards approvals must not be one that can be collided.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The SHA-256 of some canonical text, as 64 hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        let mut hex = String::with_capacity(64);
        for byte in sha256(bytes) {
            for nibble in [byte >> 4, byte & 15] {
                hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        Digest(hex)
    }

    /// What a person approves: this tool with exactly these arguments.
    #[must_use]
    pub fn of_call(tool: &str, arguments: &Value) -> Digest {
        let mut text = Vec::from(tool.as_bytes());
        text.push(0);
        canonical(arguments, &mut text);
        Digest::of_bytes(&text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.get(..12).unwrap_or(&self.0))
    }
}

/// JSON text with sorted keys. Sorted here, because whether `serde_json` sorts them depends on a
/// feature that any other crate of a build may switch.
fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push(b'{');
            for key in keys {
                scalar(&Value::String(key.clone()), out);
                out.push(b':');
                canonical(&map[key], out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                canonical(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value, out),
    }
}

/// Writing a scalar into memory cannot fail; nothing written would only never match.
fn scalar(value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(&serde_json::to_vec(value).unwrap_or_default());
}

/// A well-mixed number from two numbers: jitter that is the same after every replay.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FIPS 180-4 §4.2.2: the first 32 bits of the fractional parts of the cube roots of the first
/// 64 primes.
#[rustfmt::skip]
const ROUND: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
    0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe,
    0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f,
    0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da, 0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7,
    0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc,
    0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
    0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070, 0x19a4_c116,
    0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
    0xc671_78f2,
];

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let mut blocks = bytes.chunks_exact(64);
    for block in &mut blocks {
        compress(&mut hash, block);
    }
    let mut tail = Vec::from(blocks.remainder());
    tail.push(0x80);
    while tail.len() % 64 != 56 {
        tail.push(0);
    }
    tail.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    for block in tail.chunks_exact(64) {
        compress(&mut hash, block);
    }
    let mut out = [0u8; 32];
    for (chunk, word) in out.chunks_exact_mut(4).zip(hash) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    out
}

#[expect(clippy::many_single_char_names, reason = "the names of FIPS 180-4")]
fn compress(hash: &mut [u32; 8], block: &[u8]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let mut v = *hash;
    for i in 0..64 {
        let [a, b, c, d, e, f, g, h] = v;
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUND[i]).wrapping_add(w[i]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        v = [t1.wrapping_add(s0).wrapping_add(majority), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    for (word, add) in hash.iter_mut().zip(v) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fips_180_4_examples() {
        let cases: [(&[u8], &str); 3] = [
            (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(Digest::of_bytes(input).as_str(), expected);
        }
    }

    #[test]
    fn key_order_does_not_change_a_digest_but_values_do() {
        let value = |text| serde_json::from_str::<Value>(text).unwrap();
        let one = Digest::of_call("exec", &value(r#"{"a":1,"b":2}"#));
        assert_eq!(one, Digest::of_call("exec", &value(r#"{"b":2,"a":1}"#)));
        assert_ne!(one, Digest::of_call("exec", &value(r#"{"a":1,"b":3}"#)));
        assert_ne!(one, Digest::of_call("read", &value(r#"{"a":1,"b":2}"#)));
    }
}
