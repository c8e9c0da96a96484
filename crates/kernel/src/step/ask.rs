//! Asks and verdicts: opened once, answered once, by whoever is first; remembered as grants that
//! reach no further than they were given.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Step;
use super::manage::NOBODY_TO_ASK;
use super::turn::unfit;
use crate::limits::{ASKS_OPEN_MAX, INPUT_BYTES_MAX};
use crate::policy::keep;
use crate::{
    AgentId, Allow, Approval, Ask, AskId, AskKind, AskTo, Audience, Call, CallId, Covers, Denial,
    Digest, Event, Grant, InputId, Link, Outcome, Output, Pause, Phase, Refusal, Ruling, Scope,
    Seq, Source, Verdict, Who, Why, clip, declared, judge, short,
};

impl Step<'_> {
    /// A call waits for a person. The error is the call's result when nobody can be asked.
    pub(super) fn open_approval(
        &mut self,
        id: AgentId,
        call_id: CallId,
        because: String,
    ) -> Result<(), String> {
        if self.session.asks.len() >= ASKS_OPEN_MAX {
            return Err(format!("denied: {ASKS_OPEN_MAX} asks wait for an answer already"));
        }
        let agent = &self.session[id];
        let call = agent.call(call_id).ok_or("no such call")?;
        let (tool, class) = declared(self.session, &call.name).ok_or("no such tool")?;
        let approval = Approval {
            tool: tool.into(),
            arguments: (*call.arguments).clone(),
            class,
            reason: agent.turn.as_ref().map(|turn| turn.reason.clone()).unwrap_or_default(),
            because,
            digest: Digest::of_call(tool, &call.arguments),
        };
        let kind = AskKind::Approval(Box::new(approval));
        self.open_ask(id, Some(call_id), AskTo::Person, kind);
        Ok(())
    }

    pub(super) fn answered(
        &mut self,
        id: AskId,
        verdict: Verdict,
        by: &Who,
        seen: Option<&Digest>,
    ) -> Result<(), Refusal> {
        let ask = self.find_ask(id)?.clone();
        if ask.wonder.is_some() {
            return self.settle_wonder(&ask, verdict, by);
        }
        match (&ask.kind, verdict) {
            (AskKind::Approval(asked), Verdict::Allow(_))
                if seen.is_some_and(|seen| *seen != asked.digest) =>
            {
                Err(Refusal::Changed { ask: id })
            }
            (AskKind::Approval(_), Verdict::Allow(allow)) => {
                let call = self.call_as_allowed(&ask, &allow)?;
                let verdict = Verdict::Allow(allow.clone());
                self.emit(Event::Settled { ask: id, verdict, by: by.clone(), input: None });
                self.ready.push_back(ask.agent);
                self.grant(&ask, &call, allow, by);
                Ok(())
            }
            (AskKind::Approval(_) | AskKind::Question { .. }, Verdict::Deny { message }) => {
                self.deny_call(&ask, message.map(short), by);
                Ok(())
            }
            (AskKind::Question { .. }, Verdict::Answer { text }) => {
                self.settle_question(id, text, by.clone(), None);
                Ok(())
            }
            (AskKind::Continue { .. }, Verdict::Continue { text }) => {
                if let Some(text) = text {
                    let source = Source::Person { channel: String::new(), sender: format!("{by}") };
                    self.tell(ask.agent, source, clip(text, INPUT_BYTES_MAX));
                }
                self.go_on(ask.agent, by);
                Ok(())
            }
            (AskKind::Budget { .. }, Verdict::TopUp { micro_usd }) => {
                self.top_up(&ask, micro_usd, by);
                Ok(())
            }
            (AskKind::Continue { .. } | AskKind::Budget { .. }, Verdict::Deny { message }) => {
                self.give_up(&ask, message.map(short), by);
                Ok(())
            }
            (kind, verdict) => Err(Refusal::WrongVerdict {
                ask: id,
                kind: kind.word().into(),
                verdict: verdict.word().into(),
            }),
        }
    }

    fn find_ask(&self, id: AskId) -> Result<&Ask, Refusal> {
        if let Some(ask) = self.session.asks.get(&id) {
            return Ok(ask);
        }
        Err(match self.session.closed.get(&id) {
            Some(closed) => Refusal::AlreadyAnswered {
                ask: id,
                verdict: closed.verdict.clone(),
                by: closed.by.clone(),
            },
            None => Refusal::UnknownAsk { ask: id },
        })
    }

    /// The call as it would run. Not even a person's allow reaches beyond ceilings and denies.
    fn call_as_allowed(&self, ask: &Ask, allow: &Allow) -> Result<Call, Refusal> {
        let agent = self.live_agent(ask.agent)?;
        let found = ask.call.and_then(|call| agent.call(call));
        let mut call = found.ok_or(Refusal::UnknownAsk { ask: ask.id })?.clone();
        if let Some(edited) = &allow.arguments {
            if !edited.is_object() {
                let why = "the edited arguments are not a JSON object".into();
                return Err(Refusal::Forbidden { why });
            }
            if let Some(why) = unfit(edited) {
                return Err(Refusal::Forbidden { why });
            }
            call.arguments = Arc::new(edited.clone());
            call.subjects.clone_from(&allow.subjects);
        }
        match judge(self.session, agent, &call, self.at) {
            Ruling::Deny(_, why) | Ruling::Unknown(why) => Err(Refusal::Forbidden { why }),
            Ruling::Allow | Ruling::Ask(_) => Ok(call),
        }
    }

    /// Remembers an allow, and lets it answer the asks it covers.
    fn grant(&mut self, ask: &Ask, call: &Call, allow: Allow, by: &Who) {
        let Allow { scope, pattern, expires, .. } = allow;
        let parent = self.session[ask.agent].parent;
        let root = match scope {
            Scope::Once => return,
            Scope::Agent => ask.agent,
            Scope::Fanout => parent.map_or(ask.agent, |(parent, _)| parent),
            Scope::Project => AgentId::MAIN,
        };
        let Some((tool, _)) = declared(self.session, &call.name) else { return };
        let rules = match scope {
            Scope::Project if expires.is_none() => {
                keep::rules(self.session, call, pattern.as_ref())
            }
            Scope::Project | Scope::Once | Scope::Agent | Scope::Fanout => Vec::new(),
        };
        let covers = match pattern {
            Some(pattern) => Covers::Pattern(pattern),
            None => Covers::Digest(Digest::of_call(tool, &call.arguments)),
        };
        let id = Seq(self.session.seq.0 + 1);
        let (tool, by_whom) = (tool.into(), by.clone());
        let fanout = scope == Scope::Fanout && root != ask.agent;
        let grant = Grant { id, root, tool, covers, fanout, expires, by: by_whom, rules };
        self.emit(Event::Granted { grant });
        let covered: Vec<(AskId, AgentId)> = self
            .session
            .asks
            .values()
            .filter(|other| matches!(other.kind, AskKind::Approval(_)))
            .filter(|other| self.judged(other) == Some(Ruling::Allow))
            .map(|other| (other.id, other.agent))
            .collect();
        for (other, agent) in covered {
            let verdict = Verdict::Allow(Allow::default());
            self.emit(Event::Settled { ask: other, verdict, by: by.clone(), input: None });
            self.ready.push_back(agent);
        }
    }

    /// What the call of an ask would get now.
    fn judged(&self, ask: &Ask) -> Option<Ruling> {
        let agent = &self.session[ask.agent];
        let call = ask.call.and_then(|call| agent.call(call))?;
        Some(judge(self.session, agent, call, self.at))
    }

    fn deny_call(&mut self, ask: &Ask, message: Option<String>, by: &Who) {
        let text = match &message {
            Some(message) => format!("denied by {by}: {message}"),
            None => format!("denied by {by}"),
        };
        let verdict = Verdict::Deny { message };
        self.emit(Event::Settled { ask: ask.id, verdict, by: by.clone(), input: None });
        if let Some(call) = ask.call {
            self.give(ask.agent, call, Output::denied(Denial::Person, text));
        }
        self.ready.push_back(ask.agent);
    }

    pub(super) fn settle_question(
        &mut self,
        id: AskId,
        text: String,
        by: Who,
        input: Option<InputId>,
    ) {
        let Some(ask) = self.session.asks.get(&id) else { return };
        let (agent, call) = (ask.agent, ask.call);
        let text = clip(text, INPUT_BYTES_MAX);
        let verdict = Verdict::Answer { text: text.clone() };
        // A parent that was asked and did not answer must not answer once more.
        if let (AskTo::Parent, Who::Person(person), Some((parent, _))) =
            (ask.to, &by, self.session[agent].parent)
        {
            let text = format!("{person} answered its question: {text}");
            self.tell(parent, Source::Child(agent), text);
        }
        self.emit(Event::Settled { ask: id, verdict, by, input });
        if let Some(call) = call {
            self.give(agent, call, Output::ok(text));
        }
        self.ready.push_back(agent);
    }

    fn top_up(&mut self, ask: &Ask, micro_usd: u64, by: &Who) {
        let agent = &self.session[ask.agent];
        let Phase::Paused { why: Pause::Limit(breach), .. } = &agent.phase else { return };
        let whose = breach.of;
        let verdict = Verdict::TopUp { micro_usd };
        self.emit(Event::Settled { ask: ask.id, verdict, by: by.clone(), input: None });
        self.emit(Event::ToppedUp { agent: whose, micro_usd });
        self.go_on(ask.agent, by);
    }

    /// Nobody continues it: main just rests, anybody else ends there.
    fn give_up(&mut self, ask: &Ask, message: Option<String>, by: &Who) {
        let agent = &self.session[ask.agent];
        let Phase::Paused { why, .. } = &agent.phase else { return };
        let words = format!("{why}, not continued");
        let text =
            message.as_ref().map_or_else(|| words.clone(), |said| format!("{words}: {said}"));
        let why = match why {
            Pause::Limit(_) => Why::Limit(words),
            Pause::Model(_) => Why::Model(words),
        };
        let verdict = Verdict::Deny { message };
        self.emit(Event::Settled { ask: ask.id, verdict, by: by.clone(), input: None });
        if ask.agent == AgentId::MAIN {
            self.emit(Event::TurnDropped { agent: ask.agent, by: by.clone() });
        } else {
            self.finish(ask.agent, Outcome::Failed, text, why, by.clone());
        }
    }

    /// The rules, the rights or the audience have changed: asks that would not be asked now are
    /// withdrawn, and their calls get what they would get now.
    pub(super) fn ask_again(&mut self) {
        let asks: Vec<Ask> = self.session.asks.values().cloned().collect();
        for ask in asks {
            // The end of one agent may have withdrawn the asks of others.
            if !self.session.asks.contains_key(&ask.id) {
                continue;
            }
            let absent = self.session.world.audience == Audience::Absent;
            match ask.kind {
                AskKind::Question { .. } if ask.wonder.is_some() => {
                    if absent {
                        self.withdraw(ask.id, "nobody is there");
                    }
                }
                AskKind::Approval(_) => {
                    if matches!(self.judged(&ask), Some(Ruling::Ask(_))) {
                        continue;
                    }
                    self.withdraw(ask.id, "the rules have changed");
                }
                AskKind::Question { .. } if absent && ask.to == AskTo::Person => {
                    self.withdraw(ask.id, "nobody is there");
                    if let Some(call) = ask.call {
                        self.give(ask.agent, call, Output::error(NOBODY_TO_ASK));
                    }
                }
                AskKind::Continue { .. } | AskKind::Budget { .. } if absent => {
                    self.withdraw(ask.id, "nobody is there");
                    self.nobody_continues(ask.agent);
                }
                AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => {}
            }
            self.ready.push_back(ask.agent);
        }
        let all = self.session.live_subtree(AgentId::MAIN);
        match self.session.world.audience {
            Audience::Present => all.into_iter().for_each(|id| self.offer_to_continue(id)),
            // Whoever rests looks again whether anybody can come, the deepest first.
            Audience::Absent => self.ready.extend(all.into_iter().skip(1).rev()),
        }
    }

    /// A paused agent whose parent waits for it fails; a worker's parent is told.
    fn nobody_continues(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let Phase::Paused { why, .. } = &agent.phase else { return };
        let text = format!("{why}, and nobody is there to continue it");
        match agent.parent {
            Some((_, Link::Result(_))) => {
                let why = Why::Limit(text.clone());
                self.finish(id, Outcome::Failed, text, why, Who::Runtime);
            }
            Some((_, Link::Note)) => self.tell_parent_of(id, format!("paused: {text}")),
            None => {}
        }
    }
}
