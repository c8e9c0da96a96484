//! The Anthropic Messages wire: how a request is put, how an answer is read, what errors mean.

mod event;
pub(crate) mod request;
pub(crate) mod stream;

use locum_kernel::FailureKind;
use serde_json::Value;

/// The version of the wire spoken here, as its header says it.
pub(crate) const VERSION: &str = "2023-06-01";

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
        _ if words.contains("credit balance is too low") => FailureKind::Quota,
        _ => FailureKind::Other,
    }
}

/// The name and the words of an error, if the body is one.
pub(crate) fn error_in(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    Some((text("type"), text("message")))
}
