//! `locum sessions list`: every session in a row, damaged ones with the reason.

use std::collections::BTreeMap;

use locum_journal::Records as _;
use locum_kernel::{Entry, Event, Session, headline, view};
use locum_runtime::clock::{Clock as _, System, rfc3339};
use serde_json::{Value, json};

use super::sessions::is_aside;
use super::{Seen, Sight, damage_apart, show_json};
use crate::complaint::{Complaint, set_aside};
use crate::print;
use crate::text;

/// Longer first words do not fit a row.
const ASKED_MAX: usize = 60;

struct Line {
    seen: Seen,
    counts: BTreeMap<String, u32>,
    needs_you: u32,
    asked: String,
}

pub(super) fn run(sight: &Sight, as_json: bool) -> Result<(), Complaint> {
    let mut lines = Vec::new();
    for seen in sight.all()? {
        lines.push(line(sight, seen)?);
    }
    if as_json {
        show_json(&lines.iter().map(to_json).collect::<Vec<_>>().into());
        return Ok(());
    }
    if lines.is_empty() {
        print::line("no sessions; do: locum run \"text\"");
        return Ok(());
    }
    let head = ["SESSION", "LAST", "WRITTEN (UTC)", "AGENTS", "NEEDS YOU", "ASKED"];
    let rows: Vec<Vec<String>> = lines.iter().map(to_row).collect();
    print::line(&text::table(&head, &rows));
    let damaged = |line: &&Line| line.seen.session.is_err() && !is_aside(&line.seen.key);
    for line in lines.iter().filter(damaged) {
        print::line(&format!("do: {}", set_aside(&line.seen.key)));
    }
    Ok(())
}

/// The first thing that was asked, if this entry holds it.
pub(super) fn asked(entry: &Entry) -> Option<String> {
    entry.events.iter().find_map(|event| {
        if let Event::Enqueued { message } = event { Some(message.text.clone()) } else { None }
    })
}

/// Reading it whole finds damage in the middle, too.
fn line(sight: &Sight, mut seen: Seen) -> Result<Line, Complaint> {
    let mut first = String::new();
    if seen.session.is_ok() {
        let entries = sight.records.load(&seen.key).map_err(Into::into);
        match damage_apart(entries)? {
            Ok(entries) => first = entries.iter().find_map(asked).unwrap_or_default(),
            Err(why) => seen.session = Err(why),
        }
    }
    let view = seen.session.as_ref().ok().map(|session| view(session, System.now()));
    let (counts, needs_you) = view.map(|view| (view.counts, view.needs_you)).unwrap_or_default();
    Ok(Line { seen, counts, needs_you, asked: headline(&first, 1_000) })
}

fn to_json(line: &Line) -> Value {
    let Line { seen, counts, needs_you, asked } = line;
    let written = seen.session.as_ref().ok().map(|session| rfc3339(session.now()));
    json!({
        "session": seen.key,
        "last_seq": seen.last.0,
        "written": written,
        "counts": counts,
        "needs_you": needs_you,
        "asked": asked,
        "damaged": seen.session.as_ref().err(),
    })
}

fn to_row(line: &Line) -> Vec<String> {
    let Line { seen, counts, needs_you, asked } = line;
    let written = |session: &Session| text::moment(session.now());
    let counts: Vec<String> =
        counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let (agents, asked) = match &seen.session {
        Ok(_) => (counts.join(", "), text::row(asked, ASKED_MAX)),
        Err(why) => ("damaged".to_owned(), text::row(why, 200)),
    };
    vec![
        text::row(&seen.key, 60),
        seen.last.0.to_string(),
        seen.session.as_ref().map_or_else(|_| "-".to_owned(), written),
        agents,
        if *needs_you > 0 { needs_you.to_string() } else { "-".to_owned() },
        asked,
    ]
}
