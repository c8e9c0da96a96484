//! The lines of a session as happenings: who, what, how it went. Never what was said.

use locum_runtime::line::{Body, Line, Status, UsageLine};
use tracing::Level;

use crate::face::Face;

/// A face that nobody sees.
pub(crate) struct Teller;

impl Face for Teller {
    fn line(&mut self, line: &Line) {
        let Some((level, what)) = told(&line.body) else { return };
        let (session, seq, path) = (&line.session, line.seq, &line.agent.path);
        let text = format!("{session} {seq} {path}: {what}");
        match level {
            Level::ERROR => tracing::error!("{text}"),
            Level::WARN => tracing::warn!("{text}"),
            Level::INFO => tracing::info!("{text}"),
            _ => tracing::debug!("{text}"),
        }
    }
}

fn told(body: &Body) -> Option<(Level, String)> {
    let is_worse = |is_bad: bool| if is_bad { Level::WARN } else { Level::INFO };
    Some(match body {
        Body::RunStarted(run) => {
            let how = if run.resumed { "resumed" } else { "started" };
            (Level::INFO, format!("run {how} model={} cwd={}", run.model, run.cwd))
        }
        Body::InputQueued(it) => (Level::DEBUG, format!("input {} queued", it.input)),
        Body::InputStarted(it) => {
            let (input, channel, bytes) = (&it.input, &it.channel, it.text.len());
            (Level::INFO, format!("input {input} from {channel} heard, {bytes} bytes"))
        }
        Body::InputDropped(it) => (Level::WARN, format!("input {} dropped", it.input)),
        Body::AgentSpawned { definition, mode, .. } => {
            (Level::INFO, format!("agent spawned from {definition}, {mode:?}"))
        }
        Body::AgentState { state, cause, .. } => {
            (Level::DEBUG, format!("state {} because: {cause}", state.word()))
        }
        Body::FloorChanged { stack, reason } => {
            let top = stack.last().map_or("nobody", String::as_str);
            (Level::INFO, format!("floor to {top}: {reason:?}"))
        }
        Body::TurnStarted { turn, model } => {
            (Level::DEBUG, format!("turn {turn} started model={model}"))
        }
        Body::TurnFinished { turn, model, usage, cost_usd } => {
            let used = used(*usage, *cost_usd);
            (is_worse(usage.is_none()), format!("turn {turn} finished model={model} {used}"))
        }
        Body::Message { role, text } => {
            (Level::DEBUG, format!("message of {role}, {} bytes", text.len()))
        }
        Body::ToolStarted { call, name, .. } => {
            (Level::INFO, format!("tool {name} started call={call}"))
        }
        Body::ToolFinished(it) => {
            let exit = it.exit.map(|exit| format!(" exit={exit}")).unwrap_or_default();
            let (name, call, ms, bytes) = (&it.name, &it.call, it.ms, it.output.len());
            let word = if it.ok { "finished" } else { "failed" };
            let what = format!("tool {name} {word} call={call} ms={ms} bytes={bytes}{exit}");
            (is_worse(!it.ok), what)
        }
        Body::AskOpened(ask) => (Level::INFO, format!("ask {} opened: {}", ask.id, ask.kind)),
        Body::AskClosed { id, decision, by, .. } => {
            (Level::INFO, format!("ask {id} closed: {decision} by {by}"))
        }
        Body::AgentFinished(end) => {
            let (word, calls, turns) = (end.outcome.word(), end.receipt.calls, end.receipt.turns);
            (is_worse(end.is_error), format!("agent {word} calls={calls} turns={turns}"))
        }
        Body::Retry { attempt, max, wait_ms, status, cause } => {
            let status = status.map(|status| format!(" status={status}")).unwrap_or_default();
            (Level::WARN, format!("try {attempt} of {max} in {wait_ms} ms{status}: {cause}"))
        }
        Body::Compacted { before_tokens, after_tokens } => {
            (Level::INFO, format!("compacted {before_tokens} to {after_tokens} tokens"))
        }
        Body::Error { code, message, .. } => (Level::ERROR, format!("{code} {message}")),
        Body::RunResult(result) => {
            let (status, exit) = (result.status, result.exit);
            (is_worse(status != Status::Ok), format!("run ended {status:?} exit={exit}"))
        }
        Body::Gap { missed } => (Level::DEBUG, format!("{missed} pieces were not followed")),
        Body::MessageDelta { .. }
        | Body::ThinkingDelta { .. }
        | Body::ToolOutput { .. }
        | Body::Attention { .. } => return None,
    })
}

fn used(usage: Option<UsageLine>, cost_usd: Option<f64>) -> String {
    let Some(usage) = usage else { return "came to nothing".to_owned() };
    let cost = cost_usd.map_or_else(|| "?".to_owned(), |cost| format!("{cost:.6}"));
    format!("in={} out={} usd={cost}", usage.input, usage.output)
}
