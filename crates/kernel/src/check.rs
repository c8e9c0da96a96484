//! What must be true of a session after every decision, whatever happened before. The
//! simulation calls this after each step; a driver may too.

use alloc::format;
use alloc::string::String;

use crate::{Agent, AgentId, CallState, Link, Mode, Owed, Phase, Session};

impl Session {
    /// The first broken invariant, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.agents.is_empty() {
            return Ok(());
        }
        self.check_stack()?;
        self.check_slots()?;
        self.check_owed()?;
        self.check_asks()?;
        self.agents.iter().try_for_each(|agent| self.check_agent(agent))
    }

    fn check_stack(&self) -> Result<(), String> {
        if self.stack.first() != Some(&AgentId::MAIN) {
            return Err(format!("main is not at the bottom of the stack {:?}", self.stack));
        }
        for agent in &self.agents {
            let on_stack = self.stack.iter().filter(|id| **id == agent.id).count();
            let expected = usize::from(agent.mode == Mode::Floor && !agent.has_ended());
            if on_stack != expected {
                return Err(format!("{} is {on_stack} times on the stack", agent.id));
            }
        }
        Ok(())
    }

    fn check_slots(&self) -> Result<(), String> {
        let mut holders = self.agents.iter().filter(|agent| agent.slot);
        if holders.clone().count() != self.slots.taken as usize {
            return Err(format!("{} slots counted, {} held", self.slots.taken, holders.count()));
        }
        if self.slots.taken > self.world.limits.slots.max(self.slots.excused) {
            return Err(format!("{} slots held of {}", self.slots.taken, self.world.limits.slots));
        }
        if let Some(agent) = holders.find(|agent| !agent.is_active()) {
            return Err(format!("{} waits and holds a slot", agent.id));
        }
        if self.has_free_slot() && self.admissible().next().is_some() {
            return Err("a slot is free while agents wait for one".into());
        }
        for id in self.slots.returning.iter().chain(&self.slots.fresh) {
            if !self.agent(*id).is_some_and(|agent| matches!(agent.phase, Phase::Queued)) {
                return Err(format!("{id} stands in line but is not queued"));
            }
        }
        Ok(())
    }

    /// Nothing is owed to somebody who does not wait for it.
    fn check_owed(&self) -> Result<(), String> {
        for (key, owed) in &self.owed {
            let wanted = match owed {
                Owed::Model(id) => self[*id].thought().is_some_and(|thought| thought.key == *key),
                Owed::Setup(id) => self[*id].phase == Phase::Starting { key: *key },
                Owed::Tool(id, call) => {
                    let state = self[*id].call(*call).map(|call| &call.state);
                    matches!(state, Some(CallState::Running { key: at, .. }) if at == key)
                }
                Owed::Delivery(_) => true,
                Owed::Relay(relay) => {
                    let call = self[relay.agent].call(relay.call);
                    call.is_some_and(|call| call.is_running() && call.relays.contains(key))
                }
            };
            if !wanted {
                return Err(format!("{key} is owed to nobody"));
            }
        }
        Ok(())
    }

    fn check_asks(&self) -> Result<(), String> {
        for ask in self.asks.values() {
            let Some(agent) = self.agent(ask.agent) else {
                return Err(format!("{} is asked by nobody", ask.id));
            };
            let waits = match ask.call {
                Some(call) if ask.wonder.is_some() => agent
                    .call(call)
                    .is_some_and(|call| call.is_running() && call.wonders.contains(&ask.id)),
                Some(call) => {
                    agent.call(call).is_some_and(|call| call.state == CallState::Asked(ask.id))
                }
                None => {
                    matches!(&agent.phase, Phase::Paused { ask: at, .. } if *at == Some(ask.id))
                }
            };
            if !waits {
                return Err(format!("{} is open but nothing waits for it", ask.id));
            }
        }
        let lives = |id| self.agent(id).is_some_and(|agent| !agent.has_ended());
        match self.grants.values().find(|grant| !lives(grant.root)) {
            Some(grant) => Err(format!("the grant {} outlives {}", grant.id, grant.root)),
            None => Ok(()),
        }
    }

    fn check_agent(&self, agent: &Agent) -> Result<(), String> {
        let id = agent.id;
        self.check_rights(agent)?;
        self.check_obligation(agent)?;
        self.check_wonders(agent)?;
        if agent.has_ended() != agent.end.is_some() {
            return Err(format!("{id} has ended without a receipt, or the reverse"));
        }
        if agent.has_ended() && !agent.live.is_empty() {
            return Err(format!("{id} has ended but {:?} live below it", agent.live));
        }
        if let Some((parent, link)) = agent.parent {
            let Some(parent) = self.agent(parent) else { return Err(format!("{id} is an orphan")) };
            if parent.live.contains(&id) == agent.has_ended() {
                return Err(format!("{} does not know whether {id} lives", parent.id));
            }
            if let (Link::Result(call), false) = (link, agent.has_ended())
                && parent.call(call).map(|call| &call.state) != Some(&CallState::Child(id))
            {
                return Err(format!("{} does not wait for {id}", parent.id));
            }
        }
        Ok(())
    }

    fn check_rights(&self, agent: &Agent) -> Result<(), String> {
        let id = agent.id;
        if !agent.uses.within(&agent.ceiling) {
            return Err(format!("{id} may do more than its ceiling"));
        }
        let parent = agent.parent.and_then(|(parent, _)| self.agent(parent));
        // A finished agent does nothing more; what was taken from its parent since is no matter.
        if let Some(parent) = parent.filter(|_| !agent.has_ended())
            && !agent.ceiling.within(&parent.ceiling)
        {
            return Err(format!("the ceiling of {id} is above that of {}", parent.id));
        }
        Ok(())
    }

    /// What a call wonders about is asked, and what it is to hear is owed.
    fn check_wonders(&self, agent: &Agent) -> Result<(), String> {
        for call in agent.calls() {
            let asked = call.wonders.iter().all(|ask| self.asks.contains_key(ask));
            let owed = call.relays.iter().all(|key| self.owed.contains_key(key));
            if !asked || !owed {
                return Err(format!("{} wonders about what nobody was asked", call.id));
            }
        }
        Ok(())
    }

    /// Whoever says it is busy has something owed, somebody to wait for, or a place in line.
    fn check_obligation(&self, agent: &Agent) -> Result<(), String> {
        let id = agent.id;
        let well = match &agent.phase {
            Phase::Queued => {
                let in_line = self.line_position(id).is_some() || self.held.contains(&id);
                in_line || !agent.after.is_empty()
            }
            Phase::Starting { key } => self.owed.get(key) == Some(&Owed::Setup(id)),
            Phase::Thinking(thought) => self.owed.get(&thought.key) == Some(&Owed::Model(id)),
            Phase::Acting => match agent.open_call() {
                None => false,
                Some(call) => match &call.state {
                    CallState::Running { key, .. } => {
                        self.owed.get(key) == Some(&Owed::Tool(id, call.id))
                    }
                    CallState::Asked(ask) => self.asks.contains_key(ask),
                    CallState::Child(child) => {
                        self.agent(*child).is_some_and(|child| !child.has_ended())
                    }
                    CallState::Awaiting(wait) => {
                        let timer = crate::state::Timer::Wait(id, call.id);
                        self.timers.contains(&(wait.until, timer))
                    }
                    CallState::Pending | CallState::Approved | CallState::Returned(_) => false,
                },
            },
            Phase::Resting | Phase::Paused { .. } | Phase::Ended => true,
        };
        if !well {
            return Err(format!("{id} says {:?} but nothing moves it", agent.phase));
        }
        if agent.turn.is_some() && !matches!(agent.phase, Phase::Acting | Phase::Queued) {
            return Err(format!("{id} has open calls but is {:?}", agent.phase));
        }
        let running = agent.account.clock.running_since.is_some();
        if running != agent.is_active() {
            return Err(format!("the clock of {id} is wrong about whether it works"));
        }
        Ok(())
    }
}
