//! What an ask says of itself: when it is opened, and to a run that finds it open.

use locum_kernel::{AskId, AskKind, AskTo, Scope, Session, summary};

use super::Teller;
use crate::line::{AskOpened, OpenAsk};

pub(super) fn opened(id: AskId, to: AskTo, kind: &AskKind) -> AskOpened {
    let (input, options) = match kind {
        AskKind::Approval(it) => (Some(it.arguments.clone()), Vec::new()),
        AskKind::Question { options, .. } => (None, options.clone()),
        AskKind::Continue { .. } | AskKind::Budget { .. } => (None, Vec::new()),
    };
    let scopes = match kind {
        AskKind::Approval(_) => vec![Scope::Once, Scope::Agent, Scope::Fanout, Scope::Project],
        AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => vec![],
    };
    let because = match kind {
        AskKind::Approval(it) => Some(it.because.clone()),
        AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
    };
    AskOpened {
        because,
        id: id.to_string(),
        to,
        kind: kind.word(),
        summary: summary(kind),
        input,
        options,
        scopes,
    }
}

impl Teller {
    /// Asks told as opened before this entry that are open after it too. One that the entry itself
    /// opens or closes is told by a line of its own.
    pub(super) fn still_open(&self, after: &Session) -> Vec<OpenAsk> {
        let known = after.asks().filter(|ask| self.asks.contains_key(&ask.id));
        let card = |ask: &locum_kernel::Ask| {
            let agent = self.part(ask.agent)?.name.clone();
            Some(OpenAsk { agent, ask: opened(ask.id, ask.to, &ask.kind) })
        };
        known.filter_map(card).collect()
    }
}
