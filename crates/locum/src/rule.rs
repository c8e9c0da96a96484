//! Small words of the command line: rules, durations, dollars.

use std::time::Duration;

use locum_kernel::{Rule, RuleKind};

pub(crate) fn allow(text: &str) -> Result<Rule, String> {
    rule(RuleKind::Allow, text)
}

pub(crate) fn deny(text: &str) -> Result<Rule, String> {
    rule(RuleKind::Deny, text)
}

/// `TOOL ["PATTERN"] [agent=NAME]`
fn rule(kind: RuleKind, text: &str) -> Result<Rule, String> {
    let text = text.trim();
    let (tool, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if tool.is_empty() {
        return Err("a rule begins with a tool, such as: exec \"cargo *\"".into());
    }
    let mut rest = rest.trim();
    let mut rule = Rule { kind, tool: tool.to_owned(), pattern: None, agent: None };
    if let Some(quoted) = rest.strip_prefix('"') {
        // Up to the last quote: patterns may hold quotes themselves.
        let (pattern, after) =
            quoted.rsplit_once('"').ok_or("the pattern's quote is not closed")?;
        rule.pattern = Some(pattern.to_owned());
        rest = after.trim();
    }
    if let Some(name) = rest.strip_prefix("agent=") {
        rule.agent = Some(name.to_owned());
        rest = "";
    }
    if rest.is_empty() { Ok(rule) } else { Err(format!("what is {rest:?}? Patterns are quoted")) }
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
    fn amounts_are_exact() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        assert!(duration("2d").is_err() && duration("").is_err());
        assert_eq!(micro_usd("2.5"), Ok(2_500_000));
        assert_eq!(micro_usd("0.000001"), Ok(1));
        assert!(micro_usd(".").is_err() && micro_usd("1e3").is_err() && micro_usd("-1").is_err());
    }
}
