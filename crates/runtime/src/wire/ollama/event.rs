//! The lines of a streamed answer, as they are spelled.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::text::Text;

#[derive(Deserialize)]
pub(super) struct Heard<'e> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'e>>,
    #[serde(default)]
    pub(super) done: bool,
    #[serde(borrow, default)]
    pub(super) done_reason: Text<'e>,
    #[serde(default)]
    pub(super) prompt_eval_count: Option<u64>,
    #[serde(default)]
    pub(super) eval_count: Option<u64>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Message<'e> {
    #[serde(borrow, default)]
    pub(super) content: Text<'e>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'e>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
pub(super) struct Call {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) function: Function,
}

#[derive(Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
}
