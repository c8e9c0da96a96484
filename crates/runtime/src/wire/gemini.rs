//! The Gemini wire: how a request is put, how an answer is read, what errors mean.

mod arguments;
mod event;
pub(crate) mod request;
mod schema;
pub(crate) mod stream;

use std::fmt::Write as _;

use locum_kernel::{Failure, FailureKind};
use serde_json::Value;

use super::{Framing, Key, Meaning, Settings, Wire, words};
use crate::live::Live;
use crate::provider::{Asked, failure_kind};
use request::Builder;
use stream::Stream;

/// What kind of thing this wire leaves in a reply: where a signature belongs. The wire's own parts
/// carry no name of their kind.
const PART: &str = "gemini_part";

#[derive(Debug)]
pub(crate) struct Generate {
    builder: Builder,
}

impl Generate {
    pub(crate) fn new(settings: &Settings) -> Generate {
        Generate { builder: Builder::new(settings) }
    }
}

impl Wire for Generate {
    type Stream = Stream;

    fn path(&self, asked: &Asked) -> String {
        let model = words::model(asked);
        // Tuned models have a folder of their own.
        let folder = if model.contains('/') { "" } else { "models/" };
        let mut path = format!("/v1beta/{folder}");
        for byte in model.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
                path.push(char::from(byte));
            } else {
                // Memory takes whatever is written to it.
                let _ = write!(path, "%{byte:02X}");
            }
        }
        path.push_str(":streamGenerateContent?alt=sse");
        path
    }

    fn headers(&self, key: &Key) -> Vec<(&'static str, String)> {
        vec![("x-goog-api-key", key.secret().into())]
    }

    fn body(&self, asked: &Asked) -> Vec<u8> {
        self.builder.body(asked)
    }

    fn stream(&self, live: Live) -> Stream {
        Stream::new(live)
    }

    /// An error after the beginning comes without what the wire puts around events.
    fn framing(&self) -> Framing {
        Framing::LooseEvents
    }

    fn meaning(&self) -> Meaning {
        Meaning { error_in, named }
    }

    fn wait_in(&self) -> fn(&[u8]) -> Option<u64> {
        |body| wait(&error(body)?)
    }
}

/// What an error means, by the name the provider gives it; its words tell apart what has one name.
fn named(name: &str, words: &str) -> FailureKind {
    match name {
        // More waiting does not help where there is nothing to have, or only tomorrow.
        "RESOURCE_EXHAUSTED PerDay" => FailureKind::Quota,
        "RESOURCE_EXHAUSTED" if words.contains("limit: 0,") => FailureKind::Quota,
        "RESOURCE_EXHAUSTED" => FailureKind::RateLimited,
        "UNAVAILABLE" => FailureKind::Overloaded,
        "INTERNAL" | "UNKNOWN" | "ABORTED" | "CANCELLED" | "DATA_LOSS" => FailureKind::Server,
        "DEADLINE_EXCEEDED" => FailureKind::Timeout,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => FailureKind::Auth,
        "NOT_FOUND" => FailureKind::UnknownModel,
        _ if words.contains("API key") => FailureKind::Auth,
        _ if words.contains("exceeds the maximum number of tokens") => FailureKind::ContextTooLong,
        _ if words.contains("billing") => FailureKind::Quota,
        _ => FailureKind::Other,
    }
}

/// The name and the words of an error, if the body is one.
fn error_in(body: &[u8]) -> Option<(String, String)> {
    error(body).map(|error| name_and_words(&error))
}

/// The error of a body: an object, or a list of one.
fn error(body: &[u8]) -> Option<Value> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    if let Some(first) = body.get_mut(0) {
        body = first.take();
    }
    body.get_mut("error").map(Value::take)
}

fn name_and_words(error: &Value) -> (String, String) {
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    let mut name = text("status");
    let daily = |it: &Value| it["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"));
    let violations = details(error).filter_map(|it| it["violations"].as_array());
    if violations.flatten().any(daily) {
        name.push_str(" PerDay");
    }
    (name, text("message"))
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

/// How long the provider wants to be left alone: `retryDelay`, in seconds with a fraction.
fn wait(error: &Value) -> Option<u64> {
    let delay = details(error).find_map(|it| it["retryDelay"].as_str())?;
    let (whole, fraction) =
        delay.strip_suffix('s')?.split_once('.').unwrap_or((delay.strip_suffix('s')?, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds: u64 = whole.parse().ok()?;
    let thousandths: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    // Rounded up: too early is worse than a little late.
    let more = u64::from(fraction.len() > 3);
    seconds.checked_mul(1_000)?.checked_add(thousandths + more)
}

/// What a provider says went wrong after it had begun to answer. A name not known here is still the
/// provider's fault: it had taken the request.
fn in_stream(error: &Value) -> Failure {
    let (name, words) = name_and_words(error);
    let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let by_name = named(&name, &words);
    let kind = match (by_name, code) {
        (FailureKind::Other, Some(code)) => failure_kind(code),
        (kind, _) => kind,
    };
    let asked_wrong = name == "INVALID_ARGUMENT" || name == "FAILED_PRECONDITION";
    let kind = if kind == FailureKind::Other && !asked_wrong { FailureKind::Server } else { kind };
    let message = if words.is_empty() { "the provider broke off".into() } else { words };
    Failure { kind, status: code, retry_after_ms: wait(error), message }
}
