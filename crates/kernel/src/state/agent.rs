//! What can be asked of an agent and its calls.

use alloc::format;
use alloc::string::String;

use crate::{
    Agent, AgentId, AskId, Body, Breach, Call, CallId, CallState, Failed, Mode, Note, Ours,
    Outcome, Output, Pause, Phase, Reply, Seq, Source, Thought, WaitFor,
};

/// What came of each call of a reply.
type Results = [(CallId, Output)];

impl Agent {
    #[must_use]
    pub fn id(&self) -> AgentId {
        self.id
    }

    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The name of the definition it was made from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    #[must_use]
    pub fn parent(&self) -> Option<AgentId> {
        self.parent.map(|(parent, _)| parent)
    }

    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Why its last exchange stopped short, until somebody speaks to it again.
    #[must_use]
    pub fn fault(&self) -> Option<&Pause> {
        self.fault.as_ref()
    }

    /// What is wrong with the last thing it handed in.
    #[must_use]
    pub fn flaw(&self) -> Option<&str> {
        let said = self.transcript.last()?.reply().and_then(|reply| reply.flaw.as_deref());
        said.or_else(|| self.trial.flaw.as_deref().filter(|_| self.is_judged()))
    }

    /// What has failed, if there is a flaw.
    #[must_use]
    pub fn failed(&self) -> Option<Failed> {
        self.flaw()?;
        let program = self.last_exchange().and_then(|(reply, results, _)| {
            let is_program = reply.calls.iter().any(|call| call.ours == Some(Ours::Program));
            results.first().filter(|_| is_program)
        });
        Some(match program {
            Some((_, output)) => Failed::Program { exit: output.exit() },
            None => Failed::Work,
        })
    }

    /// The newest reply and what came of its calls, if nothing has been said since.
    pub(crate) fn last_exchange(&self) -> Option<(&Reply, &Results, Seq)> {
        let mut newest = self.transcript.iter().rev();
        let (answered, asked) = (newest.next()?, newest.next()?);
        match (&asked.body, &answered.body) {
            (Body::Replied(reply), Body::Results(results)) => Some((reply, results, answered.seq)),
            (Body::Told(_) | Body::Replied(_) | Body::Results(_) | Body::Summary(_), _) => None,
        }
    }

    /// What its last calls were for is over: nothing is to be answered.
    fn is_judged(&self) -> bool {
        let last = self.transcript.last().map(|line| line.seq);
        self.trial.over && self.trial.judged == last
    }

    /// It lives, and what it wanted before its first turn was brought.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.prepared && !self.has_ended()
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// There is something its model has not answered: an unread note, a last line that is not
    /// the model's own, or a summary made in the middle of a turn.
    pub(crate) fn has_reason_to_think(&self) -> bool {
        let open = match self.transcript.last().map(|line| &line.body) {
            Some(Body::Results(_)) => !self.is_judged(),
            Some(Body::Told(_)) => true,
            Some(Body::Summary(_)) => self.squeezed,
            Some(Body::Replied(_)) | None => false,
        };
        open || self.readable().next().is_some()
    }

    /// The last thing it said in words; what is left of it if they were summed up since.
    pub(crate) fn last_words(&self) -> String {
        let replies = self.transcript.iter().rev().filter_map(|line| line.reply());
        let mut words = replies.filter(|reply| !reply.text.trim().is_empty());
        words.next().map_or_else(|| self.latest.clone(), |reply| reply.text.clone())
    }

    /// An estimate until the provider's count replaces it.
    pub(crate) fn grow_context(&mut self, tokens: u64) {
        self.context_tokens = self.context_tokens.saturating_add(tokens);
    }

    pub(crate) fn is_child_of(&self, id: AgentId) -> bool {
        self.parent.is_some_and(|(parent, _)| parent == id)
    }

    pub(crate) fn is_main(&self) -> bool {
        self.id == AgentId::MAIN
    }

    /// Thinking, preparing or running a tool: what a slot is for and what a clock measures.
    pub(crate) fn is_active(&self) -> bool {
        match &self.phase {
            Phase::Starting { .. } | Phase::Thinking(_) => true,
            Phase::Acting => self.calls().any(Call::is_running),
            Phase::Queued | Phase::Resting | Phase::Paused { .. } | Phase::Ended => false,
        }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turn.iter().flat_map(|turn| &turn.calls)
    }

    pub(crate) fn call(&self, id: CallId) -> Option<&Call> {
        self.calls().find(|call| call.id == id)
    }

    /// The first call without a result.
    pub(crate) fn open_call(&self) -> Option<&Call> {
        self.calls().find(|call| !call.has_returned())
    }

    pub(crate) fn thought(&self) -> Option<&Thought> {
        if let Phase::Thinking(thought) = &self.phase { Some(thought) } else { None }
    }

    /// Its conversation has had all the model calls it was given.
    pub(crate) fn has_talked_enough(&self) -> bool {
        let made = self.tally.turns.saturating_sub(self.turns_base);
        self.limits.talk_turns_max.is_some_and(|max| made >= max)
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused { .. })
    }

    /// The limit it stopped at.
    pub(crate) fn breach(&self) -> Option<&Breach> {
        if let Phase::Paused { why: Pause::Limit(breach), .. } = &self.phase {
            Some(breach)
        } else {
            None
        }
    }

    /// The ask that offers to continue it.
    pub(crate) fn pause_ask(&self) -> Option<AskId> {
        if let Phase::Paused { ask, .. } = &self.phase { *ask } else { None }
    }

    /// The model's last whole reply.
    pub(crate) fn last_reply(&self) -> Option<&Reply> {
        self.transcript.iter().rev().find_map(|line| line.reply())
    }

    /// Notes it may read now. While a person holds it on the floor, its parent's words wait.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &(Seq, Note)> {
        let with_person = self.mode == Mode::Floor && self.home != Mode::Floor;
        self.inbox.iter().filter(move |(_, note)| !(with_person && note.source == Source::Parent))
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.end.as_ref().map(|end| end.receipt.outcome)
    }

    pub(crate) fn name_and_id(&self) -> String {
        format!("{} ({})", self.label, self.id)
    }
}

impl Call {
    pub(crate) fn asked(&self) -> Option<AskId> {
        if let CallState::Asked(ask) = self.state { Some(ask) } else { None }
    }

    pub(crate) fn wait_for(&self) -> Option<&WaitFor> {
        if let CallState::Awaiting(wait) = &self.state { Some(wait) } else { None }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running { .. })
    }

    pub(crate) fn has_returned(&self) -> bool {
        matches!(self.state, CallState::Returned(_))
    }
}
