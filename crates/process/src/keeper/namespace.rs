//! A namespace of processes, with the list of processes that belongs to it: programs that look
//! themselves up under the number they know must find themselves.

use std::fs;
use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

/// For whoever is started next. An ordinary user needs a user namespace around it, in which he
/// stays who he is.
pub(super) fn enter() -> io::Result<()> {
    let space = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    if capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN) {
        return unshare(space);
    }
    let (user, group) = (getuid(), getgid());
    unshare(space | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    // Only root keeps its powers when it starts a program, and the next stage has to mount.
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(())
}

#[expect(
    deprecated,
    reason = "not safe only for files that threads share; we ask for no such flag"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// From inside. Afterwards an ordinary user has no powers that the command could inherit.
pub(super) fn furnish() -> io::Result<()> {
    // Not to be seen outside; mounts in other places still are, as without a namespace.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/proc", private)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    // What cannot be inherited is not given either.
    let mut sets = capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    set_capabilities(None, sets)?;
    Ok(())
}
