//! `cargo xtask sim`: the kernel in a seeded world of crashes, lost results and late answers.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::run;

/// The simulation's own file; until it is written there is nothing to run.
pub(crate) const TEST: &str = "crates/kernel/tests/simulation.rs";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seeds {
    pub(crate) count: u64,
    pub(crate) from: u64,
}

impl Default for Seeds {
    /// What `ci` runs: style.md asks for ten thousand seeds per run at least.
    fn default() -> Self {
        Self { count: 20_000, from: 0 }
    }
}

/// None: the flags are not ours, and the caller shows the usage.
pub(crate) fn parse(flags: &[&str]) -> Option<Seeds> {
    let mut seeds = Seeds::default();
    let mut rest = flags;
    while let [flag, value, tail @ ..] = rest {
        let value = value.replace('_', "").parse().ok()?;
        match *flag {
            "--seeds" => seeds.count = value,
            "--from" => seeds.from = value,
            _ => return None,
        }
        rest = tail;
    }
    rest.is_empty().then_some(seeds)
}

pub(crate) fn main(seeds: Seeds) -> Result<ExitCode> {
    Ok(run::code(command(&run::root()?, seeds).status()?))
}

pub(crate) fn command(root: &Path, seeds: Seeds) -> Command {
    let mut command = run::cargo(root);
    command
        .args(["test", "--profile", "sim", "-p", "locum-kernel", "--lib"])
        .args(["--test", "simulation"])
        .args(["--", "--nocapture"])
        .env("LOCUM_SIM_SEEDS", seeds.count.to_string())
        .env("LOCUM_SIM_FROM", seeds.from.to_string())
        // Trees of agents with random rights, in the unit tests.
        .env("LOCUM_TREES", "100000");
    command
}

#[cfg(test)]
mod tests {
    use super::{Seeds, parse};

    #[test]
    fn flags() {
        let cases: &[(&[&str], Option<Seeds>)] = &[
            (&[], Some(Seeds::default())),
            (&["--seeds", "5"], Some(Seeds { count: 5, from: 0 })),
            (&["--from", "7", "--seeds", "1_000"], Some(Seeds { count: 1_000, from: 7 })),
            (&["--seeds"], None),
            (&["--seeds", "many"], None),
            (&["--speed", "9"], None),
        ];
        for (flags, expected) in cases {
            assert_eq!(parse(flags), *expected, "{flags:?}");
        }
    }
}
