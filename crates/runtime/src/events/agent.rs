//! What one agent does: births, turns, calls, words, ends.

use locum_kernel::{
    AgentId, CallId, Class, Deed, Failure, Key, Limit, Mode, NOBODY_TO_ASK, Output, Pause, Purpose,
    Receipt, Reply, Seq, Spawn, Time, Usage, Why, errand, limits, spawn_limit,
};

use serde_json::Value;

use super::cast::Doing;
use super::{Lack, Teller, Telling, Trouble};
use crate::line::{
    AgentFinished, Body, CommandLine, DenialReason, FileLine, FloorReason, ReceiptLine, Status,
    ToolFinished, usd,
};

/// The code of a model call that failed for good; the command line shows the same.
const MODEL_FAILED: &str = "E160";

impl Teller {
    pub(super) fn spawned(&mut self, telling: &mut Telling<'_>, spawn: &Spawn) {
        let agent = telling.after.agent(spawn.agent);
        self.enter(spawn, agent.map(|agent| agent.name().to_owned()).unwrap_or_default());
        if spawn.mode == Mode::Floor {
            let parent = spawn.parent.and_then(|id| self.stack.iter().position(|at| *at == id));
            let place = parent.map_or(self.stack.len(), |index| index + 1);
            self.stack.insert(place, spawn.agent);
        }
        match (spawn.parent, spawn.call) {
            (None, _) => self.run_started(telling, false),
            (Some(parent), Some(call)) => {
                self.start(telling, parent, call, Some(Class::Delegate));
            }
            (Some(_), None) => telling.newcomer = Some(spawn.agent),
        }
    }

    pub(super) fn born(&mut self, telling: &mut Telling<'_>, id: AgentId, brief: &str) {
        let Some(part) = self.part(id) else { return };
        let mode = part.name.mode;
        let spawned = Body::AgentSpawned {
            definition: part.definition.clone(),
            mode,
            brief: brief.to_owned(),
            parent_call: part.parent_call.map(|call| call.to_string()),
        };
        self.say(telling, id, spawned);
        if mode == Mode::Floor {
            self.floor(telling, id, FloorReason::Pushed);
        }
    }

    fn floor(&mut self, telling: &mut Telling<'_>, id: AgentId, reason: FloorReason) {
        let stack = self.stack_paths();
        self.say(telling, id, Body::FloorChanged { stack, reason });
    }

    pub(super) fn switched(&mut self, telling: &mut Telling<'_>, id: AgentId, mode: Mode) {
        let Some(part) = self.part_mut(id) else { return };
        part.name.mode = mode;
        self.stack.retain(|on_stack| *on_stack != id);
        let reason = match mode {
            Mode::Floor => {
                self.stack.push(id);
                FloorReason::Foreground
            }
            Mode::Worker | Mode::Call => FloorReason::Background,
        };
        self.floor(telling, id, reason);
    }

    pub(super) fn turn_began(&mut self, telling: &mut Telling<'_>, id: AgentId, purpose: Purpose) {
        if let Some(part) = self.part_mut(id) {
            part.tries = 0;
        }
        // A summary is told when it is there, as `compacted`.
        if let Purpose::Summary { .. } = purpose {
            return;
        }
        let Some(part) = self.part_mut(id) else { return };
        part.turns += 1;
        part.thinks = true;
        let started = Body::TurnStarted { turn: part.turns, model: part.model.clone() };
        self.say(telling, id, started);
    }

    pub(super) fn replied(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        seq: Seq,
        reply: &Reply,
    ) {
        self.spend(reply.usage, reply.micro_usd);
        if id == AgentId::MAIN {
            self.exchange.trouble = None;
        }
        let Some(part) = self.part_mut(id) else { return };
        part.replies += 1;
        let calls = reply.calls.iter().zip(0..).map(|(call, index)| Doing {
            id: CallId { turn: seq, index },
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            since: None,
        });
        part.calls = calls.collect();
        // On the floor the same words follow as `Spoke`.
        let silent = part.name.mode != Mode::Floor && !reply.text.trim().is_empty();
        self.turn_ended(telling, id, Some(reply));
        if silent {
            let text = reply.text.clone();
            self.say(telling, id, Body::Message { role: "assistant", text });
        }
    }

    pub(super) fn spend(&mut self, usage: Usage, micro_usd: Option<u64>) {
        let exchange = &mut self.exchange;
        exchange.usage.add(usage);
        match micro_usd {
            Some(cost) => exchange.micro_usd = exchange.micro_usd.saturating_add(cost),
            None => exchange.unpriced = true,
        }
    }

    /// Closes the turn that was told as started, if there is one.
    fn turn_ended(&mut self, telling: &mut Telling<'_>, id: AgentId, reply: Option<&Reply>) {
        let Some(part) = self.part_mut(id).filter(|part| part.thinks) else { return };
        part.thinks = false;
        let finished = Body::TurnFinished {
            turn: part.turns,
            model: part.model.clone(),
            usage: reply.map(|reply| reply.usage.into()),
            cost_usd: reply.and_then(|reply| reply.micro_usd).and_then(usd),
        };
        self.say(telling, id, finished);
    }

    pub(super) fn turn_failed(&mut self, telling: &mut Telling<'_>, id: AgentId) {
        self.turn_ended(telling, id, None);
    }

    pub(super) fn retrying(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        attempt: u32,
        not_before: Time,
        failure: &Failure,
    ) {
        let Some(part) = self.part_mut(id) else { return };
        part.failures += 1;
        part.tries = attempt.saturating_sub(1);
        let wait_ms = not_before.since(telling.at);
        let (status, cause) = (failure.status, failure.to_string());
        let retry = Body::Retry { attempt, max: limits::TRIES_MAX, wait_ms, status, cause };
        self.say(telling, id, retry);
    }

    pub(super) fn faulted(&mut self, telling: &mut Telling<'_>, id: AgentId, failure: &Failure) {
        let Some(part) = self.part_mut(id) else { return };
        part.failures += 1;
        self.turn_ended(telling, id, None);
        // Below main it is for the agent above to decide what is to be done.
        let mut remedy = Vec::new();
        if id == AgentId::MAIN {
            self.exchange.trouble = Some(Trouble::Model);
            remedy.push(self.resume_line(Status::Error));
        }
        let error = Body::Error {
            code: MODEL_FAILED,
            message: failure.to_string(),
            cause: failure.kind.cause(),
            remedy,
            retryable: failure.kind.is_retryable(),
        };
        self.say(telling, id, error);
    }

    pub(super) fn paused(&mut self, id: AgentId, why: &Pause) {
        if id == AgentId::MAIN {
            self.exchange.trouble = match why {
                // What is wrong is what was denied, which is told as that.
                Pause::Limit(breach) if breach.limit == Limit::Denials => None,
                Pause::Limit(_) => Some(Trouble::Limit),
                Pause::Model(_) => Some(Trouble::Model),
            };
        }
    }

    pub(super) fn compacted(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        summary: &str,
        before_tokens: u64,
    ) {
        // The kernel's estimate: four bytes a token.
        let after_tokens = (summary.len() as u64).div_ceil(4);
        self.say(telling, id, Body::Compacted { before_tokens, after_tokens });
    }

    pub(super) fn spoke(&mut self, telling: &mut Telling<'_>, id: AgentId, text: &str) {
        if id == AgentId::MAIN {
            text.clone_into(&mut self.exchange.text);
        }
        self.say(telling, id, Body::Message { role: "assistant", text: text.to_owned() });
    }

    /// `key` is that of the run the world owes; a call without one waits for other agents.
    pub(super) fn started(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        call: CallId,
        key: Option<Key>,
    ) {
        let errand = key.and_then(|key| errand(telling.after, key));
        self.start(telling, id, call, errand.map(|errand| errand.class));
    }

    /// Tells that a call's turn has come, once.
    fn start(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        call: CallId,
        class: Option<Class>,
    ) {
        let at = telling.at;
        let Some(part) = self.part_mut(id) else { return };
        let Some(doing) = part.calls.iter_mut().find(|doing| doing.id == call) else { return };
        if doing.since.is_some() {
            return;
        }
        doing.since = Some(at);
        let (name, input) = (doing.name.clone(), doing.arguments.clone());
        let started = Body::ToolStarted { call: call.to_string(), name, input, class };
        self.say(telling, id, started);
    }

    /// A person lets the call whose turn has come run with other arguments.
    pub(super) fn changed(&mut self, id: AgentId, arguments: &Value) {
        let calls = self.part_mut(id).map(|part| part.calls.iter_mut());
        let next = calls.into_iter().flatten().find(|doing| doing.since.is_none());
        if let Some(doing) = next {
            doing.arguments.clone_from(arguments);
        }
    }

    /// Every result has a start before it, be it in the same moment, unless it was never let run.
    pub(super) fn returned(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        call: CallId,
        output: &Output,
    ) {
        if let Some(spent) = &output.spent {
            self.spend(spent.usage, spent.micro_usd);
        }
        if !output.denied {
            self.start(telling, id, call, None);
        }
        let Some(part) = self.part_mut(id) else { return };
        let Some(at) = part.calls.iter().position(|doing| doing.id == call) else { return };
        let doing = part.calls.remove(at);
        if output.denied {
            let denial = format!("{}: {} {}", part.name.path, doing.name, doing.arguments);
            self.exchange.denials.push(denial);
            let (cause, text) = (output.denial, output.text.clone());
            self.exchange.reasons.push(DenialReason { cause, text });
        }
        if output.is_error && output.text == NOBODY_TO_ASK {
            self.exchange.lacked.get_or_insert(Lack::Answer);
        }
        if output.is_error && output.text == spawn_limit(self.limits.spawns_max) {
            self.exchange.lacked.get_or_insert(Lack::Agent);
        }
        let exit = output.deeds.iter().rev().find_map(|deed| match deed {
            Deed::Ran { exit, .. } => Some(*exit),
            Deed::Changed { .. } => None,
        });
        let finished = ToolFinished {
            call: call.to_string(),
            name: doing.name,
            ok: !output.is_error,
            output: output.text.clone(),
            truncated: output.handle.is_some(),
            handle: output.handle.clone(),
            ms: doing.since.map_or(0, |since| telling.at.since(since)),
            exit,
        };
        self.say(telling, id, Body::ToolFinished(Box::new(finished)));
    }

    pub(super) fn ended(
        &mut self,
        telling: &mut Telling<'_>,
        id: AgentId,
        result: &str,
        receipt: &Receipt,
    ) {
        self.turn_ended(telling, id, None);
        let finished = AgentFinished {
            outcome: receipt.outcome,
            result: result.to_owned(),
            is_error: receipt.outcome != locum_kernel::Outcome::Done,
            reason: reason(&receipt.why),
            by: receipt.by.to_string(),
            receipt: receipt_line(receipt),
        };
        self.say(telling, id, Body::AgentFinished(Box::new(finished)));
        if self.stack.contains(&id) {
            self.stack.retain(|on_stack| *on_stack != id);
            self.floor(telling, id, left_floor(&receipt.why));
        }
    }
}

fn reason(why: &Why) -> String {
    match why {
        Why::Completed => "completed".into(),
        Why::Spoke => "spoke and had nobody to wait for".into(),
        Why::EndedByPerson => "ended by the person".into(),
        Why::Limit(text)
        | Why::Model(text)
        | Why::Flawed(text)
        | Why::Setup(text)
        | Why::Stopped(text) => text.clone(),
        Why::ParentEnded => "the agent above it ended".into(),
    }
}

fn left_floor(why: &Why) -> FloorReason {
    match why {
        Why::Completed | Why::Spoke => FloorReason::Complete,
        Why::EndedByPerson => FloorReason::UserDone,
        Why::Limit(_) => FloorReason::MaxTurns,
        Why::Model(_) | Why::Flawed(_) | Why::Setup(_) => FloorReason::Error,
        Why::Stopped(text) if text == "/back" => FloorReason::UserBack,
        Why::Stopped(_) | Why::ParentEnded => FloorReason::Cancelled,
    }
}

fn receipt_line(receipt: &Receipt) -> ReceiptLine {
    let tally = &receipt.tally;
    let mut line = ReceiptLine {
        calls: tally.calls,
        commands: Vec::new(),
        files: Vec::new(),
        children_pending: receipt.children_pending,
        usage: tally.usage.into(),
        cost_usd: (tally.unpriced == 0).then_some(tally.micro_usd).and_then(usd),
        turns: tally.turns,
        ms: receipt.active_ms,
        copy: receipt.copy.clone(),
    };
    for deed in &tally.deeds {
        match deed.clone() {
            Deed::Ran { argv, exit } => line.commands.push(CommandLine { argv, exit }),
            Deed::Changed { path, sha256, change } => {
                line.files.push(FileLine { path, sha256, change });
            }
        }
    }
    line
}
