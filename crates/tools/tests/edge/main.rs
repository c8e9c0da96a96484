//! What definitions want besides words and rights, done for real: programs instead of models,
//! checks, variables, copies of a repository, what was there before. Whole sessions are played
//! with real processes; only models are scripted. `-- WORD` runs only the tests with that word.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test program of its own"
)]

mod checks;
mod copies;
mod past;
mod programs;
mod stage;
mod walls;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// The longest that a single test may take, the slowest being one that waits for half a minute.
const WATCH: Duration = Duration::from_mins(2);
/// Tests at the same time.
const AT_ONCE: usize = 3;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    if let Some(code) = locum_sandbox::wall(std::env::args_os()) {
        return code;
    }
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        Some((first, rest)) if first == locum_tools::KEEP => return locum_process::keeper(rest),
        Some((first, rest)) if first == stage::DRIVE => return programs::drive(rest),
        Some((first, rest)) if first == walls::FALL => return walls::fall(rest),
        Some(_) | None => {}
    }
    // Nobody grants these: no command may see them.
    if std::env::var_os("EDGE_SECRET_TOKEN").is_none() {
        return again();
    }
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let tests: Vec<Test> =
        [programs::TESTS, checks::TESTS, copies::TESTS, past::TESTS, walls::TESTS].concat();
    run(tests.into_iter().filter(|(name, _)| name.contains(&word)).collect())
}

/// This program with secrets in its environment, which nobody may set in a running one.
fn again() -> ExitCode {
    let mut program = std::process::Command::new("/proc/self/exe");
    program.args(std::env::args_os().skip(1));
    program.env("EDGE_SECRET_TOKEN", "hush").env("EDGE_API_KEY", "granted");
    let status = program.status().unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The slowest first, a few at a time, each with a watch.
fn run(tests: Vec<Test>) -> ExitCode {
    let (queue, failed) = (Arc::new(Mutex::new(tests)), Arc::new(AtomicUsize::new(0)));
    let (done, ended) = mpsc::channel();
    for _ in 0..AT_ONCE {
        let (queue, failed, done) = (Arc::clone(&queue), Arc::clone(&failed), done.clone());
        thread::spawn(move || {
            loop {
                let next = queue.lock().unwrap().pop();
                let Some((name, test)) = next else { break };
                let well = catch_unwind(AssertUnwindSafe(test)).is_ok();
                failed.fetch_add(usize::from(!well), Ordering::Relaxed);
                done.send((name, well)).unwrap();
            }
        });
    }
    drop(done);
    let mut count = 0;
    loop {
        match ended.recv_timeout(WATCH) {
            Ok((name, well)) => {
                count += 1;
                println!("{} {name}", if well { "ok" } else { "FAILED" });
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                println!("FAILED: nothing has ended for {WATCH:?}");
                return ExitCode::FAILURE;
            }
        }
    }
    let failed = failed.load(Ordering::Relaxed);
    println!("{count} tests, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
