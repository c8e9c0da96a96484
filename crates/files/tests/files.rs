//! The tools on real folders: what they say, that nothing leads out, that an edit changes only what
//! it should, that a killed write leaves the old or the new, and that long results stay readable.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "files/support.rs"]
mod support;

#[path = "files/spills.rs"]
mod spills;
#[path = "files/tools.rs"]
mod tools;

#[path = "files/escape.rs"]
mod escape;
#[path = "files/race.rs"]
mod race;

#[path = "files/kill.rs"]
mod kill;
#[path = "files/laws.rs"]
mod laws;
