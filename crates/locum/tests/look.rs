//! The commands that look, through the real binary: while a run is under way, after a kill, with
//! a damaged session among others; names that are not clear; forks; exports.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "look/asks.rs"]
mod asks;
#[path = "look/forks.rs"]
mod forks;
#[path = "look/sight.rs"]
mod sight;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

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

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-sight-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn journal(&self) -> PathBuf {
        self.data().join("journal.db")
    }

    /// A script, as a model's name.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        format!("script:{}", path.display())
    }

    fn locum(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(arguments).arg("--data").arg(self.data()).stdin(Stdio::null());
        command.env_remove("COLUMNS");
        command
    }

    /// What it prints, if it does what it should.
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.locum(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    fn refused(&self, arguments: &[&str], exit: i32, code: &str) -> String {
        let output = self.locum(arguments).output().unwrap();
        let told = stderr(&output).to_owned();
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {told}");
        assert!(told.starts_with(&format!("error[{code}] ")), "{arguments:?}: {told}");
        assert!(told.contains("\ndo: "), "{arguments:?}: {told}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        told
    }

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
        let arguments = ["run", "Do it\nsoon", "-m", model, "-s", session, "--json"];
        let mut child = self.locum(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut running = Running { child, said: Box::new(said) };
        let told = |line: std::io::Result<String>| {
            let line = line.unwrap();
            words.iter().all(|word| line.contains(word))
        };
        assert!(running.said.by_ref().any(told), "{session} came to {words:?}");
        running
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Running {
    child: Child,
    said: Box<dyn Iterator<Item = std::io::Result<String>>>,
}

impl Running {
    fn kill(mut self) {
        self.child.kill().unwrap();
        assert!(!self.child.wait().unwrap().success());
    }
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn words<'v>(values: &'v Value, field: &str) -> Vec<&'v str> {
    let each = values.as_array().unwrap().iter();
    each.map(|value| value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}")))
        .collect()
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}
