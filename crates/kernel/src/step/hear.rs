//! What people say: admitted once, queued in order, heard by the right agent.

use alloc::format;
use alloc::string::String;

use super::Step;
use crate::apply::dedupe_key;
use crate::ask::{AskKind, AskTo, Verdict};
use crate::event::Event;
use crate::id::{AgentId, AskId, InputId};
use crate::input::Refusal;
use crate::limits::{COALESCE_MS, INBOX_MAX, INPUT_BYTES_MAX, QUEUE_MAX};
use crate::message::{Message, Note, Source, To, Urgency, Who};
use crate::state::{Agent, CallState, Phase, Waiting};

impl Step<'_> {
    pub(super) fn said(&mut self, message: Message) -> Result<(), Refusal> {
        check_text(&message.text)?;
        if let Some(input) = dedupe_key(&message).and_then(|id| self.session.seen.ids.get(&id)) {
            return Err(Refusal::Duplicate { input: *input });
        }
        if self.session.queue.len() >= QUEUE_MAX {
            return Err(Refusal::QueueFull { max: QUEUE_MAX });
        }
        let to = match message.to {
            To::Floor => self.session.top(),
            To::Main => AgentId::MAIN,
            To::Agent(id) => self.live_agent(id)?.id,
        };
        let agent = self.agent(to)?;
        if agent.inbox.len() >= INBOX_MAX {
            return Err(Refusal::InboxFull { agent: to, max: INBOX_MAX });
        }
        let by_name = to != self.session.top();
        match message.urgency {
            Urgency::Queue if !by_name => self.queue_up(message),
            Urgency::Queue | Urgency::Steer => {
                let input = self.admit_message(message);
                self.hear_input(to, input);
            }
            Urgency::Interrupt => {
                let by = who(&message);
                let input = self.admit_message(message);
                self.interrupt(to, &by);
                self.hear_input(to, input);
            }
        }
        Ok(())
    }

    fn queue_up(&mut self, message: Message) {
        let joins = self.session.queue.back().filter(|last| {
            last.message.channel == message.channel
                && last.message.sender == message.sender
                && last.message.urgency == Urgency::Queue
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
        self.emit(Event::Moved { input, before: to });
        Ok(())
    }

    fn waiting(&self, input: InputId) -> Result<&Waiting, Refusal> {
        let found = self.session.queue.iter().find(|waiting| waiting.input == input);
        found.ok_or(Refusal::UnknownInput { input })
    }

    /// Hands the first waiting input to whoever holds the floor, if they listen.
    pub(super) fn serve_queue(&mut self) -> bool {
        let top = self.session.top();
        let Some(first) = self.session.queue.front() else { return false };
        if !self.session.agent(top).is_some_and(|agent| self.listens(agent)) {
            return false;
        }
        let input = first.input;
        self.hear_input(top, input);
        true
    }

    /// At rest, paused, asking the person, or in a `wait` that a person may end.
    fn listens(&self, agent: &Agent) -> bool {
        match &agent.phase {
            Phase::Resting | Phase::Paused { .. } => true,
            Phase::Acting => {
                self.question_of(agent).is_some()
                    || agent.calls().any(|call| matches!(call.state, CallState::Awaiting(_)))
            }
            Phase::Queued | Phase::Starting { .. } | Phase::Thinking(_) | Phase::Ended => false,
        }
    }

    /// The question to the person that an agent's call waits for.
    fn question_of(&self, agent: &Agent) -> Option<AskId> {
        agent.calls().find_map(|call| match call.state {
            CallState::Asked(id) => {
                let ask = self.session.asks.get(&id)?;
                let question = matches!(ask.kind, AskKind::Question { .. });
                (question && ask.to == AskTo::Person).then_some(id)
            }
            CallState::Pending
            | CallState::Approved
            | CallState::Running { .. }
            | CallState::Child(_)
            | CallState::Awaiting(_)
            | CallState::Returned(_) => None,
        })
    }

    /// An admitted input reaches its agent: as the answer to its question, or as a note.
    fn hear_input(&mut self, id: AgentId, input: InputId) {
        let Ok(message) = self.waiting(input).map(|waiting| waiting.message.clone()) else {
            return;
        };
        let by = who(&message);
        let Some(agent) = self.session.agent(id) else { return };
        if let Some(ask) = self.question_of(agent) {
            self.settle_question(ask, message.text, by, Some(input));
            return;
        }
        let paused = match &agent.phase {
            Phase::Paused { ask, .. } => Some(*ask),
            Phase::Queued
            | Phase::Starting { .. }
            | Phase::Thinking(_)
            | Phase::Acting
            | Phase::Resting
            | Phase::Ended => None,
        };
        let note = Note {
            source: Source::Person { channel: message.channel, sender: message.sender },
            text: message.text,
            input: Some(input),
            receipt: None,
        };
        self.emit(Event::Heard { agent: id, note });
        if let Some(ask) = paused {
            if let Some(ask) = ask {
                let verdict = Verdict::Continue { text: None };
                self.emit(Event::Settled { ask, verdict, by: by.clone(), input: None });
            }
            self.emit(Event::Continued { agent: id, by });
        }
        self.check_wait(id);
        self.ready.push_back(id);
    }

    /// Drops what an agent is doing, without ending it: `interrupt`, and the cancel of main.
    pub(super) fn interrupt(&mut self, id: AgentId, by: &Who) {
        let Some(agent) = self.session.agent(id) else { return };
        match &agent.phase {
            Phase::Thinking(_) => {
                self.emit(Event::TurnDropped { agent: id, by: by.clone() });
            }
            Phase::Acting | Phase::Queued if agent.turn.is_some() => self.cancel_calls(id, by),
            Phase::Acting
            | Phase::Queued
            | Phase::Starting { .. }
            | Phase::Resting
            | Phase::Paused { .. }
            | Phase::Ended => {}
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

fn who(message: &Message) -> Who {
    let Message { channel, sender, .. } = message;
    let name = if sender.is_empty() { channel.clone() } else { format!("{sender} on {channel}") };
    Who::Person(name)
}
