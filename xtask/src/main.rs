//! What a developer runs: `cargo xtask <command>`. One file per command, in the order of the usage.

#![expect(clippy::print_stdout, reason = "a command line tool speaks through standard output")]

mod bench;
mod ci;
mod crash;
mod fuzz;
mod licences;
mod mutants;
mod run;
mod sim;
mod size;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci                          everything a change has to pass, with times
  tidy                        the style rules that are code
  licences                    licences of all dependencies, and how many there are
  sim [--seeds N] [--from S]  the simulation, N seeds beginning with S
  crash [--points N] [--seed S] [--only NAME] [--at POINT] [--strace]
                              the real program killed at every append, then at random moments
  fuzz [--seconds N] [TARGET] the decoders fed with anything; ten minutes each unless told
  mutants [NAME]              seeded faults: do the tests catch each one?
  bench [WHAT]                speed beside a floor: kernel, journal, engine, or all
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["ci"] => ci::main(),
        ["tidy"] => tidy::main(),
        ["licences"] => licences::main(),
        ["sim", flags @ ..] => match sim::parse(flags) {
            Some(seeds) => sim::main(seeds),
            None => return usage(),
        },
        ["crash", flags @ ..] => match crash::parse(flags) {
            Some(flags) => crash::main(&flags),
            None => return usage(),
        },
        ["fuzz", flags @ ..] => match fuzz::parse(flags) {
            Some(flags) => fuzz::main(&flags),
            None => return usage(),
        },
        ["mutants"] => mutants::main(None),
        ["mutants", name] => mutants::main(Some(name)),
        ["bench"] => bench::main(None),
        ["bench", what @ ("kernel" | "journal" | "engine")] => bench::main(Some(what)),
        _ => return usage(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}
