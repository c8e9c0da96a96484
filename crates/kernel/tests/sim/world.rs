//! The world: a live session, its journal, the tasks that run outside, and what they did. Acts
//! are symbolic (the first call of agent 3, the second open ask), so that a list of acts stays
//! meaningful when some are left out.

use super::choose::Rng;
use super::laws::Laws;
use locum_kernel::{
    AgentId, AgentLimits, AskId, Audience, Check, Class, Command, Config, Definition, Effect,
    Entry, Failure, Found, Input, InputId, Key, Kind, Message, Mode, ModelSpec, Output, PolicyMode,
    Program, ProgramInput, Proof, Ready, Refusal, Reply, Rights, Seq, Session, State, Time,
    ToolSpec, TreeLimits, VERSION, Verdict, Who, Wonder, fold, owed, prompt, step, view,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(Message),
    Reply(AgentId, Reply),
    Fail(AgentId, Failure),
    Ran(AgentId, usize, Output),
    /// The nth running tool of an agent wants to know something.
    Wonder(AgentId, usize, u64),
    Relayed(AgentId),
    /// A tool says another thing of itself, or is gone.
    Retool(u64),
    Prepared(AgentId, Option<String>),
    Delivered(Option<String>),
    Summoned(Found),
    /// The nth open ask, and whether to answer it a second time at once.
    Answer(usize, Verdict, bool),
    Command(Command),
    DropInput(usize),
    EditInput(usize),
    /// An answer to something that was owed once.
    Echo(usize),
    Pass(u64),
    /// The world is configured otherwise: who is there, what is free, how many slots.
    Configure(Audience, PolicyMode, u32),
    /// The process dies after its last append, or, if `lost`, before the next one.
    Crash {
        lost: bool,
    },
    /// The process dies, and nobody takes over yet; people may still write to the session.
    Leave,
}

pub(crate) struct World {
    pub(crate) session: Session,
    replica: Session,
    journal: Vec<Entry>,
    /// Entries that have been through JSON.
    read_back: usize,
    pub(crate) now: Time,
    config: Config,
    laws: Laws,
    running: BTreeMap<Key, Effect>,
    /// Keys that were answered or dropped.
    pub(crate) old_keys: Vec<Key>,
    lose_next: bool,
    /// Nobody drives the session.
    pub(crate) away: bool,
    steps: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Result<World, String> {
        let config = config(&mut Rng(seed ^ 0x5eed));
        let mut world = World {
            session: Session::new(),
            replica: Session::new(),
            journal: Vec::new(),
            read_back: 0,
            now: Time(1_000),
            laws: Laws::new(&config),
            config,
            running: BTreeMap::new(),
            old_keys: Vec::new(),
            lose_next: false,
            away: false,
            steps: 0,
        };
        let config = Box::new(world.config.clone());
        world.input(Input::Configured(config))?;
        Ok(world)
    }

    pub(crate) fn journal(&self) -> &[Entry] {
        &self.journal
    }

    pub(crate) fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.running.values()
    }

    /// Whether the governor lets this start yet.
    pub(crate) fn is_due(&self, effect: &Effect) -> bool {
        match effect {
            Effect::CallModel { not_before, .. } | Effect::Deliver { not_before, .. } => {
                *not_before <= self.now
            }
            Effect::RunTool { .. }
            | Effect::Prepare { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => true,
        }
    }

    pub(crate) fn perform(&mut self, act: &Act) -> Result<(), String> {
        let by = || Who::Person("ann".into());
        match act {
            Act::Say(message) => self.input(Input::Said(message.clone())),
            Act::Reply(agent, reply) => match self.model_key(*agent) {
                Some(key) => self.input(Input::Replied { key, reply: reply.clone() }),
                None => Ok(()),
            },
            Act::Fail(agent, failure) => match self.model_key(*agent) {
                Some(key) => self.input(Input::Failed { key, failure: failure.clone() }),
                None => Ok(()),
            },
            Act::Ran(agent, nth, output) => match self.tool_key(*agent, *nth) {
                Some(key) => self.input(Input::Ran { key, output: output.clone() }),
                None => Ok(()),
            },
            Act::Wonder(..) | Act::Relayed(_) | Act::Retool(_) => self.tools_act(act),
            Act::Prepared(agent, error) => self.prepared(*agent, error.clone()),
            Act::Delivered(error) => {
                let key = self.find(|effect| matches!(effect, Effect::Deliver { .. }));
                let error = error.clone();
                key.map_or(Ok(()), |key| self.input(Input::Delivered { key, error }))
            }
            Act::Summoned(found) => {
                let key = self.find(|effect| matches!(effect, Effect::Summon { .. }));
                let found = found.clone();
                key.map_or(Ok(()), |key| self.input(Input::Summoned { key, found }))
            }
            Act::Answer(nth, verdict, twice) => self.answer(*nth, verdict, *twice),
            Act::Command(command) => {
                self.input(Input::Commanded { by: by(), command: command.clone() })
            }
            Act::DropInput(nth) => match self.waiting(*nth) {
                Some(input) => self.input(Input::Dropped { input, by: by() }),
                None => Ok(()),
            },
            Act::EditInput(nth) => match self.waiting(*nth) {
                Some(input) => self.input(Input::Edited { input, text: "edited".into() }),
                None => Ok(()),
            },
            Act::Echo(nth) => self.echo(*nth),
            Act::Pass(ms) => {
                self.now = self.now.plus_ms(*ms);
                let due = locum_kernel::deadline(&self.session).is_some_and(|at| at <= self.now);
                if due { self.input(Input::Ticked) } else { Ok(()) }
            }
            Act::Configure(audience, mode, slots) => {
                self.config.audience = *audience;
                self.config.mode = *mode;
                self.config.limits.slots = *slots;
                self.input(Input::Configured(Box::new(self.config.clone())))
            }
            Act::Crash { lost: true } => {
                self.lose_next = true;
                Ok(())
            }
            Act::Crash { lost: false } => self.crash(),
            Act::Leave => {
                self.lose_next = false;
                self.old_keys.extend(self.running.keys());
                self.running.clear();
                self.laws.crashed();
                self.away = true;
                self.input(Input::Left)
            }
        }
    }

    /// What tools do beside returning.
    fn tools_act(&mut self, act: &Act) -> Result<(), String> {
        let input = match act {
            Act::Wonder(agent, nth, id) => {
                let key = self.tool_key(*agent, *nth);
                key.map(|key| Input::Wondered { key, wonder: wonder(*id) })
            }
            Act::Relayed(agent) => {
                let owed = self.find(
                    |effect| matches!(effect, Effect::Relay { agent: of, .. } if of == agent),
                );
                owed.map(|key| Input::Relayed { key })
            }
            Act::Retool(number) => {
                let identity = Some(number.to_string());
                let tools = vec![ToolSpec { identity, ..tool("exec", Class::Exec) }];
                Some(Input::Retooled { tools, gone: Vec::new(), beside: Vec::new(), to: None })
            }
            _ => None,
        };
        input.map_or(Ok(()), |input| self.input(input))
    }

    fn answer(&mut self, nth: usize, verdict: &Verdict, twice: bool) -> Result<(), String> {
        let asks: Vec<AskId> = self.session.asks().map(|ask| ask.id).collect();
        let Some(ask) = asks.get(nth % asks.len().max(1)).copied() else { return Ok(()) };
        let answer = |by: &str| Input::Answered {
            ask,
            verdict: verdict.clone(),
            by: Who::Person(by.into()),
            digest: None,
        };
        self.input(answer("ann"))?;
        if twice && !self.session.asks().any(|open| open.id == ask) {
            let before = self.session.seq();
            self.input(answer("bob"))?;
            if self.session.seq() != before {
                return Err(format!("{ask} was answered twice"));
            }
        }
        Ok(())
    }

    fn echo(&mut self, nth: usize) -> Result<(), String> {
        let Some(key) = self.old_keys.get(nth % self.old_keys.len().max(1)).copied() else {
            return Ok(());
        };
        if self.away || self.running.contains_key(&key) {
            return Ok(());
        }
        let before = self.session.seq();
        self.input(Input::Replied { key, reply: Reply::default() })?;
        self.input(Input::Ran { key, output: Output::ok("again") })?;
        self.input(Input::Summoned { key, found: Found::Nothing })?;
        if self.session.seq() != before {
            return Err(format!("a stale answer to {key} was taken"));
        }
        Ok(())
    }

    fn waiting(&self, nth: usize) -> Option<InputId> {
        let queue: Vec<InputId> = self.session.waiting().collect();
        queue.get(nth % queue.len().max(1)).copied()
    }

    fn find(&self, wanted: impl Fn(&Effect) -> bool) -> Option<Key> {
        self.running.values().find(|effect| wanted(effect)).map(Effect::key)
    }

    fn model_key(&self, agent: AgentId) -> Option<Key> {
        self.find(|effect| matches!(effect, Effect::CallModel { agent: of, .. } if *of == agent))
    }

    fn tool_key(&self, agent: AgentId, nth: usize) -> Option<Key> {
        let mine = self
            .running
            .values()
            .filter(|effect| matches!(effect, Effect::RunTool { agent: of, .. } if *of == agent));
        let keys: Vec<Key> = mine.map(Effect::key).collect();
        keys.get(nth % keys.len().max(1)).copied()
    }

    /// One decision: step, append, reconcile. A refusal must have changed nothing.
    fn input(&mut self, input: Input) -> Result<(), String> {
        self.steps += 1;
        let thorough = self.steps.is_multiple_of(16);
        let before = thorough.then(|| self.session.clone());
        let first = Seq(self.session.seq().0 + 1);
        let said = match &input {
            Input::Said(message) => Some(message.clone()),
            _ => None,
        };
        match step(&mut self.session, self.now, input) {
            Err(refusal) => {
                if before.is_some_and(|before| before != self.session)
                    || self.session.seq().0 + 1 != first.0
                {
                    return Err(format!("refused ({refusal}) but changed the session"));
                }
                let full = matches!(refusal, Refusal::InboxFull { .. } | Refusal::QueueFull { .. });
                self.laws
                    .refused(said.as_ref(), full || !matches!(refusal, Refusal::Duplicate { .. }));
                return Ok(());
            }
            Ok(events) if self.lose_next => {
                drop(events);
                self.lose_next = false;
                return self.crash();
            }
            Ok(events) if events.is_empty() => return Ok(()),
            Ok(events) => {
                let entry = Entry { v: VERSION, seq: first, at: self.now, events };
                self.laws.observe(&entry, said.as_ref())?;
                fold(&mut self.replica, &entry).map_err(|why| why.to_string())?;
                self.journal.push(entry);
            }
        }
        self.session.check()?;
        if thorough && self.replica != self.session {
            return Err("fold(journal) is not the live state".into());
        }
        self.reconcile()
    }

    /// Starts what is owed and not running, drops what runs and is no longer owed.
    fn reconcile(&mut self) -> Result<(), String> {
        if self.away {
            return Ok(());
        }
        let wanted: BTreeMap<Key, Effect> =
            owed(&self.session).into_iter().map(|effect| (effect.key(), effect)).collect();
        let gone: Vec<Key> =
            self.running.keys().filter(|key| !wanted.contains_key(key)).copied().collect();
        self.old_keys.extend(&gone);
        for (key, effect) in &wanted {
            if !self.running.contains_key(key) {
                self.laws.starts(&self.session, effect)?;
                if let Effect::CallModel { agent, .. } = effect {
                    prompt(&self.session, *agent, self.now).ok_or("no request")?;
                }
            }
        }
        self.running = wanted;
        Ok(())
    }

    /// Only the journal is left. Whatever ran outside is gone, its answers with it.
    fn crash(&mut self) -> Result<(), String> {
        let mut risen = Session::new();
        for entry in &mut self.journal[self.read_back..] {
            let text = serde_json::to_string(entry).map_err(|why| why.to_string())?;
            *entry = serde_json::from_str(&text).map_err(|why| why.to_string())?;
        }
        self.read_back = self.journal.len();
        for entry in &self.journal {
            fold(&mut risen, entry).map_err(|why| why.to_string())?;
        }
        if risen != self.replica {
            return Err("the journal does not fold to the state before the crash".into());
        }
        self.session = risen;
        self.old_keys.extend(self.running.keys());
        self.running.clear();
        self.laws.crashed();
        self.away = false;
        let config = Box::new(self.config.clone());
        self.input(Input::Restarted { config, captured: Vec::new() })
    }

    /// Nothing is owed and no deadline comes: whoever still waits for something waits for a
    /// person, and one must be there.
    pub(crate) fn is_stuck(&self) -> Result<(), String> {
        let absent = self.config.audience == Audience::Absent;
        let view = view(&self.session, self.now);
        let asked = !view.asks.is_empty() || view.stack.len() > 1;
        let moves = !self.running.is_empty() || locum_kernel::deadline(&self.session).is_some();
        if moves || (asked && !absent) {
            return Ok(());
        }
        let stuck = view.agents.iter().filter(|row| row.result.is_none()).find(|row| {
            let main = row.parent.is_none();
            let waits = row.attention.sentence.starts_with("waits for ")
                && !row.attention.sentence.starts_with("waits for the next message");
            waits || (!main && absent && row.state == State::Child)
        });
        stuck.map_or(Ok(()), |row| {
            Err(format!("{} waits for nobody: {}", row.path, row.attention.sentence))
        })
    }

    fn prepared(&mut self, agent: AgentId, error: Option<String>) -> Result<(), String> {
        let owed =
            |effect: &Effect| matches!(effect, Effect::Prepare { agent: of, .. } if *of == agent);
        let Some(key) = self.find(owed) else { return Ok(()) };
        let tools = vec![tool("gh__list", Class::Read), tool("exec", Class::Exec)];
        let ready = Ready { tools, told: Some("some came".into()), copy: None };
        self.input(Input::Prepared { key, error, ready })
    }

    /// Who a person can start by name.
    pub(crate) fn somebody(&self) -> Definition {
        Definition { about: "by name".into(), ..self.config.definitions[0].clone() }
    }

    /// At the end nothing is owed, asked, queued or held, and nobody but main is left.
    pub(crate) fn has_settled(&self) -> Result<(), String> {
        let view = view(&self.session, self.now);
        let alive = view.agents.iter().filter(|row| row.result.is_none() && row.parent.is_some());
        let alive: Vec<String> = alive.map(|row| format!("{} {:?}", row.path, row.state)).collect();
        let left = [
            (!alive.is_empty()).then(|| format!("agents are left: {alive:?}")),
            (!self.running.is_empty()).then(|| format!("owed: {:?}", self.running.values())),
            (!view.asks.is_empty()).then(|| format!("asks: {:?}", view.asks)),
            (!view.queue.is_empty()).then(|| format!("queue: {:?}", view.queue)),
            (view.slots.taken > 0).then(|| "a slot is held".to_string()),
            (view.stack.len() > 1).then(|| format!("stack: {:?}", view.stack)),
            (self.replica != self.session).then(|| "fold(journal) is not the state".to_string()),
        ];
        if let Some(what) = left.into_iter().flatten().next() {
            return Err(format!("not settled: {what}"));
        }
        self.laws.at_the_end(&self.journal)
    }
}

fn wonder(id: u64) -> Wonder {
    let options = if id.is_multiple_of(2) { vec!["yes".into(), "no".into()] } else { Vec::new() };
    Wonder { id, from: "server".into(), question: "which?".into(), options }
}

fn tool(name: &str, class: Class) -> ToolSpec {
    let subject = Some("path".into());
    ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: name.into(),
        class,
        idempotent: class == Class::Read,
        subject,
        timeout_ms: None,
    }
}

fn definition(name: &str, kind: Kind, rng: &mut Rng) -> Definition {
    let some = |rng: &mut Rng| {
        let classes = Class::ALL.into_iter().filter(|_| rng.below(4) < 3);
        Rights::only(&classes.collect::<Vec<_>>())
    };
    let mut one_in = |n: u64| rng.below(n) == 0;
    let (narrow, own, setup, parallel) = (one_in(3), one_in(4), one_in(4), one_in(2));
    let limits = AgentLimits {
        talk_turns_max: None,
        turns_max: one_in(3).then_some(3),
        tokens_max: one_in(8).then_some(12_000),
        micro_usd_max: one_in(8).then_some(8_000),
        active_ms_max: one_in(3).then_some(40_000),
        slots: one_in(4).then_some(1),
    };
    let ceiling = if narrow { some(rng) } else { Rights::all() };
    let uses = if own { some(rng) } else { Rights::all() };
    let model = (rng.below(3) == 0).then(|| "other/model".to_string());
    let mut one_in = |n: u64| rng.below(n) == 0;
    let check = || Check { command: "true".into(), subjects: None };
    let proof = one_in(5).then(|| Proof {
        checks: vec![check(), check()],
        on_failure: Some(check()),
        check_timeout_s: 60,
        on_failure_timeout_s: 60,
        tries_max: 1,
    });
    let program =
        one_in(8).then(|| Program { command: vec!["true".into()], input: ProgramInput::Stdin });
    let mode = one_in(6).then_some(Mode::Worker);
    let unasked = one_in(8);
    Definition {
        proof,
        program,
        mode,
        unasked,
        model,
        ceiling,
        uses,
        limits,
        parallel_reads: parallel,
        setup,
        ..Definition::new(name, kind)
    }
}

fn config(rng: &mut Rng) -> Config {
    let mut main = definition("main", Kind::Main, rng);
    (main.ceiling, main.uses) = (Rights::all(), Rights::all());
    let small =
        |rng: &mut Rng, least: u32, span: u64| least + u32::try_from(rng.below(span)).unwrap_or(0);
    let priced = ModelSpec {
        window_tokens: 3_000,
        output_tokens_max: 200,
        input_price: Some(3_000_000),
        output_price: Some(15_000_000),
    };
    Config {
        offers: Vec::new(),
        session: "sim".into(),
        workspace: String::new(),
        main,
        model: "test/model".into(),
        audience: if rng.below(3) == 0 { Audience::Absent } else { Audience::Present },
        mode: [
            PolicyMode::Ask,
            PolicyMode::Ask,
            PolicyMode::Edits,
            PolicyMode::Plan,
            PolicyMode::Auto,
        ][usize::try_from(rng.below(5)).unwrap_or(0)],
        rules: Vec::new(),
        limits: TreeLimits {
            slots: small(rng, 1, 3),
            depth_max: small(rng, 1, 4),
            width_max: small(rng, 2, 5),
            spawns_max: small(rng, 4, 12),
            turns_max: small(rng, 3, 8),
            tokens_max: (rng.below(6) == 0).then_some(30_000),
            micro_usd_max: (rng.below(4) == 0).then_some(20_000),
            active_ms_max: (rng.below(6) == 0).then_some(200_000),
        },
        tools: vec![
            tool("read", Class::Read),
            tool("write", Class::Write),
            tool("exec", Class::Exec),
            tool("fetch", Class::Network),
            tool("passthrough", Class::Exec),
        ],
        definitions: vec![
            definition("alpha", Kind::Agent, rng),
            definition("beta", Kind::Skill, rng),
            definition("gamma", Kind::Recipe, rng),
        ],
        models: BTreeMap::from([("test/model".to_string(), priced)]),
    }
}
