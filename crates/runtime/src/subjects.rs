//! What a call is about, worked out once for all models: whoever replies, and whoever changes the
//! arguments of an approval, a shell line is read here before the kernel judges it.

use locum_kernel::{AskKind, Class, Input, Session, Subjects, ToolSpec, Verdict};
use locum_shell::{Reading, Why, read};
use serde_json::Value;

/// Fills in what the parser finds. Whatever an input brought along is replaced: nobody but the
/// parser says what a line runs.
pub(crate) fn fill(session: &Session, input: &mut Input) {
    if let Input::Replied { reply, .. } = input {
        for call in &mut reply.calls {
            call.subjects =
                session.tool(&call.name).and_then(|tool| subjects(tool, &call.arguments));
        }
    }
    if let Input::Answered { ask, verdict: Verdict::Allow(allow), .. } = input {
        let asked = session.asks().find(|open| open.id == *ask);
        let tool = asked.and_then(|asked| match &asked.kind {
            AskKind::Approval(approval) => session.tool(&approval.tool),
            AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
        });
        let edited = allow.arguments.as_ref();
        allow.subjects = tool.zip(edited).and_then(|(tool, edited)| subjects(tool, edited));
    }
}

/// What a call of this tool would run; `None` if it runs no shell line.
#[must_use]
pub fn subjects(tool: &ToolSpec, arguments: &Value) -> Option<Subjects> {
    if tool.class != Class::Exec {
        return None;
    }
    let key = tool.subject.as_deref()?;
    let line = arguments.get(key)?.as_str()?;
    let mut subjects = match (read(line), beside(arguments, key)) {
        (Reading::Plain(mut parts), Beside::Folder(folder)) => {
            parts.insert(0, format!("cd {folder}"));
            Subjects::Parts(parts)
        }
        (Reading::Plain(parts), Beside::Nothing) => Subjects::Parts(parts),
        (Reading::Plain(seen), Beside::Hides(what)) => {
            Subjects::Opaque { opaque: Why::Hides(what).to_string(), seen }
        }
        (Reading::Opaque { why, seen }, _) => Subjects::Opaque { opaque: why.to_string(), seen },
    };
    if arguments.get("network").is_some_and(|it| *it != Value::Bool(false)) {
        let (Subjects::Parts(parts) | Subjects::Opaque { seen: parts, .. }) = &mut subjects;
        parts.push(NETWORK.into());
    }
    Some(subjects)
}

/// What a command that wants the network is about besides: a rule for the command alone does not
/// let it out.
const NETWORK: &str = "+network";

/// What other arguments make of the line.
enum Beside {
    Nothing,
    /// It runs elsewhere, which is the same as going there first.
    Folder(String),
    Hides(String),
}

fn beside(arguments: &Value, key: &str) -> Beside {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let given = |name: &str| arguments.get(name).filter(|value| name != key && !is_empty(value));
    if let Some(name) = ["env", "environment", "shell"].into_iter().find(|it| given(it).is_some()) {
        return Beside::Hides(format!("it is given {name} beside the line"));
    }
    let folder = ["cwd", "workdir", "dir", "directory"].into_iter().find_map(given);
    match folder.map(|folder| folder.as_str().map(|name| read(&format!("cd {}", quoted(name))))) {
        None => Beside::Nothing,
        Some(Some(Reading::Plain(parts))) => {
            Beside::Folder(parts.first().and_then(|it| it.strip_prefix("cd ")).unwrap_or("").into())
        }
        Some(_) => Beside::Hides("it runs in a folder that is not plain".into()),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_beside_the_line_count() {
        let tool = |class| ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: "exec".into(),
            class,
            idempotent: false,
            subject: Some("command".into()),
            timeout_ms: None,
        };
        let cases = [
            (json!({ "command": "ls && pwd" }), "ls|pwd"),
            (json!({ "command": "ls", "timeout_s": 5, "env": {} }), "ls"),
            (json!({ "command": "ls", "cwd": "/a b" }), "cd '/a b'|ls"),
            (json!({ "command": "ls", "cwd": "$(rm x)" }), "cd '$(rm x)'|ls"),
            (json!({ "command": "ls", "cwd": 5 }), "? ls"),
            (json!({ "command": "ls", "env": { "LD_PRELOAD": "x" } }), "? ls"),
            (json!({ "command": "ls", "shell": "/tmp/x" }), "? ls"),
            (json!({ "command": "A=1 ls" }), "? ls"),
            (json!({ "command": "ls", "network": true }), "ls|+network"),
            (json!({ "command": "ls", "network": false }), "ls"),
            (json!({ "command": 5 }), "none"),
            (json!("ls"), "none"),
        ];
        for (arguments, expected) in cases {
            let shown = match subjects(&tool(Class::Exec), &arguments) {
                None => "none".to_owned(),
                Some(Subjects::Parts(parts)) => parts.join("|"),
                Some(Subjects::Opaque { seen, .. }) => format!("? {}", seen.join("|")),
            };
            assert_eq!(shown, expected, "{arguments}");
            assert_eq!(subjects(&tool(Class::Read), &arguments), None, "{arguments}");
        }
    }
}
