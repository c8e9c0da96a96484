//! The Chat Completions wire, as its inventor speaks it and everybody who speaks it after them:
//! how a request is put, how an answer is read, what errors mean.

mod calls;
mod event;
pub(crate) mod presets;
pub(crate) mod request;
pub(crate) mod stream;

use locum_kernel::FailureKind;
use serde_json::Value;

use super::{Key, Meaning, Settings, Wire};
use crate::live::Live;
use crate::provider::{Asked, failure_kind};
use presets::Dialect;
use request::Builder;
use stream::{Ending, Stream};

#[derive(Debug)]
pub(crate) struct Chat {
    builder: Builder,
    dialect: Dialect,
}

impl Chat {
    pub(crate) fn new(settings: &Settings, dialect: Dialect) -> Chat {
        Chat { builder: Builder::new(settings, dialect), dialect }
    }
}

impl Wire for Chat {
    type Stream = Stream;

    fn path(&self, _: &Asked) -> String {
        "/v1/chat/completions".into()
    }

    /// A server on this machine often wants no key.
    fn headers(&self, key: &Key) -> Vec<(&'static str, String)> {
        let key = Some(key.secret()).filter(|key| !key.is_empty());
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    fn body(&self, asked: &Asked) -> Vec<u8> {
        self.builder.body(asked)
    }

    fn stream(&self, live: Live) -> Stream {
        Stream::new(live, self.dialect, Ending::Clean)
    }

    /// Some answer in one piece although a stream was asked for.
    fn takes_whole(&self) -> bool {
        true
    }

    fn meaning(&self) -> Meaning {
        Meaning { error_in, named: failure_named }
    }
}

/// Words that tell what a name leaves open. All in lower case.
const TOO_LONG: [&str; 10] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "prompt is too long",
    "maximum prompt length",
    "request too large",
    "input is too long",
    "too many tokens",
    "tokens + `max_new_tokens` must be",
];

/// The same for models nobody has.
const NO_MODEL: [&str; 2] = ["model not exist", "is not a valid model id"];

/// What an error means, by the name the provider gives it, or the number it uses for one.
pub(crate) fn failure_named(name: &str, words: &str) -> FailureKind {
    let words = words.to_ascii_lowercase();
    // Too much at once is a limit of rate by name, but waiting does not make it less.
    if TOO_LONG.iter().any(|part| words.contains(part)) {
        return FailureKind::ContextTooLong;
    }
    if NO_MODEL.iter().any(|part| words.contains(part)) {
        return FailureKind::UnknownModel;
    }
    match name {
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "too_many_requests"
        | "requests"
        | "tokens" => FailureKind::RateLimited,
        "overloaded_error"
        | "overloaded"
        | "engine_overloaded"
        | "service_unavailable"
        | "slow_down" => FailureKind::Overloaded,
        "server_error" | "internal_error" | "internal_server_error" | "api_error" => {
            FailureKind::Server
        }
        "timeout" | "timeout_error" | "request_timeout" => FailureKind::Timeout,
        "invalid_api_key" | "authentication_error" | "permission_error" | "no_such_key" => {
            FailureKind::Auth
        }
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_balance" => FailureKind::Quota,
        "model_not_found" | "not_found_error" => FailureKind::UnknownModel,
        "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => {
            FailureKind::ContextTooLong
        }
        "content_filter" | "content_policy_violation" => FailureKind::Filtered,
        number => number.parse().map_or(FailureKind::Other, failure_kind),
    }
}

/// The name and the words of an error, if the body is one.
fn error_in(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    error_of(&body)
}

/// Errors come alone, in an envelope, as a plain text, or in a list.
fn error_of(body: &Value) -> Option<(String, String)> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|error| !error.is_null());
    let alone = || {
        let kind = body["object"].as_str().unwrap_or_default();
        let only_words = body["message"].is_string() && body["choices"].is_null();
        (kind.eq_ignore_ascii_case("error") || only_words).then_some(body)
    };
    error.or_else(alone).map(name_and_words)
}

pub(crate) fn name_and_words(error: &Value) -> (String, String) {
    if let Value::String(words) = error {
        return (String::new(), words.clone());
    }
    let words = match &error["message"] {
        Value::String(words) => words.clone(),
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    };
    // Whoever passes requests on says what the one behind it said.
    let words = match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) if !raw.trim().is_empty() => format!("{words}: {raw}"),
        Some(_) | None => words,
    };
    if error.pointer("/metadata/reasons").is_some_and(Value::is_array) {
        return ("content_filter".into(), words);
    }
    let name = |field: &str| match &error[field] {
        Value::String(name) => name.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    let (code, kind) = (name("code"), name("type"));
    let says = |name: &str| failure_named(name, "") != FailureKind::Other;
    (if says(&code) || !says(&kind) && !code.is_empty() { code } else { kind }, words)
}
