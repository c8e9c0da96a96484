//! A folder to work in, a session in it, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use locum_journal::Memory;
use locum_kernel::{
    Audience, Config, Definition, Input, Kind, Message, PolicyMode, Program, ProgramInput, Rule,
    RuleKind, To, TreeLimits, Urgency,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::driver::{Driver, Hands, Until, World};
use locum_runtime::live::{PieceKind, Told};
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::{Toolbox, Tools};
use locum_tools::{Copies, Exec, Files, Place};
use serde_json::Value;

pub(crate) const DRIVE: &str = "__drive";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A word that nobody else has.
pub(crate) fn token() -> String {
    format!("edge{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A folder with a workspace and a data folder, which goes away.
pub(crate) struct Stage {
    pub(crate) root: PathBuf,
    pub(crate) place: Place,
    keep: bool,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let root = std::env::temp_dir().join(format!("locum-{}", token()));
        fs::create_dir_all(root.join("work")).unwrap();
        fs::create_dir_all(root.join("data")).unwrap();
        let mut stage = Stage::at(&root);
        stage.keep = false;
        stage
    }

    /// One that somebody else made and takes away.
    pub(crate) fn at(root: &Path) -> Stage {
        let place = Place {
            readable: Vec::new(),
            recipes: Vec::new(),
            session: "test".into(),
            workspace: root.join("work"),
            data: root.join("data"),
            config: None,
            home: None,
        };
        Stage { root: root.to_owned(), place, keep: true }
    }

    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.place.workspace.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work(name)).unwrap_or_else(|error| format!("({error})"))
    }

    /// A program in the workspace.
    pub(crate) fn program(&self, name: &str, text: &str) {
        let path = self.work(name);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn play(&self, yaml: &str, edit: impl FnOnce(&mut Config)) -> Played {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.played(yaml, edit))
    }

    /// What a session has to work with, and what people are told beside it.
    pub(crate) fn tools(&self) -> (Arc<Tools>, Arc<Mutex<Vec<String>>>) {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&notes);
        let copies = Copies::new(self.place.clone(), move |note| {
            told.lock().unwrap().push(note.to_owned());
        });
        let boxes: Vec<Box<dyn Toolbox>> = vec![
            Box::new(copies),
            Box::new(Files::new(&self.place).unwrap()),
            Box::new(Exec::new(self.place.clone())),
        ];
        (Arc::new(Tools::new(boxes)), notes)
    }

    pub(crate) async fn played(&self, yaml: &str, edit: impl FnOnce(&mut Config)) -> Played {
        let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(System);
        let (tools, notes) = self.tools();
        let mut config = config(&script, tools.as_ref());
        edit(&mut config);
        let world = World { journal: Arc::new(Memory::default()), clock: Arc::clone(&clock) };
        let mut driver = Driver::open("test", world).unwrap();
        let mut reader = driver.subscribe();
        for input in [Input::Configured(Box::new(config)), Input::Said(message())] {
            driver.take(input).unwrap();
        }
        let provider = Arc::new(Scripted::new(script, clock));
        let hands = Hands { provider, tools };
        driver.run(&hands, Until::Rest).await.unwrap();
        driver.release().await;
        drop(hands);
        let notes = notes.lock().unwrap().clone();
        let mut played = Played { notes, ..Played::default() };
        while let Some(told) = reader.next().await {
            match told {
                Told::Line(line) => played.lines.push(serde_json::to_value(&*line).unwrap()),
                Told::Piece { piece, .. } => {
                    if let PieceKind::Output { .. } = piece.kind {
                        played.printed.push(piece.text.clone());
                    }
                }
                Told::Gap { .. } => panic!("these are short stories"),
            }
        }
        played
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

fn config(script: &Script, tools: &dyn Toolbox) -> Config {
    let named = script.names().filter(|name| *name != "main");
    Config {
        offers: Vec::new(),
        session: "test".into(),
        workspace: String::new(),
        main: Definition::new("main", Kind::Main),
        model: "script:test.yaml".into(),
        audience: Audience::Absent,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: tools.specs(),
        definitions: named.map(|name| Definition::new(name, Kind::Agent)).collect(),
        models: BTreeMap::new(),
    }
}

fn message() -> Message {
    Message {
        pictures: Vec::new(),
        channel: "test".into(),
        sender: "me".into(),
        external_id: None,
        text: "go".into(),
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
}

pub(crate) fn allow(tool: &str, pattern: Option<&str>) -> Rule {
    let pattern = pattern.map(str::to_owned);
    Rule { kind: RuleKind::Allow, tool: tool.into(), pattern, agent: None }
}

/// An agent that is a program.
pub(crate) fn program(name: &str, command: &[&str], input: ProgramInput) -> Definition {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    let program = Some(Program { command, input });
    Definition { program, ..Definition::new(name, Kind::Agent) }
}

/// What a session has told.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) lines: Vec<Value>,
    /// What tools printed while they ran.
    pub(crate) printed: Vec<String>,
    /// What people were told beside it.
    pub(crate) notes: Vec<String>,
}

impl Played {
    pub(crate) fn of(&self, kind: &str, path: &str) -> Vec<&Value> {
        let own = |line: &&Value| line["type"] == kind && line["agent"]["path"] == path;
        self.lines.iter().filter(own).collect()
    }

    /// The words of an agent's tool results.
    pub(crate) fn results(&self, path: &str) -> Vec<&str> {
        let lines = self.of("tool.finished", path);
        lines.into_iter().map(|line| line["output"].as_str().unwrap()).collect()
    }

    /// How an agent ended.
    pub(crate) fn end(&self, path: &str) -> &Value {
        let ends = self.of("agent.finished", path);
        assert_eq!(ends.len(), 1, "{path} among {:#?}", self.lines);
        ends[0]
    }
}

/// All processes that carry the word.
pub(crate) fn left(token: &str) -> Vec<String> {
    let carries = |pid: &String| {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.windows(token.len()).any(|part| part == token.as_bytes())
    };
    let own = std::process::id().to_string();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.starts_with(|c: char| c.is_ascii_digit()) && *pid != own)
        .filter(carries)
        .collect()
}

/// Waits for it, and not for ever.
pub(crate) fn until(what: &str, longest: Duration, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < longest, "not within {longest:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Main lets a worker make these calls, once.
pub(crate) fn one(calls: &str) -> String {
    format!(
        r#"
agents:
  main:
    - calls: [{{call_recipe: {{recipe: worker, message: "do it"}}}}]
    - {{say: "{{{{last}}}}"}}
  worker:
    - calls: [{calls}]
    - {{say: "done"}}
"#
    )
}
