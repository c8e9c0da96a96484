//! Brings definitions to a session: found in the folders people keep them in, read when a call
//! names one, built with the call's values, narrowed to what the kernel judges by.

mod judged;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locum_definitions::{
    Asker, Definition, Found, Kind, Library as Files, Loaded, NotFound, Origin, Problem, Scope,
    Server, StartedBy, fingerprint, load_from, offered,
};
use locum_kernel::{
    Definition as Judged, Found as Named, Kind as JudgedKind, Offer, Sub, Time, Wanted, distance,
};
use locum_runtime::library::Library;
use locum_runtime::script::Script;
use locum_runtime::tool::Toolbox;
use locum_tools::Place;

pub(crate) use judged::without_servers;
pub(crate) use values::Unbuilt;
use values::{check_input, values};

use crate::config::Config;
use crate::library::{Shelves, is_on};
use crate::model::Models;
use crate::print;
use crate::reading::{self, Around, Reader};
use crate::trust::approve;

/// How long what was found is taken to be what is there.
const FRESH_MS: u64 = 1_000;
/// Definitions a session is told of; more are still found by name.
const OFFERS_MAX: usize = 500;
/// Names like one that is not there.
const NEAR_MAX: usize = 5;

/// What definitions are made to fit.
pub(crate) struct World {
    pub(crate) shelves: Shelves,
    pub(crate) place: Place,
    pub(crate) tools: Arc<dyn Toolbox>,
    pub(crate) settings: Arc<Config>,
    /// It gives words to whoever has a name, never rights: those are the definition's.
    pub(crate) script: Option<Script>,
    /// Models by name; with a script everybody is played by it.
    pub(crate) models: Option<Arc<Models>>,
    /// Model calls of a definition that says nothing.
    pub(crate) turns_usual: Option<u32>,
    pub(crate) agreed: Agreed,
}

/// Which servers that a project brings a person has agreed to.
#[derive(Clone, Debug)]
pub(crate) enum Agreed {
    /// Whoever started the run trusts the folder with everything that was there by then.
    Before(Time),
    /// Those that are kept in this data folder, for the folder that brings them.
    Kept { data: PathBuf, folder: PathBuf },
}

impl Agreed {
    fn has(&self, server: &Server, file: &Path) -> bool {
        match self {
            Agreed::Before(start) => changed(file).is_some_and(|at| at <= *start),
            Agreed::Kept { data, folder } => approve::is_agreed(data, server, folder),
        }
    }
}

/// When anything about a file was last changed, which nobody can set back as they like.
fn changed(file: &Path) -> Option<Time> {
    let found = fs::metadata(file).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (seconds, nanos) = (found.ctime(), found.ctime_nsec());
        u64::try_from(seconds.checked_mul(1_000)? + nanos / 1_000_000).ok().map(Time)
    }
    #[cfg(not(unix))]
    {
        let since = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok().map(Time)
    }
}

pub(crate) struct Librarian {
    world: World,
    state: Mutex<State>,
}

struct State {
    files: Arc<Files>,
    looked: Option<Time>,
    /// What people have been told once.
    told: BTreeSet<String>,
}

impl std::fmt::Debug for Librarian {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Librarian").field("shelves", &self.world.shelves).finish_non_exhaustive()
    }
}

impl Library for Librarian {
    fn news(&self, now: Time) -> Option<Vec<Offer>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.is_some_and(|looked| now.since(looked) < FRESH_MS) {
            return None;
        }
        state.looked = Some(now);
        if fingerprint(&self.world.shelves.places()) == state.files.fingerprint {
            return None;
        }
        state.files = Arc::new(self.world.shelves.scan());
        Some(self.offered(&state.files))
    }

    fn summon(&self, name: &str, words: &str) -> Named {
        let files = self.files_with(name);
        match files.named(name) {
            Ok(found) => match self.summoned(&files, found, words) {
                Ok(made) => Named::Made(Box::new(made)),
                Err(why) => Named::Not(why),
            },
            // There is a file, so it is meant; what is wrong in it is what helps.
            Err(missing) if !missing.skipped.is_empty() && !self.is_known(name) => {
                Named::Not(missing.to_string())
            }
            Err(_) => Named::Nothing,
        }
    }

    fn near(&self, name: &str) -> Vec<String> {
        near(&self.files_with(name), name)
    }

    fn bring(&self, wanted: &Wanted, subs: &[Sub]) -> Option<Result<Judged, String>> {
        let values = match values(wanted.parameters.as_ref()) {
            Ok(values) => values,
            Err(why) => return Some(Err(why)),
        };
        let own = |sub: &&Sub| sub.offer.name.eq_ignore_ascii_case(&wanted.name);
        if let Some(sub) = subs.iter().find(own) {
            return Some(self.below(sub, values));
        }
        let files = self.files();
        let found = match find(&files, wanted) {
            Ok(found) => found,
            Err(_) if self.is_known(&wanted.name) => return None,
            Err(not_found) => return Some(Err(not_found.to_string())),
        };
        Some(self.made(&files, found, wanted, values))
    }
}

impl Librarian {
    /// `files` are what a scan of the world's shelves has found just now.
    pub(crate) fn new(world: World, files: Files) -> Librarian {
        let (files, told) = (Arc::new(files), BTreeSet::new());
        Librarian { world, state: Mutex::new(State { files, looked: None, told }) }
    }

    pub(crate) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).files)
    }

    /// What models are told of, for the first time.
    pub(crate) fn offers(&self) -> Vec<Offer> {
        self.offered(&self.files())
    }

    fn offered(&self, files: &Files) -> Vec<Offer> {
        let mut offers: BTreeMap<&str, Offer> = BTreeMap::new();
        for found in files.found.iter().filter(|found| self.is_offered(found)) {
            let offer = || Offer {
                name: found.name.clone(),
                kind: judged_kind(found.kind),
                about: offered(&found.about, &found.parameters),
            };
            offers.entry(&found.name).or_insert_with(offer);
            if offers.len() >= OFFERS_MAX {
                break;
            }
        }
        offers.into_values().collect()
    }

    fn is_offered(&self, found: &Found) -> bool {
        let by_models = match found.started_by {
            StartedBy::Anybody | StartedBy::Models => true,
            StartedBy::People | StartedBy::Nobody => false,
        };
        let is_there = found.shadowed_by.is_none() && is_on(found, &self.world.settings);
        is_there && by_models
    }

    /// Somebody has written it, or it comes with the program.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files().named(name).is_ok()
    }

    /// What was found last, or what is there now if that does not have the name: a person who has
    /// just written a file may call it.
    fn files_with(&self, name: &str) -> Arc<Files> {
        let files = self.files();
        let is_fresh = || fingerprint(&self.world.shelves.places()) == files.fingerprint;
        if files.named(name).is_ok() || is_fresh() {
            return files;
        }
        Arc::new(self.world.shelves.scan())
    }

    /// The script plays it, or the kernel has it itself.
    fn is_known(&self, name: &str) -> bool {
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        let script = self.world.script.as_ref();
        let is_played = |name: &str| script.is_some_and(|it| it.names().any(|own| own == name));
        is_played(name) || is_played(stem) || matches!(name, "reader" | "main")
    }

    fn made(
        &self,
        files: &Files,
        found: &Found,
        wanted: &Wanted,
        values: BTreeMap<String, String>,
    ) -> Result<Judged, String> {
        let name = &found.name;
        if !is_on(found, &self.world.settings) {
            return Err(format!(
                "{name} is off until the user turns it on (enable = [\"{name}\"] in config.toml)"
            ));
        }
        match found.started_by {
            StartedBy::Anybody | StartedBy::Models => {}
            StartedBy::People => return Err(format!("only the user starts {name}, with @{name}")),
            StartedBy::Nobody => return Err(format!("{name} is only for those that list it")),
        }
        let definition = self.read(files.load(found))?;
        if let Some(schema) = &definition.skill.input_schema {
            check_input(schema, wanted)?;
        }
        let built =
            self.built(Asker::Models, &definition, values).map_err(|why| why.words(name))?;
        Ok(self.judged(files, &built, &wanted.message))
    }

    /// What a person starts by name. Who may start it otherwise does not matter.
    fn summoned(&self, files: &Files, found: &Found, words: &str) -> Result<Judged, String> {
        let definition = self.read(files.load(found))?;
        let built = self.built(Asker::People, &definition, BTreeMap::new());
        let built = built.map_err(|why| why.words(&found.name))?;
        let mut judged = self.judged(files, &built, words);
        // Nobody is asked on this way, so nothing starts that somebody must agree to.
        if let Some(caution) = judged.caution.take() {
            self.say(&format!("note: not done, because nobody agreed: {caution}"));
            without_servers(&mut judged);
        }
        Ok(judged)
    }

    /// A sub-recipe, with the values its recipe gives it unless the call says otherwise.
    fn below(&self, sub: &Sub, values: BTreeMap<String, String>) -> Result<Judged, String> {
        let file = PathBuf::from(&sub.file);
        let origin = origin(&file, self.workspace());
        let definition = self.read(load_from(&origin))?;
        let mut all = sub.values.clone();
        all.extend(values);
        let built = self
            .built(Asker::Models, &definition, all)
            .map_err(|why| why.words(&sub.offer.name))?;
        let files = self.files();
        let mut judged = self.judged(&files, &built, "");
        judged.name.clone_from(&sub.offer.name);
        judged.stands_in = self.stands_in(&files, &judged.name, &built.definition.origin);
        Ok(judged)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.world.shelves.workspace
    }

    fn read(&self, loaded: Loaded) -> Result<Definition, String> {
        self.taken(loaded).map_err(|problems| listed(&problems))
    }

    /// What is wrong with a file that is used all the same is told.
    pub(crate) fn taken(&self, loaded: Loaded) -> Result<Definition, Vec<Problem>> {
        let has_skill =
            |name: &str| reading::has_skill(&self.files_with(name), &self.world.settings, name);
        let around = Around { place: &self.world.place, has_skill: &has_skill };
        let Loaded { definition, problems } = reading::with(loaded, &around, Reader::Uses);
        let Some(definition) = definition else { return Err(problems) };
        self.tell(problems.iter());
        Ok(definition)
    }

    fn tell<'p>(&self, problems: impl Iterator<Item = &'p Problem>) {
        for problem in problems {
            // One file may be reached by several names.
            let real = problem.file.canonicalize().unwrap_or_else(|_| problem.file.clone());
            let same = Problem { file: real, ..problem.clone() };
            self.once(same.to_string(), &problem.to_string());
        }
    }

    /// Says something once.
    fn say(&self, text: &str) {
        self.once(text.to_owned(), text);
    }

    fn once(&self, what: String, text: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told.insert(what) {
            print::note(text);
        }
    }
}

/// A file somebody named. What lies in the workspace is the project's, whoever names it.
pub(crate) fn origin(file: &Path, workspace: &Path) -> Origin {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if real.starts_with(workspace) {
        Origin { file: real, root: workspace.to_owned(), scope: Scope::Workspace }
    } else {
        Origin { file: file.to_owned(), root: folder, scope: Scope::User }
    }
}

/// Definitions with names like this one, as agents with names like it are found.
pub(crate) fn near(files: &Files, name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let far = 2.max(wanted.chars().count() / 3);
    let names = files.found.iter().filter(|found| found.shadowed_by.is_none());
    let near = names.map(|it| (distance(&wanted, &it.name.to_lowercase()), it.name.as_str()));
    let near: BTreeSet<_> = near.filter(|(apart, _)| *apart <= far).collect();
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// A skill is looked for first where one is named as a skill.
fn find<'f>(files: &'f Files, wanted: &Wanted) -> Result<&'f Found, NotFound> {
    let skill = wanted.skill.then(|| files.named_as(Kind::Skill, &wanted.name).ok()).flatten();
    skill.map_or_else(|| files.named(&wanted.name), Ok)
}

fn judged_kind(kind: Kind) -> JudgedKind {
    match kind {
        Kind::Recipe => JudgedKind::Recipe,
        Kind::Skill => JudgedKind::Skill,
        Kind::Agent => JudgedKind::Agent,
    }
}

pub(crate) fn listed(problems: &[Problem]) -> String {
    let errors = problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string);
    errors.collect::<Vec<_>>().join("\n")
}
