//! "Only these calls": a definition may name the calls of a tool it is meant for. Every other call
//! of that tool is denied, to the agent and to everyone below it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::matches;
use super::subject::Heard;
use super::{Names, Ruling};
use crate::{Agent, Call, Definition, Denial, Made, Only, Session, Use, wanted};

/// A denial, if the agent or anybody above it may not make this very call.
pub(super) fn denied(
    session: &Session,
    agent: &Agent,
    call: &Call,
    names: &Names,
    heard: &Heard,
) -> Option<Ruling> {
    let mut at = Some(agent);
    while let Some(holder) = at {
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
        // What its definition wants run is not the agent's own choice.
        if holder.id == agent.id && call.ours.is_some() {
            continue;
        }
        let Some(definition) = session.definition(holder) else { continue };
        let patterns = patterns(definition, names);
        if patterns.is_empty() || admits(session, call, heard, &patterns) {
            continue;
        }
        let told = told(&holder.name_and_id(), &call.name, &patterns);
        return Some(Ruling::Deny(Denial::Beyond(holder.id), told));
    }
    None
}

/// The calls of such a tool that a definition is meant for; none if it does not say.
pub(super) fn patterns<'d>(definition: &'d Definition, names: &Names) -> Vec<&'d str> {
    let fits = |only: &&Only| names.any(|name| matches(&only.tool, name));
    definition.only.iter().filter(fits).map(|only| only.pattern.as_str()).collect()
}

pub(super) fn told(name: &str, tool: &str, patterns: &[&str]) -> String {
    let listed: Vec<String> = patterns.iter().map(|pattern| format!("{pattern:?}")).collect();
    format!("{name} may only run {tool} {}", listed.join(" or "))
}

/// A birth is known by the definition's name, other calls as an allow rule knows them.
fn admits(session: &Session, call: &Call, heard: &Heard, patterns: &[&str]) -> bool {
    let made = match &call.made {
        Some(Made::Of(digest)) => session.world.definitions.get(digest).map(|it| it.name.clone()),
        Some(Made::Not(_)) | None => None,
    };
    let named = || wanted(&Use::new(&call.name, (*call.arguments).clone())).map(|it| it.name);
    match made.or_else(named) {
        Some(name) => patterns.iter().any(|pattern| matches(pattern, &name)),
        None => heard.is_admitted(patterns),
    }
}
