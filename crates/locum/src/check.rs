//! `locum check`: what is wrong with files that people write for us, each thing with its place.
//! Nothing of what they say is done, so files of strangers may be checked as well.

mod find;
mod judge;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use locum_definitions::{Library, Origin, Problem, Scope, Severity, beneath};
use locum_tools::Place;
use serde_json::{Value, json};

use crate::complaint::USAGE;
use crate::config::{self, Config};
use crate::data::{self, Places};
use crate::flags::Check;
use crate::library::Shelves;
use crate::print;
use crate::reading;
use crate::screen::{Ink, cut, ours, out};
use crate::text::{self, clean};
use crate::workshop;

use find::{Sort, find};

/// Who has more to mend sees the rest when these are mended.
const SHOWN_MAX: usize = 10_000;

#[derive(Debug)]
struct Report<'a> {
    here: &'a Here,
    seen: BTreeSet<PathBuf>,
    files: usize,
    /// Prompts for people to type, which lie beside definitions and are none.
    commands: usize,
    errors: usize,
    warnings: usize,
    problems: Vec<Problem>,
}

/// Where a run would work that was started here, and where it would look.
#[derive(Debug)]
struct Here {
    place: Place,
    shelves: Shelves,
    settings: Config,
    /// Looked for when a file names a skill, by the folder that is the workspace.
    found: RefCell<BTreeMap<PathBuf, Library>>,
}

impl Here {
    /// What cannot be known here is no reason not to check.
    fn of(places: &Places<'_>) -> Here {
        let folder = Path::new(".").canonicalize().unwrap_or_else(|_| PathBuf::from("."));
        let data = data::place(places.data).unwrap_or_default();
        let settings = config::read(places.config).unwrap_or_default();
        let place = workshop::place("check", &folder, &data, places.config);
        let shelves = Shelves::trusting(&place, &settings);
        Here { place, shelves, settings, found: RefCell::default() }
    }

    /// Here, or in another project that `root` is.
    fn has_skill(&self, name: &str, root: &Path) -> bool {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        [&self.place.workspace, &root].into_iter().any(|workspace| {
            let mut found = self.found.borrow_mut();
            let files = found.entry(workspace.clone());
            let files = files.or_insert_with(|| self.shelves.clone().around(workspace).scan());
            reading::has_skill(files, &self.settings, name)
        })
    }
}

pub(crate) fn check(flags: &Check, places: &Places<'_>) -> u8 {
    let here = Here::of(places);
    let mut report = Report {
        here: &here,
        seen: BTreeSet::new(),
        files: 0,
        commands: 0,
        errors: 0,
        warnings: 0,
        problems: Vec::new(),
    };
    for path in &flags.paths {
        report.path(path);
    }
    let Report { files, commands, errors, warnings, problems, .. } = report;
    let left_out = (errors + warnings).saturating_sub(problems.len());
    if flags.json {
        let problems: Vec<Value> = problems.iter().map(object).collect();
        let whole = json!({
            "files": files,
            "commands": commands,
            "errors": errors,
            "warnings": warnings,
            "problems": problems,
            "left_out": left_out,
        });
        print::line(&text::json(&whole));
    } else {
        for problem in &problems {
            print::line(&painted(problem));
        }
        if left_out > 0 {
            print::line(&format!("{} and {left_out} more", cut()));
        }
        let many = |count: usize, word: &str| {
            format!("{count} {word}{}", if count == 1 { "" } else { "s" })
        };
        let [files, errors, warnings] =
            [(files, "file"), (errors, "error"), (warnings, "warning")].map(|(n, it)| many(n, it));
        let commands = match commands {
            0 => String::new(),
            some => {
                let some = many(some, "file");
                format!("; {some} in commands left out: prompts to type, not definitions")
            }
        };
        print::line(&format!("{files}, {errors}, {warnings}{commands}"));
    }
    if errors == 0 { 0 } else { USAGE }
}

impl Report<'_> {
    fn path(&mut self, path: &Path) {
        // A folder that was named may be a link to one; a file may not lead out of its folder.
        if fs::metadata(path).is_ok_and(|data| data.is_dir()) {
            let found = find(path);
            self.take(found.problems);
            self.commands += found.commands;
            for (file, sort) in found.files {
                self.file(&file, path, Scope::Workspace, sort);
            }
            return;
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Here is the project, as it is for a run; files from elsewhere are a person's own.
        let here = Path::new(".");
        match beneath(path, here) {
            Ok(_) => self.file(path, here, Scope::Workspace, Sort::named(path)),
            Err(_) => self.file(path, parent.unwrap_or(here), Scope::User, Sort::named(path)),
        }
    }

    /// Each file once, however often it was named.
    fn file(&mut self, file: &Path, root: &Path, scope: Scope, sort: Sort) {
        let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if self.seen.insert(real) {
            self.files += 1;
            let origin = Origin { file: file.to_owned(), root: root.to_owned(), scope };
            let problems = match sort {
                Sort::Definition => judge::definition(origin, self.here),
                Sort::Config | Sort::Servers | Sort::Script => {
                    judge::other(file, root, sort, self.here)
                }
            };
            self.take(problems);
        }
    }

    fn take(&mut self, problems: Vec<Problem>) {
        let errors = problems.iter().filter(|problem| problem.is_error()).count();
        self.errors += errors;
        self.warnings += problems.len() - errors;
        let room = SHOWN_MAX.saturating_sub(self.problems.len());
        self.problems.extend(problems.into_iter().take(room));
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// As compilers write it, so that editors can jump there.
pub(crate) fn line(problem: &Problem) -> String {
    with(problem, |_, word| word.to_owned())
}

/// The same for standard output, in colour where that can be seen.
pub(crate) fn painted(problem: &Problem) -> String {
    with(problem, out)
}

fn with(problem: &Problem, paint: impl Fn(Ink, &str) -> String) -> String {
    let Problem { file, line, column, severity, what, why, how } = problem;
    let said: Vec<&str> =
        [what, why, how].into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let (file, severity) = (file.display(), word(*severity));
    let ink = match problem.severity {
        Severity::Error => Ink::Bad,
        Severity::Warning => Ink::Warn,
    };
    let one_line = |text: &str| ours(&clean(text)).replace('\n', " ");
    let place = clean(&format!("{file}:{line}:{column}")).replace('\n', " ");
    format!("{place}: {}: {}", paint(ink, severity), one_line(&said.join("; ")))
}

pub(crate) fn object(problem: &Problem) -> Value {
    let Problem { file, line, column, severity, what, why, how } = problem;
    json!({
        "file": file.display().to_string(),
        "line": line,
        "col": column,
        "severity": word(*severity),
        "what": what,
        "why": why,
        "how": how,
    })
}
