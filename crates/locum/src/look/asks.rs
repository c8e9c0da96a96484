//! `locum asks`: everything that waits for an answer, over all sessions, with every way to answer.

use locum_kernel::{AskKind, Card, Session, view};
use locum_runtime::clock::{Clock as _, System, rfc3339};
use serde_json::{Value, json};

use super::sessions::is_aside;
use super::{Sight, next, show_json};
use crate::address;
use crate::complaint::Complaint;
use crate::flags::Asks;
use crate::print;
use crate::screen::cut_end;
use crate::text;

pub(super) fn run(flags: &Asks, sight: &Sight) -> Result<(), Complaint> {
    let sessions: Vec<(String, Session)> = if let Some(key) = &flags.session {
        vec![(key.clone(), sight.session(key)?)]
    } else {
        let all = sight.all()?.into_iter();
        all.filter_map(|seen| match seen.session {
            Ok(session) => Some((seen.key, session)),
            Err(_) if is_aside(&seen.key) => None,
            Err(why) => {
                let key = text::row(&seen.key, 200);
                print::note(&format!("not looked into: session {key} is damaged ({why})"));
                None
            }
        })
        .collect()
    };
    let wanted = flags.id.as_ref().map(|id| address::ask_among(&sessions, id)).transpose()?;
    let wanted = wanted.map(|((key, _), id)| (key, id));
    let open = sessions.iter().map(|(key, session)| {
        let mut cards = view(session, System.now()).asks;
        cards.retain(|card| wanted.is_none_or(|(of, id)| of == key && id == card.id));
        (key, cards)
    });
    let open: Vec<_> = open.collect();
    let cards = || open.iter().flat_map(|(key, cards)| cards.iter().map(move |card| (*key, card)));
    if flags.json {
        let all: Vec<Value> = cards().map(|(key, card)| card_json(key, card)).collect();
        show_json(&all.into());
        return Ok(());
    }
    let shown: Vec<String> = cards().map(|(key, card)| shown(key, card)).collect();
    if shown.is_empty() {
        print::line("nothing waits for an answer");
    } else {
        print::line(&shown.join("\n\n"));
    }
    Ok(())
}

pub(super) fn card_json(session: &str, card: &Card) -> Value {
    let (input, options) = match &card.kind {
        AskKind::Approval(approval) => (approval.arguments.clone(), Vec::new()),
        AskKind::Question { options, .. } => (Value::Null, options.clone()),
        AskKind::Continue { .. } | AskKind::Budget { .. } => (Value::Null, Vec::new()),
    };
    json!({
        "session": session,
        "id": card.id.to_string(),
        "agent": card.agent.to_string(),
        "path": card.path,
        "kind": card.kind.word(),
        "summary": card.summary,
        "since": rfc3339(card.at),
        "input": input,
        "options": options,
        "detail": card.kind,
        "siblings": card.siblings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "do": next::of_ask(session, card),
    })
}

fn shown(session: &str, card: &Card) -> String {
    let mut lines = vec![format!(
        "{}  {}  {}  in {}, since {} UTC",
        card.id,
        card.kind.word(),
        text::row(&card.path, 200),
        text::row(session, 100),
        text::moment(card.at),
    )];
    lines.push(text::block(&cut_end(&card.summary), "  "));
    match &card.kind {
        AskKind::Approval(approval) => {
            let arguments = serde_json::to_string_pretty(&approval.arguments).unwrap_or_default();
            let (tool, class) = (text::row(&approval.tool, 100), approval.class.word());
            lines.push(format!("  {tool} ({class}) with"));
            lines.push(text::block(&arguments, "    "));
            for (name, why) in [("reason", &approval.reason), ("because", &approval.because)] {
                if !why.is_empty() {
                    lines.push(format!("  {name}: {}", text::row(why, 500)));
                }
            }
        }
        AskKind::Question { options, .. } => {
            lines.extend(options.iter().map(|option| format!("  - {}", text::row(option, 200))));
        }
        AskKind::Continue { why } => lines.push(format!("  {}", text::row(why, 500))),
        AskKind::Budget { why, micro_usd } => {
            let least = text::money(*micro_usd, true);
            lines.push(format!("  {}; at least {least} more", text::row(why, 500)));
        }
    }
    if !card.siblings.is_empty() {
        let same: Vec<String> = card.siblings.iter().map(ToString::to_string).collect();
        lines.push(format!("  the same is asked by {}", same.join(", ")));
    }
    lines.extend(next::of_ask(session, card).into_iter().map(|way| format!("  do: {way}")));
    lines.join("\n")
}
