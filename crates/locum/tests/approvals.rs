//! Approvals through the real program: two surfaces that answer at once, and an allow that reaches
//! no further than what was seen.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Folder, PATIENCE, Running, Watch, of_type, stderr};

fn script(folder: &Folder, calls: &Value) -> String {
    let script = json!({
        "tools": { "mend": { "class": "write", "says": "mended", "log": "effects.log" } },
        "agents": { "main": [{ "calls": calls }, { "say": "done", "repeat": true }] },
    });
    folder.script("script.yaml", &script.to_string())
}

fn effects(folder: &Folder) -> Vec<String> {
    let log = folder.read("effects.log");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["arguments"]["path"].as_str().unwrap().to_owned()).collect()
}

/// One allows by a line of standard input, the other denies from another terminal.
#[test]
fn two_surfaces_answer_at_once_and_one_is_heard() {
    let mut heard = [0, 0];
    for round in 0..6 {
        let folder = Folder::new(&format!("approvals-race-{round}"));
        let model = script(&folder, &json!([{ "mend": { "path": "a" } }]));
        let mut running =
            Running::start(&folder, &["run", "go", "-m", &model, "--approvals", "stdio"]);
        let id = running.until_type("ask.opened")["id"].as_str().unwrap().to_owned();
        let mut deny = folder.locum(&["deny", &id]);
        deny.env("USER", "bob").stdout(Stdio::piped()).stderr(Stdio::piped());
        let deny = deny.spawn().unwrap();
        let _watch = Watch::over(deny.id(), PATIENCE);
        // The command takes a moment to start, so each is first sometimes.
        std::thread::sleep(std::time::Duration::from_millis(round * 12));
        running.say(&json!({ "type": "decision", "id": id, "decision": "allow" }));
        let deny = deny.wait_with_output().unwrap();
        let told = running.end();
        let closed = of_type(&told.lines, "ask.closed");
        assert_eq!(closed.len(), 1, "round {round}: {closed:?}");
        let allowed = closed[0]["decision"] == "allow";
        heard[usize::from(allowed)] += 1;
        assert_eq!(effects(&folder).len(), usize::from(allowed), "round {round}");
        assert_eq!(told.exit, Some(if allowed { 0 } else { 3 }), "{}", told.stderr);
        if allowed {
            assert_eq!(deny.status.code(), Some(2), "{}", stderr(&deny));
            assert!(stderr(&deny).contains("allowed by ann"), "{}", stderr(&deny));
        } else {
            assert!(deny.status.success(), "{}", stderr(&deny));
            assert!(closed[0]["by"].to_string().contains("bob"), "{closed:?}");
        }
    }
    eprintln!("denied first {} times, allowed first {} times", heard[0], heard[1]);
}

/// Through the door with another digest than the one that is asked about: refused, and the ask
/// stays open. What it was changed to is asked about again.
#[test]
fn an_allow_is_for_what_was_seen() {
    let folder = Folder::new("approvals-seen");
    let call = |path: &str| json!({ "mend": { "path": path } });
    let model = script(&folder, &json!([call("a"), call("a"), call("b"), call("a")]));
    let run = ["run", "go", "-m", &model, "-s", "it", "--approvals", "stdio"];
    let mut running = Running::start(&folder, &run);
    let asked = running.until_type("ask.opened");
    let id = asked["id"].as_str().unwrap().to_owned();
    let knock = |digest: &str| {
        let number: u64 = id.trim_start_matches('q').parse().unwrap();
        let verdict = json!({ "allow": { "scope": "once" } });
        let by = json!({ "person": "eve" });
        let answered = json!({ "ask": number, "verdict": verdict, "by": by, "digest": digest });
        let input = json!({ "answered": answered });
        let mut door = UnixStream::connect(folder.data().join("door")).unwrap();
        writeln!(door, "{}", json!({ "session": "it", "input": input })).unwrap();
        let mut answer = String::new();
        BufReader::new(door).read_line(&mut answer).unwrap();
        answer
    };
    let refused = knock(&"0".repeat(64));
    assert!(refused.contains("refused") && refused.contains("no longer asks"), "{refused}");
    assert_eq!(effects(&folder).len(), 0);
    // Allowed with other arguments, for this agent: those run, and those are remembered.
    running.say(&json!({ "type": "decision", "id": id, "decision": "allow", "scope": "agent",
                         "input": { "path": "b" } }));
    for _ in 0..2 {
        let asked = running.until_type("ask.opened");
        assert_eq!(asked["input"]["path"], "a", "what was typed instead does not cover it");
        running.say(&json!({ "type": "decision", "id": asked["id"], "decision": "deny" }));
    }
    let told = running.end();
    assert_eq!(told.exit, Some(3), "{}", told.stderr);
    assert_eq!(effects(&folder), ["b", "b"]);
    // What is told to start is what runs; what is denied never starts, but has its end.
    let paths = of_type(&told.lines, "tool.started").into_iter().map(|it| &it["input"]["path"]);
    assert_eq!(paths.collect::<Vec<_>>(), ["b", "b"]);
    let ends = of_type(&told.lines, "tool.finished").into_iter().map(|it| it["ok"] == true);
    assert_eq!(ends.collect::<Vec<_>>(), [true, false, true, false]);
}
