//! Every word of the vocabulary. The lists come out of matches without a wildcard, so a new
//! variant does not compile until it has a word here, and then some scenario must use it.

use crate::stage::words::variant;
use locum_kernel::{
    AskKind, Change, Command, Effect, Event, FailureKind, Input, Limit, Need, Purpose, Refusal,
    Scope, State, Verdict, View, Why,
};
use serde::Serialize;
use std::collections::BTreeSet;

/// A list of all words and the function that finds the word of a value, from one table.
macro_rules! words {
    ($list:ident, $of:ident($type:ty): $($pattern:pat => $word:literal,)*) => {
        pub(crate) const $list: &[&str] = &[$($word),*];

        fn $of(it: &$type) -> &'static str {
            match it { $($pattern => $word,)* }
        }
    };
}

words! { INPUTS, input(Input):
    Input::Configured(_) => "configured",
    Input::Restarted { .. } => "restarted",
    Input::Left => "left",
    Input::Offered { .. } => "offered",
    Input::Retooled { .. } => "retooled",
    Input::Said(_) => "said",
    Input::Edited { .. } => "edited",
    Input::Dropped { .. } => "dropped",
    Input::Moved { .. } => "moved",
    Input::Answered { .. } => "answered",
    Input::Commanded { .. } => "commanded",
    Input::Replied { .. } => "replied",
    Input::Failed { .. } => "failed",
    Input::Ran { .. } => "ran",
    Input::Wondered { .. } => "wondered",
    Input::Relayed { .. } => "relayed",
    Input::Prepared { .. } => "prepared",
    Input::Delivered { .. } => "delivered",
    Input::Summoned { .. } => "summoned",
    Input::Ticked => "ticked",
}

words! { COMMANDS, command(Command):
    Command::Back => "back",
    Command::Done { .. } => "done",
    Command::Foreground { .. } => "foreground",
    Command::Background => "background",
    Command::Cancel { .. } => "cancel",
    Command::Continue { .. } => "continue",
    Command::Narrow { .. } => "narrow",
    Command::Compact { .. } => "compact",
    Command::Revoke { .. } => "revoke",
}

words! { EVENTS, event(Event):
    Event::Opened { .. } => "opened",
    Event::Configured { .. } => "configured",
    Event::Restarted => "restarted",
    Event::Left => "left",
    Event::Enqueued { .. } => "enqueued",
    Event::Merged { .. } => "merged",
    Event::Edited { .. } => "edited",
    Event::Moved { .. } => "moved",
    Event::Dropped { .. } => "dropped",
    Event::Heard { .. } => "heard",
    Event::Spawned(_) => "spawned",
    Event::Lined { .. } => "lined",
    Event::Held { .. } => "held",
    Event::Preparing { .. } => "preparing",
    Event::Prepared { .. } => "prepared",
    Event::Equipped { .. } => "equipped",
    Event::Proved { .. } => "proved",
    Event::Disproved { .. } => "disproved",
    Event::TurnBegan(_) => "turn_began",
    Event::Replied { .. } => "replied",
    Event::Retrying(_) => "retrying",
    Event::Faulted { .. } => "faulted",
    Event::Overflowed { .. } => "overflowed",
    Event::TurnDropped { .. } => "turn_dropped",
    Event::Compacted(_) => "compacted",
    Event::Asked { .. } => "asked",
    Event::Settled { .. } => "settled",
    Event::Granted { .. } => "granted",
    Event::Revoked { .. } => "revoked",
    Event::Started { .. } => "started",
    Event::Awaited { .. } => "awaited",
    Event::Returned { .. } => "returned",
    Event::Spoke { .. } => "spoke",
    Event::Posted { .. } => "posted",
    Event::Delivered { .. } => "delivered",
    Event::Relayed { .. } => "relayed",
    Event::Paused { .. } => "paused",
    Event::Continued { .. } => "continued",
    Event::ToppedUp { .. } => "topped_up",
    Event::Switched { .. } => "switched",
    Event::Narrowed { .. } => "narrowed",
    Event::Ended { .. } => "ended",
}

words! { EFFECTS, effect(Effect):
    Effect::CallModel { .. } => "call_model",
    Effect::RunTool { .. } => "run_tool",
    Effect::Prepare { .. } => "prepare",
    Effect::Deliver { .. } => "deliver",
    Effect::Relay { .. } => "relay",
    Effect::Summon { .. } => "summon",
}

words! { VERDICTS, verdict(Verdict):
    Verdict::Allow(_) => "allow",
    Verdict::Deny { .. } => "deny",
    Verdict::Answer { .. } => "answer",
    Verdict::Continue { .. } => "continue",
    Verdict::TopUp { .. } => "top_up",
    Verdict::Withdrawn { .. } => "withdrawn",
}

words! { SCOPES, scope(Scope):
    Scope::Once => "once",
    Scope::Agent => "agent",
    Scope::Fanout => "fanout",
    Scope::Project => "project",
}

words! { ASKS, ask(AskKind):
    AskKind::Approval(_) => "approval",
    AskKind::Question { .. } => "question",
    AskKind::Continue { .. } => "continue",
    AskKind::Budget { .. } => "budget",
}

words! { FAILURES, failure(FailureKind):
    FailureKind::RateLimited => "rate_limited",
    FailureKind::Overloaded => "overloaded",
    FailureKind::Server => "server",
    FailureKind::Timeout => "timeout",
    FailureKind::Cut => "cut",
    FailureKind::Malformed => "malformed",
    FailureKind::ContextTooLong => "context_too_long",
    FailureKind::Auth => "auth",
    FailureKind::Quota => "quota",
    FailureKind::UnknownModel => "unknown_model",
    FailureKind::Absent => "absent",
    FailureKind::Filtered => "filtered",
    FailureKind::Other => "other",
}

words! { STATES, state(State):
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

words! { NEEDS, need(Need):
    Need::None => "none",
    Need::CapacityQueue => "capacity_queue",
    Need::InspectOptional => "inspect_optional",
    Need::CancelAvailable => "cancel_available",
    Need::NeedsUserApproval => "needs_user_approval",
    Need::NeedsUserInput => "needs_user_input",
    Need::NeedsParentInput => "needs_parent_input",
    Need::NeedsContinue => "needs_continue",
    Need::TerminalReceipt => "terminal_receipt",
}

words! { REASONS, why(Why):
    Why::Completed => "completed",
    Why::Spoke => "spoke",
    Why::EndedByPerson => "ended_by_person",
    Why::Limit(_) => "limit",
    Why::Model(_) => "model",
    Why::Flawed(_) => "flawed",
    Why::Setup(_) => "setup",
    Why::Stopped(_) => "stopped",
    Why::ParentEnded => "parent_ended",
}

words! { LIMITS, limit(Limit):
    Limit::Turns => "turns",
    Limit::Tokens => "tokens",
    Limit::Money => "money",
    Limit::Time => "time",
    Limit::Denials => "denials",
}

words! { PURPOSES, purpose(Purpose):
    Purpose::Answer => "answer",
    Purpose::Summary { .. } => "summary",
}

words! { CHANGES, change(Change):
    Change::Audience(_) => "audience",
    Change::Mode(_) => "mode",
    Change::Rules(_) => "rules",
    Change::Limits(_) => "limits",
    Change::Model(_) => "model",
    Change::Workspace(_) => "workspace",
    Change::ModelSpec { .. } => "model_spec",
    Change::Tool(_) => "tool",
    Change::ToolGone(_) => "tool_gone",
    Change::Definition { .. } => "definition",
    Change::DefinitionGone(_) => "definition_gone",
    Change::Brought { .. } => "brought",
    Change::Offers(_) => "offers",
}

words! { REFUSALS, refusal(Refusal):
    Refusal::NotOpen => "not_open",
    Refusal::OtherSession { .. } => "other_session",
    Refusal::Duplicate { .. } => "duplicate",
    Refusal::Empty => "empty",
    Refusal::TooLarge { .. } => "too_large",
    Refusal::QueueFull { .. } => "queue_full",
    Refusal::InboxFull { .. } => "inbox_full",
    Refusal::UnknownInput { .. } => "unknown_input",
    Refusal::UnknownAgent { .. } => "unknown_agent",
    Refusal::AgentEnded { .. } => "agent_ended",
    Refusal::Stale { .. } => "stale",
    Refusal::UnknownAsk { .. } => "unknown_ask",
    Refusal::AlreadyAnswered { .. } => "already_answered",
    Refusal::Changed { .. } => "changed",
    Refusal::WrongVerdict { .. } => "wrong_verdict",
    Refusal::Forbidden { .. } => "forbidden",
    Refusal::NotOnFloor => "not_on_floor",
    Refusal::NotPaused { .. } => "not_paused",
    Refusal::AlreadyOnFloor { .. } => "already_on_floor",
    Refusal::Busy { .. } => "busy",
    Refusal::Widens { .. } => "widens",
    Refusal::NotBorn { .. } => "not_born",
    Refusal::Unheard { .. } => "unheard",
    Refusal::Nobody { .. } => "nobody",
    Refusal::Ambiguous { .. } => "ambiguous",
}

/// All lists, each under the name its words are kept with.
pub(crate) const ALL: [(&str, &[&str]); 15] = [
    ("input", INPUTS),
    ("command", COMMANDS),
    ("event", EVENTS),
    ("effect", EFFECTS),
    ("verdict", VERDICTS),
    ("scope", SCOPES),
    ("ask", ASKS),
    ("failure", FAILURES),
    ("state", STATES),
    ("need", NEEDS),
    ("why", REASONS),
    ("limit", LIMITS),
    ("purpose", PURPOSES),
    ("change", CHANGES),
    ("refusal", REFUSALS),
];

/// The words that occurred, each with the name of its list.
#[derive(Clone, Default)]
pub(crate) struct Seen(pub(crate) BTreeSet<(&'static str, &'static str)>);

impl Seen {
    fn add<T: Serialize>(&mut self, list: &'static str, word: &'static str, it: &T) {
        if self.0.insert((list, word)) {
            // The journal is read for ever, so what a variant is called there must not change.
            assert_eq!(variant(it), word, "the {list} is written under another name");
        }
    }

    pub(crate) fn input(&mut self, it: &Input) {
        self.add("input", input(it), it);
        if let Input::Commanded { command: it, .. } = it {
            self.add("command", command(it), it);
        }
        if let Input::Failed { failure: it, .. } = it {
            self.add("failure", failure(&it.kind), &it.kind);
        }
    }

    pub(crate) fn refusal(&mut self, it: &Refusal) {
        self.add("refusal", refusal(it), it);
    }

    pub(crate) fn effect(&mut self, it: &Effect) {
        self.add("effect", effect(it), it);
    }

    pub(crate) fn view(&mut self, view: &View) {
        for row in &view.agents {
            self.add("state", state(&row.state), &row.state);
            self.add("need", need(&row.attention.kind), &row.attention.kind);
        }
    }

    pub(crate) fn event(&mut self, it: &Event) {
        self.add("event", event(it), it);
        if let Event::Settled { verdict: it, .. } = it {
            self.add("verdict", verdict(it), it);
            if let Verdict::Allow(allow) = it {
                self.add("scope", scope(&allow.scope), &allow.scope);
            }
        }
        if let Event::Asked { kind, .. } = it {
            self.add("ask", ask(kind), kind);
        }
        if let Event::Ended { receipt, .. } = it {
            self.add("why", why(&receipt.why), &receipt.why);
        }
        if let Event::TurnBegan(turn) = it {
            self.add("purpose", purpose(&turn.purpose), &turn.purpose);
            if let Some(breach) = &turn.grace {
                self.add("limit", limit(&breach.limit), &breach.limit);
            }
        }
        if let Event::Paused { why: locum_kernel::Pause::Limit(breach), .. } = it {
            self.add("limit", limit(&breach.limit), &breach.limit);
        }
        if let Event::Configured { changes } = it {
            for it in changes {
                self.add("change", change(it), it);
            }
        }
    }
}
