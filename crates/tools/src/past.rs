//! What files were before an agent changed them, for agents whose definition wants that kept, and
//! the way back. Contents are kept once, under names made of their bytes; a small index for each
//! agent says which file was what before and after which call.
//!
//! What a file tool is about to change is kept before it does. A command can change anything, so
//! before it runs all files are looked at that git knows or would add, and again after it; without
//! a repository nobody knows which files matter, and commands go unwatched.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::process;

use locum_kernel::{AgentId, Errand};
use locum_runtime::clock::{Clock as _, System};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Place;
use crate::copies::{git, plain};

/// More than this is not looked at before a command: it would be waited for.
const FILES_MAX: usize = 50_000;
const BYTES_MAX: u64 = 512 << 20;
const CHUNK: usize = 64 << 10;

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub sha256: String,
    pub mode: u32,
}

/// One line of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Milliseconds since 1970.
    pub at: u64,
    pub session: String,
    pub agent: AgentId,
    pub call: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A file is about to be changed; `None`: there is none.
    About {
        path: PathBuf,
        before: Option<State>,
    },
    /// A file was changed.
    Changed {
        path: PathBuf,
        before: Option<State>,
        after: Option<State>,
    },
    /// A command is about to run. If nothing is said of its end, it was cut.
    Runs,
    Ran,
}

/// The index and the contents of one agent.
#[derive(Clone, Debug)]
pub struct Past {
    contents: PathBuf,
    index: PathBuf,
    session: String,
    agent: AgentId,
}

impl Past {
    #[must_use]
    pub fn of(data: &Path, session: &str, agent: AgentId) -> Past {
        let kept = data.join("kept");
        Past {
            index: kept.join(plain(session)).join(format!("{agent}.jsonl")),
            contents: kept.join("contents"),
            session: session.to_owned(),
            agent,
        }
    }

    pub(crate) fn for_errand(place: &Place, errand: &Errand) -> Option<Past> {
        errand.checkpoint.then(|| Past::of(&place.data, &place.session, errand.agent))
    }

    pub(crate) fn note(&self, errand: &Errand, all: &[What]) -> io::Result<()> {
        let at = System.now().0;
        let mut text = Vec::new();
        for what in all {
            let (session, call) = (self.session.clone(), errand.call.to_string());
            let row = Row { at, session, agent: self.agent, call, what: what.clone() };
            serde_json::to_writer(&mut text, &row)?;
            text.push(b'\n');
        }
        fs::create_dir_all(self.index.parent().unwrap_or(&self.index))?;
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(&self.index)?;
        // In one piece: a row that a crash cut in half is passed over.
        file.write_all(&text)?;
        file.sync_data()
    }

    /// All rows, oldest first; none if nothing was ever kept.
    pub fn rows(&self) -> io::Result<Vec<Row>> {
        match fs::read_to_string(&self.index) {
            Ok(text) => Ok(text.lines().filter_map(|row| serde_json::from_str(row).ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Keeps what a file is. `None`: there is none, or it is no plain file.
    pub(crate) fn keep(&self, path: &Path, care: Care) -> io::Result<Option<State>> {
        // Somebody may write to it meanwhile; then it is looked at again.
        for _ in 0..3 {
            let Some(state) = state(path)? else { return Ok(None) };
            let place = self.content(&state.sha256);
            if place.exists() || self.copy(path, &place, &state.sha256, care)? {
                return Ok(Some(state));
            }
        }
        Err(io::Error::other(format!("{} changes all the time", path.display())))
    }

    fn content(&self, sha256: &str) -> PathBuf {
        let (first, rest) = sha256.split_at_checked(2).unwrap_or(("", sha256));
        self.contents.join(first).join(rest)
    }

    /// False: it was another by then.
    fn copy(&self, path: &Path, place: &Path, sha256: &str, care: Care) -> io::Result<bool> {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        let draft = place.with_extension(format!("{}-{}", self.agent, process::id()));
        let mut file = OpenOptions::new();
        let mut file = file.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        let same = digest(path, |part| file.write_all(part))? == sha256;
        if same {
            if care == Care::Synced {
                file.sync_data()?;
            }
            fs::rename(&draft, place)?;
        } else {
            fs::remove_file(&draft)?;
        }
        Ok(same)
    }
}

/// Whether what is kept must outlive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    Synced,
    /// For a thousand files at once, of which few will change. What is damaged is noticed.
    Quick,
}

/// What a file is now. `None`: there is none, or it is no plain file.
fn state(path: &Path) -> io::Result<Option<State>> {
    let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    let data = match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() => data,
        Ok(_) => return Ok(None),
        Err(error) if absent.contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let sha256 = digest(path, |_| Ok(()))?;
    Ok(Some(State { sha256, mode: data.mode() & 0o7777 }))
}

fn digest(path: &Path, mut see: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        hash.update(&chunk[..count]);
        see(&chunk[..count])?;
    }
    let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or('0');
    Ok(hash.finalize().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

/// A path as a model named it, without links as far as it exists; `None`: not in the workspace.
pub(crate) fn meant(workspace: &Path, named: &str) -> Option<PathBuf> {
    let root = workspace.canonicalize().ok()?;
    let whole = workspace.join(named);
    let mut rest = Vec::new();
    let mut here = whole.as_path();
    loop {
        if let Ok(real) = here.canonicalize() {
            let path = rest.iter().rev().fold(real, |path, name| path.join(name));
            return path.starts_with(&root).then_some(path);
        }
        // Behind what does not exist `..` means nothing.
        let Some(Component::Normal(name)) = here.components().next_back() else { return None };
        rest.push(name.to_owned());
        here = here.parent()?;
    }
}

/// What tells that a file has not been touched.
type Stamp = (u64, u64, i64, i64, i64, i64);

/// All files of a workspace at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment(BTreeMap<PathBuf, (Stamp, State)>);

impl Moment {
    /// Looks at all, and keeps what is new. `None`: it is no repository, or too large.
    pub(crate) fn take(past: &Past, workspace: &Path, last: &Moment) -> io::Result<Option<Moment>> {
        let words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let Ok(Ok(listed)) = git(workspace, &words) else { return Ok(None) };
        let (mut found, mut bytes) = (BTreeMap::new(), 0);
        for name in listed.split('\0').filter(|name| !name.is_empty()) {
            let path = workspace.join(name);
            let Ok(data) = fs::symlink_metadata(&path) else { continue };
            if !data.is_file() {
                continue;
            }
            bytes += data.len();
            if found.len() >= FILES_MAX || bytes > BYTES_MAX {
                return Ok(None);
            }
            let changed = (data.ctime(), data.ctime_nsec());
            let stamp =
                (data.ino(), data.len(), data.mtime(), data.mtime_nsec(), changed.0, changed.1);
            let known = last.0.get(&path).filter(|(before, _)| *before == stamp);
            let state = match known {
                Some((_, state)) => Some(state.clone()),
                None => past.keep(&path, Care::Quick)?,
            };
            if let Some(state) = state {
                found.insert(path, (stamp, state));
            }
        }
        Ok(Some(Moment(found)))
    }

    /// What is different in a later one.
    pub(crate) fn changes(&self, later: &Moment) -> Vec<What> {
        let mut all = Vec::new();
        for (path, (_, before)) in &self.0 {
            let after = later.0.get(path).map(|(_, state)| state.clone());
            if after.as_ref() != Some(before) {
                all.push(What::Changed { path: path.clone(), before: Some(before.clone()), after });
            }
        }
        let new = later.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        all.extend(new.map(|(path, (_, state))| What::Changed {
            path: path.clone(),
            before: None,
            after: Some(state.clone()),
        }));
        all
    }
}

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It gets back what it had, or would.
    Restored,
    /// It was made, and is taken away again, or would be.
    Removed,
    /// Nothing has to be done.
    AsItWas,
    /// Why it stays as it is.
    Left(String),
}

/// Whether it is done or only said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Do,
    Say,
}

/// A file's way through the hands of one agent.
#[derive(Debug)]
struct Story {
    first: Option<State>,
    /// What the agent left; `Err`: why that is not known.
    last: Result<Option<State>, &'static str>,
    call: String,
}

const CUT: &str = "a change of it was cut, and what that left is not known";
const BETWEEN: &str = "somebody else has changed it between two changes of this agent";

/// Takes back all that an agent changed, file by file. What is no longer as it left it stays.
pub fn undo(past: &Past, act: Act) -> io::Result<Vec<(PathBuf, Verdict)>> {
    let mut verdicts = Vec::new();
    for (path, story) in stories(past.rows()?) {
        let verdict = past.take_back(&path, &story, act);
        let verdict = verdict.unwrap_or_else(|error| Verdict::Left(error.to_string()));
        verdicts.push((path, verdict));
    }
    Ok(verdicts)
}

/// Commands of which it is not known what they changed, because they were cut.
pub fn cut_commands(past: &Past) -> io::Result<usize> {
    let rows = past.rows()?;
    let ran = |call: &str| rows.iter().any(|row| row.what == What::Ran && row.call == call);
    Ok(rows.iter().filter(|row| row.what == What::Runs && !ran(&row.call)).count())
}

fn stories(rows: Vec<Row>) -> BTreeMap<PathBuf, Story> {
    let mut all: BTreeMap<PathBuf, Story> = BTreeMap::new();
    for Row { call, what, .. } in rows {
        let (path, before, last) = match what {
            What::About { path, before } => (path, before, Err(CUT)),
            What::Changed { path, before, after } => (path, before, Ok(after)),
            What::Runs | What::Ran => continue,
        };
        match all.get_mut(&path) {
            None => {
                all.insert(path, Story { first: before, last, call });
            }
            // The same change, which is now known to have happened.
            Some(story) if story.last == Err(CUT) && story.call == call => {
                story.last = last;
            }
            Some(story) => {
                let goes_on = match &story.last {
                    Ok(left) => *left == before,
                    // It never happened.
                    Err(_) => story.last == Err(CUT) && story.first == before,
                };
                story.last = if goes_on { last } else { Err(BETWEEN) };
                story.call = call;
            }
        }
    }
    all
}

impl Past {
    fn take_back(&self, path: &Path, story: &Story, act: Act) -> io::Result<Verdict> {
        let left = |why: &str| Ok(Verdict::Left(why.to_owned()));
        if !is_where_it_was(path) {
            return left("the folder it was in is now a link or gone elsewhere");
        }
        if fs::symlink_metadata(path).is_ok_and(|data| !data.is_file()) {
            return left("it is no plain file any more");
        }
        let now = state(path)?;
        if now == story.first {
            return Ok(Verdict::AsItWas);
        }
        match &story.last {
            Err(why) => return left(why),
            Ok(last) if *last != now => return left("it has been changed since"),
            Ok(_) => {}
        }
        let Some(before) = &story.first else {
            if act == Act::Do {
                fs::remove_file(path)?;
            }
            return Ok(Verdict::Removed);
        };
        let content = self.content(&before.sha256);
        if digest(&content, |_| Ok(())).ok().as_ref() != Some(&before.sha256) {
            return left("what was kept of it is damaged or gone");
        }
        if act == Act::Do {
            put_back(path, &content, before.mode)?;
        }
        Ok(Verdict::Restored)
    }
}

/// No folder on the way has become a link: what is written goes where it was taken from.
fn is_where_it_was(path: &Path) -> bool {
    let there = path.ancestors().skip(1).find(|folder| fs::symlink_metadata(folder).is_ok());
    there.is_some_and(|folder| folder.canonicalize().is_ok_and(|real| real == folder))
}

fn put_back(path: &Path, content: &Path, mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.undo-{}", process::id()));
    let mut file = OpenOptions::new();
    let mut file = file.write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = io::copy(&mut File::open(content)?, &mut file).and_then(|_| {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}
