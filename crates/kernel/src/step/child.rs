//! Ends: how an agent stops, takes everyone below it along, and hands its result to whoever
//! called it, all in one decision. There is no instant at which a child is gone and its parent
//! has not heard.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::{Value, json};

use super::Step;
use crate::ask::{AskTo, Verdict};
use crate::event::Event;
use crate::id::{AgentId, AskId, Seq};
use crate::limits::RESULT_BYTES_MAX;
use crate::message::{Note, Output, Source, Who, clip};
use crate::receipt::{Outcome, Receipt, Why};
use crate::state::{Agent, CallState, Link, Phase, WaitFor};

impl Step<'_> {
    /// Ends an agent and its subtree, deepest first, and hands its result over.
    pub(super) fn finish(
        &mut self,
        id: AgentId,
        outcome: Outcome,
        result: String,
        why: Why,
        by: Who,
    ) {
        assert!(id != AgentId::MAIN, "main never ends");
        let tree = self.session.live_subtree(id);
        let pending: Vec<u32> = tree.iter().map(|id| self.live_children(*id)).collect();
        let (below_why, below_by) = match outcome {
            Outcome::Cancelled => (why.clone(), by.clone()),
            Outcome::Done | Outcome::Failed => (Why::ParentEnded, Who::Agent(id)),
        };
        for (below, pending) in tree.iter().zip(&pending).skip(1).rev() {
            let text = String::from("cancelled: the agent above it ended");
            let (why, by) = (below_why.clone(), below_by.clone());
            self.end_one(*below, Outcome::Cancelled, text, why, by, *pending);
        }
        let pending = pending.first().copied().unwrap_or_default();
        let handle = (result.len() > RESULT_BYTES_MAX).then(|| format!("{id}"));
        self.end_one(id, outcome, clip(result, RESULT_BYTES_MAX), why, by, pending);
        self.hand_over(id, handle);
    }

    fn live_children(&self, id: AgentId) -> u32 {
        self.session
            .agent(id)
            .map_or(0, |agent| u32::try_from(agent.live.len()).unwrap_or(u32::MAX))
    }

    fn end_one(
        &mut self,
        id: AgentId,
        outcome: Outcome,
        result: String,
        why: Why,
        by: Who,
        children_pending: u32,
    ) {
        self.cancel_calls(id, &by);
        if let Some(Phase::Paused { ask: Some(ask), .. }) =
            self.session.agent(id).map(|agent| &agent.phase)
        {
            let ask = *ask;
            self.withdraw(ask, "the agent ended");
        }
        let Some(agent) = self.session.agent(id) else { return };
        let followers = agent.followers.clone();
        let receipt = Receipt {
            outcome,
            why,
            by,
            tally: agent.tally.clone(),
            tree_micro_usd: agent.account.spent.micro_usd,
            children_pending,
            active_ms: agent.account.clock.read(self.at),
        };
        self.emit(Event::Ended { agent: id, result, receipt: Box::new(receipt) });
        for follower in followers {
            let free = self.session.agent(follower).is_some_and(|next| next.after.is_empty());
            if free && self.session.agent(follower).is_some_and(|next| !next.has_ended()) {
                self.line_up(follower);
            }
        }
    }

    /// The parent's side: the one result of the call that waits, or one note.
    fn hand_over(&mut self, id: AgentId, handle: Option<String>) {
        let Some(agent) = self.session.agent(id) else { return };
        let (Some((parent, link)), Some(end)) = (agent.parent, &agent.end) else { return };
        let text = end.result.clone();
        let receipt = Some(Box::new(end.receipt.clone()));
        match link {
            Link::Result(call) => {
                let is_error = end.receipt.outcome != Outcome::Done;
                let output = Output { text, is_error, handle, deeds: Vec::new(), receipt };
                self.emit(Event::Returned { agent: parent, call, output, reads: Vec::new() });
            }
            Link::Note => {
                let note = Note { source: Source::Child(id), text, input: None, receipt };
                self.emit(Event::Heard { agent: parent, note });
                self.check_wait(parent);
            }
        }
        self.ready.push_back(parent);
    }

    /// Somebody stops an agent and everyone below it.
    pub(super) fn stop(&mut self, id: AgentId, text: &str, by: &Who) {
        let why = Why::Stopped(text.into());
        self.finish(id, Outcome::Cancelled, text.into(), why, by.clone());
    }

    pub(super) fn withdraw(&mut self, ask: AskId, why: &str) {
        let verdict = Verdict::Withdrawn { why: why.into() };
        self.emit(Event::Settled { ask, verdict, by: Who::Runtime, input: None });
    }

    /// Ends an agent's `wait` if what it waits for has come, somebody it waits for needs it, or
    /// a person spoke to it.
    pub(super) fn check_wait(&mut self, id: AgentId) {
        let Some(agent) = self.session.agent(id) else { return };
        let Some((_, wait)) = awaiting(agent) else { return };
        if let Some(reason) = self.wait_is_over(agent, wait) {
            self.end_wait(id, reason);
        }
    }

    pub(super) fn wait_is_over(&self, agent: &Agent, wait: &WaitFor) -> Option<&'static str> {
        let spoken = agent.readable().any(|(_, note)| matches!(note.source, Source::Person { .. }));
        if spoken {
            return Some("the user spoke");
        }
        let ended = |id: &AgentId| self.session.agent(*id).is_none_or(Agent::has_ended);
        if wait.all && wait.agents.iter().all(ended) {
            return Some("all ended");
        }
        if !wait.all && (wait.agents.is_empty() || wait.agents.iter().any(ended)) {
            return Some("one ended");
        }
        let needs = wait.agents.iter().any(|id| self.needs_parent(*id));
        needs.then_some("an agent needs you")
    }

    /// Paused, or asking its parent: only the parent (or a person) can move it.
    pub(super) fn needs_parent(&self, id: AgentId) -> bool {
        let Some(agent) = self.session.agent(id) else { return false };
        let asks = agent.calls().any(|call| match call.state {
            CallState::Asked(ask) => {
                self.session.asks.get(&ask).is_some_and(|ask| ask.to == AskTo::Parent)
            }
            CallState::Pending
            | CallState::Approved
            | CallState::Running { .. }
            | CallState::Child(_)
            | CallState::Awaiting(_)
            | CallState::Returned(_) => false,
        });
        asks || matches!(agent.phase, Phase::Paused { .. })
    }

    /// Answers a `wait`. What the answer tells need not be told again, so those notes are read.
    pub(super) fn end_wait(&mut self, id: AgentId, reason: &str) {
        let Some(agent) = self.session.agent(id) else { return };
        let Some((call, wait)) = awaiting(agent) else { return };
        let told: Vec<(Seq, AgentId)> = agent
            .inbox
            .iter()
            .filter_map(|(key, note)| match note.source {
                Source::Child(child) if wait.agents.contains(&child) => Some((*key, child)),
                Source::Child(_)
                | Source::Brief
                | Source::Person { .. }
                | Source::Parent
                | Source::Runtime => None,
            })
            .collect();
        let rows: Vec<Value> = wait
            .agents
            .iter()
            .map(|child| {
                let fresh = told.iter().any(|(_, of)| of == child);
                self.outcome_row(*child, fresh, RESULT_BYTES_MAX / 2 / wait.agents.len().max(1))
            })
            .collect();
        let text = json!({ "ended_because": reason, "agents": rows });
        let output = Output::ok(clip(format!("{text}"), RESULT_BYTES_MAX));
        let reads = told.into_iter().map(|(key, _)| key).collect();
        self.emit(Event::Returned { agent: id, call, output, reads });
        self.ready.push_back(id);
    }
}

fn awaiting(agent: &Agent) -> Option<(crate::id::CallId, &WaitFor)> {
    agent.calls().find_map(|call| match &call.state {
        CallState::Awaiting(wait) => Some((call.id, wait)),
        CallState::Pending
        | CallState::Asked(_)
        | CallState::Approved
        | CallState::Running { .. }
        | CallState::Child(_)
        | CallState::Returned(_) => None,
    })
}
