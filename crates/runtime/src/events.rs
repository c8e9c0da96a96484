//! How the journal becomes lines. The one place, with its modules, that reads kernel events.
//!
//! A line's number is a count over the journal: what an event tells depends only on the events
//! before it, so that whoever reads the journal again finds the same line under every number.
//! One number has no event: the `run.result` with which a run closes, at rest, parked or stopped
//! by a signal. The journal does not know whether it was told, so every `Restarted` counts it: a
//! run that was killed leaves a number out, and no number is ever used twice.

mod agent;
mod ask;
mod attention;
mod cast;
mod result;

use std::collections::BTreeMap;

use locum_kernel::{
    AgentId, Allow, AskId, Change, Entry, Event, InputId, Message, Note, PolicyMode, Seq, Session,
    Source, Time, TreeLimits, Verdict, Who, deadline, owed,
};

use serde::{Deserialize, Serialize};

use crate::clock::rfc3339;
use crate::line::{AgentRef, Body, DenialReason, InputLine, Line, RunStarted, UsageLine};
use attention::Crowd;
use cast::Part;

/// The version of the lines' words.
const VERSION: u32 = 1;

/// What a program that reads the lines can rely on: answers over standard input, runs that park
/// and go on, pieces of what is being said, a line where a slow reader missed some, and asks that
/// are still open told to whoever comes later.
const CAPABILITIES: &[&str] = &["approvals.stdio", "approvals.park", "deltas", "gap", "asks"];

/// Tells what happened in one session, entry by entry.
#[derive(Debug, Serialize, Deserialize)]
pub struct Teller {
    /// Of this process, not of the session.
    #[serde(skip)]
    cwd: String,
    session: String,
    /// Lines so far.
    told: u64,
    model: String,
    mode: PolicyMode,
    limits: TreeLimits,
    /// Everybody, in order of birth.
    cast: Vec<Part>,
    live: Vec<AgentId>,
    stack: Vec<AgentId>,
    queue: Vec<(InputId, Message)>,
    asks: BTreeMap<AskId, AgentId>,
    exchange: Exchange,
    crowd: Crowd,
    /// Somebody has spoken, and nothing is left to do.
    rests: bool,
}

/// What the person's last request has led to.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Exchange {
    asked: bool,
    usage: UsageLine,
    micro_usd: u64,
    unpriced: bool,
    /// What main last said.
    text: String,
    trouble: Option<Trouble>,
    /// Calls that somebody or something forbade: who, and what.
    denials: Vec<String>,
    #[serde(default)]
    reasons: Vec<DenialReason>,
    /// What somebody had to do without, first.
    lacked: Option<Lack>,
}

/// Why main could not go on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Trouble {
    Model,
    Limit,
}

/// What could not be had, so that the answer may be less than was asked for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Lack {
    /// There was a question, and nobody to ask.
    Answer,
    /// One agent more than the request may lead to.
    Agent,
}

/// One entry being told.
struct Telling<'s> {
    at: Time,
    ts: String,
    /// The session after the whole entry.
    after: &'s Session,
    lines: Vec<Line>,
    /// Who was born without a call; what they hear next is their brief.
    newcomer: Option<AgentId>,
}

impl Default for Teller {
    fn default() -> Teller {
        Teller {
            cwd: String::new(),
            session: String::new(),
            told: 0,
            model: String::new(),
            mode: PolicyMode::Ask,
            limits: TreeLimits::default(),
            cast: Vec::new(),
            live: Vec::new(),
            stack: Vec::new(),
            queue: Vec::new(),
            asks: BTreeMap::new(),
            exchange: Exchange::default(),
            crowd: Crowd::default(),
            rests: false,
        }
    }
}

impl Teller {
    /// Only repeated in `run.started`.
    pub fn set_cwd(&mut self, cwd: String) {
        self.cwd = cwd;
    }

    /// The number of the last line.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told
    }

    /// The model the session was last configured with.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether anybody ever asked for anything.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.exchange.asked
    }

    /// The lines of an entry, given the session that has folded it. Every entry must be told, in
    /// order, or the numbers are wrong.
    pub fn tell(&mut self, after: &Session, entry: &Entry) -> Vec<Line> {
        let (at, ts) = (entry.at, rfc3339(entry.at));
        let mut telling = Telling { at, ts, after, lines: Vec::new(), newcomer: None };
        // A restart is told with the world it comes in, which its entry names later.
        for event in &entry.events {
            if let Event::Configured { changes } = event {
                for change in changes {
                    self.learn(change);
                }
            }
        }
        for (seq, event) in (entry.seq.0..).zip(&entry.events) {
            self.event(&mut telling, Seq(seq), event);
        }
        if let Some(first) = entry.events.first() {
            self.states(&mut telling, word(first));
        }
        let idle = owed(after).is_empty() && deadline(after).is_none();
        self.rests = idle && self.exchange.asked;
        telling.lines
    }

    fn say(&mut self, telling: &mut Telling<'_>, about: AgentId, body: Body) {
        let line = self.line(telling.ts.clone(), self.told + 1, about, body);
        self.told = line.seq;
        telling.lines.push(line);
    }

    fn line(&self, ts: String, seq: u64, about: AgentId, body: Body) -> Line {
        let agent = self.part(about).map_or_else(AgentRef::nobody, |part| part.name.clone());
        Line { v: VERSION, seq, ts, session: self.session.clone(), agent, body }
    }

    fn event(&mut self, telling: &mut Telling<'_>, seq: Seq, event: &Event) {
        match event {
            Event::Opened { session } => self.session.clone_from(session),
            Event::Restarted => self.restarted(telling),
            Event::Enqueued { message } => self.enqueued(telling, InputId(seq.0), message),
            Event::Merged { input, message } => self.merged(telling, *input, message),
            Event::Edited { input, text } => self.edited(*input, text),
            Event::Dropped { input, .. } => {
                self.taken(telling, AgentId::MAIN, *input, Body::InputDropped);
            }
            Event::Heard { agent, note } => self.heard(telling, *agent, note),
            Event::Spawned(spawn) => self.spawned(telling, spawn),
            Event::TurnBegan(turn) => self.turn_began(telling, turn.agent, turn.purpose),
            Event::Replied { agent, reply } => self.replied(telling, *agent, seq, reply),
            Event::Retrying(it) => {
                self.retrying(telling, it.agent, it.attempt, it.not_before, &it.failure);
            }
            Event::Faulted { agent, failure } => self.faulted(telling, *agent, failure),
            Event::TurnDropped { agent, .. } | Event::Overflowed { agent } => {
                self.turn_failed(telling, *agent);
            }
            Event::Compacted(it) => {
                self.spend(it.usage, it.micro_usd);
                self.compacted(telling, it.agent, &it.summary, it.before_tokens);
            }
            Event::Asked { agent, to, kind, .. } => {
                self.asks.insert(AskId(seq.0), *agent);
                let opened = ask::opened(AskId(seq.0), *to, kind);
                self.say(telling, *agent, Body::AskOpened(Box::new(opened)));
            }
            Event::Settled { ask, verdict, by, input } => {
                let agent = self.asks.remove(ask).unwrap_or(AgentId::MAIN);
                if let Some(input) = input {
                    self.taken(telling, agent, *input, Body::InputStarted);
                }
                self.settled(telling, agent, *ask, verdict, by);
            }
            Event::Started { agent, call, .. } => self.started(telling, *agent, *call, Some(seq)),
            Event::Awaited { agent, call, .. } => self.started(telling, *agent, *call, None),
            Event::Returned { agent, call, output, .. } => {
                self.returned(telling, *agent, *call, output);
            }
            Event::Spoke { agent, text } => self.spoke(telling, *agent, text),
            Event::Paused { agent, why } => self.paused(*agent, why),
            Event::Switched { agent, mode } => self.switched(telling, *agent, *mode),
            Event::Ended { agent, result, receipt } => {
                self.ended(telling, *agent, result, receipt);
            }
            // The state of the agent tells these, or nobody needs to know; what was configured
            // was learned before the entry was told.
            Event::Configured { .. }
            | Event::Left
            | Event::Moved { .. }
            | Event::Lined { .. }
            | Event::Held { .. }
            | Event::Posted { .. }
            | Event::Preparing { .. }
            | Event::Prepared { .. }
            | Event::Equipped { .. }
            | Event::Proved { .. }
            | Event::Disproved { .. }
            | Event::Granted { .. }
            | Event::Revoked { .. }
            | Event::Delivered { .. }
            | Event::Relayed { .. }
            | Event::Continued { .. }
            | Event::ToppedUp { .. }
            | Event::Narrowed { .. } => {}
        }
    }

    fn learn(&mut self, change: &Change) {
        match change {
            Change::Model(model) => self.model.clone_from(model),
            Change::Mode(mode) => self.mode = *mode,
            Change::Limits(limits) => self.limits = limits.clone(),
            Change::Audience(_)
            | Change::Rules(_)
            | Change::Workspace(_)
            | Change::ModelSpec { .. }
            | Change::Tool(_)
            | Change::ToolGone(_)
            | Change::Definition { .. }
            | Change::DefinitionGone(_)
            | Change::Brought { .. }
            | Change::Offers(_) => {}
        }
    }

    fn restarted(&mut self, telling: &mut Telling<'_>) {
        self.told += 1;
        self.run_started(telling, true);
    }

    fn run_started(&mut self, telling: &mut Telling<'_>, resumed: bool) {
        let asks = self.still_open(telling.after);
        let started = RunStarted {
            model: self.model.clone(),
            cwd: self.cwd.clone(),
            mode: self.mode,
            limits: self.limits.clone(),
            capabilities: CAPABILITIES.to_vec(),
            resumed,
            asks,
        };
        self.say(telling, AgentId::MAIN, Body::RunStarted(Box::new(started)));
    }

    fn enqueued(&mut self, telling: &mut Telling<'_>, input: InputId, message: &Message) {
        if self.rests || !self.exchange.asked {
            self.exchange = Exchange { asked: true, ..Exchange::default() };
        }
        self.queue.push((input, message.clone()));
        let line = input_line(input, message, self.queue.len());
        self.say(telling, AgentId::MAIN, Body::InputQueued(line));
    }

    fn merged(&mut self, telling: &mut Telling<'_>, input: InputId, message: &Message) {
        let Some(at) = self.queue.iter().position(|(id, _)| *id == input) else { return };
        let text = &mut self.queue[at].1.text;
        text.push('\n');
        text.push_str(&message.text);
        let line = input_line(input, message, at + 1);
        self.say(telling, AgentId::MAIN, Body::InputQueued(line));
    }

    fn edited(&mut self, input: InputId, text: &str) {
        if let Some((_, message)) = self.queue.iter_mut().find(|(id, _)| *id == input) {
            text.clone_into(&mut message.text);
        }
    }

    /// An input leaves the queue, one way or the other.
    fn taken(
        &mut self,
        telling: &mut Telling<'_>,
        by: AgentId,
        input: InputId,
        how: fn(InputLine) -> Body,
    ) {
        let Some(at) = self.queue.iter().position(|(id, _)| *id == input) else { return };
        let (_, message) = self.queue.remove(at);
        self.say(telling, by, how(input_line(input, &message, 0)));
    }

    fn heard(&mut self, telling: &mut Telling<'_>, agent: AgentId, note: &Note) {
        // A birth is told with its brief, which is the next fact of the same entry.
        if note.source == Source::Brief || telling.newcomer.take() == Some(agent) {
            self.born(telling, agent, &note.text);
        }
        if let Some(input) = note.input {
            self.taken(telling, agent, input, Body::InputStarted);
        }
    }

    fn settled(
        &mut self,
        telling: &mut Telling<'_>,
        agent: AgentId,
        ask: AskId,
        verdict: &Verdict,
        by: &Who,
    ) {
        if let Verdict::Allow(Allow { arguments: Some(changed), .. }) = verdict {
            self.changed(agent, changed);
        }
        let (decision, scope, message) = match verdict {
            Verdict::Allow(allow) => ("allow", Some(allow.scope), None),
            Verdict::Deny { message } => ("deny", None, message.clone()),
            Verdict::Answer { text } => ("answer", None, Some(text.clone())),
            Verdict::Continue { text } => ("continue", None, text.clone()),
            Verdict::TopUp { .. } => ("top_up", None, None),
            Verdict::Withdrawn { why } => ("withdrawn", None, Some(why.clone())),
        };
        let (id, by) = (ask.to_string(), by.to_string());
        self.say(telling, agent, Body::AskClosed { id, decision, scope, by, message });
    }
}

fn input_line(input: InputId, message: &Message, position: usize) -> InputLine {
    let (channel, from) = (message.channel.clone(), message.sender.clone());
    InputLine { input: input.to_string(), channel, from, position, text: message.words() }
}

/// The word for what began a decision.
fn word(event: &Event) -> &'static str {
    match event {
        Event::Opened { .. } => "opened",
        Event::Configured { .. } => "configured",
        Event::Restarted => "restarted",
        Event::Left => "left",
        Event::Enqueued { .. } | Event::Merged { .. } => "said",
        Event::Edited { .. } => "edited",
        Event::Moved { .. } => "moved",
        Event::Dropped { .. } => "dropped",
        Event::Heard { .. } => "heard",
        Event::Spawned(_) => "spawned",
        Event::Lined { .. } => "lined up",
        Event::Held { .. } => "held back",
        Event::Preparing { .. } => "preparing",
        Event::Prepared { .. } => "prepared",
        Event::Equipped { .. } => "equipped",
        Event::TurnBegan { .. } => "turn began",
        Event::Replied { .. } => "replied",
        Event::Retrying { .. } => "retrying",
        Event::Faulted { .. } => "model failed",
        Event::Overflowed { .. } => "context too long",
        Event::TurnDropped { .. } => "turn dropped",
        Event::Compacted { .. } => "compacted",
        Event::Asked { .. } => "asked",
        Event::Settled { .. } => "answered",
        Event::Granted { .. } => "granted",
        Event::Revoked { .. } => "revoked",
        Event::Started { .. } => "tool started",
        Event::Awaited { .. } => "waits",
        Event::Returned { .. } => "returned",
        Event::Proved { .. } => "checks passed",
        Event::Disproved { .. } => "checks failed",
        Event::Spoke { .. } => "spoke",
        Event::Posted { .. } => "posted",
        Event::Delivered { .. } => "delivered",
        Event::Relayed { .. } => "relayed",
        Event::Paused { .. } => "paused",
        Event::Continued { .. } => "continued",
        Event::ToppedUp { .. } => "topped up",
        Event::Switched { .. } => "switched",
        Event::Narrowed { .. } => "narrowed",
        Event::Ended { .. } => "ended",
    }
}
