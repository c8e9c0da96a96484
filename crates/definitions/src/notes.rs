//! Notes for agents: `AGENTS.md`, nearest first, and `CLAUDE.md` in folders that have none.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::limits::{FILE_BYTES_MAX, NOTE_BYTES_MAX, NOTES_BYTES_MAX};
use crate::problem::{Place, Problem, Problems};
use crate::{file, hidden};

const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md"];

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notes {
    /// The nearest first: what it says goes before what comes after.
    pub notes: Vec<Note>,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Note {
    pub file: PathBuf,
    pub text: String,
    /// Bytes that were left out at the end.
    pub left_out: usize,
}

/// The notes of a folder and those above it up to `root`, then the person's own.
#[must_use]
pub fn notes(root: &Path, from: &Path, config_dir: Option<&Path>) -> Notes {
    let mut found = Notes::default();
    let mut left = NOTES_BYTES_MAX;
    for folder in from.ancestors().take_while(|folder| folder.starts_with(root)) {
        found.folder(folder, root, &mut left);
    }
    if let Some(folder) = config_dir {
        found.folder(folder, folder, &mut left);
    }
    found
}

/// The person's own notes. People keep such files elsewhere at home and link to them.
#[must_use]
pub fn own_notes(config_dir: &Path, home: Option<&Path>) -> Notes {
    let mut found = Notes::default();
    let root = home.filter(|home| config_dir.starts_with(home)).unwrap_or(config_dir);
    let mut left = NOTES_BYTES_MAX;
    found.folder(config_dir, root, &mut left);
    found
}

impl Notes {
    fn folder(&mut self, folder: &Path, root: &Path, left: &mut usize) {
        for name in NAMES {
            let path = folder.join(name);
            if std::fs::symlink_metadata(&path).is_err() {
                continue;
            }
            let problems = Problems::new(&path);
            match file::read(&path, root, FILE_BYTES_MAX) {
                Ok(text) => {
                    hidden::check(&text, Place::START, &problems);
                    if !problems.has_errors() {
                        self.keep(path, text, left, &problems);
                    }
                }
                Err(refused) => refused.tell(&problems),
            }
            let good = !problems.has_errors();
            self.problems.extend(problems.take());
            if good {
                return;
            }
        }
    }

    fn keep(&mut self, file: PathBuf, mut text: String, left: &mut usize, problems: &Problems) {
        let whole = text.len();
        let mut room = whole.min(NOTE_BYTES_MAX).min(*left);
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        text.truncate(room);
        *left -= room;
        let left_out = whole - room;
        if left_out > 0 {
            let what = format!("{left_out} of {whole} bytes are left out");
            let why = format!("{NOTE_BYTES_MAX} of a file and {NOTES_BYTES_MAX} in all are read");
            problems.warn(Place::START, what, why, "keep notes short");
        }
        if room > 0 {
            self.notes.push(Note { file, text, left_out });
        }
    }
}
