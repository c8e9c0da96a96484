//! What running tools want to know: put to a person beside the call, which goes on meanwhile and
//! hears the answer while it runs. Whatever ends the call takes its questions back.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Step, ask_words};
use crate::limits::{
    ASKS_OPEN_MAX, INPUT_BYTES_MAX, OPTIONS_MAX, RESULT_BYTES_MAX, WONDERS_MAX, WONDERS_OPEN_MAX,
};
use crate::{
    AgentId, Ask, AskId, AskKind, AskTo, Audience, CallId, CallState, Change, Denial, Event, Key,
    Output, Owed, Refusal, ToolSpec, Verdict, Who, Wonder, clip, short,
};

/// The choice that an allow stands for.
const YES: &str = "yes";

impl Step<'_> {
    pub(super) fn wondered(&mut self, key: Key, wonder: Wonder) -> Result<(), Refusal> {
        let Some(Owed::Tool(agent, call)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        let (agent, call) = (*agent, *call);
        let unheard = |why: String| Err(Refusal::Unheard { why });
        if self.session.world.audience == Audience::Absent {
            return unheard("nobody is there".into());
        }
        let at = self.session[agent].call(call).ok_or(Refusal::Stale { key })?;
        if at.wonders.len() >= WONDERS_OPEN_MAX {
            return unheard(format!("{WONDERS_OPEN_MAX} questions of this call are open already"));
        }
        if at.wondered >= WONDERS_MAX {
            return unheard(format!("this call has asked {WONDERS_MAX} times already"));
        }
        if self.session.asks.len() >= ASKS_OPEN_MAX {
            return unheard(format!("{ASKS_OPEN_MAX} asks wait for an answer already"));
        }
        let Wonder { id, from, question, options } = wonder;
        let question = format!("{} asks: {}", short(from), clip(question, RESULT_BYTES_MAX));
        let options = options.into_iter().take(OPTIONS_MAX).map(short).collect();
        let kind = Box::new(AskKind::Question { question, options });
        let words = ask_words(&kind);
        let (to, call, wonder) = (AskTo::Person, Some(call), Some(id));
        let ask = AskId(self.emit(Event::Asked { agent, call, to, kind, wonder }).0);
        self.post(agent, &words, Some(ask));
        Ok(())
    }

    /// The call is not touched: it hears of it, and goes on as it likes.
    pub(super) fn settle_wonder(
        &mut self,
        ask: &Ask,
        verdict: Verdict,
        by: &Who,
    ) -> Result<(), Refusal> {
        let offers_yes = match &ask.kind {
            AskKind::Question { options, .. } => options.iter().any(|option| option == YES),
            AskKind::Approval(_) | AskKind::Continue { .. } | AskKind::Budget { .. } => false,
        };
        let verdict = match verdict {
            Verdict::Answer { text } => Verdict::Answer { text: clip(text, INPUT_BYTES_MAX) },
            Verdict::Deny { message } => Verdict::Deny { message: message.map(short) },
            Verdict::Allow(_) if offers_yes => Verdict::Answer { text: YES.into() },
            Verdict::Allow(_)
            | Verdict::Continue { .. }
            | Verdict::TopUp { .. }
            | Verdict::Withdrawn { .. } => {
                let (kind, verdict) = (ask.kind.word().into(), verdict.word().into());
                return Err(Refusal::WrongVerdict { ask: ask.id, kind, verdict });
            }
        };
        self.emit(Event::Settled { ask: ask.id, verdict, by: by.clone(), input: None });
        Ok(())
    }

    pub(super) fn relayed(&mut self, key: Key) -> Result<(), Refusal> {
        let Some(Owed::Relay(_)) = self.session.owed.get(&key) else {
            return Err(Refusal::Stale { key });
        };
        self.emit(Event::Relayed { key });
        Ok(())
    }

    /// Takes back what a call wonders about, because it has its result.
    pub(super) fn stop_wondering(&mut self, id: AgentId, call: CallId) {
        let wonders = self.session[id].call(call).map(|call| call.wonders.clone());
        for ask in wonders.unwrap_or_default() {
            self.withdraw(ask, "the call that asked is over");
        }
    }

    /// The process that ran the calls is gone: nobody is left to hear an answer.
    pub(super) fn forget_wonders(&mut self) {
        let wonders = self.session.asks.values().filter(|ask| ask.wonder.is_some());
        for ask in wonders.map(|ask| ask.id).collect::<Vec<_>>() {
            self.withdraw(ask, "the call that asked was cut");
        }
    }

    /// What was approved under other words is asked again under the new ones.
    pub(super) fn retooled(
        &mut self,
        tools: Vec<ToolSpec>,
        gone: Vec<String>,
        beside: &[String],
        to: Option<AgentId>,
    ) {
        let brought: Vec<ToolSpec> = tools.iter().filter(|tool| tool.brought).cloned().collect();
        let known = &self.session.world.tools;
        let is_new = |tool: &ToolSpec| {
            known.get(&tool.name) != Some(tool) && (!tool.brought || self.is_free(tool))
        };
        let tools: Vec<ToolSpec> = tools.into_iter().filter(is_new).collect();
        let is_disguised = |tool: &&ToolSpec| {
            known.get(&tool.name).is_some_and(|before| before.identity != tool.identity)
        };
        let disguises: Vec<String> =
            tools.iter().filter(is_disguised).map(|tool| tool.name.clone()).collect();
        let gone = gone.into_iter().filter(|name| known.contains_key(name));
        let gone: Vec<Change> = gone.map(Change::ToolGone).collect();
        let known = tools.iter().cloned().map(Change::Tool);
        let changes: Vec<Change> = known.chain(gone).collect();
        let is_new = !changes.is_empty();
        if is_new {
            self.emit(Event::Configured { changes });
        }
        self.share(&brought, beside, to);
        if is_new {
            self.approve_again(&disguises);
            self.ask_again();
        }
    }

    /// Whoever has one tool of a server that was brought gets what it has besides. In the order
    /// of birth: nobody gets what whoever is above it may not hand on.
    fn share(&mut self, brought: &[ToolSpec], beside: &[String], to: Option<AgentId>) {
        if brought.is_empty() {
            return;
        }
        for id in self.session.live_subtree(AgentId::MAIN) {
            let has = &self.session[id].brought;
            let is_for = to.is_some_and(|to| self.session.is_within(id, to));
            if !is_for && !beside.iter().any(|name| has.contains(name)) {
                continue;
            }
            let known = |name: &str| self.session.world.tools.get(name);
            // Who does not bring servers itself has what its own list has of them.
            let agent = &self.session[id];
            let brings =
                self.session.definition(agent).is_some_and(|it| !it.kit.servers.is_empty());
            let listed = agent.uses.tools.as_ref().filter(|_| !brings && to != Some(id));
            let fit = |tool: &&ToolSpec| {
                let is_ours = known(&tool.name).is_some_and(|known| known.brought);
                let is_listed = listed.is_none_or(|listed| listed.contains(&tool.name));
                is_ours && is_listed && !has.contains(&tool.name) && self.may_have(id, tool)
            };
            let tools: Vec<String> =
                brought.iter().filter(fit).map(|tool| tool.name.clone()).collect();
            if !tools.is_empty() {
                self.emit(Event::Equipped { agent: id, tools });
            }
        }
    }

    fn approve_again(&mut self, changed: &[String]) {
        const BECAUSE: &str = "the tool describes itself otherwise than before";
        for id in self.session.live_subtree(AgentId::MAIN) {
            let calls = self.session[id].calls().filter(|call| changed.contains(&call.name));
            let calls: Vec<(CallId, CallState)> =
                calls.map(|call| (call.id, call.state.clone())).collect();
            for (call, state) in calls {
                match state {
                    CallState::Asked(ask) => {
                        self.withdraw(ask, BECAUSE);
                        self.ready.push_back(id);
                    }
                    CallState::Approved => {
                        if let Err(why) = self.open_approval(id, call, BECAUSE.into()) {
                            self.give(id, call, Output::denied(Denial::Unheard, why));
                            self.ready.push_back(id);
                        }
                    }
                    CallState::Pending
                    | CallState::Running { .. }
                    | CallState::Child(_)
                    | CallState::Awaiting(_)
                    | CallState::Returned(_) => {}
                }
            }
        }
    }
}
