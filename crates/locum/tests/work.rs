//! Real work on a real machine, through the real program: commands behind walls, approvals that
//! reach a fan-out, an agent that may only read, what is left running, results too long to show.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Act, Folder, Running, converse};

/// The words of a tool's result, by the path of its agent and the place among its calls.
fn results<'a>(lines: &'a [Value], path: &str) -> Vec<&'a str> {
    let own = |line: &&Value| line["type"] == "tool.finished" && line["agent"]["path"] == path;
    lines.iter().filter(own).filter_map(|line| line["output"].as_str()).collect()
}

fn asked(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["type"] == "ask.opened").collect()
}

/// Three levels down: one is allowed for the fan-out, two more run without asking, a fourth with
/// other arguments asks.
const FAN_OUT: &str = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: lead, message: go, label: lead}}]
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - {say: "main is done", repeat: true}
  lead:
    - calls: [{spawn_agent: {agent: sub, message: go, label: sub}}]
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - {say: "lead is done", repeat: true}
  sub:
    - calls:
        - spawn_agent: {agent: tester, message: one, label: w1}
        - spawn_agent: {agent: tester, message: two, label: w2, after: [w1]}
        - spawn_agent: {agent: tester, message: three, label: w3, after: [w1]}
        - spawn_agent: {agent: builder, message: four, label: w4, after: [w2, w3]}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - {say: "sub is done", repeat: true}
  tester:
    - calls: [{exec: {command: "cargo test"}}]
    - {say: "tested: {{last}}"}
  builder:
    - calls: [{exec: {command: "cargo test --release"}}]
    - {say: "built: {{last}}"}
"#;

#[test]
fn an_approval_for_the_fan_out_reaches_the_siblings_and_nobody_else() {
    let folder = Folder::new("fan-out");
    let model = folder.script("script.yaml", FAN_OUT);
    let arguments = ["run", "go", "-m", &model, "--approvals", "stdio"];
    let told = converse(&folder, &arguments, |line| {
        if line["type"] != "ask.opened" {
            return Act::Nothing;
        }
        let (decision, scope) = if line["input"]["command"] == "cargo test" {
            ("allow", "fanout")
        } else {
            ("deny", "once")
        };
        let id = &line["id"];
        Act::Say(json!({ "type": "decision", "id": id, "decision": decision, "scope": scope }))
    });
    let asked = asked(&told.lines);
    let about: Vec<(&str, &str)> = asked
        .iter()
        .map(|line| {
            let path = line["agent"]["path"].as_str().unwrap();
            (path, line["input"]["command"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        about,
        [("main/lead/sub/w1", "cargo test"), ("main/lead/sub/w4", "cargo test --release"),]
    );
    for sibling in ["w1", "w2", "w3"] {
        let path = format!("main/lead/sub/{sibling}");
        // There is nothing to test here, which cargo itself says: it really ran.
        let ran = results(&told.lines, &path);
        assert!(ran.iter().any(|text| text.contains("Cargo.toml")), "{path}: {ran:?}");
    }
    let denied = results(&told.lines, "main/lead/sub/w4");
    assert!(denied[0].starts_with("denied"), "{denied:?}");
    assert_eq!(told.exit, Some(3));
}

/// What an agent that may run commands but not write tries, and what is there afterwards.
#[test]
fn who_may_only_read_is_stopped_by_the_system() {
    let folder = Folder::new("reader");
    let script = r#"
may: {scout: [read, exec]}
agents:
  main:
    - calls: [{call_recipe: {recipe: scout, message: look}}]
    - {say: "{{last}}"}
  scout:
    - calls:
        - exec: {command: "cat seen.txt"}
        - exec: {command: "echo mine > seen.txt; echo left > new.txt; cat seen.txt"}
        - exec: {command: "rm -f seen.txt; mkdir deep; touch /tmp/outside-$$; ls"}
        - exec: {command: "exec 3<>/dev/tcp/127.0.0.1/1 && echo out", network: true}
        - write: {path: new.txt, content: x}
    - {say: done}
"#;
    let model = folder.script("script.yaml", script);
    fs::write(folder.0.join("seen.txt"), "as it was").unwrap();
    let told = converse(&folder, &["run", "go", "-m", &model, "--mode", "auto"], |_| Act::Nothing);
    let said = results(&told.lines, "main/scout");
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].contains("as it was"), "{said:?}");
    for text in &said[1..3] {
        assert!(text.contains("Read-only file system"), "{said:?}");
    }
    assert!(!said[3].contains("out\n"), "{said:?}");
    assert!(said[4].contains("beyond what"), "{said:?}");
    assert_eq!(fs::read_to_string(folder.0.join("seen.txt")).unwrap(), "as it was");
    assert!(!folder.0.join("new.txt").exists() && !folder.0.join("deep").exists());
}

/// A hard link is the file itself, so a secret is refused by what it is, whatever its name here;
/// other files with two names are read, because stores of packages are made of them.
#[test]
fn secrets_are_not_read_through_hard_links() {
    let folder = Folder::new("links");
    let put = |name: &str, text: &str| {
        let path = folder.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let secrets = [
        ("home/.ssh/id_ed25519", "l-ssh"),
        ("home/.aws/credentials", "l-aws"),
        ("home/.netrc", "l-netrc"),
        ("locum/config.toml", "l-config"),
        ("locum/keys/any", "l-key"),
        ("data/logins/server", "l-data"),
    ];
    let mut names = Vec::new();
    for (name, link) in secrets {
        let path = put(name, "# hush\n");
        fs::create_dir_all(folder.0.join("work")).unwrap();
        fs::hard_link(path, folder.0.join("work").join(link)).unwrap();
        names.push(link);
    }
    fs::hard_link(put("store/package", "# hush\n"), folder.0.join("work/package")).unwrap();
    match fs::hard_link("/etc/shadow", folder.0.join("work/l-shadow")) {
        Ok(()) => names.push("l-shadow"),
        Err(error) => eprintln!("SKIPPED: no hard link to /etc/shadow can be made here: {error}"),
    }
    let mut calls: Vec<Value> =
        names.iter().map(|link| json!({ "read": { "path": link } })).collect();
    calls.push(json!({ "read": { "path": "package" } }));
    calls.push(json!({ "grep": { "pattern": "hush" } }));
    let script = json!({ "agents": { "main": [{ "calls": calls }, { "say": "done" }] } });
    let model = folder.script("script.yaml", &script.to_string());
    let work = folder.0.join("work");
    let mut command =
        folder.locum(&["run", "go", "-m", &model, "-C", work.to_str().unwrap(), "--json"]);
    command.env("HOME", folder.0.join("home"));
    let output = support::output_of(command);
    let told = support::lines(&output);
    let said = results(&told, "main");
    assert_eq!(said.len(), names.len() + 2, "{said:?}");
    for (link, text) in names.iter().zip(&said) {
        let expected = format!("{link} has 2 names (hard links), and another one is kept from");
        assert!(text.starts_with(&expected), "{text}");
    }
    assert!(said[names.len()].contains("hush"), "{said:?}");
    let found = said[names.len() + 1];
    assert!(found.contains("package") && !found.contains("l-"), "{found}");
}

#[test]
fn files_commands_and_what_they_leave() {
    let folder = Folder::new("work");
    let script = r#"
agents:
  main:
    - calls:
        - write: {path: a.txt, content: "hello\nworld\n"}
        - edit: {path: a.txt, edits: [{old: world, new: there}]}
        - exec: {command: "cat a.txt; echo key: $SOME_API_KEY; touch /etc/locum-was-here"}
        - exec: {command: "seq 1 20000"}
        - exec: {command: "sleep 100", background: true}
        - process: {action: list}
        - process: {action: kill, id: p3}
        - process: {action: wait, id: p3}
        - read: {path: nothing.txt}
    - {say: done}
"#;
    let model = folder.script("script.yaml", script);
    let mut command = folder.locum(&["run", "go", "-m", &model, "--mode", "auto", "--json"]);
    command.env("SOME_API_KEY", "do-not-tell");
    let output = support::output_of(command);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let said = results(&lines, "main");
    assert_eq!(fs::read_to_string(folder.0.join("a.txt")).unwrap(), "hello\nthere\n");
    assert!(said[1].contains("-world\n+there"), "{}", said[1]);
    assert!(said[2].starts_with("hello\nthere\nkey:\n"), "{}", said[2]);
    assert!(said[2].contains("Read-only file system"), "{}", said[2]);
    assert!(!text.contains("do-not-tell"), "a key reached a command");
    // Cut in the middle, kept whole, and readable without running anything again.
    assert!(said[3].starts_with("1\n2\n") && said[3].trim_end().ends_with("20000"), "{}", said[3]);
    let long = lines.iter().filter(|line| line["type"] == "tool.finished").nth(3).unwrap();
    assert!(long["handle"].as_str().unwrap().starts_with("spill:"), "{long}");
    assert!(said[5].contains("p3 running"), "{}", said[5]);
    assert!(said[6].contains("[killed]") || said[6].contains("signal"), "{}", said[6]);
    assert!(said[8].contains("nothing.txt"), "{}", said[8]);
    let outputs = lines.iter().filter(|line| line["type"] == "tool.output").count();
    assert!(outputs > 0, "commands are heard while they print");
    let result = lines.last().unwrap();
    assert_eq!(result["status"], "ok", "{result}");
}

/// What is heard has its own time, under the number of the last line that is kept.
#[test]
fn what_a_command_prints_is_told_with_the_time_it_was_printed() {
    let folder = Folder::new("times");
    let script = r#"
agents:
  main:
    - calls: [{exec: {command: "for i in 1 2 3 4; do echo $i; sleep 0.5; done"}}]
    - {say: done}
"#;
    let model = folder.script("script.yaml", script);
    let arguments = ["run", "go", "-m", &model, "--mode", "auto", "--json"];
    let output = folder.output(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let heard = lines.iter().filter(|line| line["type"] == "tool.output");
    let (times, numbers): (Vec<&str>, Vec<u64>) =
        heard.map(|it| (it["ts"].as_str().unwrap(), it["seq"].as_u64().unwrap())).unzip();
    assert!(times.len() >= 3, "{text}");
    assert!(times.is_sorted() && times.first() < times.last(), "{times:?}");
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    let all: Vec<&str> = lines.iter().map(|line| line["ts"].as_str().unwrap()).collect();
    assert!(all.is_sorted(), "{all:?}");
}

/// An agent that was told of a process never meets another of that name, and hears what became of
/// it, also after a death that nobody could tell of.
#[test]
fn numbers_of_processes_go_on_after_a_death() {
    let folder = Folder::new("numbers");
    let script = r#"
agents:
  main:
    - calls: [{exec: {command: "sleep 100", background: true}}]
    - {hang_ms: 2000, say: one}
    - calls:
        - process: {action: list}
        - process: {action: log, id: p1}
        - process: {action: log, id: p9}
        - exec: {command: "sleep 100", background: true}
    - {say: done}
"#;
    let model = folder.script("script.yaml", script);
    let run = ["run", "go", "-m", &model, "-s", "it", "--mode", "auto"];
    let mut running = Running::start(&folder, &run);
    running.until_type("tool.finished");
    running.kill();
    folder.output(&["run", "--resume", "it", "--mode", "auto"]);
    let output = folder.output(&["run", "again", "-s", "it", "--mode", "auto", "--json"]);
    let told = support::lines(&output);
    let said = results(&told, "main");
    let gone = "ended when locum was stopped";
    assert!(said[0].contains("none; those up to p1") && said[0].contains(gone), "{said:?}");
    assert!(said[1].starts_with("p1 is gone") && said[1].contains(gone), "{said:?}");
    assert!(said[2].contains("there is no process p9 of yours"), "{said:?}");
    assert!(said[3].contains("in the background as p2"), "{said:?}");
}

/// Everything a command started is gone when its run is, however that ended.
#[test]
fn nothing_a_run_started_outlives_it() {
    let folder = Folder::new("outlive");
    let script = r#"
agents:
  main:
    - calls: [{exec: {command: "(setsid sleep 7654 &) ; sleep 7654 & sleep 7654"}}]
    - {say: done}
"#;
    let model = folder.script("script.yaml", script);
    let running = Running::start(&folder, &["run", "go", "-m", &model, "--mode", "auto"]);
    let beside = || {
        let shown = std::process::Command::new("pgrep").args(["-fc", "^sleep 7654$"]).output();
        String::from_utf8(shown.unwrap().stdout).unwrap().trim().parse::<u32>().unwrap()
    };
    until("the command runs", || beside() == 3);
    running.kill();
    until("all of it is gone", || beside() == 0);
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}: not within 20 s");
}
