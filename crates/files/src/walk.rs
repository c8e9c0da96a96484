//! Every file beneath a folder, in order of paths, without what `.gitignore` excludes. Each folder
//! is opened from the one above and links are not followed, so the walk cannot be led astray.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Dir, FileType, Mode, openat};

use crate::error::Error;
use crate::meta::Facts;
use crate::roots::{Root, Roots};
use crate::spot::{FILE, FOLDER, Spot, look};

/// Files met by one walk.
const FILES_MAX: usize = 200_000;
/// Names taken from one folder.
pub(crate) const ENTRIES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 128;
const RULES_BYTES_MAX: u64 = 1 << 20;

/// A search under way looks at it between files and between reads. Whoever has the clock, or hears
/// that nobody waits any more, sets it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn new() -> Stop {
        Stop::default()
    }

    pub fn set(&self) {
        self.0.store(true, Memory::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Memory::Relaxed)
    }
}

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) folder: Arc<OwnedFd>,
    pub(crate) name: OsString,
    /// From the root.
    pub(crate) path: PathBuf,
    pub(crate) is_link: bool,
}

impl Item {
    /// None: it is gone, or not a file any more.
    pub(crate) fn open(&self) -> Option<(File, Facts)> {
        open_file(&self.folder, &self.name)
    }
}

#[derive(Debug)]
pub(crate) struct Walk<'a> {
    roots: &'a Roots,
    root: Arc<Root>,
    stop: &'a Stop,
    frames: Vec<Frame>,
    files: usize,
    /// Why the walk did not see everything.
    pub(crate) cut: Option<&'static str>,
}

#[derive(Debug)]
struct Frame {
    folder: Arc<OwnedFd>,
    path: PathBuf,
    entries: std::vec::IntoIter<Entry>,
    rules: Option<Arc<Layer>>,
}

#[derive(Debug)]
struct Entry {
    name: OsString,
    kind: FileType,
}

/// One `.gitignore` and those of the folders above.
#[derive(Debug)]
struct Layer {
    rules: Gitignore,
    above: Option<Arc<Layer>>,
}

impl<'a> Walk<'a> {
    /// The folder itself is walked even if it is excluded: somebody asked for it.
    pub(crate) fn new(roots: &'a Roots, spot: &Spot, stop: &'a Stop) -> Result<Walk<'a>, Error> {
        let folder = spot.open_folder()?;
        let mut rules = None;
        for above in spot.path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let named = spot.named.clone();
            let above_spot = Spot::find(&spot.root, above, named, roots.way)?;
            rules = layer(&above_spot.open_folder()?, above, rules);
        }
        let root = Arc::clone(&spot.root);
        let mut walk = Walk { roots, root, stop, frames: Vec::new(), files: 0, cut: None };
        walk.enter(folder, spot.path.clone(), rules);
        Ok(walk)
    }

    fn enter(&mut self, folder: OwnedFd, path: PathBuf, above: Option<Arc<Layer>>) {
        let rules = layer(&folder, &path, above);
        let mut entries = entries(&folder);
        if entries.len() >= ENTRIES_MAX {
            self.cut = Some("a folder has too many entries");
        }
        entries.sort_unstable_by(in_order_of_paths);
        let folder = Arc::new(folder);
        self.frames.push(Frame { folder, path, entries: entries.into_iter(), rules });
    }

    pub(crate) fn next(&mut self) -> Option<Item> {
        loop {
            if self.stop.is_set() {
                self.cut = Some("it was told to stop");
                return None;
            }
            let frame = self.frames.last_mut()?;
            let Some(Entry { name, kind }) = frame.entries.next() else {
                self.frames.pop();
                continue;
            };
            let path = frame.path.join(&name);
            let is_folder = kind.is_dir();
            if is_ours_or_gits(&name) || is_excluded(frame.rules.as_deref(), &path, is_folder) {
                continue;
            }
            if self.roots.hides(&self.root, &path) {
                continue;
            }
            if is_folder {
                let rules = frame.rules.clone();
                // Swapped for a link or gone by now: then there is nothing to walk.
                let opened = openat(&*frame.folder, &name, FOLDER, Mode::empty());
                match opened {
                    Ok(folder) if self.frames.len() < DEPTH_MAX => self.enter(folder, path, rules),
                    Ok(_) => self.cut = Some("folders nest too deep"),
                    Err(_) => {}
                }
            } else if matches!(kind, FileType::RegularFile | FileType::Symlink) {
                self.files += 1;
                if self.files > FILES_MAX {
                    self.cut = Some("there are too many files; narrow `path`");
                    return None;
                }
                let folder = Arc::clone(&frame.folder);
                return Some(Item { folder, name, path, is_link: kind == FileType::Symlink });
            }
        }
    }
}

/// `.git` is nobody's text, and a draft of ours is about to go.
fn is_ours_or_gits(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes == b".git" || (bytes.starts_with(b".locum-") && bytes.ends_with(b".new"))
}

/// A folder sorts as the paths in it do.
fn in_order_of_paths(a: &Entry, b: &Entry) -> Ordering {
    let bytes = |entry: &Entry| {
        let slash: &[u8] = if entry.kind.is_dir() { b"/" } else { b"" };
        (entry.name.clone().into_vec(), slash)
    };
    let ((a, a_end), (b, b_end)) = (bytes(a), bytes(b));
    a.iter().chain(a_end).cmp(b.iter().chain(b_end))
}

fn entries(folder: &OwnedFd) -> Vec<Entry> {
    let read = Dir::read_from(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in read.take(ENTRIES_MAX) {
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        if name == "." || name == ".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            kind = look(folder, &name).map_or(FileType::Unknown, |facts| facts.kind);
        }
        found.push(Entry { name, kind });
    }
    found
}

fn is_excluded(mut layer: Option<&Layer>, path: &Path, is_folder: bool) -> bool {
    while let Some(Layer { rules, above }) = layer {
        match rules.matched(path, is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => layer = above.as_deref(),
        }
    }
    false
}

fn layer(folder: &OwnedFd, path: &Path, above: Option<Arc<Layer>>) -> Option<Arc<Layer>> {
    let Some((file, _)) = open_file(folder, OsStr::new(".gitignore")) else { return above };
    let mut bytes = Vec::new();
    if file.take(RULES_BYTES_MAX).read_to_end(&mut bytes).is_err() {
        return above;
    }
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern excludes nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    match builder.build() {
        Ok(rules) if !rules.is_empty() => Some(Arc::new(Layer { rules, above })),
        Ok(_) | Err(_) => above,
    }
}

fn open_file(folder: &OwnedFd, name: &OsStr) -> Option<(File, Facts)> {
    let file = openat(folder, name, FILE, Mode::empty()).ok()?;
    let facts = Facts::of(&rustix::fs::fstat(&file).ok()?);
    (facts.kind == FileType::RegularFile).then(|| (File::from(file), facts))
}
