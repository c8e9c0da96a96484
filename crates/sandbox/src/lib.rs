//! The operating system's walls around a command: what it may write, read and talk to is decided
//! by the kernel of the machine, not by what the command says of itself.
//!
//! On Linux there are up to three walls, one in the other. Namespaces and mounts, made by
//! bubblewrap where it is installed and otherwise by ourselves where that is allowed; Landlock;
//! and a filter of system calls. The last two are put up by our own program, started again as
//! `locum __wall`, which then becomes the command. On macOS a profile for `sandbox-exec` is
//! written, which nobody has tested yet.
//!
//! In reading order: the words; what this machine can do; what is mounted where; the ways to
//! build; the inside.

mod walls;

mod survey;

mod below;
mod environment;
mod guards;
mod layers;
mod standin;

mod bubblewrap;
mod enclose;
mod seatbelt;
mod spec;

#[cfg(target_os = "linux")]
mod enter;
#[cfg(not(target_os = "linux"))]
#[path = "nowhere.rs"]
mod enter;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod mounts;

use std::ffi::OsString;
use std::process::ExitCode;

pub use below::Below;
pub use bubblewrap::{fell, never_began};
pub use enclose::{enclose, tidy};
pub use guards::{credentials, repository, worktree};
pub use seatbelt::profile;
pub use standin::Hold;
pub use survey::{Builder, Seccomp, Survey, Weakness};
pub use walls::{
    Enclosed, Fragile, Guard, Keep, Network, NoWalls, StandIn, Terminal, Walls, Writes,
};

/// What of our own environment a command may have where there are no walls: nothing that looks
/// like a secret.
#[must_use]
pub fn environment(granted: &[OsString]) -> Vec<(OsString, OsString)> {
    environment::pass(std::env::vars_os(), granted)
}

/// The first thing `main` does, before threads and files: if we were started as a wall, be one.
/// None: we were not. Otherwise this is our exit code, if we come back at all.
pub fn wall(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()? != spec::WALL {
        return None;
    }
    let spec = args.next().unwrap_or_default();
    let program: Vec<OsString> = args.skip(1).collect();
    Some(enter::enter(&spec, &program))
}
