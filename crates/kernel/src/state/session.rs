//! What can be asked of a session: who is in it, how they stand to each other, what it was told.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use serde_json::Value;

use crate::{
    Agent, AgentId, Ask, Breach, Definition, Grant, InputId, Kit, ModelSpec, PolicyMode, Rights,
    Rule, Seq, Session, Sub, Time, ToolSpec, TreeLimits,
};

impl Session {
    /// A session before its first event.
    #[must_use]
    pub fn new() -> Session {
        Session::default()
    }

    /// The number of the last event; the next entry begins after it.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The moment of the last event.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How calls are judged, as it was last told.
    #[must_use]
    pub fn mode(&self) -> PolicyMode {
        self.world.mode
    }

    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.world.rules
    }

    /// A tool of the edge, as it was last declared.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.world.tools.get(name)
    }

    #[must_use]
    pub fn limits(&self) -> &TreeLimits {
        &self.world.limits
    }

    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.world.workspace
    }

    #[must_use]
    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(id.index())
    }

    /// Everybody, in order of birth.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Who holds or has lent the floor, main first.
    #[must_use]
    pub fn stack(&self) -> &[AgentId] {
        &self.stack
    }

    /// What was allowed for longer than once and still holds, oldest first.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// The open asks, oldest first.
    pub fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.values()
    }

    /// The inputs that wait, first in line first.
    pub fn waiting(&self) -> impl Iterator<Item = InputId> {
        self.queue.iter().map(|waiting| waiting.input)
    }

    /// Who hears the person.
    pub(crate) fn top(&self) -> AgentId {
        self.stack.last().copied().unwrap_or(AgentId::MAIN)
    }

    /// `main/builder/tests`: labels from the root down.
    #[must_use]
    pub fn path(&self, id: AgentId) -> String {
        let mut labels = Vec::new();
        let mut at = Some(id);
        while let Some(agent) = at.and_then(|id| self.agent(id)) {
            labels.push(agent.label.as_str());
            at = agent.parent.map(|(parent, _)| parent);
        }
        labels.reverse();
        labels.join("/")
    }

    /// True if `id` is `root` or below it.
    #[must_use]
    pub fn is_within(&self, id: AgentId, root: AgentId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == root {
                return true;
            }
            at = self.agent(id).and_then(|agent| agent.parent.map(|(parent, _)| parent));
        }
        false
    }

    /// Whether a limit holds for an agent too: it is the tree's, its own, or of somebody above.
    pub(crate) fn binds(&self, breach: &Breach, id: AgentId) -> bool {
        breach.of.is_none_or(|of| self.is_within(id, of))
    }

    /// The live agents of a subtree, each before its children.
    pub(crate) fn live_subtree(&self, root: AgentId) -> Vec<AgentId> {
        let mut found = Vec::new();
        let mut todo = Vec::from([root]);
        while let Some(id) = todo.pop() {
            if let Some(agent) = self.agent(id).filter(|agent| !agent.has_ended()) {
                found.push(id);
                todo.extend(agent.live.iter().copied());
            }
        }
        found
    }

    /// What an agent may do itself, under everybody's ceilings. Looked at anew each time, so that
    /// what was taken from somebody above is gone at once.
    pub(crate) fn rights(&self, agent: AgentId) -> Rights {
        let own = self.agent(agent).map(|agent| agent.uses.clone()).unwrap_or_default();
        own.meet(&self.ceiling(agent))
    }

    /// The most an agent may do or hand on, under everybody's ceilings.
    pub(crate) fn ceiling(&self, agent: AgentId) -> Rights {
        let mut at = self.agent(agent);
        let mut rights = Rights::all();
        while let Some(holder) = at {
            rights = rights.meet(&holder.ceiling);
            at = holder.parent.and_then(|(parent, _)| self.agent(parent));
        }
        rights
    }

    /// Whose copy of the repository an agent works in: its own, or that of the nearest above.
    pub(crate) fn desk(&self, agent: AgentId) -> Option<AgentId> {
        let mut at = self.agent(agent);
        while let Some(holder) = at {
            if self.definition(holder).is_some_and(|it| it.kit.worktree) {
                return Some(holder.id);
            }
            at = holder.parent.and_then(|(parent, _)| self.agent(parent));
        }
        None
    }

    /// What is brought for an agent before its first turn.
    #[must_use]
    pub fn kit(&self, agent: AgentId) -> Option<&Kit> {
        Some(&self.definition(self.agent(agent)?)?.kit)
    }

    /// The definitions that only this agent may use.
    #[must_use]
    pub fn subs(&self, agent: AgentId) -> &[Sub] {
        let definition = self.agent(agent).and_then(|agent| self.definition(agent));
        definition.map(|it| it.subs.as_slice()).unwrap_or_default()
    }

    /// What an agent's final words must be, if that is said.
    #[must_use]
    pub fn form(&self, agent: AgentId) -> Option<&Value> {
        self.definition(self.agent(agent)?)?.output.as_deref()
    }

    pub(crate) fn definition(&self, agent: &Agent) -> Option<&Definition> {
        self.world.definitions.get(&agent.definition).map(Arc::as_ref)
    }

    pub(crate) fn model_spec(&self, model: &str) -> ModelSpec {
        self.world.models.get(model).cloned().unwrap_or_default()
    }
}

/// For ids that come out of the state itself; whoever has one from outside asks [`Session::agent`].
impl Index<AgentId> for Session {
    type Output = Agent;

    fn index(&self, id: AgentId) -> &Agent {
        &self.agents[id.index()]
    }
}

impl IndexMut<AgentId> for Session {
    fn index_mut(&mut self, id: AgentId) -> &mut Agent {
        &mut self.agents[id.index()]
    }
}
