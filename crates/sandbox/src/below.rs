//! What is below a workspace and makes programs run: repositories, and what agents are made of in
//! somebody's subfolder. Found by a walk with bounds, because it is part of every command: the
//! folders nearest to the top first, and none that is only full of what others have made.
//!
//! What was found once stays found: otherwise a command could put so much in front of a repository
//! that the next walk does not get there. Repositories are those that were there at the first walk:
//! what commands have made since is theirs, and must be theirs to set up and to remove.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guards::nested;
use crate::walls::{Guard, Keep, StandIn};

/// Folders below folders that are looked into.
const DEPTH_MAX: usize = 4;
/// Names that are read.
const ENTRIES_MAX: usize = 20_000;
/// Each repository is four mounts and more; a command with so many starts noticeably later.
const REPOSITORIES_MAX: usize = 64;
/// Other places.
const NAMED_MAX: usize = 64;
/// Guards in all: modules and worktrees multiply.
const GUARDS_MAX: usize = 1024;

/// Clocks of files are coarse: what changes right after a look may have the same time. So nothing
/// is believed that was not seen twice.
const LOOKS: u32 = 2;

/// Full of what package managers and compilers have made. The insides of repositories are known.
const SKIPPED: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "__pycache__"];

/// What is in a folder without a worktree that git takes for a repository.
const BARE: [&str; 3] = ["HEAD", "objects", "refs"];

/// What walks below one workspace have found.
#[derive(Debug, Default)]
pub struct Below {
    /// Folders as they were read, so that only those that have changed are read again.
    folders: BTreeMap<PathBuf, Folder>,
    repositories: BTreeSet<PathBuf>,
    named: BTreeSet<PathBuf>,
    /// Whether this is not the first time.
    has_walked: bool,
}

/// One folder's contents, as far as they matter.
#[derive(Clone, Debug, Default)]
struct Folder {
    stamp: Option<Stamp>,
    looks: u32,
    entries: usize,
    inside: Vec<OsString>,
    /// Where repositories are.
    repository: Option<PathBuf>,
    named: Vec<PathBuf>,
}

/// When something in a folder was last changed, by the one clock that no program can set back.
type Stamp = (i64, i64, u64);

impl Below {
    /// Guards of what is there now below `workspace`, without what is its own. `names` are paths
    /// that are kept in every folder that has them.
    pub fn guards(&mut self, workspace: &Path, names: &[&str]) -> Vec<Guard> {
        self.walk(workspace, names);
        let frozen = |path: &PathBuf| {
            // Others may be at work there, and what is only on the way stays open.
            let absent = StandIn::Within;
            Guard { path: path.clone(), keep: Keep::Frozen, absent }
        };
        let repositories = self.repositories.iter().flat_map(|git| nested(git));
        let others = self.named.iter().map(frozen);
        others.chain(repositories).take(GUARDS_MAX).collect()
    }

    fn walk(&mut self, workspace: &Path, names: &[&str]) {
        let names: Vec<&Path> = names.iter().map(Path::new).collect();
        let there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        self.repositories.retain(there);
        self.named.retain(there);
        let mut before = std::mem::take(&mut self.folders);
        let mut ahead = VecDeque::from([(workspace.to_owned(), 0)]);
        let mut entries = 0;
        while let Some((path, depth)) = ahead.pop_front() {
            let Some(folder) = look(&path, before.remove(&path), ENTRIES_MAX - entries, &names)
            else {
                continue;
            };
            entries += folder.entries;
            if depth < DEPTH_MAX {
                ahead.extend(folder.inside.iter().map(|name| (path.join(name), depth + 1)));
            }
            // The workspace's own are guarded whether they are there or not.
            if depth > 0 {
                let repository = folder.repository.iter().filter(|_| !self.has_walked).cloned();
                add(&mut self.repositories, repository, REPOSITORIES_MAX);
                add(&mut self.named, folder.named.iter().cloned(), NAMED_MAX);
            }
            self.folders.insert(path, folder);
            if entries >= ENTRIES_MAX {
                break;
            }
        }
        self.has_walked = true;
    }
}

fn add(known: &mut BTreeSet<PathBuf>, found: impl Iterator<Item = PathBuf>, most: usize) {
    for path in found {
        if known.len() < most {
            known.insert(path);
        }
    }
}

fn look(path: &Path, before: Option<Folder>, most: usize, names: &[&Path]) -> Option<Folder> {
    let stamp = stamp(path);
    let same = before.filter(|it| stamp.is_some() && it.stamp == stamp);
    let looks = same.as_ref().map_or(0, |it| it.looks);
    if let Some(known) = same.filter(|it| it.looks == LOOKS) {
        return Some(known);
    }
    let mut folder = Folder { stamp, looks: looks + 1, ..Folder::default() };
    let mut bare = [false; BARE.len()];
    for entry in fs::read_dir(path).ok()?.flatten().take(most) {
        folder.entries += 1;
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else { continue };
        if name == ".git" {
            folder.repository = Some(entry.path());
        }
        for (sign, there) in BARE.iter().zip(&mut bare) {
            *there |= name == *sign;
        }
        let ends = names.iter().filter(|it| it.file_name() == Some(&name));
        let mut ends = ends.filter(|_| !kind.is_symlink()).map(|it| (entry.path(), it));
        folder.named.extend(ends.find(|(path, it)| path.ends_with(it)).map(|(path, _)| path));
        if kind.is_dir() && !SKIPPED.iter().any(|it| name == *it) {
            folder.inside.push(name);
        }
    }
    if folder.repository.is_none() && bare.iter().all(|there| *there) {
        folder.repository = Some(path.to_owned());
    }
    Some(folder)
}

/// The place itself, and when something in it was last changed.
#[cfg(unix)]
fn stamp(folder: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let data = fs::symlink_metadata(folder).ok()?;
    Some((data.ctime(), data.ctime_nsec(), data.ino()))
}

#[cfg(not(unix))]
fn stamp(_: &Path) -> Option<Stamp> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(PathBuf);

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn world(name: &str, folders: &str) -> World {
        let base = std::env::temp_dir().join(format!("locum-below-{name}-{}", std::process::id()));
        let world = World(base);
        folders.split_whitespace().for_each(|folder| world.make(folder));
        world
    }

    impl World {
        fn make(&self, folder: &str) {
            fs::create_dir_all(self.0.join(folder)).expect("a folder");
        }

        /// What is guarded: repositories by their hooks, others by themselves.
        fn found(&self, below: &mut Below) -> String {
            let guards = below.guards(&self.0, &[".claude", ".github/agents"]);
            let paths = guards.iter().filter_map(|it| it.path.strip_prefix(&self.0).ok()?.to_str());
            let ends = [".claude", "agents", "hooks"];
            let paths = paths.filter(|path| ends.iter().any(|end| path.ends_with(end)));
            let mut paths: Vec<&str> = paths.collect();
            paths.sort_unstable();
            paths.join(" ")
        }
    }

    /// Folders, and which of them are guarded.
    const CASES: &[(&str, &str, &str)] = &[
        ("own", ".git .claude", ""),
        ("clone", "p/.git", "p/.git/hooks"),
        ("in-each-other", "p/.git p/q/.git", "p/.git/hooks p/q/.git/hooks"),
        ("four", "a/b/c/d/.git a/b/c/d/e/.git", "a/b/c/d/.git/hooks"),
        ("bare", "m/HEAD m/objects m/refs n/HEAD n/refs", "m/hooks"),
        ("made-by-others", "node_modules/p/.git target/p/.git .venv/p/.git", ""),
        (
            "definitions",
            "p/.claude q/.github/agents q/.github/other agents",
            "p/.claude q/.github/agents",
        ),
        (
            "modules",
            "p/.git/modules/a/b/HEAD p/.git/modules/c",
            "p/.git/hooks p/.git/modules/a/b/hooks p/.git/modules/c/hooks",
        ),
    ];

    #[test]
    fn what_is_found() {
        for (name, folders, expected) in CASES {
            let world = world(name, folders);
            let mut below = Below::default();
            // Read, believed, and known.
            for look in 0..4 {
                assert_eq!(world.found(&mut below), *expected, "{name}, look {look}");
            }
        }
    }

    /// Whatever was made in front of it; a repository that was made since is nobody else's.
    #[test]
    fn what_changes_is_seen_and_what_was_seen_stays() {
        let world = world("changes", "z/y/p/.git");
        let mut below = Below::default();
        assert_eq!(world.found(&mut below), "z/y/p/.git/hooks");
        for look in 0..4 {
            world.make(&format!("a{look}/.claude"));
            let found = world.found(&mut below);
            assert!(found.contains(&format!("a{look}/.claude")), "{found}");
        }
        for many in 0..REPOSITORIES_MAX {
            world.make(&format!("a/b{many}/.git"));
        }
        let found = world.found(&mut below);
        assert!(found.contains("z/y/p/.git/hooks") && !found.contains("a/b"), "{found}");
        fs::remove_dir_all(world.0.join("z")).expect("removed");
        assert!(!world.found(&mut below).contains("hooks"));
    }
}
