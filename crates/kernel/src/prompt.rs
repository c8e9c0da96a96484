//! What a model is asked: a pure projection of one agent's state. Transcript lines are shared,
//! not copied, and what changes every turn comes last, so that the prefix stays the same.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{CATALOGUE_ROWS_MAX, MENTIONS_MAX, WORKER_ROWS_MAX};
use crate::name::mentions;
use crate::{
    Agent, AgentId, Audience, Body, Class, Kind, Lines, Link, Make, Mode, Offer, PROGRAM, Purpose,
    Session, Time, Tool, Tuning, attention, clip, declared, has, headline, state_word,
};

/// A model request, before any provider's wire format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub agent: AgentId,
    pub model: String,
    pub purpose: Purpose,
    /// Main gets every bootstrap file, children AGENTS.md only.
    pub bootstrap: Bootstrap,
    pub instructions: String,
    /// Who can be called, one line each.
    pub catalogue: Vec<String>,
    /// Tools it may use, in a stable order.
    pub tools: Vec<String>,
    /// The history from the last summary on. For a summary the edge may leave out the oldest
    /// lines if they do not fit.
    pub lines: Lines,
    /// What its final words must be: a JSON schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Tuning::is_usual")]
    pub tuning: Tuning,
    /// What is true only now: the open workers. Goes after the history.
    pub now: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bootstrap {
    Full,
    Minimal,
}

/// The request an agent's model call is to make. `None` if there is no such agent.
#[must_use]
pub fn prompt(session: &Session, id: AgentId, now: Time) -> Option<Request> {
    let agent = session.agent(id)?;
    let purpose = agent.thought().map_or(Purpose::Answer, |thought| thought.purpose);
    let lines = closed_lines(agent);
    assert_paired(&lines);
    let tools = tools(session, agent);
    let definition = session.definition(agent);
    let delegates = tools.iter().any(|name| Tool::named(name).is_some_and(Tool::is_judged));
    Some(Request {
        agent: id,
        model: agent.model.clone(),
        purpose,
        bootstrap: if agent.is_main() { Bootstrap::Full } else { Bootstrap::Minimal },
        instructions: definition.map(|it| it.instructions.clone()).unwrap_or_default(),
        catalogue: if delegates { catalogue(session, agent) } else { Vec::new() },
        tools,
        lines,
        output: definition.and_then(|it| it.output.clone()),
        tuning: definition.map(|it| it.kit.tuning.clone()).unwrap_or_default(),
        now: now_true(session, agent, now),
    })
}

/// The history without a reply whose calls are still open: what a request may hold.
fn closed_lines(agent: &Agent) -> Lines {
    let lines = &agent.transcript;
    if agent.turn.is_none() { lines.clone() } else { lines.without_last() }
}

/// No provider accepts a history in which a tool use lacks its result, so none ever leaves here:
/// checked in release builds too.
fn assert_paired(lines: &Lines) {
    if let Some(seq) = lines.unpaired() {
        panic!("calls and results do not pair at {seq}");
    }
    let open = lines.last().and_then(|line| line.reply()).is_some_and(|it| !it.calls.is_empty());
    assert!(!open, "the last reply's calls have no results yet");
}

/// The tools an agent is offered: what its rights allow, and the ways to work with others.
fn tools(session: &Session, agent: &Agent) -> Vec<String> {
    if agent.last_turn.is_some() {
        return Vec::from([Tool::Complete.name().into()]);
    }
    let declared_tools = session.world.tools.keys().filter(|name| {
        let allowed = |(tool, class)| agent.uses.allow(tool, class);
        name.as_str() != PROGRAM
            && has(session, agent, name)
            && declared(session, name).is_some_and(allowed)
    });
    let own = Tool::offered().filter(|tool| match tool {
        Tool::Complete => !agent.is_main(),
        Tool::AskParent => match agent.parent {
            Some((_, Link::Note)) => true,
            Some((_, Link::Result(_))) => may_ask(session, agent),
            None => false,
        },
        Tool::Make(Make::UseSkill) if agent.kind == Kind::Skill => false,
        Tool::Make(_) => may_delegate(agent, *tool),
        Tool::Wait
        | Tool::ListAgents
        | Tool::GetAgent
        | Tool::Load
        | Tool::AgentEval
        | Tool::AgentClose => {
            [Make::SpawnAgent, Make::UseAgent].iter().any(|it| may_delegate(agent, Tool::Make(*it)))
        }
        Tool::AskUser => may_ask(session, agent),
    });
    declared_tools.cloned().chain(own.map(|tool| tool.name().into())).collect()
}

fn may_ask(session: &Session, agent: &Agent) -> bool {
    agent.mode != Mode::Call && session.world.audience == Audience::Present
}

fn may_delegate(agent: &Agent, tool: Tool) -> bool {
    tool.names(false).any(|name| agent.uses.allow(name, Class::Delegate))
}

/// Everybody an agent can call by name.
fn callable(session: &Session, agent: &Agent) -> Vec<(String, Kind, String)> {
    let main = session.agent(AgentId::MAIN).map(|main| main.name.as_str());
    let world = &session.world;
    let made = world.catalogue.iter().filter_map(|(name, digest)| {
        let definition = world.definitions.get(digest)?;
        Some((name.as_str(), definition.kind, definition.about.as_str()))
    });
    let row = |offer: &'_ Offer| (offer.name.clone(), offer.kind, offer.about.clone());
    let own = session.definition(agent).into_iter().flat_map(|it| &it.subs);
    // Its own come first; what a file brings stands for a name that is known besides.
    let mut rows: BTreeMap<String, (Kind, String)> = BTreeMap::new();
    for (name, kind, about) in made {
        rows.insert(name.into(), (kind, about.into()));
    }
    for (name, kind, about) in world.offers.values().map(row) {
        rows.insert(name, (kind, about));
    }
    let own: Vec<_> = own.map(|sub| row(&sub.offer)).collect();
    for (name, _, _) in &own {
        rows.remove(name);
    }
    let others = rows.into_iter().map(|(name, (kind, about))| (name, kind, about));
    let skill = agent.kind == Kind::Skill;
    own.into_iter()
        .chain(others)
        .filter(|(name, kind, _)| {
            *name != agent.name && Some(name.as_str()) != main && !(skill && *kind == Kind::Skill)
        })
        .collect()
}

pub(crate) fn catalogue(session: &Session, agent: &Agent) -> Vec<String> {
    let all = callable(session, agent);
    let more = all.len().saturating_sub(CATALOGUE_ROWS_MAX);
    let shown = all.iter().take(CATALOGUE_ROWS_MAX);
    let mut rows: Vec<String> =
        shown.map(|(name, _, about)| format!("{name}: {}", headline(about, 160))).collect();
    if more > 0 {
        let names: Vec<&str> =
            all.iter().skip(CATALOGUE_ROWS_MAX).map(|(name, _, _)| name.as_str()).collect();
        rows.push(clip(format!("and {more} more, by name: {}", names.join(", ")), MORE_BYTES_MAX));
    }
    rows
}

/// What a catalogue says of those it has no line for.
const MORE_BYTES_MAX: usize = 2_000;

fn now_true(session: &Session, agent: &Agent, now: Time) -> Option<String> {
    let parts = [open_workers(session, agent, now), mentioned(session, agent)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Names with `@` in what people have just said, if they are of somebody it can call. Told beside
/// the words and not among them, and only while they are new.
fn mentioned(session: &Session, agent: &Agent) -> Option<String> {
    let lines = closed_lines(agent);
    let new = lines.iter().rev().map_while(|line| match &line.body {
        Body::Told(notes) => Some(notes),
        Body::Replied(_) | Body::Results(_) | Body::Summary(_) => None,
    });
    let said = new.flatten().filter(|note| note.is_from_person() && note.text.contains('@'));
    let names: BTreeSet<&str> = said.flat_map(|note| mentions(&note.text)).collect();
    if names.is_empty() {
        return None;
    }
    let (known, tools) = (callable(session, agent), tools(session, agent));
    let has = |make: &Make| tools.iter().any(|name| name == Tool::Make(*make).name());
    let rows = names.iter().filter_map(|name| {
        let (name, kind, _) = known.iter().find(|(it, ..)| it.eq_ignore_ascii_case(name))?;
        if !session.is_for_people(name) {
            return None;
        }
        let (what, ways) = match kind {
            Kind::Skill => ("skill", [Make::UseSkill, Make::UseAgent]),
            Kind::Recipe => ("recipe", [Make::CallRecipe, Make::UseAgent]),
            Kind::Agent | Kind::Main => ("agent", [Make::UseAgent, Make::SpawnAgent]),
        };
        let tool = ways.iter().find(|make| has(make))?;
        Some(format!("{name} ({what}: {})", Tool::Make(*tool).name()))
    });
    let rows: Vec<String> = rows.take(MENTIONS_MAX).collect();
    let told = "Named with @ in what you were just told, and yours to call if that is wanted: ";
    (!rows.is_empty()).then(|| format!("{told}{}", rows.join(", ")))
}

/// *Open workers*: for every live child its state, why, and the exact next call.
fn open_workers(session: &Session, agent: &Agent, now: Time) -> Option<String> {
    if agent.live.is_empty() {
        return None;
    }
    let rows = agent.live.iter().take(WORKER_ROWS_MAX).filter_map(|id| worker(session, *id, now));
    let mut lines: Vec<String> = rows.collect();
    let more = agent.live.len().saturating_sub(WORKER_ROWS_MAX);
    if more > 0 {
        lines.push(format!("- and {more} more: list_agents"));
    }
    Some(format!("Open workers:\n{}", lines.join("\n")))
}

fn worker(session: &Session, id: AgentId, now: Time) -> Option<String> {
    let child = session.agent(id)?;
    let attention = attention(session, id, now)?;
    let word = state_word(session, child).word();
    let row = format!("- {id} {} {word}: {}", child.label, attention.sentence);
    let act = attention.action.filter(|action| Tool::named(&action.tool).is_some());
    Some(match act {
        Some(act) => {
            let how = if attention.required { "action" } else { "optional" };
            format!("{row}; {how}: {} {}", act.tool, act.args)
        }
        None if attention.required => format!("{row}; the user has been asked"),
        None => row,
    })
}
