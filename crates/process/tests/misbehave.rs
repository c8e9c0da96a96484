//! Commands that misbehave, eight at a time, in pipes and in a terminal, held in each way, as root
//! and as an ordinary user: all of them return within their deadline and three seconds, memory
//! stays bounded, and nobody is left. `-- WORD` runs only the cases with that word, `ROUNDS=n`
//! does it n times, `TIMES=1` says how long each took.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test program of its own"
)]

mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use locum_process::{Command, Hold, Io, Processes, Ran};
use support::{END, Folder};

/// The table, and how to read it.
const TABLE: &str = include_str!("misbehave.txt");
const LONG_MS: u64 = 20_000;

struct Case {
    name: &'static str,
    shell: &'static str,
    script: &'static str,
    timeout_ms: u64,
    /// How it ends, or the start of the error: one of these, parted by `or`.
    ends: &'static str,
    /// In what it said.
    says: String,
    /// At least so many are killed after it ended by itself.
    left: usize,
}

fn cases() -> Vec<Case> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let case = |pair: &[&'static str]| {
        let words: Vec<&str> = pair[0].split('|').map(str::trim).collect();
        let [name, timeout_ms, ends, says, left] = words[..] else { panic!("{}", pair[0]) };
        let (shell, script) = pair[1].trim().split_once(':').unwrap();
        Case {
            name,
            shell,
            script: script.trim_start(),
            timeout_ms: timeout_ms.parse().unwrap(),
            ends,
            says: says.replace("\\n", "\n"),
            left: left.parse().unwrap(),
        }
    };
    lines.chunks(2).map(case).collect()
}

fn main() -> ExitCode {
    if let Some(code) = support::if_keeper() {
        return code;
    }
    let _wall = support::Wall::new();
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failures = runtime.block_on(all(words.first().map_or("", String::as_str)));
    let folder = Folder::new();
    let again = support::again_as_nobody(&folder.0, &words);
    if failures == 0 && again { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn all(word: &str) -> usize {
    let cases = cases();
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let who = if support::is_root() { "root" } else { "an ordinary user" };
    let (mut failures, mut runs) = (0, 0);
    let began = Instant::now();
    for hold in [Hold::Namespace, Hold::Tree] {
        let processes = support::processes();
        for case in cases.iter().filter(|case| case.name.contains(word)) {
            for io in [Io::Pipes, Io::Terminal { rows: 24, cols: 80 }] {
                let moment = Instant::now();
                let results = Box::pin(many(&processes, case, hold, io, rounds)).await;
                runs += results.len();
                let bad: Vec<String> = results.into_iter().filter_map(Result::err).collect();
                failures += bad.len();
                if let Some(first) = bad.first() {
                    let (name, bad) = (case.name, bad.len());
                    println!("FAILED {name}, {hold:?}, {io:?}: {bad}, first: {first}");
                }
                if std::env::var_os("TIMES").is_some() {
                    println!("{:?} {hold:?} {io:?} {:?}", case.name, moment.elapsed());
                }
            }
        }
    }
    for _ in 0..100 {
        if support::children() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (children, peak) = (support::children(), support::peak_kib() >> 10);
    let groups = support::groups();
    failures += usize::from(groups > 0);
    // Eight at a time, each with 32 KiB and a chunk, and a thread.
    failures += usize::from(children > 0) + usize::from(peak > 96);
    let (kinds, took) = (cases.len(), began.elapsed().as_secs());
    println!(
        "as {who}: {kinds} kinds, {runs} runs, {failures} failures, {children} children and \
         {groups} groups left, peak {peak} MiB, {took} s"
    );
    failures
}

/// So many rounds, eight at a time.
async fn many(
    processes: &Processes,
    case: &Case,
    hold: Hold,
    io: Io,
    rounds: usize,
) -> Vec<Result<(), String>> {
    let mut results = Vec::new();
    for _ in 0..rounds {
        let one = || once(processes, case, hold, io);
        let batch = tokio::join!(one(), one(), one(), one(), one(), one(), one(), one());
        results.extend(<[_; 8]>::from(batch));
    }
    results
}

async fn once(processes: &Processes, case: &Case, hold: Hold, io: Io) -> Result<(), String> {
    let (folder, token) = (Folder::new(), support::token());
    let mut command = support::script(case.shell, case.script, &token, &folder.0, hold);
    // In a terminal those that read wait for somebody to type.
    let most_ms = if io == Io::Pipes { LONG_MS } else { 1_000 };
    let longest = Duration::from_millis(case.timeout_ms.min(most_ms));
    command.timeout = Some(longest);
    command.io = io;
    command.pids_max = if case.name.starts_with("fork bomb") { 64 } else { 500 };
    let began = Instant::now();
    let watched = tokio::time::timeout(longest + END * 4, run(processes, command, case));
    let result = watched.await.unwrap_or_else(|_| Err("it hangs".to_owned()));
    let late = began.elapsed() > longest + END;
    // Returned means that nobody is left, not that nobody will be.
    let left = support::nobody_left(&token, Duration::from_millis(500)).await;
    left.map_err(|who| format!("left: {who}"))?;
    result?;
    if late { Err(format!("returned after {:?}", began.elapsed())) } else { Ok(()) }
}

async fn run(processes: &Processes, command: Command, case: &Case) -> Result<(), String> {
    let terminal = command.io != Io::Pipes;
    let fits = |text: &str| case.ends.split(" or ").any(|end| text.starts_with(end));
    match processes.run("test", command, |_| {}).await {
        Ok(Ran::Ended(report)) => {
            let text = report.output.to_string();
            let ends = report.exit.to_string();
            // In a terminal some of them find one.
            if !terminal && !fits(&ends) {
                return Err(format!("{ends}, not {}: {text:.200}", case.ends));
            }
            if !terminal && !text.contains(&case.says) {
                return Err(format!("said {text:.200?}"));
            }
            if !terminal && report.left_behind < case.left {
                return Err(format!("left behind {}", report.left_behind));
            }
            if text.len() > 128 << 10 {
                return Err(format!("{} bytes of text", text.len()));
            }
            Ok(())
        }
        Ok(Ran::Backgrounded { .. }) => Err("in the background".to_owned()),
        Err(error) if fits(&error.to_string()) => Ok(()),
        Err(error) => Err(format!("{error}, not {}", case.ends)),
    }
}
