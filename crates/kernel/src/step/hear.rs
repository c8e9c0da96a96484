//! What people say: admitted once, queued in order, heard by the right agent.

use alloc::format;
use alloc::string::String;

use super::Step;
use super::summon::Called;
use crate::limits::{
    COALESCE_MS, INBOX_MAX, INPUT_BYTES_MAX, NAME_BYTES_MAX, PICTURES_MAX, QUEUE_MAX,
};
use crate::{
    Agent, AgentId, AskId, AskKind, AskTo, Call, Event, InputId, Message, Note, Phase, Refusal,
    Source, To, Urgency, Waiting, Who,
};

impl Step<'_> {
    pub(super) fn said(&mut self, mut message: Message) -> Result<(), Refusal> {
        message.pictures.truncate(PICTURES_MAX);
        check_names(&message)?;
        if let Some(input) = self.session.seen_before(&message, self.at) {
            return Err(Refusal::Duplicate { input });
        }
        if let To::Name(name) = &message.to {
            match self.session.live_named(name)[..] {
                [id] => message.to = To::Agent(id),
                // A name alone is enough to start somebody.
                [] | [..] => return self.wait_for_name(message),
            }
        }
        check_text(&message.text)?;
        let queued = message.urgency == Urgency::Queue && message.to == To::Floor;
        if queued && self.session.queue.len() >= QUEUE_MAX {
            return Err(Refusal::QueueFull { max: QUEUE_MAX });
        }
        let to = match message.to {
            To::Floor => self.session.top(),
            To::Main => AgentId::MAIN,
            To::Agent(id) => self.live_agent(id)?.id,
            To::Name(_) => return Err(Refusal::Empty),
        };
        let agent = self.agent(to)?;
        if agent.inbox.len() >= INBOX_MAX {
            return Err(Refusal::InboxFull { agent: to, max: INBOX_MAX });
        }
        match message.urgency {
            Urgency::Queue if queued => self.queue_up(message),
            Urgency::Queue | Urgency::Steer => {
                let input = self.admit_message(message);
                self.hear_input(to, input);
            }
            Urgency::Interrupt => {
                let by = who(&message);
                let input = self.admit_message(message);
                self.interrupt(to, "Cancelled", &by);
                self.hear_input(to, input);
            }
        }
        Ok(())
    }

    /// Stands in the queue until somebody has looked for the definition; what is said after it
    /// waits behind it, for it may be meant for them.
    fn wait_for_name(&mut self, message: Message) -> Result<(), Refusal> {
        if message.text.len() > INPUT_BYTES_MAX {
            return Err(Refusal::TooLarge { bytes: message.text.len(), max: INPUT_BYTES_MAX });
        }
        if self.session.queue.len() >= QUEUE_MAX {
            return Err(Refusal::QueueFull { max: QUEUE_MAX });
        }
        self.admit_message(message);
        Ok(())
    }

    fn queue_up(&mut self, message: Message) {
        let joins = self.session.queue.back().filter(|last| {
            last.message.to == To::Floor
                && last.message.channel == message.channel
                && last.message.sender == message.sender
                && last.message.urgency == Urgency::Queue
                && last.message.reply_to == message.reply_to
                && self.at.since(last.at) <= COALESCE_MS
                && last.message.text.len() + message.text.len() < INPUT_BYTES_MAX
        });
        match joins.map(|last| last.input) {
            Some(input) => {
                self.emit(Event::Merged { input, message });
            }
            None => {
                self.admit_message(message);
            }
        }
    }

    fn admit_message(&mut self, message: Message) -> InputId {
        InputId(self.emit(Event::Enqueued { message }).0)
    }

    pub(super) fn edited(&mut self, input: InputId, text: String) -> Result<(), Refusal> {
        check_text(&text)?;
        self.waiting(input)?;
        self.emit(Event::Edited { input, text });
        Ok(())
    }

    pub(super) fn dropped(&mut self, input: InputId, by: Who) -> Result<(), Refusal> {
        self.waiting(input)?;
        self.emit(Event::Dropped { input, by });
        Ok(())
    }

    pub(super) fn moved(&mut self, input: InputId, to: Option<InputId>) -> Result<(), Refusal> {
        self.waiting(input)?;
        if let Some(before) = to {
            self.waiting(before)?;
        }
        if to != Some(input) {
            self.emit(Event::Moved { input, before: to });
        }
        Ok(())
    }

    pub(super) fn waiting(&self, input: InputId) -> Result<&Waiting, Refusal> {
        let found = self.session.queue.iter().find(|waiting| waiting.input == input);
        found.ok_or(Refusal::UnknownInput { input })
    }

    /// Hands the first of what waits to whoever it is for, if they listen. What is said behind
    /// somebody who must be looked for waits for them; what waits for somebody who is there and at
    /// work holds nobody up, for the answer they need may be behind it.
    pub(super) fn serve_queue(&mut self) -> bool {
        let top = self.session.top();
        let mut floor = self.listens(&self.session[top]).then_some(top);
        let next = self.session.queue.iter().find_map(|waiting| {
            let to = match self.called(&waiting.message) {
                Called::Nobody => floor,
                Called::Absent => {
                    floor = None;
                    None
                }
                Called::Present(id) => self.takes_task(id, &waiting.message).then_some(id),
            };
            to.map(|id| (waiting.input, id, waiting.message.text.trim().is_empty()))
        });
        match next {
            None => return false,
            // They were called, and are there.
            Some((input, _, true)) => drop(self.emit(Event::Dropped { input, by: Who::Runtime })),
            Some((input, id, false)) => self.hear_input(id, input),
        }
        true
    }

    /// At rest, paused, asking the person, or in a `wait` that a person may end.
    fn listens(&self, agent: &Agent) -> bool {
        match &agent.phase {
            Phase::Resting | Phase::Paused { .. } => true,
            Phase::Acting => {
                let waits = agent.calls().any(|call| call.wait_for().is_some());
                waits || self.question_of(agent, &[AskTo::Person]).is_some()
            }
            Phase::Queued | Phase::Starting { .. } | Phase::Thinking(_) | Phase::Ended => false,
        }
    }

    /// The question to one of these that an agent's call waits for.
    pub(super) fn question_of(&self, agent: &Agent, to: &[AskTo]) -> Option<AskId> {
        let asks = agent.calls().filter_map(Call::asked);
        let mut asks = asks.filter_map(|id| self.session.asks.get(&id));
        let found =
            asks.find(|ask| matches!(ask.kind, AskKind::Question { .. }) && to.contains(&ask.to));
        found.map(|ask| ask.id)
    }

    /// An admitted input reaches its agent: as the answer to its question, or as a note.
    pub(super) fn hear_input(&mut self, id: AgentId, input: InputId) {
        let Ok(message) = self.waiting(input).map(|waiting| waiting.message.clone()) else {
            return;
        };
        let by = who(&message);
        let agent = &self.session[id];
        // Somebody spoken to by name may be asking its parent; a person's word is as good.
        let to: &[AskTo] = if message.to == To::Floor {
            &[AskTo::Person]
        } else {
            &[AskTo::Person, AskTo::Parent]
        };
        if let Some(ask) = self.question_of(agent, to) {
            self.settle_question(ask, message.text, by, Some(input));
            return;
        }
        let paused = agent.is_paused();
        let source = Source::Person { channel: message.channel, sender: message.sender };
        let (input, pictures) = (Some(input), message.pictures);
        let note = Note { input, pictures, ..Note::new(source, message.text) };
        self.emit(Event::Heard { agent: id, note });
        if paused {
            self.go_on(id, &by);
        }
        self.check_wait(id);
        self.ready.push_back(id);
    }

    /// Drops what an agent is doing, without ending it: `interrupt`, and the cancel of main.
    pub(super) fn interrupt(&mut self, id: AgentId, words: &str, by: &Who) {
        let agent = &self.session[id];
        let in_line = matches!(agent.phase, Phase::Queued) && agent.after.is_empty();
        if agent.thought().is_some() || (in_line && agent.turn.is_none()) {
            self.emit(Event::TurnDropped { agent: id, by: by.clone() });
        } else if agent.turn.is_some() {
            self.cancel_calls(id, words, by);
        }
    }
}

fn check_text(text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    if text.len() > INPUT_BYTES_MAX {
        return Err(Refusal::TooLarge { bytes: text.len(), max: INPUT_BYTES_MAX });
    }
    Ok(())
}

fn check_names(message: &Message) -> Result<(), Refusal> {
    let Message { channel, sender, external_id, reply_to, to, .. } = message;
    let to = if let To::Name(name) = to { Some(name) } else { None };
    if to.is_some_and(|name| name.trim().is_empty()) {
        return Err(Refusal::Empty);
    }
    let names = [Some(channel), Some(sender), external_id.as_ref(), reply_to.as_ref(), to];
    let bytes = names.into_iter().flatten().map(String::len).max().unwrap_or_default();
    if bytes > NAME_BYTES_MAX {
        return Err(Refusal::TooLarge { bytes, max: NAME_BYTES_MAX });
    }
    Ok(())
}

pub(super) fn who(message: &Message) -> Who {
    let Message { channel, sender, .. } = message;
    let name = if sender.is_empty() { channel.clone() } else { format!("{sender} on {channel}") };
    Who::Person(name)
}
