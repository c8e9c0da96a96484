//! Slots and the line for them: who may be active off the floor, and who is next.

use crate::{Agent, AgentId, Session};

impl Session {
    pub(crate) fn has_free_slot(&self) -> bool {
        self.slots.taken < self.world.limits.slots
    }

    /// Somebody above it has as many below it at work as it may have.
    pub(crate) fn is_capped(&self, id: AgentId) -> bool {
        let mut at = self.agent(id).and_then(Agent::parent);
        while let Some(above) = at.and_then(|id| self.agent(id)) {
            let holds = |agent: &&Agent| agent.slot && agent.id != above.id;
            let busy = || {
                let holders = self.agents.iter().filter(holds);
                holders.filter(|agent| self.is_within(agent.id, above.id)).count()
            };
            if above.limits.slots.is_some_and(|most| busy() >= most.max(1) as usize) {
                return true;
            }
            at = above.parent();
        }
        false
    }

    /// Those in line that a free slot would be for, first in line first.
    pub(crate) fn admissible(&self) -> impl Iterator<Item = AgentId> {
        let line = self.slots.returning.iter().chain(&self.slots.fresh);
        line.copied().filter(|id| !self.is_capped(*id))
    }

    /// 1 for the next in line. `None` if it does not stand in line.
    pub(crate) fn line_position(&self, id: AgentId) -> Option<usize> {
        let line = self.slots.returning.iter().chain(&self.slots.fresh);
        line.clone().position(|waiting| *waiting == id).map(|index| index + 1)
    }

    pub(crate) fn line_length(&self) -> usize {
        self.slots.returning.len() + self.slots.fresh.len()
    }
}
