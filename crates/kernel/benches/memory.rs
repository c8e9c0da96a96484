//! Bytes per idle agent, by the resident set of a process that does nothing else. A session of
//! many idle agents is made, or copied, again and again, and the growth divided. Only the last
//! ones count: by then no memory that was freed earlier is left to hide it. A copy shares its
//! transcript lines with the original, so transcripts do not count.

use crate::world::{BRIEF, World};
use locum_kernel::{AgentId, Entry, Event, Session, apply};
use std::fs;
use std::process::Command;

pub(crate) const AGENTS: usize = 10_000;
const TIMES: usize = 8;

/// The word that makes this program measure one kind of idleness and print it.
pub(crate) const WORD: &str = "--idle-bytes";

/// Bytes per agent.
type Measure = fn() -> usize;

#[rustfmt::skip] // One kind, one line.
pub(crate) const KINDS: [(&str, Measure); 3] = [
    ("queued, its brief unread", copied),
    ("the same, while the session grows", made),
    ("paused at a limit, with its open ask", paused),
];

/// The bytes of one kind, found by a new process.
pub(crate) fn measure(kind: usize) -> usize {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args([WORD, &kind.to_string()]).output().expect("a run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().parse().expect("a number of bytes")
}

fn journal() -> Vec<Entry> {
    World::crowd(AGENTS, 1, "worker", true).journal.unwrap_or_default()
}

fn copied() -> usize {
    let idle = queued(&journal());
    growth(|| idle.clone()) - BRIEF.len()
}

/// With the room that growing collections keep.
fn made() -> usize {
    let journal = journal();
    growth(|| queued(&journal)) - BRIEF.len()
}

fn paused() -> usize {
    let idle = World::paused(AGENTS).session;
    growth(|| idle.clone())
}

/// The median growth per agent of the second half.
fn growth(make: impl Fn() -> Session) -> usize {
    let mut kept = Vec::new();
    let mut grown = Vec::new();
    for _ in 0..TIMES {
        let before = resident();
        kept.push(make());
        grown.push(resident().saturating_sub(before) / AGENTS);
    }
    let late = &mut grown[TIMES / 2..];
    late.sort_unstable();
    late[late.len() / 2]
}

/// Only what makes the workers is folded: main's long memory of having made them is not theirs.
fn queued(journal: &[Entry]) -> Session {
    let mut session = Session::new();
    for entry in journal {
        for event in &entry.events {
            if is_theirs(event) {
                apply(&mut session, entry.at, event);
            }
        }
    }
    assert_eq!(session.agents().len(), AGENTS + 1, "main and its workers");
    session
}

fn is_theirs(event: &Event) -> bool {
    if let Event::Heard { agent, .. } | Event::Lined { agent, .. } = event {
        return *agent != AgentId::MAIN;
    }
    matches!(event, Event::Opened { .. } | Event::Configured { .. } | Event::Spawned(_))
}

/// Bytes of memory the process really has: the second number of `statm`, in pages.
fn resident() -> usize {
    const PAGE: usize = 4096;
    let text = fs::read_to_string("/proc/self/statm").expect("a Linux process");
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * PAGE
}
