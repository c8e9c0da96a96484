//! Sessions to measure: many live agents, a long line, a long history, a crowd of idle ones. All
//! are made by `step`, from inputs such as a runtime would send.

use locum_kernel::{
    AgentId, AgentLimits, Audience, Class, Config, Definition, Effect, Entry, Event, Input, Key,
    Kind, Message, ModelSpec, Output, PolicyMode, Reply, Rights, Seq, Session, Time, To, ToolSpec,
    TreeLimits, Urgency, Usage, Use, VERSION, owed, step,
};
use serde_json::json;
use std::collections::BTreeMap;

const MODEL: &str = "bench/model";
/// A context window that never fills.
pub(crate) const ENDLESS: u64 = u64::MAX / 1_000;
/// An ordinary one.
pub(crate) const WINDOW: u64 = 200_000;
/// What a worker is told. Short, so that it is easily taken off the bytes of an idle agent.
pub(crate) const BRIEF: &str = "Read one file.";

pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) now: Time,
    /// Kept only if asked for: a long history is also a long journal.
    pub(crate) journal: Option<Vec<Entry>>,
    /// How full the worker's window is, in tokens.
    context: u64,
}

fn definition(name: &str, kind: Kind, turns_max: u32) -> Definition {
    Definition {
        output: None,
        name: name.into(),
        kind,
        about: format!("about {name}"),
        instructions: format!("You are {name}."),
        model: None,
        ceiling: Rights::all(),
        uses: Rights::all(),
        limits: AgentLimits { turns_max: Some(turns_max), ..AgentLimits::default() },
        parallel_reads: false,
        setup: false,
        ..Definition::new("", Kind::Agent)
    }
}

fn config(slots: u32, window: u64) -> Config {
    let read = ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: "read".into(),
        class: Class::Read,
        idempotent: true,
        subject: Some("path".into()),
        timeout_ms: None,
    };
    let most = 100_000;
    let spec = ModelSpec { window_tokens: window, ..ModelSpec::default() };
    Config {
        offers: Vec::new(),
        session: "bench".into(),
        workspace: String::new(),
        main: definition("main", Kind::Main, u32::MAX),
        model: MODEL.into(),
        audience: Audience::Present,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits { slots, width_max: most, spawns_max: most, ..TreeLimits::default() },
        tools: vec![read],
        definitions: vec![
            definition("worker", Kind::Agent, u32::MAX),
            definition("brief", Kind::Agent, 1),
        ],
        models: BTreeMap::from([(MODEL.to_string(), spec)]),
    }
}

fn call(name: &str, arguments: serde_json::Value) -> Use {
    Use::new(name, arguments)
}

fn reply(text: &str, calls: Vec<Use>, context: u64) -> Reply {
    let usage = Usage { input: context, output: 50, ..Usage::default() };
    Reply { text: text.into(), calls, usage, micro_usd: Some(100), ..Reply::default() }
}

/// A model's reply with one read call.
pub(crate) fn reads(key: Key, context: u64) -> Input {
    let arguments = json!({ "path": "crates/kernel/src/lib.rs" });
    let words = "I need to see how the crate is laid out first.";
    Input::Replied { key, reply: reply(words, vec![call("read", arguments)], context) }
}

/// What the read call returns.
pub(crate) fn returns(key: Key) -> Input {
    Input::Ran { key, output: Output::ok("pub mod kernel;\n".repeat(25)) }
}

/// The key of the obligation that a decision made for an agent. `first` is the number of the
/// decision's first event.
pub(crate) fn key_for(first: Seq, events: &[Event], agent: AgentId) -> Option<Key> {
    let made = |event: &Event| {
        matches!(event, Event::TurnBegan(turn) if turn.agent == agent)
            || matches!(event, Event::Started { agent: of, .. } if *of == agent)
    };
    let index = events.iter().rposition(made)?;
    Some(Seq(first.0 + index as u64))
}

impl World {
    fn open(slots: u32, window: u64, keep: bool) -> World {
        let mut world = World {
            session: Session::new(),
            now: Time(1_000_000),
            journal: keep.then(Vec::new),
            context: 1_000,
        };
        world.input(Input::Configured(Box::new(config(slots, window))));
        let message = Message {
            pictures: Vec::new(),
            channel: "terminal".into(),
            sender: String::new(),
            external_id: None,
            text: "go".into(),
            urgency: Urgency::Queue,
            to: To::Floor,
            reply_to: None,
        };
        world.input(Input::Said(message));
        world
    }

    /// `agents` workers below a resting main; those that have a slot are thinking.
    pub(crate) fn crowd(agents: usize, slots: u32, name: &str, keep: bool) -> World {
        World::open(slots, ENDLESS, keep).with_workers(agents, name)
    }

    fn with_workers(mut self, agents: usize, name: &str) -> World {
        let spawn = || call("spawn_agent", json!({ "agent": name, "message": BRIEF }));
        for from in (0..agents).step_by(100) {
            let calls = (from..agents.min(from + 100)).map(|_| spawn()).collect();
            let key = self.model_key(AgentId::MAIN).expect("main thinks");
            self.input(Input::Replied { key, reply: reply("", calls, 1_000) });
        }
        let key = self.model_key(AgentId::MAIN).expect("main thinks");
        self.input(Input::Replied { key, reply: reply("All are at work.", Vec::new(), 1_000) });
        self
    }

    /// One worker that has read files until the journal has this many events. The smaller the
    /// window, the more often its history was replaced by a summary.
    pub(crate) fn history(events: u64, window: u64) -> World {
        let mut world = World::open(8, window, false).with_workers(1, "worker");
        let worker = AgentId(1);
        let mut key = world.model_key(worker).expect("the worker thinks");
        while world.session.seq().0 < events {
            key = world.round(worker, key);
        }
        world
    }

    /// The journal of one worker that has read files, of so many entries.
    pub(crate) fn journal(entries: usize) -> Vec<Entry> {
        let mut world = World::open(8, WINDOW, true).with_workers(1, "worker");
        let worker = AgentId(1);
        let mut key = world.model_key(worker).expect("the worker thinks");
        while world.journal.as_ref().is_some_and(|journal| journal.len() < entries) {
            key = world.round(worker, key);
        }
        world.journal.unwrap_or_default()
    }

    /// Everyone reads one file and is stopped at its turn limit, until somebody continues it.
    pub(crate) fn paused(agents: usize) -> World {
        let slots = u32::try_from(agents).expect("a small crowd");
        let mut world = World::crowd(agents, slots, "brief", false);
        for (agent, key) in world.thinking() {
            let first = world.next();
            let events = world.input(reads(key, 1_000));
            let key = key_for(first, &events, agent).expect("a tool runs");
            world.input(returns(key));
        }
        world
    }

    /// Reply, tool result, and a summary where the window is full. Returns the next model key.
    fn round(&mut self, agent: AgentId, key: Key) -> Key {
        let context = self.context;
        let first = self.next();
        let events = self.input(reads(key, context));
        let key = key_for(first, &events, agent).expect("a tool runs");
        let first = self.next();
        let events = self.input(returns(key));
        let key = key_for(first, &events, agent).expect("the model is called");
        self.context += 1_000;
        if !is_summary(&events) {
            return key;
        }
        self.context = 1_000;
        let first = self.next();
        let summary = reply(&"It has read many files. ".repeat(80), Vec::new(), context);
        let events = self.input(Input::Replied { key, reply: summary });
        key_for(first, &events, agent).expect("the model is called after the summary")
    }

    fn next(&self) -> Seq {
        Seq(self.session.seq().0 + 1)
    }

    fn input(&mut self, input: Input) -> Vec<Event> {
        self.now = self.now.plus_ms(10);
        let first = self.next();
        let events = step(&mut self.session, self.now, input).expect("an input that is taken");
        if let Some(journal) = &mut self.journal {
            let events = events.clone();
            journal.push(Entry { v: VERSION, seq: first, at: self.now, events });
        }
        events
    }

    /// Everybody off the floor whose model is called, with the key of the call.
    pub(crate) fn thinking(&self) -> Vec<(AgentId, Key)> {
        let effects = owed(&self.session).into_iter();
        let calls = effects.filter_map(|effect| match effect {
            Effect::CallModel { key, agent, .. } => Some((agent, key)),
            Effect::RunTool { .. }
            | Effect::Prepare { .. }
            | Effect::Deliver { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => None,
        });
        calls.filter(|(agent, _)| *agent != AgentId::MAIN).collect()
    }

    fn model_key(&self, wanted: AgentId) -> Option<Key> {
        owed(&self.session).into_iter().find_map(|effect| match effect {
            Effect::CallModel { key, agent, .. } if agent == wanted => Some(key),
            Effect::CallModel { .. }
            | Effect::RunTool { .. }
            | Effect::Prepare { .. }
            | Effect::Deliver { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => None,
        })
    }
}

fn is_summary(events: &[Event]) -> bool {
    use locum_kernel::Purpose;
    events.iter().any(|event| {
        matches!(event, Event::TurnBegan(turn) if matches!(turn.purpose, Purpose::Summary { .. }))
    })
}
