//! Real commands with real effects, allowed and denied by a person, while the program dies at every
//! append and at random moments. Nothing happens that nobody allowed, nothing twice, and whoever
//! was cut in the middle is told that nobody knows.
#![cfg(debug_assertions)]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Folder, Running, of_type};

/// Each command writes its letter; `c` takes its time and says so twice.
const COMMANDS: [(&str, &str, bool); 5] = [
    ("a", "echo a >> effects.log", true),
    ("b", "echo b >> effects.log", false),
    ("c", "echo c >> effects.log; sleep 0.1; echo c2 >> effects.log", true),
    ("d", "echo d >> effects.log", true),
    ("e", "echo e >> effects.log", true),
];

/// The last is a worker's, beside main.
fn script(folder: &Folder) -> String {
    let exec = |at: usize| json!({ "exec": { "command": COMMANDS[at].1 } });
    let script = json!({ "agents": {
        "main": [
            { "calls": [{ "spawn_agent": { "agent": "hand", "message": "go", "label": "hand" } }] },
            { "calls": [exec(0), exec(1), exec(2)] },
            { "calls": [exec(3)] },
            { "calls": [{ "wait": { "mode": "all", "timeout_s": 60 } }] },
            { "say": "done", "repeat": true },
        ],
        "hand": [{ "calls": [exec(4)] }, { "say": "did it" }],
    } });
    folder.script("script.yaml", &script.to_string())
}

#[derive(Clone, Copy)]
enum Death {
    Before(u32),
    After(u32),
    /// Each process of the play, until there is no time left.
    Moments([u64; 4]),
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Before(append) => write!(f, "before:{append}"),
            Death::After(append) => write!(f, "after:{append}"),
            Death::Moments(moments) => write!(f, "killed after {moments:?} ms"),
        }
    }
}

/// How a play went.
struct Played {
    /// How many processes died.
    deaths: usize,
    cut: u32,
}

fn letter(command: &str) -> &'static str {
    COMMANDS.iter().find(|(_, line, _)| *line == command).unwrap().0
}

fn play(name: &str, death: Death) -> Result<Played, String> {
    let folder = Folder::new(&format!("deaths-{name}"));
    let model = script(&folder);
    let mut allowed = BTreeSet::new();
    // Each before the one that ends has died.
    for deaths in 0..8 {
        let told = live(&folder, &model, deaths, death, &mut allowed);
        // What has happened by now was allowed by now.
        for effect in folder.read("effects.log").lines() {
            if !allowed.contains(effect.trim_end_matches('2')) {
                return Err(format!("{effect} happened and nobody had allowed it: {allowed:?}"));
            }
        }
        if let Some(exit) = told {
            // One call was denied, by a person.
            if exit != 3 {
                return Err(format!("it ended with {exit}"));
            }
            return judge(&folder, deaths);
        }
    }
    Err("it never ended".into())
}

/// One process, until it ends (its exit) or dies (none).
fn live(
    folder: &Folder,
    model: &str,
    process: usize,
    death: Death,
    allowed: &mut BTreeSet<String>,
) -> Option<i32> {
    let before = folder.output(&["sessions", "export", "it"]).stdout;
    let begun = String::from_utf8_lossy(&before).contains("\"input.queued\"");
    let text: &[&str] = if begun { &["--resume", "it"] } else { &["go", "-s", "it", "-m", model] };
    let run = [&["run"], text, &["--approvals", "stdio"]].concat();
    let mut command = folder.locum(&run);
    match death {
        Death::Before(_) | Death::After(_) if process == 0 => {
            // As long as a command takes to start that should not.
            command.env("LOCUM_DIE_AT", death.to_string()).env("LOCUM_DIE_MOMENT_MS", "400");
        }
        Death::Before(_) | Death::After(_) | Death::Moments(_) => {}
    }
    let mut running = Running::of(command);
    if let Death::Moments(moments) = death
        && let Some(moment) = moments.get(process)
    {
        let (id, moment) = (running.child.id(), Duration::from_millis(*moment));
        thread::spawn(move || {
            thread::sleep(moment);
            let _ = std::process::Command::new("kill").args(["-9", &id.to_string()]).output();
        });
    }
    while let Some(line) = running.line() {
        let opened = match line["type"].as_str() {
            Some("ask.opened") => vec![line.clone()],
            Some("run.started") => line["asks"].as_array().cloned().unwrap_or_default(),
            _ => Vec::new(),
        };
        for ask in opened {
            let letter = letter(ask["input"]["command"].as_str().unwrap());
            let is_good = COMMANDS.iter().any(|(name, _, good)| *name == letter && *good);
            if is_good {
                allowed.insert(letter.to_owned());
            }
            let decision = if is_good { "allow" } else { "deny" };
            running.say(&json!({ "type": "decision", "id": ask["id"], "decision": decision }));
        }
    }
    running.end().exit
}

/// Every call has one result; what ran happened once, what was cut at most once.
fn judge(folder: &Folder, deaths: usize) -> Result<Played, String> {
    let mut effects: BTreeMap<&str, u32> = BTreeMap::new();
    let log = folder.read("effects.log");
    for line in log.lines() {
        *effects.entry(line).or_default() += 1;
    }
    if let Some((effect, times)) = effects.iter().find(|(_, times)| **times > 1) {
        return Err(format!("{effect} happened {times} times"));
    }
    let exported = folder.text(&["sessions", "export", "it"]);
    let lines: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut commands = BTreeMap::new();
    for line in of_type(&lines, "tool.started") {
        if let Some(command) = line["input"]["command"].as_str() {
            commands.insert(line["call"].as_str().unwrap().to_owned(), letter(command));
        }
    }
    let mut results: BTreeMap<&str, &str> = BTreeMap::new();
    for line in of_type(&lines, "tool.finished") {
        let Some(letter) = line["call"].as_str().and_then(|call| commands.get(call)) else {
            continue;
        };
        let output = line["output"].as_str().unwrap_or_default();
        if results.insert(letter, output).is_some_and(|before| before != output) {
            return Err(format!("{letter} has two results"));
        }
    }
    let mut cut = 0;
    for (letter, _, good) in COMMANDS {
        let times = effects.get(letter).copied().unwrap_or(0);
        let result = results.get(letter).copied().unwrap_or("none");
        let is_cut = result.starts_with("interrupted: outcome unknown");
        cut += u32::from(is_cut);
        let is_right = if good { times == 1 || is_cut } else { times == 0 };
        if !is_right {
            return Err(format!("{letter} happened {times} times; its result: {result}"));
        }
    }
    Ok(Played { deaths, cut })
}

/// Plays them all, two at a time; how many died, and how many calls were cut.
fn play_all(name: &str, all: Vec<Death>) -> (usize, u32) {
    let total = all.len();
    let ahead = Mutex::new(all.into_iter().enumerate().collect::<Vec<_>>());
    let sums = Mutex::new((0, 0));
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((at, death)) = ahead.lock().unwrap().pop() else { return };
                    match play(&format!("{name}-{at}"), death) {
                        Ok(played) => {
                            let mut sums = sums.lock().unwrap();
                            *sums = (sums.0 + played.deaths, sums.1 + played.cut);
                        }
                        Err(why) => failures.lock().unwrap().push(format!("{death}: {why}")),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {total} plays:\n{}", failures.len(), failures.join("\n"));
    sums.into_inner().unwrap()
}

#[test]
fn at_every_append() {
    // More than there are: a play in which nobody died is judged like the others.
    let appends = 1..=24;
    let all = appends.flat_map(|append| [Death::Before(append), Death::After(append)]).collect();
    let (deaths, cut) = play_all("append", all);
    assert!(deaths >= 24 && cut > 0, "{deaths} deaths and {cut} cut calls say little");
}

#[test]
fn at_random_moments() {
    // A linear congruence: the same moments on every machine, which are never the same there.
    let mut seed = 7_u64;
    let mut moment = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        20 + (seed >> 33) % 400
    };
    let all = (0..24).map(|_| Death::Moments([moment(), moment(), moment(), moment()])).collect();
    let (deaths, _) = play_all("random", all);
    assert!(deaths >= 24, "{deaths} deaths say little");
}
