//! How the program shows itself, by flag and environment: signs in ASCII, colour, details and the
//! log, each through the real program.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "terminal/pty.rs"]
mod pty;
#[path = "choose/server.rs"]
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod server;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::process::{Command, Output};

use pty::Terminal;
use serde_json::json;
use server::Server;
use support::{Folder, output_of, stderr};

const SECRET: &str = "sk-ant-api03-never-show-this-x4Qa";

/// A worker that takes a moment; what agents say is not in ASCII.
const WORK: &str = r#"
tools: {mend: {class: write, says: "mended"}}
agents:
  main:
    - say: "Über… · fünf"
      calls: [{spawn_agent: {agent: mender, message: "mend", label: left}}]
    - calls: [{wait: {mode: all, timeout_s: 600}}]
    - say: "Zürich…"
  mender:
    - hang_ms: 500
      calls: [{mend: {path: a.txt}}]
    - say: "done"
"#;

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Everything both streams hold.
fn shown(output: &Output) -> String {
    format!("{}{}", stdout(output), stderr(output))
}

#[test]
fn flags_are_taken_before_and_after_the_command() {
    let folder = Folder::new("places");
    let model = folder.script("script.yaml", "agents: {main: [{say: hello}]}");
    let run = ["run", "go", "-m", &model];
    let face = ["--plain", "--ascii", "--color", "never", "--log", "log.txt", "-v"];
    // Once, or as often as a wrapper around it likes.
    let both = [&face[..], &run, &face, &face].concat();
    for arguments in [[&face[..], &run].concat(), [&run[..], &face].concat(), both] {
        let before = folder.read("log.txt").lines().count();
        let output = folder.output(&arguments);
        assert_eq!(stdout(&output), "hello\n", "{}", stderr(&output));
        assert!(stderr(&output).contains(" INFO  run_"), "{}", stderr(&output));
        assert!(folder.read("log.txt").lines().count() > before, "{arguments:?}");
    }
    let short = ["--log", "log.txt", "--color=never", "--ascii", "-p", "go", "-m", &model];
    assert_eq!(folder.text(&short), "hello\n");
    let told = folder.refused(&["run", "go", "--color", "sometimes"], 2, "E100");
    assert!(told.contains("auto, always, never"), "{told}");
}

/// Commands that show signs of ours, and that they do.
const SIGNS: &[&[&str]] = &[
    &["run", "go"],
    &["check", "bad.yaml"],
    &["show", "main", "-s", "waits"],
    &["agents", "-s", "waits"],
    &["sessions"],
    &["doctor"],
    &["mcp"],
    &["nonsense"],
    &["--help"],
    &["run", "--help"],
];

#[test]
fn nothing_of_ours_is_outside_ascii_when_asked() {
    let folder = Folder::new("ascii");
    folder.write("bad.yaml", "");
    let long = "why ".repeat(200);
    let ask = format!("agents: {{main: [{{calls: [{{ask_user: {{question: \"{long}\"}}}}]}}]}}");
    let model = folder.script("ask.yaml", &ask);
    let parked = folder.output(&["run", "go", "-m", &model, "-s", "waits", "--approvals", "park"]);
    assert_eq!(parked.status.code(), Some(10), "{}", stderr(&parked));
    let mut with_signs = 0;
    for arguments in SIGNS {
        let output = |more: &[&str]| {
            let mut command = folder.locum(&[*arguments, more].concat());
            for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
                command.env_remove(name);
            }
            output_of(command)
        };
        with_signs += usize::from(!shown(&output(&[])).is_ascii());
        let plain = output(&["--ascii"]);
        assert!(shown(&plain).is_ascii(), "{arguments:?}: {}", shown(&plain));
    }
    assert!(with_signs >= 4, "only {with_signs} of them show signs at all");
    let mut command = folder.locum(&["run", "go"]);
    command.env("LOCUM_ASCII", "1");
    let told = output_of(command);
    assert!(stderr(&told).contains("KEY=..., or locum demo"), "{}", stderr(&told));
}

#[test]
fn what_agents_say_stays_as_they_said_it() {
    let folder = Folder::new("said");
    let model = folder.script("script.yaml", WORK);
    let arguments = ["run", "go", "-m", &model, "--ascii"];
    let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
    terminal.until("main: Über… · fünf\n");
    terminal.until("1 child | 1 model | 0:0");
    terminal.until(" | $?\n");
    terminal.until("    y once | a this agent | f its siblings too | p always | n [why]\n");
    terminal.type_line("y");
    terminal.until("main: Zürich…\n");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    let ours = text.replace("Über… · fünf", "").replace("Zürich…", "");
    assert!(ours.is_ascii(), "{ours}");
}

type Variables = &'static [(&'static str, &'static str)];

/// Flags, variables, and whether a pipe and a terminal get colour.
const COLOUR: &[(&[&str], Variables, bool, bool)] = &[
    (&[], &[("NO_COLOR", "")], false, true),
    (&[], &[("NO_COLOR", "1")], false, false),
    (&[], &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")], true, true),
    (&[], &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "0")], false, true),
    (&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false, false),
    (&["--color", "always"], &[("NO_COLOR", "1")], true, true),
    (&["--color=never"], &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")], false, false),
    (&["--color", "auto"], &[("NO_COLOR", "")], false, true),
    (&[], &[("NO_COLOR", ""), ("TERM", "dumb")], false, false),
    (&["--plain"], &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")], false, false),
];

#[test]
fn colour_is_where_it_is_wanted_and_nowhere_else() {
    let folder = Folder::new("colour");
    let arguments = ["run", "go", "-m", "script:absent.yaml"];
    // Flags that make no sense are complained about in the same way.
    let misread = ["run", "go", "--nonsense"];
    for (flags, variables, pipe, terminal) in COLOUR {
        for arguments in [&arguments[..], &misread] {
            let arguments = [flags, arguments].concat();
            let mut command = folder.locum(&arguments);
            command.envs(variables.iter().copied());
            let piped = output_of(command);
            let coloured = stderr(&piped).starts_with("\u{1b}[1;31merror[E");
            assert_eq!(coloured, *pipe, "{arguments:?} {variables:?}: {}", stderr(&piped));
            assert_eq!(stderr(&piped).contains('\u{1b}'), *pipe);
            let at = Terminal::start_with(&folder, &arguments, variables);
            let Some(at) = at else { return };
            let (text, _) = at.end();
            assert_eq!(text.contains('\u{1b}'), *terminal, "{arguments:?} {variables:?}: {text}");
        }
    }
}

#[test]
fn states_have_colours_that_say_what_their_words_say() {
    let folder = Folder::new("states");
    let model = folder.script("script.yaml", WORK);
    let arguments = ["run", "go", "-m", &model, "-s", "s", "--allow", "mend"];
    let variables = [("NO_COLOR", "")];
    let Some(mut terminal) = Terminal::start_with(&folder, &arguments, &variables) else { return };
    terminal.until("  main \u{1b}[36mchild\u{1b}[0m 0:0");
    terminal.until("    left \u{1b}[36mmodel\u{1b}[0m 0:0");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    let plain = folder.text(&["agents", "-s", "s"]);
    let coloured = folder.text(&["agents", "-s", "s", "--color", "always"]);
    assert!(coloured.contains("  \u{1b}[32mdone\u{1b}[0m   ?"), "{coloured}");
    assert_eq!(coloured.replace("\u{1b}[32m", "").replace("\u{1b}[0m", ""), plain);
}

#[test]
fn plain_mode_says_how_it_was_turned_on() {
    let folder = Folder::new("plainly");
    let model = folder.script("script.yaml", "agents: {main: [{say: hello}]}");
    let cases: &[(&[&str], (&str, &str), &str)] = &[
        (&["--plain"], ("LOCUM_PLAIN", "1"), "flag"),
        (&[], ("LOCUM_PLAIN", "1"), "LOCUM_PLAIN"),
        (&[], ("ACCESSIBLE", "1"), "ACCESSIBLE"),
        (&[], ("TERM", "dumb"), "TERM=dumb"),
        (&["-v"], ("ACCESSIBLE", "0"), "-v"),
    ];
    for (flags, variable, how) in cases {
        let arguments = [&["run", "go", "-m", &model], *flags].concat();
        let Some(terminal) = Terminal::start_with(&folder, &arguments, &[*variable]) else {
            return;
        };
        let (text, exit) = terminal.end();
        assert_eq!(exit, Some(0), "{text}");
        assert!(text.contains(&format!("[plain mode: on via {how}]\n")), "{how}: {text}");
        assert!(!text.contains('\u{1b}'), "{how}: {text:?}");
    }
}

/// One that was told, with its time and level apart.
fn parted(line: &str) -> (&str, &str, &str) {
    let (time, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
    let (level, text) = rest.split_at(5);
    (time, level.trim_end(), text.trim_start())
}

#[test]
fn the_log_has_a_line_for_everything_that_was_done() {
    let folder = Folder::new("log");
    let model = folder.script("script.yaml", WORK);
    let arguments = ["run", "a private matter", "-m", &model, "-s", "s", "--json"];
    let with = folder.output(&[&arguments[..], &["--allow", "mend", "--log", "log.txt"]].concat());
    assert_eq!(stderr(&with), "");
    assert_eq!(with.status.code(), Some(0));
    for line in stdout(&with).lines() {
        assert!(line.starts_with("{\"v\":1,"), "{line}");
    }
    let text = folder.read("log.txt");
    for line in text.lines() {
        let (time, level, _) = parted(line);
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(["ERROR", "WARN", "INFO", "DEBUG"].contains(&level), "{line}");
    }
    let lines: Vec<(&str, &str)> =
        text.lines().map(parted).map(|(_, level, text)| (level, text)).collect();
    let expected = [
        ("INFO", "begins pid="),
        ("INFO", " main: run started model=script:"),
        ("INFO", " main/left: agent spawned from mender"),
        ("INFO", " main/left: tool mend started call="),
        ("INFO", " main/left: tool mend finished call="),
        ("DEBUG", " main/left: state done"),
        ("INFO", " main: run ended Ok exit=0"),
        ("INFO", "locum ends exit=0"),
    ];
    let mut rest = lines.iter();
    for (level, words) in expected {
        let found = rest.any(|(at, text)| *at == level && text.contains(words));
        assert!(found, "{level} {words} is not there, or not in order: {text}");
    }
    // What was said is nobody's business but the journal's.
    for said in ["private", "Zürich", "mended", "a.txt"] {
        assert!(!text.contains(said), "{said}: {text}");
    }
    let before = text.lines().count();
    folder.refused(&["show", "nobody", "-s", "s", "--log", "log.txt"], 2, "E120");
    let text = folder.read("log.txt");
    assert!(text.lines().count() > before, "it was not appended to");
    assert!(text.contains(" ERROR E120 "), "{text}");
}

#[test]
fn a_log_that_cannot_be_written_is_told_before_anything_is_done() {
    let folder = Folder::new("unwritable");
    let model = folder.script("script.yaml", "agents: {main: [{say: hello}]}");
    let run = ["run", "go", "-m", &model, "--log"];
    for file in [".", "absent/log.txt"] {
        let told = folder.refused(&[&run[..], &[file]].concat(), 2, "E117");
        assert!(told.contains(file), "{told}");
        assert!(!folder.data().exists(), "something was done");
    }
    // Nobody reads this pipe, and nobody waits for whoever might.
    let made = Command::new("mkfifo").arg(folder.0.join("pipe")).status();
    assert!(made.is_ok_and(|made| made.success()));
    let told = folder.refused(&[&run[..], &["pipe"]].concat(), 2, "E117");
    assert!(told.contains("it is a pipe"), "{told}");
    assert_eq!(folder.text(&[&run[..], &["/dev/null"]].concat()), "hello\n");
    // One that cannot be written later is no reason to stop.
    let output = folder.output(&[&run[..], &["/dev/full"]].concat());
    assert_eq!((stdout(&output), output.status.code()), ("hello\n", Some(0)));
    assert_eq!(stderr(&output).matches("the log /dev/full cannot be written").count(), 1);
}

#[test]
fn no_key_is_ever_told() {
    let said = format!("bad {SECRET}");
    let error = json!({ "type": "authentication_error", "message": said });
    let refusal = json!({ "type": "error", "error": error }).to_string();
    let length = refusal.len();
    let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json";
    let answer = format!("{head}\r\ncontent-length: {length}\r\n\r\n{refusal}");
    let server = Server::start(move |_| answer.clone());
    let folder = Folder::new("keys");
    let arguments = ["run", "go", "-m", "anthropic/claude-x", "--log", "log.txt", "-vv"];
    let mut command = folder.locum(&arguments);
    command.env("ANTHROPIC_API_KEY", SECRET);
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", server.host));
    let output = output_of(command);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    let log = folder.read("log.txt");
    assert!(log.contains(" ERROR "), "{log}");
    for text in [&log, &shown(&output)] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains("never-show-this"), "{text}");
    }
}

#[test]
fn details_are_told_beside_the_output() {
    let folder = Folder::new("details");
    let model = folder.script("script.yaml", WORK);
    let run = ["run", "go", "-m", &model, "--allow", "mend"];
    for (flags, info, debug) in
        [(&[][..], false, false), (&["-v"], true, false), (&["-vv"], true, true)]
    {
        let output = folder.output(&[&run[..], flags].concat());
        assert_eq!(stdout(&output), "Zürich…\n");
        let told = stderr(&output);
        assert_eq!(told.contains(" INFO  run_"), info, "{told}");
        assert_eq!(told.contains(" DEBUG run_"), debug, "{told}");
    }
    let absent = ["run", "go", "-m", "script:absent.yaml"];
    let short = folder.refused(&absent, 2, "E400");
    assert!(!short.contains("because:"), "{short}");
    let output = folder.output(&[&absent[..], &["-v"]].concat());
    let causes = "absent.yaml\n  because: No such file or directory";
    assert!(stderr(&output).contains(causes), "{}", stderr(&output));
}
