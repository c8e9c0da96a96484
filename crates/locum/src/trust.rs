//! Whether a folder's own files may be interpreted at all. Nothing in a folder is before somebody
//! trusts it: a definition, a note or a server that came with it is a stranger's.

pub(crate) mod approve;
mod store;

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use locum_definitions::{Kind, count};
use serde_json::{Value, json};

use crate::complaint::{Complaint, USAGE};
use crate::config::set;
use crate::data;
use crate::flags::Trust as Flags;
use crate::print;
use crate::text::{self, clean, quote};

use store::{Store, Verdict};

/// How far a folder's own files are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What is in this folder and below it may be interpreted.
    Yes { root: PathBuf, by: By },
    #[default]
    No,
}

/// Who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// `--trust`, for this run.
    Flag,
    /// Once and for all.
    Answer,
}

impl Trust {
    /// The folder whose files may be read, if any.
    pub(crate) fn root(&self) -> Option<&Path> {
        match self {
            Trust::Yes { root, .. } => Some(root),
            Trust::No => None,
        }
    }
}

/// What the command line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    ForThisRun,
    Nothing,
}

impl From<bool> for Said {
    fn from(flag: bool) -> Said {
        if flag { Said::ForThisRun } else { Said::Nothing }
    }
}

/// Whether somebody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    There,
    Absent,
}

impl Person {
    /// Whoever is at the terminal; both their keys and their screen must be one.
    pub(crate) fn here() -> Person {
        let there = io::stdin().is_terminal() && io::stderr().is_terminal();
        if there { Person::There } else { Person::Absent }
    }
}

/// Whether `folder`, a real path, is trusted. Where nobody has said anything yet and there is
/// something to interpret, a person who is there is asked once, and others are told.
pub(crate) fn of(folder: &Path, data: &Path, said: Said, person: Person) -> Trust {
    if said == Said::ForThisRun {
        return Trust::Yes { root: root_of(folder), by: By::Flag };
    }
    let store = match Store::read(data) {
        Ok(store) => store,
        Err(Complaint { what, cause, .. }) => {
            print::note(&format!("note: {what} {cause}. No folder is trusted."));
            return Trust::No;
        }
    };
    let answer = answered(&store, folder);
    if let Some((root, Verdict::Yes)) = answer {
        return Trust::Yes { root, by: By::Answer };
    }
    let root = root_of(folder);
    let has = contents(folder, &root);
    // What is at home is the person's own, and read as that.
    if has.is_empty() || is_too_wide(&root) {
        return Trust::No;
    }
    if answer.is_none() && person == Person::There {
        let question = format!(
            "{}\nTrust this folder? It has: {}. Agents would follow it. [y/N]",
            shown(&root),
            has.join(", ")
        );
        return match ask(&question) {
            Some(verdict) => remember(root, data, verdict),
            None => Trust::No,
        };
    }
    let (has, root) = (has.join(", "), quote(&root.display().to_string()));
    print::note(&format!(
        "note: this folder is not trusted; ignored: {has}. do: locum trust {root}"
    ));
    Trust::No
}

/// Whether a folder is trusted, without asking or telling anybody.
pub(crate) fn quietly(folder: &Path, data: &Path, said: Said) -> Result<Trust, Complaint> {
    if said == Said::ForThisRun {
        return Ok(Trust::Yes { root: root_of(folder), by: By::Flag });
    }
    Ok(match answered(&Store::read(data)?, folder) {
        Some((root, Verdict::Yes)) => Trust::Yes { root, by: By::Answer },
        Some((_, Verdict::No)) | None => Trust::No,
    })
}

/// What definitions a folder has that are not read because nobody trusts it, by number and kind
/// only, and the folder that would have to be trusted.
pub(crate) fn unread(folder: &Path, data: &Path, said: Said) -> Option<(PathBuf, String)> {
    let trust = quietly(folder, data, said).unwrap_or(Trust::No);
    let root = root_of(folder);
    if trust.root().is_some() || is_too_wide(&root) {
        return None;
    }
    let has = counted(folder);
    (!has.is_empty()).then(|| (root, has.join(", ")))
}

/// What was said of a folder, or of one above it in the same repository: another repository below
/// a trusted folder is somebody else's.
fn answered(store: &Store, folder: &Path) -> Option<(PathBuf, Verdict)> {
    let answer = store.of_folder(folder, repository(folder).as_deref());
    answer.filter(|(root, _)| !is_too_wide(root))
}

fn remember(root: PathBuf, data: &Path, verdict: Verdict) -> Trust {
    let kept = match root.to_str() {
        Some(name) => Store::change(data, |store| store.keep(name, verdict)),
        None => Err(unnameable(&root)),
    };
    if let Err(Complaint { what, cause, .. }) = kept {
        print::note(&format!("note: the answer is not remembered: {what} {cause}"));
    }
    match verdict {
        Verdict::Yes => Trust::Yes { root, by: By::Answer },
        Verdict::No => Trust::No,
    }
}

/// `None`: nobody answered. Only a plain yes is one.
pub(crate) fn agrees(question: &str) -> bool {
    ask(question) == Some(Verdict::Yes)
}

fn ask(question: &str) -> Option<Verdict> {
    let mut err = io::stderr();
    let _ = write!(err, "{question} ").and_then(|()| err.flush());
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line).unwrap_or(0);
    let line = String::from_utf8_lossy(&line).trim().to_lowercase();
    (read > 0).then_some(matches!(line.as_str(), "y" | "yes").into())
}

/// What is trusted when this folder is: the repository it is in, or itself.
fn root_of(folder: &Path) -> PathBuf {
    repository(folder).unwrap_or_else(|| folder.to_owned())
}

/// The nearest folder with a repository that belongs to whoever owns `folder`. A repository in the
/// home folder is about settings, not about what is below.
fn repository(folder: &Path) -> Option<PathBuf> {
    let own = |root: &Path| {
        let git = fs::symlink_metadata(root.join(".git")).ok();
        git.is_some_and(|git| is_of_owner(&git, folder))
    };
    let root = folder.ancestors().find(|root| own(root))?;
    (!is_too_wide(root)).then(|| root.to_owned())
}

#[cfg(unix)]
fn is_of_owner(git: &fs::Metadata, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder).is_ok_and(|data| data.uid() == git.uid())
}

#[cfg(not(unix))]
fn is_of_owner(_: &fs::Metadata, _: &Path) -> bool {
    true
}

/// The home folder and everything above it hold too much that nobody looked at.
fn is_too_wide(folder: &Path) -> bool {
    let home = set("HOME").map(PathBuf::from).and_then(|home| fs::canonicalize(home).ok());
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

/// How many definitions there are, without a look into any.
fn counted(folder: &Path) -> Vec<String> {
    let words = count(folder).into_iter().map(|(kind, count)| match (kind, count) {
        (kind, 1) => format!("1 {}", kind.word()),
        (Kind::Recipe | Kind::Skill | Kind::Agent, count) => format!("{count} {}s", kind.word()),
    });
    words.collect()
}

/// What there is to interpret, by name only.
fn contents(folder: &Path, root: &Path) -> Vec<String> {
    let mut has = counted(folder);
    let there = |name: &str| {
        let mut above = folder.ancestors().take_while(|it| it.starts_with(root));
        above.any(|it| fs::symlink_metadata(it.join(name)).is_ok())
    };
    has.extend(["AGENTS.md", "CLAUDE.md"].into_iter().filter(|it| there(it)).map(str::to_owned));
    // A folder stands there while a command runs.
    if fs::symlink_metadata(folder.join(".mcp.json")).is_ok_and(|it| !it.is_dir()) {
        has.push(".mcp.json".to_owned());
    }
    has
}

fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}

fn unnameable(folder: &Path) -> Complaint {
    Complaint {
        code: "E126",
        what: format!("{} cannot be remembered.", shown(folder)),
        cause: "Its name is not UTF-8 text.".into(),
        next: "locum run --trust, every time".into(),
        exit: USAGE,
    }
}

/// `locum trust`.
pub(crate) fn obey(flags: &Flags, data: Option<&Path>) -> Result<u8, Complaint> {
    let data = data::folder(data)?;
    if flags.list {
        return list(&data, flags);
    }
    if let Some(folder) = &flags.forget {
        return forget(&data, folder);
    }
    let named = flags.folder.as_deref().unwrap_or(Path::new("."));
    let folder = named.canonicalize().map_err(|error| Complaint::workspace(named, &error))?;
    if !folder.is_dir() {
        let error = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(Complaint::workspace(named, &error));
    }
    let root = root_of(&folder);
    if is_too_wide(&root) {
        return Err(Complaint {
            code: "E126",
            what: format!("{} cannot be trusted as a whole.", shown(&root)),
            cause: "The home folder and those above it hold everything there is.".into(),
            next: "locum trust DIR, with the project's own folder".into(),
            exit: USAGE,
        });
    }
    let name = root.to_str().ok_or_else(|| unnameable(&root))?;
    Store::change(&data, |store| store.keep(name, Verdict::Yes))?;
    let has = contents(&folder, &root);
    let has = if has.is_empty() { String::new() } else { format!(": {}", has.join(", ")) };
    print::line(&format!("trusted {}{has}", shown(&root)));
    Ok(0)
}

fn list(data: &Path, flags: &Flags) -> Result<u8, Complaint> {
    let store = Store::read(data)?;
    if flags.json {
        let rows = store.folders.iter().map(|(folder, answer)| {
            json!({ "folder": folder, "trusted": answer.trusted, "at": answer.at })
        });
        print::line(&text::json(&Value::Array(rows.collect())));
        return Ok(0);
    }
    if store.folders.is_empty() {
        print::line("No folder was trusted or refused yet.");
    }
    for (folder, answer) in &store.folders {
        let word = match answer.trusted {
            Verdict::Yes => "trusted",
            Verdict::No => "refused",
        };
        print::line(&clean(&format!("{word}  {}  {folder}", answer.at)));
    }
    Ok(0)
}

/// A folder that is gone can be forgotten too, by the name it had.
fn forget(data: &Path, named: &Path) -> Result<u8, Complaint> {
    let absolute = || std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    let folder = named.canonicalize().unwrap_or_else(|_| absolute());
    let store = Store::read(data)?;
    let known = |it: &Path| it.to_str().is_some_and(|name| store.folders.contains_key(name));
    let root = [folder.clone(), root_of(&folder)].into_iter().find(|it| known(it));
    let Some(name) = root.as_deref().and_then(Path::to_str) else {
        return Err(Complaint {
            code: "E126",
            what: format!("{} was neither trusted nor refused.", shown(&folder)),
            cause: "There is nothing to forget.".into(),
            next: "locum trust --list".into(),
            exit: USAGE,
        });
    };
    Store::change(data, |store| store.forget(name))?;
    print::line(&format!("forgot {}", clean(name)));
    Ok(0)
}
