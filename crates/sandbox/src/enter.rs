//! Being the wall: our own program, started again between whoever spawns and the command.
//!
//! `Outer` stays outside and has nothing to do but to make the namespaces, start `Inner` in them
//! and clean up after it. `Inner` restricts itself, which cannot be undone, and becomes the
//! command, or its parent where the namespace needs a first process that buries the dead.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

use landlock::RulesetStatus;
use nix::sched::CloneFlags;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getgid, getuid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setrlimit, setsid, wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
};

use crate::filter;
use crate::ground;
use crate::layers::{Layer, Mount};
use crate::mounts;
use crate::spec::{NOTHING_RUN, Room, Rules, Spec, WALL};
use crate::walls::{Network, Terminal};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The codes that shells and `env` use: the wall failed, not allowed, not found.
const FAILED: u8 = 125;
const NOT_ALLOWED: u8 = 126;
const NOT_FOUND: u8 = 127;
/// A command that died of a signal, for those who only see a number.
const SIGNALLED: i32 = 128;

/// Each round ends everything that is there; what those started meanwhile needs another.
const ROUNDS_MAX: usize = 1000;

const TEMPORARY: &str = "TMPDIR";

pub(crate) fn enter(spec: &OsStr, program: &[OsString]) -> ExitCode {
    let entered = read(spec).and_then(|spec| match spec {
        Spec::Report => report(),
        Spec::Outer(rules) => outer(rules, program),
        Spec::Inner(rules) => inner(&rules, program),
    });
    entered.unwrap_or_else(|error| {
        // Nobody else is there to say it, and if it cannot be said the code still tells.
        let _ = writeln!(io::stderr(), "{NOTHING_RUN} {error}");
        ExitCode::from(FAILED)
    })
}

fn read(spec: &OsStr) -> Result<Spec> {
    let spec = spec.to_str().ok_or("what to do is not UTF-8")?;
    Ok(serde_json::from_str(spec)?)
}

fn report() -> Result<ExitCode> {
    let version = ground::version()?;
    writeln!(io::stdout(), "{version}")?;
    Ok(ExitCode::SUCCESS)
}

fn outer(rules: Rules, program: &[OsString]) -> Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let scratch = scratch()?;
    let ended = confined(rules, program, &scratch);
    // Whatever cannot be removed is in a folder that only we can enter.
    let _ = fs::remove_dir_all(&scratch);
    Ok(code(ended?))
}

fn confined(rules: Rules, program: &[OsString], scratch: &Path) -> Result<ExitStatus> {
    match rules.room {
        Room::Apart => part(rules.network)?,
        Room::Bare => set_child_subreaper(Some(rustix::process::getpid()))?,
        Room::Wrapped => return Err("bubblewrap needs nobody outside".into()),
    }
    let spec = serde_json::to_string(&Spec::Inner(rules))?;
    let mut command = Command::new("/proc/self/exe");
    command.args([OsString::from(WALL), spec.into(), "--".into()]).args(program);
    let mut child = command.env(TEMPORARY, scratch).spawn()?;
    let status = child.wait()?;
    bury()?;
    Ok(status)
}

/// Only we can look into it, whatever the command makes in it.
fn scratch() -> io::Result<PathBuf> {
    let name = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let path = std::env::temp_dir().join(format!("locum-{}", name.trim()));
    DirBuilder::new().mode(0o700).create(&path)?;
    fs::canonicalize(path)
}

/// Leaves the machine's namespaces. The process list and the mounts are made by the next one.
fn part(network: Network) -> Result<()> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if network != Network::On {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    if capabilities(None)?.effective.contains(needed) {
        nix::sched::unshare(flags)?;
    } else {
        // Whoever may not do this gets a world in which they may.
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        nix::sched::unshare(flags | CloneFlags::CLONE_NEWUSER)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    // Starting a program takes rights away from everyone but root, unless they are ambient.
    let mut sets = capabilities(None)?;
    sets.inheritable = needed;
    set_capabilities(None, sets)?;
    for right in needed.iter() {
        configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}

/// Ends what a command left running: orphans come to us. With a process namespace there are
/// none, because they end with its first process.
fn bury() -> Result<()> {
    let own = format!("/proc/self/task/{}/children", std::process::id());
    for _ in 0..ROUNDS_MAX {
        let children = fs::read_to_string(&own).unwrap_or_default();
        let children: BTreeSet<i32> =
            children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        if children.is_empty() {
            return Ok(());
        }
        for child in children.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(child, Signal::KILL);
        }
        let _ = wait(WaitOptions::empty());
    }
    Err("the command keeps starting programs faster than they can be ended".into())
}

fn inner(rules: &Rules, program: &[OsString]) -> Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rules.terminal == Terminal::Detached && rules.room != Room::Wrapped {
        setsid()?;
    }
    if rules.room == Room::Apart {
        let scratch = scratches(rules).into_iter().take(1);
        let scratch = scratch.map(|path| Layer { path, mount: Mount::Open });
        mounts::apply(&rules.layers.iter().cloned().chain(scratch).collect::<Vec<_>>())?;
    }
    std::env::set_current_dir(&rules.cwd)
        .map_err(|error| format!("{}: {error}", rules.cwd.display()))?;
    powerless()?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none)?;
    let ground = ground::apply(rules, &scratches(rules))?;
    if ground == RulesetStatus::NotEnforced && rules.room != Room::Wrapped {
        return Err("this kernel has no Landlock".into());
    }
    filter::apply(rules.sockets(), rules.room).map_err(|error| error.to_string())?;
    close_inherited();
    let (first, rest) = program.split_first().ok_or("nothing to run")?;
    let mut command = Command::new(first);
    command.args(rest);
    let failed = match rules.room {
        Room::Apart => match command.spawn() {
            Ok(child) => return Ok(code(first_process(&child)?)),
            Err(error) => error,
        },
        Room::Wrapped | Room::Bare => command.exec(),
    };
    Ok(not_run(first, &failed))
}

fn scratches(rules: &Rules) -> Vec<PathBuf> {
    let own = std::env::var_os(TEMPORARY).map(PathBuf::from);
    match rules.room {
        Room::Wrapped => Vec::new(),
        Room::Apart => own.into_iter().chain([PathBuf::from(mounts::SHARED)]).collect(),
        Room::Bare => own.into_iter().collect(),
    }
}

/// Gives up every right that root has, for good: what is not in the bounding set cannot be had
/// again by starting a program.
fn powerless() -> Result<()> {
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for right in CapabilitySet::all().iter() {
            // Bits that this kernel has no right for.
            let _ = remove_capability_from_bounding_set(right);
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Whoever started us may have left files open that the walls would keep closed.
fn close_inherited() {
    let listed = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> =
        listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the list itself and is closed already.
        let _ = nix::unistd::close(fd);
    }
}

/// The first process of a namespace: orphans are its children, and when it ends all end.
fn first_process(command: &Child) -> Result<ExitStatus> {
    loop {
        let Some((pid, status)) = wait(WaitOptions::empty())? else { continue };
        if u32::try_from(pid.as_raw_nonzero().get()) == Ok(command.id()) {
            return Ok(ExitStatus::from_raw(status.as_raw()));
        }
    }
}

fn not_run(program: &OsStr, error: &io::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "locum: {}: {error}", program.display());
    let missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if missing { NOT_FOUND } else { NOT_ALLOWED })
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}
