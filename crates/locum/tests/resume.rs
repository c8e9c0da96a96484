//! What of a run holds in the next one: its limits, its script and its folder, but nothing that
//! was allowed to it.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "others use the rest")]
mod support;

use std::fs;

use support::{Act, Folder, converse};

const PUBLISH: &str = r#"
tools:
  publish: {class: write, says: "published", log: effects.log}
agents:
  main:
    - say: "Shall I?"
    - calls: [{publish: {what: "it"}}]
    - say: "Result: {{last}}"
"#;

fn text(told: &support::Told) -> String {
    told.result()["text"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_allowed_holds_for_one_run_and_script_and_folder_are_found_again() {
    let folder = Folder::new("resume-rules");
    fs::write(folder.0.join("p.yaml"), PUBLISH).unwrap();
    fs::write(folder.0.join("here.txt"), "").unwrap();
    let first = ["run", "ask", "-s", "s", "-m", "script:p.yaml", "--mode", "auto"];
    let first = [first.as_slice(), &["--allow", "publish"]].concat();
    let told = converse(&folder, &first, |_| Act::Nothing);
    assert_eq!(told.exit, Some(0), "{}", told.result());

    // From elsewhere, with nothing said again.
    let elsewhere = folder.0.join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let mut command = folder.locum(&["run", "yes", "--resume", "s", "--json"]);
    let output = command.current_dir(&elsewhere).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let last = out.lines().last().unwrap();
    assert!(last.contains("Result: "), "{last}");
    assert_eq!(output.status.code(), Some(3), "{last}");
    assert!(!folder.0.join("effects.log").exists(), "what nobody allowed ran");
    let started = out.lines().next().unwrap();
    let started: serde_json::Value = serde_json::from_str(started).unwrap();
    assert_eq!(started["mode"], "ask");
    let cwd = fs::canonicalize(&folder.0).unwrap();
    assert_eq!(started["cwd"], cwd.display().to_string());
}

#[test]
fn a_limit_is_kept_and_can_be_raised() {
    let folder = Folder::new("resume-limits");
    let loops = "agents:\n  main:\n    - calls: [{list_agents: {}}]\n      repeat: true\n";
    fs::write(folder.0.join("l.yaml"), loops).unwrap();
    let first = ["run", "go", "-s", "s", "-m", "script:l.yaml", "--max-turns", "2"];
    let told = converse(&folder, &first, |_| Act::Nothing);
    assert_eq!((told.exit, text(&told).as_str()), (Some(5), "Stopped: turn limit 2/2."));
    let again = converse(&folder, &["run", "more", "--resume", "s"], |_| Act::Nothing);
    assert_eq!((again.exit, text(&again).as_str()), (Some(5), "Stopped: turn limit 2/2."));
    let raised = ["run", "more", "--resume", "s", "--max-turns", "4"];
    let raised = converse(&folder, &raised, |_| Act::Nothing);
    assert_eq!((raised.exit, text(&raised).as_str()), (Some(5), "Stopped: turn limit 4/4."));
}
