//! What is allowed for the project holds in later sessions of the same folder and nowhere else,
//! however it was allowed and whenever the process died; it can be read, and taken back.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Act, Folder, Running, converse, stderr};

fn script(folder: &Folder, command: &str) -> String {
    let script = json!({
        "tools": { "exec": { "class": "exec", "says": "ran", "log": "effects.log" } },
        "agents": { "main": [
            { "calls": [{ "exec": { "command": command } }] },
            { "say": "done" },
        ] },
    });
    folder.script("script.yaml", &script.to_string())
}

fn allow_all(scope: &str) -> impl FnMut(&Value) -> Act {
    move |line| {
        if line["type"] != "ask.opened" {
            return Act::Nothing;
        }
        let id = &line["id"];
        Act::Say(json!({ "type": "decision", "id": id, "decision": "allow", "scope": scope }))
    }
}

/// Whether it runs with nobody there.
fn is_free(folder: &Folder, command: &str, more: &[&str]) -> bool {
    let model = script(folder, command);
    let run = [&["run", "go", "-m", &model, "--approvals", "deny"], more].concat();
    folder.output(&run).status.code() == Some(0)
}

fn kept_files(folder: &Folder) -> Vec<PathBuf> {
    let files =
        fs::read_dir(folder.data().join("rules")).map(|it| it.flatten().map(|it| it.path()));
    let files = files.into_iter().flatten();
    files.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect()
}

fn rules(folder: &Folder, more: &[&str]) -> Vec<(String, String)> {
    let listed = folder.json(&[&["rules", "list"], more].concat());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let listed = listed.as_array().unwrap().iter();
    listed.map(|it| (text(&it["from"]), text(&it["rule"]))).skip(4).collect()
}

#[test]
fn what_is_allowed_for_the_project_holds_in_its_folder() {
    let folder = Folder::new("kept");
    let elsewhere = folder.0.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let elsewhere = ["-C", elsewhere.to_str().unwrap()];
    let model = script(&folder, "cargo test");
    assert!(!is_free(&folder, "cargo test", &[]));
    let run = ["run", "go", "-m", &model, "--approvals", "stdio"];
    assert_eq!(converse(&folder, &run, allow_all("agent")).exit, Some(0));
    assert!(kept_files(&folder).is_empty() && !is_free(&folder, "cargo test", &[]));

    assert_eq!(converse(&folder, &run, allow_all("project")).exit, Some(0));
    let file = kept_files(&folder).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("rule = 'allow exec \"cargo test\"'"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = ("kept for this folder".to_owned(), "allow exec \"cargo test\"".to_owned());
    assert_eq!(rules(&folder, &[]), std::slice::from_ref(&kept));
    assert_eq!(rules(&folder, &elsewhere), []);
    assert!(is_free(&folder, "cargo test", &[]));
    assert!(!is_free(&folder, "cargo test", &elsewhere));
    assert!(!is_free(&folder, "cargo test; ls", &[]));
    assert!(!is_free(&folder, "cargo test", &["--deny", "exec \"cargo *\""]));
    assert!(!is_free(&folder, "cargo test", &["--ask", "exec \"cargo *\""]));
    assert_eq!(folder.output(&["rules", "test", "cargo test"]).status.code(), Some(0));
    // Asked again in the same words: a set has it once.
    let again = [&run[..], &["--ask", "exec"]].concat();
    assert_eq!(converse(&folder, &again, allow_all("project")).exit, Some(0));
    let rows = fs::read_to_string(&file).unwrap().matches("[[rules]]").count();
    assert_eq!(rows, 2, "one row for each time it was allowed");
    folder.text(&["rules", "forget", "5"]);
    assert_eq!(rules(&folder, &[]), []);
    assert!(!is_free(&folder, "cargo test", &[]));
}

/// From another terminal, beside a run and without one; then the session goes on.
#[test]
fn approve_keeps_it_whoever_holds_the_session() {
    let model = |folder: &Folder| script(folder, "make");
    for holder in ["park", "stdio"] {
        let folder = Folder::new(&format!("kept-approve-{holder}"));
        let run = ["run", "go", "-m", &model(&folder), "-s", "it", "--approvals", holder];
        let mut running = Running::start(&folder, &run);
        let id = running.until_type("ask.opened")["id"].as_str().unwrap().to_owned();
        let running = if holder == "park" {
            assert_eq!(running.end().exit, Some(10));
            None
        } else {
            Some(running)
        };
        let told = folder.text(&["approve", &id, "--scope", "project"]);
        assert!(told.contains("kept for this folder: allow exec \"make\""), "{told}");
        assert_eq!(rules(&folder, &[]).len(), 1);
        match running {
            Some(running) => assert_eq!(running.end().exit, Some(0)),
            None => assert_eq!(folder.output(&["run", "--resume", "it"]).status.code(), Some(0)),
        }
        assert!(is_free(&folder, "make", &[]));
        assert_eq!(rules(&folder, &[]).len(), 1);
    }
}

/// Killed right after the grant, before anything was kept: the session still knows.
#[test]
fn a_grant_outlives_a_death_before_it_was_kept() {
    let folder = Folder::new("kept-death");
    let model = script(&folder, "make");
    let run = ["run", "go", "-m", &model, "-s", "it", "--approvals", "stdio"];
    let told = converse(&folder, &run, allow_all("project"));
    assert_eq!(told.exit, Some(0), "{}", told.stderr);
    let file = kept_files(&folder).remove(0);
    fs::remove_file(&file).unwrap();
    assert!(!is_free(&folder, "make", &[]));
    let again = folder.output(&["run", "and again", "-s", "it"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(rules(&folder, &[]).len(), 1);
    // Forgotten, it is not brought back by the session it came from.
    let told = folder.text(&["rules", "forget", "5"]);
    assert!(told.ends_with("\nit asks again\n"), "{told}");
    folder.output(&["run", "once more", "-s", "it"]);
    assert_eq!(rules(&folder, &[]), []);
    assert_eq!(rules(&folder, &["-s", "it"]), []);
}

/// Both in the run that was granted it, parked or under way, and in one that began with the rule.
#[test]
fn what_is_forgotten_is_asked_again_in_sessions_that_go_on() {
    let exec = json!({ "calls": [{ "exec": { "command": "make" } }] });
    let wait = json!({ "calls": [{ "ask_user": { "question": "and now?" } }] });
    let long = json!({
        "tools": { "exec": { "class": "exec", "says": "ran", "log": "effects.log" } },
        "agents": { "main": [exec, exec, wait, exec, { "say": "done" }] },
    });
    let is_about = |kind: &'static str| {
        move |line: &Value| line["type"] == "ask.opened" && line["kind"] == kind
    };
    for case in ["granted", "parked", "ruled"] {
        let folder = Folder::new(&format!("kept-revoked-{case}"));
        let model = folder.script("long.yaml", &long.to_string());
        if case == "ruled" {
            let run = ["run", "go", "-m", &script(&folder, "make"), "--approvals", "stdio"];
            assert_eq!(converse(&folder, &run, allow_all("project")).exit, Some(0));
        }
        let approvals = if case == "parked" { "park" } else { "stdio" };
        let mut running = Running::start(
            &folder,
            &["run", "go", "-m", &model, "-s", "it", "--approvals", approvals],
        );
        let stop = |running: Running| {
            if case != "parked" {
                return Some(running);
            }
            assert_eq!(running.end().exit, Some(10));
            None
        };
        let resume = || Running::start(&folder, &["run", "--resume", "it", "--approvals", "park"]);
        if case != "ruled" {
            let asked = running.until(is_about("approval"));
            let stopped = stop(running);
            folder.text(&["approve", asked["id"].as_str().unwrap(), "--scope", "project"]);
            running = stopped.unwrap_or_else(resume);
        }
        // The second of the same was not asked.
        let question = running.until(is_about("question"));
        let stopped = stop(running);
        let told = folder.text(&["rules", "forget", "5"]);
        assert!(told.contains("\nit asks again\n"), "{case}: {told}");
        folder.text(&["answer", question["id"].as_str().unwrap(), "go on"]);
        stopped.unwrap_or_else(resume).until(is_about("approval"));
        assert_eq!(rules(&folder, &[]), [], "{case}");
    }
}

#[test]
fn what_no_rule_says_is_not_kept_and_what_is_broken_is_told() {
    let folder = Folder::new("kept-not");
    let model = script(&folder, "ls *.rs");
    let run = ["run", "go", "-m", &model, "-s", "it", "--approvals", "park"];
    let mut running = Running::start(&folder, &run);
    let id = running.until_type("ask.opened")["id"].as_str().unwrap().to_owned();
    running.end();
    let told = folder.text(&["approve", &id, "--scope", "project"]);
    let expected = "holds for this session only, because a rule with its * or ? would allow more";
    assert!(told.contains(expected), "{told}");
    let run = ["run", "go", "-m", &model, "--approvals", "stdio"];
    let told = converse(&folder, &run, allow_all("project"));
    assert!(told.stderr.contains(expected), "{}", told.stderr);
    assert!(kept_files(&folder).is_empty());

    let config = "rules = [\n  'allow exec \"cargo *\"',\n  \
                  { rule = 'deny exec \"rm *\"', match = [\"rm x\"], not_match = [\"ls\"] },\n]\n";
    fs::create_dir_all(folder.0.join("locum")).unwrap();
    let file = folder.write("locum/config.toml", config);
    assert_eq!(folder.text(&["rules", "check"]), "2 rules and 2 examples, all good\n");
    let listed = folder.text(&["rules", "list"]);
    assert!(listed.contains(&format!("configuration: {}:3", file.display())), "{listed}");
    folder.refused(&["rules", "forget", "5"], 2, "E412");
    folder.refused(&["rules", "forget", "0"], 2, "E412");
    folder.refused(&["rules", "forget", "99"], 2, "E412");
    folder.write("locum/config.toml", &config.replace("rm x", "rmdir x"));
    let told = folder.refused(&["rules", "check"], 2, "E401");
    assert!(told.contains("config.toml:3: "), "{told}");
    folder.write("locum/config.toml", "rules = [\n'deny exce \"rm *\"']\n");
    let told = folder.refused(&["rules", "check"], 2, "E401");
    assert!(told.contains("config.toml:2: there is no tool \"exce\""), "{told}");
    folder.write("locum/config.toml", "");

    let model = script(&folder, "make");
    let run = ["run", "go", "-m", &model, "--approvals", "stdio"];
    converse(&folder, &run, allow_all("project"));
    let file = kept_files(&folder).remove(0);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("allow", "permit")).unwrap();
    for command in [&["run", "go", "-m", &model][..], &["rules", "list"], &["rules", "check"]] {
        folder.refused(command, 2, "E401");
    }
}
