//! What tests of the real program share: a folder of their own, a run that is talked with and
//! may be killed, and lines as they were told.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A folder for each test, gone when the test is.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The program, in this folder, with its data there.
    pub(crate) fn locum(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(arguments).arg("--data").arg(self.0.join("data"));
        command.current_dir(&self.0).stdin(Stdio::null());
        // Whoever runs the tests may have a configuration of their own.
        command.env("XDG_CONFIG_HOME", &self.0).env_remove("LOCUM_CONFIG");
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The model that plays an example.
pub(crate) fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    format!("script:{}", folder.join(name).display())
}

/// How a conversation with a run went.
pub(crate) struct Told {
    /// What was told for good; pieces of what is being said have no number of their own.
    pub(crate) lines: Vec<Value>,
    /// None: it was killed.
    pub(crate) exit: Option<i32>,
}

impl Told {
    pub(crate) fn result(&self) -> &Value {
        let last = self.lines.last().unwrap();
        assert_eq!(last["type"], "run.result", "{last}");
        last
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }
}

/// What to do when a line is told.
pub(crate) enum Act {
    Nothing,
    Say(Value),
    Kill,
}

/// Ends a program that would never end, so that a test says what is wrong instead of hanging.
struct Watch {
    _done: Sender<()>,
}

impl Watch {
    fn over(process: u32) -> Watch {
        let (done, waiting) = channel::<()>();
        thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
            }
        });
        Watch { _done: done }
    }
}

const PATIENCE: Duration = Duration::from_mins(1);

/// Runs `locum run … --json` and answers each line until it ends or is killed with `SIGKILL`.
pub(crate) fn converse(
    folder: &Folder,
    arguments: &[&str],
    mut answer: impl FnMut(&Value) -> Act,
) -> Told {
    let mut command = folder.locum(arguments);
    let mut child: Child =
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Held to the end: whoever closes standard input says that nobody is there any more.
    let mut stdin = child.stdin.take().unwrap();
    let _watch = Watch::over(child.id());
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    for line in stdout.lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "message.delta" {
            continue;
        }
        let act = answer(&line);
        lines.push(line);
        match act {
            Act::Nothing => {}
            // If it has just ended, its last line says so.
            Act::Say(said) => drop(writeln!(stdin, "{said}")),
            Act::Kill => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Told { lines, exit: None };
            }
        }
    }
    Told { lines, exit: child.wait().unwrap().code() }
}
