//! The guards everybody wants: what makes a repository run things, and where people keep keys.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::walls::{Guard, Keep, StandIn};

/// Files by which the next `git` outside of the walls would run what a command left there.
/// `commondir` moves both configuration and hooks elsewhere with one line, and says `.` here
/// because git takes an empty one for damage. A `HEAD` cannot run anything and must move.
const REPOSITORY: &[(&str, StandIn)] = &[
    ("config", StandIn::File("")),
    ("config.worktree", StandIn::File("")),
    ("commondir", StandIn::File(".\n")),
    ("hooks", StandIn::Folder),
];

/// Modules of a repository that are guarded like itself; more than that is not looked through.
const MODULES_MAX: usize = 64;
/// A module has the name of its path, so one may lie some folders deep; and it has modules itself.
const MODULES_DEEP: usize = 8;
/// Folders that are opened for that.
const LOOKS_MAX: usize = 512;
/// Settings that are read through for the one that matters.
const CONFIG_BYTES_MAX: u64 = 256 * 1024;
const EXTENSION: &[u8] = b"worktreeconfig";
/// Worktrees of a repository below the workspace, likewise.
const WORKTREES_MAX: usize = 64;

/// Places in a home folder whose contents open doors elsewhere.
const CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".docker",
    ".git-credentials",
    ".config/git/credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
];

/// What must not change in the repository at `folder`, there or not. A `.git` that is a file
/// (a worktree or a module) is kept as it is: what it points at is outside, and read-only.
pub fn repository(folder: &Path) -> Vec<Guard> {
    let git = folder.join(".git");
    if fs::symlink_metadata(&git).is_ok_and(|data| data.is_file()) {
        return vec![Guard { path: git, keep: Keep::Frozen, absent: StandIn::Folder }];
    }
    let mut guards = with_modules(&git);
    // Each has a `commondir` of its own. Where there are none, nobody points at a new one.
    let worktrees = git.join("worktrees");
    if worktrees.exists() {
        guards.push(Guard { path: worktrees, keep: Keep::Frozen, absent: StandIn::Folder });
    }
    guards
}

/// The same for somebody who works in a worktree of a repository and commits there. `common` is the
/// repository's own folder, `own` the worktree's in it; what is the others' is kept as well.
pub fn worktree(common: &Path, own: &Path) -> Vec<Guard> {
    let frozen = |path: PathBuf| Guard { path, keep: Keep::Frozen, absent: StandIn::Folder };
    let mut guards = with_modules(common);
    let others = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    guards.extend(others.map(|it| it.path()).filter(|path| path != own).map(frozen));
    // Where the main worktree stands is its owner's affair.
    let theirs = ["HEAD", "index"].map(|name| common.join(name));
    let ours = ["commondir", "gitdir"].map(|name| own.join(name));
    guards.extend(theirs.into_iter().chain(ours).filter(|path| path.exists()).map(frozen));
    let settings = own.join("config.worktree");
    guards.push(Guard { path: settings, keep: Keep::Frozen, absent: StandIn::File("") });
    guards
}

/// The same for a repository somewhere below the workspace, where commands commit as well, in its
/// worktrees too. `git` is its folder, or the file that says where that is.
pub(crate) fn nested(git: &Path) -> Vec<Guard> {
    let frozen = |path: PathBuf, absent| Guard { path, keep: Keep::Frozen, absent };
    let Ok(data) = fs::symlink_metadata(git) else { return Vec::new() };
    if data.is_file() {
        return vec![frozen(git.to_owned(), StandIn::Folder)];
    }
    // A link is left to itself: keeping it would close the whole folder that it lies in.
    let git = if data.is_symlink() { fs::canonicalize(git).ok() } else { Some(git.to_owned()) };
    let Some(git) = git else { return Vec::new() };
    let mut guards = with_modules(&git);
    let worktrees = fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten();
    for worktree in worktrees.take(WORKTREES_MAX).map(|it| it.path()) {
        let there = ["commondir", "gitdir"].map(|name| worktree.join(name));
        let there = there.into_iter().filter(|path| path.exists());
        guards.extend(there.map(|path| frozen(path, StandIn::Folder)));
        guards.push(frozen(worktree.join("config.worktree"), StandIn::File("")));
    }
    // What we may not look at or make, no command of ours may either. Each guard is a mount, and
    // many of them take their time.
    guards.retain(|guard| is_within_reach(&guard.path) && is_read(&guard.path, &git));
    guards
}

/// Whether git reads it: settings of one worktree only where the repository's own say so, which are
/// kept.
fn is_read(path: &Path, git: &Path) -> bool {
    if !path.ends_with("config.worktree") || path.exists() {
        return true;
    }
    let own = path.with_file_name("config");
    let own = if own.exists() { own } else { git.join("config") };
    let mut text = Vec::new();
    let read = File::open(own).and_then(|file| file.take(CONFIG_BYTES_MAX).read_to_end(&mut text));
    let said = text.to_ascii_lowercase();
    // What cannot be read through may say anything.
    let whole = read.is_ok_and(|bytes| (bytes as u64) < CONFIG_BYTES_MAX);
    !whole || said.windows(EXTENSION.len()).any(|part| part == EXTENSION)
}

/// It is there, or could be made.
fn is_within_reach(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().is_some_and(is_writable)
        }
        Err(_) => false,
    }
}

#[cfg(target_os = "linux")]
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_writable(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|data| !data.permissions().readonly())
}

/// The repository and its modules. A folder among those that has no `HEAD` yet may become one.
fn with_modules(git: &Path) -> Vec<Guard> {
    let mut found = vec![git.to_owned()];
    let mut looks = LOOKS_MAX;
    for module in folders(&git.join("modules")) {
        let before = found.len();
        modules(&module, MODULES_DEEP, &mut looks, &mut found);
        if found.len() == before && before <= MODULES_MAX {
            found.push(module);
        }
    }
    found.iter().flat_map(|folder| git_folder(folder)).collect()
}

fn modules(folder: &Path, deep: usize, looks: &mut usize, found: &mut Vec<PathBuf>) {
    if found.len() > MODULES_MAX || deep == 0 || *looks == 0 {
        return;
    }
    *looks -= 1;
    let inside = if folder.join("HEAD").exists() {
        found.push(folder.to_owned());
        folders(&folder.join("modules"))
    } else {
        folders(folder)
    };
    for inner in inside {
        modules(&inner, deep - 1, looks, found);
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MODULES_MAX);
    let folders = entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|it| it.path()).collect()
}

fn git_folder(git: &Path) -> Vec<Guard> {
    let guard = |&(name, absent): &(&str, StandIn)| {
        let path = git.join(name);
        Guard { path, keep: Keep::Frozen, absent }
    };
    REPOSITORY.iter().map(guard).collect()
}

/// Keys and passwords that programs keep in a home folder, hidden where they exist.
pub fn credentials(home: &Path) -> Vec<Guard> {
    let guard = |name: &&str| {
        let path = home.join(name);
        Guard { path, keep: Keep::Hidden, absent: StandIn::Within }
    };
    CREDENTIALS.iter().map(guard).collect()
}
