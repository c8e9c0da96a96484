//! What can go wrong with memory, as it is told.

use std::io;
use std::path::Path;

use locum_memory::Error;

use crate::complaint::{Complaint, DATA, USAGE, chain};
use crate::text::quote;

pub(super) fn told(error: &Error) -> Complaint {
    let (code, what, next, exit) = match error {
        Error::Open { .. } | Error::File { .. } => (
            "E420",
            "The memory could not be used.",
            "look at the disk and the rights of the data folder, then try again",
            DATA,
        ),
        Error::Busy { .. } => (
            "E420",
            "The memory is in use.",
            "try again; if it stays so, look for a locum that hangs",
            DATA,
        ),
        Error::Damaged { .. } => (
            "E421",
            "The memory is damaged; it was set aside, not deleted.",
            "put a backup in its place, or go on: the next command begins an empty memory",
            DATA,
        ),
        Error::Version { .. } => (
            "E422",
            "The memory was written by another version of locum.",
            "locum version, then install a newer one",
            DATA,
        ),
        Error::Full { .. } => (
            "E423",
            "The disk is full; every note kept before is safe.",
            "make room, then try again",
            DATA,
        ),
        Error::Empty | Error::TooLong { .. } | Error::Secret(_) | Error::InPage { .. } => (
            "E424",
            "The text was not kept.",
            "locum memory save \"text\" with another text",
            USAGE,
        ),
        Error::TooMany { .. } => {
            ("E424", "The text was not kept.", "locum memory forget ID…", USAGE)
        }
        Error::Unknown { .. } => {
            ("E425", "There is no such note here.", "locum memory list", USAGE)
        }
        Error::NotYours { .. } => (
            "E429",
            "Those notes are not to be seen from here.",
            "name their folder with -C DIR and their agent with --agent NAME",
            USAGE,
        ),
    };
    Complaint { code, what: what.into(), cause: chain(error), next: next.into(), exit }
}

pub(super) fn no_agent() -> Complaint {
    Complaint {
        code: "E429",
        what: "It was not said whose notes are meant.".into(),
        cause: "An agent's own notes are found by its name.".into(),
        next: "locum memory --scope agent --agent NAME".into(),
        exit: USAGE,
    }
}

pub(super) fn no_editor() -> Complaint {
    Complaint {
        code: "E426",
        what: "There is no editor.".into(),
        cause: "Neither VISUAL nor EDITOR is set, and nobody is at a terminal.".into(),
        next: "locum memory export -o FILE, and later locum memory import FILE".into(),
        exit: USAGE,
    }
}

pub(super) fn editor(editor: &str, why: String) -> Complaint {
    Complaint {
        code: "E426",
        what: format!("The editor {} failed.", quote(editor)),
        cause: why,
        next: "EDITOR=… locum memory edit".into(),
        exit: USAGE,
    }
}

pub(super) fn page_file(file: &Path, error: &io::Error) -> Complaint {
    Complaint {
        code: "E427",
        what: format!("The page {} cannot be used.", file.display()),
        cause: error.to_string(),
        next: format!("ls -l {}", quote(&file.to_string_lossy())),
        exit: USAGE,
    }
}

/// What was typed is still there.
pub(super) fn page(file: &Path, error: &Error) -> Complaint {
    let name = quote(&file.to_string_lossy());
    Complaint {
        code: "E428",
        what: "The page was not taken in, and nothing was changed.".into(),
        cause: chain(error),
        next: format!("correct {name}, then locum memory import {name}"),
        exit: USAGE,
    }
}
