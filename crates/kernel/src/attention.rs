//! What an agent is doing, whether it needs somebody, and the exact next act: a pure function of
//! state. The parent's prompt, `list_agents` and every face tell the same from here.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::limits::{LATEST_BYTES_MAX, QUIET_MS, TRIES_MAX};
use crate::{
    Agent, AgentId, Ask, AskKind, AskTo, Call, CallState, Link, Mode, Outcome, Phase, Session,
    Thought, Time, headline, starts_at, summary,
};

/// The eleven words for what an agent is doing; the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Queued,
    Starting,
    Model,
    Tool,
    Child,
    Approve,
    Input,
    Paused,
    Done,
    Failed,
    Cancelled,
}

impl State {
    pub const ALL: [State; 11] = [
        State::Queued,
        State::Starting,
        State::Model,
        State::Tool,
        State::Child,
        State::Approve,
        State::Input,
        State::Paused,
        State::Done,
        State::Failed,
        State::Cancelled,
    ];

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Starting => "starting",
            State::Model => "model",
            State::Tool => "tool",
            State::Child => "child",
            State::Approve => "approve",
            State::Input => "input",
            State::Paused => "paused",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    None,
    CapacityQueue,
    InspectOptional,
    CancelAvailable,
    NeedsUserApproval,
    NeedsUserInput,
    NeedsParentInput,
    NeedsContinue,
    TerminalReceipt,
}

impl Need {
    #[must_use]
    pub fn is_for_a_person(self) -> bool {
        matches!(self, Need::NeedsUserApproval | Need::NeedsUserInput | Need::NeedsContinue)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    pub required: bool,
    pub kind: Need,
    pub since: Time,
    pub sentence: String,
    pub action: Option<Action>,
}

/// The exact next call, for whoever can make it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    pub tool: String,
    pub args: Value,
    pub reason: String,
}

fn action(tool: &str, args: Value, reason: &str) -> Action {
    Action { tool: tool.into(), args, reason: reason.into() }
}

/// `1 slot`, `2 slots`, `2 agents work`.
fn many(n: usize, what: &str) -> String {
    match (n, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (_, Some((noun, verb))) => format!("{n} {noun}s {}", verb.trim_end_matches('s')),
        (_, None) => format!("{n} {what}s"),
    }
}

/// The one word for an agent's phase.
#[must_use]
pub fn state_word(session: &Session, agent: &Agent) -> State {
    match &agent.phase {
        Phase::Queued => State::Queued,
        Phase::Starting { .. } => State::Starting,
        Phase::Thinking(_) => State::Model,
        Phase::Acting => acting_word(session, agent),
        Phase::Resting if waits_below(agent) => State::Child,
        Phase::Resting if agent.is_main() => State::Done,
        Phase::Resting => State::Input,
        Phase::Paused { .. } => State::Paused,
        Phase::Ended => match agent.outcome() {
            Some(Outcome::Done) | None => State::Done,
            Some(Outcome::Failed) => State::Failed,
            Some(Outcome::Cancelled) => State::Cancelled,
        },
    }
}

/// Nothing to do itself, but others work for it.
fn waits_below(agent: &Agent) -> bool {
    !agent.live.is_empty() && (agent.is_main() || agent.mode != Mode::Floor)
}

fn acting_word(session: &Session, agent: &Agent) -> State {
    let Some(call) = agent.open_call() else { return State::Model };
    if agent.calls().any(|call| !call.wonders.is_empty()) {
        return State::Input;
    }
    match call.state {
        CallState::Asked(id) => match session.asks.get(&id).map(|ask| &ask.kind) {
            Some(AskKind::Approval(_)) => State::Approve,
            Some(AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. })
            | None => State::Input,
        },
        CallState::Child(_) | CallState::Awaiting(_) => State::Child,
        CallState::Pending
        | CallState::Approved
        | CallState::Running { .. }
        | CallState::Returned(_) => State::Tool,
    }
}

/// Whether an agent needs somebody, and what they should do.
#[must_use]
pub fn attention(session: &Session, id: AgentId, now: Time) -> Option<Attention> {
    let agent = session.agent(id)?;
    let (kind, sentence, action) = describe(session, agent, now);
    let required = kind.is_for_a_person() || kind == Need::NeedsParentInput;
    Some(Attention { required, kind, since: agent.since, sentence, action })
}

type Described = (Need, String, Option<Action>);

fn describe(session: &Session, agent: &Agent, now: Time) -> Described {
    let id = agent.id.to_string();
    match &agent.phase {
        Phase::Queued if session.line_position(agent.id).is_none() => {
            (Need::None, waits_in_no_line(session, agent), None)
        }
        Phase::Queued => (Need::CapacityQueue, in_line(session, agent), None),
        Phase::Starting { .. } => (Need::None, "being prepared".into(), None),
        Phase::Thinking(thought) => (Need::None, thinking(session, agent, thought, now), None),
        Phase::Acting => match agent.open_call() {
            Some(call) => acting(session, agent, call, now),
            None => (Need::None, "between turns".into(), None),
        },
        Phase::Resting if waits_below(agent) => {
            (Need::None, format!("{} below it", many(agent.live.len(), "agent works")), None)
        }
        Phase::Resting if agent.is_main() => {
            (Need::None, "waits for the next message".into(), None)
        }
        Phase::Resting => {
            let act = action("say", json!({ "to": id }), "it waits for your reply");
            (Need::NeedsUserInput, format!("waits for your reply: {}", agent.latest), Some(act))
        }
        Phase::Paused { why, ask } => {
            let budget =
                ask.and_then(|ask| session.asks.get(&ask)).and_then(|ask| match ask.kind {
                    AskKind::Budget { micro_usd, .. } => {
                        Some(json!({ "ask": ask.id.to_string(), "micro_usd": micro_usd }))
                    }
                    AskKind::Approval(_) | AskKind::Question { .. } | AskKind::Continue { .. } => {
                        None
                    }
                });
            // A parent that waits for it, or whom the same limit binds, cannot act.
            let bound = |id| agent.breach().is_some_and(|breach| session.binds(breach, id));
            let parent_acts = matches!(agent.parent, Some((id, Link::Note)) if !bound(id));
            let act = match (budget, ask) {
                (Some(args), _) => action("top_up", args, "its budget is used up"),
                (None, Some(ask)) if !parent_acts => {
                    let args = json!({ "ask": ask.to_string() });
                    action("continue", args, "it can go on where it stopped")
                }
                (None, _) => {
                    let args = json!({ "agent_id": id, "continue": true, "message": "…" });
                    action("agent_eval", args, "it can go on where it stopped")
                }
            };
            (Need::NeedsContinue, format!("{why}, can be continued"), Some(act))
        }
        Phase::Ended => {
            let end = agent.end.as_ref();
            let first = end.map(|end| headline(&end.result, LATEST_BYTES_MAX)).unwrap_or_default();
            let act = action("get_agent", json!({ "agent_id": id }), "its result and receipt");
            (Need::TerminalReceipt, first, Some(act))
        }
    }
}

fn in_line(session: &Session, agent: &Agent) -> String {
    let position = session.line_position(agent.id).unwrap_or_default();
    let (length, slots) = (session.line_length(), session.world.limits.slots as usize);
    format!("waits for a slot, {position} of {length} in line, {}; no action", many(slots, "slot"))
}

fn waits_in_no_line(session: &Session, agent: &Agent) -> String {
    if session.held.contains(&agent.id) {
        return "waits for what running calls have set aside; no action".into();
    }
    let names: Vec<String> = agent.after.iter().map(ToString::to_string).collect();
    format!("starts after {}; no action", names.join(", "))
}

fn thinking(session: &Session, agent: &Agent, thought: &Thought, now: Time) -> String {
    let start = starts_at(session, &agent.model, thought);
    let seconds = start.since(now).div_ceil(1_000);
    match &thought.failure {
        Some(failure) if seconds > 0 => {
            format!("retry {}/{TRIES_MAX} in {seconds}s: {failure}", thought.attempt)
        }
        Some(failure) => format!("retry {}/{TRIES_MAX} now: {failure}", thought.attempt),
        None if seconds > 0 => format!("held back {seconds}s by its provider's rate limit"),
        None => format!("waits for the model, {}s", now.since(agent.since) / 1_000),
    }
}

fn acting(session: &Session, agent: &Agent, call: &Call, now: Time) -> Described {
    let id = agent.id.to_string();
    let mut wonders = agent.calls().flat_map(|call| &call.wonders);
    if let Some(ask) = wonders.find_map(|ask| session.asks.get(ask)) {
        return asking(agent, ask);
    }
    match &call.state {
        CallState::Running { since, .. } => {
            let ms = now.since(*since);
            let text = format!("{} runs, {}s", call.name, ms / 1_000);
            if ms > QUIET_MS {
                let args = json!({ "agent_id": id, "inspect": true });
                (
                    Need::InspectOptional,
                    text,
                    Some(action("agent_eval", args, "it has run for a while")),
                )
            } else {
                let args = json!({ "agent_id": id });
                (Need::CancelAvailable, text, Some(action("agent_close", args, "to stop it")))
            }
        }
        CallState::Asked(ask) => match session.asks.get(ask) {
            Some(ask) => asking(agent, ask),
            None => (Need::None, "between calls".into(), None),
        },
        CallState::Child(child) => {
            let label = session.agent(*child).map(|child| child.label.as_str()).unwrap_or_default();
            (Need::None, format!("waits for {label}"), None)
        }
        CallState::Awaiting(wait) => {
            let agents = many(wait.agents.len(), "agent");
            let left = wait.until.since(now).div_ceil(1_000);
            let which = if wait.all { "all" } else { "one" };
            (Need::None, format!("waits for {which} of {agents}, {left}s left"), None)
        }
        CallState::Pending | CallState::Approved | CallState::Returned(_) => {
            (Need::None, "between calls".into(), None)
        }
    }
}

fn asking(agent: &Agent, ask: &Ask) -> Described {
    let (id, ask_id) = (agent.id.to_string(), ask.id.to_string());
    let text = headline(&summary(&ask.kind), LATEST_BYTES_MAX);
    match (&ask.kind, ask.to) {
        (AskKind::Approval(_), _) => {
            let act = action("approve", json!({ "ask": ask_id }), "the user must decide");
            (Need::NeedsUserApproval, format!("needs approval: {text}"), Some(act))
        }
        (_, AskTo::Parent) => {
            let args = json!({ "agent_id": id, "message": "…" });
            let act = action("agent_eval", args, "it asks you");
            (Need::NeedsParentInput, format!("asks its parent: {text}"), Some(act))
        }
        (_, AskTo::Person) => {
            let act = action("answer", json!({ "ask": ask_id, "text": "…" }), "it asks the user");
            (Need::NeedsUserInput, format!("asks the user: {text}"), Some(act))
        }
    }
}
