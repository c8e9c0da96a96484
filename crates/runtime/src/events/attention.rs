//! Where a decision left everybody: the state of each, and how many are in which.

use std::collections::BTreeMap;

use locum_kernel::{AgentId, State, attention, state_word};
use serde::{Deserialize, Serialize};

use super::{Teller, Telling};
use crate::clock::rfc3339;
use crate::line::{AttentionLine, Body};

/// How many agents are in which state, and how many of them wait for a person.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Crowd {
    counts: BTreeMap<State, u32>,
    needs_you: u32,
}

impl Crowd {
    /// Somebody is born in a state that need not be told.
    pub(super) fn comes(&mut self, state: Option<State>) {
        if let Some(state) = state {
            *self.counts.entry(state).or_default() += 1;
        }
    }

    fn moves(&mut self, from: Option<State>, to: State) {
        if let Some(count) = from.and_then(|from| self.counts.get_mut(&from)) {
            *count = count.saturating_sub(1);
        }
        *self.counts.entry(to).or_default() += 1;
    }

    /// What is worth a line of its own; who is at work changes at every step.
    fn gist(&self) -> (Vec<u32>, u32) {
        let waits = |state: &State| match state {
            State::Queued
            | State::Approve
            | State::Input
            | State::Paused
            | State::Done
            | State::Failed
            | State::Cancelled => true,
            State::Starting | State::Model | State::Tool | State::Child => false,
        };
        let counts = State::ALL.iter().filter(|state| waits(state));
        (counts.map(|state| self.count(*state)).collect(), self.needs_you)
    }

    fn count(&self, state: State) -> u32 {
        self.counts.get(&state).copied().unwrap_or_default()
    }
}

impl Teller {
    /// Where the decision left everybody who was, or has just stopped being, alive.
    pub(super) fn states(&mut self, telling: &mut Telling<'_>, cause: &'static str) {
        let before = self.crowd.gist();
        for id in self.live.clone() {
            let Some(agent) = telling.after.agent(id) else { continue };
            let state = state_word(telling.after, agent);
            let Some(part) = self.cast.get_mut(id.0 as usize) else { continue };
            let prev = part.state.replace(state);
            if prev == Some(state) {
                continue;
            }
            let Some(need) = attention(telling.after, id, telling.at) else { continue };
            let waited = std::mem::replace(&mut part.waits, need.kind.is_for_a_person());
            self.crowd.moves(prev, state);
            self.crowd.needs_you += u32::from(need.kind.is_for_a_person());
            self.crowd.needs_you -= u32::from(waited);
            let attention = AttentionLine {
                required: need.required,
                kind: need.kind,
                since: rfc3339(need.since),
                sentence: need.sentence,
                action: need.action,
            };
            self.say(telling, id, Body::AgentState { state, prev, cause, attention });
        }
        self.live.retain(|id| telling.after.agent(*id).is_some_and(|agent| !agent.has_ended()));
        if self.crowd.gist() != before {
            let counts = State::ALL.iter().map(|state| (state.word(), self.crowd.count(*state)));
            let needs_you = self.crowd.needs_you;
            let told = Body::Attention { counts: counts.collect(), needs_you };
            self.say(telling, AgentId::MAIN, told);
        }
    }
}
