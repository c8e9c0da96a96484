//! `@name` in a message, through the real program: every way in means the same, whoever drives the
//! session; what is said twice is said once; nothing of an untrusted folder is read; a death
//! between the word and the deed loses nothing and repeats nothing.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "terminal/pty.rs"]
mod pty;
#[path = "choose/server.rs"]
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod server;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use pty::Terminal;
use serde_json::{Value, json};
use server::{Server, says};
use support::{Folder, Running, of_type, output_of, stderr};

const POET: &str = "---\nname: poet\ndescription: rhymes\n---\nRhyme.\n";
/// The work is beside the home folder, not above it: that could not be trusted.
const FILE: &str = "work/.claude/agents/poet.md";

/// Main wants to mend something, and somebody must allow it. Whoever else comes, rhymes.
const SCRIPT: &str = r#"
tools: {mend: {class: write, says: "mended", log: effects.log}}
agents:
  main:
    - calls: [{mend: {path: a.txt}}]
    - {say: "Heard {{user}}", repeat: true}
  "*":
    - calls: [{complete: {result: "a rhyme on {{user}}"}}]
"#;

/// Who has the data folder when somebody speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Runs,
    /// Somebody who drives another session.
    RunsAnother,
    Nobody,
    Killed,
}

/// How the folder's definitions come to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trusted {
    /// For good.
    Kept,
    /// By whoever started the run, for that run.
    Flag,
    Never,
}

struct Scene {
    folder: Folder,
    running: Option<Running>,
    /// Holds the data folder and nothing else of interest.
    other: Option<Running>,
}

impl Scene {
    fn new(name: &str, holder: Holder, trusted: Trusted) -> Scene {
        let folder = Folder::new(&format!("mention-{name}-{holder:?}"));
        fs::create_dir_all(folder.0.join("work/.claude/agents")).unwrap();
        folder.write(FILE, POET);
        if trusted == Trusted::Kept {
            folder.text(&["trust", "work"]);
        }
        let model = folder.script("script.yaml", SCRIPT);
        let approvals = match holder {
            Holder::Runs | Holder::Killed => "stdio",
            Holder::Nobody | Holder::RunsAnother => "park",
        };
        let mut arguments = vec!["run", "go", "-C", "work", "-m", &model, "-s", "s"];
        arguments.extend(["--approvals", approvals]);
        if trusted == Trusted::Flag {
            arguments.push("--trust");
        }
        let mut running = Running::start(&folder, &arguments);
        running.until_type("ask.opened");
        let (mut kept, mut other) = (None, None);
        match holder {
            Holder::Runs => kept = Some(running),
            Holder::Killed => drop(running.kill()),
            Holder::Nobody => drop(running.end()),
            Holder::RunsAnother => {
                running.end();
                let arguments = ["run", "go", "-m", &model, "-s", "t", "--approvals", "stdio"];
                let mut another = Running::start(&folder, &arguments);
                another.until_type("ask.opened");
                other = Some(another);
            }
        }
        Scene { folder, running: kept, other }
    }

    /// Goes through one of the ways in.
    fn says(&mut self, way: &str) {
        if let Some(line) = way.strip_prefix("stdio ") {
            let said: Value = serde_json::from_str(line).unwrap();
            return self.running.as_mut().unwrap().say(&said);
        }
        let words: Vec<String> = way.split(' ').map(|word| word.replace('_', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = self.folder.text(&[&words[..], &["-s", "s"]].concat());
        assert!(told.starts_with("received as i"), "{way}: {told}");
    }

    /// Allows what main asks for, lets the session come to its end, and returns every line.
    fn end(&mut self) -> Vec<Value> {
        drop(self.other.take());
        let asks = self.folder.json(&["asks", "-s", "s"]);
        let ask = asks[0]["id"].as_str().unwrap();
        let running = self.running.take().map(|mut running| {
            running.until_type("agent.finished");
            running
        });
        self.folder.text(&["approve", ask, "-s", "s"]);
        if let Some(running) = running {
            running.end();
        } else {
            self.resume();
        }
        self.lines()
    }

    fn resume(&self) {
        let told = Running::start(&self.folder, &["run", "--resume", "s"]).end();
        assert_eq!(told.exit, Some(0), "{}", told.stderr);
    }

    fn lines(&self) -> Vec<Value> {
        let lines = self.folder.text(&["sessions", "export", "s"]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// One poet came, once, with these words, and its answer reached main; the mending was done once.
fn assert_one_poet(scene: &Scene, lines: &[Value], at: &str) {
    let born = of_type(lines, "agent.spawned");
    let born: Vec<_> = born.iter().map(|it| (&it["definition"], &it["brief"])).collect();
    assert_eq!(born, [(&json!("poet"), &json!("rain"))], "{at}");
    let ended = of_type(lines, "agent.finished");
    assert_eq!(ended.len(), 1, "{at}");
    assert_eq!(ended[0]["result"], "a rhyme on rain", "{at}");
    let queued = of_type(lines, "input.queued");
    let queued: Vec<_> = queued.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(queued, ["go", "@poet rain"], "{at}");
    assert_eq!(of_type(lines, "input.started").len(), 2, "{at}");
    assert_eq!(scene.folder.read("effects.log").lines().count(), 1, "{at}");
}

#[test]
fn every_way_in_means_the_same() {
    let everywhere = [Holder::Runs, Holder::RunsAnother, Holder::Nobody, Holder::Killed];
    let ways: &[(&str, &[&str], &[Holder])] = &[
        ("one", &["send @poet_rain"], &everywhere),
        ("two", &["send @poet rain"], &everywhere),
        ("steer", &["send @poet_rain --steer"], &[Holder::Runs, Holder::Nobody]),
        ("interrupt", &["send @poet rain --interrupt"], &[Holder::Runs, Holder::Nobody]),
        ("again", &["send @poet_rain --id m", "send @poet rain --id m"], &everywhere),
        ("to", &[r#"stdio {"type":"message","to":"poet","text":"rain"}"#], &[Holder::Runs]),
        (
            "line",
            &[
                r#"stdio {"type":"message","text":"@poet rain","mode":"steer","id":"m"}"#,
                r#"stdio {"type":"message","text":"@poet rain","mode":"steer","id":"m"}"#,
                "send @poet_rain --id m",
            ],
            &[Holder::Runs],
        ),
    ];
    for (name, acts, holders) in ways {
        for holder in *holders {
            let mut scene = Scene::new(name, *holder, Trusted::Kept);
            for act in *acts {
                scene.says(act);
            }
            let lines = scene.end();
            assert_one_poet(&scene, &lines, &format!("{name}, {holder:?}"));
        }
    }
}

#[test]
fn who_drives_the_session_may_know_more() {
    let mut scene = Scene::new("more", Holder::Runs, Trusted::Flag);
    scene.says("send @poet_rain");
    let lines = scene.end();
    assert_one_poet(&scene, &lines, "trusted for this run");
}

#[test]
fn nothing_of_an_untrusted_folder_is_read() {
    for holder in [Holder::Runs, Holder::RunsAnother, Holder::Nobody, Holder::Killed] {
        let scene = Scene::new("untrusted", holder, Trusted::Never);
        for words in [&["send", "@poet rain"][..], &["send", "@poet", "rain"]] {
            let told = scene.folder.refused(&[words, &["-s", "s"]].concat(), 2, "E120");
            assert!(told.contains("no agent or definition \"poet\""), "{holder:?}: {told}");
            assert!(told.contains("is not trusted: 1 agent.\ndo: locum trust "), "{told}");
        }
        assert_eq!(of_type(&scene.lines(), "input.queued").len(), 1, "{holder:?}");
    }
    let folder = Folder::new("mention-untrusted-run");
    fs::create_dir_all(folder.0.join("work/.claude/agents")).unwrap();
    folder.write(FILE, POET);
    let model = folder.script("script.yaml", SCRIPT);
    let output = folder.output(&["run", "@poet rain", "-m", &model, "-C", "work"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("error[E120] "), "{told}");
    assert!(told.contains("is not trusted: 1 agent.\ndo: locum trust "), "{told}");
}

#[test]
fn a_definition_goes_before_who_had_the_name() {
    let folder = Folder::new("mention-before");
    fs::create_dir_all(folder.0.join("work/.claude/agents")).unwrap();
    folder.write(FILE, POET);
    let model = folder.script("script.yaml", &SCRIPT.replace("    - calls: [{mend", "    #"));
    let run = ["run", "@poet rain", "-m", &model, "-C", "work", "-s", "s", "--trust"];
    folder.text(&run);
    // Whoever was trusted for that run has ended, and nothing is read now.
    for words in [&["send", "@poet snow"][..], &["send", "@poet", "snow"], &["send", "@poet"]] {
        let told = folder.refused(&[words, &["-s", "s"]].concat(), 2, "E120");
        assert!(told.contains("a1 had the name and has ended (done)"), "{told}");
        assert!(told.contains("is not trusted: 1 agent.\ndo: locum trust "), "{told}");
    }
    // Their id means them.
    let told = folder.refused(&["send", "@a1", "snow", "-s", "s"], 2, "E104");
    assert!(told.contains("a1 has ended (done)"), "{told}");
    folder.text(&["trust", "work"]);
    folder.text(&["send", "@poet snow", "-s", "s"]);
    folder.text(&["run", "--resume", "s"]);
    let born = folder.json(&["agents", "-s", "s"]);
    assert_eq!(born[2]["label"], "poet-2", "{born}");
}

#[test]
fn a_run_that_names_nobody_leaves_nothing() {
    let folder = Folder::new("mention-nothing");
    let model = folder.script("script.yaml", SCRIPT);
    for (text, code) in [("@typo x", "E120"), ("@reader x", "E120"), ("@main", "E104")] {
        folder.refused(&["run", text, "-m", &model], 2, code);
        assert_eq!(folder.json(&["sessions"]), json!([]), "{text}");
    }
    folder.refused(&["run", "-c", "hi", "-m", &model], 2, "E120");
    // Nor does it leave a trace in a session that is there.
    folder.output(&["run", "hi", "-m", &model, "-s", "s", "--approvals", "deny"]);
    let before = folder.text(&["sessions", "export", "s"]);
    folder.refused(&["run", "-c", "@typo x", "-m", &model], 2, "E120");
    assert_eq!(folder.text(&["sessions", "export", "s"]), before);
}

#[test]
fn a_name_alone_begins() {
    for (name, way) in [("alone", "send @poet"), ("quotes", "send @poet _")] {
        for holder in [Holder::Runs, Holder::Nobody] {
            let mut scene = Scene::new(name, holder, Trusted::Kept);
            scene.says(way);
            let lines = scene.end();
            assert_eq!(of_type(&lines, "agent.spawned")[0]["brief"], "Begin.", "{way} {holder:?}");
        }
    }
    let folder = Folder::new("mention-alone-run");
    let model = folder.script("script.yaml", "agents: {main: [say: so], poet: [say: drip]}\n");
    folder.text(&["run", "@poet", "-m", &model, "-s", "s", "--approvals", "deny"]);
    let lines = folder.text(&["sessions", "export", "s"]);
    assert!(lines.contains(r#""brief":"Begin.""#), "{lines}");
}

#[test]
fn each_task_for_a_name_is_done() {
    for holder in [Holder::Nobody, Holder::Killed, Holder::RunsAnother] {
        let mut scene = Scene::new("each", holder, Trusted::Kept);
        for way in ["send @poet rain", "send @poet_snow", "send @poet hail --steer"] {
            scene.says(way);
        }
        let lines = scene.end();
        let born = of_type(&lines, "agent.spawned");
        let born: Vec<_> = born.iter().map(|it| it["brief"].as_str().unwrap()).collect();
        assert_eq!(born, ["rain", "snow", "hail"], "{holder:?}");
        let ended = of_type(&lines, "agent.finished");
        let ended: Vec<_> = ended.iter().map(|it| it["result"].as_str().unwrap()).collect();
        let expected = ["a rhyme on rain", "a rhyme on snow", "a rhyme on hail"];
        assert_eq!(ended, expected, "{holder:?}");
        let told = serde_json::to_string(&lines).unwrap();
        assert!(!told.contains("who had just ended"), "{told}");
    }
}

/// Somebody has the floor and is in the middle of a call when a person names somebody else.
const FLOOR: &str = r#"
tools: {mend: {class: write, says: "mended", log: effects.log}}
agents:
  main:
    - calls: [{use_agent: {agent: digger, message: dig}}]
    - {say: "Heard {{user}}", repeat: true}
  digger:
    - calls: [{mend: {path: a.txt}}]
    - calls: [{complete: {result: dug}}]
  poet:
    - calls: [{ask_user: {question: "Which one?"}}]
    - calls: [{complete: {result: rhymed}}]
"#;

#[test]
fn who_was_named_outlives_who_had_the_floor() {
    let folder = Folder::new("mention-outlives");
    let model = folder.script("script.yaml", FLOOR);
    let arguments = ["run", "go", "-m", &model, "-s", "s", "--approvals", "stdio"];
    let mut running = Running::start(&folder, &arguments);
    running.until_type("ask.opened");
    folder.text(&["send", "@poet rain", "-s", "s"]);
    running.until_type("ask.opened");
    let asks = folder.json(&["asks", "-s", "s"]);
    let approval = asks[0]["id"].as_str().unwrap();
    folder.text(&["approve", approval, "-s", "s"]);
    running.until_type("agent.finished");
    // Whoever had the floor is done; the question is still there.
    let asks = folder.json(&["asks", "-s", "s"]);
    assert_eq!(asks.as_array().unwrap().len(), 1, "{asks}");
    folder.text(&["send", "the red one", "-s", "s"]);
    let told = running.end();
    assert_eq!(told.exit, Some(0), "{}", told.stderr);
    let lines = folder.text(&["sessions", "export", "s"]);
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let ended = of_type(&lines, "agent.finished");
    let ended: Vec<_> = ended.iter().map(|it| it["result"].as_str().unwrap()).collect();
    assert_eq!(ended, ["dug", "rhymed"]);
}

#[test]
fn names_like_it_are_told_of_both_kinds() {
    for holder in [Holder::Runs, Holder::Nobody] {
        let scene = Scene::new("near", holder, Trusted::Kept);
        let told = scene.folder.refused(&["send", "@peot", "rain", "-s", "s"], 2, "E120");
        assert!(told.contains("poet (definition)"), "{holder:?}: {told}");
        let told = scene.folder.refused(&["send", "@mian rain", "-s", "s"], 2, "E120");
        assert!(told.contains("a0 main (agent)"), "{holder:?}: {told}");
        // Not everything that begins so is a name.
        scene.folder.text(&["send", "@types/node is old", "-s", "s"]);
        let queue = scene.folder.json(&["queue", "-s", "s"]);
        assert_eq!(queue[0]["text"], "@types/node is old", "{holder:?}");
    }
}

#[test]
fn a_file_that_is_gone_or_has_just_come() {
    // Gone between the word and the deed: main hears the words.
    let mut scene = Scene::new("gone", Holder::Nobody, Trusted::Kept);
    scene.says("send @poet_rain");
    fs::remove_file(scene.folder.0.join(FILE)).unwrap();
    let lines = scene.end();
    assert_eq!(of_type(&lines, "agent.spawned").len(), 0);
    let told = serde_json::to_string(&lines).unwrap();
    assert!(told.contains("Heard @poet rain"), "{told}");
    // Written while the session runs.
    let mut scene = Scene::new("new", Holder::Runs, Trusted::Kept);
    scene.folder.write("work/.claude/agents/bard.md", &POET.replace("poet", "bard"));
    scene.says(r#"stdio {"type":"message","to":"@bard","text":"rain"}"#);
    let lines = scene.end();
    assert_eq!(of_type(&lines, "agent.spawned")[0]["definition"], "bard");
}

#[test]
fn killed_right_after_it_was_said() {
    for round in 0..4 {
        let mut scene = Scene::new(&format!("killed{round}"), Holder::Runs, Trusted::Kept);
        scene.says("send @poet_rain --id m");
        scene.running.take().unwrap().kill();
        // Whoever was not sure says it again.
        scene.says("send @poet_rain --id m");
        let lines = scene.end();
        assert_one_poet(&scene, &lines, &format!("round {round}"));
    }
}

#[test]
fn died_at_every_append_between_the_word_and_the_end() {
    for when in ["before", "after"] {
        let mut deaths = 0;
        for number in 1.. {
            let mut scene = Scene::new(&format!("{when}{number}"), Holder::Nobody, Trusted::Kept);
            scene.says("send @poet_rain");
            let asks = scene.folder.json(&["asks", "-s", "s"]);
            scene.folder.text(&["approve", asks[0]["id"].as_str().unwrap(), "-s", "s"]);
            let mut command = scene.folder.locum(&["run", "--resume", "s"]);
            command.env("LOCUM_DIE_AT", format!("{when}:{number}"));
            let lived = output_of(command).status.success();
            if !lived {
                deaths += 1;
                scene.resume();
            }
            let lines = scene.lines();
            let born = of_type(&lines, "agent.spawned");
            assert_eq!(born.len(), 1, "{when}:{number}: {born:?}");
            let ended = of_type(&lines, "agent.finished");
            assert_eq!(ended.len(), 1, "{when}:{number}");
            assert_eq!(ended[0]["result"], "a rhyme on rain", "{when}:{number}");
            assert_eq!(of_type(&lines, "input.queued").len(), 2, "{when}:{number}");
            if lived {
                break;
            }
        }
        assert!(deaths >= 4, "{when}: only {deaths}");
    }
}

#[test]
fn it_is_typed_while_something_is_asked() {
    let folder = Folder::new("mention-typed");
    fs::create_dir_all(folder.0.join("work/.claude/agents")).unwrap();
    folder.write(FILE, POET);
    let model = folder.script("script.yaml", SCRIPT);
    let arguments = ["run", "go", "-m", &model, "-s", "s", "-C", "work", "--trust", "--plain"];
    let Some(mut terminal) = Terminal::start(&folder, &arguments) else { return };
    terminal.until("y once");
    terminal.type_line("@peot rain");
    terminal.until("There is no agent or definition \"peot\". Near it: poet (definition).");
    terminal.type_line("@poet rain");
    // Who only completes says nothing that is printed plainly.
    let states = || folder.json(&["agents", "-s", "s"])[1]["state"].clone();
    let came = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(50));
        states() == "done"
    });
    assert!(came, "{}", states());
    terminal.type_line("y");
    let (text, exit) = terminal.end();
    assert_eq!(exit, Some(0), "{text}");
    let agents = folder.json(&["agents", "-s", "s"]);
    let states: Vec<_> = agents.as_array().unwrap().iter().map(|it| &it["label"]).collect();
    assert_eq!(states, ["main", "poet"], "{agents}");
}

/// What a request says, without what stays the same.
fn asked(request: &str) -> String {
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["messages"].to_string()
}

#[test]
fn a_name_in_the_middle_is_told_once_beside_the_words() {
    let folder = Folder::new("mention-middle");
    fs::create_dir_all(folder.0.join("work/.claude/agents")).unwrap();
    folder.write(FILE, POET);
    let server = Server::start(|_| says("done"));
    let hint = "poet (agent: use_agent)";
    let run = |words: &[&str]| {
        let mut command = folder.locum(&["run", "-m", "anthropic/x", "--trust", "-s", "s"]);
        command.args(["-C", "work"]);
        command.args(words);
        command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", server.base());
        let output = output_of(command);
        assert_eq!(output.stdout, b"done\n", "{}", stderr(&output));
        asked(server.asked().last().unwrap())
    };
    let first = run(&["please let @poet look at it"]);
    assert!(first.contains("please let @poet look at it") && first.contains(hint), "{first}");
    let second = run(&["write to ann@poet.com about `@poet` and @poet/x"]);
    assert!(second.contains("please let @poet look at it"), "{second}");
    assert!(!second.contains(hint), "{second}");
    let journal = folder.text(&["sessions", "export", "s"]);
    assert!(!journal.contains("use_agent"), "{journal}");
}
