//! The words: what is to run, how it ended, what it said.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long a foreground command is waited for; then it goes on in the background.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Processes and threads of one command. Large builds need a few hundred.
pub const PIDS_MAX: u32 = 1024;

/// What is to run. The argument list goes to the system as it is; no shell reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub argv: Vec<OsString>,
    /// All of the environment, apart from the mark by which we find our processes again.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    pub io: Io,
    pub input: Input,
    /// A pipe with a name, for errors that are not to be among the output of a command behind
    /// pipes. Whoever made it reads it.
    pub errors: Option<PathBuf>,
    /// How long it may live, in the foreground and the background together.
    pub timeout: Option<Duration>,
    pub start: Start,
    pub patience: Duration,
    /// Where output goes that is too long for memory. Must exist.
    pub spill_dir: PathBuf,
    pub pids_max: u32,
    pub hold: Hold,
}

impl Command {
    /// Pipes, nothing to read, in the foreground, without a deadline.
    pub fn new(argv: Vec<OsString>, cwd: PathBuf, spill_dir: PathBuf) -> Command {
        Command {
            argv,
            env: Vec::new(),
            cwd,
            io: Io::Pipes,
            input: Input::Nothing,
            errors: None,
            timeout: None,
            start: Start::Foreground,
            patience: PATIENCE,
            spill_dir,
            pids_max: PIDS_MAX,
            hold: Hold::Auto,
        }
    }
}

/// What the command's output is connected to. Unless errors have a pipe of their own, they and the
/// output are one stream, in the order in which they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    Pipes,
    Terminal { rows: u16, cols: u16 },
}

/// What a command behind pipes finds when it reads. A terminal can always be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The end, at once: a command that nobody will answer must not wait for an answer.
    Nothing,
    /// Whatever is written with [`crate::Processes::write`].
    Open,
    /// This, and then the end.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Foreground,
    Background,
}

/// How all that a command starts is held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A namespace for root, else a tree.
    Auto,
    /// A process namespace, for an ordinary user inside a user namespace, or an error.
    Namespace,
    /// The keeper reaps its tree. Right for a command that brings a namespace of its own.
    Tree,
}

/// How this program is started as a keeper: it must end up in [`crate::keeper`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl Keeper {
    /// This program with a hidden subcommand. The path holds even after an upgrade has put
    /// another program in the place of this one.
    pub fn of_this_program(subcommand: &str) -> Keeper {
        Keeper { program: PathBuf::from("/proc/self/exe"), args: vec![subcommand.into()] }
    }
}

/// A process of one table. Never used twice in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl std::str::FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Id, Error> {
        let number = text.strip_prefix('p').and_then(|number| number.parse().ok());
        number.map(Id).ok_or_else(|| Error::NoSuchName { name: text.chars().take(40).collect() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// By us: `kill`, or because its owner ended.
    Killed,
    /// It went on starting processes above its limit, which nothing else could enforce.
    TooManyProcesses,
    /// Its keeper was killed. What it had done until then is not known.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "ended by signal {signal}"),
            Exit::TimedOut => write!(f, "timed out"),
            Exit::Killed => write!(f, "killed"),
            Exit::TooManyProcesses => write!(f, "killed: too many processes"),
            Exit::Lost => write!(f, "its keeper was killed; outcome unknown"),
        }
    }
}

/// How far `run` came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    Ended(Report),
    /// It goes on, and can be listed, read, written to, waited for and killed.
    Backgrounded {
        id: Id,
        so_far: Output,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub id: Id,
    pub exit: Exit,
    pub output: Output,
    pub ms: u64,
    /// Processes that were still there when the command itself had ended, and that we killed.
    pub left_behind: usize,
}

/// What a command said, made safe to be shown as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// All of it, or the beginning.
    pub head: String,
    /// The end, if something is left out between.
    pub tail: String,
    /// All that was written, before it was made text.
    pub bytes: u64,
    /// Bytes between head and tail.
    pub left_out: u64,
    pub spill: Option<Spill>,
}

/// The file that has what memory has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    pub path: PathBuf,
    /// How much from the beginning is in it.
    pub bytes: u64,
    /// Why it is not all: the file has a bound, or the disk refused.
    pub trouble: Option<String>,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head)?;
        if self.left_out == 0 {
            return Ok(());
        }
        write!(f, "\n[… {} bytes left out", self.left_out)?;
        match &self.spill {
            Some(Spill { path, trouble: None, .. }) => {
                write!(f, "; all of it is in {}", path.display())?;
            }
            Some(Spill { path, bytes, trouble: Some(trouble) }) => {
                write!(f, "; the first {bytes} are in {} ({trouble})", path.display())?;
            }
            None => {}
        }
        write!(f, " …]\n{}", self.tail)
    }
}

/// A part of what a process said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub text: String,
    /// Where this part begins; later than asked for if what was asked for is no longer kept.
    pub from: u64,
    /// Where the next part begins.
    pub next: u64,
    /// All that was written until now.
    pub bytes: u64,
    pub exit: Option<Exit>,
}

/// One process as `list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: Id,
    pub owner: String,
    pub argv: Vec<OsString>,
    pub start: Start,
    pub ms: u64,
    pub bytes: u64,
    /// None: it runs.
    pub exit: Option<Exit>,
}

/// What is told while a command runs in the foreground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub id: Id,
    pub bytes: u64,
    /// The last of what was said, as text.
    pub tail: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no command to run: give a program and its arguments")]
    Empty,
    #[error("cannot run in {path}: it must be a folder that you may enter", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot start {program} to keep watch over a command", program = program.display())]
    Keeper { program: PathBuf, source: io::Error },
    #[error("a process namespace is not to be had here; run with a tree instead")]
    NoNamespace,
    #[error("{running} processes run already, and no more may: kill one, or wait for one to end")]
    Full { running: usize },
    #[error("there is no process {id} (any more); `process list` shows those that are there")]
    Unknown { id: Id },
    #[error("`{name}` names no process; `process list` shows those that are there")]
    NoSuchName { name: String },
    #[error("{id} reads nothing: start it in the background or in a terminal to write to it")]
    NoInput { id: Id },
    #[error("{id} has ended and reads no more")]
    Ended { id: Id },
    #[error("{id} does not read: {written} bytes were taken, the rest was not")]
    NotRead { id: Id, written: usize },
    #[error("cannot read {path}, where the output of {id} is kept", path = path.display())]
    Log { id: Id, path: PathBuf, source: io::Error },
}
