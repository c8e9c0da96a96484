//! How a model is set for an agent, in the words of whoever has such a setting. What a model is
//! known to refuse is left out: a request that is answered without it is better than none.
//!
//! Which models take what is decided by their names, and a name nobody knows is taken for a new
//! one of its family.

use locum_kernel::{Body, Reply, Tuning};
use serde_json::{Value, json};

use super::words;
use crate::provider::Asked;

/// How hard a model thinks: the three words that all providers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    pub(crate) fn of(tuning: &Tuning) -> Option<Effort> {
        match tuning.effort.as_deref().map(str::trim) {
            Some("low") => Some(Effort::Low),
            Some("medium") => Some(Effort::Medium),
            Some("high") => Some(Effort::High),
            Some(_) | None => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// In tokens, where thinking is counted so.
    fn tokens(self) -> u32 {
        match self {
            Effort::Low => 1_024,
            Effort::Medium => 8_192,
            Effort::High => 24_576,
        }
    }
}

/// As providers write it; no more than `most`.
fn temperature(asked: &Asked, most: u32) -> Option<Value> {
    let milli = asked.request.tuning.temperature_milli?.min(most);
    Some(json!(f64::from(milli) / 1_000.0))
}

fn effort(asked: &Asked) -> Option<Effort> {
    Effort::of(&asked.request.tuning)
}

/// The name itself, without whoever passes it on.
fn name(asked: &Asked) -> String {
    let model = words::model(asked);
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}

/// For a Messages request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Messages {
    pub(crate) temperature: Option<Value>,
    pub(crate) thinking: Option<Value>,
    /// A part of `output_config`.
    pub(crate) effort: Option<&'static str>,
}

/// How a model of this wire thinks when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinks {
    Not,
    /// As many tokens as it is given.
    Budget,
    /// It has an effort, but thinks only within a budget.
    Effort,
    Adaptively,
}

pub(crate) fn messages(asked: &Asked, max_tokens: u32) -> Messages {
    let name = name(asked);
    let version = claude(&name);
    let mut set = Messages::default();
    if let Some(effort) = effort(asked) {
        match thinks(&name, version) {
            Thinks::Not => {}
            Thinks::Budget => {
                // It is part of the answer, which needs room besides; less is refused.
                let tokens = effort.tokens().min(max_tokens / 4 * 3);
                if tokens >= 1_024 && !is_under_way_unthought(asked) {
                    set.thinking = Some(json!({ "type": "enabled", "budget_tokens": tokens }));
                }
            }
            Thinks::Effort => set.effort = Some(effort.word()),
            Thinks::Adaptively => {
                set.thinking = Some(json!({ "type": "adaptive" }));
                set.effort = Some(effort.word());
            }
        }
    }
    // From 4.7 on it is refused; before, while they think.
    let takes = !name.starts_with("claude") || version.is_some_and(|it| it <= (4, 6));
    if takes && set.thinking.is_none() {
        set.temperature = temperature(asked, 1_000);
    }
    set
}

fn thinks(name: &str, version: Option<(u32, u32)>) -> Thinks {
    match version {
        _ if !name.starts_with("claude") => Thinks::Not,
        Some(it) if it < (3, 7) => Thinks::Not,
        Some((4, 5)) if name.contains("opus") => Thinks::Effort,
        Some(it) if it <= (4, 5) => Thinks::Budget,
        Some(_) | None => Thinks::Adaptively,
    }
}

/// Calls of a turn that began without thinking: with a budget, the provider refuses to think from
/// the middle of it on.
fn is_under_way_unthought(asked: &Asked) -> bool {
    let replies = asked.request.lines.iter().rev().find_map(|line| match &line.body {
        Body::Replied(reply) => Some(reply),
        Body::Told(_) | Body::Results(_) | Body::Summary(_) => None,
    });
    let thought = |reply: &Reply| {
        let blocks = reply.reasoning.iter().filter_map(Value::as_array).flatten();
        let kinds = ["thinking", "redacted_thinking"];
        blocks.into_iter().any(|it| it["type"].as_str().is_some_and(|kind| kinds.contains(&kind)))
    };
    replies.is_some_and(|reply| !reply.calls.is_empty() && !thought(reply))
}

/// `claude-opus-4-6`, `claude-sonnet-4-20250514`, `claude-3-7-sonnet-latest`.
fn claude(name: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix("claude-")?;
    let words = rest.split(['-', '.', '@']).map(|word| word.parse().ok().filter(|it| *it < 100));
    let mut words = words.skip_while(Option::is_none);
    let major = words.next()??;
    Some((major, words.next().flatten().unwrap_or(0)))
}

/// Models of one provider that think, on both of its wires: they refuse a temperature, and the
/// others an effort. All names that are not this provider's take what they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Reasons,
    Speaks,
    Unknown,
}

fn family(name: &str) -> Family {
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let generation = |prefix: &str| {
        let figures =
            name.strip_prefix(prefix)?.split(|sign: char| !sign.is_ascii_digit()).next()?;
        figures.parse::<u32>().ok()
    };
    match (generation("gpt-"), generation("o")) {
        (Some(5..), _) if !name.contains("-chat") => Family::Reasons,
        (Some(_), _) => Family::Speaks,
        (None, Some(_)) => Family::Reasons,
        (None, None) if name.starts_with("codex") => Family::Reasons,
        (None, None) if name.starts_with("chatgpt-") => Family::Speaks,
        (None, None) => Family::Unknown,
    }
}

/// For a Responses or a Chat request: a temperature and an effort.
pub(crate) fn plain(asked: &Asked) -> (Option<Value>, Option<&'static str>) {
    let temperature = temperature(asked, 2_000);
    let effort = effort(asked).map(Effort::word);
    let name = name(asked);
    match family(&name) {
        Family::Reasons => (None, effort),
        Family::Speaks => (temperature, None),
        // The same models, passed on by somebody else.
        Family::Unknown if claude(&name).is_some_and(|it| it > (4, 6)) => (None, effort),
        Family::Unknown => (temperature, effort),
    }
}

/// For a request to generate content: the temperature, and the name and amount of thinking.
pub(crate) fn generation(
    asked: &Asked,
    version: (u32, u32),
) -> (Option<Value>, Option<(&'static str, Value)>) {
    let amount = effort(asked).and_then(|effort| match version {
        // The first of its kind knows two levels, of which it takes the higher by itself.
        (3, 0) if name(asked).contains("-pro") && effort == Effort::Medium => None,
        (3.., _) => Some(("thinkingLevel", json!(effort.word()))),
        (2, 5) => Some(("thinkingBudget", json!(effort.tokens()))),
        _ => None,
    });
    (temperature(asked, 2_000), amount)
}

/// For a server that runs models itself: those that do not think refuse to be told how hard, and
/// of those that do, one family has levels.
pub(crate) fn local(asked: &Asked) -> (Option<Value>, Option<&'static str>) {
    let effort = effort(asked).filter(|_| name(asked).starts_with("gpt-oss"));
    (temperature(asked, 2_000), effort.map(Effort::word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_old_a_model_is() {
        let cases = [
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-opus-4-5-20251101", Some((4, 5))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-4.7-opus", Some((4, 7))),
            ("claude-sonnet-5", Some((5, 0))),
            ("claude-mythos-preview", None),
            ("other-4-6", None),
        ];
        for (name, expected) in cases {
            assert_eq!(claude(name), expected, "{name}");
        }
    }

    #[test]
    fn names_say_whether_a_model_reasons() {
        let cases = [
            ("gpt-4o", Family::Speaks),
            ("gpt-4.1-mini", Family::Speaks),
            ("chatgpt-4o-latest", Family::Speaks),
            ("gpt-5", Family::Reasons),
            ("gpt-5.4-mini", Family::Reasons),
            ("gpt-5-chat-latest", Family::Speaks),
            ("gpt-12", Family::Reasons),
            ("ft:gpt-4o:mine", Family::Speaks),
            ("o1", Family::Reasons),
            ("o4-mini", Family::Reasons),
            ("codex-mini-latest", Family::Reasons),
            ("gpt-oss-120b", Family::Unknown),
            ("olmo-3", Family::Unknown),
            ("llama-4", Family::Unknown),
        ];
        for (name, expected) in cases {
            assert_eq!(family(name), expected, "{name}");
        }
    }
}
