//! What files were before an agent changed them, and the way back.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use locum_kernel::{AgentId, Config, Definition, Kind, Kit, Program, ProgramInput};
use locum_tools::{Act, Past, Verdict, What, cut_commands, undo};

use crate::Test;
use crate::copies::{git, repository};
use crate::stage::{Stage, allow, one};

pub(crate) const TESTS: &[Test] = &[
    ("all_that_was_changed_is_taken_back", all_that_was_changed_is_taken_back),
    ("what_others_have_changed_since_stays", what_others_have_changed_since_stays),
    ("nothing_is_kept_unasked", nothing_is_kept_unasked),
    ("a_folder_that_became_a_link_is_not_followed", a_folder_that_became_a_link),
    ("without_a_repository_file_tools_are_kept", without_a_repository),
    ("a_program_is_taken_back_too", a_program_is_taken_back_too),
    ("a_change_that_was_cut_is_left", a_change_that_was_cut_is_left),
];

fn with_past(config: &mut Config) {
    config.rules.extend(["exec", "write", "edit", "passthrough"].map(|tool| allow(tool, None)));
    config.definitions.retain(|it| it.name != "worker");
    let kit = Kit { checkpoint: true, ..Kit::default() };
    config.definitions.push(Definition { kit, ..Definition::new("worker", Kind::Agent) });
}

fn play(stage: &Stage, calls: &str) {
    let played = stage.play(&one(calls), with_past);
    let failed = played.of("tool.finished", "main/worker");
    let failed: Vec<_> = failed.iter().filter(|line| line["ok"] == false).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn past(stage: &Stage) -> Past {
    Past::of(&stage.place.data, "test", AgentId(1))
}

/// What became of each file, by its name from the workspace.
fn undone(stage: &Stage, act: Act) -> Vec<String> {
    let root = stage.place.workspace.canonicalize().unwrap();
    let all = undo(&past(stage), act).unwrap();
    all.into_iter()
        .map(|(path, verdict)| {
            let path = path.strip_prefix(&root).unwrap().display();
            match verdict {
                Verdict::Restored => format!("restored {path}"),
                Verdict::Removed => format!("removed {path}"),
                Verdict::AsItWas => format!("same {path}"),
                Verdict::Left(why) => format!("left {path}: {why}"),
            }
        })
        .collect()
}

/// Every file with its mode, as one text.
fn everything(stage: &Stage) -> String {
    let mut found = Vec::new();
    let mut ahead = vec![stage.place.workspace.clone()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let data = entry.metadata().unwrap();
            if data.is_dir() && entry.file_name() != ".git" {
                ahead.push(entry.path());
            } else if data.is_file() {
                let text = fs::read(entry.path()).unwrap();
                let mode = data.permissions().mode() & 0o7777;
                found.push(format!("{} {mode:o} {text:?}", entry.path().display()));
            }
        }
    }
    found.sort();
    found.join("\n")
}

/// A repository with all kinds of files in all kinds of states.
fn workshop() -> Stage {
    let stage = repository();
    fs::create_dir_all(stage.work("deep/er")).unwrap();
    for (name, text) in [("deep/er/b.txt", "b\r\n"), ("run.sh", "#!/bin/sh\n"), ("gone.txt", "g")] {
        fs::write(stage.work(name), text).unwrap();
    }
    fs::write(stage.work("raw.bin"), [0, 159, 146, 150, 13, 10]).unwrap();
    fs::set_permissions(stage.work("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    git(&stage.place.workspace, "add . && git commit -qm second");
    // Not committed, and not known.
    fs::write(stage.work("a.txt"), "mine, not committed\n").unwrap();
    fs::write(stage.work("loose.txt"), "not known\n").unwrap();
    stage
}

fn all_that_was_changed_is_taken_back() {
    let cases = [
        "{read: {path: a.txt}}, {edit: {path: a.txt, edits: [{old: mine, new: theirs}]}}",
        "{write: {path: new/file.txt, content: x}}",
        "{read: {path: deep/er/b.txt}}, {write: {path: deep/../deep/er/b.txt, content: y}}",
        "{exec: {command: \"echo x > a.txt; echo y > loose.txt; echo z > fresh.txt\"}}",
        "{exec: {command: \"rm -r deep gone.txt; chmod 600 run.sh; printf x >> raw.bin\"}}",
        "{exec: {command: \"mv gone.txt there.txt; cp raw.bin run.sh\"}}",
        // One after another, on the same file.
        "{read: {path: a.txt}}, {edit: {path: a.txt, edits: [{old: mine, new: first}]}}, \
         {exec: {command: \"echo second >> a.txt\"}}, {read: {path: a.txt}}, \
         {write: {path: a.txt, content: third}}, {exec: {command: \"rm a.txt\"}}, \
         {write: {path: a.txt, content: fourth}}",
    ];
    for calls in cases {
        let stage = workshop();
        let before = everything(&stage);
        play(&stage, calls);
        let after = everything(&stage);
        assert_ne!(after, before, "{calls}");
        let would = undone(&stage, Act::Say);
        assert_eq!(everything(&stage), after, "only said: {calls}");
        let did = undone(&stage, Act::Do);
        assert_eq!(did, would, "{calls}");
        assert!(did.iter().all(|it| !it.starts_with("left")), "{calls}: {did:?}");
        assert_eq!(everything(&stage), before, "{calls}: {did:?}");
        // Once more there is nothing to do.
        let again = undone(&stage, Act::Do);
        assert!(again.iter().all(|it| it.starts_with("same")), "{calls}: {again:?}");
        assert_eq!(everything(&stage), before);
    }
}

fn what_others_have_changed_since_stays() {
    let stage = workshop();
    play(
        &stage,
        "{read: {path: a.txt}}, {write: {path: a.txt, content: theirs}}, \
         {write: {path: new.txt, content: new}}, {write: {path: other.txt, content: new}}, \
         {exec: {command: \"rm gone.txt; chmod 644 run.sh; echo x > loose.txt\"}}",
    );
    fs::write(stage.work("a.txt"), "mine again\n").unwrap();
    fs::write(stage.work("new.txt"), "mine now\n").unwrap();
    fs::write(stage.work("gone.txt"), "made anew\n").unwrap();
    let expected = [
        "left a.txt: it has been changed since",
        "left gone.txt: it has been changed since",
        "restored loose.txt",
        "left new.txt: it has been changed since",
        "removed other.txt",
        "restored run.sh",
    ];
    assert_eq!(undone(&stage, Act::Do), expected);
    assert_eq!(stage.read("a.txt"), "mine again\n");
    assert_eq!(stage.read("new.txt"), "mine now\n");
    assert_eq!(stage.read("gone.txt"), "made anew\n");
    assert_eq!(stage.read("loose.txt"), "not known\n");
    // Somebody between two changes of the agent.
    let yaml = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: worker, message: go, label: worker}}]
    - calls:
        - exec: {command: "until [ -e one ]; do sleep 0.05; done; echo main > a.txt; touch two"}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - {say: done}
  worker:
    - calls:
        - read: {path: a.txt}
        - write: {path: a.txt, content: first}
        - write: {path: one, content: x}
    - calls: [{exec: {command: "until [ -e two ]; do sleep 0.05; done"}}]
    - calls: [{read: {path: a.txt}}, {write: {path: a.txt, content: second}}]
    - {say: done}
"#;
    let stage = Stage::new();
    fs::write(stage.work("a.txt"), "as it was\n").unwrap();
    stage.play(yaml, with_past);
    let expected = "left a.txt: somebody else has changed it between two changes of this agent";
    assert_eq!(undone(&stage, Act::Do), [expected, "removed one"]);
    assert_eq!(stage.read("a.txt"), "second");
}

fn nothing_is_kept_unasked() {
    let stage = workshop();
    let calls = "{exec: {command: \"echo x > a.txt\"}}, {write: {path: new.txt, content: new}}";
    stage.play(&one(calls), |config| {
        with_past(config);
        config.definitions.iter_mut().for_each(|it| it.kit = Kit::default());
    });
    assert_eq!(stage.read("a.txt"), "x\n");
    assert!(!stage.place.data.join("kept").exists());
    assert!(undone(&stage, Act::Do).is_empty());
}

fn a_folder_that_became_a_link() {
    let stage = workshop();
    play(&stage, "{exec: {command: \"echo x > deep/er/b.txt\"}}");
    let outside = stage.root.join("outside");
    fs::rename(stage.work("deep"), &outside).unwrap();
    symlink(&outside, stage.work("deep")).unwrap();
    let did = undone(&stage, Act::Do);
    assert!(did[0].starts_with("left deep/er/b.txt: the folder it was in"), "{did:?}");
    assert_eq!(fs::read_to_string(outside.join("er/b.txt")).unwrap(), "x\n");
    // And a file that became one.
    let stage = workshop();
    play(&stage, "{exec: {command: \"echo x > a.txt\"}}");
    fs::remove_file(stage.work("a.txt")).unwrap();
    symlink("/etc/hostname", stage.work("a.txt")).unwrap();
    assert_eq!(undone(&stage, Act::Do), ["left a.txt: it is no plain file any more"]);
}

fn without_a_repository() {
    let stage = Stage::new();
    fs::write(stage.work("a.txt"), "as it was\n").unwrap();
    play(
        &stage,
        "{read: {path: a.txt}}, {write: {path: a.txt, content: x}}, \
         {write: {path: b.txt, content: x}}, {exec: {command: \"echo x > c.txt\"}}",
    );
    assert_eq!(undone(&stage, Act::Do), ["restored a.txt", "removed b.txt"]);
    assert_eq!((stage.read("a.txt"), stage.read("c.txt")), ("as it was\n".into(), "x\n".into()));
}

fn a_program_is_taken_back_too() {
    let stage = workshop();
    let before = everything(&stage);
    stage.play(&one("{read: {path: a.txt}}"), |config| {
        with_past(config);
        let worker = config.definitions.iter_mut().find(|it| it.name == "worker").unwrap();
        let command = ["sh", "-c", "echo x > a.txt; rm -r deep; touch new"].map(str::to_owned);
        worker.program = Some(Program { command: command.into(), input: ProgramInput::Stdin });
    });
    assert_ne!(everything(&stage), before);
    undone(&stage, Act::Do);
    assert_eq!(everything(&stage), before);
}

/// The index as a crash leaves it: what is about to happen is known, what came of it is not.
fn a_change_that_was_cut_is_left() {
    let stage = workshop();
    play(
        &stage,
        "{read: {path: a.txt}}, {write: {path: a.txt, content: x}}, {exec: {command: \"true\"}}",
    );
    assert_eq!(cut_commands(&past(&stage)).unwrap(), 0);
    let rows = past(&stage).rows().unwrap();
    let about = rows.iter().filter(|row| matches!(row.what, What::About { .. } | What::Runs));
    let mut text: String = about.map(|row| serde_json::to_string(row).unwrap() + "\n").collect();
    text.push_str("{\"at\":1,\"sess");
    fs::write(stage.place.data.join("kept/test/a1.jsonl"), text).unwrap();
    let did = undone(&stage, Act::Do);
    assert_eq!(did, ["left a.txt: a change of it was cut, and what that left is not known"]);
    assert_eq!(cut_commands(&past(&stage)).unwrap(), 1);
    fs::write(stage.work("a.txt"), "mine, not committed\n").unwrap();
    assert_eq!(undone(&stage, Act::Do), ["same a.txt"]);
}
