//! May this agent make this call? One pure function over ceilings, rules, mode and grants.
//! Deny beats ask beats allow, and nothing a person grants lifts a ceiling or a deny rule.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

use crate::{
    Agent, Audience, Call, Class, Covers, Digest, Grant, PolicyMode, Rights, Rule, RuleKind,
    Session, Time, Tool,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allow,
    /// Why it is asked.
    Ask(String),
    /// What the model is told.
    Deny(String),
    /// There is no such tool.
    Unknown(String),
}

pub(crate) fn judge(session: &Session, agent: &Agent, call: &Call, now: Time) -> Ruling {
    let ruling = ruling(session, agent, call, now);
    match &ruling {
        Ruling::Ask(why) if session.world.audience == Audience::Absent => {
            Ruling::Deny(format!("denied: {why}, and nobody is there to ask"))
        }
        Ruling::Allow | Ruling::Ask(_) | Ruling::Deny(_) | Ruling::Unknown(_) => ruling,
    }
}

/// The same, whether or not anybody is there to be asked: for a call somebody has approved.
pub(crate) fn ruling(session: &Session, agent: &Agent, call: &Call, now: Time) -> Ruling {
    let Some((tool, class)) = declared(session, &call.name) else {
        return Ruling::Unknown(format!("Tool not found: {}", call.name));
    };
    let names = Names::of(call);
    if let Some(holder) = forbidden_by(session, agent, &names, class) {
        return Ruling::Deny(format!("{tool} is beyond what {holder} may do"));
    }
    let subjects = subjects(session, call, class);
    let ruled = by_rules(&session.world.rules, agent, &names, class, &subjects);
    let ruling = ruled.unwrap_or_else(|| by_mode(session.world.mode, tool, class));
    let granted = || session.grants.values().any(|grant| covers(session, grant, agent, call, now));
    if matches!(ruling, Ruling::Ask(_)) && granted() { Ruling::Allow } else { ruling }
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
fn forbidden_by(session: &Session, agent: &Agent, names: &Names, class: Class) -> Option<String> {
    let forbids = |rights: &Rights| !names.any(|name| rights.allow(name, class));
    if forbids(&agent.uses) {
        return Some(agent.name_and_id());
    }
    let mut at = Some(agent);
    while let Some(holder) = at {
        if forbids(&holder.ceiling) {
            return Some(holder.name_and_id());
        }
        at = holder.parent.and_then(|(parent, _)| session.agent(parent));
    }
    None
}

/// What rules are matched against: what the edge's parser found, or the subject argument.
fn subjects(session: &Session, call: &Call, class: Class) -> Subjects {
    let plain = |text: &str| match class {
        Class::Read | Class::Write => plain_path(text),
        Class::Exec => plain_command(text),
        Class::Network | Class::Delegate => text.into(),
    };
    // A parser that found nothing has said nothing: no part would match every allow.
    if let Some(parts) = call.subjects.as_ref().filter(|parts| !parts.is_empty()) {
        let parts = parts.iter().map(|part| plain(part)).collect();
        return Subjects { parts, opaque: false };
    }
    let key = session.world.tools.get(&call.name).and_then(|tool| tool.subject.as_deref());
    let named = key.and_then(|key| call.arguments.get(key)).and_then(|value| value.as_str());
    let text = named.map_or_else(|| format!("{}", call.arguments), String::from);
    let opaque = hides_something(&text, class);
    Subjects { parts: Vec::from([plain(&text)]), opaque }
}

struct Subjects {
    parts: Vec<String>,
    /// The text can hold more than it seems to: a pattern says nothing certain about it.
    opaque: bool,
}

/// A shell line with more than one command or value in it, a path that climbs, a NUL.
fn hides_something(text: &str, class: Class) -> bool {
    let hides = match class {
        Class::Exec => text.contains(SHELL_MARKS),
        Class::Read | Class::Write => text.split(['/', '\\']).any(|step| step == ".."),
        Class::Network | Class::Delegate => false,
    };
    hides || text.contains('\0')
}

/// Characters with which a shell line can hold more than one command or value.
const SHELL_MARKS: &[char] = &[
    ';', '&', '|', '$', '`', '<', '>', '(', ')', '{', '}', '[', ']', '\n', '\r', '\\', '#', '"',
    '\'', '=', '~', '*', '?', '!',
];

/// ` /bin/rm  -rf x` is `rm -rf x`.
fn plain_command(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().map(|word| word.rsplit('/').next().unwrap_or(word));
    program.into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// `./a//b` is `a/b`, so that a rule for one holds for the other.
fn plain_path(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != ".");
    format!("{root}{}", steps.collect::<Vec<_>>().join("/"))
}

/// The strictest rule that speaks. An allow must hold for every part, the others for any; and
/// where a deny or ask pattern cannot be sure, a person is asked.
fn by_rules(
    rules: &[Rule],
    agent: &Agent,
    names: &Names,
    class: Class,
    subjects: &Subjects,
) -> Option<Ruling> {
    let mine = rules.iter().filter(|rule| {
        rule.agent.as_ref().is_none_or(|name| *name == agent.name)
            && names.any(|name| matches(&rule.tool, name))
    });
    let mut strictest: Option<(RuleKind, &Rule)> = None;
    for rule in mine {
        let Some(kind) = speaks(rule, class, subjects) else { continue };
        if strictest.is_none_or(|(so_far, _)| kind > so_far) {
            strictest = Some((kind, rule));
        }
    }
    let (kind, rule) = strictest?;
    let words = match &rule.pattern {
        Some(pattern) => format!("{} {pattern:?}", rule.tool),
        None => rule.tool.clone(),
    };
    Some(match kind {
        RuleKind::Allow => Ruling::Allow,
        RuleKind::Ask if rule.kind == RuleKind::Deny => {
            Ruling::Ask(format!("cannot tell whether this is denied: deny {words}"))
        }
        RuleKind::Ask => Ruling::Ask(format!("rule: ask {words}")),
        RuleKind::Deny => Ruling::Deny(format!("denied by rule: deny {words}")),
    })
}

fn speaks(rule: &Rule, class: Class, subjects: &Subjects) -> Option<RuleKind> {
    let Some(pattern) = &rule.pattern else { return Some(rule.kind) };
    let parts = &subjects.parts;
    match rule.kind {
        RuleKind::Allow => parts
            .iter()
            .all(|part| allows(pattern, part, class, subjects))
            .then_some(RuleKind::Allow),
        kind if parts.iter().any(|part| matches(pattern, part)) => Some(kind),
        RuleKind::Deny | RuleKind::Ask => subjects.opaque.then_some(RuleKind::Ask),
    }
}

/// An allow pattern must not be stretched by what a wildcard can swallow.
fn allows(pattern: &str, part: &str, class: Class, subjects: &Subjects) -> bool {
    let climbs = class != Class::Exec && hides_something(part, class);
    let sure = !subjects.opaque && !climbs;
    pattern == part || (sure && matches(pattern, part))
}

fn by_mode(mode: PolicyMode, tool: &str, class: Class) -> Ruling {
    let free = match (mode, class) {
        (_, Class::Read | Class::Delegate)
        | (PolicyMode::Auto, _)
        | (PolicyMode::Edits, Class::Write) => true,
        (PolicyMode::Plan, Class::Write | Class::Exec | Class::Network) => {
            return Ruling::Deny(format!("plan mode: {tool} has effects ({})", class.word()));
        }
        (PolicyMode::Ask, Class::Write | Class::Exec | Class::Network)
        | (PolicyMode::Edits, Class::Exec | Class::Network) => false,
    };
    if free { Ruling::Allow } else { Ruling::Ask(format!("{} needs approval", class.word())) }
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
        Covers::Pattern(pattern) => {
            let subjects = subjects(session, call, class);
            subjects.parts.iter().all(|part| allows(pattern, part, class, &subjects))
        }
    }
}

/// `*` is any run of characters, `?` is one; everything else is itself.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            Some(_) | None => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("cargo test*", "cargo test --all", true),
            ("cargo test*", "cargo testament", true),
            ("cargo test", "cargo test --all", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("src/?.rs", "src/a.rs", true),
            ("src/?.rs", "src/ab.rs", false),
            ("", "", true),
            ("", "a", false),
            ("**", "anything", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} against {text:?}");
        }
    }

    #[test]
    fn a_parser_that_found_nothing_opens_no_door() {
        let call = Call {
            id: crate::CallId { turn: crate::Seq(1), index: 0 },
            name: "exec".into(),
            arguments: alloc::sync::Arc::new(serde_json::json!({ "command": "rm -rf /" })),
            subjects: Some(Vec::new()),
            edited: false,
            state: crate::CallState::Pending,
        };
        let subjects = subjects(&Session::new(), &call, Class::Exec);
        assert!(!subjects.parts.is_empty() && subjects.opaque);
    }

    #[test]
    fn an_allow_pattern_swallows_no_second_command_and_no_way_out() {
        let cases = [
            ("cargo test*", "cargo test --all", Class::Exec, true),
            ("cargo test*", "cargo test; rm -rf /", Class::Exec, false),
            ("cargo test*", "cargo test && curl x", Class::Exec, false),
            ("cargo test*", "cargo test $(id)", Class::Exec, false),
            ("cargo test*", "cargo test `id`", Class::Exec, false),
            ("cargo test*", "cargo test > /etc/passwd", Class::Exec, false),
            ("cargo test*", "cargo test\nid", Class::Exec, false),
            ("src/*", "src/lib.rs", Class::Write, true),
            ("src/*", "src/../../etc/passwd", Class::Write, false),
            ("src/*", "src/a\0b", Class::Write, false),
        ];
        assert_eq!(plain_command(" /bin/rm \t -rf x"), "rm -rf x");
        assert_eq!(plain_path("./a//./b"), "a/b");
        assert_eq!(plain_path("/a/b/"), "/a/b");
        for (pattern, text, class, expected) in cases {
            let opaque = hides_something(text, class);
            let whole = Subjects { parts: Vec::new(), opaque };
            assert_eq!(allows(pattern, text, class, &whole), expected, "{pattern:?} {text:?}");
        }
    }
}
