//! Tables of permissions, as other programs write them: for each tool, or for some calls of it,
//! `deny`, `ask` or `allow`. What narrows is kept. What would allow is told and left out: that is
//! for the person to say.

use crate::definition::{ToolUse, Tools};
use crate::fields::Fields;
use crate::problem::{Place, Problems};
use crate::tools;
use crate::tree::{Key, Node, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Deny,
    Ask,
    Allow,
}

const WORDS: &[(&str, Word)] = &[("deny", Word::Deny), ("ask", Word::Ask), ("allow", Word::Allow)];

pub(crate) fn read(fields: &Fields<'_>, tools: &mut Tools) {
    let Some((key, node)) = fields.node(&["permission", "permissions"]) else { return };
    let problems = fields.problems();
    let Value::Map(entries) = &node.value else {
        match word(key, node, problems) {
            Some(Word::Deny) => tools.allow = Some(Vec::new()),
            Some(Word::Ask) => tools.ask.push(ToolUse { name: "*".to_owned(), pattern: None }),
            Some(Word::Allow) => tell_allowed(&key.text, node.place, problems),
            None => {}
        }
        return;
    };
    for (tool, rule) in entries {
        match &rule.value {
            Value::Map(calls) => some_calls(tool, calls, tools, problems),
            Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::List(_) => {
                match word(tool, rule, problems) {
                    Some(Word::Deny) if tool.text == "*" => tools.allow = Some(Vec::new()),
                    Some(Word::Deny) => tools.deny.extend(named(tool, None, problems)),
                    Some(Word::Ask) => tools.ask.extend(named(tool, None, problems)),
                    Some(Word::Allow) => tell_allowed(&tool.text, rule.place, problems),
                    None => {}
                }
            }
        }
    }
}

/// `"git push *": deny` beside `"*": ask`.
fn some_calls(tool: &Key, calls: &[(Key, Node)], tools: &mut Tools, problems: &Problems) {
    let rules: Vec<(&Key, Word)> = calls
        .iter()
        .filter_map(|(pattern, rule)| Some((pattern, word(pattern, rule, problems)?)))
        .collect();
    let every = |pattern: &Key| matches!(pattern.text.as_str(), "*" | "**" | "**/*");
    if rules.iter().any(|(pattern, word)| every(pattern) && *word == Word::Deny) {
        tools.deny.extend(named(tool, None, problems));
        if let Some((pattern, _)) = rules.iter().find(|(_, word)| *word != Word::Deny) {
            let what = format!("\"{}\" is denied, so \"{}\" is too", tool.text, pattern.text);
            let why = "a part of what is denied cannot be let through";
            problems.warn(pattern.place, what, why, "write: \"*\": ask");
        }
        return;
    }
    for (pattern, word) in rules {
        let calls = (!every(pattern)).then_some(pattern.text.as_str());
        match word {
            Word::Deny => tools.deny.extend(named(tool, calls, problems)),
            Word::Ask => tools.ask.extend(named(tool, calls, problems)),
            Word::Allow => tell_allowed(&pattern.text, pattern.place, problems),
        }
    }
}

/// One word there is for every way of changing files; here there are two tools.
fn named(tool: &Key, pattern: Option<&str>, problems: &Problems) -> Vec<ToolUse> {
    let with = |name: String| ToolUse { name, pattern: pattern.map(str::to_owned) };
    if tool.text.eq_ignore_ascii_case("edit") {
        return ["edit", "write"].map(|name| with(name.to_owned())).to_vec();
    }
    if tool.text == "*" {
        return vec![with("*".to_owned())];
    }
    tools::one(&tool.text, tool.place, problems).into_iter().map(|one| with(one.name)).collect()
}

fn word(key: &Key, node: &Node, problems: &Problems) -> Option<Word> {
    let text = node.text().unwrap_or_default().trim();
    let found = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    if found.is_none() {
        let shown = node.text().map_or_else(|| node.kind().to_owned(), crate::problem::quote);
        let what = format!("\"{}\" is {shown}", key.text);
        let how = format!("write: {}: ask", key.text);
        problems.error(node.place, what, "one of deny, ask, allow is expected", how);
    }
    found.map(|(_, word)| *word)
}

/// Once is enough: the reason is the same for all of them.
fn tell_allowed(what: &str, at: Place, problems: &Problems) {
    let why = "a definition may take away, and only a person allows";
    let how = "allow it when you are asked, or in the configuration";
    problems.warn_once(at, format!("\"allow\" for \"{what}\" is left out"), why, how);
}
