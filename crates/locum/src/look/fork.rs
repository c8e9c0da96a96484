//! `locum fork`: a new session made of the past of another.
//!
//! What a fork changes, and why:
//! - its name, which its first entry says;
//! - messages that were on their way to a channel at that moment count as delivered: the session
//!   it was made from has sent them, and nobody wants to hear them twice;
//! - tools that ran or were about to are cut calls, as after a kill: the session it was made from
//!   runs them, and what was allowed once is not run twice.
//!
//! What it need not change: model calls are made again, which is what a fork is for; asks
//! and keys keep their numbers.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use locum_journal::Journal;
use locum_kernel::{Effect, Entry, Event, Input, Key, Output, Seq, Session, errand, owed};
use locum_runtime::clock::{Clock as _, System};
use locum_runtime::driver;
use locum_tools::spilled;
use serde_json::json;

use super::replay::{last_of, no_such_event};
use super::{Sight, show_json};
use crate::complaint::Complaint;
use crate::flags::Fork;
use crate::text;
use crate::{data, print};

pub(super) fn run(flags: &Fork, data: Option<&Path>) -> Result<(), Complaint> {
    // Looked at first: a fork that cannot be made is no reason to wait for the lock.
    let sight = Sight::open(data)?;
    let mut entries = Vec::new();
    let session = sight.walk(&flags.session, |_, entry| entries.push(entry.clone()))?;
    let entries = past(&flags.session, &entries, Seq(flags.at), session.seq())?;
    drop(sight);

    let folder = data::place(data)?;
    let journal = data::open(&folder)?;
    let name = name(flags, &journal)?;
    let read = inherit(&folder, &flags.session, &name, &entries);
    if let Err(complaint) = read.and_then(|()| write(&journal, &name, entries)) {
        // Half a fork is no fork. If it cannot be taken away either, the first reason counts.
        let _ = journal.delete(&name);
        let _ = spilled::forget(&folder, &name);
        return Err(complaint);
    }
    let next = format!("locum run --resume {}", text::quote(&name));
    if flags.json {
        show_json(&json!({
            "session": name, "of": flags.session, "at": flags.at, "do": next,
        }));
    } else {
        print::line(&format!("{}\ndo: {next}", text::row(&name, 200)));
    }
    Ok(())
}

/// Long results that were shown by then can be read on.
fn inherit(data: &Path, of: &str, name: &str, entries: &[Entry]) -> Result<(), Complaint> {
    let mut names = BTreeSet::new();
    for entry in entries {
        let text = serde_json::to_string(entry).unwrap_or_default();
        names.extend(spilled::mentioned(&text));
    }
    let why = |error: io::Error| Complaint::not_written(name, format!("{error}."));
    spilled::inherit(data, of, name, &names).map_err(why)
}

/// The entries up to the one that ends at `at`.
fn past(session: &str, entries: &[Entry], at: Seq, last: Seq) -> Result<Vec<Entry>, Complaint> {
    if at == Seq(0) || at > last {
        return Err(no_such_event(session, at.0, last));
    }
    let shared: Vec<Entry> = entries.iter().filter(|entry| last_of(entry) <= at).cloned().collect();
    let end = shared.last().map_or(Seq(0), last_of);
    if end == at {
        return Ok(shared);
    }
    let next = entries.get(shared.len()).map_or(last, last_of);
    let ends: Vec<String> =
        [end, next].iter().filter(|end| end.0 > 0).map(|end| end.0.to_string()).collect();
    Err(Complaint {
        code: "E122",
        what: format!("Event {} of {} ends no decision.", at.0, text::row(session, 100)),
        cause: format!(
            "A decision is kept whole. Near it, decisions end at {}.",
            ends.join(" and ")
        ),
        next: format!(
            "locum fork {} --at {}",
            text::quote(session),
            ends.first().map_or("1", String::as_str)
        ),
        exit: 2,
    })
}

fn name(flags: &Fork, journal: &dyn Journal) -> Result<String, Complaint> {
    let listed = journal.sessions().map_err(|error| Complaint::journal(&error))?;
    let is_free = |name: &str| listed.iter().all(|one| one.session != name);
    let Some(name) = &flags.name else {
        let plain = format!("{}_at_{}", flags.session, flags.at);
        let more = (2_u32..).map(|number| format!("{plain}_{number}"));
        let name = std::iter::once(plain.clone()).chain(more).find(|name| is_free(name));
        return Ok(name.unwrap_or(plain));
    };
    if is_free(name) && !name.trim().is_empty() {
        return Ok(name.clone());
    }
    Err(Complaint {
        code: "E123",
        what: format!("A session cannot be called {:?}.", text::clean(name)),
        cause: "There is one of that name, or it is empty.".into(),
        next: "locum fork without --name, or with another".into(),
        exit: 2,
    })
}

fn write(journal: &dyn Journal, name: &str, entries: Vec<Entry>) -> Result<(), Complaint> {
    let failed = |error| Complaint::journal(&error);
    let mut tickets = Vec::with_capacity(entries.len());
    // All are submitted before the first is waited for, so that they share their syncs.
    for mut entry in entries {
        for event in &mut entry.events {
            if let Event::Opened { session } = event {
                name.clone_into(session);
            }
        }
        tickets.push(journal.submit(name, Seq(entry.seq.0 - 1), &entry));
    }
    for ticket in tickets {
        ticket.wait().map_err(failed)?;
    }
    let session = driver::look(journal, name).map_err(|error| Complaint::driver(&error))?;
    for effect in owed(&session) {
        let settled = match effect {
            Effect::Deliver { key, .. } => Input::Delivered { key, error: None },
            Effect::RunTool { key, .. } if !may_run_again(&session, key) => {
                Input::Ran { key, output: Output::error("interrupted: outcome unknown") }
            }
            Effect::RunTool { .. }
            | Effect::CallModel { .. }
            | Effect::Prepare { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => continue,
        };
        let taken = driver::take_alone(journal, name, System.now(), settled);
        taken.map_err(|error| Complaint::driver(&error))?;
    }
    Ok(())
}

fn may_run_again(session: &Session, key: Key) -> bool {
    errand(session, key).is_some_and(|errand| errand.idempotent)
}
