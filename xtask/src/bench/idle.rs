//! What an engine costs that does nothing, and what a thousand workers cost that all wait for
//! their models.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// One asks its user, and nobody answers.
const IDLE: &str = r#"
agents:
  main:
    - calls: [{ask_user: {question: "Are you there?"}}]
"#;

const WORKERS: u64 = 1_000;

pub(super) fn measure(locum: &Path) -> Result<String> {
    let folder = std::env::temp_dir().join(format!("locum-idle-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let idle = idle(locum, &folder)?;
    let few = crowd(locum, &folder, 1)?;
    let many = crowd(locum, &folder, WORKERS)?;
    fs::remove_dir_all(&folder)?;
    let each = many.saturating_sub(few) / (WORKERS - 1);
    Ok(format!(
        "| memory of an idle engine, MB | {} | | | ≤ 25 |\n\
         | processor time of an idle engine in 5 s, ms | {} | | | 0 |\n\
         | memory of one of {WORKERS} concurrent workers, KiB | {each} | | | ≤ 64 |\n",
        idle.kib.div_ceil(1024),
        idle.busy_ms,
    ))
}

struct Idle {
    kib: u64,
    busy_ms: u64,
}

fn idle(locum: &Path, folder: &Path) -> Result<Idle> {
    let mut engine = start(locum, folder, "idle", IDLE, &[], "ask.opened")?;
    let before = busy_ms(engine.id())?;
    thread::sleep(Duration::from_secs(5));
    let busy_ms = busy_ms(engine.id())? - before;
    let kib = memory(engine.id())?;
    stop(&mut engine)?;
    Ok(Idle { kib, busy_ms })
}

/// The memory of an engine with so many workers, each waiting for its model.
fn crowd(locum: &Path, folder: &Path, workers: u64) -> Result<u64> {
    let call =
        |at| format!("        - spawn_agent: {{agent: worker, message: wait, label: w{at}}}");
    let calls: Vec<String> = (0..workers).map(call).collect();
    // A reply holds so many calls at most, so the crowd is made in several.
    let steps = calls.chunks(100).map(|part| format!("    - calls:\n{}\n", part.join("\n")));
    let steps: Vec<String> = steps.collect();
    let steps = steps.concat();
    let ready = "    - calls: [{ask_user: {question: ready}}]\n";
    let waits = "  worker:\n    - hang_ms: 600000\n";
    let script = format!("agents:\n  main:\n{steps}{ready}{waits}");
    let count = workers.to_string();
    let flags = ["--slots", &count, "--max-agents", &count];
    let mut engine =
        start(locum, folder, &format!("crowd{workers}"), &script, &flags, "ask.opened")?;
    let kib = memory(engine.id())?;
    stop(&mut engine)?;
    Ok(kib)
}

/// Starts a run and reads its lines until one of this type comes.
fn start(
    locum: &Path,
    folder: &Path,
    name: &str,
    script: &str,
    flags: &[&str],
    until: &str,
) -> Result<Child> {
    let file = folder.join(format!("{name}.yaml"));
    fs::write(&file, script)?;
    let mut engine = Command::new(locum)
        .args(["run", "go", "--json", "--approvals", "stdio", "-m"])
        .arg(format!("script:{}", file.display()))
        .arg("--data")
        .arg(folder.join(name))
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = engine.stdout.take().context("no output")?;
    let wanted = format!("\"type\":\"{until}\"");
    let mut lines = BufReader::new(out).lines();
    loop {
        let line = lines.next().context("it ended too early")??;
        if line.contains(&wanted) {
            break;
        }
    }
    // Whatever else it says is read, or it would wait for us.
    thread::spawn(move || lines.for_each(drop));
    Ok(engine)
}

fn stop(engine: &mut Child) -> Result<()> {
    engine.kill()?;
    engine.wait()?;
    Ok(())
}

fn memory(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    Ok(kib.parse()?)
}

/// User and system time so far. A tick is 10 ms wherever this runs.
fn busy_ms(process: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let sum = ticks(11).zip(ticks(12)).map(|(user, system)| user + system).context("no times")?;
    Ok(sum * 10)
}
