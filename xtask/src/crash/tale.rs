//! The normal form of a journal: what happened to each agent, without times, without restarts,
//! and with every number replaced by the name of what it numbers, so that two plays of one story
//! can be laid side by side.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use locum_kernel::{AgentId, CallId, Event, Seq, Source};
use serde_json::{Map, Value};

use super::play::Record;
use super::story::People;

/// What a cut tool's result says; the one thing a crash may change.
const INTERRUPTED: &str = "interrupted: outcome unknown";

/// The agent for what happens to no agent.
const QUEUE: &str = "(queue)";

/// Times, and what is measured or guessed from lengths and times.
const DROPPED: &[&str] =
    &["at", "not_before", "hold", "active_ms", "reserved", "until", "before_tokens", "since"];
/// Fields that hold the numbers of agents.
const AGENTS: &[&str] = &["agent", "parent", "root", "child", "after", "agents", "known", "of"];
/// Fields that hold the numbers of events.
const EVENTS: &[&str] = &["turn", "reads", "ask", "input", "key", "id"];

#[derive(Debug)]
pub(crate) struct Tale {
    agents: BTreeMap<String, Vec<String>>,
    /// Calls that a death cut: their name, the tool, the arguments.
    pub(crate) cut: BTreeMap<String, (String, Value)>,
}

impl Tale {
    /// `also_cut` are calls that were cut in the other play, whose results say nothing here.
    pub(crate) fn of(record: &Record, people: &People, also_cut: &Tale) -> Result<Tale> {
        let mut tale = Tale::none();
        let names = Names::of(record);
        let cut = cut(record, &names);
        let no_matter: BTreeSet<&String> = cut.keys().chain(also_cut.cut.keys()).collect();
        for (seq, event) in events(record) {
            if is_of_a_process(event) {
                continue;
            }
            let mut value = serde_json::to_value(event)?;
            if let Event::Returned { call, .. } = event
                && no_matter.contains(&names.call(*call))
            {
                value["returned"]["output"] = INTERRUPTED.into();
            }
            let owner = names.owner(seq);
            tale.agents.entry(owner).or_default().push(names.plain(value, "").to_string());
        }
        for path in &people.unordered {
            tale.agents.entry(path.clone()).or_default().sort();
        }
        tale.cut = cut;
        Ok(tale)
    }

    pub(crate) fn none() -> Tale {
        Tale { agents: BTreeMap::new(), cut: BTreeMap::new() }
    }

    /// The first thing in which it is another story than `expected`.
    pub(crate) fn differs(&self, expected: &Tale) -> Option<String> {
        let paths: BTreeSet<&String> = self.agents.keys().chain(expected.agents.keys()).collect();
        let nothing = Vec::new();
        for path in paths {
            let is = self.agents.get(path).unwrap_or(&nothing);
            let was = expected.agents.get(path).unwrap_or(&nothing);
            let at = (0..is.len().max(was.len())).find(|at| is.get(*at) != was.get(*at));
            if let Some(at) = at {
                let (is, was) = (shown(is.get(at)), shown(was.get(at)));
                return Some(format!("{path}, event {at}:\n  is  {is}\n  was {was}"));
            }
        }
        None
    }
}

fn shown(event: Option<&String>) -> &str {
    event.map_or("(nothing)", String::as_str)
}

pub(crate) fn events(record: &Record) -> impl Iterator<Item = (Seq, &Event)> {
    let numbered =
        |entry: &'_ locum_kernel::Entry| (entry.seq.0..).map(Seq).take(entry.events.len());
    record.entries.iter().flat_map(move |entry| numbered(entry).zip(&entry.events))
}

/// Facts about processes, not about the story.
fn is_of_a_process(event: &Event) -> bool {
    matches!(event, Event::Restarted | Event::Configured { .. })
}

fn cut(record: &Record, names: &Names) -> BTreeMap<String, (String, Value)> {
    let uses = uses(record);
    let is_cut = |(_, event): (Seq, &Event)| {
        let Event::Returned { call, output, .. } = event else { return None };
        let tool = uses.get(call).filter(|_| output.text.starts_with(INTERRUPTED))?;
        Some((names.call(*call), tool.clone()))
    };
    events(record).filter_map(is_cut).collect()
}

/// Every call there was: the tool and its arguments.
pub(crate) fn uses(record: &Record) -> BTreeMap<CallId, (String, Value)> {
    let mut uses = BTreeMap::new();
    for (turn, event) in events(record) {
        if let Event::Replied { reply, .. } = event {
            for (index, call) in (0..).zip(&reply.calls) {
                let tool = (call.name.clone(), call.arguments.clone());
                uses.insert(CallId { turn, index }, tool);
            }
        }
    }
    uses
}

/// What every number of a journal stands for.
struct Names {
    paths: BTreeMap<u64, String>,
    /// Event: whose it is, and its name.
    events: BTreeMap<u64, (String, String)>,
}

impl Names {
    fn of(record: &Record) -> Names {
        let agents = record.session.agents().iter().map(locum_kernel::Agent::id);
        let paths: BTreeMap<u64, String> =
            agents.map(|id| (u64::from(id.0), record.session.path(id))).collect();
        let mut names = Names { paths, events: BTreeMap::new() };
        let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
        for (seq, event) in events(record) {
            let (owner, kind) = (names.owner_of(event), names.kind(event));
            let count = counts.entry((owner.clone(), kind.clone())).or_default();
            *count += 1;
            let name = format!("{owner} {kind} {count}");
            names.events.insert(seq.0, (owner, name));
        }
        names
    }

    fn path(&self, id: AgentId) -> String {
        self.paths.get(&u64::from(id.0)).cloned().unwrap_or_else(|| id.to_string())
    }

    fn owner_of(&self, event: &Event) -> String {
        if let Event::Settled { ask, .. } = event {
            return self.owner(Seq(ask.0));
        }
        let owner = if let Event::Granted { grant } = event {
            Some(grant.root)
        } else if let Event::Spawned(spawn) = event {
            Some(spawn.agent)
        } else {
            event.agent()
        };
        owner.map_or_else(|| QUEUE.to_owned(), |id| self.path(id))
    }

    /// Notes have the names of who sent them: the order in which they come is a matter of timing.
    fn kind(&self, event: &Event) -> String {
        if let Event::Heard { note, .. } = event {
            return match &note.source {
                Source::Child(id) => format!("heard {}", self.path(*id)),
                Source::Brief | Source::Person { .. } | Source::Parent | Source::Runtime => {
                    format!("heard {}", note.text)
                }
            };
        }
        let value = serde_json::to_value(event).unwrap_or_default();
        let named = value.as_object().and_then(|fields| fields.keys().next().cloned());
        named.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn owner(&self, seq: Seq) -> String {
        self.events.get(&seq.0).map_or_else(|| QUEUE.to_owned(), |(owner, _)| owner.clone())
    }

    fn call(&self, call: CallId) -> String {
        format!("{} call {}", self.event(call.turn.0), call.index)
    }

    fn event(&self, seq: u64) -> String {
        self.events.get(&seq).map_or_else(|| format!("#{seq}"), |(_, name)| name.clone())
    }

    fn plain(&self, value: Value, field: &str) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.into_iter().filter(|(name, _)| !DROPPED.contains(&name.as_str()));
                let plain = kept.map(|(name, value)| {
                    // Counts of tokens have the names of numbers.
                    let value = if name == "usage" { value } else { self.plain(value, &name) };
                    (name, value)
                });
                Value::Object(plain.collect::<Map<_, _>>())
            }
            Value::Array(items) => {
                let mut plain: Vec<Value> =
                    items.into_iter().map(|item| self.plain(item, field)).collect();
                if EVENTS.contains(&field) || AGENTS.contains(&field) {
                    plain.sort_by_key(Value::to_string);
                }
                Value::Array(plain)
            }
            Value::Number(number) => match number.as_u64() {
                Some(id) if AGENTS.contains(&field) => {
                    self.paths.get(&id).cloned().unwrap_or_else(|| format!("a{id}")).into()
                }
                Some(seq) if EVENTS.contains(&field) => self.event(seq).into(),
                Some(_) | None => Value::Number(number),
            },
            Value::String(text) => match serde_json::from_str(&text) {
                // What tools of ours say of agents.
                Ok(inner @ Value::Object(_)) => self.plain(inner, field),
                Ok(_) | Err(_) if field == "sentence" => timeless(&text).into(),
                Ok(_) | Err(_) => Value::String(text),
            },
            Value::Null | Value::Bool(_) => value,
        }
    }
}

/// "waits for the model, 3s" without the seconds.
fn timeless(sentence: &str) -> String {
    let is_time = |word: &&str| {
        let number = word.strip_suffix('s').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let words: Vec<&str> = sentence.split(' ').filter(|word| !is_time(word)).collect();
    words.join(" ")
}
