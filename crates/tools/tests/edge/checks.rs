//! Checks of an agent's work, and what its commands may see.

use locum_kernel::{Check, Config, Definition, Kind, Proof};

use crate::Test;
use crate::stage::{Played, Stage, allow};

pub(crate) const TESTS: &[Test] = &[
    ("checks_say_how_they_really_ended", checks_say_how_they_really_ended),
    ("a_check_that_is_too_late_has_failed", a_check_that_is_too_late_has_failed),
    ("what_must_happen_after_a_failure_happens", what_must_happen_after_a_failure_happens),
    ("a_check_is_waited_for", a_check_is_waited_for),
    ("commands_see_what_was_granted", commands_see_what_was_granted),
];

const ONE: &str = r#"
agents:
  main:
    - calls: [{call_recipe: {recipe: worker, message: "do it"}}]
    - {say: "{{last}}"}
  worker:
    - {say: "done it", repeat: true}
"#;

fn check(command: &str) -> Check {
    Check { command: command.into(), subjects: None }
}

fn proof(command: &str, timeout_s: u64) -> Proof {
    Proof {
        checks: vec![check(command)],
        on_failure: None,
        check_timeout_s: timeout_s,
        on_failure_timeout_s: timeout_s,
        tries_max: 0,
    }
}

fn with(config: &mut Config, proof: Proof) {
    config.rules.push(allow("exec", None));
    config.definitions.retain(|it| it.name != "worker");
    let worker = Definition { proof: Some(proof), ..Definition::new("worker", Kind::Agent) };
    config.definitions.push(worker);
}

fn played(stage: &Stage, proof: Proof) -> Played {
    stage.play(ONE, |config| with(config, proof))
}

fn checks_say_how_they_really_ended() {
    let cases = [
        ("echo fine", "done", "done it", 0),
        ("echo no; exit 7", "failed", "The check `echo no; exit 7` ended with 7.", 7),
        ("no-such-command", "failed", "The check `no-such-command` ended with 127.", 127),
    ];
    for (command, outcome, words, exit) in cases {
        let stage = Stage::new();
        let played = played(&stage, proof(command, 60));
        let end = played.end("main/worker");
        assert_eq!(end["outcome"], outcome, "{command}");
        assert!(end["result"].as_str().unwrap().contains(words), "{command}: {end}");
        assert_eq!(end["receipt"]["commands"][0]["exit"], exit, "{command}");
        assert_eq!(end["receipt"]["commands"][0]["argv"], command);
    }
}

fn a_check_that_is_too_late_has_failed() {
    let stage = Stage::new();
    let played = played(&stage, proof("echo begun; sleep 1000", 1));
    let end = played.end("main/worker");
    let said = end["result"].as_str().unwrap();
    let words = "The check `echo begun; sleep 1000` came to nothing: timed out after";
    assert!(said.contains(words), "{said}");
    assert_eq!(end["receipt"]["commands"][0]["exit"], -1, "it ran, and has no exit code");
    assert!(played.results("main/worker")[0].contains("begun"));
}

fn what_must_happen_after_a_failure_happens() {
    let stage = Stage::new();
    let after = Some(check("echo cleaned > cleaned"));
    let proof = Proof { on_failure: after, tries_max: 1, ..proof("false", 60) };
    let played = played(&stage, proof);
    assert_eq!(stage.read("cleaned"), "cleaned\n");
    // After the last failure there is nothing to prepare for.
    assert_eq!(played.end("main/worker")["receipt"]["commands"].as_array().unwrap().len(), 3);
}

/// Longer than a command of a model, which would go on in the background by then.
fn a_check_is_waited_for() {
    let stage = Stage::new();
    let played = played(&stage, proof("sleep 31; exit 5", 60));
    let end = played.end("main/worker");
    assert_eq!(end["receipt"]["commands"][0]["exit"], 5, "{end}");
}

/// Of our own variables, which has secrets: those that are always harmless, and those granted.
fn commands_see_what_was_granted() {
    let yaml = r#"
agents:
  main:
    - calls: [{exec: {command: "env | grep EDGE_ | sort; env | grep -c ^PATH="}}]
    - {say: "{{last}}"}
"#;
    let cases: [(&[&str], &str); 4] = [
        (&[], "1\n"),
        (&["EDGE_API_KEY"], "EDGE_API_KEY=granted\n1\n"),
        (&["EDGE_NOT_SET"], "1\n"),
        (
            &["EDGE_API_KEY", "EDGE_SECRET_TOKEN"],
            "EDGE_API_KEY=granted\nEDGE_SECRET_TOKEN=hush\n1\n",
        ),
    ];
    for (granted, expected) in cases {
        let stage = Stage::new();
        let played = stage.play(yaml, |config| {
            config.rules.push(allow("exec", None));
            config.main.kit.env = granted.iter().map(|&name| name.to_owned()).collect();
        });
        assert_eq!(played.results("main"), [expected], "{granted:?}");
    }
}
