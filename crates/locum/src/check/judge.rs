//! What is wrong with one file, whichever sort it is. Each sort is read by whoever reads it in a
//! run, so that what is good here is good there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use locum_definitions::limits::FILE_BYTES_MAX;
use locum_definitions::{
    Definition, Loaded, Origin, Problem, Scope, Server, Severity, fill, read_text, servers_in,
};
use locum_mcp::config as mcp;
use locum_runtime::script::{self, Script};

use crate::bring;
use crate::check::Here;
use crate::check::find::Sort;
use crate::config::{self, Mistake};
use crate::reading::{self, Around, Reader};
use crate::variables::Environment;

/// A definition is read as a run that was started here would read it.
pub(super) fn definition(named: Origin, here: &Here) -> Vec<Problem> {
    let origin = here.shelves.places().origin(&named.file).unwrap_or(named);
    let has_skill = |name: &str| here.has_skill(name, &origin.root);
    let around = Around { place: &here.place, has_skill: &has_skill };
    let Loaded { definition, mut problems } = reading::read(&origin, &around, Reader::Checks);
    problems.extend(definition.iter().flat_map(|it| unfilled(it, here)));
    problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
    problems
}

/// Servers that a run would not start, for want of a variable.
fn unfilled(definition: &Definition, here: &Here) -> Vec<Problem> {
    let environment = match definition.origin.scope {
        Scope::Workspace => Environment::of_project(&here.settings),
        Scope::RecipePath | Scope::User | Scope::Builtin => Environment::of_person(),
    };
    let why = "a run goes without its tools";
    let how = "set it where you start the run";
    let (file, severity) = (definition.origin.file.as_path(), Severity::Warning);
    let told = Told { file, severity, why, how };
    let unfilled = |server: &Server| {
        let what = bring::filled(server, &environment).err()?;
        let (line, column) = (server.place.line, server.place.column);
        let fit = |number: u32| usize::try_from(number).unwrap_or(1);
        let what = format!("the server \"{}\" is not started: {what}", server.name);
        Some(told.at(fit(line), fit(column), &what))
    };
    definition.servers.iter().filter(|it| !it.wants().is_empty()).filter_map(unfilled).collect()
}

/// Everything else that people write for us.
pub(super) fn other(file: &Path, root: &Path, sort: Sort, here: &Here) -> Vec<Problem> {
    let text = match read_text(file, root, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(refused) => return refused.problems(file),
    };
    let mut problems = match sort {
        Sort::Definition => Vec::new(),
        Sort::Config => settings(file, &text),
        Sort::Servers => servers(file, root, &text, here),
        Sort::Script => play(file, &text),
    };
    problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
    problems
}

struct Told<'a> {
    file: &'a Path,
    severity: Severity,
    why: &'a str,
    how: &'a str,
}

impl Told<'_> {
    fn at(&self, line: usize, column: usize, what: &str) -> Problem {
        let fit = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
        // What was found often says already how it is meant.
        let (what, how) = match what.split_once("; ") {
            Some((what, how)) => (what, how),
            None => (what, self.how),
        };
        Problem {
            file: PathBuf::from(self.file),
            line: fit(line),
            column: fit(column),
            severity: self.severity,
            what: what.to_owned(),
            why: self.why.to_owned(),
            how: how.to_owned(),
        }
    }
}

fn settings(file: &Path, text: &str) -> Vec<Problem> {
    let (mistakes, warnings) = config::mistakes(file, text);
    let why = "nothing runs with such a file";
    let wrong = Told { file, severity: Severity::Error, why, how: "correct this line" };
    let how = "take it out";
    let passed = Told { file, severity: Severity::Warning, why: "it is passed over", how };
    let say = |told: &Told<'_>, it: &Mistake| told.at(it.line, it.column, &it.what);
    let mistakes = mistakes.iter().map(|it| say(&wrong, it));
    mistakes.chain(warnings.iter().map(|it| say(&passed, it))).collect()
}

/// Read twice: by the reader that knows places and near names, and by the one that starts servers,
/// which has the last word about what is an error.
fn servers(file: &Path, root: &Path, text: &str, here: &Here) -> Vec<Problem> {
    let (_, mut problems) = servers_in(file, root);
    let is_projects = file.file_name().is_some_and(|name| name == ".mcp.json");
    let (environment, fate) = if is_projects {
        (Environment::of_project(&here.settings), "a run leaves its server out")
    } else {
        (Environment::of_person(), "no run starts with such a file")
    };
    let missing = RefCell::new(BTreeMap::new());
    let filled = |text: &str| fill(text, |name| Ok(Some(stand_in(name, &environment, &missing))));
    let read = mcp::parse(&file.display().to_string(), text, &filled);
    let column = |line: usize| {
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        line.chars().take_while(|sign| sign.is_whitespace()).count() + 1
    };
    let wrong = Told { file, severity: Severity::Error, why: fate, how: "correct this line" };
    let passed = Told { file, severity: Severity::Warning, why: "", how: "take it out" };
    let at = |problem: &Problem, line: usize| usize::try_from(problem.line) == Ok(line);
    for mcp::Problem { line, what, .. } in &read.errors {
        let same = |other: &Problem| other.is_error() && at(other, *line);
        let known = problems.iter().find(|it| same(it)).and_then(|it| it.column.try_into().ok());
        problems.retain(|other| !same(other));
        problems.push(wrong.at(*line, known.unwrap_or_else(|| column(*line)), what));
    }
    for mcp::Problem { line, what, .. } in &read.warnings {
        if !problems.iter().any(|other| at(other, *line)) {
            problems.push(passed.at(*line, column(*line), what));
        }
    }
    for (name, what) in missing.into_inner() {
        let written = format!("${{{name}}}");
        // Where each has a default, none is missed.
        let Some(line) = text.lines().position(|line| line.contains(&written)) else { continue };
        let line = line + 1;
        let how = match &what {
            Lack::Unset => format!("set {name}, or write ${{{name}:-default}}"),
            Lack::Kept(_) => format!("write ${{{name}:-default}}, or take it out"),
        };
        let unset = Told { file, severity: Severity::Warning, why: fate, how: &how };
        let what = match what {
            Lack::Unset => format!("{written} is not set here"),
            Lack::Kept(why) => why,
        };
        problems.push(unset.at(line, column(line), &what));
    }
    problems
}

/// Why a variable that has no default is not filled in.
enum Lack {
    Unset,
    Kept(String),
}

/// Something for every variable: whether one is set here says nothing about the file. One that
/// is not, and for which nothing else stands, is noted.
fn stand_in(
    name: &str,
    environment: &Environment,
    missing: &RefCell<BTreeMap<String, Lack>>,
) -> String {
    let lack = match environment.get(name) {
        Ok(Some(value)) => return value,
        Ok(None) => Lack::Unset,
        Err(why) => Lack::Kept(why),
    };
    missing.borrow_mut().insert(name.to_owned(), lack);
    format!("https://{name}")
}

fn play(file: &Path, text: &str) -> Vec<Problem> {
    let why = "a script that does not parse plays nothing";
    let told = Told { file, severity: Severity::Error, why, how: "correct this line" };
    match Script::parse(file, text) {
        Ok(_) => Vec::new(),
        Err(script::Error::Read { source, .. }) => vec![told.at(1, 1, &source.to_string())],
        Err(script::Error::Parse { line, message, .. }) => {
            vec![told.at(usize::try_from(line).unwrap_or(1), 1, &message)]
        }
    }
}
