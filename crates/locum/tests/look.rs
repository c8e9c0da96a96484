//! The commands that look, through the real binary: while a run is under way, after a kill, with
//! a damaged session among others; names that are not clear; forks; exports.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "look/aside.rs"]
mod aside;
#[path = "look/asks.rs"]
mod asks;
#[path = "look/forks.rs"]
mod forks;
#[path = "look/sight.rs"]
mod sight;

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Folder, PATIENCE, Running, Watch, stderr, words};

/// Three levels: main hands the floor to a lead, who has two helpers in the background.
const NEST: &str = r#"
agents:
  main:
    - say: "Handing this over."
      calls: [{use_agent: {agent: lead, message: "lead this"}}]
    - say: "Done: {{last}}"
  lead:
    - say: "I need two hands."
      calls:
        - spawn_agent: {agent: helper, message: "help one", label: helper-one}
        - spawn_agent: {agent: helper, message: "help two", label: helper-two}
        - wait: {mode: all, timeout_s: 20}
    - calls: [{complete: {result: "the helpers found a Needle"}}]
  helper:
    - say: "Helping \e[31mred\u202e"
      calls: [{list_agents: {}}]
    - hang_ms: 50
      calls: [{complete: {result: "helped"}}]
"#;

impl Folder {
    /// Flips a bit in a session's first entry, wherever a copy of it lies; returns what is there.
    fn damage(&self, session: &str) -> Vec<u8> {
        let mut bytes = fs::read(self.journal()).unwrap();
        let needle = format!("{{\"opened\":{{\"session\":\"{session}\"}}}}").into_bytes();
        let found = bytes.windows(needle.len()).enumerate();
        let found: Vec<usize> =
            found.filter(|(_, window)| *window == needle).map(|(at, _)| at).collect();
        assert!(!found.is_empty(), "{session} is in the file");
        for at in found {
            bytes[at + 24] ^= 1;
        }
        fs::write(self.journal(), &bytes).unwrap();
        bytes
    }

    /// A run to its end, as its lines.
    fn run(&self, model: &str, session: &str) -> Vec<Value> {
        let text = self.text(&["run", "Do it\nsoon", "-m", model, "-s", session, "--json"]);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A run that has come as far as a line with these words.
    fn run_until(&self, model: &str, session: &str, words: &[&str]) -> Running {
        let arguments = ["run", "Do it\nsoon", "-m", model, "-s", session];
        let mut running = Running::start(self, &arguments);
        running.until(|line| words.iter().all(|word| line.to_string().contains(word)));
        running
    }
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}
