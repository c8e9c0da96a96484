//! Small words of the command line: rules, durations, dollars.

use std::time::Duration;

use locum_kernel::{Class, Rule, RuleKind, ToolSpec, distance};
use locum_runtime::rules::{USUAL, parse_as, speaks};

pub(crate) fn allow(text: &str) -> Result<Rule, String> {
    rule(RuleKind::Allow, text)
}

pub(crate) fn deny(text: &str) -> Result<Rule, String> {
    rule(RuleKind::Deny, text)
}

pub(crate) fn ask(text: &str) -> Result<Rule, String> {
    rule(RuleKind::Ask, text)
}

/// `TOOL ["PATTERN"] [agent=NAME]`
fn rule(kind: RuleKind, text: &str) -> Result<Rule, String> {
    parse_as(kind, text).map_err(|error| error.to_string())
}

/// A rule as it is read again: patterns stand there as they are.
pub(crate) fn written(rule: &Rule) -> String {
    format!("{} {}", rule.kind.word(), called(rule))
}

/// The same without its kind, as flags have it.
pub(crate) fn called(rule: &Rule) -> String {
    let Rule { kind: _, tool, pattern, agent } = rule;
    let pattern = pattern.as_ref().map(|it| format!(" \"{it}\"")).unwrap_or_default();
    let agent = agent.as_ref().map(|it| format!(" agent={it}")).unwrap_or_default();
    format!("{tool}{pattern}{agent}")
}

/// Tools that need no toolbox and that rules may name.
const DELEGATION: [&str; 7] = [
    "use_agent",
    "use_skill",
    "spawn_agent",
    "call_recipe",
    "spawn_interactive",
    "sessions_spawn",
    "delegate",
];

/// Tools of our own beside the usual ones.
const OTHERS: [&str; 5] = ["process", "passthrough", "memory_save", "memory_search", "memory_get"];

/// Why a rule can never speak, if there can be no tool of its name as far as that can be told
/// without a session: what servers bring is named after them. Such a deny must not pass for one.
pub(crate) fn of_no_tool(rule: &Rule) -> Option<String> {
    let name = rule.tool.as_str();
    let own = || USUAL.iter().chain(&OTHERS).chain(&DELEGATION).copied();
    let is_brought = name.contains(['*', '?']) || name.contains("__") || name.starts_with("mcp_");
    if is_brought || own().any(|it| it == name) {
        return None;
    }
    let near = own().map(|it| (distance(name, it), it)).min().filter(|(far, _)| *far <= 2);
    let near = near.map(|(_, it)| format!("; did you mean {it}?")).unwrap_or_default();
    Some(format!("there is no tool {name:?}{near}"))
}

/// Rules that do not do what they seem to: a deny that forbids nothing must not look like one.
/// `place` says where a rule is written, if not on the command line.
pub(crate) fn doubts(
    rules: &[Rule],
    tools: &[ToolSpec],
    place: impl Fn(&Rule) -> Option<String>,
) -> Vec<String> {
    let said = |rule: &Rule| match place(rule) {
        Some(place) => format!("{place}: {}", rule.kind.word()),
        None => format!("--{}", rule.kind.word()),
    };
    rules.iter().filter_map(|rule| doubt(rule, tools, &said(rule))).collect()
}

fn doubt(rule: &Rule, tools: &[ToolSpec], flag: &str) -> Option<String> {
    let name = &rule.tool;
    if name.contains(['*', '?']) || DELEGATION.contains(&name.as_str()) {
        return None;
    }
    let Some(tool) = tools.iter().find(|tool| tool.name == *name) else {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        return Some(format!(
            "{flag} {name}: there is no such tool; there are {}",
            known.join(", ")
        ));
    };
    let pattern = rule.pattern.as_deref()?;
    // A line as it was written is matched whole as well, if nothing in it stands for more.
    let is_line = !pattern.contains(['*', '?']) && speaks(rule, tool, pattern);
    let has_several = [";", "&&", "||", " | "].iter().any(|it| pattern.contains(it));
    if tool.class == Class::Exec && has_several && !is_line {
        return Some(format!(
            "{flag} {name} {pattern:?} matches nothing: each command of a line is matched by itself"
        ));
    }
    // Without a subject all arguments are compared, as the JSON object they are.
    if tool.subject.is_some() || pattern.starts_with(['*', '{']) {
        return None;
    }
    Some(format!(
        "{flag} {name} {pattern:?} matches nothing: patterns for {name} are compared with all its \
         arguments, as JSON; try \"*{pattern}*\""
    ))
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a number and a unit, such as 90s".to_owned())?;
    let ms = match unit {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        other => return Err(format!("{other:?} is no unit: ms, s, m or h")),
    };
    Ok(Duration::from_millis(number.saturating_mul(ms)))
}

/// Dollars as micro-dollars, read from text: text is exact and a float is not.
pub(crate) fn micro_usd(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not an amount of dollars, such as 2.50");
    let (whole, part) = text.trim_start_matches('$').split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || (whole.is_empty() && part.is_empty()) {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    Ok(whole.saturating_mul(1_000_000).saturating_add(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_typed() {
        let shown = |text: &str| match allow(text) {
            Ok(Rule { tool, pattern, agent, .. }) => format!("{tool} {pattern:?} {agent:?}"),
            Err(why) => why,
        };
        let cases = [
            ("exec", "exec None None"),
            ("exec \"cargo *\"", "exec Some(\"cargo *\") None"),
            ("exec \"echo \"a\"\" agent=b", "exec Some(\"echo \\\"a\\\"\") Some(\"b\")"),
            ("write agent=b", "write None Some(\"b\")"),
            ("", "a rule begins with a tool, such as: exec \"cargo *\""),
            ("exec \"x", "the pattern's quote is not closed"),
            ("exec cargo", "what is \"cargo\"? Patterns are quoted"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_rule_that_cannot_match_is_told() {
        let tool = |name: &str, subject: Option<&str>| ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: name.into(),
            class: locum_kernel::Class::Write,
            idempotent: false,
            subject: subject.map(str::to_owned),
            timeout_ms: None,
        };
        let exec = ToolSpec::new("exec", Class::Exec, Some("command"));
        let tools = [tool("read", Some("path")), tool("publish", None), exec];
        let cases = [
            ("read", None),
            ("read \"src/*\"", None),
            ("raed", Some("--deny raed: there is no such tool; there are read, publish, exec")),
            ("r*", None),
            ("spawn_agent", None),
            ("publish", None),
            ("publish \"*1.0*\"", None),
            ("publish \"1.0\"", Some("--deny publish \"1.0\" matches nothing")),
            ("exec \"cargo * && ls\"", Some("--deny exec \"cargo * && ls\" matches nothing")),
        ];
        for (text, expected) in cases {
            let told = doubts(&[deny(text).unwrap()], &tools, |_| None);
            match expected {
                None => assert!(told.is_empty(), "{text}: {told:?}"),
                Some(expected) => assert!(told[0].starts_with(expected), "{text}: {told:?}"),
            }
        }
        // As an allow for the project is kept.
        let kept = allow("exec \"echo a && echo b\"").unwrap();
        assert_eq!(doubts(&[kept], &tools, |_| None), [""; 0]);
        let place = |_: &Rule| Some("c.toml:3".to_owned());
        let told = doubts(&[deny("raed").unwrap()], &tools, place);
        assert!(told[0].starts_with("c.toml:3: deny raed: there is no such tool"), "{told:?}");
    }

    #[test]
    fn amounts_are_exact() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        assert!(duration("2d").is_err() && duration("").is_err());
        assert_eq!(micro_usd("2.5"), Ok(2_500_000));
        assert_eq!(micro_usd("0.000001"), Ok(1));
        assert!(micro_usd(".").is_err() && micro_usd("1e3").is_err() && micro_usd("-1").is_err());
    }
}
