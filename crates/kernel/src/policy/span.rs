//! How far a decision about an address holds. A page may lead on to another of the same place, and
//! whoever fetches it cannot ask again; so it is told beforehand how far it may follow.

use alloc::vec::Vec;

use super::{Names, declared, domain, heard, is_for, only, rules_for};
use crate::{Agent, Call, Class, Covers, Session, Span};

pub(crate) fn span(session: &Session, agent: &Agent, call: &Call) -> Span {
    let Some((tool, class @ Class::Network)) = declared(session, &call.name) else {
        return Span::Place;
    };
    let names = Names::of(call);
    let rules = rules_for(session, agent);
    let rules = rules.into_iter().filter(|rule| is_for(rule, &agent.name, &names));
    let mut patterns: Vec<&str> = rules.filter_map(|rule| rule.pattern.as_deref()).collect();
    let mut at = Some(agent);
    while let Some(holder) = at {
        let definition = session.definition(holder);
        patterns.extend(definition.into_iter().flat_map(|it| only::patterns(it, &names)));
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
    }
    for grant in session.grants.values().filter(|grant| grant.tool == tool) {
        match &grant.covers {
            Covers::Pattern(pattern) => patterns.push(pattern),
            Covers::Digest(_) => {}
        }
    }
    let address = heard(session, call, class).whole;
    let spans = patterns.iter().filter(|pattern| domain::is_about(pattern, &address));
    let spans = spans.map(|pattern| match domain::named(pattern) {
        Some(_) => Span::Host,
        None => Span::Address,
    });
    spans.max().unwrap_or(Span::Place)
}
