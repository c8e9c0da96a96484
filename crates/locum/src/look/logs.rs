//! `locum logs`: an agent's transcript, oldest first, and as it grows.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use locum_kernel::{Agent, Session, fold};
use locum_runtime::driver;
use serde_json::Value;

use super::transcript::{Item, Transcript};
use super::{Sight, show_json};
use crate::address;
use crate::complaint::Complaint;
use crate::flags::Logs;
use crate::print;
use crate::text;

/// Nobody tells a reader in another process that something was written: it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) fn run(flags: &Logs, sight: &Sight) -> Result<(), Complaint> {
    let (key, session) = sight.find(flags.place.session.as_deref())?;
    let agent = address::agent(&session, &flags.agent)?;
    let mut transcript = Transcript::of(agent);
    if flags.follow {
        return follow(flags, sight, &key, &mut transcript, |session| {
            session.agent(agent).is_some_and(Agent::has_ended)
        });
    }
    let mut items = Vec::new();
    sight.walk(&key, |session, entry| items.extend(transcript.read(session, entry)))?;
    if flags.place.json {
        show_json(&items.iter().map(Item::to_json).collect::<Vec<Value>>().into());
    } else {
        let lines: Vec<String> = items.iter().map(Item::to_text).collect();
        print::line(&lines.join("\n"));
    }
    Ok(())
}

fn follow(
    flags: &Logs,
    sight: &Sight,
    key: &str,
    transcript: &mut Transcript,
    is_over: impl Fn(&Session) -> bool,
) -> Result<(), Complaint> {
    let mut session = Session::new();
    loop {
        let failed = |error| Complaint::journal(&error);
        let more = sight.as_far(key, |records| Ok(records.tail(key, session.seq())?))?;
        let gone = || -> Result<bool, Complaint> {
            let written = sight.records.written().map_err(failed)?;
            Ok(written.iter().all(|(name, _)| name != key))
        };
        if more.is_empty() && gone()? {
            return Err(sight.unknown(key)?);
        }
        for entry in more {
            fold(&mut session, &entry).map_err(|why| {
                Complaint::driver(&driver::Error::Unfoldable { session: key.to_owned(), why })
            })?;
            for item in transcript.read(&session, &entry) {
                let line =
                    if flags.place.json { text::json(&item.to_json()) } else { item.to_text() };
                // A reader who left does not want the rest.
                let mut out = io::stdout().lock();
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    return Ok(());
                }
            }
        }
        if is_over(&session) || sight.is_cut(key) {
            return Ok(());
        }
        thread::sleep(LOOK_AGAIN);
    }
}
