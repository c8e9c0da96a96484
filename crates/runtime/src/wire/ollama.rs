//! The Ollama wire: how a request is put, how an answer is read, what errors mean.

mod event;
pub(crate) mod request;
pub(crate) mod stream;

use locum_kernel::FailureKind;
use serde_json::Value;

use super::{Framing, Key, Meaning, Settings, Wire};
use crate::live::Live;
use crate::provider::Asked;
use request::Builder;
use stream::Stream;

/// What kind of thing this wire leaves in a reply. The wire's own field has no name of its kind.
const THINKING: &str = "ollama_thinking";

/// Where a server listens that was not told otherwise.
const PORT: &str = "11434";

#[derive(Debug)]
pub(crate) struct Chat {
    builder: Builder,
}

impl Chat {
    pub(crate) fn new(settings: &Settings) -> Chat {
        Chat { builder: Builder::new(settings) }
    }
}

impl Wire for Chat {
    type Stream = Stream;

    fn path(&self, _: &Asked) -> String {
        "/api/chat".into()
    }

    /// A server on this machine asks for no key; one elsewhere may.
    fn headers(&self, key: &Key) -> Vec<(&'static str, String)> {
        let secret = Some(key.secret()).filter(|secret| !secret.is_empty());
        secret.map(|secret| ("authorization", format!("Bearer {secret}"))).into_iter().collect()
    }

    fn body(&self, asked: &Asked) -> Vec<u8> {
        self.builder.body(asked)
    }

    fn stream(&self, live: Live) -> Stream {
        Stream::new(live)
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn meaning(&self) -> Meaning {
        Meaning { error_in, named: failure_named }
    }
}

/// The address of a server as its users write it in `OLLAMA_HOST`: a host, a port, both, or all of
/// an address.
#[must_use]
pub fn ollama_address(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    if host.contains("://") {
        return host.to_owned();
    }
    let (authority, path) = host.find('/').map_or((host, ""), |at| host.split_at(at));
    let (name, port) = match authority.rsplit_once(':') {
        // Colons inside brackets belong to the name.
        Some((name, port)) if !port.contains(']') => (name, port),
        Some(_) | None => (authority, PORT),
    };
    // Where a server listens for everybody, nobody can be reached.
    let everywhere = ["", "0.0.0.0", "[::]"].contains(&name);
    format!("http://{}:{port}{path}", if everywhere { "127.0.0.1" } else { name })
}

/// What an error means. This wire names none: its words have to do.
fn failure_named(_: &str, words: &str) -> FailureKind {
    let says = |part: &str| words.contains(part);
    if says("not found") && says("model") {
        FailureKind::UnknownModel
    } else if says("context length") || says("context size") || says("context window") {
        FailureKind::ContextTooLong
    } else if says("server busy") || says("maximum pending requests") {
        FailureKind::Overloaded
    } else if says("unauthorized") {
        FailureKind::Auth
    } else {
        FailureKind::Other
    }
}

/// The words of an error, if the body is one.
fn error_in(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    explained(body.get("error")?).map(|words| (String::new(), words))
}

/// The words of an error, with what helps where that is known.
fn explained(error: &Value) -> Option<String> {
    let words = error.as_str().or_else(|| error["message"].as_str())?;
    if failure_named("", words) != FailureKind::UnknownModel {
        return Some(words.to_owned());
    }
    let mut quoted = words.split(['\'', '"']);
    let name = quoted.nth(1).filter(|name| !name.is_empty() && !name.contains(' '));
    Some(format!("{words} (get it with: ollama pull {})", name.unwrap_or("NAME")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let cases = [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":5000", "http://127.0.0.1:5000"),
            ("box", "http://box:11434"),
            ("box:5000/", "http://box:5000"),
            ("box/path/", "http://box:11434/path"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:5000", "http://[::1]:5000"),
            ("[::]:5000", "http://127.0.0.1:5000"),
            (" http://box:80/x ", "http://box:80/x"),
            ("https://box", "https://box"),
        ];
        for (host, address) in cases {
            assert_eq!(ollama_address(host), address, "{host:?}");
        }
    }
}
