//! One file, whichever format it is in.

use std::path::{Path, PathBuf};

use crate::definition::{Definition, Kind, Origin, Scope};
use crate::file;
use crate::limits::FILE_BYTES_MAX;
use crate::problem::{Place, Problem, Problems};
use crate::{markdown, recipe};

/// What came of a file. There is a definition only if nothing in it is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub definition: Option<Definition>,
    pub problems: Vec<Problem>,
}

/// A file that somebody named: nothing outside its folder is read on its behalf.
#[must_use]
pub fn load(path: &Path) -> Loaded {
    let root = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let root = root.map_or_else(|| PathBuf::from("."), Path::to_owned);
    load_from(&Origin { file: path.to_owned(), root, scope: Scope::User })
}

/// A file found somewhere: its root and scope bound what it may do.
#[must_use]
pub fn load_from(origin: &Origin) -> Loaded {
    let problems = Problems::new(&origin.file);
    let Some(kind) = Kind::of(&origin.file) else {
        let why = "definitions are .yaml, .yml, .json and .md files";
        problems.error(Place::START, "not a definition", why, "rename it");
        return Loaded { definition: None, problems: problems.take() };
    };
    match file::read(&origin.file, &origin.root, FILE_BYTES_MAX) {
        Ok(text) => parse_into(&text, kind, origin, problems),
        Err(refused) => {
            refused.tell(&problems);
            Loaded { definition: None, problems: problems.take() }
        }
    }
}

/// A text that is already there.
#[must_use]
pub fn parse(text: &str, kind: Kind, origin: &Origin) -> Loaded {
    let text = file::plain(text.to_owned());
    parse_into(&text, kind, origin, Problems::new(&origin.file))
}

fn parse_into(text: &str, kind: Kind, origin: &Origin, problems: Problems) -> Loaded {
    let definition = match kind {
        Kind::Recipe => recipe::load(text, origin, &problems),
        Kind::Skill => markdown::skill(text, origin, &problems),
        Kind::Agent => markdown::agent(text, origin, &problems),
    };
    let good = !problems.has_errors();
    Loaded { definition: definition.filter(|_| good), problems: problems.take() }
}
