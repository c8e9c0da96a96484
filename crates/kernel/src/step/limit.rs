//! Limits: turns, tokens, money and active time. A limit parks an agent when somebody can
//! continue it; otherwise it gets one grace turn to hand over what it has, then fails upwards.

use alloc::format;
use alloc::string::{String, ToString};

use super::Step;
use crate::limits::DENIALS_MAX;
use crate::{
    Account, AgentId, AgentLimits, AskKind, AskTo, Audience, Breach, Event, Limit, Mode, Note,
    Outcome, Pause, Phase, Purpose, Source, Spend, Timer, Who, Why,
};

/// Why a model call may not be made now.
pub(super) struct Shortage {
    pub(super) breach: Breach,
    /// It could be made if running calls gave back what is set aside for them.
    pub(super) waits: bool,
}

impl Step<'_> {
    /// The first limit that the next model call of an agent would break: its own turns, then
    /// what it, its ancestors and the tree may spend.
    pub(super) fn shortage(&self, id: AgentId) -> Option<Shortage> {
        let agent = &self.session[id];
        let limits = &self.session.world.limits;
        let turns = agent.limits.turns_max.unwrap_or(limits.turns_max);
        let exchange = (agent.turns_used >= turns).then_some(turns);
        let talk = agent.limits.talk_turns_max.filter(|_| agent.has_talked_enough());
        if let Some(turns) = exchange.or(talk) {
            let breach = Breach { limit: Limit::Turns, of: Some(id), max: turns.into() };
            return Some(Shortage { breach, waits: false });
        }
        // Words that it has not read yet may tell it what else to do.
        let is_told = |note: &Note| !matches!(note.source, Source::Runtime);
        if agent.repeat.denied >= DENIALS_MAX && !agent.readable().any(|(_, note)| is_told(note)) {
            let breach = Breach { limit: Limit::Denials, of: Some(id), max: DENIALS_MAX.into() };
            return Some(Shortage { breach, waits: false });
        }
        let next = self.estimate(agent);
        let mut at = Some(agent);
        while let Some(payer) = at {
            let AgentLimits { active_ms_max, tokens_max, micro_usd_max, .. } = payer.limits;
            let caps = [active_ms_max, tokens_max, micro_usd_max];
            if let Some(short) = self.over(&payer.account, Some(payer.id), caps, next) {
                return Some(short);
            }
            at = payer.parent.and_then(|(parent, _)| self.session.agent(parent));
        }
        let caps = [limits.active_ms_max, limits.tokens_max, limits.micro_usd_max];
        self.over(&self.session.tree.account, None, caps, next)
    }

    fn over(
        &self,
        account: &Account,
        of: Option<AgentId>,
        caps: [Option<u64>; 3],
        next: Spend,
    ) -> Option<Shortage> {
        let Account { spent, reserved, tokens_base, topped_up, clock, .. } = account;
        let [active_ms, tokens, micro_usd] = caps;
        let short = |limit, used: u64, reserved: u64, max: Option<u64>| {
            let max = max.filter(|max| used.saturating_add(reserved) > *max)?;
            Some(Shortage { breach: Breach { limit, of, max }, waits: used <= max })
        };
        let ran = clock.against_limit(self.at).saturating_add(1);
        let used = spent.tokens.saturating_sub(*tokens_base).saturating_add(next.tokens);
        let cost = spent.micro_usd.saturating_add(next.micro_usd);
        let purse = micro_usd.map(|max| max.saturating_add(*topped_up));
        short(Limit::Time, ran, 0, active_ms)
            .or_else(|| short(Limit::Tokens, used, reserved.tokens, tokens))
            .or_else(|| short(Limit::Money, cost, reserved.micro_usd, purse))
    }

    pub(super) fn stop_at_limit(&mut self, id: AgentId, breach: Breach) {
        let agent = &self.session[id];
        let present = self.session.world.audience == Audience::Present;
        if agent.is_main() || (present && agent.mode != Mode::Call) {
            self.pause(id, &Pause::Limit(breach));
        } else if matches!(agent.phase, Phase::Starting { .. }) {
            // It has nothing to hand over yet.
            let text = format!("{breach} reached while it was being prepared");
            self.finish(id, Outcome::Failed, text, limit_words(&breach), Who::Runtime);
        } else {
            let text = format!(
                "{breach} reached. This is your last turn: call complete with what you have."
            );
            self.tell(id, Source::Runtime, text);
            self.think(id, Purpose::Answer, Some(breach));
        }
    }

    /// The grace turn was used for something else.
    pub(super) fn fail_at_limit(&mut self, id: AgentId) {
        let Some(breach) = self.session[id].last_turn.clone() else { return };
        let latest = self.session[id].latest.clone();
        let last = if latest.is_empty() { latest } else { format!(". Last words: {latest}") };
        let text = format!("{breach} reached before the work was complete{last}");
        self.finish(id, Outcome::Failed, text, limit_words(&breach), Who::Runtime);
    }

    /// Stops an agent where it can go on, and tells whoever can continue it.
    pub(super) fn pause(&mut self, id: AgentId, why: &Pause) {
        self.emit(Event::Paused { agent: id, why: why.clone() });
        if self.session.world.audience == Audience::Present {
            self.offer_to_continue(id);
        } else if id == AgentId::MAIN {
            let mut replies = self.session[id].transcript.iter().rev();
            let flaw = replies.find_map(|line| line.reply()).and_then(|it| it.flaw.clone());
            let flaw = flaw.map(|flaw| format!(" What it handed in was not accepted: {flaw}"));
            let text = format!("Stopped: {why}.{}", flaw.unwrap_or_default());
            self.speak(id, &text);
        }
        self.tell_parent_of(id, format!("paused: {why}"));
    }

    /// Asks the person whether a paused agent may go on, unless they have been asked.
    pub(super) fn offer_to_continue(&mut self, id: AgentId) {
        let Phase::Paused { why, ask: None } = &self.session[id].phase else { return };
        let text = why.to_string();
        let kind = match why {
            Pause::Limit(breach) if breach.limit == Limit::Money => {
                AskKind::Budget { why: text, micro_usd: self.shortfall(id, breach) }
            }
            Pause::Limit(_) | Pause::Model(_) => AskKind::Continue { why: text },
        };
        self.open_ask(id, None, AskTo::Person, kind);
    }

    /// What the next request lacks: all that is spent and set aside, and itself, less the limit.
    fn shortfall(&self, id: AgentId, breach: &Breach) -> u64 {
        let payer = breach.of.map_or(&self.session.tree.account, |id| &self.session[id].account);
        let planned = payer.spent.micro_usd.saturating_add(payer.reserved.micro_usd);
        let next = self.estimate(&self.session[id]).micro_usd;
        planned.saturating_add(next).saturating_sub(breach.max)
    }

    /// A child needs its parent: ends the parent's `wait`, and wakes it if nobody else can help.
    pub(super) fn tell_parent_of(&mut self, id: AgentId, what: String) {
        let Some((parent, _)) = self.session[id].parent else {
            return;
        };
        if self.session.world.audience == Audience::Absent {
            self.tell(parent, Source::Child(id), what);
            self.ready.push_back(parent);
        }
        self.check_waits_above(id);
    }

    pub(super) fn tell(&mut self, id: AgentId, source: Source, text: String) {
        self.emit(Event::Heard { agent: id, note: Note::new(source, text) });
    }

    /// Deadlines that have passed: waits that end, and agents whose time is used up.
    pub(super) fn ticked(&mut self) {
        while let Some((time, timer)) = self.session.timers.first().cloned() {
            if time > self.at {
                return;
            }
            match timer {
                Timer::Wait(agent, _) => self.end_wait(agent, "timeout"),
                Timer::Limit(Some(id)) => self.overtime(id, Some(id)),
                Timer::Limit(None) => {
                    for id in self.session.live_subtree(AgentId::MAIN) {
                        if self.session[id].is_active() {
                            self.overtime(id, None);
                        }
                    }
                }
            }
            debug_assert!(
                self.session.timers.first() != Some(&(time, timer)),
                "a timer fires once"
            );
        }
    }

    /// Active time ran out in the middle of something: it is dropped, and the next thing the
    /// agent wants to do meets the limit.
    fn overtime(&mut self, id: AgentId, of: Option<AgentId>) {
        let agent = &self.session[id];
        let own = of.and_then(|of| self.session[of].limits.active_ms_max);
        let max = own.or(self.session.world.limits.active_ms_max).unwrap_or_default();
        if matches!(agent.phase, Phase::Starting { .. }) {
            self.stop_at_limit(id, Breach { limit: Limit::Time, of, max });
        } else if agent.last_turn.is_some() {
            self.fail_at_limit(id);
        } else {
            self.interrupt(id, "Cancelled: time limit", &Who::Runtime);
            self.ready.push_back(id);
        }
    }
}

/// Ending at a limit is not plain success, whatever the outcome: the receipt names it.
pub(super) fn limit_words(breach: &Breach) -> Why {
    Why::Limit(breach.to_string())
}
