//! Words on standard output and standard error, one at a time; a tree that is drawn there makes
//! room for them.

use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::log;
use crate::screen::{Ink, err, ours};

/// A reader who left is no reason to stop, here as well.
pub(crate) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A word of ours to whoever is there, and to the log.
pub(crate) fn note(text: &str) {
    let shown = ours(text);
    let marks = [("warning: ", Ink::Warn), ("note: ", Ink::Faint), ("do: ", Ink::Next)];
    let found = marks.iter().find_map(|(mark, ink)| Some((shown.strip_prefix(mark)?, mark, ink)));
    match found {
        Some((rest, mark, ink)) => say(&format!("{} {rest}", err(*ink, mark.trim_end()))),
        None => say(&shown),
    }
    if text.starts_with("warning: ") {
        tracing::warn!(target: log::NOTE, "{text}");
    } else if !text.is_empty() {
        tracing::info!(target: log::NOTE, "{text}");
    }
}

/// Something that is shown beside the output, as it is. While a live tree is drawn there, it is
/// for the tree to make room.
pub(crate) fn say(text: &str) {
    let mut beside = beside();
    match &mut *beside {
        Some(waiting) if waiting.len() < BESIDE_MAX => waiting.push(Word::Said(text.to_owned())),
        // The tree stands still, and so does whoever would read it.
        Some(_) => {}
        None => {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// A line was typed at the terminal, which has shown it by itself.
pub(crate) fn typed(text: &str) {
    if let Some(waiting) = beside().as_mut().filter(|it| it.len() < BESIDE_MAX) {
        waiting.push(Word::Typed(text.to_owned()));
    }
}

pub(crate) enum Word {
    Said(String),
    Typed(String),
}

/// What others say while a tree is drawn, until it has room for it.
static BESIDE: Mutex<Option<Vec<Word>>> = Mutex::new(None);
const BESIDE_MAX: usize = 256;

fn beside() -> MutexGuard<'static, Option<Vec<Word>>> {
    BESIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, what is said goes through [`Beside::take`].
pub(crate) struct Beside(());

impl Beside {
    pub(crate) fn begin() -> Beside {
        *beside() = Some(Vec::new());
        Beside(())
    }

    #[expect(clippy::unused_self, reason = "only whoever draws the tree has room for it")]
    pub(crate) fn take(&self) -> Vec<Word> {
        beside().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let left = beside().take();
        for word in left.into_iter().flatten() {
            match word {
                Word::Said(text) => say(&text),
                Word::Typed(_) => {}
            }
        }
    }
}
