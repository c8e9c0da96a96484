//! `locum search`: a text in what people and agents said, what tools returned and what agents
//! concluded, over all sessions, the newest first.

use locum_kernel::{AgentId, Event, Seq, Session, Source, Time};
use locum_runtime::clock::rfc3339;
use serde_json::{Value, json};

use super::{Sight, numbered, show_json};
use crate::complaint::Complaint;
use crate::flags::Search;
use crate::print;
use crate::screen::cut;
use crate::text;

/// So much around a find is enough to know it again.
const CONTEXT: usize = 60;

struct Find {
    session: String,
    seq: Seq,
    at: Time,
    path: String,
    kind: &'static str,
    headline: String,
}

pub(super) fn run(flags: &Search, sight: &Sight) -> Result<(), Complaint> {
    let wanted = flags.text.to_lowercase();
    if wanted.trim().is_empty() {
        let complaint = Complaint::usage("there is no text to search for");
        return Err(Complaint { next: "locum search --help".into(), ..complaint });
    }
    let mut finds: Vec<Find> = Vec::new();
    for key in sight.keys(None)? {
        let walked = sight.walk(&key, |session, entry| {
            for (seq, event) in numbered(entry) {
                let Some((agent, kind, said)) = words(event) else { continue };
                let Some(headline) = around(said, &wanted) else { continue };
                let path = path(session, agent);
                finds.push(Find { session: key.clone(), seq, at: entry.at, path, kind, headline });
            }
        });
        // One that is damaged further in is no reason not to search the others.
        if let Err(complaint) = walked {
            print::note(&format!("not searched: {}", complaint.what));
        }
    }
    finds.sort_by_key(|find| std::cmp::Reverse((find.at, find.seq)));
    let more = finds.len().saturating_sub(flags.limit);
    finds.truncate(flags.limit);
    if flags.json {
        show_json(&finds.iter().map(to_json).collect::<Vec<_>>().into());
    } else if finds.is_empty() {
        print::line("nothing found");
    } else {
        let head = ["SESSION", "EVENT", "WHEN (UTC)", "AGENT", "", "TEXT"];
        print::line(&text::table(&head, &finds.iter().map(to_row).collect::<Vec<_>>()));
    }
    if more > 0 {
        print::note(&format!("{more} more; do: locum search … --limit {}", flags.limit + more));
    }
    Ok(())
}

/// What was said, once: a message is counted where it came in, not where it was heard, and words
/// where the model replied them, not where they were passed on.
fn words(event: &Event) -> Option<(Option<AgentId>, &'static str, &str)> {
    if let Event::Enqueued { message } | Event::Merged { message, .. } = event {
        return Some((None, "asked", &message.text));
    }
    if let Event::Edited { text, .. } = event {
        return Some((None, "asked", text));
    }
    if let Event::Heard { agent, note } = event {
        let is_new = matches!(note.source, Source::Brief | Source::Parent);
        return is_new.then_some((Some(*agent), "told", &note.text));
    }
    if let Event::Replied { agent, reply } = event {
        return Some((Some(*agent), "said", &reply.text));
    }
    if let Event::Returned { agent, output, .. } = event {
        return Some((Some(*agent), "returned", &output.text));
    }
    if let Event::Ended { agent, result, .. } = event {
        return Some((Some(*agent), "result", result));
    }
    None
}

fn path(session: &Session, agent: Option<AgentId>) -> String {
    agent.map_or_else(|| "(person)".to_owned(), |id| session.path(id))
}

/// The find with what stands around it, on one line. Compared sign by sign: in lower case a text
/// may be longer than it was.
fn around(said: &str, wanted: &str) -> Option<String> {
    let mut low = String::with_capacity(said.len());
    let mut starts = Vec::with_capacity(said.len());
    for (at, sign) in said.char_indices() {
        for sign in sign.to_lowercase() {
            starts.extend(std::iter::repeat_n(at, sign.len_utf8()));
            low.push(sign);
        }
    }
    let found = low.find(wanted)?;
    let from = starts[found];
    let to = starts.get(found + wanted.len()).copied().unwrap_or(said.len());
    let from = said.floor_char_boundary(from.saturating_sub(CONTEXT));
    let to = said.ceil_char_boundary(to.saturating_add(CONTEXT).min(said.len()));
    let before = if from > 0 { cut() } else { "" };
    let after = if to < said.len() { cut() } else { "" };
    Some(format!("{before}{}{after}", text::row(&said[from..to], usize::MAX)))
}

fn to_json(find: &Find) -> Value {
    json!({
        "session": find.session,
        "seq": find.seq.0,
        "at": rfc3339(find.at),
        "path": find.path,
        "kind": find.kind,
        "headline": find.headline,
    })
}

fn to_row(find: &Find) -> Vec<String> {
    vec![
        text::row(&find.session, 60),
        find.seq.0.to_string(),
        text::moment(find.at),
        text::row(&find.path, 60),
        find.kind.to_owned(),
        find.headline.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_find_is_shown_with_what_is_around_it() {
        assert_eq!(around("Found THREE apis", "three").as_deref(), Some("Found THREE apis"));
        assert_eq!(around("İstanbul İSTANBUL", "bul i").as_deref(), Some("İstanbul İSTANBUL"));
        assert_eq!(around("nothing", "three"), None);
        let long = format!("{}needle{}", "é".repeat(200), "ü".repeat(200));
        let shown = around(&long, "needle").unwrap();
        assert!(shown.starts_with("…é") && shown.ends_with("ü…"), "{shown}");
        assert!(shown.contains("needle") && shown.len() < 200, "{shown}");
    }
}
