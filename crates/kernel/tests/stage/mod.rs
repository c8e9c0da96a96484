//! The stage a scenario plays on: a session, a clock, a journal, and a replica folded from the
//! journal's JSON after every act, which must always equal the session itself.

mod act;
mod render;
pub(crate) mod setup;
pub(crate) mod words;

use crate::laws::words::Seen;
use locum_kernel::{
    AgentId, AskId, Config, Definition, Effect, Entry, Event, Input, Key, Seq, Session, Time,
    VERSION, fold, owed, prompt, step, view,
};
use std::collections::BTreeMap;

pub(crate) struct Stage {
    pub(crate) session: Session,
    replica: Session,
    pub(crate) entries: Vec<Entry>,
    pub(crate) now: Time,
    config: Config,
    /// Definitions the edge can bring, each with the parameters it needs.
    shelf: BTreeMap<String, (Definition, Vec<String>)>,
    /// The last key under which each agent was owed a model call, and a tool run.
    model_keys: BTreeMap<AgentId, Key>,
    tool_keys: BTreeMap<AgentId, Key>,
    /// The last ask of each agent, open or not.
    ask_ids: BTreeMap<AgentId, AskId>,
    journal_shown: u64,
    said_shown: usize,
    pub(crate) seen: Seen,
}

/// What an act came to.
type Outcome = Result<(), String>;

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage {
            session: Session::new(),
            replica: Session::new(),
            entries: Vec::new(),
            now: Time(1_000_000),
            config: setup::config(),
            shelf: BTreeMap::new(),
            model_keys: BTreeMap::new(),
            tool_keys: BTreeMap::new(),
            ask_ids: BTreeMap::new(),
            journal_shown: 0,
            said_shown: 0,
            seen: Seen::default(),
        }
    }

    /// Plays one line. `Some` text is what a query, or a refusal, shows.
    pub(crate) fn line(&mut self, line: &str) -> Result<Option<String>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
            return Ok(None);
        }
        if let Some(setup) = line.strip_prefix("next ") {
            self.setup_line(setup)?;
            return Ok(None);
        }
        if self.setup_line(line)? {
            if self.session.seq() != Seq(0) {
                self.open()?;
            }
            return Ok(None);
        }
        if self.session.seq() == Seq(0) {
            self.open()?;
        }
        if let Some(query) = line.strip_prefix('?') {
            self.seen.view(&view(&self.session, self.now));
            return self.query(query.trim()).map(Some);
        }
        if let Some(act) = line.strip_prefix("refuse ") {
            let before = self.session.clone();
            return match self.act(act)? {
                Ok(()) => Err("this was to be refused but was taken".into()),
                Err(refusal) if self.session == before => Ok(Some(refusal)),
                Err(_) => Err("a refused input changed the session".into()),
            };
        }
        match self.act(line)? {
            Ok(()) => Ok(None),
            Err(refusal) => Err(format!("refused: {refusal}")),
        }
    }

    fn open(&mut self) -> Result<(), String> {
        let config = Box::new(self.config.clone());
        self.input(Input::Configured(config)).map_err(|why| format!("configuration refused: {why}"))
    }

    /// One input, one decision, one entry. Afterwards everything that must hold is looked at.
    pub(crate) fn input(&mut self, input: Input) -> Outcome {
        self.seen.input(&input);
        let first = Seq(self.session.seq().0 + 1);
        let events = step(&mut self.session, self.now, input).map_err(|why| {
            self.seen.refusal(&why);
            why.to_string()
        })?;
        for event in &events {
            self.seen.event(event);
        }
        if !events.is_empty() {
            let entry = Entry { v: VERSION, seq: first, at: self.now, events };
            let text = serde_json::to_string(&entry).expect("an entry is JSON");
            let read: Entry = serde_json::from_str(&text).expect("an entry reads back");
            assert_eq!(read, entry, "an entry must survive JSON");
            fold(&mut self.replica, &read).expect("an entry folds");
            self.entries.push(entry);
        }
        assert!(self.replica == self.session, "fold(journal) is not the live state");
        self.session.check().expect("an invariant");
        self.remember();
        Ok(())
    }

    fn remember(&mut self) {
        for effect in owed(&self.session) {
            self.seen.effect(&effect);
            match effect {
                Effect::CallModel { key, agent, .. } => {
                    self.model_keys.insert(agent, key);
                    // Every request that would be sent must be well-formed.
                    prompt(&self.session, agent, self.now).expect("a request");
                }
                Effect::RunTool { key, agent, .. } => {
                    self.tool_keys.insert(agent, key);
                }
                Effect::Prepare { .. }
                | Effect::Deliver { .. }
                | Effect::Relay { .. }
                | Effect::Summon { .. } => {}
            }
        }
        let view = view(&self.session, self.now);
        self.seen.view(&view);
        for card in view.asks {
            self.ask_ids.insert(card.agent, card.id);
        }
    }

    /// All facts so far, with their numbers.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Seq, Time, &Event)> {
        self.entries.iter().flat_map(|entry| {
            let numbers = (entry.seq.0..).map(Seq);
            numbers.zip(&entry.events).map(|(seq, event)| (seq, entry.at, event))
        })
    }

    /// The newest agent with a label, or the one with an id.
    fn agent(&self, name: &str) -> Result<AgentId, String> {
        if let Some(id) = name.strip_prefix('a').and_then(|id| id.parse().ok()) {
            return Ok(AgentId(id));
        }
        let view = view(&self.session, self.now);
        let found = view.agents.iter().rev().find(|row| row.label == name || row.path == name);
        found.map(|row| row.id).ok_or_else(|| format!("nobody is called {name:?}"))
    }

    /// The process dies and another one takes over: only the journal is left.
    fn crash(&mut self, captured: Option<&str>) -> Outcome {
        let mut risen = Session::new();
        for entry in &self.entries {
            fold(&mut risen, entry).map_err(|why| why.to_string())?;
        }
        assert!(risen == self.session, "the state after a crash is not the state before");
        let text = serde_json::to_string(&risen).expect("a snapshot is JSON");
        let snapshot: Session = serde_json::from_str(&text).expect("a snapshot reads back");
        assert!(snapshot == risen, "a snapshot must survive JSON");
        self.session = snapshot;
        let keys = self.tool_keys.values();
        let captured = captured.map(|text| keys.map(|key| (*key, text.to_string())).collect());
        let config = Box::new(self.config.clone());
        self.input(Input::Restarted { config, captured: captured.unwrap_or_default() })
    }
}
