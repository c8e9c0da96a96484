//! `locum timeline`: who thought, ran a tool or waited, and for how long. Time ends with the last
//! entry: what nobody has written down is not known to have happened.

use std::env;

use locum_kernel::{Agent, AgentId, Session, State, Time, state_word};
use locum_runtime::clock::rfc3339;
use serde_json::{Value, json};

use super::{Sight, show_json};
use crate::complaint::Complaint;
use crate::flags::Timeline;
use crate::print;
use crate::text;

/// What a person can tell apart in a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Model,
    Tool,
    Waiting,
}

impl Sort {
    /// None: at rest, or over.
    fn of(state: State) -> Option<Sort> {
        match state {
            State::Model => Some(Sort::Model),
            State::Starting | State::Tool => Some(Sort::Tool),
            State::Queued | State::Child | State::Approve | State::Input | State::Paused => {
                Some(Sort::Waiting)
            }
            State::Done | State::Failed | State::Cancelled => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Sort::Model => "model",
            Sort::Tool => "tool",
            Sort::Waiting => "waiting",
        }
    }

    fn mark(self) -> char {
        match self {
            Sort::Model => '#',
            Sort::Tool => '=',
            Sort::Waiting => '.',
        }
    }
}

struct Span {
    state: State,
    from: Time,
    to: Time,
}

impl Span {
    fn ms(&self) -> u64 {
        self.to.since(self.from)
    }
}

struct Life {
    id: AgentId,
    path: String,
    start: Time,
    end: Option<Time>,
    spans: Vec<Span>,
}

impl Life {
    /// The state holds until further notice; a span of no length says nothing.
    fn note(&mut self, state: State, at: Time) {
        if let Some(last) = self.spans.last_mut() {
            last.to = at;
            if last.state == state {
                return;
            }
            if last.ms() == 0 {
                self.spans.pop();
            }
        }
        if self.spans.last().is_none_or(|last| last.state != state) {
            self.spans.push(Span { state, from: at, to: at });
        }
    }

    fn total(&self, sort: Sort) -> u64 {
        let of = self.spans.iter().filter(|span| Sort::of(span.state) == Some(sort));
        of.map(Span::ms).sum()
    }

    fn longest_wait(&self) -> Option<&Span> {
        let waits = self.spans.iter().filter(|span| Sort::of(span.state) == Some(Sort::Waiting));
        waits.filter(|span| span.ms() > 0).max_by_key(|span| span.ms())
    }
}

pub(super) fn run(flags: &Timeline, sight: &Sight) -> Result<(), Complaint> {
    let mut lives: Vec<Life> = Vec::new();
    let session = sight.walk(&flags.session, |session, entry| {
        for agent in session.agents() {
            live(&mut lives, session, agent, entry.at);
        }
    })?;
    if flags.json {
        let agents: Vec<Value> = lives.iter().map(to_json).collect();
        let longest = longest(&lives).map(|(life, span)| wait_json(life, span));
        show_json(&json!({
            "session": flags.session, "agents": agents, "longest_wait": longest,
        }));
    } else {
        print::line(&bars(&lives, session.now()));
    }
    Ok(())
}

fn live(lives: &mut Vec<Life>, session: &Session, agent: &Agent, at: Time) {
    let place = usize::try_from(agent.id().0).unwrap_or(usize::MAX);
    if place == lives.len() {
        let path = session.path(agent.id());
        lives.push(Life { id: agent.id(), path, start: at, end: None, spans: Vec::new() });
    }
    let Some(life) = lives.get_mut(place).filter(|life| life.end.is_none()) else { return };
    life.note(state_word(session, agent), at);
    life.end = agent.has_ended().then_some(at);
}

fn longest(lives: &[Life]) -> Option<(&Life, &Span)> {
    let waits = lives.iter().filter_map(|life| Some((life, life.longest_wait()?)));
    waits.max_by_key(|(_, span)| span.ms())
}

fn wait_json(life: &Life, span: &Span) -> Value {
    json!({
        "id": life.id.to_string(),
        "path": life.path,
        "state": span.state,
        "from": rfc3339(span.from),
        "to": rfc3339(span.to),
        "ms": span.ms(),
    })
}

fn to_json(life: &Life) -> Value {
    let active = life.spans.iter().filter_map(|span| Some((Sort::of(span.state)?, span)));
    let spans = active.map(|(sort, span)| {
        json!({
            "state": span.state,
            "kind": sort.word(),
            "from": rfc3339(span.from),
            "to": rfc3339(span.to),
            "ms": span.ms(),
        })
    });
    json!({
        "id": life.id.to_string(),
        "path": life.path,
        "start": rfc3339(life.start),
        "end": life.end.map(rfc3339),
        "model_ms": life.total(Sort::Model),
        "tool_ms": life.total(Sort::Tool),
        "waiting_ms": life.total(Sort::Waiting),
        "spans": spans.collect::<Vec<_>>(),
    })
}

fn bars(lives: &[Life], end: Time) -> String {
    let start = lives.first().map_or(end, |life| life.start);
    let names: Vec<String> = lives.iter().map(|life| text::row(&life.path, 30)).collect();
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let cells = columns().saturating_sub(wide + 4).clamp(10, 500);
    let mut shown = vec![format!(
        "{} UTC, {}; each sign {}   # model  = tool  . waiting",
        text::moment(start),
        text::span(end.since(start)),
        text::span(end.since(start).div_ceil(u64::try_from(cells).unwrap_or(1))),
    )];
    for (life, name) in lives.iter().zip(names) {
        shown.push(format!("{name:wide$}  |{}|", bar(life, start, end, cells)));
    }
    if let Some((life, span)) = longest(lives) {
        let (path, state) = (text::row(&life.path, 100), span.state.word());
        shown.push(format!("longest wait: {path}, {} ({state})", text::span(span.ms())));
    }
    shown.join("\n")
}

/// Each cell shows what took most of its time.
fn bar(life: &Life, start: Time, end: Time, cells: usize) -> String {
    let (whole, count) = (end.since(start).max(1), u64::try_from(cells).unwrap_or(1));
    let edge = |cell: u64| start.plus_ms(whole.saturating_mul(cell) / count);
    let cell = |cell: u64| {
        let (from, to) = (edge(cell), edge(cell + 1).max(edge(cell).plus_ms(1)));
        let mut most = (0, ' ');
        for sort in [Sort::Model, Sort::Tool, Sort::Waiting] {
            let of = life.spans.iter().filter(|span| Sort::of(span.state) == Some(sort));
            let ms: u64 = of.map(|span| span.to.min(to).since(span.from.max(from))).sum();
            if ms > most.0 {
                most = (ms, sort.mark());
            }
        }
        most.1
    };
    (0..count).map(cell).collect()
}

/// The width of the terminal, where a shell says it.
fn columns() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.filter(|columns| *columns >= 20).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_took_the_time() {
        let mut life = Life {
            id: AgentId::MAIN,
            path: "main".into(),
            start: Time(0),
            end: None,
            spans: Vec::new(),
        };
        let story = [
            (State::Model, 0),
            (State::Model, 50),
            (State::Tool, 100),
            (State::Child, 200),
            (State::Model, 200),
            (State::Child, 200),
            (State::Done, 400),
            (State::Model, 500),
            (State::Done, 600),
        ];
        for (state, at) in story {
            life.note(state, Time(at));
        }
        assert_eq!(bar(&life, Time(0), Time(600), 12), "##==....  ##");
        assert_eq!(life.total(Sort::Model), 200);
        assert_eq!(life.longest_wait().map(Span::ms), Some(200));
        assert_eq!(life.spans.len(), 6);
    }
}
