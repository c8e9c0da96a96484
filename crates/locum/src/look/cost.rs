//! `locum cost`: what was spent, summed from every reply in the journals. A sum with an unknown
//! price in it is not known.

use std::collections::BTreeMap;

use locum_kernel::{AgentId, Event, Session, Usage};
use locum_runtime::clock::rfc3339;
use serde_json::{Value, json};

use super::{Sight, show_json};
use crate::complaint::Complaint;
use crate::flags::{By, Cost};
use crate::print;
use crate::text;

#[derive(Default)]
struct Sum {
    replies: u64,
    unpriced: u64,
    input: u64,
    output: u64,
    cached: u64,
    micro_usd: u64,
}

impl Sum {
    fn add(&mut self, usage: &Usage, micro_usd: Option<u64>) {
        self.replies += 1;
        self.unpriced += u64::from(micro_usd.is_none());
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cached = self.cached.saturating_add(usage.cached);
        self.micro_usd = self.micro_usd.saturating_add(micro_usd.unwrap_or_default());
    }
}

pub(super) fn run(flags: &Cost, sight: &Sight) -> Result<(), Complaint> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for key in sight.keys(flags.session.as_deref())? {
        let mut models: BTreeMap<AgentId, String> = BTreeMap::new();
        let walked = sight.walk(&key, |session, entry| {
            for event in &entry.events {
                if let Event::Spawned(spawn) = event {
                    models.insert(spawn.agent, spawn.model.clone());
                }
                let Some((agent, usage, micro_usd)) = spent(event) else { continue };
                let name = match flags.by {
                    By::Agent => format!("{key} {}", path(session, agent)),
                    By::Model => models.get(&agent).cloned().unwrap_or_default(),
                    By::Day => rfc3339(entry.at).get(..10).unwrap_or_default().to_owned(),
                };
                sums.entry(name).or_default().add(usage, micro_usd);
                total.add(usage, micro_usd);
            }
        });
        // One that is damaged further in is no reason not to count the others.
        if let Err(complaint) = walked {
            print::note(&format!("not counted: {}", complaint.what));
        }
    }
    if flags.json {
        let by: Vec<Value> = sums.iter().map(|(name, sum)| to_json(name, sum)).collect();
        show_json(&json!({ "by": word(flags.by), "rows": by, "total": to_json("total", &total) }));
        return Ok(());
    }
    let head = [heading(flags.by), "REPLIES", "IN", "OUT", "CACHED", "USD", "UNPRICED"];
    let mut rows: Vec<Vec<String>> = sums.iter().map(|(name, sum)| to_row(name, sum)).collect();
    rows.push(to_row("total", &total));
    print::line(&text::table(&head, &rows));
    if total.unpriced > 0 {
        print::line(&format!(
            "{} of {} replies have no known price",
            total.unpriced, total.replies
        ));
    }
    Ok(())
}

/// A reply, or a summary, which is one too.
fn spent(event: &Event) -> Option<(AgentId, &Usage, Option<u64>)> {
    if let Event::Replied { agent, reply } = event {
        return Some((*agent, &reply.usage, reply.micro_usd));
    }
    if let Event::Compacted(summary) = event {
        return Some((summary.agent, &summary.usage, summary.micro_usd));
    }
    None
}

fn path(session: &Session, agent: AgentId) -> String {
    session.path(agent)
}

fn word(by: By) -> &'static str {
    match by {
        By::Agent => "agent",
        By::Model => "model",
        By::Day => "day",
    }
}

fn heading(by: By) -> &'static str {
    match by {
        By::Agent => "SESSION AND AGENT",
        By::Model => "MODEL",
        By::Day => "DAY (UTC)",
    }
}

fn to_json(name: &str, sum: &Sum) -> Value {
    json!({
        "name": name,
        "replies": sum.replies,
        "in": sum.input,
        "out": sum.output,
        "cached": sum.cached,
        "usd": text::usd(sum.micro_usd, sum.unpriced == 0),
        "known_usd": text::usd(sum.micro_usd, true),
        "unpriced": sum.unpriced,
    })
}

fn to_row(name: &str, sum: &Sum) -> Vec<String> {
    vec![
        text::row(name, 100),
        sum.replies.to_string(),
        sum.input.to_string(),
        sum.output.to_string(),
        sum.cached.to_string(),
        text::money(sum.micro_usd, sum.unpriced == 0),
        sum.unpriced.to_string(),
    ]
}
