//! `process`: what an agent does with commands that go on in the background.

use std::time::Duration;

use locum_kernel::{Errand, Output};
use locum_process::{Error, Id, Progress, Ran, Row};
use locum_runtime::live::Live;
use serde_json::Value;

use crate::exec::{Room, shown};
use crate::{number, text};

/// `wait` without a timeout, and the longest one: an agent that waits cannot be spoken to.
const WAIT: Duration = Duration::from_secs(30);
const WAIT_MAX: Duration = Duration::from_mins(10);
/// What is done to one of them.
const ACTIONS: [&str; 4] = ["log", "write", "wait", "kill"];
const WORDS: &str = "`action` is list, log, write, wait or kill";
const LOG_BYTES: usize = 16 << 10;
const GONE: &str = "ended when locum was stopped";

pub(crate) async fn run(room: &Room, errand: &Errand, live: &Live) -> Output {
    let arguments = &errand.arguments;
    let owner = errand.agent.to_string();
    let action = text(arguments, "action").unwrap_or_default();
    if action == "list" {
        let rows = room.processes.list(&owner);
        let none = || match room.before {
            0 => "none".to_owned(),
            last => format!("none; those up to {} {GONE}", Id(last)),
        };
        return Output::ok(if rows.is_empty() { none() } else { table(&rows) });
    }
    if !ACTIONS.contains(&action) {
        return Output::error(format!("process does not know {action:?}: {WORDS}"));
    }
    let id = match own(room, &owner, arguments) {
        Ok(id) => id,
        Err(why) => return Output::error(why),
    };
    let done = match action {
        "log" => log(room, id, arguments),
        "write" => write(room, id, arguments).await,
        "wait" => {
            let told = |it: &Progress| live.output(errand.call, it.bytes, &it.tail);
            wait(room, id, arguments, told).await
        }
        "kill" => room.processes.kill(id).await.map(|report| room.ended(&report)),
        other => return Output::error(format!("process does not know {other:?}: {WORDS}")),
    };
    done.unwrap_or_else(|error| Output::error(error.to_string()))
}

/// The one that is meant, if it is the agent's own.
fn own(room: &Room, owner: &str, arguments: &Value) -> Result<Id, String> {
    let named = text(arguments, "id").ok_or("which one? `id` is missing; process list")?;
    let id: Id = named.parse().map_err(|error: Error| error.to_string())?;
    let rows = room.processes.list(owner);
    let known = rows.iter().any(|row| row.id == id);
    if known {
        Ok(id)
    } else if (1..=room.before).contains(&id.0) {
        Err(format!("{id} is gone: it {GONE}, and what it printed with it. Start it again"))
    } else {
        Err(format!("there is no process {id} of yours; process list"))
    }
}

fn log(room: &Room, id: Id, arguments: &Value) -> Result<Output, Error> {
    let limit = number(arguments, "limit").and_then(|it| usize::try_from(it).ok());
    let end = room.processes.log(id, 0, 0)?.bytes;
    let newest = end.saturating_sub(LOG_BYTES as u64);
    let from = number(arguments, "offset").unwrap_or(newest);
    let log = room.processes.log(id, from, limit.unwrap_or(LOG_BYTES))?;
    let state = log.exit.map_or_else(|| "running".to_owned(), |exit| exit.to_string());
    let part = format!("[{id} {state}; bytes {} to {} of {}]", log.from, log.next, log.bytes);
    Ok(Output::ok(format!("{}\n{part}", log.text.trim_end())))
}

async fn write(room: &Room, id: Id, arguments: &Value) -> Result<Output, Error> {
    let Some(input) = text(arguments, "input") else {
        room.processes.close_input(id).await?;
        return Ok(Output::ok("its input is closed"));
    };
    room.processes.write(id, input.as_bytes()).await?;
    Ok(Output::ok(format!("written: {} bytes", input.len())))
}

async fn wait(
    room: &Room,
    id: Id,
    arguments: &Value,
    told: impl FnMut(&Progress),
) -> Result<Output, Error> {
    let longest = number(arguments, "timeout_s").map_or(WAIT, Duration::from_secs);
    match room.processes.wait(id, longest.min(WAIT_MAX), told).await? {
        Ran::Ended(report) => Ok(room.ended(&report)),
        Ran::Backgrounded { so_far, .. } => {
            Ok(Output::ok(format!("{}\n[{id} still runs]", shown(&so_far))))
        }
    }
}

fn table(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let state = row.exit.map_or_else(|| "running".to_owned(), |exit| exit.to_string());
        let argv: Vec<String> =
            row.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let line = argv.last().cloned().unwrap_or_default();
        format!("{} {state}, {} s, {} bytes: {line}", row.id, row.ms / 1_000, row.bytes)
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}
