//! Rules as people write them: `allow|ask|deny TOOL ["PATTERN"] [agent=NAME]`, with examples that
//! say what the pattern is meant to match. A rule that does not do what its examples say is worse
//! than none, so they are tried with the parser and the judge that the calls will meet.
//!
//! **Patterns.** `*` is any run of characters, blanks included; `?` is one. For commands, `:*` at
//! the end is the end of a word: `cargo test:*` is `cargo test` with or without more words, where
//! `cargo test*` is also `cargo testament`. A pattern is held against each command of a line by
//! itself, as `locum rules test` prints them: without quotes, joined by single blanks. An allow
//! needs every command and every redirect (`> file`) of the line to be allowed by some rule.

use std::path::Path;

use locum_kernel::{Class, PolicyMode, Question, Rule, RuleKind, ToolSpec, explain};
use serde_json::{Map, Value};

use crate::subjects::subjects;

/// Examples are of any workspace; nothing is there.
const ANYWHERE: &str = "/workspace-of-examples";

/// What is wrong with the text of a rule, and where, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Error {
    pub column: usize,
    pub why: String,
}

/// What a rule is meant to match, and what not: subjects, such as shell lines or paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Examples<'a> {
    pub matching: &'a [String],
    pub not_matching: &'a [String],
}

/// A whole rule: `deny exec "rm *" agent=builder`.
pub fn parse(text: &str) -> Result<Rule, Error> {
    let (word, _, rest) = word(text, 0);
    let kinds = [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny];
    let Some(kind) = kinds.into_iter().find(|kind| kind.word() == word) else {
        let why = format!("a rule begins with allow, ask or deny, not {word:?}");
        return Err(Error { column: column(text, rest - word.len()), why });
    };
    parse_from(kind, text, rest)
}

/// A rule whose kind is known already: `exec "rm *" agent=builder`.
pub fn parse_as(kind: RuleKind, text: &str) -> Result<Rule, Error> {
    parse_from(kind, text, 0)
}

/// The rule of a configuration, with its examples tried. `tools` are those that are known; the
/// usual ones are known always.
pub fn checked(text: &str, examples: Examples, tools: &[ToolSpec]) -> Result<Rule, Error> {
    let rule = parse(text)?;
    let declared = tools.iter().find(|tool| tool.name == rule.tool).cloned();
    let tool = declared.or_else(|| usual(&rule.tool));
    let tried = examples.matching.len() + examples.not_matching.len();
    let Some(tool) = tool else {
        let why = format!("examples of {} cannot be tried: it is not known", rule.tool);
        return if tried == 0 { Ok(rule) } else { Err(Error { column: 1, why }) };
    };
    let at = text.find(&rule.tool).unwrap_or(0) + rule.tool.len();
    let column = text.get(at..).and_then(|rest| rest.find('"')).map_or(1, |q| column(text, at + q));
    for (list, should) in [(examples.matching, true), (examples.not_matching, false)] {
        for example in list {
            if speaks(&rule, &tool, example) != should {
                let verb = if should { "does not match" } else { "matches" };
                let why = format!("{rule} {verb} its example {example:?}");
                return Err(Error { column, why });
            }
        }
    }
    Ok(rule)
}

/// Whether a rule alone decides about a call with this subject.
#[must_use]
pub fn speaks(rule: &Rule, tool: &ToolSpec, subject: &str) -> bool {
    let arguments = arguments(tool, subject);
    let subjects = subjects(tool, &arguments, Path::new(ANYWHERE));
    // The mode in which nothing but the rule could bring this verdict.
    let mode = match rule.kind {
        RuleKind::Allow => PolicyMode::Ask,
        RuleKind::Ask | RuleKind::Deny => PolicyMode::Auto,
    };
    let rules = std::slice::from_ref(rule);
    let agent = rule.agent.as_deref().unwrap_or_default();
    let (arguments, subjects) = (&arguments, subjects.as_ref());
    let found =
        explain(&Question { rules, mode, agent, definition: None, tool, arguments, subjects });
    found.verdict == rule.kind
}

/// The arguments of a call with this subject.
#[must_use]
pub fn arguments(tool: &ToolSpec, subject: &str) -> Value {
    match &tool.subject {
        Some(key) => {
            Value::Object(Map::from_iter([(key.clone(), Value::String(subject.to_owned()))]))
        }
        None => serde_json::from_str(subject).unwrap_or_else(|_| Value::String(subject.to_owned())),
    }
}

/// Tools that every session may have, for rules that are tried before there is one.
#[must_use]
pub fn usual(name: &str) -> Option<ToolSpec> {
    let (class, subject) = match name {
        "exec" => (Class::Exec, "command"),
        "read" | "ls" | "glob" | "grep" => (Class::Read, "path"),
        "write" | "edit" => (Class::Write, "path"),
        "web_fetch" => (Class::Network, "url"),
        _ => return None,
    };
    let (name, subject) = (name.to_owned(), Some(subject.to_owned()));
    Some(ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name,
        class,
        idempotent: false,
        subject,
        timeout_ms: None,
    })
}

/// Names of the usual tools, for people who mistyped one.
pub const USUAL: &[&str] = &["exec", "read", "ls", "glob", "grep", "write", "edit", "web_fetch"];

/// The next word, and the places where it begins and ends.
fn word(text: &str, from: usize) -> (&str, usize, usize) {
    let rest = &text[from..];
    let begin = from + (rest.len() - rest.trim_start().len());
    let end = text[begin..].find(char::is_whitespace).map_or(text.len(), |length| begin + length);
    (&text[begin..end], begin, end)
}

fn column(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.chars().count() + 1)
}

fn parse_from(kind: RuleKind, text: &str, from: usize) -> Result<Rule, Error> {
    let wrong = |at: usize, why: &str| Err(Error { column: column(text, at), why: why.into() });
    let (tool, begin, end) = word(text, from);
    if tool.is_empty() || tool.starts_with('"') {
        return wrong(begin, "a rule begins with a tool, such as: exec \"cargo *\"");
    }
    let mut rule = Rule { kind, tool: tool.to_owned(), pattern: None, agent: None };
    let (_, mut at, _) = word(text, end);
    if text[at..].starts_with('"') {
        // Up to the last quote: patterns may hold quotes themselves.
        let Some(length) = text[at + 1..].rfind('"') else {
            return wrong(at, "the pattern's quote is not closed");
        };
        rule.pattern = Some(text[at + 1..at + 1 + length].to_owned());
        (_, at, _) = word(text, at + length + 2);
    }
    let (rest, _, _) = word(text, at);
    if let Some(name) = rest.strip_prefix("agent=") {
        if name.is_empty() {
            return wrong(at, "agent= needs the name of an agent");
        }
        rule.agent = Some(name.to_owned());
        (_, at, _) = word(text, at + rest.len());
    }
    let rest = text[at..].trim_end();
    if rest.is_empty() {
        return Ok(rule);
    }
    wrong(at, &format!("what is {rest:?}? Patterns are quoted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_written() {
        let shown = |text: &str| match parse(text) {
            Ok(rule) => rule.to_string(),
            Err(error) => format!("{}: {error}", error.column),
        };
        let cases = [
            ("allow exec", "allow exec"),
            ("  deny   exec \"rm *\"  ", "deny exec \"rm *\""),
            ("ask exec \"cargo test:*\" agent=b", "ask exec \"cargo test:*\" agent=b"),
            ("allow write agent=b", "allow write agent=b"),
            ("allow exec \"echo \"a\"\"", "allow exec \"echo \\\"a\\\"\""),
            ("", "1: a rule begins with allow, ask or deny, not \"\""),
            ("permit exec", "1: a rule begins with allow, ask or deny, not \"permit\""),
            ("  alow exec", "3: a rule begins with allow, ask or deny, not \"alow\""),
            ("deny", "5: a rule begins with a tool, such as: exec \"cargo *\""),
            ("deny \"x\"", "6: a rule begins with a tool, such as: exec \"cargo *\""),
            ("deny exec \"x", "11: the pattern's quote is not closed"),
            ("deny exec rm", "11: what is \"rm\"? Patterns are quoted"),
            ("deny exec \"é\" agent=", "15: agent= needs the name of an agent"),
            ("deny exec \"x\" agent=b c", "23: what is \"c\"? Patterns are quoted"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    /// Rule, what it should match, what not, what is said.
    type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

    const CASES: &[Case] = &[
        ("deny exec \"rm *\"", &["rm -rf x", "ls; sudo /bin/rm x"], &["rmdir x", "ls"], "ok"),
        (
            "deny exec \"rm *\"",
            &["rmdir x"],
            &[],
            "11: deny exec \"rm *\" does not match its example \"rmdir x\"",
        ),
        (
            "deny exec \"rm *\"",
            &[],
            &["env rm x"],
            "11: deny exec \"rm *\" matches its example \"env rm x\"",
        ),
        ("allow exec \"cargo test*\"", &["cargo testament"], &["cargo test; id"], "ok"),
        (
            "allow exec \"cargo test:*\"",
            &["cargo test", "cargo test -q"],
            &["cargo testament"],
            "ok",
        ),
        ("ask exec \"git push*\"", &["git status && git push"], &["git status"], "ok"),
        ("deny read \"secrets/*\"", &["./secrets/key"], &["src/a"], "ok"),
        ("deny read \"secrets/*\" agent=b", &["secrets/key"], &[], "ok"),
        ("deny odd \"x\"", &[], &[], "ok"),
        ("deny odd \"x\"", &["x"], &[], "1: examples of odd cannot be tried: it is not known"),
    ];

    #[test]
    fn examples_are_tried() {
        for (text, matching, not_matching, expected) in CASES {
            let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            let (matching, not_matching) = (owned(matching), owned(not_matching));
            let examples = Examples { matching: &matching, not_matching: &not_matching };
            let shown = match checked(text, examples, &[]) {
                Ok(_) => "ok".to_owned(),
                Err(error) => format!("{}: {error}", error.column),
            };
            assert_eq!(shown, *expected, "{text}");
        }
    }

    #[test]
    fn every_usual_tool_is_known() {
        assert!(USUAL.iter().all(|name| usual(name).is_some()));
    }
}
