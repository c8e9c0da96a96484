//! Three stories, told by the real program and talked with over standard input: a skill that
//! takes the floor, a worker that needs approval, more workers than slots. Each is also killed in
//! the middle, and ends the same.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use serde_json::{Value, json};
use support::{Act, Folder, Told, converse, example};

const STORIES: [Story; 3] = [
    Story {
        name: "a skill takes the floor",
        text: "research Python async APIs",
        script: "stack.yaml",
        flags: &["--approvals", "stdio"],
        people: stack_people,
        // It has spoken, and nobody has answered yet.
        middle: |line| line["type"] == "message" && line["agent"]["label"] == "research",
    },
    Story {
        name: "a worker needs approval",
        text: "document the auth system",
        script: "approval.yaml",
        flags: &["--approvals", "stdio"],
        people: approval_people,
        middle: |line| line["type"] == "ask.opened",
    },
    Story {
        name: "more workers than slots",
        text: "check everything",
        script: "workers.yaml",
        flags: &["--slots", "2"],
        people: |_| Act::Nothing,
        // The long tool runs, one worker asks, two wait for a slot.
        middle: |line| line["type"] == "tool.started" && line["name"] == "build",
    },
];

struct Story {
    name: &'static str,
    text: &'static str,
    script: &'static str,
    flags: &'static [&'static str],
    people: fn(&Value) -> Act,
    middle: fn(&Value) -> bool,
}

/// The message carries an id, so that saying it again after a kill is saying it once.
fn stack_people(line: &Value) -> Act {
    let resumed = line["type"] == "run.started" && line["resumed"] == true;
    let asked = line["type"] == "message" && line["agent"]["label"] == "research";
    if resumed || asked {
        let text = "focus on 3.13 specifically";
        return Act::Say(json!({"type": "message", "text": text, "id": "m1"}));
    }
    Act::Nothing
}

fn approval_people(line: &Value) -> Act {
    let open = match line["type"].as_str() {
        Some("ask.opened") => Some(&line["id"]),
        // What was open when the program was killed is still open.
        Some("run.started") => line["asks"].get(0).map(|ask| &ask["id"]),
        _ => None,
    };
    let allow = |id| json!({"type": "decision", "id": id, "decision": "allow", "scope": "once"});
    open.map_or(Act::Nothing, |id| Act::Say(allow(id)))
}

fn tell(folder: &Folder, story: &Story, answer: impl FnMut(&Value) -> Act) -> Told {
    let model = example(story.script);
    let mut arguments = vec!["run", story.text, "-s", "story", "-m", &model];
    arguments.extend(story.flags);
    converse(folder, &arguments, answer)
}

#[test]
fn a_kill_in_the_middle_of_each_story_changes_nothing() {
    for (at, story) in STORIES.iter().enumerate() {
        let whole = Folder::new(&format!("whole-{at}"));
        let told = tell(&whole, story, story.people);
        assert_eq!(told.exit, Some(0), "{}: {}", story.name, told.result());

        let folder = Folder::new(&format!("killed-{at}"));
        let killed = tell(&folder, story, |line| {
            if (story.middle)(line) { Act::Kill } else { (story.people)(line) }
        });
        assert_eq!(killed.exit, None, "{}", story.name);
        let mut arguments = vec!["run", "--resume", "story"];
        arguments.extend(story.flags);
        let resumed = converse(&folder, &arguments, story.people);
        assert_eq!(resumed.exit, Some(0), "{}: {}", story.name, resumed.result());
        assert_eq!(resumed.result()["text"], told.result()["text"], "{}", story.name);
        assert_eq!(resumed.result()["usage"], told.result()["usage"], "{}", story.name);
        let agents = |told: &Told| told.result()["agents"].clone();
        assert_eq!(agents(&resumed), agents(&told), "{}", story.name);
        let log = |folder: &Folder| std::fs::read_to_string(folder.0.join("effects.log")).ok();
        assert_eq!(log(&folder), log(&whole), "{}: a tool that writes ran once", story.name);
    }
}

/// A line in a few words: who, what, and the part that matters.
fn gist(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let detail = match line["type"].as_str().unwrap() {
        "message" | "message.delta" | "input.queued" | "input.started" => word("text"),
        "agent.spawned" => word("brief"),
        "agent.state" => word("state"),
        "floor.changed" => {
            let stack = line["stack"].as_array().unwrap().iter();
            let stack: Vec<&str> = stack.map(|path| path.as_str().unwrap()).collect();
            format!("{} [{}]", word("reason"), stack.join(" "))
        }
        "tool.started" => word("name"),
        "tool.finished" => format!("{} {}", word("name"), line["ok"]),
        "ask.opened" => format!("{} {}", word("kind"), word("summary")),
        "ask.closed" => format!("{} by {}", word("decision"), word("by").is_empty()),
        "agent.finished" => format!("{}: {}", word("outcome"), word("result")),
        "run.result" => format!("{}: {}", word("status"), word("text")),
        _ => String::new(),
    };
    let path = line["agent"]["path"].as_str().unwrap();
    format!("{path} {} {detail}", line["type"].as_str().unwrap()).trim_end().to_owned()
}

fn story_of(told: &Told) -> Vec<String> {
    let dull = ["run.started", "turn.started", "turn.finished", "attention"];
    let lines = told.lines.iter().filter(|line| !dull.contains(&line["type"].as_str().unwrap()));
    lines.map(gist).collect()
}

#[test]
fn the_skill_has_the_floor_until_it_completes() {
    let folder = Folder::new("stack");
    let told = tell(&folder, &STORIES[0], stack_people);
    let speech = "I'll search for Python async APIs. Any version in particular?";
    let found = "anyio, asyncio.TaskGroup and trio fit Python 3.13 async";
    let expected = [
        "main input.queued research Python async APIs",
        "main input.started research Python async APIs",
        "main agent.state model",
        "main tool.started use_skill",
        "main/research agent.spawned Python async APIs",
        "main/research floor.changed pushed [main main/research]",
        "main agent.state child",
        "main/research agent.state model",
        &format!("main/research message {speech}"),
        "main/research agent.state input",
        "main input.queued focus on 3.13 specifically",
        "main/research input.started focus on 3.13 specifically",
        "main/research agent.state model",
        "main/research tool.started web_search",
        "main/research agent.state tool",
        "main/research tool.finished web_search true",
        "main/research agent.state model",
        "main/research tool.started complete",
        "main/research tool.finished complete true",
        &format!("main/research agent.finished done: Found 3 APIs: {found}"),
        "main/research floor.changed complete [main]",
        "main tool.finished use_skill true",
        "main agent.state model",
        "main/research agent.state done",
        &format!("main message Here is what research found. Found 3 APIs: {found}"),
        "main agent.state done",
        &format!("main run.result ok: Here is what research found. Found 3 APIs: {found}"),
    ];
    assert_eq!(story_of(&told), expected);
}

#[test]
fn the_worker_is_named_asked_for_and_its_result_comes_back() {
    let folder = Folder::new("approval");
    let told = tell(&folder, &STORIES[1], approval_people);
    // The call that made it came back at once, and main went on.
    let spawned = told.of_type("tool.finished");
    let spawned = spawned.iter().find(|line| line["name"] == "spawn_agent").unwrap();
    let opened = told.of_type("ask.opened")[0];
    assert_eq!(opened["agent"]["path"], "main/auth research");
    assert_eq!(opened["input"]["path"], "docs/auth.md");
    assert!(spawned["seq"].as_u64() < opened["seq"].as_u64());
    let closed = told.of_type("ask.closed")[0];
    assert_eq!((&closed["decision"], &closed["scope"]), (&json!("allow"), &json!("once")));
    let edit = told.of_type("tool.finished");
    let edit = edit.iter().find(|line| line["name"] == "edit_file").unwrap();
    assert_eq!(edit["agent"]["path"], "main/auth research");
    assert!(closed["seq"].as_u64() < edit["seq"].as_u64());
    let ended = told.of_type("agent.finished")[0];
    assert_eq!(ended["result"], "docs/auth.md now says how long tokens live.");
    assert_eq!(ended["receipt"]["calls"], 1);
    let waited = told.of_type("tool.finished");
    let waited = waited.iter().find(|line| line["name"] == "wait").unwrap();
    assert!(waited["output"].as_str().unwrap().contains("docs/auth.md now says"));
    assert_eq!(told.result()["text"], "All done; the docs are right again.");
}

#[test]
fn more_workers_than_slots_and_the_right_one_is_answered() {
    let folder = Folder::new("workers");
    let told = tell(&folder, &STORIES[2], |_| Act::Nothing);
    let queued = told.of_type("agent.state");
    let queued: Vec<_> = queued.iter().filter(|line| line["state"] == "queued").collect();
    assert!(!queued.is_empty());
    for line in queued {
        assert_eq!(line["attention"]["kind"], "capacity_queue", "{line}");
        assert_eq!(line["attention"]["required"], false, "{line}");
    }
    for line in told.of_type("attention") {
        let count = |word: &str| line["counts"][word].as_u64().unwrap();
        // Main is on the floor and holds no slot.
        let active = count("model") + count("tool") + count("starting");
        assert!(active <= 3, "{line}");
    }
    let ended = told.of_type("agent.finished");
    let result = |label: &str| {
        let line = ended.iter().find(|line| line["agent"]["label"] == label).unwrap();
        line["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(result("planner"), "Planned: ship on Friday");
    assert_eq!(result("builder"), "The build is green.");
    assert_eq!(told.result()["text"], "Everybody is back.");
}
