//! Tool calls: worked through in the order the model gave them, each to exactly one result.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Step;
use super::limit::limit_words;
use super::turn::{TOO_DEEP, TOO_LARGE};
use crate::limits::{DENIALS_TOLD, PICTURES_MAX, RESULT_BYTES_MAX};
use crate::{
    AgentId, Call, CallId, CallState, Change, Class, Denial, Digest, Event, Failure, FailureKind,
    Key, Outcome, Output, Owed, Ready, Refusal, Ruling, Source, Tool, ToolSpec, Who, Why, clip,
    judge, ruling, short,
};

impl Step<'_> {
    /// Goes through an agent's calls until one has to wait or all are done.
    pub(super) fn work(&mut self, id: AgentId) {
        loop {
            let agent = &self.session[id];
            if agent.has_ended() {
                return;
            }
            let Some(call) = agent.open_call() else {
                self.begin_turn(id);
                return;
            };
            let call_id = call.id;
            match call.state {
                CallState::Pending | CallState::Approved => self.dispatch(id, call_id),
                CallState::Running { .. } => self.start_reads_beside(id),
                CallState::Asked(_)
                | CallState::Child(_)
                | CallState::Awaiting(_)
                | CallState::Returned(_) => {}
            }
            if let Some(call) = self.session[id].open_call().filter(|call| call.id == call_id) {
                if matches!(call.state, CallState::Child(_)) {
                    self.start_subs_beside(id);
                }
                return;
            }
        }
    }

    /// Lets a call run, ask or fail. One that somebody approved runs as they saw it, unless the
    /// rules have changed meanwhile.
    pub(super) fn dispatch(&mut self, id: AgentId, call_id: CallId) {
        let agent = &self.session[id];
        let Some(call) = agent.call(call_id) else { return };
        let tool = Tool::named(&call.name);
        if agent.last_turn.is_some() && tool != Some(Tool::Complete) {
            return self.give(id, call_id, Output::error("not run: this was your last turn"));
        }
        if let Some(output) = self.spared(agent, call) {
            return self.give(id, call_id, output);
        }
        if !call.arguments.is_object() {
            let text = match call.arguments.as_str() {
                Some(why) if why.starts_with(TOO_LARGE) || why == TOO_DEEP => why,
                Some(_) | None => "the arguments must be a JSON object",
            };
            let text = format!("{}: {text}", call.name);
            return self.give(id, call_id, Output::error(text));
        }
        if let Some(tool) = tool
            && !tool.is_judged()
        {
            return self.use_tool(id, call_id, tool);
        }
        let approved = call.state == CallState::Approved;
        let judge = if approved { ruling } else { judge };
        match judge(self.session, agent, call, self.at) {
            Ruling::Ask(because) if !approved => {
                if let Err(why) = self.open_approval(id, call_id, because) {
                    self.give(id, call_id, Output::denied(Denial::Unheard, why));
                }
            }
            Ruling::Allow | Ruling::Ask(_) => match tool {
                Some(tool) => self.use_tool(id, call_id, tool),
                None => self.run(id, call_id),
            },
            Ruling::Deny(denial, why) => self.give(id, call_id, Output::denied(denial, why)),
            Ruling::Unknown(why) => self.give(id, call_id, Output::error(why)),
        }
    }

    fn run(&mut self, id: AgentId, call: CallId) {
        if !self.may_run(&self.session[id]) {
            return self.line_up(id);
        }
        self.start(id, call);
        self.start_reads_beside(id);
    }

    fn start(&mut self, id: AgentId, call: CallId) {
        let tools = &self.session.world.tools;
        let tool = self.session[id].call(call).and_then(|call| tools.get(&call.name));
        let idempotent = tool.is_some_and(|tool| tool.idempotent);
        self.emit(Event::Started { agent: id, call, idempotent });
    }

    /// Where the definition allows it, read-only calls run together, up to the first that is
    /// not one or would have to ask.
    fn start_reads_beside(&mut self, id: AgentId) {
        let agent = &self.session[id];
        if !self.session.definition(agent).is_some_and(|definition| definition.parallel_reads) {
            return;
        }
        let reads = |call: &&Call| {
            self.session.world.tools.get(&call.name).is_some_and(|tool| tool.class == Class::Read)
        };
        let beside: Vec<CallId> = agent
            .calls()
            .skip_while(|call| call.has_returned())
            .take_while(reads)
            .take_while(|call| match call.state {
                CallState::Pending => judge(self.session, agent, call, self.at) == Ruling::Allow,
                CallState::Running { .. } | CallState::Returned(_) => true,
                CallState::Asked(_)
                | CallState::Approved
                | CallState::Child(_)
                | CallState::Awaiting(_) => false,
            })
            .filter(|call| call.state == CallState::Pending && call.arguments.is_object())
            .map(|call| call.id)
            .collect();
        for call in beside {
            self.start(id, call);
        }
    }

    /// Gives a call its one result.
    pub(super) fn give(&mut self, id: AgentId, call: CallId, mut output: Output) {
        // The model sees its own arguments in the history; it must know that others were used.
        let edited = self.session[id].call(call).filter(|call| call.edited);
        if let Some(call) = edited {
            let words = format!("[the user changed the arguments to {}]", call.arguments);
            output.text = format!("{words}\n{}", output.text);
        }
        if output.denied
            && let Some(times) = self.denials(id, call).filter(|times| *times >= DENIALS_TOLD)
        {
            let words = "do something else, or ask";
            output.text = format!("{}; denied {times} times in a row: {words}", output.text);
        }
        output.text = clip(output.text, RESULT_BYTES_MAX);
        output.pictures.truncate(PICTURES_MAX);
        self.stop_wondering(id, call);
        self.emit(Event::Returned { agent: id, call, output, reads: Vec::new() });
    }

    /// How often in a row this call will have been denied.
    fn denials(&self, id: AgentId, call: CallId) -> Option<u32> {
        let agent = &self.session[id];
        let call = agent.call(call)?;
        let is_same = agent.repeat.digest == Some(Digest::of_call(&call.name, &call.arguments));
        is_same.then_some(agent.repeat.denied + 1)
    }

    pub(super) fn ran(&mut self, key: Key, output: Output) -> Result<(), Refusal> {
        let Some(Owed::Tool(id, call)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        let (id, call) = (*id, *call);
        self.give(id, call, output);
        self.ready.push_back(id);
        Ok(())
    }

    pub(super) fn prepared(
        &mut self,
        key: Key,
        error: Option<String>,
        ready: Ready,
    ) -> Result<(), Refusal> {
        let Some(Owed::Setup(id)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        let id = *id;
        match error.map(short) {
            None => {
                let tools = self.equip(id, ready.tools);
                self.emit(Event::Prepared { agent: id, tools, copy: ready.copy });
                if let Some(told) = ready.told {
                    self.tell(id, Source::Runtime, short(told));
                }
                self.ready.push_back(id);
            }
            // Main never ends: it says so, and tries again when somebody next speaks to it.
            Some(message) if id == AgentId::MAIN => {
                let text = format!("Could not start: {message}.");
                let kind = FailureKind::Other;
                let failure = Failure { kind, status: None, retry_after_ms: None, message };
                self.emit(Event::Faulted { agent: id, failure });
                self.speak(id, &text);
            }
            Some(cause) => {
                let text = format!("could not start: {cause}");
                self.finish(id, Outcome::Failed, text, Why::Setup(cause), Who::Runtime);
            }
        }
        Ok(())
    }

    /// Declares the tools that were brought for an agent. Nobody gets more than whoever is above
    /// it may hand on, and none is taken for a tool that everybody has.
    fn equip(&mut self, id: AgentId, tools: Vec<ToolSpec>) -> Vec<String> {
        let known = &self.session.world.tools;
        let fit = |tool: &ToolSpec| self.is_free(tool) && self.may_have(id, tool);
        let tools: Vec<ToolSpec> = tools.into_iter().filter(fit).collect();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let differs = |tool: &ToolSpec| known.get(&tool.name) != Some(tool);
        let brought = tools.into_iter().map(|tool| ToolSpec { brought: true, ..tool });
        let changes: Vec<Change> = brought.filter(differs).map(Change::Tool).collect();
        if !changes.is_empty() {
            self.emit(Event::Configured { changes });
        }
        names
    }

    /// Nobody else's tool has the name of what is brought.
    pub(super) fn is_free(&self, tool: &ToolSpec) -> bool {
        let known = self.session.world.tools.get(&tool.name);
        Tool::named(&tool.name).is_none() && known.is_none_or(|known| known.brought)
    }

    pub(super) fn may_have(&self, id: AgentId, tool: &ToolSpec) -> bool {
        let above = self.session[id].parent().map(|parent| &self.session[parent].ceiling);
        let handed = above.is_none_or(|ceiling| ceiling.allow(&tool.name, tool.class));
        handed && self.session[id].ceiling.classes.contains(&tool.class)
    }

    pub(super) fn delivered(&mut self, key: Key, error: Option<String>) -> Result<(), Refusal> {
        let Some(Owed::Delivery(_)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        self.emit(Event::Delivered { key, error: error.map(short) });
        Ok(())
    }

    /// `complete`: what was called before it has run, what comes after it does not.
    pub(super) fn complete(&mut self, id: AgentId, call: CallId, result: String) {
        let agent = &self.session[id];
        let flaw = agent.transcript.last().and_then(|line| line.reply()?.flaw.clone());
        if let Some(flaw) = flaw {
            let text = format!("not completed: {flaw} Complete again with what is wanted.");
            self.give(id, call, Output::error(text));
            if !self.may_try_again(id) {
                self.end_flawed(id, &flaw);
            }
            return;
        }
        if let Some(flaw) = self.failed_check(id) {
            self.give(id, call, Output::error(format!("not completed: {}", flaw.why)));
            self.disprove(id, &flaw);
            return;
        }
        let why = agent.last_turn.as_ref().map_or(Why::Completed, limit_words);
        self.give(id, call, Output::ok("completed"));
        let rest = self.open_calls(id);
        for call in rest {
            self.give(id, call, Output::error("not run: completed"));
        }
        self.finish(id, Outcome::Done, result, why, Who::Agent(id));
    }

    fn open_calls(&self, id: AgentId) -> Vec<CallId> {
        let calls = self.session[id].calls();
        calls.filter(|call| !call.has_returned()).map(|call| call.id).collect()
    }

    /// Every call without a result gets these words; asks are withdrawn, children stopped.
    pub(super) fn cancel_calls(&mut self, id: AgentId, words: &str, by: &Who) {
        for call in self.open_calls(id) {
            let state = self.session[id].call(call);
            let Some(state) = state.map(|call| call.state.clone()) else { continue };
            if let CallState::Asked(ask) = state {
                self.withdraw(ask, "cancelled");
            }
            if let CallState::Child(child) = state
                && self.live_agent(child).is_ok()
            {
                self.stop(child, &format!("cancelled by {by}"), by);
            } else {
                self.give(id, call, Output::error(words));
            }
        }
    }
}
