//! What commands are kept from, as a session has it and not only as the sandbox could.

use std::fs;
use std::process::Command;

use crate::Test;
use crate::stage::{Played, Stage, allow};

pub(crate) const TESTS: &[Test] = &[
    ("what_agents_are_made_of_is_kept", what_agents_are_made_of_is_kept),
    ("nothing_on_the_way_there_is_kept_too", nothing_on_the_way_there_is_kept_too),
    ("file_tools_make_none_of_it_either", file_tools_make_none_of_it_either),
    ("what_the_machine_keeps_is_hidden", what_the_machine_keeps_is_hidden),
    ("other_names_of_what_is_kept_are_kept", other_names_of_what_is_kept_are_kept),
    ("who_waits_hears_what_is_said", who_waits_hears_what_is_said),
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

/// Where not even the folder is that they would be in, commands may make that folder and all else
/// in it, and nothing of ours stays there.
fn nothing_on_the_way_there_is_kept_too() {
    let bad = "mkdir -p .github/X && echo bad > .github/X/a.md || \
               { rm -rf .github; mkdir -p .github/X && echo bad > .github/X/a.md; } || \
               { mv .github y; mkdir -p .github/X && echo bad > .github/X/a.md; } || \
               { mkdir -p z/X; echo bad > z/X/a.md; mv -T z .github || ln -sT z .github; }";
    let fine = "mkdir -p .github/workflows; echo 1 > .github/workflows/a.yml";
    for (name, before, after) in [("agents", "", ""), ("skills", fine, ""), ("agents", "", fine)] {
        let stage = Stage::new();
        git(&stage, &["init", "-q"]);
        let bad = bad.replace('X', name);
        let line = format!("{before}\n({bad}) 2>/dev/null || echo kept\n{after}");
        let played = ran(&stage, &line);
        assert_eq!(played.results("main"), ["kept\n"], "{line}");
        assert_eq!(stage.work(".github").exists(), !after.is_empty(), "{line}");
        assert!(!stage.work(".github").join(name).exists(), "{line}");
        if !after.is_empty() {
            assert_eq!(stage.read(".github/workflows/a.yml"), "1\n");
        }
    }
}

/// There or not, and by whatever name.
fn file_tools_make_none_of_it_either() {
    let barred = [
        ".github/agents/a.md",
        ".GitHub/Agents/a.md",
        ".github/skills/s/SKILL.md",
        ".github/agents",
        ".github",
        "link/agents/a.md",
        "deep/../.github/agents/a.md",
        ".claude/agents/a.md",
        ".goose/recipes/a.yaml",
        ".agents/skills/s/SKILL.md",
        ".mcp.json",
        ".mcp.json/x",
    ];
    for (path, made) in barred.iter().flat_map(|path| [(path, false), (path, true)]) {
        let stage = Stage::new();
        if made {
            fs::create_dir_all(stage.work(".github/workflows")).unwrap();
        }
        fs::create_dir_all(stage.work("deep")).unwrap();
        std::os::unix::fs::symlink(".github", stage.work("link")).unwrap();
        let calls = format!(
            "{{write: {{path: {path}, content: bad}}}}, \
             {{write: {{path: .github/workflows/a.yml, content: fine}}}}"
        );
        let yaml = format!("agents: {{main: [{{calls: [{calls}]}}, {{say: done}}]}}");
        let played = stage.play(&yaml, |config| config.rules.push(allow("write", None)));
        let told = &played.results("main")[0];
        let why = ["is protected", "is a link", "No such file", "not a folder", "leads"];
        assert!(why.iter().any(|why| told.contains(why)), "{path} {made}: {told}");
        let found = stage.work(path).is_file() || stage.work(".github/agents").exists();
        assert!(!found, "{path} {made}");
        assert_eq!(stage.read(".github/workflows/a.yml"), "fine", "{path} {made}");
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

/// Hard links that were in the workspace before: to our own files and to keys, which nobody reads,
/// and to what a shell runs, which nobody writes. Those of a package store are none of them.
fn other_names_of_what_is_kept_are_kept() {
    let mut stage = Stage::new();
    let home = stage.root.join("home");
    let put = |path: &std::path::Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret\n").unwrap();
    };
    let data = stage.place.data.clone();
    stage.place.home = Some(home.clone());
    stage.place.config = Some(stage.root.join("config/config.toml"));
    let kept = [
        (data.join("journal.db"), "a", "-"),
        (data.join("deep/er/b"), "in/deep/b", "-"),
        (home.join(".ssh/id"), "c.txt", "-"),
        (home.join(".netrc"), ".git/d", "-"),
        (stage.root.join("config/keys"), "node_modules/.e", "-"),
        (home.join(".bashrc"), "dotfiles/bashrc", "r"),
        (stage.root.join("store/package.js"), "node_modules/package.js", "rw"),
        (data.join("worktrees/test/a1/lib.js"), "node_modules/lib.js", "rw"),
    ];
    for (path, name, _) in &kept {
        put(path);
        fs::create_dir_all(stage.work(name).parent().unwrap()).unwrap();
        fs::hard_link(path, stage.work(name)).unwrap();
    }
    let names: Vec<&str> = kept.iter().map(|(_, name, _)| *name).collect();
    let line = format!(
        "mv in out 2>/dev/null && echo moved; for f in {}; do \
         grep -qs secret $f && printf r; (echo bad >> $f) 2>/dev/null && printf w; echo; done",
        names.join(" ")
    );
    let played = ran(&stage, &line);
    let expected: Vec<&str> = kept.iter().map(|(_, _, may)| may.trim_matches('-')).collect();
    let expected = format!("{}\n", expected.join("\n"));
    assert_eq!(played.results("main"), [expected]);
    for (path, name, may) in &kept {
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text == "secret\n", *may != "rw", "{name}: {text}");
    }
}

/// As with a command that is waited for from its start.
fn who_waits_hears_what_is_said() {
    let stage = Stage::new();
    let command = "until [ -e go ]; do sleep 0.01; done; echo first; sleep 0.4; echo last";
    let go = "{write: {path: go, content: x}}";
    let yaml = format!(
        "agents: {{main: [{{calls: [{{exec: {{background: true, command: \"{command}\"}}}}, {go}, \
         {{process: {{action: wait, id: p1}}}}]}}, {{say: done}}]}}"
    );
    let played = stage.play(&yaml, |config| {
        config.rules.extend(["exec", "write", "process"].map(|tool| allow(tool, None)));
    });
    let told = played.results("main");
    assert_eq!(told.last(), Some(&"first\nlast\n"), "{told:?}");
    assert_eq!(played.printed.first().map(String::as_str), Some("first\n"), "{told:?}");
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
