//! An agent's transcript, read out of the journal: what it was told, said, called and got back.

use std::collections::{BTreeMap, BTreeSet};

use locum_kernel::{
    AgentId, AskId, CallId, Entry, Event, Note, Output, Reply, Seq, Session, Source, Time, Verdict,
    summary,
};
use locum_runtime::clock::rfc3339;
use serde_json::{Value, json};

use super::numbered;
use crate::text;

/// One thing that happened to an agent.
pub(super) struct Item {
    seq: Seq,
    at: Time,
    kind: &'static str,
    /// Who told it, or which tool.
    name: String,
    call: Option<CallId>,
    input: Option<Value>,
    pub(super) text: String,
    is_error: bool,
}

/// Follows one agent through a journal.
pub(super) struct Transcript {
    agent: AgentId,
    asks: BTreeSet<AskId>,
    /// The tools of calls that have no result yet.
    calls: BTreeMap<CallId, String>,
}

impl Transcript {
    pub(super) fn of(agent: AgentId) -> Transcript {
        Transcript { agent, asks: BTreeSet::new(), calls: BTreeMap::new() }
    }

    /// What this entry adds; `session` is the one after it.
    pub(super) fn read(&mut self, session: &Session, entry: &Entry) -> Vec<Item> {
        let mut items = Vec::new();
        for (seq, event) in numbered(entry) {
            let item = |kind, text: String| Item {
                seq,
                at: entry.at,
                kind,
                name: String::new(),
                call: None,
                input: None,
                text,
                is_error: false,
            };
            self.one(session, event, seq, &item, &mut items);
        }
        items
    }

    fn one(
        &mut self,
        session: &Session,
        event: &Event,
        seq: Seq,
        item: &dyn Fn(&'static str, String) -> Item,
        items: &mut Vec<Item>,
    ) {
        if let Event::Settled { ask, verdict, by, .. } = event
            && self.asks.remove(ask)
        {
            items.push(Item { name: by.to_string(), ..item("answered", answer(verdict)) });
        }
        if event.agent() != Some(self.agent) {
            return;
        }
        if let Event::Heard { note, .. } = event {
            let name = teller(session, note);
            items.push(Item { name, ..item("told", note.text.clone()) });
        } else if let Event::Replied { reply, .. } = event {
            self.replied(reply, seq, item, items);
        } else if let Event::Returned { call, output, .. } = event {
            let Output { text, is_error, .. } = output.clone();
            let name = self.calls.remove(call).unwrap_or_default();
            let call = Some(*call);
            items.push(Item { name, call, is_error, ..item("returned", text) });
        } else if let Event::Asked { kind, .. } = event {
            self.asks.insert(AskId(seq.0));
            let name = AskId(seq.0).to_string();
            items.push(Item { name, ..item("asked", summary(kind)) });
        } else if let Some((kind, name, text)) = turn(event) {
            items.push(Item { name, is_error: kind == "failed", ..item(kind, text) });
        }
    }

    fn replied(
        &mut self,
        reply: &Reply,
        seq: Seq,
        item: &dyn Fn(&'static str, String) -> Item,
        items: &mut Vec<Item>,
    ) {
        if !reply.text.trim().is_empty() {
            items.push(item("said", reply.text.clone()));
        }
        for (index, call) in (0..).zip(&reply.calls) {
            let id = CallId { turn: seq, index };
            self.calls.insert(id, call.name.clone());
            let (name, input) = (call.name.clone(), Some(call.arguments.clone()));
            items.push(Item { name, call: Some(id), input, ..item("called", String::new()) });
        }
    }
}

impl Item {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "seq": self.seq.0,
            "at": rfc3339(self.at),
            "kind": self.kind,
            "name": self.name,
            "call": self.call.map(|call| call.to_string()),
            "input": self.input,
            "text": self.text,
            "is_error": self.is_error,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let name = text::row(&self.name, 100);
        let input = self.input.as_ref().map(|input| text::row(&input.to_string(), 500));
        let fault = if self.is_error { " (error)" } else { "" };
        let what = [Some(self.kind.to_owned()), Some(name), input].into_iter().flatten();
        let what: Vec<String> = what.filter(|word| !word.is_empty()).collect();
        let head = format!("{} #{} {}{fault}", text::moment(self.at), self.seq.0, what.join(" "));
        match self.text.trim() {
            "" => head,
            _ => format!("{head}\n{}", text::block(&self.text, "  ")),
        }
    }
}

/// A turn of its life: which, by whom or how, and in what words.
fn turn(event: &Event) -> Option<(&'static str, String, String)> {
    let nobody = String::new();
    Some(match event {
        Event::Retrying(retry) => {
            ("retry", nobody, format!("try {}: {}", retry.attempt, retry.failure))
        }
        Event::Faulted { failure, .. } => ("failed", nobody, failure.to_string()),
        Event::Paused { why, .. } => ("paused", nobody, why.to_string()),
        Event::Continued { by, .. } => ("continued", by.to_string(), String::new()),
        Event::Compacted(compaction) => ("compacted", nobody, compaction.summary.clone()),
        Event::Ended { result, receipt, .. } => {
            ("ended", receipt.outcome.word().to_owned(), result.clone())
        }
        Event::Opened { .. }
        | Event::Configured { .. }
        | Event::Restarted
        | Event::Left
        | Event::Enqueued { .. }
        | Event::Merged { .. }
        | Event::Edited { .. }
        | Event::Moved { .. }
        | Event::Dropped { .. }
        | Event::Heard { .. }
        | Event::Spawned(_)
        | Event::Lined { .. }
        | Event::Held { .. }
        | Event::Preparing { .. }
        | Event::Prepared { .. }
        | Event::Equipped { .. }
        | Event::Proved { .. }
        | Event::Disproved { .. }
        | Event::TurnBegan(_)
        | Event::Replied { .. }
        | Event::Overflowed { .. }
        | Event::TurnDropped { .. }
        | Event::Asked { .. }
        | Event::Settled { .. }
        | Event::Granted { .. }
        | Event::Revoked { .. }
        | Event::Started { .. }
        | Event::Awaited { .. }
        | Event::Returned { .. }
        | Event::Spoke { .. }
        | Event::Posted { .. }
        | Event::Delivered { .. }
        | Event::Relayed { .. }
        | Event::ToppedUp { .. }
        | Event::Switched { .. }
        | Event::Narrowed { .. } => return None,
    })
}

fn teller(session: &Session, note: &Note) -> String {
    match &note.source {
        Source::Brief => "brief".to_owned(),
        Source::Person { channel, sender } if sender.is_empty() => channel.clone(),
        Source::Person { sender, .. } => sender.clone(),
        Source::Parent => "parent".to_owned(),
        Source::Child(id) => session.path(*id),
        Source::Runtime => "locum".to_owned(),
    }
}

fn answer(verdict: &Verdict) -> String {
    let said = match verdict {
        Verdict::Deny { message } => message.clone(),
        Verdict::Answer { text } => Some(text.clone()),
        Verdict::Continue { text } => text.clone(),
        Verdict::Withdrawn { why } => Some(why.clone()),
        Verdict::Allow(_) | Verdict::TopUp { .. } => None,
    };
    said.map_or_else(|| verdict.word().to_owned(), |said| format!("{}: {said}", verdict.word()))
}
