//! `cargo xtask tidy`: the rules of style that are code. Each finding reads `file:line: rule, why`.
//!
//! In reading order: the files, what they are made of, the rules, what is excused, the tests.

pub(crate) mod tree;

pub(crate) mod source;

mod kernel;
mod manifest;
mod text;

mod exemption;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::run;
use tree::Tree;

#[derive(Clone, Debug, PartialEq)]
struct Problem {
    path: String,
    line: usize,
    rule: &'static str,
    /// Narrows an exemption to one thing in the file: the name of a function.
    about: Option<String>,
    why: String,
}

impl Problem {
    fn new(path: &str, line: usize, rule: &'static str, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, about: None, why: why.into() }
    }

    /// The word that an exemption has to use for this problem.
    fn key(&self) -> String {
        self.about.as_ref().map_or(self.rule.to_owned(), |about| format!("{}:{about}", self.rule))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, why, .. } = self;
        write!(out, "{path}:{line}: {}, {why}", self.key())
    }
}

pub(crate) fn main() -> Result<ExitCode> {
    let clean = run(&run::root()?)?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// True: nothing to complain about.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let tree = Tree::load(root)?;
    for long in text::long_files(&tree) {
        println!("note: {long}");
    }
    let problems = check(&tree);
    for problem in &problems {
        println!("{problem}");
    }
    println!("{} files, {} problems", tree.files.len(), problems.len());
    // Both are wanted at once: a build that fails does not hide what was read, nor the reverse.
    let builds = kernel_builds_without_std(root)?;
    Ok(builds && problems.is_empty())
}

fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        text::machine_paths(file, &mut problems);
    }
    for file in tree.rust() {
        let source = source::Source::new(&file.text);
        text::check(file, &source, &mut problems);
        kernel::check_file(file, &source, &mut problems);
    }
    kernel::check_root(tree, &mut problems);
    manifest::check(tree, &mut problems);
    let mut problems = exemption::excuse(tree, problems);
    problems.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    problems
}

/// Reading proves little next to a compiler that has no `std` to offer, so use one if it is there.
fn kernel_builds_without_std(root: &Path) -> Result<bool> {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Some(target) = listed.as_deref().ok().and_then(without_std) else {
        println!("no target without std is installed; checked by reading");
        return Ok(true);
    };
    println!("building the kernel for {target}");
    let words = ["build", "--quiet", "--lib", "-p", "locum-kernel", "--target", target];
    Ok(run::cargo(root).args(words).status()?.success())
}

/// The last part of a triple, or of its system, is `none` when there is no system and so no `std`.
fn without_std(installed: &str) -> Option<&str> {
    installed.lines().map(str::trim).find(|target| target.split('-').any(|part| part == "none"))
}
