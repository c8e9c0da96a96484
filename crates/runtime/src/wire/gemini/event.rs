//! The events of a streamed answer, as they are spelled: each is a whole response with what is new.

use locum_kernel::Usage;
use serde::Deserialize;
use serde::de::{Deserialize as Read, Deserializer, IgnoredAny};
use serde_json::{Number, Value};

use crate::wire::text::Text;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Heard<'e> {
    #[serde(borrow, default)]
    pub(super) candidates: Vec<Candidate<'e>>,
    #[serde(default)]
    pub(super) prompt_feedback: Option<Feedback>,
    #[serde(default)]
    pub(super) usage_metadata: Option<Counts>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'e> {
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'e>>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
    #[serde(default)]
    pub(super) finish_message: Option<String>,
    #[serde(default)]
    pub(super) index: u64,
}

#[derive(Deserialize)]
pub(super) struct Content<'e> {
    #[serde(borrow, default)]
    pub(super) parts: Vec<Part<'e>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'e> {
    #[serde(borrow, default)]
    pub(super) text: Text<'e>,
    /// The text is what the model thought, not what it says.
    #[serde(default)]
    pub(super) thought: bool,
    #[serde(borrow, default)]
    pub(super) thought_signature: Text<'e>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<Call<'e>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call<'e> {
    #[serde(borrow, default)]
    pub(super) id: Text<'e>,
    #[serde(borrow, default)]
    pub(super) name: Text<'e>,
    #[serde(default)]
    pub(super) args: Option<Value>,
    #[serde(borrow, default)]
    pub(super) partial_args: Vec<Partial<'e>>,
    #[serde(default)]
    pub(super) will_continue: bool,
}

/// A value inside the arguments, or a part of a text there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Partial<'e> {
    #[serde(borrow, default)]
    pub(super) json_path: Text<'e>,
    #[serde(default)]
    pub(super) string_value: Option<String>,
    #[serde(default)]
    pub(super) number_value: Option<Number>,
    #[serde(default)]
    pub(super) bool_value: Option<bool>,
    #[serde(default)]
    pub(super) null_value: Present,
    #[serde(default)]
    pub(super) will_continue: bool,
}

/// It is there, whatever it says: null is spelled as null or as the name of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Present(pub(super) bool);

impl<'de> Read<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Present, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Present(true))
    }
}

/// What the provider says of the question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback {
    #[serde(default)]
    pub(super) block_reason: Option<String>,
    #[serde(default)]
    pub(super) block_reason_message: Option<String>,
}

/// The provider's counts. Those of a later event stand for the whole answer so far.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    #[serde(default, rename = "promptTokenCount")]
    prompt: Option<u64>,
    #[serde(default, rename = "toolUsePromptTokenCount")]
    of_tools: Option<u64>,
    #[serde(default, rename = "cachedContentTokenCount")]
    cached: Option<u64>,
    #[serde(default, rename = "candidatesTokenCount")]
    said: Option<u64>,
    #[serde(default, rename = "thoughtsTokenCount")]
    thought: Option<u64>,
}

impl Counts {
    pub(super) fn learn(&mut self, later: Option<Counts>) {
        let Some(later) = later else { return };
        self.prompt = later.prompt.or(self.prompt);
        self.of_tools = later.of_tools.or(self.of_tools);
        self.cached = later.cached.or(self.cached);
        self.said = later.said.or(self.said);
        self.thought = later.thought.or(self.thought);
    }

    /// This provider counts what came from its cache into the prompt already, but what the model
    /// thought not into what it said; both are paid for as output.
    pub(super) fn usage(self) -> Usage {
        let reasoning = self.thought.unwrap_or(0);
        Usage {
            input: self.prompt.unwrap_or(0).saturating_add(self.of_tools.unwrap_or(0)),
            output: self.said.unwrap_or(0).saturating_add(reasoning),
            cached: self.cached.unwrap_or(0),
            cache_write: 0,
            reasoning,
        }
    }
}
