//! The guards everybody wants: what makes a repository run things, and where people keep keys.

use std::fs;
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
    let mut guards = git_folder(&git);
    let modules = fs::read_dir(git.join("modules")).into_iter().flatten().flatten();
    for module in modules.take(MODULES_MAX) {
        guards.extend(git_folder(&module.path()));
    }
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
    let mut guards = git_folder(common);
    let modules = fs::read_dir(common.join("modules")).into_iter().flatten().flatten();
    for module in modules.take(MODULES_MAX) {
        guards.extend(git_folder(&module.path()));
    }
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
        Guard { path, keep: Keep::Hidden, absent: StandIn::Folder }
    };
    CREDENTIALS.iter().map(guard).collect()
}
