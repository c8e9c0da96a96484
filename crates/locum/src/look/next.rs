//! The exact command that comes next, for an agent or an ask that needs somebody.

use std::io::{self, IsTerminal as _};

use locum_kernel::{Action, AskKind, Card, Row, Scope};

use crate::screen::cut;
use crate::text::quote;

/// How a session goes on. Without a terminal the next ask would be denied for good, so there it
/// is left open.
pub(crate) fn resume(session: &str) -> String {
    let park = if io::stdin().is_terminal() { "" } else { " --approvals park" };
    format!("locum run --resume {}{park}", quote(session))
}

/// What a person can type about this agent now; none if there is nothing to do.
pub(super) fn of_agent(session: &str, row: &Row) -> Option<String> {
    let Action { tool, args, .. } = row.attention.action.as_ref()?;
    let session = quote(session);
    let ask = || args["ask"].as_str().map(quote).unwrap_or_default();
    Some(match tool.as_str() {
        // A top-up is approved with the least that helps.
        "approve" | "top_up" => format!("locum approve {} -s {session}", ask()),
        "answer" => format!("locum answer {} \"{}\" -s {session}", ask(), cut()),
        "continue" => format!("locum continue {} -s {session}", row.id),
        "agent_eval" if args["continue"] == true => {
            format!("locum continue {} -s {session}", row.id)
        }
        "agent_eval" if args["inspect"] == true => format!("locum logs {} -s {session}", row.id),
        "say" | "agent_eval" => {
            format!("locum send @{} \"{}\" -s {session}", quote(&row.path), cut())
        }
        "agent_close" => format!("locum cancel {} -s {session}", row.id),
        "get_agent" => format!("locum show {} -s {session}", row.id),
        _ => return None,
    })
}

/// Every way to answer an ask.
pub(super) fn of_ask(session: &str, card: &Card) -> Vec<String> {
    let (id, session) = (card.id, quote(session));
    match &card.kind {
        AskKind::Approval(_) => {
            let mut ways = vec![format!("locum approve {id} -s {session}")];
            for scope in [Scope::Agent, Scope::Fanout, Scope::Project] {
                let fits = scope != Scope::Fanout || !card.siblings.is_empty();
                if fits {
                    ways.push(format!("locum approve {id} --scope {} -s {session}", word(scope)));
                }
            }
            ways.push(format!("locum deny {id} -m \"why\" -s {session}"));
            ways
        }
        AskKind::Question { options, .. } if !options.is_empty() => {
            let way = |option: &String| format!("locum answer {id} {} -s {session}", quote(option));
            options.iter().map(way).collect()
        }
        AskKind::Question { .. } => vec![format!("locum answer {id} \"text\" -s {session}")],
        AskKind::Continue { .. } => vec![
            format!("locum continue {} -s {session}", card.agent),
            format!("locum cancel {} -s {session}", card.agent),
        ],
        AskKind::Budget { .. } => vec![
            format!("locum approve {id} -s {session}"),
            format!("locum deny {id} -s {session}"),
        ],
    }
}

fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Agent => "agent",
        Scope::Fanout => "fanout",
        Scope::Project => "project",
    }
}
