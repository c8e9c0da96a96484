//! The tools that talk about agents: list, look, message, continue, close, wait, complete. What
//! they return is made for acting on: state, what is needed, and the exact next call.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::{Map, Value, json};

use super::Step;
use super::child::ends_told;
use crate::limits::{INBOX_MAX, WAIT_DEFAULT_S, WAIT_MAX_S, WORKER_ROWS_MAX};
use crate::{
    Agent, AgentId, AskKind, AskTo, Audience, CallId, Event, Mode, Output, Source, Verdict,
    WaitFor, Who, attention, clip, state_word, summary,
};

type Arguments = Map<String, Value>;

impl Step<'_> {
    /// An agent below `root`, by id, label or path.
    pub(super) fn descendant(&self, root: AgentId, named: &str) -> Result<AgentId, String> {
        let named = named.trim();
        let of_id = named.strip_prefix('a').unwrap_or(named).parse().map(AgentId);
        if let Ok(id) = of_id
            && self.session.agent(id).is_some()
        {
            let below = id != root && self.session.is_within(id, root);
            return if below { Ok(id) } else { Err(format!("{id} does not work for you")) };
        }
        let path = named.contains('/');
        let found: Vec<AgentId> = self
            .session
            .agents
            .iter()
            .filter(|agent| agent.id != root && (path || agent.label == named))
            .map(|agent| agent.id)
            .filter(|id| !path || is_path_of(&self.session.path(*id), named))
            .filter(|id| self.session.is_within(*id, root))
            .collect();
        let live: Vec<AgentId> =
            found.iter().copied().filter(|id| !self.session[*id].has_ended()).collect();
        match (live.as_slice(), found.as_slice()) {
            ([one], _) | ([], [.., one]) => Ok(*one),
            ([], []) => Err(format!("no agent of yours is called {named:?}: see list_agents")),
            (many, _) => {
                let ids: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(format!("{named:?} could be {}: use an id", ids.join(" or ")))
            }
        }
    }

    fn target(&self, id: AgentId, arguments: &Arguments) -> Result<AgentId, String> {
        let named = ["agent_id", "agent", "source"].iter().find_map(|key| arguments.get(*key));
        let named = named.filter(|name| name.is_string() || name.is_number());
        let named = named.ok_or("agent_id is missing: an id, label or path from list_agents")?;
        self.descendant(id, &plain(named))
    }

    /// What a parent needs to know of one agent.
    fn row(&self, id: AgentId) -> Value {
        let agent = &self.session[id];
        let mut row = json!({
            "agent_id": id.to_string(),
            "label": agent.label,
            "agent": agent.name,
            "mode": agent.mode,
            "state": state_word(self.session, agent),
            "terminal": agent.has_ended(),
            "continuable": agent.is_paused(),
            "attention": attention(self.session, id, self.at),
        });
        if !agent.latest.is_empty() {
            row["latest_message"] = json!(agent.latest);
        }
        let unread = agent.inbox.iter().filter(|(_, note)| note.source == Source::Parent).count();
        if unread > 0 {
            row["messages_undelivered"] = json!(unread);
        }
        row
    }

    /// The same with the result of an agent that has ended.
    pub(super) fn outcome_row(&self, id: AgentId, with_result: bool, max: usize) -> Value {
        let mut row = self.row(id);
        if let Some(end) = &self.session[id].end
            && with_result
        {
            row["result"] = json!(clip(end.result.clone(), max));
            row["receipt"] = json!(end.receipt);
        }
        row
    }

    pub(super) fn list_agents(&self, id: AgentId) -> Value {
        let below: Vec<&Agent> = self
            .session
            .agents
            .iter()
            .filter(|agent| agent.id != id && self.session.is_within(agent.id, id))
            .collect();
        let live = below.iter().filter(|agent| !agent.has_ended());
        let ended = below.iter().rev().filter(|agent| agent.has_ended());
        let shown = live.chain(ended).take(WORKER_ROWS_MAX).map(|agent| self.row(agent.id));
        let rows: Vec<Value> = shown.collect();
        let more = below.len() - rows.len();
        json!({ "agents": rows, "more": more })
    }

    pub(super) fn get_agent(&self, id: AgentId, arguments: &Arguments) -> Result<Value, String> {
        let target = self.target(id, arguments)?;
        Ok(self.outcome_row(target, true, usize::MAX))
    }

    /// Looks at an agent, tells it something, or lets a paused one go on.
    pub(super) fn agent_eval(
        &mut self,
        id: AgentId,
        arguments: &Arguments,
    ) -> Result<Value, String> {
        let target = self.target(id, arguments)?;
        let message = arguments.get("message").and_then(Value::as_str).map(String::from);
        let go_on = arguments.get("continue").and_then(Value::as_bool).unwrap_or(false);
        if message.is_none() && !go_on {
            return Ok(self.outcome_row(target, true, usize::MAX));
        }
        let agent = &self.session[target];
        if agent.has_ended() {
            let state = state_word(self.session, agent).word();
            return Err(format!("{target} has ended ({state}): get_agent gives its result"));
        }
        if agent.inbox.len() >= INBOX_MAX {
            return Err(format!("{target} has too many unread messages: wait until it reads them"));
        }
        let paused = agent.is_paused();
        if go_on && !paused {
            let state = state_word(self.session, agent).word();
            return Err(format!("{target} is not paused but {state}: nothing to continue"));
        }
        // Nobody extends a limit that binds them too.
        let breach = agent.breach().filter(|breach| self.session.binds(breach, id));
        if let Some(breach) = breach.filter(|_| go_on) {
            return Err(format!("{breach} holds for you too: only the user can extend it"));
        }
        let held_by_person = agent.mode == Mode::Floor && agent.home != Mode::Floor;
        let question = self.question_of(agent, &[AskTo::Parent]);
        let delivery = match (question, message) {
            (Some(ask), Some(text)) => {
                self.settle_question(ask, text, Who::Agent(id), None);
                "answered its question"
            }
            (_, Some(text)) if held_by_person => {
                self.tell(target, Source::Parent, format!("(while the user was here) {text}"));
                "waits until the user leaves"
            }
            (_, message) => {
                if let Some(text) = message {
                    self.tell(target, Source::Parent, text);
                }
                if paused && !go_on { "when it is continued" } else { "at its next model call" }
            }
        };
        if go_on {
            self.go_on(target, &Who::Agent(id));
        }
        // So that the answer tells what the message led to, not the instant before.
        self.advance(target);
        let mut row = self.row(target);
        row["message_delivery"] = json!(delivery);
        Ok(row)
    }

    /// A paused agent goes on; the ask that offered it is settled. So does everybody who stopped
    /// at the same limit of the tree or of somebody above: one word for all.
    pub(super) fn go_on(&mut self, id: AgentId, by: &Who) {
        let Some(breach) = self.session[id].breach().cloned() else {
            return self.go_on_alone(id, by);
        };
        for other in self.session.live_subtree(breach.of.unwrap_or(AgentId::MAIN)) {
            if self.session[other].breach() == Some(&breach) {
                self.go_on_alone(other, by);
            }
        }
    }

    fn go_on_alone(&mut self, id: AgentId, by: &Who) {
        if let Some(ask) = self.session[id].pause_ask() {
            let verdict = Verdict::Continue { text: None };
            self.emit(Event::Settled { ask, verdict, by: by.clone(), input: None });
        }
        self.emit(Event::Continued { agent: id, by: by.clone() });
        self.ready.push_back(id);
    }

    /// Stops an agent. Its end is told here, so the note of it need not be read again.
    pub(super) fn agent_close(
        &mut self,
        id: AgentId,
        call: CallId,
        arguments: &Arguments,
    ) -> Result<Option<Value>, String> {
        let target = self.target(id, arguments)?;
        if !self.session[target].has_ended() {
            let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or("closed");
            let text = format!("cancelled by {}: {reason}", self.session.path(id));
            self.stop(target, &text, &Who::Agent(id));
        }
        let output = Output::ok(self.outcome_row(target, true, usize::MAX).to_string());
        let told = ends_told(&self.session[id], &[target]);
        let reads = told.into_iter().map(|(key, _)| key).collect();
        self.emit(Event::Returned { agent: id, call, output, reads });
        Ok(None)
    }

    /// Waits for children, for a bounded time. Returns at once if there is nothing to wait for.
    pub(super) fn wait(
        &mut self,
        id: AgentId,
        call: CallId,
        arguments: &Arguments,
    ) -> Result<Option<Value>, String> {
        let agent = &self.session[id];
        let agents = match arguments.get("agents") {
            Some(Value::Array(names)) if !names.is_empty() => {
                let found = names.iter().map(|name| self.descendant(id, &plain(name)));
                found.collect::<Result<Vec<_>, _>>()?
            }
            _ => agent.live.iter().copied().collect(),
        };
        if agents.is_empty() {
            return Ok(Some(json!({ "ended_because": "nobody works for you", "agents": [] })));
        }
        let seconds = arguments.get("timeout_s").and_then(Value::as_u64);
        let seconds = seconds.unwrap_or(WAIT_DEFAULT_S).min(WAIT_MAX_S);
        let all = arguments.get("mode").and_then(Value::as_str) != Some("any");
        let unread = |child: AgentId| {
            let mut notes = self.session[id].inbox.iter();
            notes.any(|(_, note)| note.source == Source::Child(child))
        };
        let known = agents.iter().copied().filter(|id| self.needs_parent(*id) && !unread(*id));
        let known = known.collect();
        let wait = WaitFor { all, agents, known, until: self.at.plus_ms(seconds * 1_000) };
        self.emit(Event::Awaited { agent: id, call, wait });
        self.check_wait(id);
        Ok(None)
    }

    pub(super) fn try_complete(
        &mut self,
        id: AgentId,
        call: CallId,
        arguments: &Arguments,
    ) -> Result<Option<Value>, String> {
        let agent = &self.session[id];
        if agent.is_main() {
            return Err("main has nobody to complete to: just answer".into());
        }
        let result = match arguments.get("result") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => {
                let beside = agent.last_reply().map(|reply| reply.text.clone());
                let beside = beside.filter(|text| !text.trim().is_empty());
                beside.ok_or("complete needs a \"result\": what your caller should get")?
            }
            Some(other) => other.to_string(),
        };
        self.complete(id, call, result);
        Ok(None)
    }

    pub(super) fn ask_user(
        &mut self,
        id: AgentId,
        call: CallId,
        arguments: &Arguments,
    ) -> Result<Option<Value>, String> {
        let (question, options) = question(arguments)?;
        if self.session.world.audience == Audience::Absent {
            return Err(NOBODY_TO_ASK.into());
        }
        if self.session[id].mode == Mode::Call {
            return Err("a silent call has nobody to ask: decide yourself or complete".into());
        }
        let kind = AskKind::Question { question, options };
        self.open_ask(id, Some(call), AskTo::Person, kind);
        Ok(None)
    }

    /// A worker's parent can answer while it works; anybody else's is waiting for them.
    pub(super) fn ask_parent(
        &mut self,
        id: AgentId,
        call: CallId,
        arguments: &Arguments,
    ) -> Result<Option<Value>, String> {
        let agent = &self.session[id];
        let (question, options) = question(arguments)?;
        let parent = match agent.parent {
            Some((parent, crate::state::Link::Note)) => parent,
            Some((_, crate::state::Link::Result(_))) | None => {
                return self.ask_user(id, call, arguments);
            }
        };
        let kind = AskKind::Question { question, options };
        let text = format!(
            "asks you: {}\nAnswer with agent_eval {{\"agent_id\":\"{id}\",\"message\":…}}.",
            summary(&kind)
        );
        self.open_ask(id, Some(call), AskTo::Parent, kind);
        self.tell(parent, Source::Child(id), text);
        self.check_waits_above(id);
        self.ready.push_back(parent);
        Ok(None)
    }
}

fn question(arguments: &Arguments) -> Result<(String, Vec<String>), String> {
    let text = ["question", "prompt", "message"].iter().find_map(|key| arguments.get(*key));
    let Some(Value::String(text)) = text else {
        return Err("\"question\" is missing".into());
    };
    let options = match arguments.get("options") {
        Some(Value::Array(options)) => options.iter().map(plain).collect(),
        Some(_) | None => Vec::new(),
    };
    Ok((text.clone(), options))
}

/// What a question gets for an answer when nobody can give one.
pub const NOBODY_TO_ASK: &str = "nobody is there to ask: decide yourself or complete";

/// `a/b` names `main/a/b` but not `main/xa/b`.
fn is_path_of(path: &str, named: &str) -> bool {
    let before = path.strip_suffix(named);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}
