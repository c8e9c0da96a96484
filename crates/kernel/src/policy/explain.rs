//! Why a call would be allowed, asked or denied, for people who write rules. The verdict is the
//! judge's own; what is said about each part is only how it came to it.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;
use serde_json::Value;

use super::pattern::Fit;
use super::subject::Heard;
use super::{Names, Ruling, by_mode, by_rules, changes, is_for, only};
use crate::{Definition, PolicyMode, Rule, RuleKind, Subjects, ToolSpec};

/// A call that nobody has made yet.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub rules: &'a [Rule],
    pub mode: PolicyMode,
    /// The definition's name of the agent that would make it.
    pub agent: &'a str,
    /// What it is made from, if that says what it may do.
    pub definition: Option<&'a Definition>,
    pub tool: &'a ToolSpec,
    pub arguments: &'a Value,
    pub subjects: Option<&'a Subjects>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub verdict: RuleKind,
    /// What decided, in words.
    pub because: String,
    /// Every command and file that the call is about.
    pub parts: Vec<Considered>,
    /// Why nobody can tell what it does, if so.
    pub opaque: Option<String>,
}

/// One part and the strictest rule that speaks of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Considered {
    pub part: String,
    pub verdict: Option<RuleKind>,
    /// As it was written.
    pub rule: Option<String>,
}

/// Judges by rules, mode and what a definition may do. Who is above it, and grants, belong to
/// agents that live.
#[must_use]
pub fn explain(question: &Question) -> Explanation {
    let Question { rules, mode, agent, definition, tool, arguments, subjects } = *question;
    let heard = Heard::new(tool.class, tool.subject.as_deref(), arguments, subjects);
    let names = Names(Vec::from([tool.name.as_str()]));
    let own = definition.map(|it| it.rules.as_slice()).unwrap_or_default();
    let all: Vec<&Rule> = rules.iter().chain(own).collect();
    if let Some(because) = definition.and_then(|it| beyond(it, &names, tool, &heard)) {
        let parts = heard.parts.iter().map(|part| consider(&[], &heard, part)).collect();
        return Explanation { verdict: RuleKind::Deny, because, parts, opaque: heard.opaque };
    }
    let mode = definition.and_then(|it| it.cap).map_or(mode, |cap| mode.meet(cap));
    let is_planned = mode == PolicyMode::Plan && changes(tool.class);
    let ruled = by_rules(&all, agent, &names, &heard).filter(|_| !is_planned);
    let by_rule = ruled.is_some();
    let ruling = ruled.unwrap_or_else(|| by_mode(mode, &tool.name, tool.class, &heard));
    let (verdict, because) = match ruling {
        Ruling::Allow if by_rule => (RuleKind::Allow, "every part is allowed by a rule".to_owned()),
        Ruling::Allow => (RuleKind::Allow, "the mode lets it run, and no rule speaks".to_owned()),
        Ruling::Ask(why) => (RuleKind::Ask, why),
        Ruling::Deny(_, why) | Ruling::Unknown(why) => (RuleKind::Deny, why),
    };
    let mine: Vec<&Rule> = all.into_iter().filter(|rule| is_for(rule, agent, &names)).collect();
    // What another part runs is told only if a rule speaks of it.
    let speaks = |it: &Considered| it.verdict.is_some() || !heard.is_within(&it.part);
    let parts = heard.parts.iter().map(|part| consider(&mine, &heard, part));
    let parts: Vec<Considered> = parts.filter(speaks).collect();
    let because = match parts.iter().find(|part| part.verdict.is_none()) {
        Some(part) if verdict == RuleKind::Ask && !by_rule && heard.opaque.is_none() => {
            alloc::format!("{because}: no rule allows {:?}", part.part)
        }
        Some(_) | None => because,
    };
    Explanation { verdict, because, parts, opaque: heard.opaque }
}

/// Why an agent that is made from this may not call it, whatever rules say.
fn beyond(made: &Definition, names: &Names, tool: &ToolSpec, heard: &Heard) -> Option<String> {
    let name = &made.name;
    let may = made.uses.allow(&tool.name, tool.class) && made.ceiling.allow(&tool.name, tool.class);
    if !may {
        return Some(alloc::format!("{} is beyond what {name} may do", tool.name));
    }
    let patterns = only::patterns(made, names);
    let is_free = patterns.is_empty() || heard.is_admitted(&patterns);
    (!is_free).then(|| only::told(name, &tool.name, &patterns))
}

fn consider(rules: &[&Rule], heard: &Heard, part: &str) -> Considered {
    let mut strictest: Option<(RuleKind, &Rule)> = None;
    let allows = rules.iter().filter(|rule| rule.kind == RuleKind::Allow);
    let allows: Vec<&str> = allows.filter_map(|rule| rule.pattern.as_deref()).collect();
    let calm = heard.admits_calm(&allows, part);
    for rule in rules {
        let kind = match (&rule.pattern, rule.kind) {
            (None, kind) => kind,
            (Some(pattern), RuleKind::Allow) => {
                let behind = || heard.calm(part).is_some_and(|(_, it)| heard.admits(pattern, &it));
                let admits = heard.admits(pattern, part) || calm && behind();
                let sure = heard.opaque.is_none() && admits;
                if !sure {
                    continue;
                }
                RuleKind::Allow
            }
            (Some(pattern), kind) => match heard.part_meets(pattern, part) {
                Fit::No => continue,
                Fit::Maybe => RuleKind::Ask,
                Fit::Yes => kind,
            },
        };
        if strictest.is_none_or(|(so_far, _)| kind > so_far) {
            strictest = Some((kind, rule));
        }
    }
    let (verdict, rule) = strictest.unzip();
    let rule = rule.map(|rule| alloc::format!("{rule}"));
    Considered { part: part.to_owned(), verdict, rule }
}
