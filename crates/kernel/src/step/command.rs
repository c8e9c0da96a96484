//! What a person does to agents by hand. Mechanical acts: no model has to agree.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Step;
use crate::limits::INPUT_BYTES_MAX;
use crate::{
    Agent, AgentId, Change, Command, Event, Link, Mode, Outcome, Output, Phase, Purpose, Refusal,
    Rights, Rule, RuleKind, Source, Who, Why, clip, short, state_word,
};

impl Step<'_> {
    pub(super) fn commanded(&mut self, by: Who, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Back => self.back(by),
            Command::Done { text } => {
                let top = self.on_floor()?;
                let last = self.agent(top)?.last_words();
                let text = if text.trim().is_empty() { last } else { text };
                let text = clip(text, INPUT_BYTES_MAX);
                self.finish(top, Outcome::Done, text, Why::EndedByPerson, by);
                Ok(())
            }
            Command::Foreground { agent } => self.foreground(agent),
            Command::Background => {
                let top = self.on_floor()?;
                self.background(top);
                Ok(())
            }
            Command::Cancel { agent, why } => self.cancel(agent, &short(why), &by),
            Command::Continue { agent, text } => self.continued(agent, text, &by),
            Command::Narrow { agent, to } => self.narrow(agent, &to),
            Command::Compact { agent } => self.compact(agent),
            Command::Revoke { rule } => {
                self.revoke(&rule, &by);
                Ok(())
            }
        }
    }

    /// Who is on the floor besides main.
    fn on_floor(&self) -> Result<AgentId, Refusal> {
        let top = self.session.top();
        if top == AgentId::MAIN { Err(Refusal::NotOnFloor) } else { Ok(top) }
    }

    /// The one on top leaves the floor. Someone who was only pulled there goes back to work;
    /// someone who was made for the floor is cancelled.
    fn back(&mut self, by: Who) -> Result<(), Refusal> {
        let top = self.on_floor()?;
        if self.agent(top)?.home == Mode::Floor {
            let why = Why::Stopped("/back".into());
            self.finish(top, Outcome::Cancelled, "cancelled by user".into(), why, by);
        } else {
            self.background(top);
        }
        Ok(())
    }

    fn foreground(&mut self, id: AgentId) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        if agent.mode == Mode::Floor {
            return Err(Refusal::AlreadyOnFloor { agent: id });
        }
        self.emit(Event::Switched { agent: id, mode: Mode::Floor });
        self.ready.push_back(id);
        Ok(())
    }

    /// Back to work. A parent that waits for its result is told now that it will come later, so
    /// its call still gets exactly one result.
    fn background(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let mode = if agent.home == Mode::Call { Mode::Call } else { Mode::Worker };
        let link = agent.parent;
        let label = agent.label.clone();
        self.emit(Event::Switched { agent: id, mode });
        self.ready.push_back(id);
        if let (Mode::Worker, Some((parent, Link::Result(call)))) = (mode, link) {
            let text = format!(
                "{label} ({id}) goes on in the background; its result will come as a message"
            );
            self.give(parent, call, Output::ok(text));
            self.ready.push_back(parent);
        }
    }

    /// Stops an agent and everyone below it. Main itself only drops what it is doing.
    fn cancel(&mut self, id: AgentId, why: &str, by: &Who) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        let text = if why.is_empty() {
            format!("cancelled by {by}")
        } else {
            format!("cancelled by {by}: {why}")
        };
        if !agent.is_main() {
            self.stop(id, &text, by);
            return Ok(());
        }
        let below: Vec<AgentId> = agent.live.iter().copied().collect();
        let at_work = !matches!(agent.phase, Phase::Resting | Phase::Paused { .. });
        let busy = at_work || !below.is_empty();
        for child in below {
            self.stop(child, &text, by);
        }
        self.interrupt(id, "Cancelled", by);
        if let Some(ask) = self.agent(id)?.pause_ask() {
            self.withdraw(ask, "cancelled");
        }
        if matches!(self.agent(id)?.phase, Phase::Paused { .. } | Phase::Starting { .. }) {
            self.emit(Event::TurnDropped { agent: id, by: by.clone() });
        }
        // What happened it reads when somebody next speaks to it; it is not woken for that.
        if busy {
            self.tell(id, Source::Runtime, format!("What you were doing was {text}."));
        }
        self.ready.clear();
        Ok(())
    }

    fn continued(&mut self, id: AgentId, text: Option<String>, by: &Who) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        if agent.is_main() && agent.fault.is_some() && matches!(agent.phase, Phase::Resting) {
            // What it was asked is still unanswered: it simply tries again.
            self.ready.push_back(id);
        } else if !agent.is_paused() {
            let state = state_word(self.session, agent).word().into();
            return Err(Refusal::NotPaused { agent: id, state });
        }
        if let Some(text) = text {
            let source = Source::Person { channel: String::new(), sender: format!("{by}") };
            self.tell(id, source, clip(text, INPUT_BYTES_MAX));
        }
        if self.agent(id)?.is_paused() {
            self.go_on(id, by);
        }
        Ok(())
    }

    /// Takes rights away, from everyone below too, before anybody makes another call.
    fn narrow(&mut self, id: AgentId, to: &Rights) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        if agent.ceiling.within(to) {
            return Err(Refusal::Widens { agent: id });
        }
        for below in self.session.live_subtree(id) {
            let agent = &self.session[below];
            let ceiling = agent.ceiling.meet(to);
            if ceiling != agent.ceiling {
                self.emit(Event::Narrowed { agent: below, ceiling });
            }
        }
        self.ask_again();
        Ok(())
    }

    /// Takes back what was granted with a rule, and the rule itself where this session was told of
    /// it. A rule that forbids stays: nobody is let do more than before.
    fn revoke(&mut self, rule: &Rule, by: &Who) {
        let grants = self.session.grants.values().filter(|grant| grant.rules.contains(rule));
        for grant in grants.map(|grant| grant.id).collect::<Vec<_>>() {
            self.emit(Event::Revoked { grant, by: by.clone() });
        }
        let rules = &self.session.world.rules;
        if rule.kind == RuleKind::Allow && rules.contains(rule) {
            let rest = rules.iter().filter(|other| *other != rule).cloned().collect();
            self.emit(Event::Configured { changes: Vec::from([Change::Rules(rest)]) });
        }
    }

    fn compact(&mut self, id: AgentId) -> Result<(), Refusal> {
        let agent: &Agent = self.live_agent(id)?;
        let rests = matches!(agent.phase, Phase::Resting) && !agent.transcript.is_empty();
        if !rests || !self.may_run(agent) {
            let state = state_word(self.session, agent).word().into();
            return Err(Refusal::Busy { agent: id, state });
        }
        self.think(id, Purpose::Summary { resume: false }, None);
        Ok(())
    }
}
