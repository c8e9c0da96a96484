//! How a run ended, in one line.

use locum_kernel::{AgentId, Session, Time, view};

use super::{Teller, Trouble};
use crate::line::{AgentResult, Body, Line, RunResult, Status, usd};

impl Teller {
    /// The closing line of a run. It has the number after the last, and is told once: the caller
    /// lets the session go after it.
    #[must_use]
    pub fn result(&self, session: &Session, now: Time) -> Line {
        let view = view(session, now);
        let asks = view.asks.len();
        let rows = view.agents;
        let ended = |id: AgentId| session.agent(id).is_none_or(locum_kernel::Agent::has_ended);
        let below = rows.iter().filter(|row| row.id != AgentId::MAIN);
        let children_pending = below.filter(|row| !ended(row.id)).count();
        let agents = rows.into_iter().map(|row| AgentResult {
            path: row.path,
            state: row.state,
            own_usd: (!row.unpriced).then_some(row.own_micro_usd).and_then(usd),
            tree_usd: (!row.tree_unpriced).then_some(row.tree_micro_usd).and_then(usd),
        });
        let exchange = &self.exchange;
        let status = match exchange.trouble {
            Some(Trouble::Model) => Status::Error,
            Some(Trouble::Limit) => Status::Limit,
            None if asks > 0 => Status::NeedsInput,
            None if children_pending > 0 => Status::Parked,
            None => Status::Ok,
        };
        let result = RunResult {
            status,
            text: exchange.text.clone(),
            structured: None,
            usage: exchange.usage,
            cost_usd: (!exchange.unpriced).then_some(exchange.micro_usd).and_then(usd),
            agents: agents.collect(),
            denials: Vec::new(),
            children_pending,
            exit: status.exit(),
            resume: (status != Status::Ok).then(|| self.resume_line()),
        };
        self.line(now, self.told + 1, AgentId::MAIN, Body::RunResult(Box::new(result)))
    }

    /// Whoever stopped for a reason goes on when somebody says so.
    pub(super) fn resume_line(&self) -> String {
        format!("locum run \"go on\" --resume {}", self.session)
    }
}
