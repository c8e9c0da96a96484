//! The keeper's side. It has three files: 0 is the leash, 1 is what the command writes to, 2 is
//! what the command reads from; so nothing has to be inherited that others could inherit too. It
//! has no environment but the mark: what the command is given must not work on its keeper.
//!
//! In its stages it starts itself again: `keep` is the first; `init` is the first process of a
//! namespace; `tty` takes the terminal and becomes the command.

mod namespace;
mod pids;
mod watch;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{
    Signal, geteuid, getpid, ioctl_tiocsctty, set_child_subreaper, set_parent_process_death_signal,
    setsid,
};

use crate::leash::{Ended, Order, Tidings};
pub(crate) use pids::forget;
use pids::{Group, Users};
use watch::Scope;

/// What the program's hidden subcommand does. `args` are those after the subcommand.
pub fn keeper(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let done = match words[..] {
        ["keep", "tree", mark, pids_max] => tree(args, mark, number(pids_max)),
        ["keep", "namespace", mark, pids_max] => space(args, mark, number(pids_max)),
        ["init", group, pids_max] => init(args, group, number(pids_max)),
        ["tty"] => become_command(),
        _ => Err(io::Error::other("this is started by locum itself")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Seen only by somebody who tries this by hand.
            let _ = writeln!(io::stderr(), "locum: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(word: &str) -> u32 {
    word.parse().unwrap_or(crate::PIDS_MAX)
}

fn leash() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// A session of its own, so that nobody below can ask at the terminal in which we run. And should
/// a command have stopped its keeper when we die, our death wakes it up.
fn settle() -> io::Result<()> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::CONT))?;
    Ok(())
}

fn tree(args: &[OsString], mark: &str, pids_max: u32) -> io::Result<()> {
    settle()?;
    set_child_subreaper(Some(getpid()))?;
    let leash = leash()?;
    Tidings::Ready.tell(&leash)?;
    let order = Order::read(&leash)?;
    let group = Group::new(mark, pids_max);
    let limit = pids::limit(group.as_ref(), pids_max, Users::All);
    let ended = watch::run(args, &leash, &order, Scope::Tree, limit);
    if let Some(group) = group {
        group.leave();
        group.remove();
    }
    report(&leash, ended);
    Ok(())
}

fn space(args: &[OsString], mark: &str, pids_max: u32) -> io::Result<()> {
    settle()?;
    let leash = leash()?;
    // Before the namespace: in it, the groups may belong to nobody.
    let group = Group::new(mark, pids_max);
    let path = group.as_ref().map_or_else(PathBuf::new, |group| group.path.clone());
    let first = namespace::enter().and_then(|()| {
        let words = ["init".into(), path.into_os_string(), pids_max.to_string().into()];
        itself(args, &words).spawn()
    });
    let ended = match first {
        Ok(mut first) => first.wait().map(|_| ()),
        Err(_) => Tidings::Refused.tell(&leash),
    };
    if let Some(group) = group {
        group.remove();
    }
    ended
}

/// The first process of a namespace. When it ends, the system kills all others in it.
fn init(args: &[OsString], group: &str, pids_max: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let leash = leash()?;
    if namespace::furnish().is_err() {
        return Tidings::Refused.tell(&leash);
    }
    Tidings::Ready.tell(&leash)?;
    let order = Order::read(&leash)?;
    let group = (!group.is_empty()).then(|| Group::at(group.into()));
    let users = if geteuid().is_root() { Users::All } else { Users::Own };
    let limit = pids::limit(group.as_ref(), pids_max, users);
    report(&leash, watch::run(args, &leash, &order, Scope::Namespace, limit));
    Ok(())
}

/// Nobody may be there to hear it.
fn report(leash: &UnixStream, ended: io::Result<Ended>) {
    let tidings = match ended {
        Ok(ended) => Tidings::Ended(ended),
        Err(error) => Tidings::Failed(reason(&error)),
    };
    let _ = tidings.tell(leash);
}

/// The system's number. What never came to the system was a word that it cannot be given.
fn reason(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error())
}

/// This program again, in another stage, with the same files.
fn itself(args: &[OsString], stage: &[OsString]) -> Command {
    let own: Vec<OsString> = std::env::args_os().collect();
    let before = own.get(1..own.len() - args.len().min(own.len())).unwrap_or_default();
    let mut command = Command::new("/proc/self/exe");
    command.args(before).args(stage);
    command
}

/// The command as it is to run, without its files.
fn command(order: &Order) -> io::Result<Command> {
    let Some((program, words)) = order.argv.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(words).env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(&order.cwd);
    Ok(command)
}

fn copy(file: impl AsFd) -> io::Result<OwnedFd> {
    file.as_fd().try_clone_to_owned()
}

/// Starts the command behind pipes and gives its number.
fn start_in_pipes(order: &Order) -> io::Result<u32> {
    let mut command = command(order)?;
    command.stdin(copy(io::stderr())?).stdout(copy(io::stdout())?);
    if order.errors.as_os_str().is_empty() {
        command.stderr(copy(io::stdout())?);
    } else {
        command.stderr(OpenOptions::new().write(true).open(&order.errors)?);
    }
    Ok(command.process_group(0).spawn()?.id())
}

/// Starts the command in a terminal: by a stage that takes the terminal first, because between
/// fork and exec nothing of ours may run.
fn start_in_terminal(args: &[OsString], order: &Order) -> io::Result<u32> {
    let (mut near, far) = UnixStream::pair()?;
    let mut stage = itself(args, &["tty".into()]);
    stage.env_clear().stdin(OwnedFd::from(far)).stderr(copy(io::stdout())?);
    let child = stage.stdout(Stdio::inherit()).spawn()?;
    drop(stage);
    near.write_all(&order.encode())?;
    let mut number = String::new();
    io::Read::read_to_string(&mut near, &mut number)?;
    match number.parse() {
        Ok(number) => Err(io::Error::from_raw_os_error(number)),
        Err(_) => Ok(child.id()),
    }
}

/// The end of the line to whoever started us means that the command runs; a number on it, that
/// it could not.
fn become_command() -> io::Result<()> {
    let mut line = leash()?;
    let attempt = || -> io::Result<io::Error> {
        let order = Order::read(&line)?;
        setsid()?;
        ioctl_tiocsctty(io::stdout())?;
        let mut command = command(&order)?;
        command.stdin(copy(io::stdout())?);
        Ok(command.exec())
    };
    let error = attempt().unwrap_or_else(|error| error);
    write!(line, "{}", reason(&error))?;
    Err(error)
}
