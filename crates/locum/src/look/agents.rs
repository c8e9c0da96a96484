//! `locum agents`: everybody in a session, those who need a person first.

use locum_kernel::{AgentId, Row, State};

use super::{Sight, agent_json, show_json};
use crate::complaint::Complaint;
use crate::flags::Agents;
use crate::print;
use crate::screen::{Ink, of_state};
use crate::text;

const HEAD: [&str; 8] = ["ID", "AGENT", "STATE", "OWN", "TREE", "TURNS", "CALLS", "ACTIVE"];

/// What people look for, in the order they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    NeedsYou,
    Working,
    WaitingForASlot,
    Finished,
}

impl Group {
    fn of(row: &Row) -> Group {
        match row.state {
            State::Approve | State::Input | State::Paused => Group::NeedsYou,
            State::Starting | State::Model | State::Tool | State::Child => Group::Working,
            State::Queued => Group::WaitingForASlot,
            State::Done | State::Failed | State::Cancelled => Group::Finished,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Group::NeedsYou => "NEEDS YOU",
            Group::Working => "WORKING",
            Group::WaitingForASlot => "WAITING FOR A SLOT",
            Group::Finished => "FINISHED",
        }
    }
}

pub(super) fn run(flags: &Agents, sight: &Sight) -> Result<(), Complaint> {
    let (key, session) = sight.find(flags.place.session.as_deref())?;
    let (view, rest) = sight.view(&session);
    let mut rows = view.agents;
    if flags.tree {
        rows = in_tree(&rows);
    } else {
        rows.sort_by_key(|row| (Group::of(row), row.id));
    }
    if flags.place.json {
        show_json(&rows.iter().map(|row| agent_json(&key, row)).collect::<Vec<_>>().into());
        return Ok(());
    }
    let shown = if flags.tree { tree(&rows) } else { grouped(&rows) };
    let rest = rest.told(&key, &session).map(|rest| format!("\n\n{rest}")).unwrap_or_default();
    print::line(&format!("session {}\n\n{shown}{rest}", text::row(&key, 200)));
    Ok(())
}

/// Rows under the titles of their groups.
pub(super) fn grouped(rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| (Group::of(row), row.id));
    let cells: Vec<Vec<String>> = rows.iter().map(|row| to_row(row, &row.path)).collect();
    let state = |at: usize| rows.get(at).map(|row| row.state);
    let table = text::painted(&head(), &cells, |at, column| ink(column, state(at)));
    let mut table = table.lines();
    let mut lines: Vec<String> = table.next().map(str::to_owned).into_iter().collect();
    let mut before = None;
    for (row, line) in rows.iter().zip(table) {
        let group = Group::of(row);
        if before.replace(group) != Some(group) {
            lines.push(group.title().to_owned());
        }
        lines.push(line.to_owned());
    }
    lines.join("\n")
}

fn tree(rows: &[Row]) -> String {
    let indented = |row: &Row| {
        let depth = usize::try_from(row.depth).unwrap_or_default();
        to_row(row, &format!("{}{}", "  ".repeat(depth), row.label))
    };
    let cells: Vec<Vec<String>> = rows.iter().map(indented).collect();
    let state = |at: usize| rows.get(at).map(|row| row.state);
    text::painted(&head(), &cells, |at, column| ink(column, state(at)))
}

/// Everybody right after their parent.
fn in_tree(rows: &[Row]) -> Vec<Row> {
    let mut todo: Vec<AgentId> = rows.iter().rev().filter_map(root).collect();
    let mut ordered = Vec::with_capacity(rows.len());
    while let Some(id) = todo.pop() {
        ordered.extend(rows.iter().find(|row| row.id == id).cloned());
        let below = rows.iter().rev().filter(|row| row.parent == Some(id));
        todo.extend(below.map(|row| row.id));
    }
    ordered
}

fn root(row: &Row) -> Option<AgentId> {
    row.parent.is_none().then_some(row.id)
}

fn head() -> Vec<&'static str> {
    HEAD.into_iter().chain(["WHAT"]).collect()
}

/// Only the word of the state has a colour.
fn ink(column: usize, state: Option<State>) -> Option<Ink> {
    state.filter(|_| HEAD.get(column) == Some(&"STATE")).map(of_state)
}

fn to_row(row: &Row, name: &str) -> Vec<String> {
    vec![
        row.id.to_string(),
        // Spaces at the beginning are the place in the tree.
        text::clean(name).replace(['\n', '\t'], " "),
        row.state.word().to_owned(),
        text::money(row.own_micro_usd, !row.unpriced),
        text::money(row.tree_micro_usd, !row.tree_unpriced),
        row.turns.to_string(),
        row.calls.to_string(),
        text::span(row.active_ms),
        text::row(&row.attention.sentence, 100),
    ]
}
