//! Starting other programs: the root they run in, what they cost in time, when they take too long.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// The workspace root, found at run time because a checkout may move after it was built.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("start me with `cargo xtask`")?;
    let root = Path::new(&here).parent().context("xtask has no parent folder")?;
    Ok(root.to_owned())
}

/// Cargo in the workspace root. What the outer `cargo run` set for xtask is not for the inner one:
/// a leaked `CARGO_MANIFEST_DIR` makes build scripts run again.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_")) {
            command.env_remove(name);
        }
    }
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
        command.env_remove(name);
    }
    command
}

/// A child's exit code as our own. A child killed by a signal has none and counts as a failure.
pub(crate) fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "measures tools on this machine, decides nothing"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn seconds(&self) -> String {
        format!("{:.1} s", self.elapsed().as_secs_f64())
    }
}

pub(crate) struct Finished {
    /// None: it was still running at the limit and was killed.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) output: String,
}

/// Runs to the end or to the limit. Output goes through a file: a pipe that nobody reads fills up
/// and stops the child, which would look like the very hang the limit is for.
pub(crate) fn within(limit: Duration, command: &mut Command, log: &Path) -> Result<Finished> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(std::process::Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let clock = Stopwatch::start();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if clock.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let output = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(Finished { status, output: String::from_utf8_lossy(&output).into_owned() })
}
