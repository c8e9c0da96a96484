//! Whom and what a person means: agents by id, label or path, asks by id, both by the beginning
//! of one. What could be two is not guessed.

use locum_kernel::{AgentId, AskId, Entry, Event, Refusal, Session, View, distance};

use crate::complaint::{Complaint, USAGE};
use crate::text;

/// The code of a name for nobody.
pub(crate) const UNKNOWN: &str = "E120";
/// The code of a name that could be two.
pub(crate) const AMBIGUOUS: &str = "E121";
/// More names than this are a list, and there is a command for lists.
const NAMES_MAX: usize = 10;

/// An agent by id (`a3`), path (`main/builder`), label, or the unique beginning of one of these.
pub(crate) fn agent(session: &Session, name: &str) -> Result<AgentId, Complaint> {
    let everybody = session.agents().iter();
    let named = everybody.map(|it| (it.id(), session.path(it.id()), it.label()));
    agent_among(session.key(), named, name)
}

/// The same in a session that is being driven, of which only the view is at hand.
pub(crate) fn agent_seen(view: &View, name: &str) -> Result<AgentId, Complaint> {
    let named = view.agents.iter().map(|row| (row.id, row.path.clone(), row.label.as_str()));
    agent_among(&view.session, named, name)
}

/// Why a name that somebody was spoken to by means nobody.
pub(crate) fn not_meant(session: &str, why: &Refusal) -> Complaint {
    let list = format!("locum agents -s {}", text::quote(session));
    if let Refusal::Ambiguous { name, could } = why {
        let kind = Kind { what: "agent", list };
        return ambiguous(&kind, name, could.iter().map(String::as_str));
    }
    let Refusal::Nobody { name, near } = why else {
        return Complaint::refused(session, why.to_string());
    };
    let cause = if near.is_empty() {
        "None has a name like it.".into()
    } else {
        format!("Near it: {}", text::clean(&near.join(", ")))
    };
    Complaint {
        code: UNKNOWN,
        what: format!("There is no agent or definition {:?}.", text::clean(name)),
        cause,
        next: format!("{list}\ndo: locum definitions"),
        exit: USAGE,
    }
}

fn agent_among<'a>(
    session: &str,
    everybody: impl Iterator<Item = (AgentId, String, &'a str)>,
    name: &str,
) -> Result<AgentId, Complaint> {
    let wanted = name.strip_prefix('@').unwrap_or(name);
    let named = everybody.map(|(it, path, label)| Named {
        it,
        shown: format!("{it} {path}"),
        names: vec![it.to_string(), path, label.to_owned()],
    });
    let list = format!("locum agents -s {}", text::quote(session));
    find(&Kind { what: "agent", list }, wanted, &named.collect::<Vec<_>>())
}

/// An open ask by id (`q12`), or the unique beginning of it.
pub(crate) fn ask(session: &Session, name: &str) -> Result<AskId, Complaint> {
    let open = session.asks().map(|ask| Named {
        it: ask.id,
        shown: format!("{} of {}", ask.id, session.path(ask.agent)),
        names: vec![ask.id.to_string()],
    });
    let list = format!("locum asks -s {}", text::quote(session.key()));
    find(&Kind { what: "open ask", list }, name, &open.collect::<Vec<_>>())
}

/// The same over several sessions, by their keys: whose ask it is, and which.
pub(crate) fn ask_among<'s>(
    sessions: &'s [(String, Session)],
    name: &str,
) -> Result<(&'s (String, Session), AskId), Complaint> {
    let asked = sessions.iter().filter(|(_, session)| session.asks().next().is_some());
    let (mut found, mut refused) = (Vec::new(), None);
    for one in asked {
        match ask(&one.1, name) {
            Ok(id) => found.push((one, id)),
            Err(complaint) => refused = Some(complaint),
        }
    }
    match found[..] {
        [one] => Ok(one),
        [] => Err(refused.unwrap_or_else(|| {
            let kind = Kind { what: "open ask", list: "locum asks".into() };
            unknown(&kind, name, std::iter::empty())
        })),
        [..] => {
            let names = found.iter().map(|((key, _), id)| format!("{id} in {key}"));
            let names: Vec<String> = names.collect();
            let kind = Kind { what: "open ask", list: "locum asks".into() };
            let mut complaint = ambiguous(&kind, name, names.iter().map(String::as_str));
            complaint.next = "say in which session, with -s KEY".into();
            Err(complaint)
        }
    }
}

/// Who comes second is told what the first one said, if this entry holds it.
pub(crate) fn answered(session: &str, ask: &str, entry: &Entry) -> Option<Complaint> {
    entry.events.iter().find_map(|event| {
        let Event::Settled { ask: id, verdict, by, .. } = event else { return None };
        (id.to_string() == ask).then(|| Complaint {
            code: "E125",
            what: format!("{ask} in {} is not open any more.", text::clean(session)),
            cause: format!("{} by {by} at {} UTC", verdict.word(), text::moment(entry.at)),
            next: "locum asks".into(),
            exit: USAGE,
        })
    })
}

/// There is no session of this name; near ones are named.
pub(crate) fn no_session(key: &str, sessions: &[String]) -> Complaint {
    let kind = Kind { what: "session", list: "locum sessions".into() };
    unknown(&kind, key, sessions.iter().map(|name| (name.as_str(), name.as_str())))
}

struct Kind {
    what: &'static str,
    /// The command that lists them.
    list: String,
}

struct Named<T> {
    it: T,
    shown: String,
    /// An id first.
    names: Vec<String>,
}

/// Whole names go before beginnings, ids before labels: an exact name is never ambiguous with a
/// longer one.
fn find<T: Copy>(kind: &Kind, wanted: &str, all: &[Named<T>]) -> Result<T, Complaint> {
    let whole = |named: &&Named<T>| named.names.iter().any(|name| name == wanted);
    let begins = |named: &&Named<T>| named.names.iter().any(|name| name.starts_with(wanted));
    if let Some(named) = all.iter().find(|named| named.names.first().is_some_and(|id| id == wanted))
    {
        return Ok(named.it);
    }
    let mut found: Vec<&Named<T>> = all.iter().filter(whole).collect();
    if found.is_empty() && !wanted.is_empty() {
        found = all.iter().filter(begins).collect();
    }
    match found[..] {
        [one] => Ok(one.it),
        [] => {
            let names = all.iter().flat_map(|named| {
                named.names.iter().map(|name| (name.as_str(), named.shown.as_str()))
            });
            Err(unknown(kind, wanted, names))
        }
        [..] => Err(ambiguous(kind, wanted, found.iter().map(|named| named.shown.as_str()))),
    }
}

fn ambiguous<'a>(kind: &Kind, wanted: &str, found: impl Iterator<Item = &'a str>) -> Complaint {
    let names: Vec<String> = found.map(text::clean).collect();
    let first = names.first().and_then(|name| name.split(' ').next()).unwrap_or_default();
    Complaint {
        code: AMBIGUOUS,
        what: format!("{:?} could be {} {}s.", text::clean(wanted), names.len(), kind.what),
        next: format!("say which, for example {first}; {} lists all", kind.list),
        cause: listed(names),
        exit: USAGE,
    }
}

fn unknown<'a>(
    kind: &Kind,
    wanted: &str,
    names: impl Iterator<Item = (&'a str, &'a str)>,
) -> Complaint {
    let mut near: Vec<(usize, String)> = names
        .map(|(name, shown)| (distance(wanted, name), text::clean(shown)))
        .filter(|(far, _)| *far <= 2.max(wanted.chars().count() / 3))
        .collect();
    near.sort();
    near.dedup_by(|one, other| one.1 == other.1);
    let cause = match near.len() {
        0 => format!("No {} has a name like it.", kind.what),
        _ => format!("Near it: {}", listed(near.into_iter().map(|(_, name)| name).collect())),
    };
    Complaint {
        code: UNKNOWN,
        what: format!("There is no {} {:?}.", kind.what, text::clean(wanted)),
        cause,
        next: kind.list.clone(),
        exit: USAGE,
    }
}

fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (distance(wanted, name), name));
    let near = near.filter(|(far, _)| *far <= 2.max(wanted.chars().count() / 3));
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<Named<u32>> {
        let one = |(it, name): (u32, &&str)| Named {
            it,
            shown: format!("a{it} main/{name}"),
            names: vec![format!("a{it}"), format!("main/{name}"), (*name).to_owned()],
        };
        (0..).zip(names).map(one).collect()
    }

    fn found(names: &[&str], wanted: &str) -> Result<u32, String> {
        let kind = Kind { what: "agent", list: "locum agents".into() };
        find(&kind, wanted, &named(names)).map_err(|complaint| {
            format!("{} {} {}", complaint.code, complaint.what, complaint.cause)
        })
    }

    #[test]
    fn names_are_found_or_told_apart() {
        let names = ["lead", "builder", "build", "bench", "a1x", "lead"];
        assert_eq!(found(&names, "a2"), Ok(2), "an id");
        assert_eq!(found(&names, "a1"), Ok(1), "a whole id before a beginning");
        assert_eq!(found(&names, "build"), Ok(2), "a whole label before a beginning");
        assert_eq!(found(&names, "main/builder"), Ok(1), "a path");
        assert_eq!(found(&names, "be"), Ok(3), "a beginning");
        let two = found(&names, "b").unwrap_err();
        assert!(two.starts_with("E121 \"b\" could be 3 agents."), "{two}");
        assert!(two.contains("a1 main/builder, a2 main/build, a3 main/bench"), "{two}");
        assert!(found(&names, "lead").unwrap_err().starts_with("E121"), "two of one label");
        let near = found(&names, "biulder").unwrap_err();
        assert!(near.starts_with("E120") && near.contains("a1 main/builder"), "{near}");
        assert!(found(&names, "zzzzzz").unwrap_err().contains("No agent"), "nothing near");
        assert!(found(&names, "").is_err(), "nothing means nobody");
    }
}
