//! Agents that are programs.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use locum_kernel::{Class, ProgramInput};

use crate::Test;
use crate::stage::{DRIVE, Stage, allow, left, one, program, token, until};

pub(crate) const TESTS: &[Test] = &[
    ("a_program_does_the_work", a_program_does_the_work),
    ("what_is_not_installed_is_named", what_is_not_installed_is_named),
    ("a_rule_lets_it_run_and_nothing_else_does", a_rule_lets_it_run_and_nothing_else_does),
    ("a_handle_is_for_its_session", a_handle_is_for_its_session),
    ("it_streams_and_long_results_are_cut", it_streams_and_long_results_are_cut),
    ("it_has_walls_and_a_network", it_has_walls_and_a_network),
    ("it_ends_with_its_agent_and_with_us", it_ends_with_its_agent_and_with_us),
    ("it_is_waited_for", it_is_waited_for),
];

const ONE: &str = r#"
agents:
  main:
    - calls: [{call_recipe: {recipe: worker, message: "do it"}}]
    - {say: "{{last}}"}
"#;

/// A program's text, how it is told, what it makes of it, and its exit code.
#[rustfmt::skip]
const CASES: &[(&str, ProgramInput, &str, i32)] = &[
    ("cat", ProgramInput::Stdin, "do it", 0),
    ("echo \"$#: $*\"; cat", ProgramInput::Arg, "3: a 'b c' do it", 0),
    ("echo out; echo err >&2", ProgramInput::Stdin, "out", 0),
    ("echo a; echo b >&2; exit 3", ProgramInput::Stdin, "a\nb\n[the program ended with 3]", 3),
    ("echo why >&2; exit 1", ProgramInput::Stdin, "why\n[the program ended with 1]", 1),
    ("kill -9 $$", ProgramInput::Stdin, "[the program ended with 137]", 137),
    // It does not read what it is told.
    ("exec <&-; echo deaf", ProgramInput::Stdin, "deaf", 0),
    // More errors than a pipe holds do not stop it, and only the last of them are told.
    ("head -c 300000 /dev/zero | tr '\\0' x >&2; echo done", ProgramInput::Stdin, "done", 0),
];

fn a_program_does_the_work() {
    for (text, input, expected, exit) in CASES {
        let stage = Stage::new();
        stage.program("tool", text);
        let command = ["./tool", "a", "'b c'"];
        let played = stage.play(ONE, |config| {
            config.rules.push(allow("passthrough", None));
            config.definitions.push(program("worker", &command, *input));
        });
        let end = played.end("main/worker");
        // Without walls the signal itself is named before.
        let said = end["result"].as_str().unwrap().trim_start_matches("ended by signal 9");
        assert_eq!(said.trim(), *expected, "{text}");
        assert_eq!(end["outcome"], if *exit == 0 { "done" } else { "failed" }, "{text}");
        let ran = &end["receipt"]["commands"];
        assert_eq!(ran[0]["exit"], *exit, "{text}: {ran}");
        assert_eq!(ran[0]["argv"], "./tool a 'b c'", "{ran}");
        let pipes = fs::read_dir(stage.place.data.join("output")).unwrap().count();
        assert_eq!(pipes, 0, "{text}: a pipe is left");
    }
    let stage = Stage::new();
    stage.program("tool", "head -c 300000 /dev/zero | tr '\\0' x >&2; echo the last >&2; exit 4");
    let played = stage.play(ONE, |config| {
        config.rules.push(allow("passthrough", None));
        config.definitions.push(program("worker", &["./tool"], ProgramInput::Stdin));
    });
    let end = played.end("main/worker");
    let said = end["result"].as_str().unwrap();
    assert!(said.starts_with("[…]xxx") && said.contains("xthe last\n"), "{said}");
    assert!(said.len() < 9_000, "{}", said.len());
}

fn what_is_not_installed_is_named() {
    for name in ["no-such-agent-program", "./no-such-program"] {
        let stage = Stage::new();
        let played = stage.play(ONE, |config| {
            config.rules.push(allow("passthrough", None));
            config.definitions.push(program("worker", &[name, "exec"], ProgramInput::Stdin));
        });
        let end = played.end("main/worker");
        let said = end["result"].as_str().unwrap();
        assert!(said.starts_with(name) && said.contains("Install it first"), "{said}");
        assert_eq!(end["outcome"], "failed");
        assert_eq!(end["receipt"]["commands"].as_array().unwrap().len(), 0, "nothing ran");
    }
}

fn a_rule_lets_it_run_and_nothing_else_does() {
    let cases = [
        (Some(("passthrough", Some("./tool exec"))), true),
        (Some(("passthrough", Some("./tool *"))), true),
        (Some(("passthrough", Some("./tool exec *"))), false),
        (Some(("passthrough", Some("./tool"))), false),
        (Some(("passthrough", Some("./other exec"))), false),
        (Some(("exec", None)), false),
        (None, false),
    ];
    for (rule, runs) in cases {
        let stage = Stage::new();
        stage.program("tool", "echo ran > ran");
        let played = stage.play(ONE, |config| {
            config.rules.extend(rule.map(|(tool, pattern)| allow(tool, pattern)));
            config.definitions.push(program("worker", &["./tool", "exec"], ProgramInput::Stdin));
        });
        assert_eq!(stage.read("ran") == "ran\n", runs, "{rule:?}: {:?}", played.lines);
        let said = played.end("main/worker")["result"].as_str().unwrap();
        assert_eq!(said.contains("nobody is there to ask"), !runs, "{rule:?}: {said}");
    }
}

fn it_streams_and_long_results_are_cut() {
    let stage = Stage::new();
    let text = "echo first; sleep 0.5; for i in $(seq 20000); do echo line $i; done; echo last";
    stage.program("tool", text);
    let played = stage.play(ONE, |config| {
        config.rules.push(allow("passthrough", None));
        config.definitions.push(program("worker", &["./tool"], ProgramInput::Stdin));
    });
    let early = played.printed.first().map(String::as_str);
    assert_eq!(early, Some("first\n"), "told before it ended");
    let finished = played.of("tool.finished", "main/worker")[0];
    let said = finished["output"].as_str().unwrap();
    assert!(said.starts_with("first\nline 1\n") && said.ends_with("line 20000\nlast"), "{said}");
    assert!(said.len() < 40_000, "{} bytes", said.len());
    let handle = finished["handle"].as_str().unwrap();
    let kept = stage.place.data.join("spills/test");
    let kept: Vec<_> = fs::read_dir(kept).unwrap().flatten().collect();
    assert!(!handle.is_empty() && !kept.is_empty(), "{handle} {kept:?}");
}

/// Who finds a handle elsewhere, in a file or a note, cannot read it with that; agents of the same
/// session can, and a fork of it.
fn a_handle_is_for_its_session() {
    let mut stage = Stage::new();
    fs::write(stage.work("long.txt"), "a line\n".repeat(9_000)).unwrap();
    let command = "{exec: {command: cat long.txt}}";
    let may = |config: &mut locum_kernel::Config| config.rules.push(allow("exec", None));
    let played =
        stage.play(&format!("agents: {{main: [{{calls: [{command}]}}, {{say: done}}]}}"), may);
    let finished = played.of("tool.finished", "main")[0];
    let handle = finished["handle"].as_str().unwrap().to_owned();
    let read = |stage: &Stage| {
        let calls = ["read: {limit: 1, path", "grep: {pattern: line, path"]
            .map(|call| format!("{{{call}: \"{handle}\"}}}}"));
        let played = stage.play(&one(&calls.join(", ")), may);
        let told = played.results("main/worker");
        told.iter().map(|told| (*told).to_owned()).collect::<Vec<_>>()
    };
    let told = read(&stage);
    assert!(told[0].starts_with("a line") && told[1].contains("a line"), "{told:?}");
    let data = stage.place.data.clone();
    let names = locum_tools::spilled::mentioned(&format!("[read {handle}, or not]"));
    for (session, is_read) in [("other", false), ("../spills/test", false), ("fork", true)] {
        session.clone_into(&mut stage.place.session);
        if is_read {
            locum_tools::spilled::inherit(&data, "test", session, &names).unwrap();
        }
        let told = read(&stage);
        let refused = told.iter().all(|it| it.contains("is not kept here"));
        assert_eq!(refused, !is_read, "{session}: {told:?}");
    }
    locum_tools::spilled::forget(&data, "test").unwrap();
    assert!(read(&stage)[0].starts_with("a line"), "a fork has its own");
    locum_tools::spilled::rename(&data, "fork", "test").unwrap();
    "test".clone_into(&mut stage.place.session);
    assert!(read(&stage)[0].starts_with("a line"));
}

type Edit<'a> = &'a dyn Fn(&mut locum_kernel::Definition);

/// It may talk to others, but writes no further than any command; and who may not, may not.
fn it_has_walls_and_a_network() {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = door.local_addr().unwrap().port();
    let stage = Stage::new();
    let outside = stage.root.join("outside");
    fs::write(&outside, "as it was").unwrap();
    let text = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo talked\n\
         (echo mine > {outside}) 2>/dev/null; (echo mine > here) 2>/dev/null\n\
         ls {data} 2>/dev/null | wc -l; env | grep EDGE_ | sort",
        outside = outside.display(),
        data = stage.place.data.display(),
    );
    stage.program("tool", &text);
    let all = |_: &mut locum_kernel::Definition| {};
    let reader = |it: &mut locum_kernel::Definition| {
        it.uses.classes = [Class::Read, Class::Exec].into();
    };
    let granted = |it: &mut locum_kernel::Definition| {
        it.kit.env = ["EDGE_API_KEY".to_owned(), "EDGE_NOT_SET".to_owned()].into();
    };
    let cases: [(Edit<'_>, &str, &str); 3] = [
        (&all, "talked\n0", "mine\n"),
        (&reader, "0", "(gone)"),
        (&granted, "talked\n0\nEDGE_API_KEY=granted", "mine\n"),
    ];
    for (edit, expected, here) in cases {
        let _ = fs::remove_file(stage.work("here"));
        let played = stage.play(ONE, |config| {
            config.rules.push(allow("passthrough", None));
            let mut worker = program("worker", &["./tool"], ProgramInput::Stdin);
            edit(&mut worker);
            config.definitions.push(worker);
        });
        assert_eq!(played.end("main/worker")["result"], expected);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "as it was");
        let found = fs::read_to_string(stage.work("here")).unwrap_or_else(|_| "(gone)".into());
        assert_eq!(found, here, "{expected}");
    }
}

const SLEEPS: &str = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: worker, message: "go", label: worker}}]
    - calls: [{exec: {command: "until [ -e up ]; do sleep 0.05; done"}}]
    - calls: [{agent_close: {agent: worker}}]
    - calls: [{exec: {command: "true"}}]
    - {say: "done"}
"#;

fn it_ends_with_its_agent_and_with_us() {
    let word = token();
    let stage = Stage::new();
    // It does not want to end, and neither does what it leaves.
    stage.program(
        "tool",
        "trap '' TERM HUP; setsid sleep 1000 & touch up; while :; do sleep 1; done",
    );
    let played = stage.play(SLEEPS, |config| {
        config.rules.extend([allow("passthrough", None), allow("exec", None)]);
        config.definitions.push(program("worker", &["./tool", &word], ProgramInput::Stdin));
    });
    assert_eq!(played.end("main/worker")["outcome"], "cancelled", "{:#?}", played.lines);
    until("it has ended with its agent", Duration::from_secs(3), || left(&word).is_empty());

    let _ = fs::remove_file(stage.work("up"));
    let word = token();
    let mut us = Command::new("/proc/self/exe");
    let mut us = us.arg(DRIVE).arg(&stage.root).arg(&word).spawn().unwrap();
    until("it is up", Duration::from_secs(20), || stage.work("up").exists());
    assert!(left(&word).len() > 1, "{:?}", left(&word));
    us.kill().unwrap();
    us.wait().unwrap();
    until("it has ended with us", Duration::from_secs(3), || left(&word).is_empty());
}

/// The other process of the test above, to be killed.
pub(crate) fn drive(args: &[OsString]) -> ExitCode {
    let [root, word] = args else { return ExitCode::FAILURE };
    let stage = Stage::at(Path::new(root));
    let word = word.to_str().unwrap();
    stage.play(ONE, |config| {
        config.rules.push(allow("passthrough", None));
        config.definitions.push(program("worker", &["./tool", word], ProgramInput::Stdin));
    });
    ExitCode::SUCCESS
}

/// Longer than a command of a model, which would go on in the background by then.
fn it_is_waited_for() {
    let stage = Stage::new();
    stage.program("tool", "sleep 31; echo at last");
    let played = stage.play(ONE, |config| {
        config.rules.push(allow("passthrough", None));
        config.definitions.push(program("worker", &["./tool"], ProgramInput::Stdin));
    });
    assert_eq!(played.end("main/worker")["result"], "at last");
}
