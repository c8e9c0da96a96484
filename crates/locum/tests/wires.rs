//! The same scripted conversation over every wire that reaches a model: text, two calls at once, a
//! sub-agent, reasoning. What agents said and did is the same, whatever it was packed in.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use serde_json::{Value, json};

const SCRIPT: &str = r#"
defaults: {chunk: 5, usage: {in: 100, out: 20, cached: 7}}
agents:
  main:
    - say: "Looking. Grüße 👋"
      reasoning: "I should look at two things."
      calls:
        - list_agents: {}
        - spawn_agent: {agent: worker, message: "count to three", label: counter}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - say: "All counted."
  worker:
    - say: "counting"
      calls: [{list_agents: {}}]
    - calls: [{complete: {result: "three"}}]
"#;

/// One after the other, so that everything has its place: the whole journal is the same.
const IN_ORDER: &str = r#"
defaults: {chunk: 5, usage: {in: 100, out: 20, cached: 7}}
agents:
  main:
    - say: "Looking. Grüße 👋"
      reasoning: "I should look at two things."
      calls: [{list_agents: {}}, {ls: {path: "."}}]
    - calls: [{use_agent: {agent: worker, message: "count to three", label: counter}}]
    - say: "All counted: {{last}}"
  worker:
    - {say: "counting", reasoning: "One, two.", calls: [{list_agents: {}}]}
    - calls: [{complete: {result: "three"}}]
"#;

/// The model, and what the key and the address are called.
const MODELS: [(&str, &str); 5] = [
    ("anthropic/x", "ANTHROPIC"),
    ("openai-chat/x", "OPENAI"),
    ("openai-responses/x", "OPENAI"),
    ("openai/x", "OPENAI"),
    ("deepseek/x", "DEEPSEEK"),
];

/// A folder with a server in it, both gone when the test is.
struct Server {
    folder: PathBuf,
    child: Child,
    base: String,
}

impl Server {
    fn start(name: &str, text: &str) -> Server {
        let folder = env::temp_dir().join(format!("locum-wires-{}-{name}", process::id()));
        // Where agents look around there is always the same to see.
        fs::create_dir_all(folder.join("work/src")).unwrap();
        let script = folder.join("script.yaml");
        fs::write(&script, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.arg("script-server").arg(&script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let base = said.trim().strip_prefix("listening on ").unwrap().to_owned();
        Server { folder, child, base }
    }

    fn run(&self, model: &str, prefix: &str) -> Vec<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(["run", "Hello", "--json", "-s", "s", "-m", model]).arg("--data");
        command.arg(self.data(model)).current_dir(self.folder.join("work")).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", &self.folder).env_remove("LOCUM_CONFIG");
        command.env(format!("{prefix}_API_KEY"), "k").env(format!("{prefix}_BASE_URL"), &self.base);
        lines_of(command)
    }

    fn data(&self, model: &str) -> PathBuf {
        self.folder.join(model.replace(['/', ':', '.'], "-"))
    }

    /// Everything the journal of a run tells, as read afterwards.
    fn journal(&self, model: &str) -> Vec<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(["sessions", "export", "s", "--data"]).arg(self.data(model));
        lines_of(command)
    }
}

fn lines_of(mut command: Command) -> Vec<Value> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What each agent said, thought, called and became. Agents work side by side, so only the order
/// within each is the same.
fn deeds(lines: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut deeds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut thoughts = BTreeMap::new();
    for line in lines {
        let agent = line["agent"]["path"].as_str().unwrap_or_default().to_owned();
        let kept: &[&str] = match line["type"].as_str().unwrap() {
            "message" => &["role", "text"],
            "turn.finished" => &["turn", "usage"],
            "tool.started" => &["name", "input"],
            "tool.finished" => &["name", "ok"],
            "agent.finished" => &["outcome", "result"],
            "thinking.delta" => {
                let thought: &mut String = thoughts.entry(agent).or_default();
                thought.push_str(line["text"].as_str().unwrap());
                continue;
            }
            _ => continue,
        };
        let fields = kept.iter().map(|field| ((*field).to_owned(), line[*field].clone()));
        deeds.entry(agent).or_default().push(Value::Object(fields.collect()));
    }
    for (agent, thought) in thoughts {
        deeds.entry(agent).or_default().push(json!({ "thought": thought }));
    }
    deeds
}

#[test]
fn every_wire_leads_to_the_same() {
    let server = Server::start("deeds", SCRIPT);
    let first = deeds(&server.run(MODELS[0].0, MODELS[0].1));
    assert_eq!(first.keys().collect::<Vec<_>>(), ["main", "main/counter"]);
    let thought = json!({ "thought": "I should look at two things." });
    assert_eq!(first["main"].last(), Some(&thought));
    let usage = json!({ "in": 100, "out": 20, "cached": 7, "cache_write": 0, "reasoning": 0 });
    assert!(first["main"].iter().any(|deed| deed["usage"] == usage), "{first:?}");
    for (model, prefix) in &MODELS[1..] {
        assert_eq!(deeds(&server.run(model, prefix)), first, "{model}");
    }
}

/// A journal without what may differ: when it was, and what things are called.
fn without_ids(mut lines: Vec<Value>) -> Vec<Value> {
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        // A definition that is brought is an event more, so later calls have other numbers.
        for name in ["ts", "model", "ms", "call", "parent_call"] {
            fields.remove(name);
        }
        if let Some(receipt) = fields.get_mut("receipt").and_then(Value::as_object_mut) {
            receipt.remove("ms");
        }
        if let Some(attention) = fields.get_mut("attention").and_then(Value::as_object_mut) {
            attention.remove("since");
            attention.remove("sentence");
        }
    }
    lines
}

#[test]
fn every_wire_leaves_the_same_journal_up_to_ids() {
    let server = Server::start("journal", IN_ORDER);
    let journal = |model: &str, prefix: &str| {
        server.run(model, prefix);
        without_ids(server.journal(model))
    };
    let first = journal(MODELS[0].0, MODELS[0].1);
    let kinds = |kind: &str| first.iter().filter(|line| line["type"] == kind).count();
    let kinds = [kinds("tool.finished"), kinds("agent.finished"), kinds("message")];
    assert_eq!(kinds, [5, 1, 3], "{first:#?}");
    let script = format!("script:{}", server.folder.join("script.yaml").display());
    let others = MODELS[1..].iter().copied().chain([(script.as_str(), "SCRIPT")]);
    for (model, prefix) in others {
        let journal = journal(model, prefix);
        for (line, other) in first.iter().zip(&journal) {
            assert_eq!(other, line, "{model}");
        }
        assert_eq!(journal.len(), first.len(), "{model}");
    }
}
