//! The events of a streamed message, as they are spelled.

use std::borrow::Cow;

use locum_kernel::Usage;
use serde::Deserialize;
use serde_json::Value;

/// An event of any type. Fields that do not belong to its type are absent.
#[derive(Deserialize)]
pub(super) struct Heard<'e> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'e, str>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'e>>,
    #[serde(default)]
    pub(super) content_block: Option<Value>,
    #[serde(default)]
    pub(super) message: Option<Message>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'e> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) thinking: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) signature: Cow<'e, str>,
    #[serde(borrow, default)]
    pub(super) partial_json: Cow<'e, str>,
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) stop_details: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
}

/// The provider's counts. Those of a later event stand for the whole message so far.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    #[serde(default, rename = "input_tokens")]
    fresh: Option<u64>,
    #[serde(default, rename = "output_tokens")]
    output: Option<u64>,
    #[serde(default, rename = "cache_read_input_tokens")]
    cached: Option<u64>,
    #[serde(default, rename = "cache_creation_input_tokens")]
    cache_write: Option<u64>,
}

/// Only what kind of event it is, for those that fit no shape known here.
#[derive(Deserialize)]
pub(super) struct Named<'e> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'e, str>,
}

pub(super) const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

impl Counts {
    pub(super) fn learn(&mut self, later: Option<Counts>) {
        let Some(later) = later else { return };
        self.fresh = later.fresh.or(self.fresh);
        self.output = later.output.or(self.output);
        self.cached = later.cached.or(self.cached);
        self.cache_write = later.cache_write.or(self.cache_write);
    }

    /// This provider counts what came from its cache, and what went there, beside the rest. The
    /// kernel takes `input + output` for the size of the context (it compacts and reserves by it),
    /// so `input` has to be all of the prompt.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cached.unwrap_or(0);
        let cache_write = self.cache_write.unwrap_or(0);
        let fresh = self.fresh.unwrap_or(0);
        Usage {
            input: fresh.saturating_add(cached).saturating_add(cache_write),
            output: self.output.unwrap_or(0),
            cached,
            cache_write,
            reasoning: 0,
        }
    }
}
