//! What agents have left in the data folder: copies of repositories, and the past of files. Copies
//! in which nothing was done and whose session is gone are taken away; of all others people are
//! told, with the words that remove them. And what was left in a workspace by a run that was
//! killed.

use std::fs;
use std::path::{Path, PathBuf};

use locum_sandbox::Walls;

use crate::copies::{Left, Made, discard, left, plain, read};
use crate::place::copies;
use crate::{Place, numbers};

/// Records that are looked at; whoever has more is told of these first.
const COPIES_MAX: usize = 1000;
/// Files that are counted; a folder with more is at least so large.
const FILES_MAX: usize = 200_000;

/// A copy of a repository that somebody has worked in, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub folder: PathBuf,
    pub branch: String,
    /// The repository it is a copy of.
    pub workspace: PathBuf,
    pub is_untouched: bool,
    pub bytes: u64,
}

impl Leftover {
    /// What a person types to be rid of it.
    #[must_use]
    pub fn removal(&self) -> String {
        let (git, folder) = (format!("git -C {}", self.workspace.display()), self.folder.display());
        format!("{git} worktree remove --force {folder} && {git} branch -D {}", self.branch)
    }
}

/// All copies that are there, in the order of their names.
#[must_use]
pub fn leftovers(data: &Path) -> Vec<Leftover> {
    let there = records(data).into_iter().filter_map(|(_, record)| read(&record));
    let there = there.filter(|made| made.top.exists());
    let leftover = |made: Made| Leftover {
        is_untouched: matches!(left(&made), Ok(Left::Nothing)),
        bytes: size(&made.top),
        folder: made.top,
        branch: made.branch,
        workspace: made.workspace,
    };
    there.map(leftover).collect()
}

/// Takes away the untouched copies of sessions that are not among these. Whoever calls it is the
/// only one who runs sessions in this folder. Gives how many went. Sessions are only listed if
/// there are copies; `None`: they cannot be, and nothing goes.
pub fn sweep(data: &Path, sessions: impl FnOnce() -> Option<Vec<String>>) -> usize {
    let (all, numbers) = (records(data), numbers::all(data));
    let known = if all.is_empty() && numbers.is_empty() { None } else { sessions() };
    let Some(known) = known else { return 0 };
    let known: Vec<String> = known.iter().map(|key| plain(key)).collect();
    for (_, file) in numbers.iter().filter(|(session, _)| !known.contains(session)) {
        let _ = fs::remove_file(file);
    }
    let gone = all.into_iter().filter(|(session, _)| !known.contains(session));
    let mut count = 0;
    for (_, record) in gone {
        let Some(made) = read(&record) else { continue };
        // One that somebody has removed by hand leaves its record.
        let done = if made.top.exists() {
            matches!(left(&made), Ok(Left::Nothing)) && discard(&made, &record)
        } else {
            fs::remove_file(&record).is_ok()
        };
        count += usize::from(done);
        // Only an empty one goes.
        let _ = record.parent().map(fs::remove_dir);
    }
    count
}

/// Takes away what a run that was killed has left standing in for absent places. What is in
/// repositories below the workspace, where nobody sees it, goes with the next command.
pub fn tidy(place: &Place) {
    let guards = place.guards();
    locum_sandbox::tidy(&Walls { guards, ..Walls::around(&place.workspace) });
}

/// How much the past of files takes.
#[must_use]
pub fn past_bytes(data: &Path) -> u64 {
    size(&data.join("kept"))
}

/// Each with its session, as that is written in a path.
fn records(data: &Path) -> Vec<(String, PathBuf)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for session in entries(&copies(data)) {
        let name = session.file_name().to_string_lossy().into_owned();
        let files = entries(&session.path()).map(|entry| entry.path());
        let records = files.filter(|path| path.extension().is_some_and(|it| it == "json"));
        found.extend(records.map(|path| (name.clone(), path)).take(COPIES_MAX - found.len()));
    }
    found.sort();
    found
}

fn size(folder: &Path) -> u64 {
    let (mut ahead, mut bytes, mut count) = (vec![folder.to_owned()], 0_u64, 0);
    while let Some(path) = ahead.pop().filter(|_| count < FILES_MAX) {
        count += 1;
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_dir() {
            let inside = fs::read_dir(&path).into_iter().flatten().flatten();
            ahead.extend(inside.map(|entry| entry.path()).take(FILES_MAX));
        } else {
            bytes = bytes.saturating_add(data.len());
        }
    }
    bytes
}
