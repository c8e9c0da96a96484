//! The plain face: who speaks on standard error and the final text on standard output, so that
//! `$(locum run …)` is the answer and nothing else.

use std::sync::Arc;
use std::time::Duration;

use locum_kernel::AskTo;
use locum_runtime::clock::System;
use locum_runtime::line::{AgentRef, AskOpened, Body, Line};

use crate::face::{Face, Spoken, hint, spoken};
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
    Some(match spoken(&told.body)? {
        Spoken::Asked(ask) => asked(&told.agent, ask, hints),
        Spoken::StillAsked(asks) => {
            let open = asks.iter().map(|open| asked(&open.agent, &open.ask, hints));
            open.collect::<Vec<_>>().join("\n")
        }
        Spoken::Message(text) => format!("{path}: {}", quoted(text)),
        Spoken::Retry { attempt, max, wait_ms, cause } => {
            let seconds = wait_ms.div_ceil(1_000);
            format!("{path}: (try {attempt} of {max} in {seconds} s: {cause})")
        }
        Spoken::Answered { id, decision, by } => format!("{path}: ({id} {decision} by {by})"),
        Spoken::Failed(end) => format!("{path}: ({}: {})", end.outcome.word(), end.reason),
        // What went wrong is told when the run is over, and the final text is the output.
        Spoken::Error(_) | Spoken::Result(_) => return None,
    })
}
