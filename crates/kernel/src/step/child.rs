//! Ends: how an agent stops, takes everyone below it along, and hands its result to whoever
//! called it, all in one decision. There is no instant at which a child is gone and its parent
//! has not heard.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use serde_json::{Value, json};

use super::Step;
use crate::limits::RESULT_BYTES_MAX;
use crate::{
    Agent, AgentId, AskId, AskTo, CallId, Copied, Event, Link, Note, Outcome, Output, Receipt, Seq,
    Source, Verdict, WaitFor, Who, Why, clip, headline,
};

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
        let (below_text, below_why, below_by) = match outcome {
            Outcome::Cancelled => (result.clone(), why.clone(), by.clone()),
            Outcome::Done | Outcome::Failed => {
                ("cancelled: the agent above it ended".into(), Why::ParentEnded, Who::Agent(id))
            }
        };
        // Counted before anybody ends.
        let children = |id: AgentId| (id, self.session[id].live.len());
        let tree: Vec<_> = self.session.live_subtree(id).into_iter().map(children).collect();
        let (_, pending) = children(id);
        let mut unread = Vec::new();
        for (below, pending) in tree.into_iter().skip(1).rev() {
            let (text, why, by) = (below_text.clone(), below_why.clone(), below_by.clone());
            unread.extend(self.end_one(below, Outcome::Cancelled, text, why, by, pending));
        }
        let handle = (result.len() > RESULT_BYTES_MAX).then(|| format!("{id}"));
        let result = clip(result, RESULT_BYTES_MAX);
        unread.extend(self.end_one(id, outcome, result, why, by, pending));
        self.hand_over(id, handle);
        self.pass_on(unread);
    }

    /// What people said to somebody who ended before reading it reaches whoever has the floor.
    fn pass_on(&mut self, unread: Vec<Note>) {
        let top = self.session.top();
        for note in unread {
            self.emit(Event::Heard { agent: top, note });
            self.check_wait(top);
            self.ready.push_back(top);
        }
    }

    fn end_one(
        &mut self,
        id: AgentId,
        outcome: Outcome,
        result: String,
        why: Why,
        by: Who,
        pending: usize,
    ) -> Vec<Note> {
        self.cancel_calls(id, "Cancelled", &by);
        if let Some(ask) = self.session[id].pause_ask() {
            self.withdraw(ask, "the agent ended");
        }
        let agent = &self.session[id];
        let followers = agent.followers.clone();
        let label = agent.label.clone();
        let unread = agent.inbox.iter().filter(|(_, note)| note.is_from_person());
        let unread = unread.map(|(_, note)| {
            let text = format!("(said to {label}, who had just ended) {}", note.text);
            Note { reply_to: agent.reply_to.clone(), ..Note::new(note.source.clone(), text) }
        });
        let unread = unread.collect();
        let receipt = Receipt {
            outcome,
            why,
            by,
            tally: agent.tally.clone(),
            tree_micro_usd: agent.account.spent.micro_usd,
            unpriced: agent.account.unpriced,
            children_pending: u32::try_from(pending).unwrap_or(u32::MAX),
            unread: u32::try_from(agent.inbox.len()).unwrap_or(u32::MAX),
            active_ms: agent.account.clock.read(self.at),
            copy: agent.copy.place.clone().filter(|_| agent.copy.used),
        };
        let words = format!("{label} ({id}) {}, {:?}", outcome.word(), headline(&result, 200));
        self.emit(Event::Ended { agent: id, result, receipt: Box::new(receipt) });
        for follower in followers {
            if self.session[follower].has_ended() {
                continue;
            }
            if outcome != Outcome::Done {
                self.tell(follower, Source::Runtime, format!("{words}, which you come after"));
            }
            self.ready.push_back(follower);
        }
        unread
    }

    /// The parent's side: the one result of the call that waits, or one note.
    fn hand_over(&mut self, id: AgentId, handle: Option<String>) {
        let agent = &self.session[id];
        let (Some((parent, link)), Some(end)) = (agent.parent, &agent.end) else { return };
        let mut text = end.result.clone();
        // Only the edge can tell whether there is work, and that takes longer than an end may.
        if let Some(Copied { path, branch }) = &end.receipt.copy
            && !text.contains(path.as_str())
        {
            let _ = write!(text, "\n[whatever it changed is in {path} on the branch {branch}]");
        }
        let receipt = Some(Box::new(end.receipt.clone()));
        match link {
            Link::Result(call) => {
                let is_error = end.receipt.outcome != Outcome::Done;
                let output = Output { text, is_error, handle, receipt, ..Output::default() };
                self.give(parent, call, output);
            }
            Link::Note => {
                let note = Note { receipt, handle, ..Note::new(Source::Child(id), text) };
                self.emit(Event::Heard { agent: parent, note });
            }
        }
        self.check_waits_above(id);
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

    /// Somebody ended or needs help: whoever above waits for it may go on, or has nobody left
    /// to wait for.
    pub(super) fn check_waits_above(&mut self, id: AgentId) {
        let mut at = self.session[id].parent;
        while let Some((above, _)) = at {
            self.check_wait(above);
            self.ready.push_back(above);
            at = self.session[above].parent;
        }
    }

    /// Ends an agent's `wait` if what it waits for has come, somebody it waits for needs it, or
    /// a person spoke to it.
    pub(super) fn check_wait(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let Some((_, wait)) = awaiting(agent) else { return };
        if let Some(reason) = self.wait_is_over(agent, wait) {
            self.end_wait(id, reason);
        }
    }

    pub(super) fn wait_is_over(&self, agent: &Agent, wait: &WaitFor) -> Option<&'static str> {
        if agent.readable().any(|(_, note)| note.is_from_person()) {
            return Some("the user spoke");
        }
        let ended = |id: &AgentId| self.session[*id].has_ended();
        if wait.all && wait.agents.iter().all(ended) {
            return Some("all ended");
        }
        if !wait.all && (wait.agents.is_empty() || wait.agents.iter().any(ended)) {
            return Some("one ended");
        }
        let news = |id: &&AgentId| self.needs_parent(**id) && !wait.known.contains(id);
        let stuck = |id: &AgentId| ended(id) || self.needs_parent(*id);
        let needs = wait.agents.iter().any(|id| news(&id)) || wait.agents.iter().all(stuck);
        needs.then_some("an agent needs you")
    }

    /// Paused, or asking its parent: only the parent (or a person) can move it.
    pub(super) fn needs_parent(&self, id: AgentId) -> bool {
        let agent = &self.session[id];
        agent.is_paused() || self.question_of(agent, &[AskTo::Parent]).is_some()
    }

    /// Answers a `wait`. What the answer tells need not be told again, so those notes are read.
    pub(super) fn end_wait(&mut self, id: AgentId, reason: &str) {
        let agent = &self.session[id];
        let Some((call, wait)) = awaiting(agent) else { return };
        let told = ends_told(agent, &wait.agents);
        let rows: Vec<Value> = wait
            .agents
            .iter()
            .map(|child| {
                let fresh = told.iter().any(|(_, of)| of == child);
                let mine = self.session[*child].is_child_of(id);
                self.outcome_row(
                    *child,
                    fresh || !mine,
                    RESULT_BYTES_MAX / 2 / wait.agents.len().max(1),
                )
            })
            .collect();
        let text = json!({ "ended_because": reason, "agents": rows });
        let output = Output::ok(clip(format!("{text}"), RESULT_BYTES_MAX));
        let reads = told.into_iter().map(|(key, _)| key).collect();
        self.emit(Event::Returned { agent: id, call, output, reads });
        self.ready.push_back(id);
    }
}

fn awaiting(agent: &Agent) -> Option<(CallId, &WaitFor)> {
    agent.calls().find_map(|call| Some((call.id, call.wait_for()?)))
}

/// The unread notes that tell of the end of one of these.
pub(super) fn ends_told(agent: &Agent, of: &[AgentId]) -> Vec<(Seq, AgentId)> {
    let ends = agent.inbox.iter().filter(|(_, note)| note.receipt.is_some());
    let ends = ends.filter_map(|(key, note)| {
        let Source::Child(child) = note.source else { return None };
        of.contains(&child).then_some((*key, child))
    });
    ends.collect()
}
