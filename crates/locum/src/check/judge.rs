//! What is wrong with one file, whichever sort it is. Each sort is read by whoever reads it in a
//! run, so that what is good here is good there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use locum_definitions::limits::FILE_BYTES_MAX;
use locum_definitions::{Origin, Problem, Severity, read_text, servers_in};
use locum_mcp::config as mcp;
use locum_runtime::script::{self, Script};

use crate::check::Here;
use crate::check::find::Sort;
use crate::config::{self, Mistake};
use crate::reading::{self, Around, Reader};

/// A definition is read as a run that was started here would read it.
pub(super) fn definition(named: Origin, here: &Here) -> Vec<Problem> {
    let origin = here.shelves.places().origin(&named.file).unwrap_or(named);
    let has_skill = |name: &str| here.has_skill(name, &origin.root);
    let around = Around { place: &here.place, has_skill: &has_skill };
    reading::read(&origin, &around, Reader::Checks).problems
}

/// Everything else that people write for us.
pub(super) fn other(file: &Path, root: &Path, sort: Sort) -> Vec<Problem> {
    let text = match read_text(file, root, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(refused) => return refused.problems(file),
    };
    let mut problems = match sort {
        Sort::Definition => Vec::new(),
        Sort::Config => settings(file, &text),
        Sort::Servers => servers(file, root, &text),
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
fn servers(file: &Path, root: &Path, text: &str) -> Vec<Problem> {
    let (_, mut problems) = servers_in(file, root);
    let (environment, missing) = stand_ins(text);
    let read = mcp::parse(&file.display().to_string(), text, &environment);
    let column = |line: usize| {
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        line.chars().take_while(|sign| sign.is_whitespace()).count() + 1
    };
    let why = "no server of this file is started";
    let wrong = Told { file, severity: Severity::Error, why, how: "correct this line" };
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
    for name in missing {
        let written = format!("${{{name}}}");
        let line = text.lines().position(|line| line.contains(&written)).unwrap_or(0) + 1;
        let how = format!("set {name}, or write ${{{name}:-default}}");
        let why = "a run stops at it unless it is set";
        let unset = Told { file, severity: Severity::Warning, why, how: &how };
        problems.push(unset.at(line, column(line), &format!("{written} is not set here")));
    }
    problems
}

/// The environment, with something for every variable the text names: whether one is set here says
/// nothing about the file.
fn stand_ins(text: &str) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let mut environment = locum_tools::environment();
    let mut missing = BTreeSet::new();
    let named = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    for (name, _) in named.filter(|(name, _)| !name.contains(":-") && !name.contains('\n')) {
        if !environment.contains_key(name) {
            missing.insert(name.to_owned());
            environment.insert(name.to_owned(), format!("https://{name}"));
        }
    }
    (environment, missing)
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
