//! Whom `@name` means: the one place that decides it, for every way a message comes in. Whoever
//! lives goes before what could be started, whole names before beginnings, and what could be two
//! is not guessed.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::limits::{DEDUPE_MS, MENTIONS_BYTES_MAX, MENTIONS_MAX, NAMES_NEAR_MAX};
use crate::step::is_internal;
use crate::{
    Agent, AgentId, InputId, Link, Message, Mode, Refusal, Session, Time, To, Waiting, dedupe_key,
};

/// Whether there is a definition of a name, as far as whoever reads files can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Yes,
    /// There is, and why it cannot be started.
    Not(String),
    /// There is none; these are like it.
    No(Vec<String>),
}

/// Says in `to` whom a message is for, if it names somebody. A message received before is left as
/// it is: whoever takes it knows it again.
pub fn meant(
    session: &Session,
    message: Message,
    at: Time,
    defined: impl FnOnce(&str) -> Known,
) -> Result<Message, Refusal> {
    let (name, text, is_said) = match &message.to {
        To::Floor => match called(session, &message.text) {
            Some((name, text)) => (name.to_string(), text.to_string(), true),
            None => return Ok(message),
        },
        To::Name(name) => (name.clone(), message.text.clone(), false),
        To::Main | To::Agent(_) => return Ok(message),
    };
    if session.seen_before(&message, at).is_some() {
        return Ok(message);
    }
    let one = |found: Vec<AgentId>| match found[..] {
        [] => Ok(None),
        [id] => Ok(Some(To::Agent(id))),
        [..] => {
            let could = found.iter().take(NAMES_NEAR_MAX).map(|id| shown(session, *id)).collect();
            Err(Refusal::Ambiguous { name: name.clone(), could })
        }
    };
    let to = match one(session.live_named(&name))? {
        Some(to) => to,
        None => match defined(&name) {
            Known::Yes => To::Name(name),
            Known::Not(why) => return Err(Refusal::NotBorn { why }),
            Known::No(_) if session.has_definition(&name) => To::Name(name),
            Known::No(near) => match one(live_like(session, &name))? {
                Some(to) => to,
                // `@types/node` begins a sentence about something else.
                None if is_said && name.contains('/') => return Ok(message),
                None => return Err(nobody(session, name, near)),
            },
        },
    };
    Ok(Message { text, to, ..message })
}

/// The name a text begins with, and the words for them. One with spaces stands in quotes.
#[must_use]
pub fn addressed(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix('@')?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let (name, after) = quoted.split_once('"')?;
        let is_name = !name.trim().is_empty() && !name.contains(char::is_control);
        return is_name.then(|| (name.trim(), after.trim_start_matches([':', ',']).trim()));
    }
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches([':', ',', ';', '.', '!', '?']);
    let is_name = name.starts_with(|sign: char| sign.is_alphanumeric() || sign == '_')
        && name.chars().all(|sign| is_in_name(sign) || matches!(sign, '/' | ':'));
    is_name.then(|| (name, rest[end..].trim()))
}

/// The same where those who live may have names of several words.
fn called<'t>(session: &Session, text: &'t str) -> Option<(&'t str, &'t str)> {
    let rest = text.trim_start().strip_prefix('@')?;
    let live = session.agents.iter().filter(|agent| !agent.has_ended());
    let spaced = live
        .filter(|agent| agent.label.contains(char::is_whitespace))
        .flat_map(|agent| [agent.label.clone(), session.path(agent.id)])
        .filter_map(|name| {
            let after = rest.strip_prefix(&*name)?;
            let ends = after.is_empty() || after.starts_with(|sign: char| !is_in_name(sign));
            ends.then(|| (&rest[..name.len()], after.trim_start_matches([':', ',']).trim()))
        });
    spaced.max_by_key(|(name, _)| name.len()).or_else(|| addressed(text))
}

fn is_in_name(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.')
}

/// Whether two names are one but for large letters and for what stands between their words: a name
/// with spaces can be typed with hyphens.
#[must_use]
pub fn is_same_name(one: &str, other: &str) -> bool {
    fn folded(name: &str) -> impl Iterator<Item = char> {
        let is_gap = |sign: char| sign.is_whitespace() || matches!(sign, '-' | '_');
        let letters = name.trim().chars().map(move |sign| if is_gap(sign) { '-' } else { sign });
        letters.flat_map(char::to_lowercase)
    }
    folded(one).eq(folded(other))
}

/// A name as it is written after `@`.
#[must_use]
pub fn at_name(name: &str) -> String {
    let is_plain = addressed(&format!("@{name}")).is_some_and(|(said, _)| said == name);
    if is_plain { format!("@{name}") } else { format!("@\"{name}\"") }
}

impl Session {
    /// The input a message became when its channel delivered it before.
    pub(crate) fn seen_before(&self, message: &Message, at: Time) -> Option<InputId> {
        let (input, then) = self.seen.ids.get(&dedupe_key(message)?)?;
        (at.since(*then) <= DEDUPE_MS).then_some(*input)
    }

    /// Who lives and has this id, else everyone who lives with this path or label, else whoever
    /// a person started by this name: they may be the second, with a number in their label.
    pub(crate) fn live_named(&self, name: &str) -> Vec<AgentId> {
        let live = || self.agents.iter().filter(|agent| !agent.has_ended());
        if let Some(agent) = live().find(|agent| agent.id.to_string() == name) {
            return Vec::from([agent.id]);
        }
        let named = |agent: &&Agent| {
            agent.label == name || (name.contains('/') && self.path(agent.id) == name)
        };
        let found: Vec<AgentId> = live().filter(named).map(|agent| agent.id).collect();
        if !found.is_empty() {
            return found;
        }
        // Only a name of several words has another spelling.
        let spaced = |agent: &&Agent| {
            agent.label.contains(char::is_whitespace) && is_same_name(&agent.label, name)
        };
        let found: Vec<AgentId> = live().filter(spaced).map(|agent| agent.id).collect();
        if !found.is_empty() {
            return found;
        }
        let summoned = |agent: &&Agent| {
            let by_name = matches!(agent.parent, Some((_, Link::Note)));
            let is_so_named = agent.name == name
                || agent.name.contains(char::is_whitespace) && is_same_name(&agent.name, name);
            is_so_named && by_name && agent.home == Mode::Floor
        };
        live().filter(summoned).map(|agent| agent.id).collect()
    }

    /// A definition the session itself knows by this name; main is never started again.
    fn has_definition(&self, name: &str) -> bool {
        let main = self.agents.first().is_some_and(|main| main.name == name);
        !main && self.world.catalogue.get(name).is_some_and(|digest| !is_internal(digest))
    }

    /// Whether people can ask for a name with `@`, as far as the session itself knows.
    pub(crate) fn is_for_people(&self, name: &str) -> bool {
        self.world.offers.contains_key(name)
            || self.world.catalogue.get(name).is_none_or(|digest| !is_internal(digest))
    }

    /// Whether a definition must be looked for so that what waits can be heard: nobody of that
    /// name lives, and nobody asked for them before. Whoever comes may not listen yet, or end
    /// before; then this is true again of the next.
    pub(crate) fn wants_summons(&self, waiting: &Waiting) -> bool {
        let To::Name(name) = &waiting.message.to else { return false };
        let same = |it: &&Waiting| matches!(&it.message.to, To::Name(other) if other == name);
        let is_first = self.queue.iter().find(same).is_some_and(|it| it.input == waiting.input);
        is_first && self.live_named(name).len() != 1
    }
}

/// Those who live and whose path or label begins so; failing that, who had the name and ended.
fn live_like(session: &Session, name: &str) -> Vec<AgentId> {
    let names = |id: AgentId, label: &str| [label.to_string(), session.path(id), id.to_string()];
    let live = session.agents.iter().filter(|agent| !agent.has_ended());
    let begins = live.filter(|agent| {
        !name.is_empty() && names(agent.id, &agent.label).iter().any(|it| it.starts_with(name))
    });
    let found: Vec<AgentId> = begins.map(|agent| agent.id).collect();
    if !found.is_empty() {
        return found;
    }
    let mut ended = session.agents.iter().rev().filter(|agent| agent.has_ended());
    let last = ended.find(|it| names(it.id, &it.label).iter().any(|it| it == name));
    last.map(|agent| agent.id).into_iter().collect()
}

fn shown(session: &Session, id: AgentId) -> String {
    format!("{id} {}", session.path(id))
}

fn nobody(session: &Session, name: String, definitions: Vec<String>) -> Refusal {
    let far = 2.max(name.chars().count() / 3);
    let live = session.agents.iter().filter(|agent| !agent.has_ended());
    let agents = live
        .filter(|agent| distance(&name, &agent.label) <= far)
        .map(|agent| format!("{} (agent)", shown(session, agent.id)));
    let definitions = definitions.into_iter().map(|it| format!("{it} (definition)"));
    let own = session.world.catalogue.keys().filter(|it| session.has_definition(it));
    let own = own.filter(|it| distance(&name, it) <= far).map(|it| format!("{it} (definition)"));
    let mut near: Vec<String> = Vec::new();
    for it in agents.take(NAMES_NEAR_MAX / 2).chain(definitions).chain(own) {
        if near.len() < NAMES_NEAR_MAX && !near.contains(&it) {
            near.push(it);
        }
    }
    Refusal::Nobody { name, near }
}

/// How many signs must be changed, added or left out to get from one name to the other. Names are
/// compared by how they begin: no name is that long.
#[must_use]
pub fn distance(one: &str, other: &str) -> usize {
    const COMPARED: usize = 64;
    let other: Vec<char> = other.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (done, sign) in one.chars().take(COMPARED).enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (at, its) in other.iter().enumerate() {
            let changed = diagonal + usize::from(sign != *its);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// The names that a text mentions with `@`: no addresses, no packages, nothing in code.
pub(crate) fn mentions(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut fence: Option<&str> = None;
    let text = &text[..text.floor_char_boundary(MENTIONS_BYTES_MAX)];
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, None) => mentions_in(line, &mut found),
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        if found.len() >= MENTIONS_MAX {
            break;
        }
    }
    found
}

fn mentions_in<'t>(line: &'t str, found: &mut BTreeSet<&'t str>) {
    let mut before: Option<char> = None;
    let mut rest = line;
    while let Some(sign) = rest.chars().next() {
        if found.len() >= MENTIONS_MAX {
            return;
        }
        let is_apart = before.is_none_or(|it| it.is_whitespace() || "([{\"'*_,;:".contains(it));
        before = Some(sign);
        if let Some(after) = after_code(rest) {
            rest = after;
            continue;
        }
        rest = &rest[sign.len_utf8()..];
        if sign != '@' || !is_apart {
            continue;
        }
        let end = rest.find(|sign| !is_in_name(sign)).unwrap_or(rest.len());
        let is_longer = rest[end..].starts_with(['/', '@', '\\']);
        let name = rest[..end].trim_end_matches(['.', '-', '_']);
        if !name.is_empty() && !is_longer {
            found.insert(name);
        }
    }
}

/// What comes after the code that a text begins with, or after backticks that nothing closes.
fn after_code(text: &str) -> Option<&str> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 {
        return None;
    }
    let inside = &text[ticks..];
    let mut at = 0;
    while let Some(next) = inside[at..].find('`').map(|next| at + next) {
        let run = inside.len() - next - inside[next..].trim_start_matches('`').len();
        at = next + run;
        if run == ticks {
            return Some(&inside[at..]);
        }
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_begins_with_a_name_or_does_not() {
        let cases = [
            ("@poet rain", Some(("poet", "rain"))),
            ("  @poet:  rain ", Some(("poet", "rain"))),
            ("@poet,\nrain\nand snow", Some(("poet", "rain\nand snow"))),
            ("@poet", Some(("poet", ""))),
            ("@main/poet rain", Some(("main/poet", "rain"))),
            ("@plugin:poet rain", Some(("plugin:poet", "rain"))),
            ("@\"my poet\" rain", Some(("my poet", "rain"))),
            ("@\"my poet\": rain", Some(("my poet", "rain"))),
            ("@\"\" rain", None),
            ("@\"my poet rain", None),
            ("@ poet", None),
            ("poet@home rain", None),
            ("@a(b) rain", None),
            ("@ann@example.com hello", None),
            ("@", None),
        ];
        for (text, expected) in cases {
            assert_eq!(addressed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_mentioned_and_what_is_not() {
        let cases: &[(&str, &[&str])] = &[
            ("please let @reviewer look", &["reviewer"]),
            ("ask (@a), \"@b\" and @c.", &["a", "b", "c"]),
            ("@a-b's and @c_d: now", &["a-b", "c_d"]),
            ("mail ann@reviewer.com", &[]),
            ("use @types/node", &[]),
            ("run `@reviewer` and ``x @b``", &[]),
            ("a lone ` and @reviewer", &["reviewer"]),
            ("``a ` @c `` and `` @b", &["b"]),
            ("```\n@reviewer\n```\n@b", &["b"]),
            ("~~~ts\n@reviewer\n```\n@c\n~~~\n@b", &["b"]),
            ("```\n@never closed", &[]),
            ("@@a x@b @", &[]),
            ("@ä and @ü", &["ä", "ü"]),
        ];
        for (text, expected) in cases {
            assert_eq!(mentions(text).into_iter().collect::<Vec<_>>(), *expected, "{text}");
        }
        let many: Vec<String> = (0..1_000).map(|it| format!("@n{it}")).collect();
        assert_eq!(mentions(&many.join(" ")).len(), MENTIONS_MAX);
    }

    #[test]
    fn names_of_several_words() {
        let cases = [
            ("my agent", "my-agent", true),
            ("My Agent", "my_agent", true),
            ("a_b-c", "a-b_c", true),
            ("my agent", "myagent", false),
            ("my agent", "my-agents", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(is_same_name(one, other), expected, "{one} {other}");
        }
        let cases = [("poet", "@poet"), ("my poet", "@\"my poet\""), ("a(b)", "@\"a(b)\"")];
        for (name, expected) in cases {
            assert_eq!(at_name(name), expected);
        }
    }

    #[test]
    fn names_are_so_far_apart() {
        let cases = [("", "", 0), ("poet", "poet", 0), ("peot", "poet", 2), ("poet", "", 4)];
        for (one, other, expected) in cases {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
