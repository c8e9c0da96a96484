//! `locum sessions`: list, show, export and remove.

use std::path::Path;

use locum_journal::{Journal as _, Records as _};
use locum_runtime::clock::rfc3339;
use serde_json::json;

use super::{Sight, agent_json, agents, asks, export, list, show_json, text};
use crate::complaint::Complaint;
use crate::flags::{Sessions, SessionsAct};
use crate::{data, print};

pub(super) fn run(flags: &Sessions, data: Option<&Path>) -> Result<(), Complaint> {
    let sight = Sight::open(data)?;
    match flags.act.as_ref().unwrap_or(&SessionsAct::List) {
        SessionsAct::List => list::run(&sight, flags.json),
        SessionsAct::Show { key } => show(&sight, key, flags.json),
        SessionsAct::Export { key, format, output } => {
            export::run(&sight, key, *format, output.as_deref())
        }
        SessionsAct::Rm { key } => remove(&sight, key, flags.json, data),
    }
}

fn show(sight: &Sight, key: &str, as_json: bool) -> Result<(), Complaint> {
    let mut asked = None;
    let session = sight.walk(key, |_, entry| {
        asked = asked.take().or_else(|| list::asked(entry));
    })?;
    let asked = asked.unwrap_or_default();
    let (view, rest) = sight.view(&session);
    if as_json {
        let agents = view.agents.iter().map(|row| agent_json(key, row));
        show_json(&json!({
            "session": key,
            "last_seq": view.seq.0,
            "written": rfc3339(session.now()),
            "asked": asked,
            "stack": view.stack,
            "counts": view.counts,
            "needs_you": view.needs_you,
            "slots": view.slots,
            "agents": agents.collect::<Vec<_>>(),
            "asks": view.asks.iter().map(|card| asks::card_json(key, card)).collect::<Vec<_>>(),
            "queue": view.queue.iter().map(super::queue::waits_json).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let mut lines = vec![
        format!("session    {}", text::row(key, 200)),
        format!("written    {} UTC, event {}", text::moment(session.now()), view.seq.0),
        format!("asked      {}", text::row(&asked, 200)),
        format!("floor      {}", text::row(&view.stack.join(" > "), 200)),
        format!("needs you  {}", view.needs_you),
        format!("waiting    {} messages, {} open asks", view.queue.len(), view.asks.len()),
        String::new(),
    ];
    lines.push(agents::grouped(&view.agents));
    lines.extend(rest.told(key, &session).map(|rest| format!("\n{rest}")));
    print::line(&lines.join("\n"));
    Ok(())
}

fn remove(sight: &Sight, key: &str, as_json: bool, data: Option<&Path>) -> Result<(), Complaint> {
    let failed = |error| Complaint::journal(&error);
    let listed = sight.records.sessions().map_err(failed)?;
    if !listed.iter().any(|one| one.session == key) {
        return Err(sight.unknown(key)?);
    }
    data::open(&data::place(data)?)?.delete(key).map_err(failed)?;
    if as_json {
        show_json(&json!({ "removed": key }));
    } else {
        print::line(&format!("removed {}", text::row(key, 200)));
    }
    Ok(())
}
