//! `locum replay`: steps through a journal. At each entry: what was decided, what the session
//! then looks like, and what the world owes it.

use locum_kernel::{Effect, Entry, Event, Seq, Session, Time, View, deadline, owed, summons, view};
use locum_runtime::clock::rfc3339;
use serde_json::{Value, json};

use super::{Sight, agent_json, asks, queue, show_json};
use crate::complaint::Complaint;
use crate::flags::Replay;
use crate::print;
use crate::text;

pub(super) fn run(flags: &Replay, sight: &Sight) -> Result<(), Complaint> {
    let mut shown = 0_usize;
    let wanted = |entry: &Entry| flags.at.is_none_or(|at| holds(entry, Seq(at)));
    let session = sight.walk(&flags.session, |session, entry| {
        if wanted(entry) {
            shown += 1;
            if flags.json {
                show_json(&to_json(session, entry));
            } else {
                print::line(&to_text(session, entry));
            }
        }
    })?;
    match flags.at {
        Some(at) if shown == 0 => Err(no_such_event(&flags.session, at, session.seq())),
        Some(_) | None => Ok(()),
    }
}

fn holds(entry: &Entry, seq: Seq) -> bool {
    entry.seq <= seq && seq <= last_of(entry)
}

pub(super) fn last_of(entry: &Entry) -> Seq {
    let events = u64::try_from(entry.events.len()).unwrap_or(u64::MAX);
    Seq((entry.seq.0 - 1).saturating_add(events))
}

pub(super) fn no_such_event(session: &str, at: u64, last: Seq) -> Complaint {
    Complaint {
        code: "E122",
        what: format!("Session {} has no event {at}.", text::row(session, 100)),
        cause: format!("Its events are 1 to {}.", last.0),
        next: format!("locum replay {} --at {}", text::quote(session), last.0),
        exit: 2,
    }
}

fn to_json(session: &Session, entry: &Entry) -> Value {
    let View { stack, agents, asks, queue, counts, needs_you, .. } = view(session, entry.at);
    let key = session.key();
    json!({
        "seq": entry.seq.0,
        "last_seq": last_of(entry).0,
        "at": rfc3339(entry.at),
        "events": entry.events,
        "view": {
            "stack": stack,
            "counts": counts,
            "needs_you": needs_you,
            "agents": agents.iter().map(|row| agent_json(key, row)).collect::<Vec<_>>(),
            "asks": asks.iter().map(|card| asks::card_json(key, card)).collect::<Vec<_>>(),
            "queue": queue.iter().map(queue::waits_json).collect::<Vec<_>>(),
        },
        "owed": owed(session),
        "deadline": deadline(session).map(rfc3339),
    })
}

fn to_text(session: &Session, entry: &Entry) -> String {
    let mut lines = vec![format!("#{} {} UTC", entry.seq.0, text::moment(entry.at))];
    for (seq, event) in super::numbered(entry) {
        lines.push(format!("  #{} {}", seq.0, told(session, event)));
    }
    let view = view(session, entry.at);
    for row in &view.agents {
        let (path, what) = (text::row(&row.path, 100), text::row(&row.attention.sentence, 100));
        lines.push(format!("  = {} {path} {}: {what}", row.id, row.state.word()));
    }
    for card in &view.asks {
        lines.push(format!(
            "  ? {} {}: {}",
            card.id,
            card.kind.word(),
            text::row(&card.summary, 100)
        ));
    }
    for waits in &view.queue {
        lines.push(format!("  + {} waits: {}", waits.input, text::row(&waits.text, 100)));
    }
    lines.extend(owed(session).iter().map(|effect| format!("  > {}", duty(session, effect))));
    if let Some(at) = deadline(session) {
        lines.push(format!("  ! deadline {} UTC", text::moment(at)));
    }
    lines.join("\n")
}

/// One line: which fact, of whom, and how its words begin.
fn told(session: &Session, event: &Event) -> String {
    let (name, fields) = match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields.into_iter().next().unwrap_or_default(),
        Ok(Value::String(name)) => (name, Value::Null),
        Ok(_) | Err(_) => Default::default(),
    };
    let who = event.agent().map(|id| format!(" {}", text::row(&session.path(id), 100)));
    let fields = match fields {
        Value::Object(mut fields) => {
            fields.remove("agent");
            let words = fields.iter().map(|(name, value)| format!("{name}={value}"));
            words.collect::<Vec<_>>().join(" ")
        }
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            other.to_string()
        }
    };
    text::row(&format!("{name}{} {fields}", who.unwrap_or_default()), 160)
}

fn duty(session: &Session, effect: &Effect) -> String {
    let path = |id| text::row(&session.path(id), 100);
    let after = |at: &Time| format!("not before {} UTC", text::moment(*at));
    match effect {
        Effect::CallModel { key, agent, not_before, .. } => {
            format!("call the model for {} ({key}, {})", path(*agent), after(not_before))
        }
        Effect::RunTool { key, agent, call } => {
            format!("run {call} for {} ({key})", path(*agent))
        }
        Effect::Prepare { key, agent } => format!("prepare {} ({key})", path(*agent)),
        Effect::Deliver { key, not_before } => format!("deliver ({key}, {})", after(not_before)),
        Effect::Relay { key, agent, call } => {
            format!("tell {call} of {} its answer ({key})", path(*agent))
        }
        Effect::Summon { key } => {
            let name = summons(session, *key).unwrap_or_default();
            format!("find whom @{} means ({key})", text::row(name, 100))
        }
    }
}
