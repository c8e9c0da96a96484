//! A session as messages and tool uses, one JSON object per line. What belongs to a child carries
//! its `agent_session_id`; what belongs to main does not.

use locum_kernel::{AgentId, CallId, Entry, Event, Outcome, Seq, Session};
use locum_runtime::clock::rfc3339;
use serde_json::{Map, Value, json};

use super::{Sight, numbered};
use crate::complaint::Complaint;
use crate::text;

pub(super) fn lines(sight: &Sight, key: &str) -> Result<String, Complaint> {
    let mut lines = Vec::new();
    sight.walk(key, |session, entry| {
        for (seq, event) in numbered(entry) {
            lines.extend(told(session, entry, seq, event));
        }
    })?;
    Ok(lines.iter().map(text::json).collect::<Vec<_>>().join("\n"))
}

fn told(session: &Session, entry: &Entry, seq: Seq, event: &Event) -> Vec<Value> {
    let of = |agent: AgentId, body: Value| line(entry, agent, body);
    if let Event::Spawned(spawn) = event
        && let Some(parent) = spawn.parent
    {
        let name = session.agent(spawn.agent).map(|agent| agent.name().to_owned());
        return vec![of(
            spawn.agent,
            json!({
                "type": "agent_session",
                "id": spawn.agent.to_string(),
                "agent_name": name,
                "label": spawn.label,
                "path": session.path(spawn.agent),
                "mode": spawn.mode,
                "model": spawn.model,
                "parent_tool_use_id": spawn.call.map(|call| call.to_string()),
                "parent_agent_session_id": child(parent),
            }),
        )];
    }
    if let Event::Heard { agent, note } = event {
        return vec![of(*agent, message("user", &note.text))];
    }
    if let Event::Replied { agent, reply } = event {
        let said = (!reply.text.trim().is_empty()).then(|| message("assistant", &reply.text));
        let calls = (0..).zip(&reply.calls).map(|(index, call)| {
            let id = CallId { turn: seq, index }.to_string();
            json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.arguments })
        });
        return said.into_iter().chain(calls).map(|body| of(*agent, body)).collect();
    }
    if let Event::Returned { agent, call, output, .. } = event {
        let body = json!({
            "type": "tool_result",
            "tool_use_id": call.to_string(),
            "output": output.text,
            "is_error": output.is_error,
        });
        return vec![of(*agent, body)];
    }
    if let Event::Ended { agent, result, receipt } = event
        && *agent != AgentId::MAIN
    {
        let body = json!({
            "type": "agent_session_complete",
            "result": result,
            "is_error": receipt.outcome != Outcome::Done,
        });
        return vec![of(*agent, body)];
    }
    Vec::new()
}

fn message(role: &str, content: &str) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

/// Main's own words belong to no child.
fn child(agent: AgentId) -> Option<String> {
    (agent != AgentId::MAIN).then(|| agent.to_string())
}

fn line(entry: &Entry, agent: AgentId, body: Value) -> Value {
    let mut line = if let Value::Object(fields) = body { fields } else { Map::new() };
    if let Some(id) = child(agent) {
        line.insert("agent_session_id".into(), id.into());
    }
    line.insert("created_at".into(), rfc3339(entry.at).into());
    Value::Object(line)
}
