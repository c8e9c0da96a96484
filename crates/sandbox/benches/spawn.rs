//! What walls add to starting a program that does nothing, as a ratio to starting it bare. Both
//! are taken in turn in the same run, so that a busy machine slows both.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use locum_sandbox::{Enclosed, Survey, Walls, enclose, repository};

const ROUNDS: usize = 100;

fn main() -> ExitCode {
    if let Some(code) = locum_sandbox::wall(std::env::args_os()) {
        return code;
    }
    let ourselves = std::env::current_exe().expect("our own path");
    let survey = Survey::take(&ourselves);
    let here = std::env::current_dir().expect("a folder");
    let walls = Walls { guards: repository(&here), ..Walls::around(&here) };
    for builder in &survey.builders {
        let survey = Survey { builders: vec![builder.clone()], ..survey.clone() };
        let (mut bare, mut walled) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(time(|| run(&["/bin/true".into()], &[])));
            walled.push(time(|| enclosed(&walls, &survey, &here)));
        }
        bare.sort();
        walled.sort();
        // The best is what it costs; the middle is what a busy machine makes of it.
        for (name, at) in [("best", 0), ("middle", ROUNDS / 2)] {
            let (bare, walled) = (bare[at], walled[at]);
            let ratio = walled.as_secs_f64() / bare.as_secs_f64();
            report(&format!("{builder:?} {name}: {bare:?} bare, {walled:?} walled, {ratio:.1} x"));
        }
    }
    ExitCode::SUCCESS
}

fn enclosed(walls: &Walls, survey: &Survey, here: &Path) {
    let mut walls = walls.clone();
    if survey.builders == [locum_sandbox::Builder::Landlock] {
        walls.guards.clear();
    }
    let program = ["/bin/true".into()];
    let Enclosed { argv, env, hold } = enclose(&walls, survey, &program, here).expect("walls");
    run(&argv, &env);
    drop(hold);
}

fn run(argv: &[std::ffi::OsString], env: &[(std::ffi::OsString, std::ffi::OsString)]) {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env_clear().envs(env.iter().cloned());
    assert!(command.status().expect("it starts").success(), "{argv:?}");
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch, not an input")]
fn time(work: impl Fn()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
fn report(line: &str) {
    println!("{line}");
}
