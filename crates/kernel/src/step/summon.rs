//! A person named somebody who was not there: what becomes of that once it is known whom the name
//! means. One input, heard once, whoever hears it.

use alloc::format;
use alloc::string::String;

use super::Step;
use super::hear::who;
use crate::{
    AgentId, Definition, Event, Found, InputId, Key, Message, Note, Refusal, Source, To, Who, short,
};

impl Step<'_> {
    pub(super) fn summoned(&mut self, key: Key, found: Found) -> Result<(), Refusal> {
        let input = InputId(key.0);
        let stale = Refusal::Stale { key };
        let Ok(waiting) = self.waiting(input) else { return Err(stale) };
        let message = waiting.message.clone();
        let To::Name(name) = &message.to else { return Err(stale) };
        // They may have come meanwhile.
        if let [id] = self.session.live_named(name)[..] {
            if message.text.trim().is_empty() {
                self.emit(Event::Dropped { input, by: Who::Runtime });
            } else {
                self.hear_input(id, input);
            }
            return Ok(());
        }
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
                let digest = self.find_definition(name)?;
                let definition = self.session.world.definitions.get(&digest);
                definition.map(|it| (**it).clone()).ok_or_else(|| "no such definition".into())
            }
        }
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
