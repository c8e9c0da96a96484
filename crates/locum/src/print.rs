//! What a run prints. With `--json` every line; without, who speaks on standard error and the
//! final text on standard output, so that `$(locum run …)` is the answer and nothing else.

use std::io::{self, Write as _};

use locum_runtime::line::{Body, Line, RunResult};

pub(crate) enum Printer {
    Json,
    /// Holds the newest message back: the last one is the final text.
    Plain {
        held: Option<String>,
    },
}

impl Printer {
    pub(crate) fn new(json: bool) -> Printer {
        if json { Printer::Json } else { Printer::Plain { held: None } }
    }

    pub(crate) fn tell(&mut self, told: &Line) {
        match self {
            Printer::Json => json(told),
            Printer::Plain { held } => {
                if let Some(text) = plain(told)
                    && let Some(before) = held.replace(text)
                {
                    note(&before);
                }
            }
        }
    }

    pub(crate) fn result(&mut self, told: &Line, result: &RunResult) {
        match self {
            Printer::Json => json(told),
            Printer::Plain { held } => {
                let last = format!("{}: {}", told.agent.path, result.text);
                if let Some(before) = held.take().filter(|before| *before != last) {
                    note(&before);
                }
                line(&result.text);
            }
        }
    }
}

fn plain(told: &Line) -> Option<String> {
    let path = &told.agent.path;
    match &told.body {
        Body::Message { text, .. } => Some(format!("{path}: {text}")),
        Body::Retry { attempt, max, wait_ms, cause, .. } => {
            let seconds = wait_ms.div_ceil(1_000);
            Some(format!("{path}: (try {attempt} of {max} in {seconds} s: {cause})"))
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
        | Body::ToolStarted { .. }
        | Body::ToolFinished(_)
        | Body::AskOpened(_)
        | Body::AskClosed { .. }
        | Body::AgentFinished(_)
        | Body::Compacted { .. }
        | Body::Error { .. }
        | Body::RunResult(_) => None,
    }
}

fn json(told: &Line) {
    match serde_json::to_string(told) {
        Ok(text) => line(&text),
        Err(error) => note(&format!("line {} cannot be written: {error}", told.seq)),
    }
}

/// A reader who left is no reason to stop: the work goes on and is in the journal.
pub(crate) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
