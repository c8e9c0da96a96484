//! A person named somebody who was not there: what becomes of that once it is known whom the name
//! means. One input, heard once, whoever hears it.

use alloc::format;
use alloc::string::String;

use super::hear::who;
use super::{Step, is_internal};
use crate::{
    Agent, AgentId, Definition, Event, Found, InputId, Key, Message, Mode, Note, Phase, Refusal,
    Source, To, short,
};

/// Whom something that waits was said to by name.
pub(super) enum Called {
    Nobody,
    /// Nobody of that name lives: they must be looked for.
    Absent,
    Present(AgentId),
}

impl Step<'_> {
    pub(super) fn summoned(&mut self, key: Key, found: Found) -> Result<(), Refusal> {
        let input = InputId(key.0);
        let stale = Refusal::Stale { key };
        let Ok(waiting) = self.waiting(input) else { return Err(stale) };
        // They may have come meanwhile; then it is heard when they listen.
        if !self.session.wants_summons(waiting) {
            return Err(stale);
        }
        let message = waiting.message.clone();
        let To::Name(name) = &message.to else { return Err(stale) };
        let started = self
            .summoned_definition(name, found)
            .and_then(|definition| self.start_on_floor(&definition, &message, input));
        if let Err(why) = started {
            self.nobody_came(name, &message, input, why);
        }
        Ok(())
    }

    fn summoned_definition(&self, name: &str, found: Found) -> Result<Definition, String> {
        match found {
            Found::Made(definition) => Ok(*definition),
            Found::Not(why) => Err(why),
            Found::Nothing => {
                let digest = self.find_definition(name).ok().filter(|it| !is_internal(it));
                let known = &self.session.world.definitions;
                let definition = digest.and_then(|digest| known.get(&digest));
                definition
                    .map(|it| (**it).clone())
                    .ok_or_else(|| "no definition is named so".into())
            }
        }
    }

    pub(super) fn called(&self, message: &Message) -> Called {
        let To::Name(name) = &message.to else { return Called::Nobody };
        match self.session.live_named(name)[..] {
            [id] => Called::Present(id),
            [] | [..] => Called::Absent,
        }
    }

    /// What was said to start somebody is a task: it neither answers what they ask because of
    /// another nor is left unread by who ends with that other, so on the floor it waits until they
    /// rest. A name alone only wants them to be there.
    pub(super) fn takes_task(&self, id: AgentId, message: &Message) -> bool {
        let agent = &self.session[id];
        message.text.trim().is_empty() || agent.mode != Mode::Floor || rests(agent)
    }

    /// What was said is not lost: main hears it as it was said, and why nobody else does.
    fn nobody_came(&mut self, name: &str, message: &Message, input: InputId, why: String) {
        let by = who(message);
        let text = message.words();
        let Message { channel, sender, pictures, .. } = message.clone();
        let source = Source::Person { channel, sender };
        let note = Note { input: Some(input), pictures, ..Note::new(source, text) };
        let main = AgentId::MAIN;
        let paused = self.session[main].is_paused();
        self.emit(Event::Heard { agent: main, note });
        self.tell(main, Source::Runtime, format!("@{name} could not be started: {}", short(why)));
        if paused {
            self.go_on(main, &by);
        }
        self.check_wait(main);
        self.ready.push_back(main);
    }
}

/// At rest with nothing to read, or in a `wait` that a person may end.
fn rests(agent: &Agent) -> bool {
    match agent.phase {
        Phase::Resting => !agent.has_reason_to_think(),
        Phase::Acting => agent.calls().any(|call| call.wait_for().is_some()),
        Phase::Queued
        | Phase::Starting { .. }
        | Phase::Thinking(_)
        | Phase::Paused { .. }
        | Phase::Ended => false,
    }
}
