//! The plain face: who speaks on standard error and the final text on standard output, so that
//! `$(locum run …)` is the answer and nothing else.

use std::sync::Arc;
use std::time::Duration;

use locum_kernel::AskTo;
use locum_runtime::clock::System;
use locum_runtime::line::{AgentRef, AskOpened, Body, Line};

use crate::face::{Face, hint};
use crate::overheard::{self, Overheard};
use crate::print::{line, say};
use crate::screen::{cut_end, ours, quoted};
use crate::text::clean;

/// Holds back what main said last: it may be the final text. Everything else is shown at once.
pub(crate) struct Plain {
    hints: bool,
    held: Option<String>,
    overheard: Overheard,
}

impl Plain {
    pub(crate) fn new(hints: bool) -> Plain {
        Plain { hints, held: None, overheard: Overheard::new(Arc::new(System)) }
    }

    /// What tools print, in its place among what is said.
    fn show(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.flush();
        }
        for line in lines {
            say(&clean(line));
        }
    }

    fn flush(&mut self) {
        if let Some(before) = self.held.take() {
            say(&clean(&before));
        }
    }
}

impl Face for Plain {
    fn line(&mut self, told: &Line) {
        let lines = self.overheard.follow(told);
        self.show(&lines);
        if let Body::RunResult(result) = &told.body {
            let last = format!("{}: {}", told.agent.path, quoted(&result.text));
            self.held.take_if(|before| *before == last);
            self.flush();
            // Exactly as it was said it is in the JSON lines and behind `-o`.
            line(&clean(&quoted(&result.text)));
            return;
        }
        let Some(shown) = plain(told, self.hints) else { return };
        // In the order in which it was said.
        self.flush();
        let may_be_final = told.agent.depth == 0 && matches!(told.body, Body::Message { .. });
        if may_be_final { self.held = Some(shown) } else { say(&clean(&shown)) }
    }

    fn tick(&mut self) {
        let lines = self.overheard.tick();
        self.show(&lines);
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(overheard::TICK)
    }
}

fn asked(agent: &AgentRef, ask: &AskOpened, hints: bool) -> String {
    let path = &agent.path;
    let because = ask.because.as_deref().map(|why| format!("\n    because: {}", ours(&clean(why))));
    let because = because.unwrap_or_default();
    let summary = cut_end(&ask.summary);
    let shown = format!("{path}: ({} {}: {summary}){because}", ask.kind, ask.id);
    match (hints, ask.to) {
        (true, AskTo::Person) => {
            format!("{shown}\n    {}", hint(ask.kind, &ask.options, agent.depth))
        }
        (true, AskTo::Parent) | (false, _) => shown,
    }
}

fn plain(told: &Line, hints: bool) -> Option<String> {
    let path = &told.agent.path;
    match &told.body {
        Body::AskOpened(ask) => Some(asked(&told.agent, ask, hints)),
        // Whoever is here now was not there when they were opened.
        Body::RunStarted(run) if !run.asks.is_empty() => {
            let open = run.asks.iter().map(|open| asked(&open.agent, &open.ask, hints));
            Some(open.collect::<Vec<_>>().join("\n"))
        }
        Body::Message { text, .. } => Some(format!("{path}: {}", quoted(text))),
        Body::Retry { attempt, max, wait_ms, cause, .. } => {
            let seconds = wait_ms.div_ceil(1_000);
            Some(format!("{path}: (try {attempt} of {max} in {seconds} s: {cause})"))
        }
        Body::AskClosed { id, decision, by, .. } => {
            Some(format!("{path}: ({id} {decision} by {by})"))
        }
        Body::AgentFinished(end) if end.is_error => {
            Some(format!("{path}: ({}: {})", end.outcome.word(), end.reason))
        }
        Body::RunStarted(_)
        | Body::InputQueued(_)
        | Body::InputStarted(_)
        | Body::InputDropped(_)
        | Body::AgentSpawned { .. }
        | Body::AgentState { .. }
        | Body::FloorChanged { .. }
        | Body::TurnStarted { .. }
        | Body::TurnFinished { .. }
        | Body::MessageDelta { .. }
        | Body::ThinkingDelta { .. }
        | Body::ToolOutput { .. }
        | Body::Gap { .. }
        | Body::ToolStarted { .. }
        | Body::ToolFinished(_)
        | Body::AgentFinished(_)
        | Body::Attention { .. }
        | Body::Compacted { .. }
        | Body::Error { .. }
        | Body::RunResult(_) => None,
    }
}
