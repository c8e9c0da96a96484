//! Model turns: when one begins, and what its reply means.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

use super::Step;
use super::limit::limit_words;
use crate::limits::{
    ARGUMENT_BYTES_MAX, ARGUMENT_DEPTH_MAX, CALLS_PER_REPLY_MAX, COMPACT_AT_PERCENT, FLAWS_MAX,
    REPLY_BYTES_MAX,
};
use crate::{
    Agent, AgentId, Audience, Breach, CallState, Compaction, Event, Key, Mode, Outcome, Phase,
    Purpose, Refusal, Reply, Source, Spend, Tool, TurnStart, Who, Why, clip, short,
};

impl Step<'_> {
    /// The agent wants to think. It may have to wait for a slot, prepare, stop at a limit or
    /// compact first; otherwise a model call is owed.
    pub(super) fn begin_turn(&mut self, id: AgentId) {
        let agent = &self.session[id];
        if !agent.after.is_empty() || self.judge_own(id) {
            return;
        }
        let agent = &self.session[id];
        if !self.may_run(agent) {
            self.line_up(id);
            return;
        }
        let setup = self.session.definition(agent).is_some_and(|definition| definition.setup);
        if setup && !agent.prepared {
            self.emit(Event::Preparing { agent: id });
            return;
        }
        if agent.last_turn.is_some() {
            self.fail_at_limit(id);
            return;
        }
        match self.shortage(id) {
            Some(short) if short.waits => {
                self.emit(Event::Held { agent: id });
                return;
            }
            Some(short) => return self.stop_at_limit(id, short.breach),
            None => {}
        }
        let program = self.session.definition(agent).and_then(|it| it.program.clone());
        if let Some(program) = program {
            return self.run_program(id, &program);
        }
        let spec = self.session.model_spec(&agent.model);
        let full = agent.context_tokens.saturating_mul(100)
            >= spec.window_tokens.saturating_mul(COMPACT_AT_PERCENT);
        if full && !agent.squeezed && !agent.transcript.is_empty() {
            self.think(id, Purpose::Summary { resume: true }, None);
        } else {
            self.think(id, Purpose::Answer, None);
        }
    }

    pub(super) fn think(&mut self, id: AgentId, purpose: Purpose, grace: Option<Breach>) {
        let agent = &self.session[id];
        let reads = match purpose {
            Purpose::Answer => agent.readable().map(|(key, _)| *key).collect(),
            Purpose::Summary { .. } => Vec::new(),
        };
        let reserved = self.estimate(agent);
        let turn = TurnStart { agent: id, purpose, reads, reserved, grace };
        self.emit(Event::TurnBegan(Box::new(turn)));
    }

    /// What the next request may cost: all of the context in, the longest answer out.
    pub(super) fn estimate(&self, agent: &Agent) -> Spend {
        let spec = self.session.model_spec(&agent.model);
        let unread = agent.readable().map(|(_, note)| note.tokens()).sum();
        let input = agent.context_tokens.saturating_add(unread);
        let price = |tokens: u64, price: Option<u64>| {
            tokens.saturating_mul(price.unwrap_or(0)).div_ceil(1_000_000)
        };
        Spend {
            tokens: input.saturating_add(spec.output_tokens_max),
            micro_usd: price(input, spec.input_price)
                .saturating_add(price(spec.output_tokens_max, spec.output_price)),
        }
    }

    /// Whether an agent may become active now. The floor never waits for a slot; others take
    /// theirs in order, those with begun work before newcomers.
    pub(super) fn may_run(&self, agent: &Agent) -> bool {
        if agent.mode == Mode::Floor || agent.slot {
            return true;
        }
        if !self.session.has_free_slot() || self.session.is_capped(agent.id) {
            return false;
        }
        // Who may not go on for another reason holds nobody up.
        let next = self.session.admissible().next();
        match next {
            None => true,
            Some(next) if next == agent.id => true,
            Some(next) => {
                let in_line = self.session.line_position(agent.id).is_some();
                let begun = self.session.slots.returning.contains(&next);
                !in_line && is_returning(agent) && !begun
            }
        }
    }

    pub(super) fn line_up(&mut self, id: AgentId) {
        if self.session.line_position(id).is_some() {
            return;
        }
        let returning = is_returning(&self.session[id]);
        self.emit(Event::Lined { agent: id, returning });
    }

    pub(super) fn replied(&mut self, key: Key, reply: Reply) -> Result<(), Refusal> {
        let (agent, thought) = self.thinker(key)?;
        let id = agent.id;
        if let Purpose::Summary { .. } = thought.purpose {
            let before_tokens = agent.context_tokens;
            let summary = clip(reply.text, REPLY_BYTES_MAX);
            let (usage, micro_usd) = (reply.usage, reply.micro_usd);
            let compaction = Compaction { agent: id, summary, before_tokens, usage, micro_usd };
            self.emit(Event::Compacted(Box::new(compaction)));
            self.ready.push_back(id);
            return Ok(());
        }
        let mut reply = bounded(reply);
        let brought = core::mem::take(&mut reply.brings);
        let reply = self.with_checks(id, reply);
        let text = reply.text.clone();
        let (rests, flaw) = (reply.calls.is_empty(), reply.flaw.clone());
        let on_floor = self.session[id].mode == Mode::Floor;
        self.emit(Event::Replied { agent: id, reply: Box::new(reply) });
        self.bring(brought);
        if on_floor && !text.trim().is_empty() {
            self.speak(id, &text);
        }
        if rests && let Some(flaw) = flaw.filter(|_| self.are_final_words(id)) {
            self.hand_back(id, &flaw);
        } else if rests && self.session[id].last_turn.is_some() {
            self.end_with_last_words(id);
        } else {
            self.ready.push_back(id);
        }
        Ok(())
    }

    /// What an agent does that has nothing to answer: main and whoever talks with a person wait
    /// for words, the others for those below them. If nobody can come, its last words are its
    /// result.
    pub(super) fn rest(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let heard = agent.mode == Mode::Floor && self.session.world.audience == Audience::Present;
        if !(agent.is_main() || heard || self.has_progress_below(id)) {
            self.end_with_last_words(id);
        }
    }

    /// Whether nobody would be waited for after words without a call: somebody talking with a
    /// person may say anything, and hands its result in with `complete`.
    pub(super) fn are_final_words(&self, id: AgentId) -> bool {
        let agent = &self.session[id];
        let talks = !agent.is_main() && agent.mode == Mode::Floor;
        let heard = talks && self.session.world.audience == Audience::Present;
        !heard && !self.has_progress_below(id)
    }

    /// What was handed in is not what was wanted: it is told what is wrong and tries again, for as
    /// long as it may.
    fn hand_back(&mut self, id: AgentId, flaw: &str) {
        if !self.may_try_again(id) {
            return self.end_flawed(id, flaw);
        }
        let text = format!("Your final output was not accepted. {flaw} Answer with it again.");
        self.tell(id, Source::Runtime, text);
        self.ready.push_back(id);
    }

    pub(super) fn may_try_again(&self, id: AgentId) -> bool {
        let agent = &self.session[id];
        agent.last_turn.is_none() && agent.flaws <= FLAWS_MAX
    }

    /// Main never ends: it rests, and whoever reads its words sees what is wrong with them.
    pub(super) fn end_flawed(&mut self, id: AgentId, flaw: &str) {
        if id == AgentId::MAIN {
            return;
        }
        let text = format!("{}\n[not accepted: {flaw}]", self.session[id].last_words());
        self.finish(id, Outcome::Failed, text, Why::Flawed(flaw.into()), Who::Runtime);
    }

    fn end_with_last_words(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let why = agent.last_turn.as_ref().map_or(Why::Spoke, limit_words);
        let text = agent.last_words();
        self.finish(id, Outcome::Done, text, why, Who::Agent(id));
    }

    /// Whether anybody below an agent can still move without it. A paused child, one that asks,
    /// or one that talks with the person needs somebody to be there; one that comes after others
    /// moves when they do.
    fn has_progress_below(&self, id: AgentId) -> bool {
        let present = self.session.world.audience == Audience::Present;
        self.session.live_subtree(id).into_iter().skip(1).any(|below| {
            let agent = &self.session[below];
            match &agent.phase {
                Phase::Queued => agent.after.is_empty(),
                Phase::Starting { .. } | Phase::Thinking(_) => true,
                Phase::Paused { .. } => present,
                Phase::Acting => agent.open_call().is_some_and(|call| match call.state {
                    CallState::Asked(_) => present,
                    CallState::Child(_) => false,
                    CallState::Pending
                    | CallState::Approved
                    | CallState::Running { .. }
                    | CallState::Awaiting(_)
                    | CallState::Returned(_) => true,
                }),
                Phase::Resting => {
                    agent.has_reason_to_think() || (present && agent.mode == Mode::Floor)
                }
                Phase::Ended => false,
            }
        })
    }
}

fn is_returning(agent: &Agent) -> bool {
    agent.tally.turns > 0 || agent.prepared
}

/// A reply that fits the bounds. A call that cannot be kept whole is kept as a string, which is
/// not an object and so will not run.
fn bounded(mut reply: Reply) -> Reply {
    reply.text = clip(reply.text, REPLY_BYTES_MAX);
    reply.calls.truncate(CALLS_PER_REPLY_MAX);
    reply.flaw = reply.flaw.map(short);
    reply.reasoning = reply.reasoning.filter(|value| unfit(value).is_none());
    for call in &mut reply.calls {
        if Tool::named(&call.name) == Some(Tool::Complete)
            && let Some(Value::String(result)) = call.arguments.get_mut("result")
        {
            *result = clip(core::mem::take(result), ARGUMENT_BYTES_MAX / 2);
        }
        if let Some(why) = unfit(&call.arguments) {
            call.arguments = Value::String(why);
        }
        call.name = clip(core::mem::take(&mut call.name), 256);
    }
    reply
}

/// Why a value may not be kept. Deeper than this a journal could be written but not read back.
/// Bytes are those of its text, near enough to its JSON length to bound it.
pub(super) fn unfit(value: &Value) -> Option<String> {
    let (mut deepest, mut bytes) = (0, 0);
    let mut todo = Vec::from([(value, 1)]);
    while let Some((value, level)) = todo.pop() {
        deepest = deepest.max(level);
        bytes += 8;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => todo.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => {
                bytes += map.keys().map(String::len).sum::<usize>();
                todo.extend(map.values().map(|item| (item, level + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    if deepest > ARGUMENT_DEPTH_MAX {
        return Some(TOO_DEEP.into());
    }
    let large = || format!("{TOO_LARGE}: {bytes} bytes, {ARGUMENT_BYTES_MAX} is the most");
    (bytes > ARGUMENT_BYTES_MAX).then(large)
}

/// What stands in for arguments that were not kept.
pub(super) const TOO_LARGE: &str = "the arguments are too large";
pub(super) const TOO_DEEP: &str = "the arguments are nested too deep";
