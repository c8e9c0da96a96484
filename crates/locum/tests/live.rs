//! What is heard while it is being said, through the real binary: pieces make up the message, a
//! reader that is too slow misses only pieces, and one that leaves stops nothing.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Folder, PATIENCE, Watch, assert_numbered, stderr};

/// Three speak, two of them at once; one stream is cut and begins again.
const SPEECH: &str = r#"
defaults: {chunk: 3}
agents:
  main:
    - say: "I shall have two look into it."
      calls:
        - spawn_agent: {agent: scout, message: "look", label: one}
        - spawn_agent: {agent: scout, message: "look", label: two}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - say: "this is never said in full"
      cut_after_chunks: 4
    - say: "Both have looked: né à Zürich, 漢字."
  scout:
    - say: "Looking around, slowly."
      calls: [{list_agents: {}}]
    - say: "Nothing to be seen."
"#;

/// More than any pipe holds: a long speech sign by sign, then many small decisions.
fn torrent() -> String {
    let steps = "    - calls: [{list_agents: {}}]\n".repeat(300);
    let speech = "x".repeat(20_000);
    // The moment before it is for the disk: what is said in a turn that is not safe is held back.
    format!(
        "defaults: {{chunk: 1}}\nagents:\n  main:\n    - hang_ms: 300\n      say: {speech}\n      \
         calls: [{{list_agents: {{}}}}]\n{steps}    - say: finished\n"
    )
}

fn parsed(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_piece(line: &Value) -> bool {
    line["type"] == "message.delta" || line["type"] == "gap"
}

/// Pieces and gaps have the number of the line before them. Returns the lines.
fn assert_in_place(told: Vec<Value>) -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    for line in told {
        if is_piece(&line) {
            let before = lines.last().unwrap_or_else(|| panic!("{line} comes before any line"));
            assert_eq!(line["seq"], before["seq"], "{line}");
        } else {
            lines.push(line);
        }
    }
    assert_numbered(&lines);
    lines
}

/// Told again from the journal: everything but how the run ended and where it was started.
fn assert_exported(folder: &Folder, mut lines: Vec<Value>) {
    let last = lines.pop().unwrap();
    assert_eq!((&last["type"], &last["status"]), (&json!("run.result"), &json!("ok")));
    assert_ne!(lines[0]["cwd"], "");
    lines[0]["cwd"] = json!("");
    assert_eq!(parsed(&folder.text(&["sessions", "export", "s"])), lines);
}

#[test]
fn pieces_make_up_the_message_that_follows() {
    let folder = Folder::new("pieces");
    let model = folder.script("script.yaml", SPEECH);
    let told = parsed(&folder.text(&["run", "go", "-m", &model, "-s", "s", "--json"]));
    let mut heard: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut messages = 0;
    for line in &told {
        let agent = line["agent"]["id"].as_str().unwrap().to_owned();
        match line["type"].as_str().unwrap() {
            "message.delta" => {
                let (text, pieces) = heard.entry(agent).or_default();
                text.push_str(line["text"].as_str().unwrap());
                *pieces += 1;
            }
            // What was cut is not part of what is said afterwards.
            "retry" => {
                let (text, _) = heard.remove(&agent).unwrap_or_default();
                assert_eq!(text, "this is neve", "{line}");
            }
            "message" => {
                let (text, pieces) = heard.remove(&agent).unwrap_or_default();
                assert_eq!(line["text"], text, "{line}");
                assert_eq!(pieces, text.chars().count().div_ceil(3), "{line}");
                messages += 1;
            }
            _ => {}
        }
    }
    assert_eq!((messages, heard.len()), (6, 0), "{heard:?}");
    assert_exported(&folder, assert_in_place(told));
}

#[test]
fn a_slow_reader_misses_pieces_and_no_line_and_nobody_waits_for_it() {
    let folder = Folder::new("slow");
    let model = folder.script("script.yaml", &torrent());
    let mut run = folder.locum(&["run", "go", "-m", &model, "-s", "s", "--json"]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let _watch = Watch::over(run.id(), PATIENCE);
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();

    // Nobody reads on, and the work is done all the same: somebody else watches it.
    let mut logs = folder.locum(&["logs", "main", "-s", "s", "-f", "--json"]);
    let mut logs = logs.stdout(Stdio::piped()).spawn().unwrap();
    let _watch_logs = Watch::over(logs.id(), PATIENCE);
    let mut seen = BufReader::new(logs.stdout.take().unwrap()).lines();
    assert!(seen.any(|line| line.unwrap().contains("\"finished\"")), "the work was not done");
    logs.kill().unwrap();
    logs.wait().unwrap();

    stdout.read_to_string(&mut text).unwrap();
    assert!(run.wait().unwrap().success());
    let told = parsed(&text);
    let gaps: Vec<&Value> = told.iter().filter(|line| line["type"] == "gap").collect();
    assert!(!gaps.is_empty(), "it was never behind: {} lines", told.len());
    assert!(gaps.iter().all(|gap| gap["missed"].as_u64().unwrap() > 0), "{gaps:?}");
    let pieces = told.iter().filter(|line| line["type"] == "message.delta").count();
    assert!(pieces < 20_000, "none of {pieces} was missed");
    let lines = assert_in_place(told);
    assert!(lines.len() > 900, "{}", lines.len());
    assert_exported(&folder, lines);
}

#[test]
fn a_reader_that_leaves_stops_nothing() {
    let folder = Folder::new("leaves");
    let model = folder.script("script.yaml", &torrent());
    for flags in [["--json"].as_slice(), &[]] {
        let session = if flags.is_empty() { "plain" } else { "json" };
        let arguments = ["run", "go", "-m", &model, "-s", session];
        let mut run = folder.locum(&[&arguments[..], flags].concat());
        let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _watch = Watch::over(run.id(), PATIENCE);
        drop(run.stdout.take());
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!stderr(&output).contains("error"), "{}", stderr(&output));
        let lines = parsed(&folder.text(&["sessions", "export", session]));
        let said = lines.iter().filter(|line| line["type"] == "message");
        let said: Vec<&Value> = said.map(|line| &line["text"]).collect();
        assert_eq!((said.len(), said[1]), (2, &json!("finished")), "{session}");
        assert_numbered(&lines);
    }
}
