//! What a response that has ended comes to.

use locum_kernel::{Failure, FailureKind, Reply, Use};
use serde_json::{Value, json};

use super::item::{Body, Item, State, given_back, parsed};
use crate::wire::{failed, malformed};

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// `listed`: with its items.
    Completed {
        listed: bool,
    },
    Incomplete,
}

/// The reply these items come to, if the response ended so that there is one.
pub(super) fn reply(
    items: impl Iterator<Item = Item>,
    end: End,
    stop: Option<&str>,
) -> Result<Reply, Failure> {
    if end == End::Incomplete && stop == Some("content_filter") {
        return Err(failed(FailureKind::Filtered, "the provider's filter stopped the answer"));
    }
    let mut reply = Reply::default();
    let mut order = Order::default();
    for item in items {
        let state = item.state;
        match item.body {
            Body::Message { refusal, .. } if !refusal.is_empty() => {
                return Err(failed(FailureKind::Filtered, refusal));
            }
            Body::Message { .. } | Body::Call { .. }
                if state == State::Open && end == (End::Completed { listed: true }) =>
            {
                return Err(malformed("the answer ended inside an item"));
            }
            Body::Call { .. } if state == State::Open => match end {
                End::Completed { .. } => {
                    return Err(malformed("the answer ended inside a call"));
                }
                // There was no room for it; what was ended before stands.
                End::Incomplete => {}
            },
            Body::Message { said, phase, .. } => {
                order.message(said.text.len(), phase);
                if reply.text.is_empty() {
                    reply.text = said.text;
                } else {
                    reply.text.push_str(&said.text);
                }
            }
            Body::Call { name, arguments, .. } => {
                order.call();
                let arguments = parsed(&arguments, state);
                reply.calls.push(Use::new(name, arguments));
            }
            // Half a thought cannot be taken up again.
            Body::Reasoning { whole, .. } if state == State::Done => {
                order.reasoning(whole.and_then(given_back));
            }
            Body::Reasoning { .. } | Body::Other => {}
        }
    }
    reply.reasoning = order.kept();
    Ok(reply)
}

/// What the provider needs back beside text and calls: its reasoning, and between which of them it
/// stood. The usual order, reasoning before anything else, needs no telling.
#[derive(Default)]
struct Order {
    items: Vec<Value>,
    told: bool,
}

impl Order {
    fn message(&mut self, bytes: usize, phase: Option<String>) {
        let mut place = json!({ "type": "message", "bytes": bytes });
        if let Some(phase) = phase {
            place["phase"] = phase.into();
            self.told = true;
        }
        self.items.push(place);
    }

    fn call(&mut self) {
        self.items.push(json!({ "type": "function_call" }));
    }

    fn reasoning(&mut self, item: Option<Value>) {
        let Some(item) = item else { return };
        self.told |= self.items.iter().any(|before| before["type"] != "reasoning");
        self.items.push(item);
    }

    fn kept(mut self) -> Option<Value> {
        let is_reasoning = |item: &Value| item["type"] == "reasoning";
        // What led to nothing is refused, unless there is nothing at all: that can be said.
        if let Some(last) = self.items.iter().rposition(|item| !is_reasoning(item)) {
            self.items.truncate(last + 1);
        }
        if !self.told {
            self.items.retain(is_reasoning);
        }
        (!self.items.is_empty()).then_some(Value::Array(self.items))
    }
}
