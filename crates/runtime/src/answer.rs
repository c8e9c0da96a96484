//! What people say to an ask, whatever surface they say it on, as the verdict it means. A word
//! that does not fit the kind of ask is passed on as it is: the kernel refuses it and says why.

use locum_kernel::{Allow, AskKind, Digest, Scope, Verdict};
use serde_json::Value;

/// Yes: run it, go on, or pay what is needed.
#[must_use]
pub fn allow(kind: &AskKind, scope: Scope, arguments: Option<Value>) -> Verdict {
    match kind {
        AskKind::Continue { .. } => Verdict::Continue { text: None },
        AskKind::Budget { micro_usd, .. } => Verdict::TopUp { micro_usd: *micro_usd },
        AskKind::Approval(_) | AskKind::Question { .. } => {
            Verdict::Allow(Allow { scope, arguments, ..Allow::default() })
        }
    }
}

/// What whoever answers has seen: an allow is for exactly that.
#[must_use]
pub fn seen(kind: &AskKind) -> Option<Digest> {
    match kind {
        AskKind::Approval(approval) => Some(approval.digest.clone()),
        AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
    }
}

#[must_use]
pub fn deny(message: Option<String>) -> Verdict {
    Verdict::Deny { message }
}

/// Words: the answer to a question, or what a paused agent is to hear when it goes on.
#[must_use]
pub fn words(kind: &AskKind, text: String) -> Verdict {
    match kind {
        AskKind::Continue { .. } => Verdict::Continue { text: Some(text) },
        AskKind::Question { .. } | AskKind::Approval(_) | AskKind::Budget { .. } => {
            Verdict::Answer { text }
        }
    }
}
