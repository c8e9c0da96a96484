//! How many processes a command may have. A control group says so to the system, where we may
//! make one. Otherwise a limit of the user, which does not bind root and counts what else the
//! user runs; and the keeper counts, and ends a command that is above it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The keeper and its threads are in the group too.
const OWN: u32 = 4;
const PAUSE: Duration = Duration::from_millis(5);
/// The limit of the user is shared by all that he runs, so it is only the second wall: it holds
/// a fork bomb until the keeper has counted.
const SHARED: u64 = 4;
const MOUNTS: [(&str, &str); 3] =
    [("pids", "/sys/fs/cgroup/pids"), ("", "/sys/fs/cgroup"), ("", "/sys/fs/cgroup/unified")];

/// A control group for one command.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) path: PathBuf,
    /// Where we came from.
    home: PathBuf,
}

impl Group {
    pub(super) fn new(mark: &str, pids_max: u32) -> Option<Group> {
        let made = |(_, path): &(PathBuf, PathBuf)| make(path, pids_max).is_ok();
        places(mark).into_iter().find(made).map(|(home, path)| Group { path, home })
    }

    /// One that is there already.
    pub(super) fn at(path: PathBuf) -> Group {
        Group { home: path.clone(), path }
    }

    fn join(&self) -> io::Result<()> {
        set(&self.path.join("cgroup.procs"), "0")
    }

    /// From now on nobody in it can start anybody.
    pub(super) fn freeze(&self) {
        let _ = set(&self.path.join("pids.max"), "0");
    }

    /// Back to where we came from, so that it can be removed.
    pub(super) fn leave(&self) {
        // If this fails, an empty group stays behind and nothing else.
        let _ = set(&self.home.join("cgroup.procs"), "0");
    }

    pub(super) fn remove(&self) {
        remove(&self.path);
    }
}

/// Takes away the group of a keeper that could not do it itself.
pub(crate) fn forget(mark: &str) {
    for (_, path) in places(mark) {
        remove(&path);
    }
}

/// It may take the system a moment to see that the last one in it is dead.
fn remove(path: &Path) {
    for _ in 0..20 {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
            Ok(()) | Err(_) => return,
        }
    }
}

/// Where a group could be, each with the group that we are in.
fn places(mark: &str) -> Vec<(PathBuf, PathBuf)> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for (controller, mount) in MOUNTS {
        let of = |line: &&str| {
            let names = line.split(':').nth(1);
            names.is_some_and(|names| names.split(',').any(|name| name == controller))
        };
        let place = own.lines().find(of).and_then(|line| line.splitn(3, ':').nth(2));
        let Some(place) = place else { continue };
        let home = Path::new(mount).join(place.trim_start_matches('/'));
        // In the second version a group with processes in it has no groups below that count;
        // then beside it.
        let beside = home.parent().filter(|_| home != Path::new(mount)).map(Path::to_owned);
        for folder in [Some(home.clone()), beside].into_iter().flatten() {
            found.push((home.clone(), folder.join(format!("locum-{mark}"))));
        }
    }
    found
}

fn make(path: &Path, pids_max: u32) -> io::Result<()> {
    fs::create_dir(path)?;
    let limited = set(&path.join("pids.max"), &pids_max.saturating_add(OWN).to_string());
    if limited.is_err() {
        let _ = fs::remove_dir(path);
    }
    limited
}

/// Only what is there: a file that we made ourselves would limit nobody.
fn set(file: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

/// Who enforces the limit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit<'a> {
    Group(&'a Group),
    /// The keeper counts.
    Counted(usize),
}

/// Whom the user's limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Whatever else this user runs.
    All,
    /// Only those in a user namespace of our own.
    Own,
}

/// Puts the limit on this process and all that it starts.
pub(super) fn limit(group: Option<&Group>, pids_max: u32, users: Users) -> Limit<'_> {
    if let Some(group) = group.filter(|group| group.join().is_ok()) {
        return Limit::Group(group);
    }
    let own = u64::from(pids_max.saturating_add(OWN));
    let most = match users {
        Users::Own if counts_by_namespace() => Some(own),
        // All that run on the machine now are more than those of this user, and cheaper to count.
        Users::Own | Users::All => load().map(|all| SHARED * own + all),
    };
    if let Some(most) = most {
        let most = getrlimit(Resource::Nproc).maximum.map_or(most, |maximum| maximum.min(most));
        let _ = setrlimit(Resource::Nproc, Rlimit { current: Some(most), maximum: Some(most) });
    }
    Limit::Counted(usize::try_from(pids_max).unwrap_or(usize::MAX))
}

/// All processes and threads of the machine.
fn load() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Since Linux 5.14 a user namespace has a count of its own.
fn counts_by_namespace() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}
