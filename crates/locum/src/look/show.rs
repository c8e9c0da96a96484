//! `locum show`: one agent in full, folded out of the journal.

use locum_kernel::{AgentId, Class, Deed, Event, Receipt, Rights, Row, Source, Spawn, Why};
use locum_tools::{Kept, kept};
use serde_json::{Value, json};

use super::{Sight, agent_json, next, show_json};
use crate::address;
use crate::complaint::Complaint;
use crate::flags::Show;
use crate::print;
use crate::text;

/// What only the journal still knows of an agent.
#[derive(Default)]
struct Past {
    spawn: Option<Box<Spawn>>,
    brief: Option<String>,
    result: Option<String>,
    receipt: Option<Box<Receipt>>,
    /// The copy of the repository that it has, or has left its work in.
    copy: Option<Kept>,
}

pub(super) fn run(flags: &Show, sight: &Sight) -> Result<(), Complaint> {
    let (key, session) = sight.find(flags.place.session.as_deref())?;
    let id = address::agent(&session, &flags.agent)?;
    let mut past = Past { copy: kept(&sight.folder, &key, id), ..Past::default() };
    let session = sight.walk(&key, |_, entry| {
        entry.events.iter().for_each(|event| past.learn(id, event));
    })?;
    let (view, rest) = sight.view(&session);
    let rows = view.agents;
    let Some(row) = rows.iter().find(|row| row.id == id) else { return Ok(()) };
    let children: Vec<&Row> = rows.iter().filter(|row| row.parent == Some(id)).collect();
    if flags.place.json {
        show_json(&to_json(&key, row, &past, &children));
    } else {
        print::line(&to_text(&key, row, &past, &children));
        if let Some(rest) = rest.told(&key, &session).filter(|_| super::is_under_way(row.state)) {
            print::line(&rest);
        }
    }
    Ok(())
}

impl Past {
    fn learn(&mut self, id: AgentId, event: &Event) {
        if let Event::Spawned(spawn) = event
            && spawn.agent == id
        {
            self.spawn = Some(spawn.clone());
        } else if let Event::Heard { agent, note } = event
            && *agent == id
        {
            // Main has no brief: what it was first asked is the next best.
            let first = note.source == Source::Brief || self.brief.is_none();
            self.brief = if first { Some(note.text.clone()) } else { self.brief.take() };
        } else if let Event::Ended { agent, result, receipt } = event
            && *agent == id
        {
            (self.result, self.receipt) = (Some(result.clone()), Some(receipt.clone()));
        }
    }
}

fn to_json(key: &str, row: &Row, past: &Past, children: &[&Row]) -> Value {
    let mut value = agent_json(key, row);
    value["model"] = json!(past.spawn.as_ref().map(|spawn| &spawn.model));
    value["ceiling"] = json!(past.spawn.as_ref().map(|spawn| &spawn.ceiling));
    value["uses"] = json!(past.spawn.as_ref().map(|spawn| &spawn.uses));
    value["limits"] = json!(past.spawn.as_ref().map(|spawn| &spawn.limits));
    value["brief"] = json!(past.brief);
    value["result"] = json!(past.result.as_ref().or(row.result.as_ref()));
    value["receipt"] = json!(past.receipt);
    if let Some(Kept { folder, branch }) = &past.copy {
        value["copy"] = json!({ "folder": folder, "branch": branch });
    }
    let child =
        |row: &&Row| json!({ "id": row.id.to_string(), "path": row.path, "state": row.state });
    value["children"] = children.iter().map(child).collect();
    value
}

fn to_text(key: &str, row: &Row, past: &Past, children: &[&Row]) -> String {
    let mut lines = Vec::new();
    let mut say = |name: &str, what: String| lines.push(format!("{name:<11}{what}"));
    say("agent", format!("{} {}", row.id, text::row(&row.path, 300)));
    say("session", text::row(key, 200));
    let definition = text::row(&row.definition, 200);
    let look = format!("locum definitions {}", text::quote(&definition));
    // The journal has what a definition said, not where it stands.
    let is_found = past.spawn.as_ref().is_some_and(|spawn| spawn.parent.is_some());
    say(
        "definition",
        if is_found { format!("{definition} (its file: {look})") } else { definition },
    );
    if let Some(spawn) = &past.spawn {
        say("may use", may(&spawn.uses));
        if spawn.ceiling != spawn.uses {
            say("hands on", may(&spawn.ceiling));
        }
        say("model", text::row(&spawn.model, 200));
    }
    say("mode", format!("{:?}", row.mode).to_lowercase());
    say("state", row.state.word().to_owned());
    say("what", text::row(&row.attention.sentence, 500));
    if let Some(next) = next::of_agent(key, row).filter(|_| row.result.is_none()) {
        say("do", next);
    }
    say("spent", spent(row, past));
    let tree = text::money(row.tree_micro_usd, !row.tree_unpriced);
    say("with below", tree);
    if let Some(Kept { folder, branch }) = &past.copy {
        let folder = text::row(&folder.to_string_lossy(), 300);
        say("works in", format!("{folder} on the branch {}", text::row(branch, 200)));
    }
    for child in children {
        let path = text::row(&child.path, 300);
        say("child", format!("{} {path} {}", child.id, child.state.word()));
    }
    let result = past.result.as_ref().or(row.result.as_ref());
    for (name, what) in [("brief", &past.brief.as_ref()), ("result", &result)] {
        if let Some(what) = what {
            lines.push(format!("{name}\n{}", text::block(what, "  ")));
        }
    }
    if let Some(receipt) = &past.receipt {
        lines.push(format!("receipt\n{}", shown(receipt)));
    }
    lines.join("\n")
}

/// The most an agent may do, whatever rules and people allow.
fn may(rights: &Rights) -> String {
    let mut classes: Vec<String> =
        rights.classes.iter().map(|class| format!("{class:?}").to_lowercase()).collect();
    if rights.classes.len() == Class::ALL.len() {
        classes = vec!["every kind of call".to_owned()];
    } else if classes.is_empty() {
        classes = vec!["nothing".to_owned()];
    }
    let tools = rights.tools.as_ref().map(|tools| {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        format!(", of the tools {}", tools.join(", "))
    });
    text::row(&format!("{}{}", classes.join(", "), tools.unwrap_or_default()), 500)
}

/// What was used, and of how much where there is a limit.
fn spent(row: &Row, past: &Past) -> String {
    let limits = past.spawn.as_ref().map(|spawn| spawn.limits.clone()).unwrap_or_default();
    let of = |used: String, max: Option<String>| match max {
        Some(max) => format!("{used} of {max}"),
        None => used,
    };
    let turns_max = limits.talk_turns_max.or(limits.turns_max);
    let turns = of(row.turns.to_string(), turns_max.map(|max| max.to_string()));
    let money = text::money(row.own_micro_usd, !row.unpriced);
    let money = of(money, limits.micro_usd_max.map(|max| text::money(max, true)));
    let active = of(text::span(row.active_ms), limits.active_ms_max.map(text::span));
    format!("{turns} turns, {} calls, {money}, {active} active", row.calls)
}

fn shown(receipt: &Receipt) -> String {
    let Receipt { outcome, why, by, tally, .. } = receipt;
    let why = match why {
        Why::Completed => "completed".to_owned(),
        Why::Spoke => "spoke, and nobody waited to be asked".to_owned(),
        Why::EndedByPerson => "ended by a person".to_owned(),
        Why::Limit(what) => format!("limit: {what}"),
        Why::Model(what) => format!("the model failed: {what}"),
        Why::Flawed(what) => format!("not accepted: {what}"),
        Why::Setup(what) => format!("setup failed: {what}"),
        Why::Stopped(what) => format!("stopped: {what}"),
        Why::ParentEnded => "the agent above it ended first".to_owned(),
    };
    let usage = &tally.usage;
    let mut lines = vec![
        format!(
            "  {}: {}, by {}",
            outcome.word(),
            text::row(&why, 300),
            text::row(&by.to_string(), 100)
        ),
        format!(
            "  {} turns, {} calls, {} denied, {} agents made",
            tally.turns, tally.calls, tally.denied, tally.spawned
        ),
        format!("  {} tokens in, {} out, {} cached", usage.input, usage.output, usage.cached),
        format!(
            "  {} own, {} with everyone below, {} active",
            text::money(tally.micro_usd, tally.unpriced == 0),
            text::money(receipt.tree_micro_usd, receipt.unpriced == 0),
            text::span(receipt.active_ms),
        ),
    ];
    if receipt.children_pending > 0 || receipt.unread > 0 {
        let (children, unread) = (receipt.children_pending, receipt.unread);
        lines
            .push(format!("  {children} children had not returned, {unread} messages were unread"));
    }
    lines.extend(tally.deeds.iter().map(|deed| match deed {
        Deed::Ran { argv, exit } => format!("  ran {} (exit {exit})", text::row(argv, 300)),
        Deed::Changed { path, change, .. } => {
            format!("  {} {}", text::row(change, 50), text::row(path, 300))
        }
    }));
    if tally.deeds_more > 0 {
        lines.push(format!("  and {} more", tally.deeds_more));
    }
    lines.join("\n")
}
