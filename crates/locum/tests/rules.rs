//! Rules in the real program: shell lines of a model are read before they are judged, lines that
//! a person changes are read again, and `locum rules test` says beforehand what will be said.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use serde_json::{Value, json};
use support::{Folder, Running, stderr};

const RULES: [&str; 6] =
    ["--allow", "exec \"cargo *\"", "--allow", "exec \"git status:*\"", "--deny", "exec \"rm *\""];

/// A line, what the judge says in mode ask with the rules above, and what it says why.
const CASES: &[(&str, &str, &str)] = &[
    ("cargo test", "allow", "every part is allowed by a rule"),
    ("cargo test && git status", "allow", "every part is allowed by a rule"),
    ("timeout 60 cargo test 2>&1", "allow", "every part is allowed by a rule"),
    ("cargo test | tee log", "ask", "exec needs approval: no rule allows \"tee log\""),
    ("cargo test > log", "ask", "exec needs approval: no rule allows \"> log\""),
    ("PATH=. cargo test", "ask", "cannot tell whether this is denied: deny exec \"rm *\""),
    ("cargo test; sudo rm -rf x", "deny", "denied by rule: deny exec \"rm *\""),
    ("sh -c 'echo $(rm x)'", "deny", "denied by rule: deny exec \"rm *\""),
];

#[test]
fn rules_test_says_what_will_be_said() {
    let folder = Folder::new("rules-test");
    for (line, verdict, because) in CASES {
        let test = [&["rules", "test", line], RULES.as_slice(), &["--json"]].concat();
        let output = folder.output(&test);
        let exit = if *verdict == "allow" { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(exit), "{line}: {}", stderr(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&told["verdict"], &told["because"]),
            (&json!(verdict), &json!(because)),
            "{line}"
        );
    }
    let words = folder.output(&["rules", "test", "A=1 ls; rm x", "--deny", "exec \"rm *\""]);
    assert_eq!(
        String::from_utf8(words.stdout).unwrap(),
        "deny: denied by rule: deny exec \"rm *\"\n  \
         cannot tell what this runs: it sets A\n  \
         ls     no rule speaks of it\n  \
         rm x   deny exec \"rm *\"\n"
    );
    let modes = [("plan", 3), ("auto", 0), ("edits", 3)];
    for (mode, exit) in modes {
        let output = folder.output(&["rules", "test", "ls", "--mode", mode]);
        assert_eq!(output.status.code(), Some(exit), "{mode}");
    }
    let mine = ["--allow", "exec \"ls\" agent=scout"];
    for (agent, exit) in [("scout", 0), ("main", 3)] {
        let output =
            folder.output(&[&["rules", "test", "ls", "--agent", agent], mine.as_slice()].concat());
        assert_eq!(output.status.code(), Some(exit), "{agent}");
    }
    let path = ["rules", "test", "src/../x", "--tool", "write", "--allow", "write \"src/*\""];
    assert_eq!(folder.output(&path).status.code(), Some(3));
    folder.refused(&["rules", "test", "ls", "--tool", "no"], 2, "E410");
    folder.refused(&["rules", "test", "ls", "--allow", "exec ls"], 2, "E100");
}

/// What an agent's definition forbids and what the mode forbids, no rule allows.
#[test]
fn rules_test_knows_what_an_agent_may_do() {
    let folder = Folder::new("rules-agent");
    std::fs::create_dir_all(folder.0.join("home/.claude/agents")).unwrap();
    folder.write("home/.claude/agents/git.md", "---\ntools: Bash(git log:*), Read\n---\nLook.\n");
    folder.write("home/.claude/agents/asky.md", "---\npermissionMode: ask\n---\nAsk.\n");
    let cases: [(&[&str], u8, &str); 8] = [
        (&["make", "--agent", "asky"], 3, "ask: exec needs approval"),
        (
            &["x", "--tool", "write", "--agent", "explorer"],
            3,
            "deny: write is beyond what explorer",
        ),
        (&["x", "--tool", "read", "--agent", "explorer"], 0, "allow: "),
        (&["git log -1", "--agent", "git"], 0, "allow: "),
        (&["git push", "--agent", "git"], 3, "deny: git may only run exec \"git log"),
        (&["x", "--tool", "write", "--agent", "git"], 3, "deny: write is beyond what git may do"),
        (&["x", "--tool", "write", "--agent", "nobody"], 0, "allow: "),
        (&["ls", "--mode", "plan", "--allow", "exec \"ls\""], 3, "deny: "),
    ];
    for (words, exit, told) in cases {
        let auto: &[&str] = if words.contains(&"plan") { &[] } else { &["--mode", "auto"] };
        let output = folder.output(&[&["rules", "test"], words, auto].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(exit.into()), "{words:?}: {said}");
        assert!(said.starts_with(told), "{words:?}: {said}");
        let is_unknown = stderr(&output).contains("there is no nobody here");
        assert_eq!(is_unknown, words.contains(&"nobody"), "{words:?}: {}", stderr(&output));
    }
}

/// A rule that names no tool would be believed to hold.
#[test]
fn a_mistyped_rule_ends_the_run_before_it_begins() {
    let folder = Folder::new("rules-typo");
    let model = folder.script("s.yaml", "agents: {main: [{say: done}]}");
    let run = ["run", "go", "-m", &model];
    let told = folder.refused(&[&run[..], &["--deny", "exce \"rm *\""]].concat(), 2, "E410");
    assert!(told.contains("no tool \"exce\"; did you mean exec?"), "{told}");
    let file = folder.write("c.toml", "rules = [\n  'deny exce \"rm *\"',\n]\n");
    let config = ["--config", file.to_str().unwrap()];
    let told = folder.refused(&[&config[..], &run[..]].concat(), 2, "E401");
    assert!(told.contains("c.toml:2: there is no tool \"exce\""), "{told}");
    assert_eq!(folder.output(&["check", "c.toml"]).status.code(), Some(2));
}

/// What runs is what `rules test` says would run.
#[test]
fn lines_of_a_model_are_read_before_they_are_judged() {
    let folder = Folder::new("rules-run");
    let calls: Vec<Value> =
        CASES.iter().map(|(line, ..)| json!({ "exec": { "command": line } })).collect();
    let script = json!({
        "tools": { "exec": { "class": "exec", "says": "ran", "log": "effects.log" } },
        "agents": { "main": [{ "calls": calls }, { "say": "done" }] },
    });
    let model = folder.script("script.yaml", &script.to_string());
    let run = [&["run", "go", "-m", &model, "--approvals", "deny"], RULES.as_slice()].concat();
    let _ = folder.output(&run);
    let allowed = CASES.iter().filter(|(_, verdict, _)| *verdict == "allow");
    let expected: Vec<&str> = allowed.map(|(line, ..)| *line).collect();
    assert_eq!(ran(&folder), expected);
}

fn ran(folder: &Folder) -> Vec<String> {
    let log = folder.read("effects.log");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.map(|line| line["arguments"]["command"].as_str().expect("a line").to_owned()).collect()
}

/// A deny holds for what a person writes instead, however it is dressed; the ask stays open.
#[test]
fn lines_that_a_person_changes_are_read_again() {
    let folder = Folder::new("rules-edit");
    let script = json!({
        "tools": { "exec": { "class": "exec", "says": "ran", "log": "effects.log" } },
        "agents": { "main": [{ "calls": [{ "exec": { "command": "make" } }] }, { "say": "done" }] },
    });
    let model = folder.script("script.yaml", &script.to_string());
    let run = ["run", "go", "-m", &model, "--approvals", "stdio", "--deny", "exec \"rm *\""];
    let mut running = Running::start(&folder, &run);
    let id = running.until_type("ask.opened")["id"].clone();
    let decide = |command: &str| {
        let input = json!({ "command": command });
        json!({ "type": "decision", "id": id, "decision": "allow", "input": input })
    };
    // No mark of a shell is in it: only the parser knows that this is `rm`.
    running.say(&decide("sudo -n nice rm x"));
    running.say(&decide("make -n"));
    let told = running.end();
    assert_eq!(told.exit, Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("denied by rule: deny exec"), "{}", told.stderr);
    assert_eq!(ran(&folder), ["make -n"]);
}

#[test]
fn what_is_told_of_a_denied_line_moves_no_cursor() {
    let folder = Folder::new("rules-signs");
    let line = "make \u{1b}[31m\u{202e}x";
    let script = json!({
        "agents": { "main": [{ "calls": [{ "exec": { "command": line } }] }, { "say": "done" }] },
    });
    let model = folder.script("script.yaml", &script.to_string());
    let output = folder.output(&["run", "go", "-m", &model]);
    let told = stderr(&output);
    assert!(told.contains("error[E130]"), "{told:?}");
    assert!(!told.contains(['\u{1b}', '\u{202e}']) && told.contains("make"), "{told:?}");
}

/// With nobody there, a loop is told so instead of going on for ever.
#[test]
fn the_same_call_again_and_again_is_stopped() {
    let folder = Folder::new("rules-loop");
    let script = "tools: {exec: {class: exec, says: no, fails: true, log: effects.log}}\n\
                  agents: {main: [{calls: [{exec: {command: make}}], repeat: true}]}";
    let model = folder.script("script.yaml", script);
    let run = ["run", "go", "-m", &model, "--mode", "auto", "--approvals", "deny"];
    let output = folder.output(&run);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(ran(&folder), ["make", "make"]);
    // Denied by a rule it is the same loop, though nothing ever runs.
    let output = folder.output(&[&run[..], &["--deny", "exec", "--json"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let turns = support::lines(&output).iter().filter(|it| it["type"] == "turn.finished").count();
    assert_eq!(turns, 5);
    assert_eq!(ran(&folder).len(), 2);
}
