//! What this wire's errors mean, before an answer and within one.

use locum_kernel::{Failure, FailureKind};
use serde_json::Value;

use crate::provider::failure_kind;
use crate::wire::failed;

/// What an error means, by the name the provider gives it; its words tell apart what has one name.
pub(super) fn failure_named(name: &str, words: &str) -> FailureKind {
    match name {
        "insufficient_quota"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "quota_exceeded"
        | "usage_limit_reached"
        | "usage_not_included" => FailureKind::Quota,
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" => {
            FailureKind::RateLimited
        }
        "server_is_overloaded"
        | "slow_down"
        | "overloaded_error"
        | "engine_overloaded"
        | "service_unavailable" => FailureKind::Overloaded,
        "server_error" | "api_error" | "internal_error" | "internal_server_error" => {
            FailureKind::Server
        }
        "timeout" | "timeout_error" | "request_timeout" | "vector_store_timeout" => {
            FailureKind::Timeout
        }
        "context_length_exceeded" => FailureKind::ContextTooLong,
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "insufficient_permissions"
        | "account_deactivated"
        | "unsupported_country_region_territory" => FailureKind::Auth,
        "model_not_found" => FailureKind::UnknownModel,
        "content_filter"
        | "content_policy_violation"
        | "bio_policy"
        | "cyber_policy"
        | "misalignment_policy_violation" => FailureKind::Filtered,
        "invalid_prompt" if words.contains("flagged") || words.contains("policy") => {
            FailureKind::Filtered
        }
        _ if words.contains("maximum context length") || words.contains("context window") => {
            FailureKind::ContextTooLong
        }
        _ => FailureKind::Other,
    }
}

/// The name and the words of an error, if the body is one.
pub(super) fn error_in(body: &[u8]) -> Option<(String, String)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    // Compatible servers put the same fields at the top, or only the words.
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(&body);
    let (name, words) = told(error);
    let words = words.or_else(|| body["detail"].as_str())?;
    Some((name.to_owned(), words.to_owned()))
}

/// The name and the words of an error. The code says more than the type, where there is one.
fn told(error: &Value) -> (&str, Option<&str>) {
    if let Some(words) = error.as_str() {
        return ("", Some(words));
    }
    let name = |field: &str| error[field].as_str().filter(|name| !name.is_empty());
    // A type that says "error" only repeats what kind of thing this is.
    let kind = name("type").filter(|kind| *kind != "error");
    (name("code").or(kind).unwrap_or_default(), error["message"].as_str())
}

/// What a provider says went wrong after it had begun to answer. A name not known here is still the
/// provider's fault: it had taken the request.
pub(super) fn in_stream(error: &Value) -> Failure {
    let (name, words) = told(error);
    let words = words.unwrap_or("the provider broke off");
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let kind = match (failure_named(name, words), status) {
        (FailureKind::Other, Some(status)) => failure_kind(status),
        (kind, _) => kind,
    };
    let unknown = kind == FailureKind::Other && !name.starts_with("invalid_");
    let failure = failed(if unknown { FailureKind::Server } else { kind }, words);
    Failure { retry_after_ms: try_again_ms(words), ..failure }
}

/// There is no header inside a stream; the words say "Please try again in 1.5s."
fn try_again_ms(words: &str) -> Option<u64> {
    let (_, rest) = words.split_once("try again in ")?;
    let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
    let (number, unit) = rest.split_at(end);
    let (whole, parts) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let scale = if unit.starts_with("ms") {
        1
    } else if unit.starts_with('s') {
        1_000
    } else {
        return None;
    };
    // A little more is never too early.
    let more = if parts.is_empty() { 0 } else { scale };
    whole.checked_mul(scale)?.checked_add(more)
}
