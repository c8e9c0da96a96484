//! What commands are kept from, as a session has it and not only as the sandbox could.

use std::fs;
use std::process::Command;

use crate::Test;
use crate::stage::{Played, Stage, allow};

pub(crate) const TESTS: &[Test] = &[
    ("what_agents_are_made_of_is_kept", what_agents_are_made_of_is_kept),
    ("what_the_machine_keeps_is_hidden", what_the_machine_keeps_is_hidden),
    ("what_process_does_not_know_is_told", what_process_does_not_know_is_told),
];

/// One command.
fn ran(stage: &Stage, command: &str) -> Played {
    let command = serde_json::to_string(command).unwrap();
    let yaml = format!(
        "agents:\n  main:\n    - calls: [{{exec: {{command: {command}}}}}]\n    - say: done\n"
    );
    stage.play(&yaml, |config| config.rules.push(allow("exec", None)))
}

fn git(stage: &Stage, words: &[&str]) -> String {
    let mut command = Command::new("git");
    let done = command.args(words).current_dir(&stage.place.workspace).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// There or not: who could write here would write agents. Nothing is left behind, and a repository
/// looks as clean to the command as it is.
fn what_agents_are_made_of_is_kept() {
    #[rustfmt::skip]
    let absent = [
        ".locum", ".claude", ".agents", ".goose", ".opencode", ".codex", ".gemini", ".mcp.json",
        ".github/agents", ".github/skills",
    ];
    let there = [".claude", ".github/agents"];
    for (name, made) in absent.map(|it| (it, false)).into_iter().chain(there.map(|it| (it, true))) {
        let stage = Stage::new();
        git(&stage, &["init", "-q"]);
        fs::create_dir_all(stage.work(".github/workflows")).unwrap();
        if made {
            fs::create_dir_all(stage.work(name)).unwrap();
        }
        let writes = format!(
            "git status --short; (echo bad > {name} || mkdir -p {name}/agents && \
             echo bad > {name}/agents/a.md || mv {name} away) 2>/dev/null || echo kept; touch fine"
        );
        let played = ran(&stage, &writes);
        assert_eq!(played.results("main"), ["kept\n"], "{name} {made}");
        assert_eq!(stage.work(name).exists(), made, "{name}");
        assert!(!stage.work(name).join("agents").exists());
        assert_eq!(git(&stage, &["status", "--short"]), "?? fine\n", "{name}");
        // A workflow is nothing that agents are made of.
        ran(&stage, "echo 1 > .github/workflows/a.yml");
        assert_eq!(stage.read(".github/workflows/a.yml"), "1\n");
    }
}

/// Only root could read them at all, so only root can tell.
fn what_the_machine_keeps_is_hidden() {
    let readable = |path: &&&str| fs::read(path).is_ok_and(|text| !text.is_empty());
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"].iter().filter(readable) {
        let played = ran(&Stage::new(), &format!("head -c 1 {path} 2>/dev/null | wc -c"));
        assert_eq!(played.results("main"), ["0\n"], "{path}");
    }
}

fn what_process_does_not_know_is_told() {
    let calls = "{process: {action: bogus}}, {process: {action: log}}";
    let yaml = format!("agents: {{main: [{{calls: [{calls}]}}, {{say: done}}]}}");
    let played = Stage::new().play(&yaml, |config| config.rules.push(allow("process", None)));
    let told = [
        "process does not know \"bogus\": `action` is list, log, write, wait or kill",
        "which one? `id` is missing; process list",
    ];
    assert_eq!(played.results("main"), told);
}
