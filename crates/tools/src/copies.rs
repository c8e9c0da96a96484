//! Copies of the repository for agents that have one of their own: a git worktree on a branch, so
//! that what is kept of the work can be found and merged like any other.
//!
//! A copy is made before the agent's first turn and is of the last commit. When the agent ends and
//! has left nothing that git would not bring back, the copy goes; else it stays where it is, and
//! people and whoever called the agent are told.

mod left;

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use locum_kernel::{AgentId, Copied, Errand, Kit, Output, Ready, ToolSpec};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::place::copies;
use crate::{Place, own};
pub(crate) use left::{Left, left};

/// Branches of one agent that are tried, if somebody has kept earlier ones.
const BRANCHES_MAX: u32 = 100;

/// An agent's copy, found.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The place of its tools.
    pub(crate) place: Place,
    pub(crate) made: Made,
}

/// What was made, as it is written beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The worktree.
    pub(crate) top: PathBuf,
    /// What in it stands for the workspace, which may be a folder of a repository.
    pub(crate) folder: PathBuf,
    pub(crate) branch: String,
    /// The commit it is a copy of.
    pub(crate) base: String,
    /// The repository's own folder, and the worktree's in it.
    pub(crate) common: PathBuf,
    pub(crate) git: PathBuf,
    /// Where it was copied from.
    pub(crate) workspace: PathBuf,
}

/// Work that is there for somebody to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub folder: PathBuf,
    pub branch: String,
}

/// The copy that an agent has or has left, if there is one.
#[must_use]
pub fn kept(data: &Path, session: &str, agent: AgentId) -> Option<Kept> {
    let made = read(&record(data, session, agent))?;
    made.top.exists().then_some(Kept { folder: made.top, branch: made.branch })
}

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Makes copies and takes them away.
pub struct Copies {
    place: Place,
    tell: Tell,
    /// Those that are being looked at after their agents have ended.
    leaving: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Copies {
    /// What people should know is told with `tell`.
    #[must_use]
    pub fn new(place: Place, tell: impl Fn(&str) + Send + Sync + 'static) -> Copies {
        Copies { place, tell: Arc::new(tell), leaving: Mutex::default() }
    }
}

impl Toolbox for Copies {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let missing = format!("Tool not found: {}", errand.tool);
        Box::pin(async move { Output::error(missing) })
    }

    fn prepare(&self, agent: AgentId, kit: Kit) -> Task<Result<Ready, String>> {
        let (place, tell) = (self.place.clone(), Arc::clone(&self.tell));
        Box::pin(async move {
            if !kit.worktree {
                return Ok(Ready::default());
            }
            let work = move || make(&place, agent, &*tell);
            let made = tokio::task::spawn_blocking(work).await;
            let made = made.unwrap_or_else(|error| Err(format!("the copy failed: {error}")))?;
            let Made { top, branch, .. } = &made;
            let told = format!(
                "You work in a copy of the repository of your own, as of the last commit, on the \
                 branch {branch}. Paths are those of the copy.{}",
                without(&left::absent_submodules(top))
            );
            let copy = Copied { path: top.display().to_string(), branch: branch.clone() };
            Ok(Ready { told: Some(told), copy: Some(copy), ..Ready::default() })
        })
    }

    fn ended(&self, agent: AgentId) {
        let record = record(&self.place.data, &self.place.session, agent);
        let Some(made) = read(&record) else { return };
        let tell = Arc::clone(&self.tell);
        let leave = move || leave(agent, &made, &record, &*tell);
        let thread = thread::Builder::new().name("locum-copy".to_owned()).spawn(leave);
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|thread| !thread.is_finished());
        // Without a thread to be had it stays, and the next look at it says so.
        leaving.extend(thread.ok());
    }
}

impl Drop for Copies {
    /// What is kept is told before the program ends.
    fn drop(&mut self) {
        let leaving = self.leaving.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in leaving.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Copy {
    /// The copy an agent works in. One that is gone is made again: a crash can come between an
    /// agent's end and the moment that is known.
    pub(crate) fn of(place: &Place, agent: AgentId) -> Result<Copy, String> {
        let found = read(&record(&place.data, &place.session, agent));
        let made = match found.filter(|made| made.folder.is_dir()) {
            Some(made) => made,
            None => make(place, agent, &|_| {})?,
        };
        let place = Place { workspace: made.folder.clone(), ..place.clone() };
        Ok(Copy { place, made })
    }

    /// Where the work is, if there is any.
    pub(crate) fn told(&self) -> Option<String> {
        if matches!(left(&self.made), Ok(Left::Nothing)) {
            return None;
        }
        let (top, branch) = (self.made.top.display(), &self.made.branch);
        Some(format!("[its work is in {top} on the branch {branch}]"))
    }
}

/// Submodules that an agent is told of by name.
const NAMED_MAX: usize = 5;

fn without(submodules: &[PathBuf]) -> String {
    if submodules.is_empty() {
        return String::new();
    }
    let named = submodules.iter().take(NAMED_MAX).map(|path| path.display().to_string());
    let named: Vec<String> = named.collect();
    let more = if submodules.len() > NAMED_MAX { " and others" } else { "" };
    format!(" Submodules are not checked out in it: {}{more}.", named.join(", "))
}

fn folder(data: &Path, session: &str) -> PathBuf {
    copies(data).join(plain(session))
}

fn record(data: &Path, session: &str, agent: AgentId) -> PathBuf {
    folder(data, session).join(format!("{agent}.json"))
}

pub(crate) fn read(record: &Path) -> Option<Made> {
    serde_json::from_slice(&fs::read(record).ok()?).ok()
}

/// A session's name as part of a path and of a branch.
pub(crate) fn plain(name: &str) -> String {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(fits) {
        return name.to_owned();
    }
    let kept: String = name.chars().map(|sign| if fits(sign) { sign } else { '-' }).collect();
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    let [first, second, third, fourth, ..] = digest;
    format!("s{kept}-{:08x}", u32::from_be_bytes([first, second, third, fourth]))
}

/// Makes it, unless it is there.
fn make(place: &Place, agent: AgentId, tell: &dyn Fn(&str)) -> Result<Made, String> {
    let (session, workspace) = (&place.session, &place.workspace);
    let record = record(&place.data, session, agent);
    let top = folder(&place.data, session).join(agent.to_string());
    if let Some(made) = read(&record).filter(|made| made.folder.is_dir() && made.git.is_dir()) {
        return Ok(made);
    }
    let shown = workspace.display();
    let words = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--show-prefix"];
    let found = git(workspace, &words)?.map_err(|_| {
        format!("{shown} is not a git repository, so no copy of it can be made: `git init` first")
    })?;
    let (common, prefix) = found.split_once('\n').unwrap_or((&found, ""));
    let common = PathBuf::from(common);
    let base = git(workspace, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    let base = base.map_err(|_| format!("{shown} has no commit yet to make a copy of"))?;
    clear(workspace, &top)?;
    let parent = top.parent().unwrap_or(&top);
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let branch = add(workspace, &top, &format!("locum/{}/{agent}", plain(session)), &base)?;
    let own = git(&top, &["rev-parse", "--absolute-git-dir"])?;
    let own = PathBuf::from(own.map_err(|why| format!("{}: {why}", top.display()))?);
    let made = Made {
        folder: top.join(prefix),
        top,
        branch,
        base,
        common,
        git: own,
        workspace: workspace.clone(),
    };
    if !made.folder.is_dir() {
        return Err(format!("{shown} is not in the last commit, so a copy would be without it"));
    }
    write(&record, &made).map_err(|error| format!("{}: {error}", record.display()))?;
    // It never ends, so this is when people hear of it.
    if agent == AgentId::MAIN {
        let (top, branch) = (made.top.display(), &made.branch);
        tell(&format!("note: {agent} works in {top} on the branch {branch}"));
    }
    let changes = git(workspace, &["status", "--porcelain"])?.unwrap_or_default();
    let changes = changes.lines().count();
    if changes > 0 {
        tell(&format!(
            "note: {agent} works in a copy of the last commit; {changes} uncommitted changes of \
             {shown} are not in it"
        ));
    }
    Ok(made)
}

/// What a crash left half done. Nobody has worked in it: the record is written last.
fn clear(workspace: &Path, top: &Path) -> Result<(), String> {
    if top.exists() {
        fs::remove_dir_all(top).map_err(|error| format!("{}: {error}", top.display()))?;
    }
    // It may have been known to git, or not yet.
    git(workspace, &["worktree", "prune"])?.map(|_| ())
}

/// A worktree on a branch of that name, or the next that is free. Gives the branch.
fn add(workspace: &Path, top: &Path, branch: &str, base: &str) -> Result<String, String> {
    for number in 1..=BRANCHES_MAX {
        let name = if number == 1 { branch.to_owned() } else { format!("{branch}-{number}") };
        let at =
            git(workspace, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")])?;
        let words: [&OsStr; 6] = match &at {
            Err(_) => {
                let new = ["worktree", "add", "--quiet", "-b", &name].map(OsStr::new);
                [new[0], new[1], new[2], new[3], new[4], top.as_os_str()]
            }
            // Left by a crash, with nothing on it.
            Ok(at) if at == base => {
                let again = ["worktree", "add", "--quiet", "-B", &name].map(OsStr::new);
                [again[0], again[1], again[2], again[3], again[4], top.as_os_str()]
            }
            Ok(_) => continue,
        };
        let words: Vec<&OsStr> = words.into_iter().chain([OsStr::new(base)]).collect();
        git(workspace, &words)?.map_err(|why| format!("git made no copy: {why}"))?;
        return Ok(name);
    }
    Err(format!("{BRANCHES_MAX} branches like {branch} are there: delete those that are done with"))
}

fn write(record: &Path, made: &Made) -> io::Result<()> {
    own::replace(record, &serde_json::to_vec(made)?)
}

/// Takes a copy away in which nothing was done, and tells of any other.
fn leave(agent: AgentId, made: &Made, record: &Path, tell: &dyn Fn(&str)) {
    let (top, branch) = (made.top.display(), &made.branch);
    match left(made) {
        Ok(Left::Nothing) => {
            discard(made, record);
        }
        Ok(Left::Work | Left::Beside) | Err(_) if !made.top.exists() => {}
        Ok(Left::Beside) => tell(&format!(
            "note: {agent} changed nothing that git keeps, but left files in {top} that git \
             ignores or that lie in a submodule. Take what you want, then \
             `git worktree remove --force {top} && git branch -D {branch}`"
        )),
        Ok(Left::Work) | Err(_) => {
            tell(&format!(
                "note: the work of {agent} is kept in {top} on the branch {branch}. Commit there \
                 what is not committed, then `git merge {branch}`; or throw it away with \
                 `git worktree remove --force {top} && git branch -D {branch}`"
            ));
        }
    }
}

/// True: it is gone.
pub(crate) fn discard(made: &Made, record: &Path) -> bool {
    let words = ["worktree", "remove", "--force"].map(OsStr::new);
    let removed = git(&made.workspace, &[&words[..], &[made.top.as_os_str()]].concat());
    let removed = matches!(removed, Ok(Ok(_)));
    if removed {
        let _ = git(&made.workspace, &["branch", "--quiet", "-D", &made.branch]);
        let _ = fs::remove_file(record);
    }
    removed
}

/// What git says, or its complaint; Err: there is no git. Nothing that the repository could bring
/// along is run: no hooks, no watchers.
pub(crate) fn git<W: AsRef<OsStr>>(
    folder: &Path,
    words: &[W],
) -> Result<Result<String, String>, String> {
    let output = command(folder, words).output().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return "git is not installed, and without it no repository is copied".to_owned();
        }
        format!("git cannot be run: {error}")
    })?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Ok(if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(said(&output.stderr).lines().last().unwrap_or_default().to_owned())
    })
}

fn command<W: AsRef<OsStr>>(folder: &Path, words: &[W]) -> process::Command {
    let mut command = process::Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.arg("-C").arg(folder);
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(words).stdin(Stdio::null()).env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sessions_fit_into_paths_and_branches() {
        for name in ["a", "0f-B_9"] {
            assert_eq!(plain(name), name);
        }
        let odd = ["", "..", "a/b", "a.lock", "-x", "ü", "a b", "a-b/", "a@{1}"];
        let mut seen: Vec<String> = odd.iter().map(|name| plain(name)).collect();
        for name in &seen {
            assert!(
                name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)),
                "{name}"
            );
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), odd.len());
    }
}
