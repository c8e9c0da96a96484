//! The events of a streamed response, as they are spelled.

use std::borrow::Cow;

use locum_kernel::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::text::Text;

/// An event of any type. Fields that do not belong to its type are absent.
#[derive(Deserialize)]
pub(super) struct Heard<'e> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'e, str>,
    /// The item it is about.
    #[serde(default)]
    pub(super) output_index: Option<u64>,
    /// Its name, for servers that do not tell its place.
    #[serde(borrow, default)]
    pub(super) item_id: Text<'e>,
    /// The part of the item.
    #[serde(default)]
    pub(super) content_index: Option<u64>,
    #[serde(default)]
    pub(super) summary_index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) refusal: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) arguments: Cow<'e, str>,
    #[serde(default)]
    pub(super) item: Option<Value>,
    #[serde(default)]
    pub(super) response: Option<Response>,
    #[serde(default)]
    pub(super) error: Option<Value>,
    #[serde(default)]
    pub(super) code: Option<Value>,
    #[serde(default)]
    pub(super) message: Option<Value>,
}

/// The response as a whole, as far as it goes.
#[derive(Default, Deserialize)]
pub(super) struct Response {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) output: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
    #[serde(default)]
    pub(super) error: Option<Value>,
    #[serde(default)]
    pub(super) incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    #[serde(default)]
    pub(super) reason: Option<String>,
}

/// The provider's counts, of the whole response. What came from its cache is part of the input,
/// what was thought part of the output.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// Only what kind of event it is, for those that fit no shape known here.
#[derive(Deserialize)]
pub(super) struct Named<'e> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'e, str>,
}

/// Events that may not be passed over when they do not parse.
pub(super) const KNOWN: [&str; 19] = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.done",
    "error",
];

impl Counts {
    pub(super) fn usage(self) -> Usage {
        let (into, out) = (self.input_tokens_details, self.output_tokens_details);
        let into = into.unwrap_or_default();
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cached: into.cached_tokens.unwrap_or(0),
            cache_write: into.cache_write_tokens.unwrap_or(0),
            reasoning: out.unwrap_or_default().reasoning_tokens.unwrap_or(0),
        }
    }
}
