//! What is told of a definition, whoever reads it: what is in its file, and what of it this machine
//! would refuse. `check`, `definitions` and a run all read here, so none knows more than another.

use std::path::Path;

use locum_definitions::{
    Kind, Library, Loaded, Origin, Passthrough, Place as At, Problem, Severity, load_from,
    lost_sub_recipes, rehearsed,
};
use locum_tools::{Place, Unfit, unfit};

use crate::config::Config;
use crate::library::is_on;

/// Whether a run could do without what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Wants to know whether it will run.
    Checks,
    /// Goes on, and hears it again when it matters.
    Uses,
}

/// What is around a definition when it is used.
pub(crate) struct Around<'a> {
    pub(crate) place: &'a Place,
    /// Whether there is a skill of this name, and it is on.
    pub(crate) has_skill: &'a dyn Fn(&str) -> bool,
}

/// What comes of a file.
pub(crate) fn read(origin: &Origin, around: &Around<'_>, reader: Reader) -> Loaded {
    with(load_from(origin), around, reader)
}

/// The same for what was read already.
pub(crate) fn with(loaded: Loaded, around: &Around<'_>, reader: Reader) -> Loaded {
    let Loaded { mut definition, mut problems } = loaded;
    if let Some(found) = &definition {
        let file = &found.origin.file;
        problems.extend(refused(file, found.own.passthrough.as_ref(), around.place, reader));
        let skills = found.skills.iter().zip(found.skills_at.iter().copied());
        problems.extend(skills.filter_map(|(name, at)| lost(file, name, at, around)));
        if reader == Reader::Checks {
            harden(&mut problems, lost_sub_recipes(found));
            if !problems.iter().any(Problem::is_error) {
                problems.extend(rehearsed(found));
            }
        }
        problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
    }
    definition.take_if(|_| problems.iter().any(Problem::is_error));
    Loaded { definition, problems }
}

/// The same for all that was found.
pub(crate) fn all(library: &mut Library, place: &Place, settings: &Config) {
    let has_skill = |name: &str| has_skill(library, settings, name);
    let around = Around { place, has_skill: &has_skill };
    let more = library.found.iter().map(|it| {
        let file = &it.origin.file;
        let skills = it.skills.iter().filter_map(|(name, at)| lost(file, name, *at, &around));
        let refused = refused(file, it.program.as_ref(), place, Reader::Uses);
        skills.chain(refused).collect::<Vec<Problem>>()
    });
    let more: Vec<Vec<Problem>> = more.collect();
    for (found, more) in library.found.iter_mut().zip(more) {
        found.problems.extend(more);
        found.problems.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
    }
}

pub(crate) fn has_skill(files: &Library, settings: &Config, name: &str) -> bool {
    files.named_as(Kind::Skill, name).is_ok_and(|found| is_on(found, settings))
}

/// What was a warning as long as nobody starts it.
fn harden(problems: &mut Vec<Problem>, errors: Vec<Problem>) {
    let soft = |error: &Problem| Problem { severity: Severity::Warning, ..error.clone() };
    problems.retain(|told| !errors.iter().any(|error| soft(error) == *told));
    problems.extend(errors);
}

fn lost(file: &Path, name: &str, at: At, around: &Around<'_>) -> Option<Problem> {
    (!(around.has_skill)(name)).then(|| Problem {
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        severity: Severity::Warning,
        what: format!("the skill {name:?} is not there, or is off"),
        why: "the agent starts without it".to_owned(),
        how: "locum definitions lists those that are".to_owned(),
    })
}

/// Folders that no program gets, however it asks for them.
fn refused(
    file: &Path,
    program: Option<&Passthrough>,
    place: &Place,
    reader: Reader,
) -> Vec<Problem> {
    let named = program.into_iter().flat_map(|it| it.writes.iter().zip(&it.writes_at));
    // What is only known with values says nothing before.
    let named = named.filter(|(name, _)| !name.contains("{{"));
    let told = |(name, at): (&String, &At)| {
        let unfit = unfit(name, place)?;
        let severity = match (reader, &unfit) {
            (Reader::Checks, Unfit::Anywhere(_)) => Severity::Error,
            (Reader::Checks, Unfit::Here(_))
            | (Reader::Uses, Unfit::Anywhere(_) | Unfit::Here(_)) => Severity::Warning,
        };
        Some(Problem {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            severity,
            what: unfit.to_string(),
            why: "the program is not started with it".to_owned(),
            how: "write: writes: [~/.name-of-the-program]".to_owned(),
        })
    };
    named.filter_map(told).collect()
}
