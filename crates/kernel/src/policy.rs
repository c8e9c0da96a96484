//! May this agent make this call? One pure function over ceilings, rules, mode and grants.
//! Deny beats ask beats allow, and nothing a person grants lifts a ceiling or a deny rule.

mod canon;
mod domain;
mod explain;
pub(crate) mod keep;
#[cfg(test)]
mod lattice;
mod only;
mod pattern;
pub(crate) mod span;
mod subject;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

use crate::limits::{REPEATS_HARMLESS_MAX, REPEATS_LIFTED, REPEATS_MAX, ROUNDS_MAX};
use crate::state::Round;
use crate::{
    Agent, Audience, Call, Class, Covers, Denial, Digest, Grant, Made, Ours, PROGRAM, PolicyMode,
    Rights, Rule, RuleKind, Session, Time, Tool,
};
use pattern::{Fit, matches};
use subject::Heard;

pub use explain::{Considered, Explanation, Question, explain};
pub use pattern::UNKNOWN;
pub use subject::WITHIN;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allow,
    /// Why it is asked.
    Ask(String),
    /// Why, and what the model is told.
    Deny(Denial, String),
    /// There is no such tool.
    Unknown(String),
}

pub(crate) fn judge(session: &Session, agent: &Agent, call: &Call, now: Time) -> Ruling {
    let ruling = ruling(session, agent, call, now);
    match &ruling {
        Ruling::Ask(why) if session.world.audience == Audience::Absent => {
            let told = format!("denied: {why}, and nobody is there to ask");
            Ruling::Deny(Denial::Unheard, told)
        }
        Ruling::Allow | Ruling::Ask(_) | Ruling::Deny(..) | Ruling::Unknown(_) => ruling,
    }
}

/// The same, whether or not anybody is there to be asked: for a call somebody has approved.
pub(crate) fn ruling(session: &Session, agent: &Agent, call: &Call, now: Time) -> Ruling {
    let Some((tool, class)) = declared(session, &call.name) else {
        return Ruling::Unknown(format!("Tool not found: {}", call.name));
    };
    if (call.name == PROGRAM) != (call.ours == Some(Ours::Program)) {
        return Ruling::Unknown(format!("Tool not found: {}", call.name));
    }
    let names = Names::of(call);
    if let Some(holder) = forbidden_by(session, agent, call, &names, class) {
        let told = format!("{tool} is beyond what {} may do", holder.name_and_id());
        return Ruling::Deny(Denial::Beyond(holder.id), told);
    }
    let heard = heard(session, call, class);
    if let Some(denial) = only::denied(session, agent, call, &names, &heard) {
        return denial;
    }
    // What plans changes nothing, whatever else is allowed. A rule may let it look at the web.
    if session.world.mode == PolicyMode::Plan && changes(class) {
        return by_mode(session.world.mode, tool, class, &heard);
    }
    let ruled = by_rules(&rules_for(session, agent), &agent.name, &names, &heard);
    let ruling = ruled.unwrap_or_else(|| by_mode(mode(session, agent), tool, class, &heard));
    let ruling = match (ruling, caution(session, call)) {
        // Asked anyway, it says so: who agrees has to know.
        (Ruling::Allow | Ruling::Ask(_), Some(why)) => Ruling::Ask(why),
        (ruling, _) => ruling,
    };
    let granted = || session.grants.values().any(|grant| covers(session, grant, agent, call, now));
    let ruling = match ruling {
        Ruling::Ask(_) if granted() => Ruling::Allow,
        Ruling::Ask(why) if is_unasked(session, agent) => {
            let told = format!("denied: {why}, and {} never asks", agent.name);
            Ruling::Deny(Denial::NeverAsks, told)
        }
        Ruling::Allow | Ruling::Ask(_) | Ruling::Deny(..) | Ruling::Unknown(_) => ruling,
    };
    match again(session, agent, call).filter(|_| call.ours.is_none()) {
        Some(why) if ruling == Ruling::Allow => Ruling::Ask(why),
        Some(_) | None => ruling,
    }
}

/// Why every call of a tool, or every birth from a definition, is asked, if that is said.
fn caution(session: &Session, call: &Call) -> Option<String> {
    if let Some(Made::Of(digest)) = &call.made {
        return session.world.definitions.get(digest)?.caution.clone();
    }
    if session.world.disguised.contains(&call.name) {
        return Some("the tool describes itself otherwise than before".into());
    }
    session.world.tools.get(&call.name)?.caution.clone()
}

/// Why it is asked, if the agent has made this very call too often in a row, or with others in turn
/// and the same results. A call with
/// effects that changes nothing any more is a loop nobody watches. Reads may repeat for longer:
/// polling is how an agent learns that something is ready. Delegation is never one: `wait` and
/// `list_agents` are meant to be asked again.
fn again(session: &Session, agent: &Agent, call: &Call) -> Option<String> {
    let tool = session.world.tools.get(&call.name).filter(|_| !is_patience(call))?;
    let harmless = (REPEATS_HARMLESS_MAX, REPEATS_HARMLESS_MAX);
    let (bound, rounds) = if tool.is_harmless() { harmless } else { (REPEATS_MAX, ROUNDS_MAX) };
    let repeat = &agent.repeat;
    let bound = if repeat.lifted { bound * REPEATS_LIFTED } else { bound };
    let times = repeat.times + 1;
    // The digest is only worked out when it matters.
    let digest = || Digest::of_call(&tool.name, &call.arguments);
    if times >= bound && repeat.digest == Some(digest()) {
        return Some(format!("it makes the same call {times} times in a row"));
    }
    let Round { calls, number } = repeat.rounds.reached(rounds, digest)?;
    Some(format!("it makes the same {calls} calls in turn, with the same results, {number} times"))
}

/// To wait for a command of the background and to look at it is what these are for.
fn is_patience(call: &Call) -> bool {
    let action = call.arguments.get("action").and_then(Value::as_str);
    call.name == "process" && matches!(action, Some("list" | "log" | "wait"))
}

/// The names a call goes by.
struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    fn of(call: &'a Call) -> Names<'a> {
        let background = call.arguments.get("async").and_then(Value::as_bool).unwrap_or(false);
        let own = Tool::named(&call.name).into_iter().flat_map(|tool| tool.names(background));
        let mut names: Vec<&'a str> = own.collect();
        names.push(&call.name);
        Names(names)
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|name| test(name))
    }
}

/// A tool's own name and class, if there is such a tool.
pub(crate) fn declared<'a>(session: &'a Session, name: &'a str) -> Option<(&'a str, Class)> {
    if let Some(tool) = Tool::named(name) {
        return Some((tool.name(), Class::Delegate));
    }
    session.world.tools.get(name).map(|tool| (tool.name.as_str(), tool.class))
}

/// Whose ceiling forbids it. Ancestors are looked at again at every call, so that rights taken
/// from a parent are gone for its children too.
fn forbidden_by<'a>(
    session: &'a Session,
    agent: &'a Agent,
    call: &Call,
    names: &Names,
    class: Class,
) -> Option<&'a Agent> {
    let forbids = |rights: &Rights| !names.any(|name| rights.allow(name, class));
    // What its definition wants run is not the agent's own choice; ceilings hold all the same.
    if (forbids(&agent.uses) && call.ours.is_none()) || !has(session, agent, &call.name) {
        return Some(agent);
    }
    // A program is the agent itself, not one of the tools that its definition lists.
    let is_itself = call.ours == Some(Ours::Program);
    let mut at = Some(agent);
    while let Some(holder) = at {
        let forbidden = if is_itself && holder.id == agent.id {
            !holder.ceiling.classes.contains(&class)
        } else {
            forbids(&holder.ceiling)
        };
        if forbidden {
            return Some(holder);
        }
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
    }
    None
}

fn changes(class: Class) -> bool {
    matches!(class, Class::Write | Class::Exec)
}

/// A tool that was brought for somebody else is nobody's.
pub(crate) fn has(session: &Session, agent: &Agent, tool: &str) -> bool {
    let brought = session.world.tools.get(tool).is_some_and(|tool| tool.brought);
    !brought || agent.brought.contains(tool)
}

/// The session's rules, those of the agent's definition, and what is denied or asked above it.
fn rules_for<'a>(session: &'a Session, agent: &'a Agent) -> Vec<&'a Rule> {
    let stands_in = session.definition(agent).is_some_and(|definition| definition.stands_in);
    let meant = |rule: &&Rule| !(stands_in && rule.kind == RuleKind::Allow && rule.agent.is_some());
    let mut rules: Vec<&Rule> = session.world.rules.iter().filter(meant).collect();
    let mut at = Some(agent);
    while let Some(holder) = at {
        let own = session.definition(holder).into_iter().flat_map(|it| &it.rules);
        let holds = |rule: &&Rule| holder.id == agent.id || rule.kind != RuleKind::Allow;
        rules.extend(own.filter(holds));
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
    }
    rules
}

/// The session's mode, as far as the definitions of the agent and of those above it go along.
fn mode(session: &Session, agent: &Agent) -> PolicyMode {
    let mut mode = session.world.mode;
    let mut at = Some(agent);
    while let Some(holder) = at {
        let cap = session.definition(holder).and_then(|definition| definition.cap);
        mode = cap.map_or(mode, |cap| mode.meet(cap));
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
    }
    mode
}

fn is_unasked(session: &Session, agent: &Agent) -> bool {
    session.definition(agent).is_some_and(|definition| definition.unasked)
}

fn heard(session: &Session, call: &Call, class: Class) -> Heard {
    let key = session.world.tools.get(&call.name).and_then(|tool| tool.subject.as_deref());
    Heard::new(class, key, &call.arguments, call.subjects.as_ref())
}

fn is_for(rule: &Rule, agent: &str, names: &Names) -> bool {
    let strict = rule.kind != RuleKind::Allow;
    let meant = |name: &str| {
        let kin = KIN.iter().filter(|(tool, _)| strict && *tool == name);
        matches(&rule.tool, name) || kin.clone().any(|(_, like)| matches(&rule.tool, like))
    };
    rule.agent.as_ref().is_none_or(|name| name == agent) && names.any(meant)
}

/// Tools that do what another does: whoever forbids one forbids the other.
const KIN: [(&str, &str); 3] = [("edit", "write"), ("grep", "read"), (PROGRAM, "exec")];

/// The strictest rule that speaks. A deny or an ask holds for any part, and where its pattern
/// cannot be sure a person is asked; an allow must hold for every part, each by some rule.
fn by_rules(rules: &[&Rule], agent: &str, names: &Names, heard: &Heard) -> Option<Ruling> {
    let mine = rules.iter().copied().filter(|rule| is_for(rule, agent, names));
    let mut strictest: Option<(RuleKind, &Rule)> = None;
    for rule in mine.clone().filter(|rule| rule.kind != RuleKind::Allow) {
        let fit = rule.pattern.as_ref().map_or(Fit::Yes, |pattern| heard.meets(pattern));
        let kind = match fit {
            Fit::No => continue,
            Fit::Maybe => RuleKind::Ask,
            Fit::Yes => rule.kind,
        };
        if strictest.is_none_or(|(so_far, _)| kind > so_far) {
            strictest = Some((kind, rule));
        }
    }
    if let Some((kind, rule)) = strictest {
        return Some(match kind {
            RuleKind::Deny => Ruling::Deny(Denial::Rule, format!("denied by rule: {rule}")),
            RuleKind::Ask if rule.kind == RuleKind::Deny => {
                Ruling::Ask(format!("cannot tell whether this is denied: {rule}"))
            }
            RuleKind::Ask | RuleKind::Allow => Ruling::Ask(format!("rule: {rule}")),
        });
    }
    let allows = mine.filter(|rule| rule.kind == RuleKind::Allow);
    let any = allows.clone().any(|rule| rule.pattern.is_none());
    let patterns: Vec<&str> = allows.filter_map(|rule| rule.pattern.as_deref()).collect();
    (any || heard.is_admitted(&patterns)).then_some(Ruling::Allow)
}

fn by_mode(mode: PolicyMode, tool: &str, class: Class, heard: &Heard) -> Ruling {
    let free = match (mode, class) {
        (_, Class::Read | Class::Delegate)
        | (PolicyMode::Auto, _)
        | (PolicyMode::Edits, Class::Write) => true,
        (PolicyMode::Plan, Class::Write | Class::Exec | Class::Network) => {
            let told = format!("plan mode: {tool} has effects ({})", class.word());
            return Ruling::Deny(Denial::Plan, told);
        }
        (PolicyMode::Ask, Class::Write | Class::Exec | Class::Network)
        | (PolicyMode::Edits, Class::Exec | Class::Network) => false,
    };
    match &heard.opaque {
        _ if free && class == Class::Write && is_skill(&heard.whole) => {
            Ruling::Ask(String::from("a skill is what agents follow from then on"))
        }
        _ if free => Ruling::Allow,
        Some(why) if class == Class::Exec => Ruling::Ask(format!("exec needs approval: {why}")),
        Some(_) | None => Ruling::Ask(format!("{} needs approval", class.word())),
    }
}

/// By its name alone, which is the same in whatever folder skills are kept, and however one gets
/// there. Other definitions lie where tools write nothing at all.
fn is_skill(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.trim().eq_ignore_ascii_case("SKILL.md")
}

pub(crate) fn covers(
    session: &Session,
    grant: &Grant,
    agent: &Agent,
    call: &Call,
    now: Time,
) -> bool {
    let Some((tool, class)) = declared(session, &call.name) else { return false };
    if grant.tool != tool || grant.expires.is_some_and(|at| now >= at) {
        return false;
    }
    let above = grant.fanout && agent.id == grant.root;
    if above || !session.is_within(agent.id, grant.root) {
        return false;
    }
    match &grant.covers {
        Covers::Digest(digest) => *digest == Digest::of_call(tool, &call.arguments),
        Covers::Pattern(pattern) => heard(session, call, class).is_admitted(&[pattern]),
    }
}
