//! The keeper's loop: starts the command, hears what happens to it and what we say, and at the
//! end leaves nobody.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, wait, waitid,
};

use super::pids::Limit;
use super::{start_in_pipes, start_in_terminal};
use crate::leash::{Ended, How, KILL, Order, TERM, Tidings};
use crate::tree;

/// When the command has ended, those it started may still be about to write their last lines, as
/// in `make > >(tee log)`. Who takes longer was meant to stay, and may not.
const LINGER: Duration = Duration::from_millis(200);
/// How often the keeper counts, if nobody else does: rarely while they are few.
const COUNT_EVERY: Duration = Duration::from_millis(200);
const COUNT_OFTEN: Duration = Duration::from_millis(20);

/// How those below are found and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Tree,
    /// The system ends all when this process does.
    Namespace,
}

#[derive(Debug)]
enum Heard {
    /// The command itself ended.
    Main(How),
    /// Nobody is below any more.
    Alone,
    Term,
    Kill,
}

pub(super) fn run(
    args: &[OsString],
    leash: &UnixStream,
    order: &Order,
    scope: Scope,
    limit: Limit<'_>,
) -> io::Result<Ended> {
    let (tell, heard) = channel();
    let listener = leash.try_clone()?;
    let told = tell.clone();
    thread::Builder::new().spawn(move || listen(listener, &told))?;
    let main =
        if order.terminal { start_in_terminal(args, order)? } else { start_in_pipes(order)? };
    let Some(main) = i32::try_from(main).ok().and_then(Pid::from_raw) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    // Whether it is heard or not, from here on there is somebody to be ended. Who has let go of
    // the leash will also be noticed by the listener.
    let _ = Tidings::Started.tell(leash);
    let reaper = thread::Builder::new().spawn(move || reap(main, &tell));
    let how = if reaper.is_ok() { attend(&heard, main, scope, limit) } else { How::Crowded };
    let left = match scope {
        Scope::Tree => {
            if let Limit::Group(group) = limit {
                group.freeze();
            }
            tree::end(|| tree::below(own()), is_alone)
        }
        Scope::Namespace => tree::everybody().len().saturating_sub(1),
    };
    Ok(Ended { how, left })
}

/// Who has no child has nobody below, because orphans become ours.
fn is_alone() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

fn own() -> i32 {
    std::process::id().cast_signed()
}

/// Until the command has ended and nobody is left, or all must go.
fn attend(heard: &Receiver<Heard>, main: Pid, scope: Scope, limit: Limit<'_>) -> How {
    let mut often = COUNT_OFTEN;
    let how = loop {
        let next = match limit {
            Limit::Group(_) => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Limit::Counted(_) => heard.recv_timeout(often),
        };
        match (next, limit) {
            (Ok(Heard::Main(how)), _) => break how,
            (Ok(Heard::Term), _) => {
                // Who is stopped hears nothing until he goes on.
                let _ = kill_process_group(main, Signal::TERM);
                let _ = kill_process_group(main, Signal::CONT);
            }
            (Err(RecvTimeoutError::Timeout), Limit::Counted(max)) => {
                let count = count(scope);
                if count > max {
                    return How::Crowded;
                }
                often = if count > max / 4 { COUNT_OFTEN } else { COUNT_EVERY };
            }
            (Err(RecvTimeoutError::Timeout), Limit::Group(_)) => {}
            (Ok(Heard::Kill | Heard::Alone) | Err(RecvTimeoutError::Disconnected), _) => {
                return How::Told;
            }
        }
    };
    // Anything that is heard now ends the wait, and silence does too.
    let _ = heard.recv_timeout(LINGER);
    how
}

fn count(scope: Scope) -> usize {
    match scope {
        Scope::Tree => tree::below(own()).len(),
        Scope::Namespace => tree::count(),
    }
}

/// Takes away the dead, whoever's children they were.
fn reap(main: Pid, tell: &Sender<Heard>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                let _ = tell.send(Heard::Main(how(status)));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = tell.send(Heard::Alone);
                return;
            }
        }
    }
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Code(code),
        (None, Some(signal)) => How::Signal(signal),
        (None, None) => How::Told,
    }
}

/// What we say, until the leash is let go.
fn listen(mut leash: UnixStream, tell: &Sender<Heard>) {
    let mut word = [0];
    loop {
        let heard = match leash.read(&mut word) {
            Ok(1) if word == [TERM] => Heard::Term,
            Ok(1) if word == [KILL] => Heard::Kill,
            Ok(1) => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => Heard::Kill,
        };
        let last = matches!(heard, Heard::Kill);
        if tell.send(heard).is_err() || last {
            return;
        }
    }
}
