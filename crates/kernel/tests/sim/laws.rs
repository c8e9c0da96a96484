//! What must hold of every journal, kept by an observer that knows nothing of the kernel's
//! state: it only reads entries and sees effects start.

use locum_kernel::{
    AgentId, AskId, AskKind, CallId, Change, Class, Config, Effect, Entry, Event, InputId, Key,
    Message, Mode, Note, PolicyMode, Rights, Seq, Session, Source, Urgency, Verdict, errand,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Laws {
    mode: Option<PolicyMode>,
    classes: BTreeMap<String, Class>,
    /// Every call a model has made, and how many results it has.
    calls: BTreeMap<CallId, (AgentId, String, u32)>,
    /// Verdicts on calls that were asked about.
    asked: BTreeMap<AskId, Option<CallId>>,
    allowed: BTreeSet<CallId>,
    ever_asked: BTreeSet<CallId>,
    granted_tools: BTreeSet<String>,
    /// How often a tool really ran, and whether it may run again.
    ran: BTreeMap<CallId, u32>,
    started: BTreeMap<Key, CallId>,
    rights: BTreeMap<AgentId, Rights>,
    /// The most each may do, for calls that the runtime makes in its name.
    ceilings: BTreeMap<AgentId, Rights>,
    ours: BTreeSet<CallId>,
    ended: BTreeSet<AgentId>,
    parents: BTreeMap<AgentId, (AgentId, Mode)>,
    notes_read: BTreeSet<Seq>,
    child_notes: BTreeMap<AgentId, u32>,
    inputs: BTreeMap<InputId, u32>,
    plain_inputs: Vec<InputId>,
    heard_plain: Vec<InputId>,
    admitted_ids: BTreeSet<String>,
}

impl Laws {
    pub(crate) fn new(config: &Config) -> Laws {
        let classes = config.tools.iter().map(|tool| (tool.name.clone(), tool.class));
        Laws { mode: Some(config.mode), classes: classes.collect(), ..Laws::default() }
    }

    pub(crate) fn crashed(&mut self) {
        self.started.clear();
    }

    /// A message is turned away only if it was seen before, or with a reason of its own.
    pub(crate) fn refused(&self, said: Option<&Message>, other_reason: bool) {
        if let Some(id) = said.and_then(|message| message.external_id.as_ref()) {
            assert!(other_reason || self.admitted_ids.contains(id), "{id} is no duplicate");
        }
    }

    pub(crate) fn observe(&mut self, entry: &Entry, said: Option<&Message>) -> Result<(), String> {
        if let Some(id) = said.and_then(|message| message.external_id.clone())
            && !self.admitted_ids.insert(id.clone())
        {
            return Err(format!("message {id} was admitted twice"));
        }
        for (event, number) in entry.events.iter().zip(entry.seq.0..) {
            self.event(Seq(number), event)?;
        }
        self.handed_over(entry)
    }

    fn event(&mut self, seq: Seq, event: &Event) -> Result<(), String> {
        match event {
            Event::Enqueued { message } => {
                let id = InputId(seq.0);
                self.inputs.insert(id, 0);
                if message.urgency == Urgency::Queue {
                    self.plain_inputs.push(id);
                }
            }
            Event::Dropped { input, .. } => self.took(*input)?,
            Event::Configured { changes } => self.configured(changes),
            Event::Heard { agent, note } => self.heard(*agent, note)?,
            Event::Spawned(spawn) => {
                self.rights.insert(spawn.agent, spawn.uses.clone());
                self.ceilings.insert(spawn.agent, spawn.ceiling.clone());
                if let Some(parent) = spawn.parent {
                    self.parents.insert(spawn.agent, (parent, spawn.mode));
                }
            }
            Event::TurnBegan(turn) => self.read(&turn.reads)?,
            Event::Replied { agent, reply } => {
                for (call, index) in reply.calls.iter().zip(0u16..) {
                    let id = CallId { turn: seq, index };
                    self.calls.insert(id, (*agent, call.name.clone(), 0));
                    self.ours.extend(call.ours.map(|_| id));
                }
            }
            Event::Asked { call, kind, .. } => {
                let approval = matches!(**kind, AskKind::Approval(_));
                self.asked.insert(AskId(seq.0), call.filter(|_| approval));
                self.ever_asked.extend(call.filter(|_| approval));
            }
            Event::Settled { ask, verdict, input, .. } => {
                if let Some(input) = input {
                    self.took(*input)?;
                    self.heard_plain.push(*input);
                }
                let call = self.asked.remove(ask).ok_or(format!("{ask} was settled twice"))?;
                match (verdict, call) {
                    (Verdict::Allow(_), Some(call)) => {
                        self.allowed.insert(call);
                    }
                    // It was asked under rules that no longer hold, and is judged afresh.
                    (Verdict::Withdrawn { .. }, Some(call)) => {
                        self.ever_asked.remove(&call);
                    }
                    _ => {}
                }
            }
            Event::Granted { grant } => {
                self.granted_tools.insert(grant.tool.clone());
            }
            Event::Started { agent, call, .. } => self.may_start(seq, *agent, *call)?,
            Event::Returned { call, reads, .. } => {
                self.read(reads)?;
                let known = self.calls.get_mut(call).ok_or(format!("{call} was never made"))?;
                known.2 += 1;
                if known.2 > 1 {
                    return Err(format!("{call} has two results"));
                }
            }
            Event::Ended { agent, .. } if !self.ended.insert(*agent) => {
                return Err(format!("{agent} has two receipts"));
            }
            _ => {}
        }
        Ok(())
    }

    fn configured(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::Mode(mode) = change {
                self.mode = Some(*mode);
            }
        }
    }

    fn heard(&mut self, agent: AgentId, note: &Note) -> Result<(), String> {
        if let Some(input) = note.input {
            self.took(input)?;
            self.heard_plain.push(input);
        }
        if let (Source::Child(child), Some(_)) = (&note.source, &note.receipt) {
            *self.child_notes.entry(*child).or_default() += 1;
            let parent = self.parents.get(child).map(|(parent, _)| *parent);
            if parent != Some(agent) {
                return Err(format!("the result of {child} went to {agent}"));
            }
        }
        Ok(())
    }

    fn took(&mut self, input: InputId) -> Result<(), String> {
        let times = self.inputs.get_mut(&input).ok_or(format!("{input} was never admitted"))?;
        *times += 1;
        if *times > 1 {
            return Err(format!("{input} was taken twice"));
        }
        Ok(())
    }

    fn read(&mut self, reads: &[Seq]) -> Result<(), String> {
        let twice = reads.iter().find(|note| !self.notes_read.insert(**note));
        twice.map_or(Ok(()), |note| Err(format!("the note {note} was read twice")))
    }

    /// No effect without a permitting verdict, and none beyond what the agent was born with.
    fn may_start(&mut self, seq: Seq, agent: AgentId, call: CallId) -> Result<(), String> {
        let (_, name, _) = self.calls.get(&call).ok_or(format!("{call} was never made"))?;
        let class = *self.classes.get(name).ok_or(format!("{name} is no tool"))?;
        let bounds = if self.ours.contains(&call) { &self.ceilings } else { &self.rights };
        let rights = bounds.get(&agent).ok_or("no such agent")?;
        if !rights.allow(name, class) {
            return Err(format!("{agent} started {name} beyond its rights"));
        }
        let free = match (self.mode, class) {
            (_, Class::Read | Class::Delegate)
            | (Some(PolicyMode::Auto), _)
            | (Some(PolicyMode::Edits), Class::Write) => true,
            (Some(PolicyMode::Plan), _) => return Err(format!("{name} started in plan mode")),
            _ => false,
        };
        let permitted = self.allowed.contains(&call)
            || (!self.ever_asked.contains(&call) && (free || self.granted_tools.contains(name)));
        if !permitted {
            return Err(format!("{call} ({name}) started without a permitting verdict"));
        }
        self.started.insert(seq, call);
        Ok(())
    }

    /// A tool really starts. Twice only if running it again is harmless.
    pub(crate) fn starts(&mut self, session: &Session, effect: &Effect) -> Result<(), String> {
        let Effect::RunTool { key, call, .. } = effect else { return Ok(()) };
        let errand = errand(session, *key).ok_or("an owed tool has no errand")?;
        let times = self.ran.entry(*call).or_default();
        *times += 1;
        if *times > 1 && !errand.idempotent {
            return Err(format!("{call} ({}) ran {times} times", errand.tool));
        }
        Ok(())
    }

    /// Whoever ends is heard of by its parent in the same entry, unless that ended too.
    fn handed_over(&self, entry: &Entry) -> Result<(), String> {
        for event in &entry.events {
            let Event::Ended { agent, .. } = event else { continue };
            let Some((parent, _)) = self.parents.get(agent) else { continue };
            if self.ended.contains(parent) {
                continue;
            }
            let told = entry.events.iter().filter(|event| match event {
                Event::Heard { agent: to, note } => {
                    to == parent && note.source == Source::Child(*agent) && note.receipt.is_some()
                }
                Event::Returned { agent: to, output, .. } => {
                    to == parent && output.receipt.is_some()
                }
                _ => false,
            });
            if told.count() == 0 {
                return Err(format!("{agent} ended and {parent} was not told"));
            }
        }
        Ok(())
    }

    pub(crate) fn at_the_end(&self, journal: &[Entry]) -> Result<(), String> {
        if let Some((call, (agent, name, _))) = self.calls.iter().find(|(_, (.., n))| *n != 1) {
            return Err(format!("{call} ({name} of {agent}) never got its result"));
        }
        if let Some((input, _)) = self.inputs.iter().find(|(_, times)| **times != 1) {
            return Err(format!("{input} was admitted and never taken"));
        }
        if let Some((child, _)) = self.child_notes.iter().find(|(_, times)| **times > 1) {
            return Err(format!("the result of {child} came twice"));
        }
        let mut queue = self.heard_plain.iter().filter(|id| self.plain_inputs.contains(id));
        let addressed: BTreeSet<InputId> = journal
            .iter()
            .flat_map(|entry| entry.events.iter().zip(entry.seq.0..))
            .filter_map(|(event, seq)| match event {
                Event::Enqueued { message } if message.to != locum_kernel::To::Floor => {
                    Some(InputId(seq))
                }
                _ => None,
            })
            .collect();
        let mut last = InputId(0);
        let late = queue.find(|id| {
            let overtaken = !addressed.contains(id) && **id < last;
            if !addressed.contains(id) {
                last = **id;
            }
            overtaken
        });
        late.map_or(Ok(()), |id| Err(format!("{id} was overtaken")))
    }
}
