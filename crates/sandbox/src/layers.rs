//! Which places are mounted how, in the order of mounting. Both builders work this list off:
//! bubblewrap as flags, the native one as system calls.
//!
//! Every folder between a writable one and a guarded place becomes a mount point of its own,
//! because a mount point cannot be renamed: otherwise `mv .git old && mkdir -p .git/hooks` would
//! leave the guard behind with the old folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::standin::{self, Want};
use crate::walls::{Guard, Keep, NoWalls, StandIn, Walls, Writes};

/// Links that lead to links; the kernel gives up at the same depth.
const LINKS_MAX: usize = 40;

/// The order matters where two name the same place: the stricter one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Mount {
    Open,
    /// Can be read although it lies in a hidden folder.
    Show,
    Freeze,
    HideFile,
    HideFolder,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layer {
    pub(crate) path: PathBuf,
    pub(crate) mount: Mount,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Outer folders before those in them.
    pub(crate) layers: Vec<Layer>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) wants: Vec<Want>,
    /// Guards that only mounts can keep, for a machine that has none.
    pub(crate) fragile: Vec<PathBuf>,
}

/// Where following a path ended.
enum End {
    There(PathBuf),
    Absent { first: PathBuf, rest: PathBuf },
}

#[derive(Default)]
struct Draft {
    mounts: BTreeMap<PathBuf, Mount>,
    wants: Vec<Want>,
    fragile: Vec<PathBuf>,
}

impl Draft {
    fn put(&mut self, path: &Path, mount: Mount) {
        let known = self.mounts.entry(path.to_owned()).or_insert(mount);
        *known = (*known).max(mount);
    }

    /// With what leads there, if that is made as well.
    fn want(&mut self, want: Want, roots: &[PathBuf]) {
        let Want { path, stand_in } = want;
        let stand_in = match stand_in {
            StandIn::Within => {
                let inside = |it: &&Path| root_of(it, roots).is_some_and(|root| root != it);
                let way: Vec<&Path> = path.ancestors().skip(1).take_while(inside).collect();
                let way = way.into_iter().rev().map(Path::to_owned);
                self.wants.extend(way.map(|path| Want { path, stand_in }));
                StandIn::Folder
            }
            StandIn::Folder | StandIn::File(_) => stand_in,
        };
        self.wants.push(Want { path, stand_in });
    }
}

pub(crate) fn plan(walls: &Walls) -> Result<Plan, NoWalls> {
    let writable = roots(walls)?;
    let mut draft = Draft::default();
    for root in &writable {
        draft.put(root, Mount::Open);
    }
    for guard in &walls.guards {
        place(guard, &writable, &mut draft)?;
    }
    let hidden: Vec<PathBuf> = draft
        .mounts
        .iter()
        .filter(|(_, mount)| matches!(mount, Mount::HideFile | Mount::HideFolder))
        .map(|(path, _)| path.clone())
        .collect();
    let mut layers: Vec<Layer> = draft
        .mounts
        .into_iter()
        .filter(|(path, mount)| *mount == Mount::Open || !covered(path, &hidden, &writable))
        .map(|(path, mount)| Layer { path, mount })
        .collect();
    // Who may write nowhere still reads where the work is.
    if walls.writes == Writes::Nowhere {
        let above = |root: &PathBuf| hidden.iter().any(|it| root != it && root.starts_with(it));
        let shown = fs::canonicalize(&walls.workspace).into_iter().filter(above);
        layers.extend(shown.map(|path| Layer { path, mount: Mount::Show }));
    }
    layers.sort_by_key(|layer| layer.path.components().count());
    Ok(Plan { layers, writable, hidden, wants: draft.wants, fragile: draft.fragile })
}

/// In a hidden folder already, with nothing opened in between: mounting it would show it again.
fn covered(path: &Path, hidden: &[PathBuf], writable: &[PathBuf]) -> bool {
    let above = |place: &&PathBuf| path != place.as_path() && path.starts_with(place);
    let depth = |places: &[PathBuf]| {
        places.iter().filter(above).map(|place| place.components().count()).max()
    };
    depth(hidden) > depth(writable)
}

fn roots(walls: &Walls) -> Result<Vec<PathBuf>, NoWalls> {
    let workspace = match walls.writes {
        Writes::Workspace => Some(&walls.workspace),
        Writes::Nowhere => None,
    };
    let named = workspace.into_iter().chain(&walls.writable);
    let mut roots = Vec::new();
    for path in named {
        let failed = |source| NoWalls::Path { path: path.clone(), source };
        let root = fs::canonicalize(path).map_err(failed)?;
        if root.parent().is_none() {
            return Err(NoWalls::Everything { path: root });
        }
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    Ok(roots)
}

fn place(guard: &Guard, roots: &[PathBuf], draft: &mut Draft) -> Result<(), NoWalls> {
    match follow(guard, roots, draft)? {
        End::There(path) => {
            let inside = root_of(&path, roots).is_some();
            let failed = |source| NoWalls::Path { path: path.clone(), source };
            let folder = fs::symlink_metadata(&path).map_err(failed)?.is_dir();
            match guard.keep {
                Keep::Hidden if folder => draft.put(&path, Mount::HideFolder),
                Keep::Hidden => draft.put(&path, Mount::HideFile),
                Keep::Frozen if inside => draft.put(&path, Mount::Freeze),
                // Nothing outside of the writable folders can be changed anyway.
                Keep::Frozen => return Ok(()),
            }
            if inside {
                hold_parents(&path, roots, draft);
                // Another process may be about to make it: then it must not go with that one.
                if guard.keep == Keep::Frozen && standin::looks_so(&path, guard.absent) {
                    draft.want(Want { path, stand_in: guard.absent }, roots);
                }
            }
        }
        End::Absent { first, rest } => {
            if root_of(&first, roots).is_none() {
                return Ok(());
            }
            let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
            let (path, stand_in) = match guard.absent {
                // Not `join`, which puts a slash after a path that nothing follows.
                StandIn::Within if plain => {
                    (first.components().chain(rest.components()).collect(), StandIn::Within)
                }
                StandIn::File(text) if rest.as_os_str().is_empty() => (first, StandIn::File(text)),
                StandIn::Folder | StandIn::Within | StandIn::File(_) => (first, StandIn::Folder),
            };
            draft.put(&path, Mount::Freeze);
            hold_parents(&path, roots, draft);
            draft.want(Want { path, stand_in }, roots);
        }
    }
    Ok(())
}

/// Follows a path by hand, because a link in a folder that the command may write to is not a
/// fact but an offer: the folder that holds it is frozen, and what it points at guarded too.
fn follow(guard: &Guard, roots: &[PathBuf], draft: &mut Draft) -> Result<End, NoWalls> {
    let path = guard.path.as_path();
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let mut queue = parts(path);
    let mut links = 0;
    let mut at = PathBuf::from("/");
    while let Some(part) = queue.pop() {
        match part.components().next() {
            None | Some(Component::CurDir | Component::Prefix(_)) => continue,
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => at.push(name),
        }
        let rest = || queue.iter().rev().collect();
        // Such a stand-in is open, so what is in it decides.
        let on_the_way = guard.absent == StandIn::Within && !queue.is_empty();
        let kind = match fs::symlink_metadata(&at) {
            // It is there only for as long as somebody else's command runs.
            Ok(data) if standin::is_one(&data) && !(on_the_way && data.is_dir()) => {
                return Ok(End::Absent { rest: rest(), first: at });
            }
            Ok(data) => data.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(End::Absent { rest: rest(), first: at });
            }
            // A file where a folder was expected: the file itself is what has to stay.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                at.pop();
                return Ok(End::There(at));
            }
            Err(source) => return Err(NoWalls::Path { path: path.to_owned(), source }),
        };
        if !kind.is_symlink() {
            continue;
        }
        links += 1;
        let link = at.clone();
        let target = fs::read_link(&link);
        let target = target.map_err(|source| NoWalls::Path { path: link.clone(), source })?;
        at.pop();
        if links > LINKS_MAX || roots.contains(&at) {
            return Err(NoWalls::Link { path: link });
        }
        if root_of(&at, roots).is_some() {
            draft.put(&at, Mount::Freeze);
            hold_parents(&at, roots, draft);
        }
        queue.extend(parts(&target));
    }
    Ok(End::There(at))
}

fn root_of<'a>(path: &Path, roots: &'a [PathBuf]) -> Option<&'a PathBuf> {
    let above = roots.iter().filter(|root| path.starts_with(root));
    above.max_by_key(|root| root.components().count())
}

fn hold_parents(path: &Path, roots: &[PathBuf], draft: &mut Draft) {
    draft.fragile.push(path.to_owned());
    for parent in path.ancestors().skip(1) {
        if root_of(parent, roots).is_none_or(|root| root == parent) {
            return;
        }
        draft.put(parent, Mount::Open);
    }
}

#[cfg(test)]
mod tests;
