//! What tests of the real program share: a folder of their own, commands that are not waited for
//! for ever, a run that is talked with and may be killed, and lines as they were told.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// Who acts in a test, unless it says otherwise.
pub(crate) const USER: &str = "ann";

/// A folder for each test, gone when the test is.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.data().join("journal.db")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// A script, as a model's name.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        format!("script:{}", self.write(name, text).display())
    }

    /// The program, in this folder, with its data there.
    pub(crate) fn locum(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(arguments).arg("--data").arg(self.data());
        command.current_dir(&self.0).stdin(Stdio::null());
        command.env("USER", USER).env_remove("COLUMNS");
        // Whoever runs the tests may have a configuration of their own.
        command.env("XDG_CONFIG_HOME", &self.0).env_remove("LOCUM_CONFIG");
        command.env("HOME", self.0.join("home"));
        // And their own taste.
        for name in ["CLICOLOR_FORCE", "ACCESSIBLE", "LOCUM_PLAIN", "LOCUM_ASCII", "LOCUM_LOG"] {
            command.env_remove(name);
        }
        command
    }

    /// How a command ended that must end by itself.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        output_of(self.locum(arguments))
    }

    /// What it prints, if it does what it should.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// What it complains about, in the form every complaint has.
    pub(crate) fn refused(&self, arguments: &[&str], exit: i32, code: &str) -> String {
        let output = self.output(arguments);
        let told = stderr(&output).to_owned();
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {told}");
        assert!(told.starts_with(&format!("error[{code}] ")), "{arguments:?}: {told}");
        assert!(told.contains("\ndo: "), "{arguments:?}: {told}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        told
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

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// What was told for good; pieces of what is being said have no number of their own.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(is_durable).collect()
}

/// Pieces have no number of their own.
fn is_durable(line: &Value) -> bool {
    line["type"] != "message.delta" && line["type"] != "tool.output"
}

pub(crate) fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

pub(crate) fn assert_numbered(lines: &[Value]) {
    let numbers: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
}

/// One field of each value of a list.
pub(crate) fn words<'v>(values: &'v Value, field: &str) -> Vec<&'v str> {
    let each = values.as_array().unwrap().iter();
    each.map(|value| value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}")))
        .collect()
}

pub(crate) fn signal(name: &str, process: u32) {
    let mut kill = Command::new("kill");
    assert!(kill.args([name, &process.to_string()]).status().unwrap().success());
}

/// The same for a command that was given something before.
pub(crate) fn output_of(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let _watch = Watch::over(child.id(), PATIENCE);
    child.wait_with_output().unwrap()
}

/// Ends a program that would never end, so that a test says what is wrong instead of hanging.
pub(crate) struct Watch {
    _done: Sender<()>,
}

impl Watch {
    pub(crate) fn over(process: u32, patience: Duration) -> Watch {
        let (done, waiting) = channel::<()>();
        thread::spawn(move || {
            if waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
            }
        });
        Watch { _done: done }
    }
}

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// How a conversation with a run went.
pub(crate) struct Told {
    /// What was told for good.
    pub(crate) lines: Vec<Value>,
    /// None: it was killed.
    pub(crate) exit: Option<i32>,
    pub(crate) stderr: String,
}

impl Told {
    pub(crate) fn result(&self) -> &Value {
        let Some(last) = self.lines.last() else { panic!("nothing was told: {}", self.stderr) };
        assert_eq!(last["type"], "run.result", "{last} {}", self.stderr);
        last
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        of_type(&self.lines, kind)
    }
}

/// What to do when a line is told.
pub(crate) enum Act {
    Nothing,
    Say(Value),
    Kill,
}

/// A run under way, with `--json`. Whoever lets it go ends it.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Held to the end: whoever closes standard input says that nobody is there any more.
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<String>>,
    told: Vec<Value>,
    _watch: Watch,
}

impl Running {
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Running {
        Running::of(folder.locum(arguments))
    }

    /// The same for a command that was given something before.
    pub(crate) fn of(mut command: Command) -> Running {
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = child.stderr.take().unwrap();
        let read = move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        };
        Running {
            stdin: child.stdin.take(),
            stdout,
            stderr: Some(thread::spawn(read)),
            told: Vec::new(),
            _watch: Watch::over(child.id(), PATIENCE),
            child,
        }
    }

    /// The next line that was told for good; `None` when there are no more.
    pub(crate) fn line(&mut self) -> Option<Value> {
        loop {
            let line: Value = serde_json::from_str(&self.stdout.next()?.unwrap()).unwrap();
            if is_durable(&line) {
                self.told.push(line.clone());
                return Some(line);
            }
        }
    }

    /// The first line from here on that is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.line() {
                Some(line) if is_so(&line) => return line,
                Some(_) => {}
                None => {
                    let (exit, stderr) = self.ended();
                    panic!("it never came: {:#?} {exit:?} {stderr}", self.told);
                }
            }
        }
    }

    pub(crate) fn until_type(&mut self, kind: &str) -> Value {
        self.until(|line| line["type"] == kind)
    }

    /// If it has just ended, its last line says so.
    pub(crate) fn say(&mut self, said: &Value) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{said}");
        }
    }

    /// Nobody will say anything any more.
    pub(crate) fn leave(&mut self) {
        self.stdin = None;
    }

    /// With `SIGKILL`, in the middle of whatever it does.
    pub(crate) fn kill(mut self) -> Told {
        self.child.kill().unwrap();
        let (_, stderr) = self.ended();
        Told { lines: std::mem::take(&mut self.told), exit: None, stderr }
    }

    /// Waits until it ends by itself.
    pub(crate) fn end(mut self) -> Told {
        while self.line().is_some() {}
        let (exit, stderr) = self.ended();
        Told { lines: std::mem::take(&mut self.told), exit, stderr }
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let exit = self.child.wait().unwrap().code();
        let stderr = self.stderr.take().and_then(|text| text.join().ok());
        (exit, stderr.unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `locum run … --json` and answers each line until it ends or is killed with `SIGKILL`.
pub(crate) fn converse(
    folder: &Folder,
    arguments: &[&str],
    mut answer: impl FnMut(&Value) -> Act,
) -> Told {
    let mut running = Running::start(folder, arguments);
    while let Some(line) = running.line() {
        match answer(&line) {
            Act::Nothing => {}
            Act::Say(said) => running.say(&said),
            Act::Kill => return running.kill(),
        }
    }
    running.end()
}
