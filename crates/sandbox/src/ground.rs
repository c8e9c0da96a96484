//! Landlock: which files can be read and written. It is an allow-list by place, so what has to
//! stay closed is left out by naming everything beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

use crate::spec::{Room, Rules, Sockets};
use crate::walls::Terminal;

/// The newest that we know; the kernel takes of it what it knows.
const NEWEST: ABI = ABI::V9;

/// Devices that are no more than functions of the kernel.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// A folder of devices may hold the disk itself, which nobody may read around the files.
const DEVICE_FOLDER: &str = "/dev";

/// What is on the way to something hidden is listed by hand, child by child.
const CHILDREN_MAX: usize = 100_000;

pub(crate) fn apply(rules: &Rules, scratch: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    // Everything but making devices, which are ways around files.
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(NEWEST))?;
    if rules.sockets() == Sockets::None {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let names: BitFlags<AccessFs> = AccessFs::ReadDir.into();
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(readable(rules), read))?
        .add_rules(path_beneath_rules(["/"], names))?
        .add_rules(path_beneath_rules(devices(rules), all))?
        .add_rules(path_beneath_rules(rules.writable.iter().chain(scratch), write))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// The version this kernel has. Asking restricts whoever asks, so only a reporter may.
pub(crate) fn version() -> Result<u32, RulesetError> {
    let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock)?;
    let RestrictionStatus { landlock, .. } = ruleset.create()?.restrict_self()?;
    Ok(match landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    })
}

fn readable(rules: &Rules) -> Vec<PathBuf> {
    let closed: BTreeSet<PathBuf> = match rules.room {
        Room::Wrapped => return vec![PathBuf::from("/")],
        Room::Apart | Room::Bare => {
            rules.hidden.iter().cloned().chain([PathBuf::from(DEVICE_FOLDER)]).collect()
        }
    };
    let mut open = Vec::new();
    beside(Path::new("/"), &closed, &mut open);
    open
}

/// All places under `folder` but the closed ones and what leads to them.
fn beside(folder: &Path, closed: &BTreeSet<PathBuf>, open: &mut Vec<PathBuf>) {
    let children = fs::read_dir(folder).into_iter().flatten().flatten().take(CHILDREN_MAX);
    for child in children.map(|child| child.path()) {
        if closed.contains(&child) {
            continue;
        }
        // A link is no place: what it points at is reached under its own name.
        let link = fs::symlink_metadata(&child).is_ok_and(|data| data.is_symlink());
        if closed.iter().any(|place| place.starts_with(&child)) {
            beside(&child, closed, open);
        } else if !link {
            open.push(child);
        }
    }
}

fn devices(rules: &Rules) -> Vec<PathBuf> {
    let mut devices: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    match (rules.room, rules.terminal) {
        // These terminals are its own: nobody else sits at them.
        (Room::Wrapped, _) => {
            devices.extend(["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/console"].map(Into::into));
        }
        (Room::Apart | Room::Bare, Terminal::Given) => devices.push("/dev/tty".into()),
        (Room::Apart | Room::Bare, Terminal::Detached) => {}
    }
    devices
}
