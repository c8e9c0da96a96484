//! The files under inspection, as values: from the disk in earnest, from a table in tests.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Not ours or not committed.
const SKIPPED: &[&str] = &[".git", ".idea", ".vscode", "target"];

#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/` on every system.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Shipped code, as opposed to tests and benches.
    pub(crate) fn is_production(&self) -> bool {
        self.path.contains("/src/")
            && !self.path.contains("/tests/")
            && !self.path.ends_with("/tests.rs")
    }
}

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(root, "", &mut files)?;
        Ok(Self { files })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Our Rust: everything the rules for source apply to.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            let ours = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
            ours && Path::new(&file.path).extension().is_some_and(|ext| ext == "rs")
        })
    }
}

/// Sorted, so that two runs over one tree print the same words. Links are not followed: what they
/// point at is either found by itself or not ours.
fn collect(root: &Path, below: &str, files: &mut Vec<File>) -> Result<()> {
    let folder = root.join(below);
    let listing = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = listing.with_context(|| format!("cannot list {}", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
            // A picture has no style.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(path, text));
            }
        }
    }
    Ok(())
}
