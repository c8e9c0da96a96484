//! Sessions in states no headless run comes to yet: somebody asks, something waits in the queue, a
//! tool runs. Made input by input, then looked at with the real binary.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use locum_journal::{Journal as _, Records as _, Sqlite};
use locum_kernel::{
    Allow, Audience, Class, Config, Definition, Effect, Entry, Event, Input, Kind, Message,
    PolicyMode, Reply, Seq, Time, To, ToolSpec, TreeLimits, Urgency, Use, VERSION, Verdict, Who,
    owed, step,
};
use locum_runtime::clock::System;
use locum_runtime::driver::{Driver, World, look};
use serde_json::{Value, json};

use crate::{Folder, words};

struct Stage {
    journal: Sqlite,
    session: &'static str,
    now: u64,
}

impl Stage {
    fn new(folder: &Folder, session: &'static str, model: &str) -> Stage {
        fs::create_dir_all(folder.data()).unwrap();
        let journal = Sqlite::open(&folder.journal()).unwrap();
        let mut stage = Stage { journal, session, now: 1_700_000_000_000 };
        let tool = |name: &str, class| ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: name.into(),
            class,
            idempotent: false,
            subject: Some("command".into()),
            timeout_ms: None,
        };
        stage.take(Input::Configured(Box::new(Config {
            offers: Vec::new(),
            session: session.into(),
            workspace: String::new(),
            main: Definition::new("main", Kind::Main),
            model: model.into(),
            audience: Audience::Present,
            mode: PolicyMode::Ask,
            rules: Vec::new(),
            limits: TreeLimits::default(),
            tools: vec![tool("exec", Class::Exec)],
            definitions: vec![Definition::new("builder", Kind::Agent)],
            models: BTreeMap::new(),
        })));
        stage
    }

    fn take(&mut self, input: Input) {
        self.now += 1_000;
        let mut session = look(&self.journal, self.session).unwrap();
        let (before, at) = (session.seq(), Time(self.now));
        let events = step(&mut session, at, input).unwrap();
        let entry = Entry { v: VERSION, seq: Seq(before.0 + 1), at, events };
        self.journal.append(self.session, before, &entry).unwrap();
    }

    fn say(&mut self, text: &str, reply_to: Option<&str>) {
        self.take(Input::Said(Message {
            pictures: Vec::new(),
            channel: "chat".into(),
            sender: "ann".into(),
            external_id: None,
            text: text.into(),
            urgency: Urgency::Queue,
            to: To::Floor,
            reply_to: reply_to.map(str::to_owned),
        }));
    }

    /// The model call that is owed to this agent is answered.
    fn reply(&mut self, of: u32, text: &str, calls: &[(&str, Value)]) {
        let session = look(&self.journal, self.session).unwrap();
        let key = owed(&session).iter().find_map(|effect| match effect {
            Effect::CallModel { key, agent, .. } => (agent.0 == of).then_some(*key),
            Effect::RunTool { .. }
            | Effect::Prepare { .. }
            | Effect::Deliver { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => None,
        });
        let call = |(name, arguments): &(&str, Value)| Use::new(*name, arguments.clone());
        let calls = calls.iter().map(call).collect();
        let reply = Reply { text: text.into(), calls, ..Reply::default() };
        self.take(Input::Replied { key: key.unwrap(), reply });
    }
}

/// Two builders want the same; main has a question; a message waits; an answer is on its way.
fn asking(folder: &Folder, session: &'static str) -> Stage {
    let mut stage = Stage::new(folder, session, "script:none");
    stage.say("build both", None);
    let spawn = |label: &str| json!({ "agent": "builder", "message": "build", "label": label });
    let calls = [("spawn_agent", spawn("left")), ("spawn_agent", spawn("right"))];
    stage.reply(0, "Two builders.", &calls);
    stage.reply(1, "To build it.", &[("exec", json!({ "command": "make \u{1b}[2Jall" }))]);
    stage.reply(2, "To build it.", &[("exec", json!({ "command": "make \u{1b}[2Jall" }))]);
    let question = json!({ "question": "Which target?", "options": ["debug", "it's release"] });
    stage.reply(0, "", &[("ask_user", question)]);
    stage
}

#[test]
fn what_waits_for_an_answer_is_listed_with_the_ways_to_answer() {
    let folder = Folder::new("asks");
    // Looked at while somebody has it open.
    let stage = asking(&folder, "it's one");
    let asks = folder.json(&["asks"]);
    let mut kinds = words(&asks, "kind");
    kinds.sort_unstable();
    assert_eq!(kinds, ["approval", "approval", "question"]);
    let all = asks.as_array().unwrap();
    let approvals: Vec<&Value> = all.iter().filter(|ask| ask["kind"] == "approval").collect();
    assert_eq!(approvals[0]["input"], json!({ "command": "make \u{1b}[2Jall" }));
    assert_eq!(approvals[0]["siblings"], json!([approvals[1]["id"]]));
    assert_eq!(approvals[0]["path"], "main/left");
    let id = approvals[0]["id"].as_str().unwrap();
    let ways = approvals[0]["do"].as_array().unwrap();
    assert_eq!(ways[0], format!("locum approve {id} -s 'it'\\''s one'"));
    assert!(ways.contains(&json!(format!("locum approve {id} --scope fanout -s 'it'\\''s one'"))));
    let question = all.iter().find(|ask| ask["kind"] == "question").unwrap();
    assert_eq!(question["options"], json!(["debug", "it's release"]));
    assert_eq!(folder.json(&["asks", id])[0]["id"], id);

    let text = folder.text(&["asks"]);
    assert!(text.contains("\"command\": \"make \\u001b[2Jall\""), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = folder.text(&["agents"]);
    let titles: Vec<&str> =
        text.lines().filter(|line| ["NEEDS YOU", "WORKING", "FINISHED"].contains(line)).collect();
    assert_eq!(titles, ["NEEDS YOU"], "{text}");
    let left = folder.text(&["show", "left"]);
    assert!(left.contains(&format!("do         locum approve {id} ")), "{left}");
    drop(stage);
    folder.refused(&["asks", "q9999"], 2, "E120");
}

#[test]
fn asks_of_several_sessions_are_told_apart() {
    let folder = Folder::new("asks-two");
    drop(asking(&folder, "one"));
    drop(asking(&folder, "two"));
    let asks = folder.json(&["asks"]);
    assert_eq!(asks.as_array().unwrap().len(), 6);
    let id = asks[0]["id"].as_str().unwrap();
    let told = folder.refused(&["asks", id], 2, "E121");
    assert!(told.contains(&format!("{id} in one")) && told.contains("two"), "{told}");
    assert_eq!(folder.json(&["asks", id, "-s", "two"])[0]["session"], "two");
    assert_eq!(folder.json(&["asks", "-s", "two"]).as_array().unwrap().len(), 3);
}

#[test]
fn what_waits_its_turn_is_listed() {
    let folder = Folder::new("queue");
    let mut stage = Stage::new(&folder, "busy", "script:none");
    for text in ["first", "second\nline", "third"] {
        stage.say(text, None);
        stage.now += 60_000;
    }
    let queue = folder.json(&["queue", "list"]);
    assert_eq!(words(&queue, "text"), ["second\nline", "third"]);
    assert_eq!(words(&queue, "from"), ["ann", "ann"]);
    assert_eq!(queue[0]["position"], 1);
    let text = folder.text(&["queue"]);
    assert!(text.contains("ann (chat)  second line"), "{text}");
}

/// So long that the driver keeps a snapshot: what lies before it is not needed to go on.
#[test]
fn damage_before_a_snapshot_is_listed_and_hides_nothing_after_it() {
    let folder = Folder::new("snapshot");
    let stage = Stage::new(&folder, "long", "script:of-a-kind");
    let first = look(&stage.journal, "long").unwrap().seq().0;
    let tickets = (first..first + 1_000).map(|before| {
        let (seq, at, events) = (Seq(before + 1), Time(stage.now), vec![Event::Restarted]);
        stage.journal.submit("long", Seq(before), &Entry { v: VERSION, seq, at, events })
    });
    for ticket in tickets.collect::<Vec<_>>() {
        ticket.wait().unwrap();
    }
    let journal: Arc<Sqlite> = Arc::new(stage.journal);
    let world = World { journal: journal.clone(), clock: Arc::new(System) };
    drop(Driver::open("long", world).unwrap());
    assert!(journal.newest_snapshot("long").unwrap().is_some());
    drop(journal);
    assert_eq!(folder.json(&["sessions"])[0]["damaged"], Value::Null);

    folder.damage("long");
    assert_eq!(words(&folder.json(&["agents"]), "state"), ["done"]);
    let listed = folder.json(&["sessions"]);
    let why = listed[0]["damaged"].as_str().unwrap_or_default();
    assert!(why.contains("checksum"), "{listed}");
    folder.refused(&["replay", "long"], 7, "E113");
}

#[test]
fn a_fork_runs_no_tool_again() {
    let folder = Folder::new("fork-tools");
    let script = "agents: {main: [{say: \"So be it: {{last}}\", repeat: true}]}";
    let mut stage = Stage::new(&folder, "tool", &folder.script("main.yaml", script));
    stage.say("run it", None);
    stage.reply(0, "I will.", &[("exec", json!({ "command": "deploy" }))]);
    let ask = look(&stage.journal, "tool").unwrap().asks().next().unwrap().id;
    let (verdict, by) = (Verdict::Allow(Allow::default()), Who::Person("ann".into()));
    stage.take(Input::Answered { ask, verdict, by, digest: None });
    let session = look(&stage.journal, "tool").unwrap();
    let due = owed(&session);
    assert!(matches!(due[..], [Effect::RunTool { .. }]), "{due:?}");
    drop(stage);

    let at = session.seq().0.to_string();
    folder.text(&["fork", "tool", "--at", &at, "--name", "fork"]);
    let text = folder.text(&["run", "--resume", "fork"]);
    assert_eq!(text, "So be it: interrupted: outcome unknown\n");
}

#[test]
fn a_fork_sends_no_message_again() {
    let folder = Folder::new("fork-sends");
    let mut stage = Stage::new(&folder, "chat", "script:none");
    stage.say("hello", Some("chat:1"));
    stage.reply(0, "Hello to you.", &[]);
    let session = look(&stage.journal, "chat").unwrap();
    let due = owed(&session);
    assert!(matches!(due[..], [Effect::Deliver { .. }]), "{due:?}");
    drop(stage);
    folder.text(&["fork", "chat", "--at", &session.seq().0.to_string(), "--name", "fork"]);
    let steps = folder.text(&["replay", "fork", "--json"]);
    let last: Value = serde_json::from_str(steps.lines().last().unwrap()).unwrap();
    assert_eq!(last["owed"], json!([]));
}
