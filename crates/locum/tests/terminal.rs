//! A run at a real terminal (one that `script` makes), and where there is none: what is drawn,
//! what can be typed, and that nothing a model says is obeyed.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "terminal/pty.rs"]
mod pty;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use pty::Terminal;
use serde_json::json;
use support::{Folder, PATIENCE, Watch, example, stderr};

/// A worker that takes a moment, then wants something; its words are not to be trusted.
const HOSTILE: &str = r#"
tools: {mend: {class: write, says: "mended", log: effects.log}}
agents:
  main:
    - say: "Over \e[31mto\u202e you\u009b2J."
      calls: [{spawn_agent: {agent: mender, message: "mend", label: left}}]
    - calls: [{wait: {mode: all, timeout_s: 600}}]
    - {say: "All \e]0;title\u0007\e[2Jis \u2066done\r.", repeat: true}
  mender:
    - hang_ms: 500
      calls: [{mend: {path: "a\e[2J.txt"}}]
    - say: "It said: {{last}}"
"#;

const QUESTION: &str = r#"
agents:
  main:
    - calls: [{ask_user: {question: "Which colour?", options: [red, blue]}}]
    - say: "It will be {{last}}"
"#;

/// A scout takes the floor, speaks and waits; a worker waits as well.
const FLOOR: &str = r#"
agents:
  main:
    - calls:
        - spawn_agent: {agent: worker, message: "work", label: digger}
        - use_agent: {agent: scout, message: "look"}
    - say: "The scout: {{last}}"
    - {say: "Nothing more.", repeat: true}
  scout:
    - {say: "Where to? ({{user}})", repeat: true}
  worker:
    - calls: [{ask_user: {question: "How deep?"}}]
    - say: "Dug {{last}}"
"#;

/// Nothing of what only a model could have written moves a cursor or turns a line around.
fn assert_harmless(text: &str) {
    for (at, _) in text.match_indices('\u{1b}') {
        let rest = &text[at + 1..];
        let ours = rest.strip_prefix('[').and_then(|rest| {
            let rest = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
            rest.chars().next()
        });
        // Up by so many lines, and away with what is below.
        assert!(matches!(ours, Some('A' | 'J')), "{:?}", &text[at..]);
        assert!(!rest.starts_with("[2J"), "{:?}", &text[at..]);
    }
    // The tree begins what it draws at the left edge; nothing else does.
    let text = text.replace("\r\u{1b}", "\u{1b}");
    for sign in ['\u{9b}', '\u{202e}', '\u{2066}', '\u{7}', '\r'] {
        assert!(!text.contains(sign), "{sign:?} in {text:?}");
    }
}

#[test]
fn the_tree_is_drawn_and_a_typed_word_allows() {
    let folder = Folder::new("tree");
    let model = folder.script("script.yaml", HOSTILE);
    let arguments = ["run", "go", "-m", &model, "-s", "s"];
    let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
    terminal.until("  main child 0:0");
    terminal.until("    left model 0:0");
    // How many are in which state, for how long, for how much; a price nobody knows is no price.
    terminal.until("1 child · 1 model · 0:0");
    terminal.until(" · $?\n");
    terminal.until("main/left: mend {\"path\":\"a");
    terminal.until("    y once · a this agent · f its siblings too · p always · n [why]\n");
    terminal.type_line("perhaps");
    terminal.until("waits for y or n [why]");
    // An empty line grants nothing.
    terminal.type_line("");
    terminal.type_line("y");
    terminal.until(" allow by ann\n");
    terminal.until("main/left: It said: mended\n");
    terminal.until("main: All is done.\n");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    assert!(text.contains("main: Over to you.\n"), "{text}");
    assert_eq!(text.matches("All is done.").count(), 1, "what was just said is not said twice");
    assert!(text.contains("\u{1b}[3A\u{1b}[J"), "it was never drawn anew: {text}");
    assert_harmless(&text);
    assert_eq!(folder.read("effects.log").lines().count(), 1);
}

#[test]
fn what_was_open_is_shown_to_whoever_resumes() {
    let folder = Folder::new("resumed");
    let model = folder.script("script.yaml", HOSTILE);
    let parked = ["run", "go", "-m", &model, "-s", "s", "--approvals", "park"];
    assert_eq!(folder.output(&parked).status.code(), Some(10));
    let hint = "    y once · a this agent · f its siblings too · p always · n [why]\n";
    for (flags, answer, exit) in [(&["--plain"][..], None, 10), (&[], Some("n not now"), 3)] {
        let mut arguments = vec!["run", "--resume", "s"];
        arguments.extend(flags);
        if answer.is_none() {
            arguments.extend(["--approvals", "park"]);
        }
        let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
        terminal.until("main/left: ");
        terminal.until("mend {\"path\":\"a");
        if let Some(answer) = answer {
            terminal.until(hint);
            terminal.type_line(answer);
            terminal.until(" deny by ann\n");
            terminal.until("denied by ann: not now");
        }
        let (text, ended) = terminal.end();
        assert_eq!(ended, Some(exit), "{text}");
        assert_harmless(&text);
    }
}

#[test]
fn an_option_is_picked_by_its_number() {
    for (flags, cursor) in [(&[][..], true), (&["--plain"], false)] {
        let folder = Folder::new(&format!("option{cursor}"));
        let model = folder.script("script.yaml", QUESTION);
        let mut arguments = vec!["run", "go", "-m", &model];
        arguments.extend(flags);
        let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
        // Plainly, too, it is shown before anything else happens.
        terminal.until("Which colour?");
        terminal.until("    1 red · 2 blue\n");
        terminal.type_line("2");
        terminal.until(" by ann");
        terminal.until("It will be blue\n");
        let (text, exit) = terminal.end();
        assert_eq!(exit, Some(0), "{text}");
        // The tree may have had no moment to draw itself in; plainly, nothing is ever drawn.
        assert!(cursor || !text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn the_floor_is_left_and_one_agent_spoken_to() {
    let folder = Folder::new("floor");
    let model = folder.script("script.yaml", FLOOR);
    let Some(mut terminal) = Terminal::start(&folder, &["run", "go", "-m", &model, "-s", "s"])
    else {
        return;
    };
    terminal.until("main/scout: Where to? (look)\n");
    terminal.type_line("@nobody hello");
    terminal.until("There is no agent or definition \"nobody\".");
    terminal.type_line("/nothing");
    terminal.until("/nothing is not known");
    terminal.type_line("@scout north");
    terminal.until("main/scout: Where to? (north)\n");
    terminal.type_line("/back");
    terminal.until("main/scout cancelled");
    terminal.until("main: The scout: cancelled by user\n");
    terminal.type_line("@digger two feet");
    terminal.until("main/digger: Dug two feet\n");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    let agents = folder.json(&["agents", "-s", "s"]);
    let states = agents.as_array().unwrap().iter().map(|agent| &agent["state"]);
    assert_eq!(states.collect::<Vec<_>>(), [&json!("done"), &json!("done"), &json!("cancelled")]);
}

#[test]
fn where_there_is_no_terminal_nothing_moves_a_cursor() {
    let folder = Folder::new("nowhere");
    let model = folder.script("script.yaml", HOSTILE);
    for flags in [&[][..], &["--plain"]] {
        let mut arguments = vec!["run", "go", "-m", &model];
        arguments.extend(flags);
        arguments.extend(["--allow", "mend"]);
        let output = folder.output(&arguments);
        assert_eq!(output.stdout, b"All is done.\n");
        let told = stderr(&output);
        assert_eq!(told, "main: Over to you.\nmain/left: It said: mended\n");
    }
    let model = example("approval.yaml");
    let output = folder.output(&["run", "document it", "-m", &model, "--approvals", "park"]);
    assert_eq!(output.status.code(), Some(10));
    let told = stderr(&output);
    assert!(!told.contains('\u{1b}'), "{told:?}");
    assert!(told.contains("main/auth research: (approval q"), "{told}");
    // Nobody can type here.
    assert!(!told.contains("y once"), "{told}");
}

/// Prints for a while: a line, one that is written anew, many at once, and one just before its end.
const LONG: &str = r#"
agents:
  main:
    - say: "I look."
      calls: [{exec: {command: "COMMAND"}}]
    - say: "It is over."
"#;

/// A command that waits for files, so that what is seen while it runs is seen while it runs.
fn long(folder: &Folder) -> String {
    let command = "echo first-line; until [ -e go ]; do sleep 0.05; done; \
                   printf '10%%\\\\r20%%\\\\r30%%\\\\n'; seq 1 5000; sleep 1.2; \
                   echo last-line; exit 3";
    folder.script("long.yaml", &LONG.replace("COMMAND", command))
}

#[test]
fn what_a_long_command_prints_is_seen_while_it_runs() {
    let folder = Folder::new("long");
    let model = long(&folder);
    let run = ["run", "go", "-m", &model, "--allow", "exec"];
    let Some(mut terminal) = Terminal::start(&folder, &run) else { return };
    terminal.until("  main tool 0:0");
    terminal.until("\n    | first-line\n");
    folder.write("go", "");
    terminal.until("\n    | 5000\n");
    terminal.until("main: It is over.\n");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    assert_harmless(&text);
    let last = text.rfind("    | ").unwrap();
    assert!(last < text.find("main: It is over.").unwrap(), "{text}");
}

#[test]
fn plainly_it_is_lines_of_whoever_runs_it() {
    let folder = Folder::new("lines");
    let model = long(&folder);
    let mut command = folder.locum(&["run", "go", "-m", &model, "--allow", "exec"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watch = Watch::over(child.id(), PATIENCE);
    let mut told = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "main | first-line" {
            folder.write("go", "");
        }
        told.push(line);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{told:#?}");
    let at = |words: &str| {
        let found = told.iter().position(|line| line.starts_with(words));
        found.unwrap_or_else(|| panic!("{words} is not there: {told:#?}"))
    };
    let order = [
        "main: I look.",
        "main: (exec: echo first-line;",
        "main | first-line",
        "main | [",
        "main | 5000",
        "main | last-line",
        "main: (exec failed after ",
    ];
    let places: Vec<usize> = order.iter().map(|words| at(words)).collect();
    assert!(places.is_sorted(), "{told:#?}");
    assert_eq!(places.last(), Some(&(told.len() - 1)), "something comes after the result");
    let printed = told.iter().filter(|line| line.starts_with("main | "));
    let mut printed = printed.map(String::as_str);
    assert!(printed.all(|line| !line.contains("10%")), "what was written over was shown");
    // Five thousand lines in a moment, and a few seconds in all.
    assert!(told.len() < 400, "{} lines", told.len());
    let mut numbers = told.iter().filter_map(|line| line.strip_prefix("main | ")?.parse().ok());
    assert!(numbers.by_ref().is_sorted_by(|a: &u32, b| a < b), "out of order or twice: {told:#?}");
    assert!(told.last().unwrap().ends_with(", exit 3)"), "{told:#?}");
}

#[test]
fn what_is_over_in_a_moment_is_not_shown() {
    let folder = Folder::new("short");
    let model = folder.script("short.yaml", &LONG.replace("COMMAND", "echo quick"));
    let output = folder.output(&["run", "go", "-m", &model, "--allow", "exec"]);
    assert_eq!(stderr(&output), "main: I look.\n");
}

/// What a screen of any height would show in the end.
fn on_screen(text: &str) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut rest = text.chars().peekable();
    while let Some(sign) = rest.next() {
        match sign {
            '\n' => (row, column) = (row + 1, 0),
            '\r' => column = 0,
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['));
                let mut number = String::new();
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                match rest.next() {
                    Some('A') => row = row.saturating_sub(number.parse().unwrap()),
                    Some('J') => {
                        rows.truncate(row + 1);
                        rows[row].truncate(column);
                    }
                    other => panic!("{other:?} in {text:?}"),
                }
            }
            sign => {
                rows.resize(rows.len().max(row + 1), Vec::new());
                let length = rows[row].len().max(column + 1);
                rows[row].resize(length, ' ');
                rows[row][column] = sign;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), Vec::new());
    }
    rows.into_iter().map(|row| row.into_iter().collect()).collect()
}

/// A line that is typed while the tree is drawn moves everything by one.
#[test]
fn what_is_typed_stays_and_leaves_nothing_else_behind() {
    let folder = Folder::new("typed");
    let script = r#"
agents:
  main:
    - {say: "First words.", calls: [{exec: {command: "for i in 1 2 3 4 5; do sleep 1; done"}}]}
    - {say: "It is over.", repeat: true}
"#;
    let model = folder.script("script.yaml", script);
    let arguments = ["run", "go", "-m", &model, "-s", "s", "--mode", "auto"];
    let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
    // The time goes on while nothing happens.
    terminal.until("exec runs, 1s\n");
    terminal.type_line("hello there");
    terminal.until("> hello there\n");
    terminal.until("exec runs, 2s\n");
    terminal.type_line("");
    terminal.type_line("and more");
    terminal.until("> and more\n");
    terminal.until("exec runs, 3s\n");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    let rows: Vec<String> = on_screen(&text).into_iter().filter(|row| !row.is_empty()).collect();
    let expected = ["main: First words.", "> hello there", "> and more"];
    assert_eq!(rows[..3], expected, "{rows:#?}");
    assert!(!rows.iter().any(|row| row.contains("exec runs")), "{rows:#?}");
}
