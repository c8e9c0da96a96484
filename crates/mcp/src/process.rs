//! A server's program: started in a group of its own with nothing of our environment, and gone
//! with everything it started when we let go of it.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Duration, Instant, sleep_until, timeout};

use crate::limits;
use crate::logs::{Logs, Source};
use crate::spec::Launch;

pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) group: Group,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Process {
    pub(crate) fn spawn(launch: &Launch) -> io::Result<Process> {
        let Some((program, args)) = launch.argv.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command is given"));
        };
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&launch.env).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn().map_err(|error| explain(launch, program, &error))?;
        let group = Group::of(&child);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::Error::other("the program's pipes are missing"));
        };
        Ok(Process { child, group, stdin, stdout, stderr })
    }
}

fn explain(launch: &Launch, program: &str, error: &io::Error) -> io::Error {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let what = match &launch.cwd {
        Some(cwd) if missing && !cwd.is_dir() => {
            format!("there is no folder {}", cwd.display())
        }
        _ if missing => format!("there is no program `{program}`; install it or give its path"),
        _ => format!("`{program}` cannot be started: {error}"),
    };
    io::Error::new(error.kind(), what)
}

/// All processes of one server. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Group {
        Group {}
    }

    /// A friendly word first.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    #[cfg(not(unix))]
    pub(crate) fn terminate(&self) {}

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // Gone already is as good.
            let _gone = rustix::process::kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }
}

/// Asked to leave, then made to. The input is closed already.
pub(crate) async fn leave(child: &mut Child, group: &Group) {
    if timeout(limits::LEAVE_TIME / 2, child.wait()).await.is_err() {
        group.terminate();
        let _ended_or_killed = timeout(limits::LEAVE_TIME / 2, child.wait()).await;
    }
}

pub(crate) fn ending(status: Option<ExitStatus>, logs: &Logs) -> String {
    let how = match status {
        Some(status) => format!("it ended ({status})"),
        None => "it closed its output".to_owned(),
    };
    match logs.last_words() {
        Some(words) => format!("{how}; its last words: {words}"),
        None => how,
    }
}

/// Reads until the end, keeps the last lines. Never faster than a person could make use of.
pub(crate) async fn read_log(mut stderr: ChildStderr, logs: Arc<Logs>) {
    let mut chunk = vec![0; 32 << 10];
    let mut line: Vec<u8> = Vec::new();
    let mut second = Instant::now() + Duration::from_secs(1);
    let mut read = 0;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = limits::LOG_LINE_BYTES.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                logs.push(Source::Stderr, &String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        read += count;
        if read > limits::LOG_BYTES_PER_SECOND {
            sleep_until(second).await;
        }
        if Instant::now() >= second {
            second = Instant::now() + Duration::from_secs(1);
            read = 0;
        }
    }
    logs.push(Source::Stderr, &String::from_utf8_lossy(&line));
}
