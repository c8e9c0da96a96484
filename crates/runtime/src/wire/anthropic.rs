//! The Anthropic Messages wire: how a request is put, how an answer is read, what errors mean.

mod event;
pub(crate) mod request;
pub(crate) mod stream;

use locum_kernel::FailureKind;
use serde_json::Value;

use super::{Key, Meaning, Settings, Wire};
use crate::live::Live;
use crate::provider::Asked;
use request::Builder;
use stream::Stream;

/// The version of the wire spoken here, as its header says it.
const VERSION: &str = "2023-06-01";

#[derive(Debug)]
pub(crate) struct Messages {
    builder: Builder,
}

impl Messages {
    pub(crate) fn new(settings: &Settings) -> Messages {
        Messages { builder: Builder::new(settings) }
    }
}

impl Wire for Messages {
    type Stream = Stream;

    fn path(&self, _: &Asked) -> String {
        "/v1/messages".into()
    }

    fn headers(&self, key: &Key) -> Vec<(&'static str, String)> {
        vec![("x-api-key", key.secret().into()), ("anthropic-version", VERSION.into())]
    }

    fn body(&self, asked: &Asked) -> Vec<u8> {
        self.builder.body(asked)
    }

    fn stream(&self, live: Live) -> Stream {
        Stream::new(live)
    }

    fn meaning(&self) -> Meaning {
        Meaning { error_in, named: failure_named }
    }
}

/// What an error means, by the name the provider gives it; its words tell apart what has one name.
pub(crate) fn failure_named(name: &str, words: &str) -> FailureKind {
    match name {
        "overloaded_error" => FailureKind::Overloaded,
        "rate_limit_error" => FailureKind::RateLimited,
        "api_error" => FailureKind::Server,
        "timeout_error" => FailureKind::Timeout,
        "authentication_error" | "permission_error" => FailureKind::Auth,
        "billing_error" => FailureKind::Quota,
        "not_found_error" => FailureKind::UnknownModel,
        "request_too_large" => FailureKind::ContextTooLong,
        _ if words.contains("prompt is too long") || words.contains("exceed context limit") => {
            FailureKind::ContextTooLong
        }
        _ if words.contains("credit balance is too low") || words.contains("API usage limits") => {
            FailureKind::Quota
        }
        _ if words.contains("content filtering policy") => FailureKind::Filtered,
        _ => FailureKind::Other,
    }
}

/// The name and the words of an error, if the body is one.
fn error_in(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    Some((text("type"), text("message")))
}
