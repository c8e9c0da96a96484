//! Brings definitions to a session: found in the folders people keep them in, read when a call
//! names one, built with the call's values, narrowed to what the kernel judges by.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locum_definitions::{
    Asker, Built, Definition, Found, Given, InputType, Kind, Library as Files, Loaded, NotFound,
    Origin, Outcome, Parameter, Problem, Reach, Scope, Server, Severity, StartedBy,
    Unbuilt as Wrong, build_for, fingerprint, load_from, offered, to_kernel,
};
use locum_kernel::{
    Check, Class, Definition as Judged, Found as Named, Kind as JudgedKind, Offer, Rights, Sub,
    Time, ToolSpec, Wanted, distance,
};
use locum_runtime::form;
use locum_runtime::library::Library;
use locum_runtime::script::Script;
use locum_runtime::subjects;
use locum_runtime::tool::Toolbox;
use locum_tools::Place;
use serde_json::Value;

use crate::arguments;
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

    pub(crate) fn built(
        &self,
        asker: Asker,
        definition: &Definition,
        values: BTreeMap<String, String>,
    ) -> Result<Built, Unbuilt> {
        let workspace = self.world.shelves.workspace.clone();
        let given = match asker {
            Asker::People => chosen(definition, values, workspace),
            Asker::Models => Given { values, base: workspace.clone(), roots: vec![workspace] },
        };
        match build_for(asker, definition, &given) {
            Ok(Outcome::Built(built)) => match smuggled(definition, &built.definition) {
                Some(problem) if asker == Asker::Models => Err(Unbuilt::Wrong(vec![problem])),
                Some(_) | None => Ok(*built),
            },
            Ok(Outcome::Needs(needs)) => Err(Unbuilt::Needs(needs)),
            Err(Wrong::Values(problems)) => Err(Unbuilt::Values(problems)),
            Err(Wrong::File(problems)) => Err(Unbuilt::Wrong(problems)),
        }
    }

    /// What the kernel hears of it, with everything only this place knows filled in. `words` are
    /// what it was called with.
    pub(crate) fn judged(&self, files: &Files, built: &Built, words: &str) -> Judged {
        let definition = &built.definition;
        let specs = self.world.tools.specs();
        self.tell(built.problems.iter());
        let mut judged = to_kernel(definition, &specs);
        judged.limits.turns_max = judged.limits.turns_max.or(self.world.turns_usual);
        if let Some(classes) = self.world.script.as_ref().and_then(|it| it.may(&judged.name)) {
            let narrow = Rights { classes: classes.clone(), tools: None };
            judged.uses = judged.uses.meet(&narrow);
            judged.ceiling = judged.ceiling.meet(&narrow);
        }
        judged.model = judged.model.and_then(|name| self.model(&definition.name, &name));
        if let Some(proof) = &mut judged.proof {
            let exec = specs.iter().find(|spec| spec.name == "exec");
            for check in proof.checks.iter_mut().chain(&mut proof.on_failure) {
                read_line(check, exec);
            }
        }
        self.miss_servers(definition, &specs);
        if definition.kind == Kind::Skill {
            judged.instructions = arguments::filled(&judged.instructions, words);
        }
        judged.instructions.push_str(&self.besides(files, definition));
        if definition.memory.is_some() {
            judged.instructions.push_str(remembers(&judged.uses));
        }
        judged.stands_in = self.stands_in(files, &judged.name, &definition.origin);
        let asks = definition.servers.iter().filter(|it| it.needs_consent);
        if asks.clone().any(|server| !self.world.agreed.has(server, &definition.origin.file)) {
            let what: Vec<String> = definition.consents().into_iter().map(|it| it.what).collect();
            judged.caution = Some(format!("{} wants to {}", definition.name, what.join("; ")));
        } else if matches!(self.world.agreed, Agreed::Before(_)) {
            for server in asks.filter(|server| !server.wants().is_empty()) {
                let (name, server, wants) = (&definition.name, &server.name, server.wants());
                self.say(&format!("note: {name} starts the server {server} with {wants}"));
            }
        }
        judged
    }

    /// Servers a definition names that nobody has configured here.
    fn miss_servers(&self, definition: &Definition, specs: &[ToolSpec]) {
        for server in definition.servers.iter().filter(|it| it.how == Reach::Named) {
            let own = server.prefix();
            if !specs.iter().any(|spec| spec.name.starts_with(&own)) {
                let (name, wanted) = (&definition.name, &server.name);
                self.say(&format!(
                    "note: {name} wants the server {wanted}, which has no tools here; \
                     do: locum mcp list"
                ));
            }
        }
    }

    /// A project may call its own what it likes; what is allowed to a name was allowed to whoever
    /// had it before.
    fn stands_in(&self, files: &Files, name: &str, origin: &Origin) -> bool {
        let is_theirs = |found: &Found| {
            found.origin.scope > origin.scope && found.name.eq_ignore_ascii_case(name)
        };
        origin.scope == Scope::Workspace
            && (self.is_known(name) || files.found.iter().any(is_theirs))
    }

    /// What it is told after its own words.
    fn besides(&self, files: &Files, definition: &Definition) -> String {
        let mut text = String::new();
        for name in &definition.skills {
            let found = files.named_as(Kind::Skill, name).ok();
            let found = found.filter(|found| is_on(found, &self.world.settings));
            // That one is not there was told when the definition was read.
            let Some(skill) = found.and_then(|found| self.read(files.load(found)).ok()) else {
                continue;
            };
            let folder = skill.origin.folder().display();
            let _ = write!(
                text,
                "\n\n# Skill: {name}\nIts files are in {folder}.\n\n{}",
                skill.instructions
            );
        }
        if definition.kind == Kind::Skill {
            let folder = definition.origin.folder().display();
            let _ = write!(text, "\n\nThe files of this skill are in {folder}.");
        }
        // Its text may well speak of a server by the name that no tool can have.
        for server in &definition.servers {
            let Some(called) = &server.called else { continue };
            let start = server.prefix();
            let _ = write!(text, "\n\nThe tools of the server `{called}` begin with `{start}`.");
        }
        text
    }

    /// A model that cannot be asked here is no reason to stop: its parent's is used.
    fn model(&self, definition: &str, name: &str) -> Option<String> {
        let models = self.world.models.as_ref()?;
        let found = models.usable(name);
        if found.is_none() {
            self.say(&format!(
                "note: {definition} wants the model {name}, which cannot be asked here; it uses \
                 its parent's"
            ));
        }
        found
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

/// Files that a person names are where they stand, before they are in the workspace, and may be
/// anywhere: nobody else has chosen them.
fn chosen(
    definition: &Definition,
    mut values: BTreeMap<String, String>,
    workspace: PathBuf,
) -> Given {
    let here = env::current_dir().unwrap_or_else(|_| workspace.clone());
    for parameter in definition.parameters.iter().filter(|it| it.input == InputType::File) {
        if let Some(path) = values.get_mut(&parameter.key) {
            let found = Some(here.join(&*path)).filter(|it| it.exists());
            *path = found.map_or_else(|| path.clone(), |it| it.display().to_string());
        }
    }
    Given { values, base: workspace, roots: vec![PathBuf::from("/")] }
}

/// A value that names a variable of the person's where servers are started: only the file may.
fn smuggled(written: &Definition, built: &Definition) -> Option<Problem> {
    let wants = |it: &Definition| -> BTreeSet<String> {
        let all = it.servers.iter().map(Server::wants);
        all.flat_map(|it| it.names().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let known = wants(written);
    let name = wants(built).into_iter().find(|name| !known.contains(name))?;
    Some(Problem {
        file: written.origin.file.clone(),
        line: 1,
        column: 1,
        severity: Severity::Error,
        what: format!("a value puts ${{{name}}} into what a server is started with"),
        why: "which variables it is given is for the file to say".to_owned(),
        how: "give the value without ${…}".to_owned(),
    })
}

/// Why a definition could not be built.
pub(crate) enum Unbuilt {
    Needs(Vec<Parameter>),
    /// With other values it may be.
    Values(Vec<Problem>),
    Wrong(Vec<Problem>),
}

impl Unbuilt {
    fn words(&self, name: &str) -> String {
        match self {
            Unbuilt::Needs(needs) => needed(name, needs),
            Unbuilt::Values(problems) | Unbuilt::Wrong(problems) => listed(problems),
        }
    }
}

/// Who may change nothing may still look.
fn remembers(uses: &Rights) -> &'static str {
    if uses.allow("memory_save", Class::Write) {
        "\n\nYou have a memory of your own. Look with memory_search for what you noted before, and \
         keep what will be worth knowing next time with memory_save, scope agent."
    } else if uses.allow("memory_search", Class::Read) {
        "\n\nYou have a memory of your own. Look with memory_search for what you noted before."
    } else {
        ""
    }
}

fn judged_kind(kind: Kind) -> JudgedKind {
    match kind {
        Kind::Recipe => JudgedKind::Recipe,
        Kind::Skill => JudgedKind::Skill,
        Kind::Agent => JudgedKind::Agent,
    }
}

/// Values as recipes have them: text. Other values are written as JSON.
fn values(parameters: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
    let map = match parameters {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err("parameters must be an object: {\"key\": \"value\"}".into()),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(map.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

fn check_input(schema: &Value, wanted: &Wanted) -> Result<(), String> {
    let input = match &wanted.parameters {
        Some(input) => input.clone(),
        None => form::value(&wanted.message).map_err(|why| {
            format!("{} takes input of a form. {why} It is: {schema}", wanted.name)
        })?,
    };
    match form::mismatch(schema, &input) {
        None => Ok(()),
        Some(why) => Err(format!("{} takes other input: {why} It is: {schema}", wanted.name)),
    }
}

fn needed(name: &str, needs: &[Parameter]) -> String {
    let keys: Vec<String> = needs.iter().map(|it| format!("{} ({})", it.key, it.about)).collect();
    format!("{name} needs values, give them as parameters: {}", keys.join(", "))
}

pub(crate) fn listed(problems: &[Problem]) -> String {
    let errors = problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string);
    errors.collect::<Vec<_>>().join("\n")
}

fn read_line(check: &mut Check, exec: Option<&ToolSpec>) {
    let arguments = serde_json::json!({ "command": check.command });
    check.subjects = exec.and_then(|exec| subjects::subjects(exec, &arguments, Path::new("/")));
}

/// Nothing that a person has to agree to is started.
pub(crate) fn without_servers(judged: &mut Judged) {
    judged.kit.servers.clear();
    judged.setup = judged.kit.needs_setup();
}
