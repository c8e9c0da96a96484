//! What a query shows, as short text lines made for reading beside the acts.

use super::Stage;
use super::words::word;
use locum_kernel::{
    AgentId, AskTo, Body, Change, Effect, Event, Note, Output, Pause, Purpose, Receipt, Source,
    Span, Time, Verdict, Who, Why, attention, deadline, headline, owed, prompt, view,
};

impl Stage {
    pub(super) fn query(&mut self, query: &str) -> Result<String, String> {
        let (what, rest) = word(query);
        Ok(match what {
            "journal" => self.journal(rest),
            "stack" => view(&self.session, self.now).stack.join(" > "),
            "states" => self.states(),
            "view" => self.rows(),
            "attention" => self.attention(rest)?,
            "prompt" => self.prompt(rest)?,
            "workers" => {
                let id = self.agent(rest)?;
                let request = prompt(&self.session, id, self.now).ok_or("no such agent")?;
                request.now.unwrap_or_else(|| "(none)".into())
            }
            "tools" => {
                let id = self.agent(rest)?;
                prompt(&self.session, id, self.now).ok_or("no such agent")?.tools.join(" ")
            }
            "catalogue" => {
                let id = self.agent(rest)?;
                prompt(&self.session, id, self.now).ok_or("no such agent")?.catalogue.join("\n")
            }
            "owed" => self.owed(),
            "asks" => self.asks(),
            "queue" => self.queue(),
            "said" => self.said(),
            "result" => self.result(rest)?,
            "last" => self.last(rest)?,
            "spend" => {
                let view = view(&self.session, self.now);
                format!("{} tokens, {}", view.tree_tokens, usd(view.tree_micro_usd))
            }
            "slots" => {
                let slots = view(&self.session, self.now).slots;
                format!("{} of {} held, {} waiting", slots.taken, slots.of, slots.waiting)
            }
            "deadline" => match deadline(&self.session) {
                Some(at) => format!("in {}ms", at.since(self.now)),
                None => "none".into(),
            },
            other => return Err(format!("nobody can show {other:?}")),
        })
    }

    fn name(&self, id: AgentId) -> String {
        self.session.agent(id).map_or_else(|| id.to_string(), |agent| agent.label().to_string())
    }

    /// New facts since the last time, or all of them; `*` marks the first of a decision.
    fn journal(&mut self, what: &str) -> String {
        let from = if what == "all" { 0 } else { self.journal_shown };
        let mut lines = Vec::new();
        for entry in &self.entries {
            for (event, number) in entry.events.iter().zip(entry.seq.0..) {
                if number > from {
                    let mark = if number == entry.seq.0 { '*' } else { ' ' };
                    lines.push(format!("{mark}{number:<3} {}", self.event(event)));
                }
            }
        }
        self.journal_shown = self.session.seq().0;
        lines.join("\n")
    }

    fn states(&self) -> String {
        let view = view(&self.session, self.now);
        let words = view.agents.iter().map(|row| format!("{} {}", row.label, row.state.word()));
        words.collect::<Vec<_>>().join(", ")
    }

    fn rows(&self) -> String {
        let view = view(&self.session, self.now);
        let mut lines: Vec<String> = view
            .agents
            .iter()
            .map(|row| {
                let lease = format!("{:?}", row.lease).to_lowercase();
                let mode = format!("{:?}", row.mode).to_lowercase();
                let word = row.state.word();
                format!("{} {word} [{mode}, {lease}] {}", row.path, row.attention.sentence)
            })
            .collect();
        let counts: Vec<String> =
            view.counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
        lines.push(format!("{}; {} need you", counts.join(" / "), view.needs_you));
        lines.join("\n")
    }

    fn attention(&self, name: &str) -> Result<String, String> {
        let found = attention(&self.session, self.agent(name)?, self.now).ok_or("no such agent")?;
        let kind = super::words::variant(&found.kind);
        let required = if found.required { "required" } else { "not required" };
        let action = found.action.map_or_else(
            || "no action".into(),
            |act| format!("{} {} ({})", act.tool, act.args, act.reason),
        );
        Ok(format!("{kind}, {required}\n{}\n{action}", found.sentence))
    }

    fn prompt(&self, name: &str) -> Result<String, String> {
        let request = prompt(&self.session, self.agent(name)?, self.now).ok_or("no such agent")?;
        let mut lines: Vec<String> = Vec::new();
        for line in &request.lines {
            match &line.body {
                Body::Told(notes) => {
                    lines.extend(notes.iter().map(|note| format!("told {}", self.note(note))));
                }
                Body::Replied(reply) => {
                    let calls = reply.calls.iter().map(|call| format!(" {}", call.name));
                    lines.push(format!("said {:?}{}", reply.text, calls.collect::<String>()));
                }
                Body::Results(results) => {
                    lines.extend(
                        results.iter().map(|(id, out)| format!("result {id} {}", output(out))),
                    );
                }
                Body::Summary(text) => lines.push(format!("summary {text:?}")),
            }
        }
        lines.extend(request.now);
        Ok(lines.join("\n"))
    }

    fn owed(&self) -> String {
        let later = |at: Time| match at.since(self.now) {
            0 => String::new(),
            ms => format!(" in {ms}ms"),
        };
        let lines = owed(&self.session).into_iter().map(|effect| match effect {
            Effect::CallModel { agent, purpose, not_before, .. } => {
                let why = if purpose == Purpose::Answer { "" } else { " for a summary" };
                format!("call model for {}{why}{}", self.name(agent), later(not_before))
            }
            Effect::RunTool { agent, key, .. } => {
                let errand = locum_kernel::errand(&self.session, key).expect("an owed errand");
                let within = match errand.span {
                    Span::Place => "",
                    Span::Host => ", nowhere but at this host",
                    Span::Address => ", nowhere else",
                };
                let (tool, arguments) = (errand.tool, errand.arguments);
                format!("run {tool} {arguments} for {}{within}", self.name(agent))
            }
            Effect::Prepare { agent, .. } => format!("prepare {}", self.name(agent)),
            Effect::Deliver { key, not_before } => {
                let parcel = locum_kernel::parcel(&self.session, key).expect("an owed parcel");
                let again = if parcel.resent { " (resent after restart)" } else { "" };
                let when = later(not_before);
                format!("deliver to {}: [{}] {}{again}{when}", parcel.to, parcel.from, parcel.text)
            }
            Effect::Relay { agent, key, .. } => {
                let relay = locum_kernel::relay(&self.session, key).expect("an owed relay");
                let verdict = relay.verdict.word();
                format!("relay to {}: wonder {} {verdict}", self.name(agent), relay.wonder)
            }
            Effect::Summon { key } => {
                let name = locum_kernel::summons(&self.session, key).expect("an owed name");
                format!("summon {name}")
            }
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() { "nothing".into() } else { text }
    }

    fn asks(&self) -> String {
        let cards = view(&self.session, self.now).asks;
        let lines = cards.iter().map(|card| {
            let same = match card.siblings.len() {
                0 => String::new(),
                n => format!(" (+{n} siblings want the same)"),
            };
            format!("[{}] {}: {}{same}", card.path, card.kind.word(), card.summary)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() { "none".into() } else { text }
    }

    fn queue(&self) -> String {
        let waits = view(&self.session, self.now).queue;
        let lines = waits.iter().map(|wait| {
            let who = if wait.sender.is_empty() { &wait.channel } else { &wait.sender };
            format!("{} {} {who}: {}", wait.position, wait.input, wait.text)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() { "empty".into() } else { text }
    }

    /// What the person has been told since the last time.
    fn said(&mut self) -> String {
        let spoken: Vec<String> = self
            .events()
            .filter_map(|(_, _, event)| match event {
                Event::Spoke { agent, text, .. } => Some(format!("[{}] {text}", self.name(*agent))),
                _ => None,
            })
            .collect();
        let new = spoken[self.said_shown..].join("\n");
        self.said_shown = spoken.len();
        if new.is_empty() { "nothing".into() } else { new }
    }

    fn result(&self, name: &str) -> Result<String, String> {
        let id = self.agent(name)?;
        let ended = self.events().find_map(|(_, _, event)| match event {
            Event::Ended { agent, result, receipt } if *agent == id => Some((result, receipt)),
            _ => None,
        });
        let (result, receipt) = ended.ok_or("it has not ended")?;
        Ok(format!("{:?}\n{}", short(result), full_receipt(receipt)))
    }

    /// The newest tool result an agent was given.
    fn last(&self, name: &str) -> Result<String, String> {
        let id = self.agent(name)?;
        let results = self.events().filter_map(|(_, _, event)| match event {
            Event::Returned { agent, output, .. } if *agent == id => Some(output),
            _ => None,
        });
        let found = results.last().ok_or("it never got one")?;
        let text = serde_json::from_str::<serde_json::Value>(&found.text);
        let text = text.map_or_else(|_| short(&found.text), |json| format!("{json:#}"));
        Ok(format!("{}{text}", if found.is_error { "error: " } else { "" }))
    }

    fn note(&self, note: &Note) -> String {
        let from = match &note.source {
            Source::Brief => "brief".into(),
            Source::Person { channel, sender } if sender.is_empty() => channel.clone(),
            Source::Person { sender, .. } => sender.clone(),
            Source::Parent => "parent".into(),
            Source::Child(id) => self.name(*id),
            Source::Runtime => "locum".into(),
        };
        let receipt = note.receipt.as_ref().map(|it| format!(" [{}]", receipt(it)));
        format!("{from}: {:?}{}", short(&note.text), receipt.unwrap_or_default())
    }

    fn event(&self, event: &Event) -> String {
        let name = |id: &AgentId| self.name(*id);
        match event {
            Event::Opened { session } => format!("opened {session}"),
            Event::Configured { changes } => format!("configured: {}", changed(changes)),
            Event::Restarted => "restarted".into(),
            Event::Enqueued { message } => format!("queued {:?}", short(&message.text)),
            Event::Merged { input, message } => format!("merged {:?} into {input}", message.text),
            Event::Edited { input, text } => format!("edited {input}: {text:?}"),
            Event::Moved { input, before } => format!("moved {input} before {before:?}"),
            Event::Dropped { input, by } => format!("dropped {input} by {by}"),
            Event::Heard { agent, note } => format!("{} heard {}", name(agent), self.note(note)),
            Event::Spawned(it) => {
                let mode = format!("{:?}", it.mode).to_lowercase();
                match it.parent {
                    Some(parent) => {
                        format!("{} spawned {} as {} ({mode})", name(&parent), it.label, it.agent)
                    }
                    None => format!("spawned {} ({mode})", it.label),
                }
            }
            Event::Lined { agent, returning } => {
                format!(
                    "{} waits for a slot{}",
                    name(agent),
                    if *returning { " again" } else { "" }
                )
            }
            Event::Held { agent } => format!("{} waits for what is set aside", name(agent)),
            Event::Preparing { agent } => format!("{} is being prepared", name(agent)),
            Event::Prepared { agent, tools, .. } if tools.is_empty() => {
                format!("{} is prepared", name(agent))
            }
            Event::Prepared { agent, tools, .. } => {
                format!("{} is prepared with {}", name(agent), tools.join(", "))
            }
            Event::Equipped { agent, tools } => {
                format!("{} has {} too", name(agent), tools.join(", "))
            }
            Event::Proved { agent } => format!("{} passed its checks", name(agent)),
            Event::Disproved { agent, why, for_good } => {
                let end = if *for_good { ", for good" } else { "" };
                format!("{} failed its checks{end}: {why}", name(agent))
            }
            Event::TurnBegan(it) => {
                let reads = it.reads.iter().map(|seq| seq.0.to_string()).collect::<Vec<_>>();
                let grace = if it.grace.is_some() { ", grace turn" } else { "" };
                let what = if it.purpose == Purpose::Answer { "thinks" } else { "summarises" };
                format!("{} {what}, reads [{}]{grace}", name(&it.agent), reads.join(" "))
            }
            Event::Replied { agent, reply } => {
                let calls = reply.calls.iter().map(|call| format!(" {}", call.name));
                format!(
                    "{} replied {:?}{}",
                    name(agent),
                    short(&reply.text),
                    calls.collect::<String>()
                )
            }
            other => self.later_event(other),
        }
    }

    fn later_event(&self, event: &Event) -> String {
        let name = |id: &AgentId| self.name(*id);
        match event {
            Event::Retrying(it) => {
                let hold = if it.hold.is_some() { ", provider held" } else { "" };
                format!("{} retries, try {}{hold}: {}", name(&it.agent), it.attempt, it.failure)
            }
            Event::Faulted { agent, failure } => format!("{} faulted: {failure}", name(agent)),
            Event::Overflowed { agent } => format!("{} overflowed its context", name(agent)),
            Event::TurnDropped { agent, by } => {
                format!("{} dropped its turn, by {by}", name(agent))
            }
            Event::Compacted(it) => format!("{} compacted to {:?}", name(&it.agent), it.summary),
            Event::Asked { agent, to, kind, wonder, .. } => {
                let to = if *to == AskTo::Person { "the person" } else { "its parent" };
                let wonder = wonder.map_or_else(String::new, |id| format!(" (wonder {id})"));
                format!("{} asked {to}: {}{wonder}", name(agent), kind.word())
            }
            Event::Settled { ask, verdict, by, .. } => {
                let words = match verdict {
                    Verdict::Deny { message: Some(words) } | Verdict::Answer { text: words } => {
                        format!(" {words:?}")
                    }
                    Verdict::Withdrawn { why } => format!(": {why}"),
                    _ => String::new(),
                };
                format!("{ask} {} by {by}{words}", verdict.word())
            }
            Event::Granted { grant } => {
                let rules: Vec<_> = grant.rules.iter().map(|rule| format!(", {rule}")).collect();
                let rules = rules.concat();
                format!("granted {} below {}{rules}", grant.tool, name(&grant.root))
            }
            Event::Revoked { grant, .. } => format!("revoked the grant of {grant}"),
            Event::Started { agent, call, .. } => format!("{} started {call}", name(agent)),
            Event::Awaited { agent, call, wait } => {
                let mode = if wait.all { "all" } else { "any" };
                format!("{} waits in {call} for {mode} of {:?}", name(agent), wait.agents)
            }
            Event::Returned { agent, call, output: out, reads } => {
                let reads = (!reads.is_empty()).then(|| format!(", reads {reads:?}"));
                let reads = reads.unwrap_or_default();
                format!("{} got {call}: {}{reads}", name(agent), output(out))
            }
            Event::Spoke { agent, text } => format!("{} spoke: {:?}", name(agent), short(text)),
            Event::Posted { agent, to, text, .. } => {
                format!("{} posted to {to}: {:?}", name(agent), short(text))
            }
            Event::Delivered { key, error } => match error {
                None => format!("delivered {key}"),
                Some(why) => format!("not delivered {key}: {why}"),
            },
            Event::Relayed { key } => format!("relayed {key}"),
            Event::Paused { agent, why } => format!("{} paused: {}", name(agent), pause(why)),
            Event::Continued { agent, by } => format!("{} continued by {by}", name(agent)),
            Event::ToppedUp { agent, micro_usd } => {
                let whose = agent.as_ref().map_or_else(|| "the tree".into(), name);
                format!("{whose} topped up by {}", usd(*micro_usd))
            }
            Event::Switched { agent, mode } => format!("{} is now {mode:?}", name(agent)),
            Event::Narrowed { agent, ceiling } => {
                let classes = ceiling.classes.iter().map(|class| class.word());
                format!("{} narrowed to {}", name(agent), classes.collect::<Vec<_>>().join(","))
            }
            Event::Ended { agent, result, receipt: it } => {
                format!("{} ended: {:?} [{}]", name(agent), short(result), receipt(it))
            }
            other => format!("{other:?}"),
        }
    }
}

fn changed(changes: &[Change]) -> String {
    let names = changes.iter().map(|change| match change {
        Change::Definition { definition, .. } => format!("definition {}", definition.name),
        Change::DefinitionGone(name) => format!("no definition {name}"),
        Change::Brought { definition, .. } => format!("brought {}", definition.name),
        Change::Offers(offers) => {
            let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
            format!("offers {}", names.join(", "))
        }
        Change::Tool(tool) => format!("tool {}", tool.name),
        Change::ToolGone(name) => format!("no tool {name}"),
        Change::ModelSpec { name, .. } => format!("model spec {name}"),
        other => super::words::variant(other),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn output(out: &Output) -> String {
    let mark = if out.is_error { "error " } else { "" };
    let handle = out.handle.as_ref().map(|it| format!(" (whole: {it})")).unwrap_or_default();
    let receipt = out.receipt.as_ref().map(|it| format!(" [{}]", receipt(it)));
    format!("{mark}{:?}{handle}{}", short(&out.text), receipt.unwrap_or_default())
}

/// Long texts by their head and their length.
fn short(text: &str) -> String {
    if text.len() <= 200 {
        return text.into();
    }
    format!("{} … {} bytes", headline(text, 40), text.len())
}

fn receipt(it: &Receipt) -> String {
    let by = match &it.by {
        Who::Person(name) => format!(" by {name}"),
        Who::Agent(_) | Who::Runtime => String::new(),
    };
    format!("{}, {}{by}", it.outcome.word(), why(&it.why))
}

fn full_receipt(it: &Receipt) -> String {
    let tally = &it.tally;
    format!(
        "{}; {} turns, {} calls, {} denied, deeds {:?}, {} pending, {} of its own, {} in its \
         tree, {}ms",
        receipt(it),
        tally.turns,
        tally.calls,
        tally.denied,
        tally.deeds,
        it.children_pending,
        usd(tally.micro_usd),
        usd(it.tree_micro_usd),
        it.active_ms,
    )
}

fn why(why: &Why) -> String {
    match why {
        Why::Completed => "completed".into(),
        Why::Spoke => "spoke".into(),
        Why::EndedByPerson => "ended by the person".into(),
        Why::Limit(text)
        | Why::Model(text)
        | Why::Flawed(text)
        | Why::Setup(text)
        | Why::Stopped(text) => text.clone(),
        Why::ParentEnded => "its parent ended".into(),
    }
}

fn pause(why: &Pause) -> String {
    why.to_string()
}

fn usd(micro: u64) -> String {
    format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000)
}
