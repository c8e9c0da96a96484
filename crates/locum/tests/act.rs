//! What people do from another terminal: while a run holds the data folder (through its door),
//! when nobody does, and right after the holder was killed. It comes to the same each time, and a
//! call that was allowed runs exactly once.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value;
use support::{Folder, PATIENCE, Running, USER, Watch, of_type, output_of, stderr, words};

/// Two workers want the same; main waits for both.
const PAIR: &str = r#"
tools: {mend: {class: write, says: "{{path}} is mended", log: effects.log}}
agents:
  main:
    - calls:
        - spawn_agent: {agent: mender, message: "mend", label: left}
        - spawn_agent: {agent: mender, message: "mend", label: right}
    - calls: [{wait: {mode: all, timeout_s: 600}}]
    - {say: "Both are back.", repeat: true}
  mender:
    - calls: [{mend: {path: same.txt}}]
    - say: "It said: {{last}}"
"#;

/// Main itself waits for a word, and hears nobody meanwhile.
const BUSY: &str = r#"
tools: {mend: {class: write, says: "mended", log: effects.log}}
agents:
  main:
    - calls: [{mend: {path: a.txt}}]
    - {say: "Heard {{user}}", repeat: true}
"#;

const QUESTION: &str = r#"
agents:
  main:
    - calls: [{ask_user: {question: "Which colour?", options: [red, blue]}}]
    - say: "It will be {{last}}"
"#;

/// The worker's model refuses once, so that it is paused.
const PAUSED: &str = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: finder, message: "find it", label: finder}}]
    - calls: [{wait: {mode: all, timeout_s: 600}}]
    - {say: "Over.", repeat: true}
  finder:
    - error: {status: 400}
    - say: "Found with: {{user}}"
"#;

/// Who has the data folder when somebody acts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Runs,
    Nobody,
    Killed,
}

const HOLDERS: [Holder; 3] = [Holder::Runs, Holder::Nobody, Holder::Killed];

/// A session with open asks.
struct Scene {
    folder: Folder,
    running: Option<Running>,
    asks: Vec<String>,
}

impl Scene {
    fn new(name: &str, holder: Holder, script: &str, asks: usize) -> Scene {
        let folder = Folder::new(&format!("act-{name}-{holder:?}"));
        let model = folder.script("script.yaml", script);
        let approvals = if holder == Holder::Nobody { "park" } else { "stdio" };
        let arguments = ["run", "go", "-m", &model, "-s", "it's", "--approvals", approvals];
        let mut running = Running::start(&folder, &arguments);
        let ids = (0..asks).map(|_| running.until_type("ask.opened")["id"].clone());
        let asks = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
        let running = match holder {
            Holder::Runs => Some(running),
            Holder::Nobody => {
                assert_eq!(running.end().exit, Some(10));
                None
            }
            Holder::Killed => {
                running.kill();
                assert!(folder.data().join("door").exists(), "the door is left behind");
                None
            }
        };
        Scene { folder, running, asks }
    }

    /// The words of a command, with `Q1`, `Q2` for the asks.
    fn command(&self, words: &str) -> Vec<String> {
        let mut words: Vec<String> = words.split(' ').map(|word| word.replace('_', " ")).collect();
        for word in &mut words {
            if let Some(ask) = word.strip_prefix('Q').and_then(|at| at.parse::<usize>().ok()) {
                word.clone_from(&self.asks[ask - 1]);
            }
        }
        words
    }

    fn act(&self, user: &str, words: &str) -> Output {
        let words = self.command(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.folder.locum(&words);
        command.env("USER", user);
        output_of(command)
    }

    /// What it prints, if it is taken.
    fn does(&self, words: &str) -> String {
        let output = self.act(USER, words);
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        let told = String::from_utf8(output.stdout).unwrap();
        let goes_on = told.contains("do: locum run --resume 'it'\\''s' --approvals park\n");
        // A message that was received before, and changes to the queue, make nothing go on.
        if !words.starts_with("queue") && !words.contains("again") {
            assert_eq!(goes_on, self.running.is_none(), "{words}: {told}");
        }
        told
    }

    /// Lets the session come to its end; how it ended, and every line it ever told.
    fn end(&mut self) -> (Value, Vec<Value>) {
        let resume = ["run", "--resume", "it's", "--approvals", "park"];
        let running = self.running.take();
        let told = running.unwrap_or_else(|| Running::start(&self.folder, &resume)).end();
        let result = told.result().clone();
        assert_eq!(Some(result["exit"].as_i64().unwrap()), told.exit.map(i64::from));
        let lines = self.folder.text(&["sessions", "export", "it's"]);
        (result, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn effects(&self) -> usize {
        self.folder.read("effects.log").lines().count()
    }
}

fn decisions(lines: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let closed = of_type(lines, "ask.closed").into_iter();
    closed.map(|line| format!("{} by {}", word(&line["decision"]), word(&line["by"]))).collect()
}

/// What main said, in order.
fn said(lines: &[Value]) -> Vec<&str> {
    let of_main = |line: &&Value| line["agent"]["path"] == "main";
    let messages = of_type(lines, "message").into_iter().filter(of_main);
    messages.map(|line| line["text"].as_str().unwrap()).collect()
}

#[test]
fn asks_are_answered_wherever_the_session_is() {
    struct Case {
        name: &'static str,
        acts: &'static [&'static str],
        effects: usize,
        decisions: &'static [&'static str],
        exit: u8,
    }
    let cases = [
        Case {
            name: "both",
            acts: &["approve Q1 Q2"],
            effects: 2,
            decisions: &["allow by ann", "allow by ann"],
            exit: 0,
        },
        Case {
            name: "fanout",
            acts: &["approve Q1 --scope fanout"],
            effects: 2,
            decisions: &["allow by ann", "allow by ann"],
            exit: 0,
        },
        Case {
            name: "agent",
            acts: &["approve Q2 --scope agent", "deny Q1 -m not_here"],
            effects: 1,
            decisions: &["allow by ann", "deny by ann"],
            exit: 3,
        },
        Case {
            name: "neither",
            acts: &["deny Q1 Q2"],
            effects: 0,
            decisions: &["deny by ann", "deny by ann"],
            exit: 3,
        },
        Case {
            name: "stopped",
            acts: &["cancel left -m enough", "approve Q2"],
            effects: 1,
            decisions: &["withdrawn by locum", "allow by ann"],
            exit: 0,
        },
    ];
    for Case { name, acts, effects, decisions: expected, exit } in cases {
        for holder in HOLDERS {
            let mut scene = Scene::new(name, holder, PAIR, 2);
            for act in acts {
                scene.does(act);
            }
            let (result, lines) = scene.end();
            let at = format!("{name}, {holder:?}: {result}");
            assert_eq!(scene.effects(), effects, "{at}");
            let ended = of_type(&lines, "agent.finished");
            assert_eq!((ended.len(), &result["exit"]), (2, &exit.into()), "{at}");
            assert_eq!(result["children_pending"], 0, "{at}");
            let mut decided = decisions(&lines);
            decided.sort_unstable_by_key(|word| expected.iter().position(|it| it == word));
            assert_eq!(decided, expected, "{at}");
            let denials = result["denials"].as_array().unwrap().len();
            assert_eq!(denials > 0, exit == 3, "{at}");
            let told = serde_json::to_string(&lines).unwrap();
            assert_eq!(told.contains("denied by ann: not here"), name == "agent", "{at}");
            assert_eq!(told.contains("cancelled by ann: enough"), name == "stopped", "{at}");
        }
    }
}

#[test]
fn a_question_is_answered_by_its_id_or_by_a_message() {
    for (name, act) in [("id", "answer Q1 blue"), ("message", "send blue")] {
        for holder in HOLDERS {
            let mut scene = Scene::new(name, holder, QUESTION, 1);
            scene.does(act);
            let (result, lines) = scene.end();
            assert_eq!(result["text"], "It will be blue", "{name}, {holder:?}");
            assert_eq!(of_type(&lines, "ask.closed").len(), 1, "{name}, {holder:?}");
        }
    }
}

#[test]
fn a_paused_worker_goes_on() {
    let cases = [
        ("silent", "continue finder", "Found with: find it"),
        ("words", "continue main/finder look_harder", "Found with: look harder"),
        ("ask", "approve Q1", "Found with: find it"),
        ("spoken-to", "answer Q1 look_there", "Found with: look there"),
    ];
    for (name, act, found) in cases {
        for holder in HOLDERS {
            let mut scene = Scene::new(name, holder, PAUSED, 1);
            scene.does(act);
            let (result, lines) = scene.end();
            let ended = of_type(&lines, "agent.finished");
            assert_eq!(ended[0]["result"], found, "{name}, {holder:?}");
            assert_eq!(result["exit"], 0, "{name}, {holder:?}: {result}");
        }
    }
}

#[test]
fn a_message_waits_steers_or_interrupts() {
    let cases: &[(&str, &[&str], &[&str], usize)] = &[
        ("queue", &["send later", "approve Q1"], &["Heard go", "Heard later"], 1),
        ("steer", &["send --steer now", "approve Q1"], &["Heard now"], 1),
        ("named", &["send @main you_there", "approve Q1"], &["Heard you there"], 1),
        ("interrupt", &["send stop --interrupt"], &["Heard stop"], 0),
        (
            "twice",
            &["send once --id m1", "send once --id m1 -s it's again", "approve Q1"],
            &["Heard go", "Heard once"],
            1,
        ),
    ];
    for (name, acts, expected, effects) in cases {
        for holder in HOLDERS {
            let mut scene = Scene::new(name, holder, BUSY, 1);
            let told: Vec<String> = acts
                .iter()
                .map(|act| match act.strip_suffix(" again") {
                    // The same again is no mistake, and makes nothing new.
                    Some(act) => {
                        let output = scene.act(USER, act);
                        assert!(output.status.success(), "{}", stderr(&output));
                        String::from_utf8(output.stdout).unwrap()
                    }
                    None => scene.does(act),
                })
                .collect();
            assert!(told[0].starts_with("received as i"), "{told:?}");
            if *name == "twice" {
                assert_eq!(told[0].lines().next(), told[1].lines().next());
            }
            let (result, lines) = scene.end();
            let at = format!("{name}, {holder:?}: {result}");
            assert_eq!(said(&lines), *expected, "{at}");
            assert_eq!(scene.effects(), *effects, "{at}");
            // The first is what the run was started with.
            assert_eq!(of_type(&lines, "input.queued").len(), 2, "{at}");
        }
    }
}

#[test]
fn a_message_can_come_from_standard_input() {
    let mut scene = Scene::new("stdin", Holder::Runs, BUSY, 1);
    let mut send = scene.folder.locum(&["send", "-"]);
    send.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut send = send.spawn().unwrap();
    let _watch = Watch::over(send.id(), PATIENCE);
    send.stdin.take().unwrap().write_all(b"two\nlines").unwrap();
    assert!(send.wait().unwrap().success());
    scene.does("approve Q1");
    assert_eq!(said(&scene.end().1), ["Heard go", "Heard two\nlines"]);
}

#[test]
fn what_waits_can_be_changed_moved_and_taken_away() {
    for holder in HOLDERS {
        let mut scene = Scene::new("changed", holder, BUSY, 1);
        for (user, text) in [("bob", "one"), ("cid", "two"), ("dan", "three"), ("dan", "four")] {
            let output = scene.act(user, &format!("send {text}"));
            assert!(output.status.success(), "{}", stderr(&output));
            let joined = String::from_utf8(output.stdout).unwrap().starts_with("added to i");
            assert_eq!(joined, text == "four", "{text} comes right behind another of the sender");
        }
        let queue = scene.folder.json(&["queue", "list"]);
        assert_eq!(words(&queue, "text"), ["one", "two", "three\nfour"], "{holder:?}");
        let [one, two, three] = words(&queue, "input")[..] else { panic!("{queue}") };
        scene.does(&format!("queue edit {one} uno"));
        scene.does(&format!("queue move {three} --before {one}"));
        scene.does(&format!("queue rm {two}"));
        let queue = scene.folder.json(&["queue"]);
        assert_eq!(words(&queue, "text"), ["three\nfour", "uno"], "{holder:?}");
        scene.does(&format!("queue move {three}"));
        for act in
            [&format!("queue rm {two}"), "queue edit i9999 x", &format!("queue edit {one} _")]
        {
            let output = scene.act(USER, act);
            assert_eq!(output.status.code(), Some(2), "{act}: {}", stderr(&output));
            assert!(stderr(&output).starts_with("error[E104] "), "{act}: {}", stderr(&output));
        }
        scene.folder.refused(&["queue", "rm", "nothing"], 2, "E100");
        scene.does("approve Q1");
        let (_, lines) = scene.end();
        assert_eq!(said(&lines), ["Heard go", "Heard uno", "Heard three\nfour"], "{holder:?}");
        assert_eq!(of_type(&lines, "input.dropped")[0]["text"], "two", "{holder:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_told() {
    for holder in HOLDERS {
        let scene = Scene::new("meant", holder, PAIR, 2);
        let cases: &[(&str, &str, &str)] = &[
            ("send _", "E100", "empty"),
            ("send two words", "E100", "quote it.\ndo: locum send 'two words'\n"),
            ("send main text", "E100", "named with @.\ndo: locum send @main text\n"),
            ("send left it_is", "E100", "\ndo: locum send @left 'it is'\n"),
            ("send @reader hi", "E120", "no agent or definition \"reader\""),
            ("send @left", "E104", "the message is empty"),
            ("send hi -s nobody", "E120", "no session \"nobody\""),
            ("send @nobody hi", "E120", "no agent or definition \"nobody\""),
            ("send @m hi", "E121", "could be 3 agents"),
            ("cancel nobody", "E120", "no agent"),
            ("continue left", "E104", "not paused but approve"),
            ("continue m", "E121", "main/left"),
            ("approve q9999", "E120", "no open ask \"q9999\""),
            ("approve Q1 -s nobody", "E120", "no session"),
            ("answer Q1 yes", "E104", "cannot be answered"),
            ("approve Q1 --scope all", "E100", "--scope"),
            ("approve", "E100", "<ID>"),
        ];
        for (act, code, word) in cases {
            let output = scene.act(USER, act);
            let told = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{act}, {holder:?}: {told}");
            assert!(told.starts_with(&format!("error[{code}] ")), "{act}: {told}");
            assert!(told.contains(word) && told.contains("\ndo: "), "{act}: {told}");
        }
        let queue = scene.folder.json(&["asks"]);
        assert_eq!(queue.as_array().unwrap().len(), 2, "nothing was answered");
    }
}

#[test]
fn whoever_is_second_is_told_who_was_first() {
    for holder in HOLDERS {
        let mut scene = Scene::new("second", holder, PAIR, 2);
        scene.does("approve Q1 Q2");
        for act in ["approve Q1", "deny Q2", "answer Q1 yes", "approve Q1 -s it's"] {
            let output = scene.act("bob", act);
            let told = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{act}, {holder:?}: {told}");
            assert!(told.starts_with("error[E125] "), "{act}: {told}");
            assert!(told.contains("allowed by ann"), "{act}: {told}");
        }
        scene.end();
        assert_eq!(scene.effects(), 2, "{holder:?}");
    }
}

#[test]
fn of_two_who_answer_at_once_exactly_one_is_heard() {
    for holder in HOLDERS {
        for round in 0..3 {
            let mut scene = Scene::new(&format!("race{round}"), holder, BUSY, 1);
            let start = |user: &str| {
                let mut command = scene.folder.locum(&["approve", &scene.asks[0]]);
                command.env("USER", user).stdout(Stdio::piped()).stderr(Stdio::piped());
                let child = command.spawn().unwrap();
                (Watch::over(child.id(), PATIENCE), child)
            };
            let both = [start("bob"), start("cid")];
            let both = both.map(|(_watch, child)| child.wait_with_output().unwrap());
            let mut exits = both.each_ref().map(|output| output.status.code());
            exits.sort_unstable();
            assert_eq!(exits, [Some(0), Some(2)], "{holder:?}: {both:?}");
            let first = if both[0].status.success() { "bob" } else { "cid" };
            let told: String = both.iter().map(stderr).collect();
            assert!(told.contains(&format!("allowed by {first}")), "{holder:?}: {told}");
            let (_, lines) = scene.end();
            assert_eq!(decisions(&lines), [format!("allow by {first}")], "{holder:?}");
            assert_eq!(scene.effects(), 1, "{holder:?}");
        }
    }
}
