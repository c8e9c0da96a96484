//! The tour: it needs nobody, is quick, shows what it says it shows, and changes nothing in the
//! folder it is run in.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Folder, Watch, assert_numbered, lines, of_type, stderr};

/// Every file and folder below a folder, and what is in it.
fn everything(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            all.extend(everything(&path));
            all.insert(name, Vec::new());
        } else {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn the_fast_tour_shows_everything_and_changes_nothing() {
    let data = Folder::new("demo-data");
    let here = Folder::new("demo-here");
    fs::create_dir(here.0.join("src")).unwrap();
    here.write("src/main.rs", "// TODO: begin\nfn main() {}\n");
    here.write("notes.txt", "TODO: end\n");
    let before = everything(&here.0);

    let mut demo = data.locum(&["demo", "--fast", "--json"]);
    demo.current_dir(&here.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let demo = demo.spawn().unwrap();
    let _watch = Watch::over(demo.id(), Duration::from_secs(15));
    let output = demo.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(everything(&here.0), before, "something was changed");

    let lines = lines(&output);
    assert_numbered(&lines);
    let about = |line: &Value| line["agent"]["label"].as_str().unwrap().to_owned();
    let floors = of_type(&lines, "floor.changed");
    let reasons: Vec<&Value> = floors.iter().map(|line| &line["reason"]).collect();
    assert_eq!(reasons, [&json!("pushed"), &json!("complete")], "guide takes the floor");
    let retries = of_type(&lines, "retry");
    assert!(retries.iter().any(|line| line["status"] == 429), "{retries:?}");

    let asked = of_type(&lines, "ask.opened");
    let closed = of_type(&lines, "ask.closed");
    let question = asked.iter().find(|line| line["kind"] == "question").unwrap();
    assert_eq!(about(question), "guide");
    let approval = asked.iter().find(|line| line["kind"] == "approval").unwrap();
    assert_eq!(about(approval), "counter");
    let allowed = closed.iter().find(|line| line["id"] == approval["id"]).unwrap();
    assert_eq!(allowed["decision"], "allow");
    assert_eq!(asked.len(), closed.len(), "nothing is left open");

    let states = of_type(&lines, "agent.state");
    let queued = states.iter().find(|line| line["state"] == "queued").unwrap();
    assert_eq!(queued["attention"]["kind"], "capacity_queue", "three workers, two slots");
    let paused = states.iter().find(|line| line["state"] == "paused").unwrap();
    assert_eq!(about(paused), "finder");
    let ended = of_type(&lines, "agent.finished");
    let of = |label: &str| *ended.iter().find(|line| about(line) == label).unwrap();
    assert_eq!(of("finder")["outcome"], "done", "it was continued");
    assert!(of("finder")["seq"].as_u64() > paused["seq"].as_u64());
    let found = of("finder")["result"].as_str().unwrap();
    assert!(found.contains("TODO: begin") && found.contains("TODO: end"), "{found}");
    let listed = of("lister")["result"].as_str().unwrap();
    assert!(listed.contains("notes.txt"), "what is told of the folder is true: {listed}");
    assert_eq!(of("oracle")["outcome"], "failed");
    let result = lines.last().unwrap();
    assert_eq!((&result["type"], &result["status"]), (&json!("run.result"), &json!("ok")));
    assert_eq!(result["children_pending"], 0);

    // What is offered to look at next is there.
    let told = stderr(&output);
    let replay = told.lines().find_map(|line| line.trim().strip_prefix("locum replay ")).unwrap();
    let key = replay.split(' ').next().unwrap();
    assert_eq!(data.json(&["agents", "-s", key]).as_array().unwrap().len(), 6);
}

#[test]
fn the_tour_can_be_read_without_json() {
    let folder = Folder::new("demo-plain");
    let output = folder.output(&["demo", "--fast"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.ends_with("That was the tour.\n") && text.lines().count() == 1, "{text}");
    let told = stderr(&output);
    for word in ["main/guide: (question q", "allow by ann", "main/oracle: (failed", "(try 2 of"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(!told.contains('\u{1b}'), "{told:?}");
}
