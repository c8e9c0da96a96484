//! What an agent has left in its copy that git would not bring back. Whoever takes a copy away
//! asks here first; what cannot be told counts as work.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use super::{Made, command, git};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    /// Changes, new files or commits.
    Work,
    /// Only files that no commit would have: ignored ones, and what lies in a submodule's folder.
    Beside,
}

/// What a person's own settings could hide is asked for by name.
const STATUS: [&str; 5] =
    ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none", "--renames"];

pub(crate) fn left(made: &Made) -> Result<Left, String> {
    let head = git(&made.top, &["rev-parse", "HEAD"])??;
    let branch = git(&made.top, &["rev-parse", &format!("refs/heads/{}", made.branch)])??;
    if head != made.base || branch != made.base || says_anything(&made.top, &STATUS)? {
        return Ok(Left::Work);
    }
    let odd = odd_entries(&made.top, Odd::is_touched)?;
    if odd.iter().any(|odd| matches!(odd, Odd::Hidden(_))) {
        return Ok(Left::Work);
    }
    let ignored = [&STATUS[..], &["--ignored=traditional"]].concat();
    let beside = !odd.is_empty() || says_anything(&made.top, &ignored)?;
    Ok(if beside { Left::Beside } else { Left::Nothing })
}

/// Submodules whose files are not in the copy.
pub(crate) fn absent_submodules(top: &Path) -> Vec<PathBuf> {
    let absent = |odd: &Odd, top: &Path| matches!(odd, Odd::Submodule(_)) && !odd.is_touched(top);
    let found = odd_entries(top, absent).unwrap_or_default();
    found.into_iter().map(|odd| odd.path().to_owned()).collect()
}

/// What the status is silent about.
#[derive(Debug)]
enum Odd {
    Submodule(PathBuf),
    /// Somebody told git not to look at it.
    Hidden(PathBuf),
}

impl Odd {
    fn path(&self) -> &Path {
        let (Odd::Submodule(path) | Odd::Hidden(path)) = self;
        path
    }

    fn is_touched(&self, top: &Path) -> bool {
        let place = top.join(self.path());
        match self {
            // An empty folder stands for one that is not checked out.
            Odd::Submodule(_) => match fs::read_dir(&place) {
                Ok(mut inside) => inside.next().is_some(),
                Err(_) => fs::symlink_metadata(&place).is_ok(),
            },
            // One that is left out of a sparse copy is not there.
            Odd::Hidden(_) => fs::symlink_metadata(&place).is_ok(),
        }
    }
}

/// More than that are not needed to know, nor to be told.
const ODD_MAX: usize = 20;

/// Those entries of the index that are wanted, at most twenty.
fn odd_entries(top: &Path, wanted: impl Fn(&Odd, &Path) -> bool) -> Result<Vec<Odd>, String> {
    let (mut child, out) = begun(top, &["ls-files", "-z", "--stage", "-v"])?;
    let mut found = Vec::new();
    let mut heard = Heard::All;
    for entry in BufReader::new(out).split(0) {
        let Some(odd) = entry.ok().and_then(|entry| odd_entry(&entry)) else { continue };
        if wanted(&odd, top) {
            found.push(odd);
        }
        if found.len() >= ODD_MAX {
            heard = Heard::Enough;
            break;
        }
    }
    ended(&mut child, heard)?;
    Ok(found)
}

/// `H 160000 DIGEST 0<tab>PATH`: a letter for how it is looked at, and what it is.
fn odd_entry(entry: &[u8]) -> Option<Odd> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = (entry.get(..tab)?, entry.get(tab + 1..)?);
    let path = PathBuf::from(os_str(path));
    match head {
        [_, b' ', mode @ ..] if mode.starts_with(b"160000") => Some(Odd::Submodule(path)),
        [b'S', ..] => Some(Odd::Hidden(path)),
        [letter, ..] if letter.is_ascii_lowercase() => Some(Odd::Hidden(path)),
        _ => None,
    }
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> std::ffi::OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Whether git has a word to say, however many it has: nothing is kept of them.
fn says_anything(top: &Path, words: &[&str]) -> Result<bool, String> {
    let (mut child, mut out) = begun(top, words)?;
    let said = out.read(&mut [0]).map_err(|error| format!("git cannot be read: {error}"))? > 0;
    drop(out);
    ended(&mut child, if said { Heard::Enough } else { Heard::All })?;
    Ok(said)
}

fn begun(top: &Path, words: &[&str]) -> Result<(Child, ChildStdout), String> {
    let mut git = command(top, words);
    git.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = git.spawn().map_err(|error| format!("git cannot be run: {error}"))?;
    let out = child.stdout.take().ok_or("git cannot be read")?;
    Ok((child, out))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    All,
    /// Nothing more is wanted.
    Enough,
}

fn ended(child: &mut Child, heard: Heard) -> Result<(), String> {
    if heard == Heard::Enough {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("git cannot be waited for: {error}"))?;
    if heard == Heard::All && !status.success() {
        return Err(format!("git says nothing: {status}"));
    }
    Ok(())
}
