//! Taking an edited page back in. Three things are compared: what the page was made from, what it
//! says now, and what is kept now. What was changed in the page counts, unless the same note was
//! changed elsewhere meanwhile: then both are kept, and said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::page::{Base, Mark, read};
use crate::{Id, Note};

/// What a page asks for. Its words are for the person who edited it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Added {
        text: String,
    },
    Edited {
        id: Id,
        text: String,
    },
    Forgotten {
        id: Id,
    },
    /// Edited here and changed elsewhere: what is kept stays, and the page's text is added.
    Both {
        id: Id,
        text: String,
    },
    /// Edited here and forgotten elsewhere: the page's text is added.
    Revived {
        id: Id,
        text: String,
    },
    /// Deleted here and changed elsewhere: it stays.
    Kept {
        id: Id,
    },
}

impl Change {
    /// Where in the page it stands.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Change::Added { .. } => "a new note".to_owned(),
            Change::Edited { id, .. }
            | Change::Forgotten { id }
            | Change::Both { id, .. }
            | Change::Revived { id, .. }
            | Change::Kept { id } => format!("note {id}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Added { .. } => write!(f, "added a note"),
            Change::Edited { id, .. } => write!(f, "changed {id}"),
            Change::Forgotten { id } => write!(f, "forgot {id}"),
            Change::Both { id, .. } => {
                write!(f, "{id} was changed elsewhere too: it stays, your text is a new note")
            }
            Change::Revived { id, .. } => {
                write!(f, "{id} was forgotten elsewhere: your text is a new note")
            }
            Change::Kept { id } => {
                write!(f, "{id} was changed elsewhere after you opened it: it was not forgotten")
            }
        }
    }
}

#[must_use]
pub fn merge(base: &Base, edited: &str, now: &[Note]) -> Vec<Change> {
    let page = read(edited);
    let kept: BTreeMap<Id, Mark> = now.iter().map(|note| (note.id, Mark::of(&note.text))).collect();
    let mut changes = Vec::new();
    let mut met: BTreeSet<Id> = BTreeSet::new();
    for (id, text) in page {
        let Some(id) = id.filter(|id| !met.contains(id)) else {
            // Without an id, or a copy of one that came before.
            if !text.is_empty() {
                changes.push(Change::Added { text });
            }
            continue;
        };
        // A heading with nothing below is a deleted note.
        if !text.is_empty() {
            met.insert(id);
            changes.extend(one(id, text, base.get(id), kept.get(&id).copied()));
        }
    }
    for id in base.ids().filter(|id| !met.contains(id)) {
        match kept.get(&id).copied() {
            Some(mark) if base.get(id) == Some(mark) => changes.push(Change::Forgotten { id }),
            Some(_) => changes.push(Change::Kept { id }),
            None => {}
        }
    }
    changes
}

fn one(id: Id, text: String, base: Option<Mark>, kept: Option<Mark>) -> Option<Change> {
    let mark = Mark::of(&text);
    match (base, kept) {
        (Some(base), _) if base == mark => None,
        (_, Some(kept)) if kept == mark => None,
        (Some(base), Some(kept)) if base == kept => Some(Change::Edited { id, text }),
        (_, Some(_)) => Some(Change::Both { id, text }),
        (Some(_), None) => Some(Change::Revived { id, text }),
        (None, None) => Some(Change::Added { text }),
    }
}
