//! `locum sessions`: list, show, export, set aside and remove.

use std::path::Path;

use locum_journal::{Error as Failed, Journal as _, Records as _};
use locum_runtime::clock::rfc3339;
use locum_tools::spilled;
use serde_json::json;

use super::{Sight, agent_json, agents, asks, export, list, show_json};
use crate::complaint::Complaint;
use crate::flags::{Sessions, SessionsAct};
use crate::text;
use crate::{damage, data, print};

pub(super) fn run(flags: &Sessions, data: Option<&Path>) -> Result<(), Complaint> {
    let sight = Sight::open(data)?;
    match flags.act.as_ref().unwrap_or(&SessionsAct::List) {
        SessionsAct::List => list::run(&sight, flags.json),
        SessionsAct::Show { key } => show(&sight, key, flags.json),
        SessionsAct::Export { key, format, output } => {
            export::run(&sight, key, *format, output.as_deref())
        }
        SessionsAct::SetAside { key } => set_aside(&sight, key, flags.json, data),
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
    let folder = data::place(data)?;
    let journal = data::open_to_make_room(&folder)?;
    journal.delete(key).map_err(failed)?;
    // The next session of its name must not read them; that they stay is no reason to fail.
    let _ = spilled::forget(&folder, key);
    if as_json {
        show_json(&json!({ "removed": key }));
    } else {
        print::line(&format!("removed {}", text::row(key, 200)));
    }
    // It is removed, whatever comes of this: what is not given back now is for the next session.
    let _ = journal.shrink();
    Ok(())
}

/// What a session that was set aside is called after its own name.
const ASIDE: &str = ".corrupt-";

/// It was moved out of the way before.
pub(crate) fn is_aside(key: &str) -> bool {
    let number = key.rsplit_once(ASIDE).map(|(_, number)| number);
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Its rows are neither changed nor removed. Whoever knows the name of one whose name is lost
/// from the journal can give it.
fn set_aside(
    sight: &Sight,
    key: &str,
    as_json: bool,
    data: Option<&Path>,
) -> Result<(), Complaint> {
    let listed = sight.records.sessions().map_err(|error| Complaint::journal(&error))?;
    let is_listed = listed.iter().any(|one| one.session == key);
    if !is_listed && sight.records.load(key).is_ok() {
        return Err(sight.unknown(key)?);
    }
    let folder = data::place(data)?;
    let journal = data::sqlite(&folder)?;
    // Read from end to end, and from here on the writer knows of the damage, too.
    let why = match journal.load(key) {
        Err(Failed::Damaged { why, .. }) => why,
        Err(error) => return Err(Complaint::journal(&error)),
        Ok(entries) if entries.is_empty() => {
            return Err(Complaint::not_aside(key, "Its name is lost, and so is in nobody's way."));
        }
        Ok(_) => return Err(Complaint::not_aside(key, "It is whole, and can be gone on with.")),
    };
    if is_aside(key) {
        let next = damage::ways(&data::journal_file(sight.folder()), key);
        let complaint = Complaint::not_aside(key, "It was set aside before.");
        return Err(Complaint { next, ..complaint });
    }
    let name = journal.set_aside(key).map_err(|error| Complaint::journal(&error))?;
    if name == key {
        return Err(Complaint::not_written(key, "That it is damaged could not be noted.".into()));
    }
    let _ = spilled::rename(&folder, key, &name);
    if as_json {
        show_json(&json!({ "set_aside": key, "kept_as": name, "why": why }));
    } else {
        let (key, name) = (text::row(key, 200), text::row(&name, 200));
        print::line(&format!("{key} is kept as {name}, with all that can be read of it"));
    }
    Ok(())
}
