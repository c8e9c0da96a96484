//! One process of the real program, with people who listen to it, until it ends or dies.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::point::Death;
use super::story::{People, Story};
use crate::run::Stopwatch;

/// No story takes nearly as long; who does is stuck.
const STUCK: Duration = Duration::from_secs(20);

/// Every write and sync of a journal's files.
const SYSCALLS: &str = "pwrite64,fsync,fdatasync";

/// Where strace writes what it saw.
pub(crate) const TRACE: &str = "trace";

/// Where a story is played.
pub(crate) struct Stage<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) story: &'a Story,
}

/// What one process did.
#[derive(Debug)]
pub(crate) struct Run {
    /// None: it died.
    pub(crate) exit: Option<i32>,
    /// Every line that has a number.
    pub(crate) told: Vec<Value>,
    pub(crate) ms: u64,
}

impl Stage<'_> {
    /// `before` are the lines of earlier processes, as the journal tells them.
    pub(crate) fn run(&self, act: usize, before: &[Value], death: Option<&Death>) -> Result<Run> {
        let clock = Stopwatch::start();
        let asked = before.iter().any(|line| line["type"] == "input.queued");
        let mut child = self.command(act, asked, death)?.spawn().context("cannot start locum")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let (sender, lines) = channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                // The last line of a killed process may be half a line.
                if let Ok(line) = serde_json::from_str::<Value>(&line) {
                    drop(sender.send(line));
                }
            }
        });
        let kill = match death {
            Some(Death::Kill(ms)) => Some(Duration::from_millis(*ms)),
            Some(Death::Before(_) | Death::After(_) | Death::Syscall(_)) | None => None,
        };
        let mut listener = Listener::new(&self.story.people, stdin);
        let attended = attend(&mut child, &lines, &mut listener, before, kill, &clock);
        if attended.is_err() {
            child.kill()?;
        }
        let status = child.wait()?;
        drop(reader.join());
        attended?;
        // What was told before the end counts, though nobody answers any more.
        listener.told.extend(lines.try_iter().filter(is_numbered));
        let ms = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        // strace dies of the signal its tracee died of, or says so the way a shell would.
        let exit = status.code().filter(|code| *code < 128);
        Ok(Run { exit, told: listener.told, ms })
    }

    fn command(&self, act: usize, asked: bool, death: Option<&Death>) -> Result<Command> {
        let mut command = match death {
            Some(Death::Syscall(number)) => {
                let mut strace = Command::new("strace");
                let inject = format!("inject={SYSCALLS}:signal=KILL:when={number}");
                let trace = format!("trace={SYSCALLS}");
                strace.args(["-f", "-qq", "-o", TRACE, "-e", &trace, "-e", &inject]);
                strace.arg(self.binary);
                strace
            }
            Some(Death::Before(_) | Death::After(_) | Death::Kill(_)) | None => {
                Command::new(self.binary)
            }
        };
        let people = &self.story.people;
        let model = format!("script:{}", self.story.script.display());
        if asked {
            command.args(["run", "--resume", KEY]);
        } else {
            command.args(["run", &people.say, "-s", KEY, "-m", &model]);
        }
        command.arg("--json").args(&people.acts[act].flags).arg("--data").arg("data");
        let number = match death {
            Some(Death::Before(number)) => Some(format!("before:{number}")),
            Some(Death::After(number)) => Some(format!("after:{number}")),
            Some(Death::Kill(_) | Death::Syscall(_)) | None => None,
        };
        match number {
            Some(number) => command.env("LOCUM_DIE_AT", number),
            None => command.env_remove("LOCUM_DIE_AT"),
        };
        let said = File::options().create(true).append(true).open(self.folder.join("stderr"))?;
        command.current_dir(self.folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said);
        Ok(command)
    }
}

/// The session of every story.
pub(crate) const KEY: &str = "play";

fn is_numbered(line: &Value) -> bool {
    !matches!(line["type"].as_str(), Some("message.delta" | "thinking.delta" | "gap"))
}

/// Until the process has nothing more to say, or its time has come.
fn attend(
    child: &mut Child,
    lines: &Receiver<Value>,
    listener: &mut Listener<'_>,
    before: &[Value],
    mut kill: Option<Duration>,
    clock: &Stopwatch,
) -> Result<()> {
    loop {
        let until = kill.unwrap_or(STUCK);
        match lines.recv_timeout(until.saturating_sub(clock.elapsed())) {
            Ok(line) => listener.hear(line, before)?,
            Err(RecvTimeoutError::Disconnected) => {
                // It has closed its output; what is left is to end. Or it is killed on the way.
                if let Some(left) = kill.map(|at| at.saturating_sub(clock.elapsed())) {
                    thread::sleep(left.min(Duration::from_millis(5)));
                    child.kill()?;
                }
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) if kill.take().is_some() => child.kill()?,
            Err(RecvTimeoutError::Timeout) => {
                let last = listener.told.last().map(ToString::to_string).unwrap_or_default();
                bail!("stuck: no end after {STUCK:?}, last line {last}");
            }
        }
    }
}

/// The people around one process.
struct Listener<'a> {
    people: &'a People,
    stdin: ChildStdin,
    told: Vec<Value>,
    /// Rules that have been followed in this process.
    followed: BTreeSet<usize>,
}

impl<'a> Listener<'a> {
    fn new(people: &'a People, stdin: ChildStdin) -> Listener<'a> {
        Listener { people, stdin, told: Vec::new(), followed: BTreeSet::new() }
    }

    fn hear(&mut self, line: Value, before: &[Value]) -> Result<()> {
        if !is_numbered(&line) {
            return Ok(());
        }
        let kind = line["type"].as_str().unwrap_or_default().to_owned();
        if kind == "run.started" {
            // Whoever does not know whether they were heard says it again: the id makes it one.
            for earlier in before {
                let kind = earlier["type"].as_str().unwrap_or_default();
                self.follow(kind, earlier, false)?;
            }
            for ask in line["asks"].as_array().into_iter().flatten() {
                self.follow("ask.opened", ask, true)?;
            }
        }
        self.follow(&kind, &line, true)?;
        self.told.push(line);
        Ok(())
    }

    /// Asks are answered each; anything else is said once by everybody who would say it.
    fn follow(&mut self, kind: &str, line: &Value, asks: bool) -> Result<()> {
        for (index, rule) in self.people.rules.iter().enumerate() {
            let due = if rule.is_for_asks() { asks } else { !self.followed.contains(&index) };
            if due && rule.hears(kind, line)? {
                self.followed.insert(index);
                // It may have died meanwhile; then it is said to the next.
                drop(self.stdin.write_all(rule.words(line).as_bytes()));
            }
        }
        Ok(())
    }
}
