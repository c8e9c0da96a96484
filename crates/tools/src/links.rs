//! Other names of files that are kept from commands. A hard link is the file itself: walls that
//! hide a path do not hide its other names, so those that lie where the work is are looked for and
//! kept as well. A command cannot make one, because what is hidden is not there for it and a link
//! does not cross a mount; what was there before it came is what counts.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use locum_sandbox::{Guard, Keep, StandIn, Walls};

use crate::{Place, made_of};

/// Entries of the kept places that are looked at, the outer ones first.
const KEPT_MAX: usize = 10_000;
/// Entries of the workspace, and names found there: each is a mount.
const WORK_MAX: usize = 1_000_000;
const FOUND_MAX: usize = 256;

/// What editors and terminals run for the person, besides what starts with a shell: it may be read,
/// and what a command writes there would run without any walls.
const EDITORS: [&str; 6] = [".config/nvim", ".emacs", ".inputrc", ".kshrc", ".tmux.conf", ".vimrc"];

type Number = (u64, u64);

/// One file that is kept, by one of its names.
struct Kept {
    path: PathBuf,
    names: u64,
    keep: Keep,
}

/// Adds the other names, in the workspace, of what the walls hide and of what runs for a person.
/// Why they cannot be known is why nothing is run.
pub(crate) fn keep(walls: &mut Walls, place: &Place) -> Result<(), String> {
    let hidden = walls.guards.iter().filter(|guard| guard.keep == Keep::Hidden);
    let hidden: Vec<PathBuf> = hidden.filter_map(|it| it.path.canonicalize().ok()).collect();
    let editors = place.home.iter().flat_map(|home| EDITORS.map(|name| home.join(name)));
    let runs = made_of::starts(place).into_iter().chain(editors);
    let runs: Vec<PathBuf> = runs.filter_map(|path| path.canonicalize().ok()).collect();
    // What agents make there is no secret, and there may be a lot of it.
    let copies = place.copies().canonicalize().ok();
    let mut kept = HashMap::new();
    gather(&runs, Keep::Frozen, None, &mut kept);
    gather(&hidden, Keep::Hidden, copies.as_deref(), &mut kept);
    if !kept.is_empty() {
        walls.guards.extend(look(&walls.workspace, &hidden, &kept)?);
    }
    Ok(())
}

/// Files of these places that have more than one name.
fn gather(places: &[PathBuf], keep: Keep, apart: Option<&Path>, kept: &mut HashMap<Number, Kept>) {
    let mut count = 0;
    let mut ahead: VecDeque<PathBuf> = places.iter().cloned().collect();
    while let Some(path) = ahead.pop_front() {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_dir() && Some(path.as_path()) != apart {
            let left = KEPT_MAX - count;
            let entries = fs::read_dir(&path).into_iter().flatten().flatten().take(left);
            let before = ahead.len();
            ahead.extend(entries.map(|entry| entry.path()));
            count += ahead.len() - before;
        } else if data.is_file() && data.nlink() > 1 {
            kept.insert(number(&data), Kept { path, names: data.nlink(), keep });
        }
    }
}

fn look(
    workspace: &Path,
    hidden: &[PathBuf],
    kept: &HashMap<Number, Kept>,
) -> Result<Vec<Guard>, String> {
    let mut found = Vec::new();
    let mut count = 0;
    let mut ahead: Vec<PathBuf> = workspace.canonicalize().into_iter().collect();
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            count += 1;
            if count > WORK_MAX || found.len() > FOUND_MAX {
                return Err(too_many(workspace, kept));
            }
            let Ok(data) = entry.metadata() else { continue };
            let path = entry.path();
            if data.is_dir() && !hidden.contains(&path) {
                ahead.push(path);
            } else if data.is_file() && data.nlink() > 1 {
                let one = kept.get(&number(&data)).filter(|it| it.path != path);
                let guard = |it: &Kept| Guard { path, keep: it.keep, absent: StandIn::File("") };
                found.extend(one.map(guard));
            }
        }
    }
    Ok(found)
}

fn number(data: &Metadata) -> Number {
    (data.dev(), data.ino())
}

fn too_many(workspace: &Path, kept: &HashMap<Number, Kept>) -> String {
    let one = kept.values().min_by(|one, other| one.path.cmp(&other.path));
    let (path, names) = one.map_or((workspace, 1), |it| (it.path.as_path(), it.names));
    format!(
        "not run: {} is kept from commands and has {names} names (hard links), and there is too \
         much in {} to keep the others from them, too. Give that file a single name",
        path.display(),
        workspace.display()
    )
}
