//! What a keeper costs: a command that does nothing against a bare start and wait, and a
//! gigabyte of output with the most memory it took. Ratios, because machines differ. Its own
//! keeper, so a plain program and not a harness.
#![expect(clippy::print_stdout, reason = "a bench says what it measured")]

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use locum_process::{Command, Hold, Keeper, Processes, Ran};

const ROUNDS: usize = 200;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((first, rest)) = args.split_first()
        && first == "__keep"
    {
        return locum_process::keeper(rest);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
async fn measure() {
    let mut bare = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let status = tokio::process::Command::new("/bin/true").status().await;
        assert!(status.is_ok_and(|status| status.success()));
        bare.push(began.elapsed());
    }
    let bare = median(bare);
    println!("bare start and wait     {bare:>10.2?}");
    let processes = Processes::new(Keeper::of_this_program("__keep"));
    for hold in [Hold::Namespace, Hold::Tree] {
        let mut kept = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            run(&processes, &["/bin/true"], hold).await;
            kept.push(began.elapsed());
        }
        let kept = median(kept);
        let ratio = kept.as_secs_f64() / bare.as_secs_f64();
        println!("{:<24}{kept:>10.2?}  {ratio:.1} times", format!("{hold:?}"));
    }
    let before = peak_kib();
    let began = Instant::now();
    run(&processes, &["sh", "-c", "yes | head -c 1G"], Hold::Auto).await;
    let (took, after) = (began.elapsed(), peak_kib());
    let rate = 1024.0 / took.as_secs_f64();
    println!("1 GiB of output         {took:>10.2?}  {rate:.0} MiB/s, peak {before} → {after} KiB");
}

async fn run(processes: &Processes, words: &[&str], hold: Hold) {
    let folder = std::env::temp_dir();
    let argv = words.iter().map(Into::into).collect();
    let mut command = Command::new(argv, folder.clone(), folder);
    command.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    command.hold = hold;
    let Ok(Ran::Ended(report)) = processes.run("bench", command, |_| {}).await else {
        panic!("{words:?} did not run");
    };
    if let Some(spill) = report.output.spill {
        let _ = std::fs::remove_file(spill.path);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}
