//! How runs end: one table from a script and its flags to the exit code, the status of the last
//! line and the code of the complaint, which all say the same. Also the flags that decide where
//! the answer goes.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Act, Folder, Running, converse, output_of, signal, stderr};

const OK: &str = "agents: {main: [{say: \"done: {{user}}\", repeat: true}]}";

const ASKS: &str = "tools: {mend: {class: write, says: mended, log: effects.log}}\n\
                    agents: {main: [{calls: [{mend: {path: a.txt}}]}, {say: \"{{last}}\"}]}";

const QUESTION: &str = "agents: {main: [{calls: [{ask_user: {question: \"Which?\"}}]}, \
                        {say: \"so: {{last}}\"}]}";

/// It never comes to an end by itself.
const LOOP: &str = "agents: {main: [{calls: [{list_agents: {}}], repeat: true}]}";

const HANG: &str = "agents: {main: [{say: begun, calls: [{list_agents: {}}]}, \
                    {hang_ms: 600000, say: never}]}";

const REFUSED: &str = "agents: {main: [{error: {status: 401}}]}";

const SPAWNS: &str = r#"
agents:
  main:
    - calls:
        - spawn_agent: {agent: worker, message: one}
        - spawn_agent: {agent: worker, message: two}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - {say: "that is all", repeat: true}
  worker: [{say: worked}]
"#;

/// Main does not wait for the worker, whose model refuses.
const LEFT_BEHIND: &str = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: worker, message: one}}]
    - {say: "I am done.", repeat: true}
  worker: [{error: {status: 400}}, {say: worked}]
"#;

/// A script and its flags, then how it ends.
type Case = (&'static str, &'static [&'static str], (i32, &'static str), Option<&'static str>);

const CASES: &[Case] = &[
    (OK, &[], (0, "ok"), None),
    (OK, &["--approvals", "park"], (0, "ok"), None),
    (OK, &["--approvals", "stdio"], (0, "ok"), None),
    // A price nobody knows is never more than a limit: money binds only where there is a price.
    (OK, &["--max-cost", "0.01"], (0, "ok"), None),
    (ASKS, &[], (3, "denied"), Some("E130")),
    (ASKS, &["--approvals", "deny"], (3, "denied"), Some("E130")),
    // Standard input is closed: nobody is there.
    (ASKS, &["--approvals", "stdio"], (3, "denied"), Some("E130")),
    (ASKS, &["--approvals", "park"], (10, "parked"), Some("E170")),
    (ASKS, &["--allow", "mend"], (0, "ok"), None),
    (ASKS, &["--allow", "mend agent=main"], (0, "ok"), None),
    (ASKS, &["--allow", "mend agent=other"], (3, "denied"), Some("E130")),
    (ASKS, &["--allow", "mend", "--deny", "mend"], (3, "denied"), Some("E130")),
    (ASKS, &["--deny", "mend", "--approvals", "park"], (3, "denied"), Some("E130")),
    (ASKS, &["--allow", "mend", "--deny", "mend agent=other"], (0, "ok"), None),
    (ASKS, &["--mode", "edits"], (0, "ok"), None),
    (ASKS, &["--mode", "auto"], (0, "ok"), None),
    (ASKS, &["--mode", "auto", "--deny", "mend"], (3, "denied"), Some("E130")),
    (ASKS, &["--mode", "plan"], (3, "denied"), Some("E130")),
    (QUESTION, &[], (4, "needs_input"), Some("E140")),
    (QUESTION, &["--approvals", "stdio"], (4, "needs_input"), Some("E140")),
    (QUESTION, &["--approvals", "park"], (10, "parked"), Some("E170")),
    (LOOP, &["--max-turns", "3"], (5, "limit"), Some("E150")),
    (HANG, &["--timeout", "300ms"], (5, "limit"), Some("E150")),
    (SPAWNS, &[], (0, "ok"), None),
    (SPAWNS, &["--max-agents", "1"], (5, "limit"), Some("E150")),
    (REFUSED, &[], (6, "error"), Some("E160")),
    (LEFT_BEHIND, &[], (10, "parked"), Some("E170")),
    (LEFT_BEHIND, &["--approvals", "park"], (10, "parked"), Some("E170")),
];

#[test]
fn exit_code_status_and_complaint_say_the_same() {
    let mut wrong = Vec::new();
    for (at, (script, flags, (exit, status), code)) in CASES.iter().enumerate() {
        let folder = Folder::new(&format!("exit-{at}"));
        let model = folder.script("script.yaml", script);
        let mut arguments = vec!["run", "go", "-m", &model, "-s", "s"];
        arguments.extend(*flags);
        let mut running = Running::start(&folder, &arguments);
        running.leave();
        let told = running.end();
        let result = told.result();
        let complaint = told.stderr.get(..12).map(|it| it[6..10].to_owned());
        let found = (told.exit, result["status"].as_str().unwrap(), complaint.as_deref());
        if found != (Some(*exit), status, *code) {
            wrong.push(format!("{script} {flags:?}: {found:?} {result}"));
            continue;
        }
        assert_eq!(result["exit"], *exit, "{flags:?}");
        let mended = folder.read("effects.log").lines().count();
        assert_eq!(mended == 1, *script == ASKS && *exit == 0, "{flags:?}: {mended}");
        let denials = result["denials"].as_array().unwrap();
        assert_eq!(!denials.is_empty(), *exit == 3, "{flags:?}: {denials:?}");
        if *exit != 0 {
            let resume = result["resume"].as_str().unwrap();
            assert!(resume.starts_with("locum run ") && resume.ends_with("--resume s"), "{resume}");
            // Where nobody can be asked, what is said to be done parks instead of denying again.
            let done =
                told.stderr.lines().any(|line| line.starts_with("do: ") && line.contains(resume));
            assert!(done, "{}", told.stderr);
        }
        let unfinished = result["children_pending"].as_u64().unwrap() > 0;
        assert!(!unfinished || *exit != 0, "never 0 while a child is unfinished");
        assert_eq!(unfinished, *script == LEFT_BEHIND, "{flags:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_person_denies_and_the_agent_is_told_why() {
    let folder = Folder::new("person");
    let model = folder.script("script.yaml", ASKS);
    let arguments = ["run", "go", "-m", &model, "--approvals", "stdio"];
    let told = converse(&folder, &arguments, |line| match line["type"].as_str() {
        Some("ask.opened") => Act::Say(json!({
            "type": "decision", "id": line["id"], "decision": "deny", "message": "not today",
        })),
        _ => Act::Nothing,
    });
    let result = told.result();
    assert_eq!((told.exit, &result["status"]), (Some(3), &json!("denied")));
    assert_eq!(result["text"], "denied by ann: not today");
    assert_eq!(result["denials"], json!(["main: mend {\"path\":\"a.txt\"}"]));
    assert_eq!(folder.read("effects.log"), "");
}

/// A looker that may only read, and an agent for whom nobody is ever asked.
const LOOKER: &str = "---\nname: looker\ndescription: d\ntools: Read, Grep\n---\nLook.\n";
const SHY: &str = "---\nname: shy\ndescription: d\npermissionMode: dontAsk\n---\nWork.\n";

const CEILING: &str = "agents:\n  main: [{calls: [{use_agent: {agent: looker, message: look}}]}, \
                       {say: '{{last}}'}]\n  looker: [{calls: [{write: {path: a, content: b}}]}, \
                       {calls: [{complete: {result: '{{last}}'}}]}]\n";

const UNASKED: &str = "agents:\n  main: [{calls: [{use_agent: {agent: shy, message: work}}]}, \
                       {say: '{{last}}'}]\n  shy: [{calls: [{write: {path: a, content: b}}]}, \
                       {calls: [{complete: {result: '{{last}}'}}]}]\n";

const GO_ON: &str = "locum run \"go on\" --resume s";

/// What helps fits why it was denied: leaving asks open helps only where somebody would be asked.
#[test]
fn after_a_denial_the_remedy_fits_the_cause() {
    let rules = "locum rules list -s s";
    let cases: &[(&str, &[&str], &str, &[&str])] = &[
        (ASKS, &[], "nobody is there to ask", &["GO_ON --approvals park"]),
        (ASKS, &["--deny", "mend"], "denied by rule: deny mend", &[rules, "GO_ON --deny mend"]),
        (
            ASKS,
            &["--mode", "plan"],
            "plan mode: mend has effects",
            &["GO_ON --mode ask --approvals park"],
        ),
        (
            CEILING,
            &["--trust"],
            "beyond what looker (a1) may do",
            &["locum show a1 -s s", "GO_ON --trust"],
        ),
        (UNASKED, &["--trust"], "shy never asks", &["GO_ON --allow 'write \"a\"' --trust"]),
        // Whoever leaves asks open goes on doing so; the rule is what has to change.
        (
            ASKS,
            &["--deny", "mend", "--approvals", "park"],
            "denied by rule",
            &[rules, "GO_ON --approvals park --deny mend"],
        ),
    ];
    for (at, (script, flags, why, remedies)) in cases.iter().enumerate() {
        let folder = Folder::new(&format!("remedy{at}"));
        fs::create_dir_all(folder.0.join(".claude/agents")).unwrap();
        folder.write(".claude/agents/looker.md", LOOKER);
        folder.write(".claude/agents/shy.md", SHY);
        let model = folder.script("script.yaml", script);
        let output = folder.output(&[&["run", "go", "-m", &model, "-s", "s"], *flags].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{flags:?}: {told}");
        assert!(told.contains(why), "{flags:?}: {told}");
        let done: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("do: ")).collect();
        let expected: Vec<String> =
            remedies.iter().map(|remedy| remedy.replace("GO_ON", GO_ON)).collect();
        assert_eq!(done, expected, "{flags:?}: {told}");
        assert_eq!(folder.read("effects.log"), "");
    }
}

/// What is offered helps, also where the call says more than its line; and whoever is told to look
/// at an agent sees what it may do.
#[test]
fn what_is_offered_after_a_denial_helps() {
    let folder = Folder::new("helps");
    fs::create_dir_all(folder.0.join(".claude/agents")).unwrap();
    fs::create_dir_all(folder.0.join("sub")).unwrap();
    folder.write(".claude/agents/shy.md", SHY);
    folder.write(".claude/agents/looker.md", LOOKER);
    let call = "exec: {command: 'touch made', cwd: sub}";
    let script = UNASKED.replace("write: {path: a, content: b}", call);
    assert!(script.contains(call));
    let model = folder.script("script.yaml", &script);
    let output = folder.output(&["run", "go", "-m", &model, "-s", "s", "--trust"]);
    let told = stderr(&output);
    let rules = ["exec \"cd sub\"", "exec \"touch made\""];
    let offered = rules.map(|rule| format!(" --allow '{rule}'")).concat();
    assert!(told.contains(&format!("\ndo: {GO_ON}{offered} --trust\n")), "{told}");
    let again = ["run", "go", "-m", &model, "-s", "t", "--trust", "--allow", rules[0], "--allow"];
    let output = folder.output(&[&again[..], &[rules[1]]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(folder.0.join("sub/made").exists());
    let model = folder.script("ceiling.yaml", CEILING);
    let output = folder.output(&["run", "go", "-m", &model, "-s", "u", "--trust"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let shown = folder.text(&["show", "a1", "-s", "u"]);
    for words in ["looker (its file: locum definitions looker)", "may use    ", "grep", "read"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// The same through a person: they have said why, and go on as they like.
#[test]
fn what_a_person_denied_needs_no_other_remedy_than_going_on() {
    let folder = Folder::new("personal");
    let model = folder.script("script.yaml", ASKS);
    let arguments = ["run", "go", "-m", &model, "-s", "s", "--approvals", "stdio"];
    let told = converse(&folder, &arguments, |line| match line["type"].as_str() {
        Some("ask.opened") => {
            Act::Say(json!({ "type": "decision", "id": line["id"], "decision": "deny" }))
        }
        _ => Act::Nothing,
    });
    assert_eq!(
        told.result()["denial_reasons"],
        json!([{ "cause": "person", "text": "denied by ann" }])
    );
    assert!(told.stderr.ends_with(&format!("\ndo: {GO_ON}\n")), "{}", told.stderr);
}

#[test]
fn a_signal_stops_the_run_and_nothing_is_lost() {
    for (name, exit) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::new(&format!("signal{name}"));
        let model = folder.script("script.yaml", HANG);
        let mut running = Running::start(&folder, &["run", "go", "-m", &model, "-s", "s"]);
        running.until(|line| line["type"] == "turn.started" && line["turn"] == 2);
        signal(name, running.child.id());
        let told = running.end();
        let result = told.result();
        assert_eq!((told.exit, &result["status"]), (Some(exit), &json!("cancelled")));
        assert_eq!(
            (&result["exit"], &result["resume"]),
            (&json!(exit), &json!("locum run --resume s"))
        );
        assert!(told.stderr.starts_with("error[E180] "), "{}", told.stderr);
        folder.script("script.yaml", &HANG.replace("600000", "0").replace("never", "after all"));
        assert_eq!(folder.text(&["run", "--resume", "s"]), "after all\n", "{name}");
    }
}

#[test]
fn flags_that_make_no_sense_are_told_before_anything_is_made() {
    let folder = Folder::new("flags");
    let model = folder.script("script.yaml", OK);
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["--max-turns", "0"], 2, "E100", "--max-turns"),
        (&["--slots", "0"], 2, "E100", "--slots"),
        (&["--timeout", "3 days"], 2, "E100", "is no unit"),
        (&["--max-cost", "much"], 2, "E100", "is not an amount of dollars"),
        (&["--allow", "exec \"unclosed"], 2, "E100", "quote is not closed"),
        (&["--deny", ""], 2, "E100", "--deny"),
        (&["--mode", "careful"], 2, "E100", "possible values"),
        (&["--approvals", "itself"], 2, "E100", "possible values"),
        (&["-s", "a", "--resume", "b"], 2, "E100", "cannot be used with"),
        (&["-c", "--resume", "b"], 2, "E100", "cannot be used with"),
        (&["-C", "no/such/folder"], 2, "E105", "no/such/folder"),
        (&["-c"], 2, "E120", "no session yet"),
        (&["-m", "nobody/knows"], 2, "E102", "nobody/knows"),
        (&["-m", "script:no-such.yaml"], 2, "E400", "no-such.yaml"),
        (&["-m", "anthropic/any"], 6, "E106", "ANTHROPIC_API_KEY"),
    ];
    for (flags, exit, code, word) in cases {
        let mut arguments = vec!["run", "hi"];
        if !flags.contains(&"-m") {
            arguments.extend(["-m", &model]);
        }
        arguments.extend(*flags);
        let mut command = folder.locum(&arguments);
        command.env_remove("ANTHROPIC_API_KEY");
        let output = output_of(command);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(*exit), "{flags:?}: {told}");
        assert!(told.starts_with(&format!("error[{code}] ")), "{flags:?}: {told}");
        assert!(told.contains(word) && told.contains("\ndo: "), "{flags:?}: {told}");
        assert_eq!(output.stdout, b"", "{flags:?}");
        assert_eq!(folder.json(&["sessions"]), json!([]), "{flags:?} made a session");
    }
    // The file is tried when the text is there; the run itself is kept.
    let told = folder.output(&["run", "hi", "-m", &model, "-o", "no/such/file"]);
    assert_eq!(told.status.code(), Some(2));
    assert!(stderr(&told).contains("error[E108] "), "{}", stderr(&told));
}

#[test]
fn the_answer_goes_where_it_is_wanted() {
    let folder = Folder::new("answer");
    let model = folder.script("script.yaml", OK);
    let m = ["-m", model.as_str()];
    let with = |first: &[&'static str], rest: &[&'static str]| {
        folder.text(&[first, &m[..], rest].concat())
    };
    assert_eq!(with(&["run", "hi"], &["-o", "out.txt"]), "done: hi\n");
    assert_eq!(folder.read("out.txt"), "done: hi");
    assert_eq!(with(&["exec", "hi"], &[]), "done: hi\n");
    assert_eq!(with(&["-p", "hi"], &[]), "done: hi\n");
    assert_eq!(with(&["run", "hi"], &["--plain", "-s", "named"]), "done: hi\n");
    // The session written last is the one that goes on, with the same model.
    assert_eq!(folder.text(&["run", "again", "-c"]), "done: again\n");
    let sessions = folder.json(&["sessions"]);
    assert_eq!(sessions.as_array().unwrap().len(), 4);
    assert_eq!(sessions[0]["session"], "named");

    let here = folder.0.join("elsewhere");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("seen.txt"), "x").unwrap();
    let look =
        folder.script("look.yaml", "agents: {main: [{calls: [{ls: {}}]}, {say: \"{{last}}\"}]}");
    let seen = folder.text(&["run", "look", "-m", &look, "-C", "elsewhere"]);
    assert!(seen.contains("seen.txt") && !seen.contains("script.yaml"), "{seen}");
    let told =
        converse(&folder, &["run", "look", "-m", &look, "-C", "elsewhere"], |_| Act::Nothing);
    let cwd = told.lines[0]["cwd"].as_str().unwrap();
    assert_eq!(fs::canonicalize(cwd).unwrap(), fs::canonicalize(&here).unwrap());
}

#[test]
fn somebody_else_can_be_at_the_root() {
    let folder = Folder::new("root");
    let script = "agents: {main: [{say: I am main}], scout: [{say: I scout}]}";
    let model = folder.script("script.yaml", script);
    assert_eq!(folder.text(&["run", "hi", "-m", &model]), "I am main\n");
    assert_eq!(folder.text(&["run", "hi", "-m", &model, "--agent", "scout"]), "I scout\n");
    folder.refused(&["run", "hi", "-m", &model, "--agent", "nobody"], 2, "E120");
}

#[test]
fn what_a_program_can_rely_on_is_told_first() {
    let folder = Folder::new("capabilities");
    let model = folder.script("script.yaml", OK);
    let told = converse(&folder, &["run", "hi", "-m", &model], |_| Act::Nothing);
    let expected = ["approvals.stdio", "approvals.park", "deltas", "gap", "asks"];
    assert_eq!(told.lines[0]["capabilities"], json!(expected));
    let asks: &Value = &told.lines[0]["asks"];
    assert_eq!(asks, &json!([]));
}

/// What main says in turn; how the run ends, and what is written to the file.
type Form = (&'static [&'static str], (i32, &'static str), Value, &'static str);

#[test]
fn the_final_text_has_the_form_that_was_asked_for() {
    let folder = Folder::new("form");
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    fs::write(folder.0.join("form.json"), schema).unwrap();
    let cases: &[Form] = &[
        (&["{\"n\": 3}"], (0, "ok"), json!({ "n": 3 }), "{\"n\":3}"),
        (&["three", "```json\n{\"n\": 4}\n```"], (0, "ok"), json!({ "n": 4 }), "{\"n\":4}"),
        (&["{\"n\": \"x\"}", "{\"n\": 5}"], (0, "ok"), json!({ "n": 5 }), "{\"n\":5}"),
        (&["1", "2", "3", "4", "5", "six"], (1, "failed"), Value::Null, "six"),
    ];
    for (said, (exit, status), structured, written) in cases {
        let steps: Vec<String> =
            said.iter().map(|text| format!("{{say: {}}}", json!(text))).collect();
        let script = format!("agents: {{main: [{}]}}", steps.join(", "));
        let model = folder.script("script.yaml", &script);
        let arguments = ["run", "count", "-m", &model, "--schema", "form.json", "-o", "out.json"];
        let told = converse(&folder, &arguments, |_| Act::Nothing);
        let last = told.lines.last().unwrap();
        assert_eq!(told.exit, Some(*exit), "{said:?}: {last}");
        assert_eq!(last["status"], *status, "{said:?}");
        assert_eq!(last["structured"], *structured, "{said:?}");
        assert_eq!(fs::read_to_string(folder.0.join("out.json")).unwrap(), *written);
    }
    let model = folder.script("script.yaml", OK);
    fs::write(folder.0.join("bad.json"), "{\n\"type\": \"objekt\"}").unwrap();
    fs::write(folder.0.join("half.json"), "{\n\"type\": ").unwrap();
    for (file, word) in [("bad.json", "objekt"), ("half.json", "half.json:2"), ("no.json", "")] {
        let told = folder.refused(&["run", "hi", "-m", &model, "--schema", file], 2, "E402");
        assert!(told.contains(word), "{told}");
    }
}
