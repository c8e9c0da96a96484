//! `cargo xtask mutants`: faults put in on purpose, one at a time, each of which the kernel's tests
//! have to notice. A test that fails for no fault proves nothing, so the sound kernel goes first.

mod list;
mod trial;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::run;
use list::Mutant;
use trial::{Verdict, Workbench};

const LIST: &str = "xtask/mutants.txt";

pub(crate) fn main(name: Option<&str>) -> Result<ExitCode> {
    let root = run::root()?;
    let text = std::fs::read_to_string(root.join(LIST)).with_context(|| format!("no {LIST}"))?;
    let mut mutants = list::parse(&text).with_context(|| LIST.to_owned())?;
    if let Some(name) = name {
        mutants.retain(|mutant| mutant.name == name);
    }
    if mutants.is_empty() {
        bail!("{LIST} has no mutant {}", name.unwrap_or("at all"));
    }
    // All of them before the first build: a stale list should cost seconds, not an evening.
    let mut mutated = Vec::new();
    for mutant in &mutants {
        mutated.push(mutant.applied(&root)?);
    }

    let workbench = Workbench::prepare(&root)?;
    let clock = run::Stopwatch::start();
    match workbench.trial()? {
        Verdict::Missed => println!("the sound kernel passes ({})", clock.seconds()),
        Verdict::Caught(by) => bail!("the kernel fails without any fault: {by}"),
        Verdict::Broken(log) => bail!("the kernel does not build:\n{log}"),
    }
    try_all(&workbench, &mutants, &mutated)
}

fn try_all(workbench: &Workbench, mutants: &[Mutant], mutated: &[String]) -> Result<ExitCode> {
    let width = mutants.iter().map(|mutant| mutant.name.len()).max().unwrap_or(0);
    let by_width = 44;
    println!("{:<width$} | {:<by_width$} | seconds", "mutant", "caught by");
    let mut caught = 0;
    let mut broken = Vec::new();
    for (mutant, source) in mutants.iter().zip(mutated) {
        let clock = run::Stopwatch::start();
        let verdict = workbench.trial_with(&mutant.file, source)?;
        let by = match verdict {
            Verdict::Caught(by) => {
                caught += 1;
                by
            }
            Verdict::Missed => format!("NOT CAUGHT: {}", mutant.breaks),
            Verdict::Broken(log) => {
                broken.push((&mutant.name, log));
                "ERROR IN THE LIST: does not compile".to_owned()
            }
        };
        let seconds = clock.elapsed().as_secs_f64();
        println!("{:<width$} | {by:<by_width$} | {seconds:.1}", mutant.name);
    }
    for (name, log) in broken {
        println!("\n{name} does not compile:\n{log}");
    }
    println!("{caught}/{} caught", mutants.len());
    Ok(if caught == mutants.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
