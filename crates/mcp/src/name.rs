//! Names that models may use and that always mean the same tool: `server__tool`, in letters,
//! digits, `_` and `-`, at most 64 of them.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What every provider takes.
const LENGTH_MAX: usize = 64;
const SEPARATOR: &str = "__";

/// The name alone decides, not who else is there: a name must not change because another server
/// was started. A name that reads back as exactly this server and tool is used as it is; any
/// other gets the head of a digest of both.
pub(crate) fn full(server: &str, tool: &str) -> String {
    let exact = format!("{server}{SEPARATOR}{tool}");
    let clean = exact.len() <= LENGTH_MAX
        && exact.chars().all(allowed)
        && exact.find(SEPARATOR) == Some(server.len())
        && !server.is_empty();
    if clean {
        return exact;
    }
    let mut name = spelled(&exact);
    let tail: String = hex(&digest([server, tool].map(str::as_bytes)))[..8].to_owned();
    name.truncate(LENGTH_MAX - tail.len() - 1);
    format!("{name}-{tail}")
}

/// A server's name as its tools can begin with it: letters, digits, `-` and single `_`.
pub(crate) fn plain(server: &str) -> String {
    let mut name = spelled(server);
    while name.contains(SEPARATOR) {
        name = name.replace(SEPARATOR, "_");
    }
    name.trim_matches('_').to_owned()
}

fn spelled(name: &str) -> String {
    name.chars().map(|sign| if allowed(sign) { sign } else { '_' }).collect()
}

/// Could this server have a tool of that name?
pub(crate) fn may_be_of(server: &str, full: &str) -> bool {
    let prefix = spelled(server);
    let prefix = &prefix[..prefix.len().min(LENGTH_MAX - 9)];
    full.starts_with(prefix)
}

/// Whether a name in a list means this tool: as it is, as other programs clean it, or by a start
/// with a star.
pub(crate) fn stands_for(listed: &str, tool: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(start) => tool.starts_with(start) || spelled(tool).starts_with(start),
        None => listed == tool || spelled(listed) == spelled(tool),
    }
}

fn allowed(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_' || sign == '-'
}

/// Every part with its length before it, so that no two lists of parts look alike.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// JSON with keys in order: whether a map keeps the order it was read in is decided by whoever
/// else is built into the program, and a digest may not depend on that.
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{canonical, full, may_be_of};

    #[test]
    fn names() {
        let long = "t".repeat(80);
        let cut = format!("s__{}-", "t".repeat(52));
        let cases = [
            ("git", "status", "git__status"),
            ("git", "a-b_c", "git__a-b_c"),
            ("a", "b__c", "a__b__c"),
            ("a", "_b", "a___b"),
            // These would read back as another server's, so they carry a digest.
            ("a__b", "c", "a__b__c-"),
            ("a_", "b", "a___b-"),
            ("my server", "do.it", "my_server__do_it-"),
            ("é", "x", "___x-"),
            ("s", long.as_str(), cut.as_str()),
            ("", "x", "__x-"),
        ];
        for (server, tool, expected) in cases {
            let name = full(server, tool);
            let tail = name.strip_prefix(expected).unwrap_or_else(|| panic!("{name}"));
            let digits = tail.chars().all(|sign| sign.is_ascii_hexdigit());
            let length = if expected.ends_with('-') { 8 } else { 0 };
            assert!(digits && tail.len() == length, "{name}");
            assert!(name.len() <= 64, "{name}");
            assert!(may_be_of(server, &name), "{name}");
            assert_eq!(name, full(server, tool));
        }
    }

    #[test]
    fn no_two_alike() {
        let parts = ["a", "a_", "_a", "a__", "__a", "a__a", "a.a", "a a", "é", "-", "_", "__"];
        let mut seen = std::collections::BTreeMap::new();
        for server in parts {
            for tool in parts {
                if let Some(other) = seen.insert(full(server, tool), (server, tool)) {
                    panic!("{other:?} and {:?} are both {}", (server, tool), full(server, tool));
                }
            }
        }
    }

    #[test]
    fn order_of_keys_does_not_matter() {
        let mut text = String::new();
        canonical(&json!({"b": [1, {"d": null, "c": "x\"y"}], "a": true}), &mut text);
        assert_eq!(text, r#"{"a":true,"b":[1,{"c":"x\"y","d":null}]}"#);
    }
}
