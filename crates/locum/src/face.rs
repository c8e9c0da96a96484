//! What all faces of a run share: lines come in, and are shown each in its own way.

use std::time::Duration;

use locum_runtime::line::{AgentFinished, AskOpened, Body, Line, OpenAsk, RunResult};

use crate::screen::{between, ours};

/// How lines look.
pub(crate) trait Face {
    fn line(&mut self, line: &Line);

    /// Nothing more is waiting to be shown just now.
    fn pause(&mut self) {}

    /// Time passes although nothing happens.
    fn tick(&mut self) {}

    /// How often, if at all.
    fn tick_every(&self) -> Option<Duration> {
        None
    }
}

/// What a person is told in words while a run goes on.
pub(crate) enum Spoken<'a> {
    Message(&'a str),
    Asked(&'a AskOpened),
    /// Whoever is here now was not there when they were opened.
    StillAsked(&'a [OpenAsk]),
    Answered {
        id: &'a str,
        decision: &'a str,
        by: &'a str,
    },
    Failed(&'a AgentFinished),
    Retry {
        attempt: u32,
        max: u32,
        wait_ms: u64,
        cause: &'a str,
    },
    Error(&'a str),
    Result(&'a RunResult),
}

/// None: it is for programs, for the rows of the tree and for the log. The one list of that.
pub(crate) fn spoken(body: &Body) -> Option<Spoken<'_>> {
    match body {
        Body::Message { text, .. } => Some(Spoken::Message(text)),
        Body::AskOpened(ask) => Some(Spoken::Asked(ask)),
        Body::RunStarted(run) if !run.asks.is_empty() => Some(Spoken::StillAsked(&run.asks)),
        Body::AskClosed { id, decision, by, .. } => Some(Spoken::Answered { id, decision, by }),
        Body::AgentFinished(end) if end.is_error => Some(Spoken::Failed(end)),
        Body::Retry { attempt, max, wait_ms, cause, .. } => {
            Some(Spoken::Retry { attempt: *attempt, max: *max, wait_ms: *wait_ms, cause })
        }
        Body::Error { message, .. } => Some(Spoken::Error(message)),
        Body::RunResult(result) => Some(Spoken::Result(result)),
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
        | Body::Compacted { .. } => None,
    }
}

/// How to answer, in one line under the ask of an agent at this depth.
pub(crate) fn hint(kind: &str, options: &[String], depth: u32) -> String {
    match kind {
        // Main has no siblings.
        "approval" if depth == 0 => ours("y once · a this agent · p always · n [why]").into_owned(),
        "approval" => {
            ours("y once · a this agent · f its siblings too · p always · n [why]").into_owned()
        }
        "question" if options.is_empty() => "type the answer".into(),
        "question" => {
            let numbered = options.iter().zip(1..).map(|(option, at)| format!("{at} {option}"));
            numbered.collect::<Vec<_>>().join(between())
        }
        "continue" => ours("y goes on · words go on with them · n ends it").into_owned(),
        _ => ours("y · n [why]").into_owned(),
    }
}
