//! How a run ended, in one line.

use locum_kernel::{Agent, AgentId, AskTo, Session, Time, view};

use super::{Lack, Teller, Trouble};
use crate::clock::rfc3339;
use crate::form;
use crate::line::{AgentResult, Body, Line, RunResult, Status, usd};

impl Teller {
    /// The closing line of a run. It has the number after the last, and is told once: the caller
    /// lets the session go after it.
    #[must_use]
    pub fn result(&self, session: &Session, now: Time, parked: bool) -> Line {
        let asks = session.asks().any(|ask| ask.to == AskTo::Person);
        let pending = session.agents().iter().skip(1).any(|agent| !agent.has_ended());
        let main = session.agent(AgentId::MAIN);
        let status = match self.exchange.trouble {
            _ if parked && (asks || session.stack().len() > 1) => Status::Parked,
            Some(Trouble::Model) => Status::Error,
            Some(Trouble::Limit) => Status::Limit,
            None if asks => Status::NeedsInput,
            None if pending => Status::Parked,
            None if !self.exchange.denials.is_empty() => Status::Denied,
            None => match self.exchange.lacked {
                Some(Lack::Answer) => Status::NeedsInput,
                Some(Lack::Agent) => Status::Limit,
                None if main.is_some_and(|main| main.flaw().is_some()) => Status::Failed,
                None => Status::Ok,
            },
        };
        self.closing(session, now, status, status.exit())
    }

    /// The closing line of a run that was stopped in the middle.
    #[must_use]
    pub fn stopped(&self, session: &Session, now: Time, exit: u8) -> Line {
        self.closing(session, now, Status::Cancelled, exit)
    }

    fn closing(&self, session: &Session, now: Time, status: Status, exit: u8) -> Line {
        let view = view(session, now);
        let rows = view.agents;
        let ended = |id: AgentId| session.agent(id).is_none_or(Agent::has_ended);
        let below = rows.iter().filter(|row| row.id != AgentId::MAIN);
        let children_pending = below.filter(|row| !ended(row.id)).count();
        let agents = rows.into_iter().map(|row| AgentResult {
            path: row.path,
            state: row.state,
            own_usd: (!row.unpriced).then_some(row.own_micro_usd).and_then(usd),
            tree_usd: (!row.tree_unpriced).then_some(row.tree_micro_usd).and_then(usd),
        });
        let exchange = &self.exchange;
        let text = exchange.text.clone();
        let structured = session.form(AgentId::MAIN).and_then(|_| form::value(&text).ok());
        let main = session.agent(AgentId::MAIN).filter(|_| status == Status::Failed);
        let result = RunResult {
            status,
            text,
            structured,
            flaw: main.and_then(Agent::flaw).map(str::to_owned),
            failed: main.and_then(Agent::failed),
            usage: exchange.usage,
            cost_usd: (!exchange.unpriced).then_some(exchange.micro_usd).and_then(usd),
            agents: agents.collect(),
            denials: exchange.denials.clone(),
            denial_reasons: exchange.reasons.clone(),
            children_pending,
            exit,
            resume: (status != Status::Ok).then(|| self.resume_line(status)),
        };
        self.line(rfc3339(now), self.told + 1, AgentId::MAIN, Body::RunResult(Box::new(result)))
    }

    /// Who only waits goes on by itself; whoever stopped for a reason, when somebody says so.
    pub(super) fn resume_line(&self, status: Status) -> String {
        let key = shell_word(&self.session);
        match status {
            // The question is gone with the turn that asked it.
            Status::NeedsInput if matches!(self.exchange.lacked, Some(Lack::Answer)) => {
                format!("locum run \"the answer\" --resume {}", self.session)
            }
            Status::Parked | Status::NeedsInput | Status::Cancelled | Status::Ok => {
                format!("locum run --resume {key}")
            }
            Status::Failed | Status::Denied | Status::Limit | Status::Error => {
                format!("locum run \"go on\" --resume {key}")
            }
        }
    }
}

/// A word that a shell reads as it is meant: the line is there to be pasted.
fn shell_word(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:@%+=,".contains(sign);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
