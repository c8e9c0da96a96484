//! One trial: a copy of the kernel, with or without a fault, built and put through its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use toml::Table;

use crate::run;

/// In the order they are tried: scripts say best what is wrong, the simulation finds the rest.
const TESTS: &[&str] = &["scenarios", "simulation"];

/// A faulty kernel often never settles. The sound one needs seconds, so a minute is a verdict.
const TRIAL_LIMIT: Duration = Duration::from_mins(1);

/// Enough for a fault that matters, and a tenth of what `ci` runs.
const SEEDS: &str = "2000";

pub(super) enum Verdict {
    Caught(String),
    Missed,
    /// It does not compile, and that is no merit of the tests. With what the compiler said.
    Broken(String),
}

/// A workspace of its own with a copy of the kernel, so that a fault never touches the checkout.
pub(super) struct Workbench {
    root: PathBuf,
    copy: PathBuf,
    target: PathBuf,
}

impl Workbench {
    pub(super) fn prepare(root: &Path) -> Result<Self> {
        let place = root.join("target/mutants");
        let workbench = Self {
            root: root.to_owned(),
            copy: place.join("workspace"),
            target: place.join("target"),
        };
        for test in TESTS {
            let file = format!("crates/kernel/tests/{test}.rs");
            if !root.join(&file).exists() {
                bail!("{file} does not exist yet, so nothing could catch a fault");
            }
        }
        fs::create_dir_all(&workbench.copy)?;
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
        write(&workbench.copy.join("Cargo.toml"), reduced(&manifest)?.as_bytes())?;
        // Only once: cargo drops what the kernel does not need, and would do so again.
        let lock = workbench.copy.join("Cargo.lock");
        fs::copy(root.join("Cargo.lock"), &lock).context("cannot copy Cargo.lock")?;
        Ok(workbench)
    }

    pub(super) fn trial(&self) -> Result<Verdict> {
        mirror(&self.root.join("crates/kernel"), &self.copy.join("crates/kernel"))?;
        self.judge()
    }

    /// The mirror also takes the previous fault out again.
    pub(super) fn trial_with(&self, file: &str, source: &str) -> Result<Verdict> {
        mirror(&self.root.join("crates/kernel"), &self.copy.join("crates/kernel"))?;
        write(&self.copy.join(file), source.as_bytes())?;
        self.judge()
    }

    fn judge(&self) -> Result<Verdict> {
        for test in TESTS {
            let program = match self.build(test)? {
                Ok(program) => program,
                Err(log) => return Ok(Verdict::Broken(log)),
            };
            // Started directly and not through cargo: killing cargo would leave it running.
            let package = self.copy.join("crates/kernel");
            let mut command = Command::new(program);
            command.current_dir(&package).env("CARGO_MANIFEST_DIR", &package);
            command.env("LOCUM_SIM_SEEDS", SEEDS).env("LOCUM_SIM_FROM", "0");
            let log = self.target.join(format!("{test}.log"));
            let finished = run::within(TRIAL_LIMIT, &mut command, &log)?;
            match finished.status {
                Some(status) if status.success() => {}
                Some(_) => return Ok(Verdict::Caught(culprit(test, &finished.output))),
                None => {
                    let seconds = TRIAL_LIMIT.as_secs();
                    return Ok(Verdict::Caught(format!("{test}: no end in {seconds} s")));
                }
            }
        }
        Ok(Verdict::Missed)
    }

    /// The program to run, or what the compiler said.
    fn build(&self, test: &str) -> Result<Result<PathBuf, String>> {
        let mut command = run::cargo(&self.copy);
        command.env("CARGO_TARGET_DIR", &self.target);
        command.args(["test", "--no-run", "--quiet", "--profile", "sim", "-p", "locum-kernel"]);
        command.args(["--message-format", "json-render-diagnostics", "--test", test]);
        let output = command.output()?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = messages
            .filter(|message| message["target"]["name"] == test)
            .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
        Ok(Ok(program.with_context(|| format!("cargo built no program for {test}"))?))
    }
}

/// The manifest of the workspace with the kernel as its only member; lints and profiles stay.
fn reduced(manifest: &str) -> Result<String> {
    let mut manifest: Table = manifest.parse().context("Cargo.toml")?;
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("Cargo.toml has no [workspace]")?;
    workspace.insert("members".to_owned(), vec!["crates/kernel"].into());
    Ok(toml::to_string(&manifest)?)
}

/// Writes only what differs: an untouched file keeps its time, and cargo then leaves it alone.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes `to` the same as `from`, and removes what only `to` has.
fn mirror(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !from.join(entry.file_name()).exists() {
            let gone = entry.path();
            let is_folder = entry.file_type()?.is_dir();
            if is_folder { fs::remove_dir_all(gone) } else { fs::remove_file(gone) }?;
        }
    }
    for entry in fs::read_dir(from).with_context(|| format!("no {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            mirror(&entry.path(), &target)?;
        } else {
            write(&target, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Who noticed, from what the test printed: the scenario's name or the seed, else the test's name.
fn culprit(test: &str, output: &str) -> String {
    let word = if test == "simulation" { "seed" } else { "scenario" };
    let failed = |line: &str| line.starts_with("test ") && line.trim_end().ends_with("FAILED");
    let by_name = || output.lines().find(|line| failed(line))?.split_whitespace().nth(1);
    // The tests' own names hold the word too; what failed is said elsewhere.
    let heading = |line: &str| line.starts_with("test ") || line.starts_with("----");
    let said = || output.lines().filter(|line| !heading(line));
    let found = said().find_map(|line| after(line, word));
    match (found, by_name()) {
        (Some(found), _) if word == "seed" => format!("{test}: seed {found}"),
        (Some(found), _) => format!("{test}: {found}"),
        (None, Some(name)) => format!("{test}: {name}"),
        (None, None) => format!("{test}: died without a word"),
    }
}

/// The value after `word`, whether written `seed 7`, `seed=7` or `scenario "a-b": …`.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{word} ")).or(line.split_once(&format!("{word}=")))?;
    let rest = rest.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    let part_of_name = |sign: char| sign.is_alphanumeric() || "_-/.".contains(sign);
    let end = rest.find(|sign| !part_of_name(sign)).unwrap_or(rest.len());
    let value = rest[..end].trim_end_matches('.');
    let wanted = if word == "seed" { value.parse::<u64>().is_ok() } else { !value.is_empty() };
    wanted.then_some(value)
}

#[cfg(test)]
mod tests {
    #[test]
    fn culprits() {
        let cases = [
            ("scenarios", "scenario floor-handback: line 3 differs", "scenarios: floor-handback"),
            ("scenarios", "FAILED scenario \"a_b\"", "scenarios: a_b"),
            ("scenarios", "test one ... ok\ntest two ... FAILED\n", "scenarios: two"),
            ("scenarios", "test every_scenario ... FAILED\nscenario a: line 1", "scenarios: a"),
            ("scenarios", "---- some_scenario stdout ----\nscenario a: x", "scenarios: a"),
            ("simulation", "no seed here\nseed 17: an agent is lost", "simulation: seed 17"),
            ("simulation", "broken at seed=4, step 2", "simulation: seed 4"),
            ("simulation", "test all ... FAILED", "simulation: all"),
            ("simulation", "Segmentation fault", "simulation: died without a word"),
        ];
        for (test, output, expected) in cases {
            assert_eq!(super::culprit(test, output), expected, "{output}");
        }
    }

    #[test]
    fn the_copy_has_one_member() {
        let manifest =
            "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\n[profile.sim]\nlto = \"off\"\n";
        let reduced = super::reduced(manifest).unwrap();
        assert!(reduced.contains("members = [\"crates/kernel\"]"), "{reduced}");
        assert!(reduced.contains("[profile.sim]"), "{reduced}");
    }
}
