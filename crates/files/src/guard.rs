//! What is beneath a root and still not touched: `.git` (its hooks and settings run programs), our
//! own data and configuration. A rule holds whether or not the path exists yet.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// More of the hidden folders is not looked through for other names of one file.
const HIDDEN_ENTRIES_MAX: usize = 100_000;

/// What a protected path is kept from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// It can be read, and never changed or created.
    Writing,
    /// It can be neither read nor changed.
    Everything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Read,
    Write,
}

/// A relative rule holds in every folder of every root, because checkouts nest.
#[derive(Debug)]
struct Rule {
    parts: Vec<String>,
    /// Set for an absolute rule.
    place: Option<PathBuf>,
    bar: Bar,
}

#[derive(Debug, Default)]
pub(crate) struct Guard {
    rules: Vec<Rule>,
    /// Folders in hidden ones whose files may have other names.
    apart: Vec<PathBuf>,
    /// Where folders really are, by what they are called.
    known: HashMap<PathBuf, PathBuf>,
}

/// Device and number of files that are hidden under one name and may have another.
#[derive(Debug)]
pub(crate) enum Hidden {
    Known(HashSet<(u64, u64)>),
    TooMany,
}

impl Guard {
    pub(crate) fn add(&mut self, path: &Path, bar: Bar) {
        let place = path.is_absolute().then(|| real(path, &mut self.known));
        let parts = folded(place.as_deref().unwrap_or(path));
        if !parts.is_empty() {
            self.rules.push(Rule { parts, place, bar });
        }
    }

    pub(crate) fn set_apart(&mut self, folder: &Path) {
        self.apart.push(real(folder, &mut self.known));
    }

    /// `top` is where the root really is, `path` the way from there without links.
    pub(crate) fn bars(&self, deed: Deed, top: &Path, path: &Path) -> bool {
        let below = folded(path);
        let whole = || folded(top).into_iter().chain(below.iter().cloned()).collect::<Vec<_>>();
        self.rules.iter().filter(|rule| deed == Deed::Write || rule.bar == Bar::Everything).any(
            |rule| match &rule.place {
                Some(_) => begins(&whole(), &rule.parts, deed),
                None => (0..below.len()).any(|at| begins(&below[at..], &rule.parts, deed)),
            },
        )
    }

    /// For walks, which meet every folder on the way: is it this very entry that is hidden?
    pub(crate) fn hides(&self, top: &Path, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        let hidden = self.rules.iter().filter(|rule| rule.bar == Bar::Everything);
        let mut named = hidden.filter(|rule| rule.parts.last().is_some_and(|last| is(name, last)));
        named.next().is_some() && self.bars(Deed::Read, top, path)
    }

    /// A hard link is the file itself under another name, so a hidden one is known by its number.
    pub(crate) fn hidden(&self) -> Hidden {
        let places = self.rules.iter().filter(|rule| rule.bar == Bar::Everything);
        let mut ahead: Vec<PathBuf> = places.filter_map(|rule| rule.place.clone()).collect();
        let mut found = HashSet::new();
        let mut count = 0;
        while let Some(path) = ahead.pop() {
            count += 1;
            if count > HIDDEN_ENTRIES_MAX {
                return Hidden::TooMany;
            }
            let Ok(data) = fs::symlink_metadata(&path) else { continue };
            if self.apart.contains(&path) {
                continue;
            }
            if data.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                ahead.extend(entries.map(|entry| entry.path()).take(HIDDEN_ENTRIES_MAX));
            } else if data.nlink() > 1 {
                found.insert((data.dev(), data.ino()));
            }
        }
        Hidden::Known(found)
    }
}

impl Hidden {
    pub(crate) fn has(&self, device: u64, inode: u64) -> bool {
        match self {
            Hidden::Known(found) => found.contains(&(device, inode)),
            // What cannot be ruled out is not shown.
            Hidden::TooMany => true,
        }
    }
}

/// Inside the rule's path, or a file in the place of a folder on the way to it.
fn begins(path: &[String], rule: &[String], deed: Deed) -> bool {
    path.starts_with(rule) || (deed == Deed::Write && rule.starts_with(path))
}

fn is(name: &OsStr, folded: &str) -> bool {
    fold(name) == folded
}

fn folded(path: &Path) -> Vec<String> {
    let normal = |part: Component<'_>| match part {
        Component::Normal(name) => Some(fold(name)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    };
    path.components().filter_map(normal).collect()
}

/// Some file systems take `.GIT`, `.git.` or `.g\u{200c}it` for `.git`; what is protected on one
/// is protected on all.
fn fold(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let ignored = |sign: &char| {
        matches!(sign, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || *sign == '\u{feff}'
    };
    let kept: String = name.chars().filter(|sign| !ignored(sign)).collect();
    let trimmed = kept.trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { kept } else { trimmed.to_lowercase() }
}

/// The path without links as far as it exists, and the rest as it was said. Rules are many and
/// share their folders, so each folder is looked at once: this is part of every start.
fn real(path: &Path, known: &mut HashMap<PathBuf, PathBuf>) -> PathBuf {
    if let Some(found) = known.get(path) {
        return found.clone();
    }
    let found = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let whole = real(parent, known).join(name);
            match fs::symlink_metadata(&whole) {
                Ok(data) if data.is_symlink() => whole.canonicalize().unwrap_or(whole),
                Ok(_) | Err(_) => whole,
            }
        }
        // The top, or a step back, which means something else behind a link.
        _ => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    };
    known.insert(path.to_owned(), found.clone());
    found
}
