//! The whole thread, through the real binary: a child takes the floor and hands it back, a kill
//! in the middle loses and repeats nothing, and a bad script is told with its line.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use serde_json::Value;
use support::{Folder, Running, assert_numbered, example, lines, of_type, stderr};

const TAKE_OVER: &str = "take-over.yaml";

/// The researcher takes its time, so that there is a middle to be killed in.
const SLOW: &str = r#"
agents:
  main:
    - say: "Handing this over."
      calls: [{use_agent: {agent: researcher, message: "find async APIs"}}]
    - say: "Done: {{last}}"
  researcher:
    - say: "Let me look."
      calls: [{list_agents: {}}]
    - hang_ms: 700
      calls: [{complete: {result: "found 3 APIs"}}]
"#;

/// `path type`, line by line.
fn story(lines: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|line| format!("{} {}", word(&line["agent"]["path"]), word(&line["type"])))
        .collect()
}

#[test]
fn a_child_takes_the_floor_and_hands_it_back() {
    let folder = Folder::new("floor");
    let model = example(TAKE_OVER);
    let output = folder.output(&["run", "Which APIs?", "-m", &model, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let lines = lines(&output);
    assert_numbered(&lines);
    assert_eq!(lines[0]["seq"], 1);
    assert_eq!(
        story(&lines),
        [
            "main run.started",
            "main input.queued",
            "main input.started",
            "main turn.started",
            "main agent.state",
            "main attention",
            "main turn.finished",
            "main message",
            "main tool.started",
            "main/researcher agent.spawned",
            "main/researcher floor.changed",
            "main/researcher turn.started",
            "main agent.state",
            "main/researcher agent.state",
            "main/researcher turn.finished",
            "main/researcher message",
            "main/researcher tool.started",
            "main/researcher tool.finished",
            "main/researcher agent.finished",
            "main/researcher floor.changed",
            "main tool.finished",
            "main turn.started",
            "main agent.state",
            "main/researcher agent.state",
            "main attention",
            "main turn.finished",
            "main message",
            "main agent.state",
            "main attention",
            "main run.result",
        ]
    );

    let handed = of_type(&lines, "tool.started")[0];
    let spawned = of_type(&lines, "agent.spawned")[0];
    let ended = of_type(&lines, "agent.finished")[0];
    let came_back =
        lines.iter().find(|line| line["type"] == "tool.finished" && line["call"] == handed["call"]);
    assert_eq!(spawned["parent_call"], handed["call"]);
    assert_eq!(spawned["brief"], "find async APIs");
    assert_eq!(ended["result"], "found 3 APIs");
    assert_eq!(ended["receipt"]["turns"], 1);
    assert_eq!(came_back.unwrap()["output"], ended["result"]);
    let floors = of_type(&lines, "floor.changed");
    assert_eq!(floors[0]["stack"], serde_json::json!(["main", "main/researcher"]));
    assert_eq!(
        (&floors[1]["stack"], &floors[1]["reason"]),
        (&serde_json::json!(["main"]), &"complete".into())
    );
    let result = &lines[lines.len() - 1];
    assert_eq!(result["text"], "Done: found 3 APIs");
    assert_eq!((&result["status"], &result["exit"]), (&"ok".into(), &0.into()));
    assert_eq!(result["usage"]["in"], 300);
}

#[test]
fn plainly_the_answer_is_all_there_is_on_standard_output() {
    let folder = Folder::new("plain");
    let model = example(TAKE_OVER);
    let output = folder.output(&["run", "Which APIs?", "-m", &model]);
    assert!(output.status.success());
    assert_eq!(output.stdout, b"Done: found 3 APIs\n");
    assert_eq!(
        stderr(&output),
        "main: That is a question for the researcher.\n\
         main/researcher: I looked at the standard library and two crates.\n"
    );
}

#[test]
fn a_kill_in_the_middle_loses_nothing_and_repeats_nothing() {
    let folder = Folder::new("kill");
    let model = folder.script("slow.yaml", SLOW);
    let mut running = Running::start(&folder, &["run", "Which APIs?", "-m", &model, "-s", "trip"]);
    running.until(|turn| {
        turn["type"] == "turn.started"
            && turn["agent"]["label"] == "researcher"
            && turn["turn"] == 2
    });
    let before = running.kill().lines;

    // The model is known from the journal.
    let output = folder.output(&["run", "--resume", "trip", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let after = lines(&output);
    assert_numbered(&after);
    assert_eq!(after[0]["type"], "run.started");
    assert_eq!(after[0]["resumed"], true);
    assert!(after[0]["seq"].as_u64() > before[before.len() - 1]["seq"].as_u64());
    let result = &after[after.len() - 1];
    assert_eq!(result["text"], "Done: found 3 APIs");
    let all: Vec<Value> = before.into_iter().chain(after).collect();
    for once in ["input.queued", "input.started", "agent.spawned", "agent.finished", "run.result"] {
        assert_eq!(of_type(&all, once).len(), 1, "{once}");
    }
    assert_eq!(of_type(&all, "message").len(), 3, "each words once");

    // A run that ended can be asked again for how it ended, and goes on with the next number.
    let output = folder.output(&["run", "--resume", "trip", "--json"]);
    let again = lines(&output);
    assert_eq!(story(&again), ["main run.started", "main run.result"]);
    assert_eq!(again[1]["text"], "Done: found 3 APIs");
    let last = all[all.len() - 1]["seq"].as_u64().unwrap();
    assert_eq!(again[0]["seq"], last + 1);
}

#[test]
fn what_cannot_be_done_is_told_with_what_to_do() {
    let folder = Folder::new("bad");
    let bad = folder.write("bad.yaml", "agents:\n  main:\n    - say: hello\n    - sya: typo\n");
    let good = example(TAKE_OVER);
    let place = format!("{}:4: unknown field `sya`", bad.display());
    let bad = format!("script:{}", bad.display());
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["run", "hi", "-m", &bad], 2, "E400", &place),
        (&["run", "hi", "-m", "script:/no/such.yaml"], 2, "E400", "/no/such.yaml"),
        (&["run", "hi", "-m", "gpt"], 2, "E102", "\"gpt\""),
        (&["run", "-m", &good], 2, "E100", "<TEXT>"),
        (&["run", " ", "-m", &good], 2, "E100", "empty"),
        (&["run", "hi", "--fast"], 2, "E100", "--fast"),
        (&["run", "--resume", "nobody"], 2, "E103", "no such session"),
        (&["run", "hi", "-m", &good, "-C", "bad.yaml"], 2, "E105", "bad.yaml"),
        (&["run", "hi", "-m", &good, "-o", "no/such/file"], 2, "E108", "no/such/file"),
        (&["run", "hi", "-m", &good, "-o", "."], 2, "E108", "irectory"),
    ];
    for (arguments, exit, code, word) in cases {
        let output = folder.output(arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(*exit), "{arguments:?}: {told}");
        assert!(told.starts_with(&format!("error[{code}] ")), "{arguments:?}: {told}");
        assert!(told.contains(word) && told.contains("\ndo: "), "{arguments:?}: {told}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
}

#[test]
fn a_second_process_is_told_who_was_first() {
    let folder = Folder::new("locked");
    let model = folder.script("slow.yaml", &SLOW.replace("700", "60000"));
    let mut first = Running::start(&folder, &["run", "Which APIs?", "-m", &model]);
    first.until_type("run.started");

    let second = folder.output(&["run", "hi", "-m", &model]);
    let told = stderr(&second);
    assert_eq!(second.status.code(), Some(7), "{told}");
    assert!(told.starts_with("error[E111] The data folder is in use since 2"), "{told}");
    assert!(
        told.contains(&format!("process {}", first.child.id())) && told.contains("\ndo: "),
        "{told}"
    );

    first.kill();
    folder.text(&["run", "hi", "-m", &example(TAKE_OVER)]);
}

#[test]
fn the_version_is_printed() {
    let folder = Folder::new("version");
    let output = folder.output(&["version"]);
    assert_eq!(output.stdout, format!("locum {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
}
