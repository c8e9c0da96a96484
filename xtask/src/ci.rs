//! `cargo xtask ci`: everything a change has to pass, cheapest first, up to the first failure.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{crash, licences, mutants, run, sim, size, tidy};

/// What became of one step.
enum Outcome {
    Passed,
    Failed,
    Skipped(&'static str),
}

type Step = (&'static str, fn(&Path) -> Result<Outcome>);

const STEPS: &[Step] = &[
    ("format", |root| cargo(root, &["fmt", "--all", "--", "--check"])),
    ("clippy", |root| {
        cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    ("tidy", |root| Ok(passed(tidy::run(root)?))),
    ("licences", |root| Ok(passed(licences::run(root)?))),
    ("tests", |root| cargo(root, &["test", "--workspace", "--no-fail-fast"])),
    ("simulation", simulation),
    ("crash", |_| Ok(passed(crash::main(&crash::Flags::default())? == ExitCode::SUCCESS))),
    ("mutants", |_| Ok(passed(mutants::main(None)? == ExitCode::SUCCESS))),
];

pub(crate) fn main() -> Result<ExitCode> {
    let root = run::root()?;
    let whole = run::Stopwatch::start();
    let mut times = Vec::new();
    for (name, step) in STEPS {
        println!("── {name}");
        let clock = run::Stopwatch::start();
        let note = match step(&root)? {
            Outcome::Passed => "passed",
            Outcome::Skipped(why) => why,
            Outcome::Failed => {
                println!("── {name} FAILED after {}", clock.seconds());
                return Ok(ExitCode::FAILURE);
            }
        };
        println!("── {name}: {note} ({})\n", clock.seconds());
        times.push((name, clock.seconds(), note));
    }
    for (name, seconds, note) in times {
        println!("{name:<12} {seconds:>9}  {note}");
    }
    println!("{:<12} {:>9}\n", "all", whole.seconds());
    print!("{}", size::report(&root)?);
    Ok(ExitCode::SUCCESS)
}

fn passed(clean: bool) -> Outcome {
    if clean { Outcome::Passed } else { Outcome::Failed }
}

fn status(command: &mut Command) -> Result<Outcome> {
    Ok(passed(command.status()?.success()))
}

fn cargo(root: &Path, words: &[&str]) -> Result<Outcome> {
    status(run::cargo(root).args(words))
}

fn simulation(root: &Path) -> Result<Outcome> {
    if !root.join(sim::TEST).exists() {
        return Ok(Outcome::Skipped("skipped: the kernel has no tests/simulation.rs yet"));
    }
    status(&mut sim::command(root, sim::Seeds::default()))
}
