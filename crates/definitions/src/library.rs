//! What was found: every definition by name, what hides what, what was left out and why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use locum_kernel::{Digest, is_same_name};
use serde::Serialize;
use thiserror::Error;

use crate::builtin;
use crate::definition::{Kind, Origin, Passthrough, Scope, StartedBy};
use crate::file;
use crate::limits::{FILE_BYTES_MAX, SCAN_BYTES_MAX};
use crate::load::{Loaded, load_from};
use crate::near::near;
use crate::parameter::Parameter;
use crate::places::{Candidate, Places, Survey};
use crate::problem::{Place, Problem, Problems};
use crate::recipe::stem;

/// A definition that can be used, without its text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    pub name: String,
    pub kind: Kind,
    pub origin: Origin,
    pub title: Option<String>,
    pub about: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// Off until the person turns it on.
    pub opt_in: bool,
    /// Kinds of chat it may be used in; empty is all.
    pub chat_types: BTreeSet<String>,
    /// Who may start it, for skills.
    pub started_by: StartedBy,
    /// Parameters it takes, each with whether it must be given.
    pub parameters: Vec<(String, bool)>,
    /// Skills it starts with, and where each is named.
    pub skills: Vec<(String, Place)>,
    /// The program that it is.
    pub program: Option<Passthrough>,
    /// Warnings.
    pub problems: Vec<Problem>,
    /// Another of the same kind and name comes before it.
    pub shadowed_by: Option<PathBuf>,
}

/// A file that is there and cannot be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skipped {
    pub file: PathBuf,
    pub kind: Kind,
    pub scope: Scope,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Library {
    /// In the order they are looked for.
    pub found: Vec<Found>,
    pub skipped: Vec<Skipped>,
    /// Folders that could not be looked into, or held too much.
    pub problems: Vec<Problem>,
    /// Every folder that was looked for, and whether it is there.
    pub looked_in: Vec<(PathBuf, bool)>,
    /// Another one than [`fingerprint`] gives means that something changed.
    pub fingerprint: Digest,
    /// Files among others that do not look like definitions.
    #[serde(skip)]
    strays: Vec<Origin>,
}

#[derive(Clone, Debug, PartialEq, Error)]
#[error("{}", self.sentence())]
pub struct NotFound {
    pub wanted: String,
    pub kind: Option<Kind>,
    /// Names like it, with where they are from.
    pub near: Vec<(String, PathBuf)>,
    /// Why a file of that name was left out.
    pub skipped: Vec<Problem>,
    pub looked_in: Vec<PathBuf>,
}

impl NotFound {
    fn sentence(&self) -> String {
        let kind = self.kind.map_or("definition", Kind::word);
        let text = format!("There is no {kind} \"{}\".", self.wanted);
        if let Some(problem) = self.skipped.first() {
            format!("{text} A file of that name cannot be used: {problem}")
        } else if self.near.is_empty() {
            let folders: Vec<String> =
                self.looked_in.iter().map(|folder| folder.display().to_string()).collect();
            format!("{text} Looked in: {}.", folders.join(", "))
        } else {
            let names = self.near.iter().map(|(name, from)| format!("{name} ({})", from.display()));
            format!("{text} Near: {}.", names.collect::<Vec<_>>().join(", "))
        }
    }
}

/// What [`Library::scan`] would say of these places, without reading a file.
#[must_use]
pub fn fingerprint(places: &Places<'_>) -> Digest {
    Survey::of(places).fingerprint()
}

impl Library {
    /// Reads every definition once. One bad file never hides another.
    #[must_use]
    pub fn scan(places: &Places<'_>) -> Library {
        let survey = Survey::of(places);
        let mut library = Library {
            found: Vec::new(),
            skipped: Vec::new(),
            fingerprint: survey.fingerprint(),
            problems: survey.problems,
            looked_in: survey.looked_in,
            strays: Vec::new(),
        };
        let mut bytes = 0;
        for candidate in survey.candidates {
            if candidate.stray && !looks_like_a_recipe(&candidate.origin) {
                library.strays.push(candidate.origin);
                continue;
            }
            bytes += candidate.bytes.min(FILE_BYTES_MAX);
            if bytes > SCAN_BYTES_MAX {
                library.skip_rest(&candidate);
                break;
            }
            let loaded = load_from(&candidate.origin);
            library.take(loaded, candidate.kind, candidate.origin);
        }
        for (origin, kind, loaded) in builtin::all() {
            library.take(loaded, kind, origin);
        }
        library.shadow();
        library
    }

    fn take(&mut self, loaded: Loaded, kind: Kind, origin: Origin) {
        let Loaded { definition, problems } = loaded;
        let Some(definition) = definition else {
            let Origin { file, scope, .. } = origin;
            self.skipped.push(Skipped { file, kind, scope, problems });
            return;
        };
        self.found.push(Found {
            name: definition.name,
            kind: definition.kind,
            origin,
            title: definition.title,
            about: definition.about,
            aliases: definition.skill.aliases,
            opt_in: definition.skill.opt_in,
            chat_types: definition.skill.chat_types.clone(),
            started_by: definition.skill.started_by,
            parameters: definition.parameters.iter().map(Parameter::need).collect(),
            skills: definition.skills.into_iter().zip(definition.skills_at).collect(),
            program: definition.own.passthrough,
            problems,
            shadowed_by: None,
        });
    }

    fn skip_rest(&mut self, from: &Candidate) {
        let problems = Problems::new(&from.origin.file);
        let what = format!("more than {SCAN_BYTES_MAX} bytes of definitions");
        problems.error(Place::START, what, "this and the rest is not read", "keep fewer");
        self.problems.extend(problems.take());
    }

    /// The first of a kind and name wins.
    fn shadow(&mut self) {
        let mut first: BTreeMap<(Kind, String), PathBuf> = BTreeMap::new();
        for found in &mut self.found {
            let key = (found.kind, found.name.to_lowercase());
            match first.get(&key) {
                Some(winner) => found.shadowed_by = Some(winner.clone()),
                None => {
                    first.insert(key, found.origin.file.clone());
                }
            }
        }
    }

    /// The one that a name means, of any kind.
    pub fn named(&self, name: &str) -> Result<&Found, NotFound> {
        self.lookup(None, name)
    }

    /// The recipe, skill or agent of that name.
    pub fn named_as(&self, kind: Kind, name: &str) -> Result<&Found, NotFound> {
        self.lookup(Some(kind), name)
    }

    fn lookup(&self, kind: Option<Kind>, name: &str) -> Result<&Found, NotFound> {
        let wanted = plain(name);
        let open = || {
            let fits = move |found: &&Found| kind.is_none_or(|kind| kind == found.kind);
            self.found.iter().filter(|found| found.shadowed_by.is_none()).filter(fits)
        };
        let by_name = open().find(|found| found.name.to_lowercase() == wanted);
        let by_file = || open().find(|found| stem(&found.origin.file).to_lowercase() == wanted);
        let alias = |found: &&Found| found.aliases.iter().any(|a| a.to_lowercase() == wanted);
        let found = by_name.or_else(by_file).or_else(|| open().find(alias));
        // Failing all that, a name of several words may be typed with hyphens.
        let alike = |found: &&Found| {
            found.name.contains(char::is_whitespace) && is_same_name(&found.name, &wanted)
        };
        let found = found.or_else(|| open().find(alike));
        found.ok_or_else(|| self.not_found(kind, name, &open().collect::<Vec<_>>()))
    }

    fn not_found(&self, kind: Option<Kind>, name: &str, open: &[&Found]) -> NotFound {
        let wanted = plain(name);
        let names = near(&wanted, open.iter().map(|found| found.name.as_str()));
        let from = |name: &str| {
            let found = open.iter().find(|found| found.name == name);
            found.map_or_else(PathBuf::new, |found| found.origin.folder().to_owned())
        };
        let same = |skipped: &&Skipped| {
            let folder = skipped.file.parent().and_then(Path::file_name);
            stem(&skipped.file).to_lowercase() == wanted
                || folder.is_some_and(|folder| folder.to_string_lossy().to_lowercase() == wanted)
        };
        let skipped = self.skipped.iter().filter(same);
        let skipped: Vec<Problem> = skipped.flat_map(|it| it.problems.clone()).collect();
        NotFound {
            wanted: name.to_owned(),
            kind,
            near: names.iter().map(|name| ((*name).to_owned(), from(name))).collect(),
            skipped: if skipped.is_empty() { self.of_stray(&wanted) } else { skipped },
            looked_in: self.looked_in.iter().map(|(folder, _)| folder.clone()).collect(),
        }
    }

    /// What is wrong with a file of that name that was taken for something else.
    fn of_stray(&self, wanted: &str) -> Vec<Problem> {
        let found = self.strays.iter().find(|it| stem(&it.file).to_lowercase() == wanted);
        found.map(|origin| load_from(origin).problems).unwrap_or_default()
    }

    /// The whole of what was found, read again.
    #[must_use]
    pub fn load(&self, found: &Found) -> Loaded {
        match found.origin.scope {
            Scope::Builtin => builtin::load(&found.origin),
            Scope::Workspace | Scope::RecipePath | Scope::User => load_from(&found.origin),
        }
    }
}

/// A model may say `review.yaml` for `review`.
fn plain(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let endings = [".yaml", ".yml", ".json", ".md"];
    let cut = endings.iter().find_map(|ending| name.strip_suffix(ending));
    cut.map(str::to_owned).unwrap_or(name)
}

/// It has the keys that every recipe has, at the start of lines.
fn looks_like_a_recipe(origin: &Origin) -> bool {
    let Ok(text) = file::read(&origin.file, &origin.root, FILE_BYTES_MAX) else { return false };
    let key = |line: &str| {
        line.trim_start_matches([' ', '{', '"']).split([':', '"']).next().map(str::to_owned)
    };
    let keys: Vec<String> = text.lines().filter(|l| l.contains(':')).filter_map(key).collect();
    let has = |name: &str| keys.iter().any(|key| key == name);
    has("title") && has("description") && (has("instructions") || has("prompt"))
}
