//! What a call is about, worked out once for all models: whoever replies, and whoever changes the
//! arguments of an approval, a shell line is read here before the kernel judges it.

use std::path::{Component, Path, PathBuf};

use locum_kernel::{AskKind, Class, Input, Session, Subjects, ToolSpec, Verdict};
use locum_shell::{Reading, Why, read};
use serde_json::Value;

/// Fills in what the parser finds. Whatever an input brought along is replaced: nobody but the
/// parser says what a line runs.
pub(crate) fn fill(session: &Session, input: &mut Input) {
    let workspace = Path::new(session.workspace());
    if let Input::Replied { reply, .. } = input {
        for call in &mut reply.calls {
            call.subjects = session
                .tool(&call.name)
                .and_then(|tool| subjects(tool, &call.arguments, workspace));
        }
    }
    if let Input::Answered { ask, verdict: Verdict::Allow(allow), .. } = input {
        let asked = session.asks().find(|open| open.id == *ask);
        let tool = asked.and_then(|asked| match &asked.kind {
            AskKind::Approval(approval) => session.tool(&approval.tool),
            AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
        });
        let edited = allow.arguments.as_ref();
        allow.subjects =
            tool.zip(edited).and_then(|(tool, edited)| subjects(tool, edited, workspace));
    }
}

/// What a call of this tool is really about: what a shell line would run, which file a path leads
/// to, whose address a URL is. `None` if its argument says it already.
#[must_use]
pub fn subjects(tool: &ToolSpec, arguments: &Value, workspace: &Path) -> Option<Subjects> {
    let key = tool.subject.as_deref()?;
    let text = arguments.get(key)?.as_str()?;
    match tool.class {
        Class::Exec => Some(of_line(text, arguments, key)),
        Class::Read | Class::Write if key == "path" => Some(of_path(text, workspace)),
        Class::Network if key == "url" => of_address(text),
        Class::Read | Class::Write | Class::Network | Class::Delegate => None,
    }
}

/// The path without detours, and where it leads: a rule must hold for both, and a denial for
/// either. Within the workspace both are written from there.
fn of_path(named: &str, workspace: &Path) -> Subjects {
    if named.contains('\0') || named.starts_with("spill:") {
        return Subjects::Parts(vec![named.to_owned()]);
    }
    let straight = straight(&workspace.join(named));
    let real = real(&straight);
    let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let shown = |path: &Path| {
        let within = path.strip_prefix(workspace).or_else(|_| path.strip_prefix(&root));
        let shown = within.unwrap_or(path).display().to_string();
        if shown.is_empty() { ".".to_owned() } else { shown }
    };
    let mut parts = vec![shown(&straight)];
    let real = shown(&real);
    if !parts.contains(&real) {
        parts.push(real);
    }
    Subjects::Parts(parts)
}

/// Without `.` and `..`, whatever is there.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                straight.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                straight.push(step);
            }
        }
    }
    straight
}

/// Where a path leads, links followed as far as there is anything.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    match there {
        Some((part, real)) => match path.strip_prefix(part) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
        None => path.to_owned(),
    }
}

/// An address in the one way everybody writes it: no names and passwords, no usual port, no dot at
/// the end of a host, everything that may be written small written small.
fn of_address(text: &str) -> Option<Subjects> {
    let mut address = reqwest::Url::parse(text.trim()).ok()?;
    address.set_username("").ok()?;
    address.set_password(None).ok()?;
    let host = address.host_str()?.trim_end_matches('.').to_owned();
    address.set_host(Some(&host)).ok()?;
    Some(Subjects::Parts(vec![address.to_string()]))
}

fn of_line(line: &str, arguments: &Value, key: &str) -> Subjects {
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
    subjects
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
            let shown = match subjects(&tool(Class::Exec), &arguments, Path::new("/w")) {
                None => "none".to_owned(),
                Some(Subjects::Parts(parts)) => parts.join("|"),
                Some(Subjects::Opaque { seen, .. }) => format!("? {}", seen.join("|")),
            };
            assert_eq!(shown, expected, "{arguments}");
            assert_eq!(
                subjects(&tool(Class::Read), &arguments, Path::new("/w")),
                None,
                "{arguments}"
            );
        }
    }

    fn parts(tool: &ToolSpec, arguments: &Value, workspace: &Path) -> String {
        match subjects(tool, arguments, workspace) {
            None => "none".to_owned(),
            Some(Subjects::Parts(parts) | Subjects::Opaque { seen: parts, .. }) => parts.join("|"),
        }
    }

    #[test]
    fn a_path_is_where_it_leads_however_it_is_spelled() {
        let folder = std::env::temp_dir().join(format!("locum-subjects-{}", std::process::id()));
        let folder = {
            std::fs::create_dir_all(folder.join("src")).expect("a folder");
            std::fs::create_dir_all(folder.join("secrets")).expect("a folder");
            folder.canonicalize().expect("it is there")
        };
        std::os::unix::fs::symlink("../secrets", folder.join("src/link")).expect("a link");
        let whole = folder.display();
        let write = ToolSpec::new("write", Class::Write, Some("path"));
        let cases = [
            ("src/a".to_owned(), "src/a"),
            ("./src//x/../a".to_owned(), "src/a"),
            (format!("{whole}/secrets/new"), "secrets/new"),
            ("src/link/deep/b".to_owned(), "src/link/deep/b|secrets/deep/b"),
            (".".to_owned(), "."),
            ("../../../../../../../etc/passwd".to_owned(), "/etc/passwd"),
            ("spill:abc".to_owned(), "spill:abc"),
        ];
        for (path, expected) in cases {
            let found = parts(&write, &json!({ "path": path }), &folder);
            assert_eq!(found, expected, "{path}");
        }
        std::fs::remove_dir_all(&folder).expect("it goes");
    }

    #[test]
    fn an_address_is_the_same_in_any_spelling() {
        let fetch = ToolSpec::new("web_fetch", Class::Network, Some("url"));
        let cases = [
            ("https://evil.com/x", "https://evil.com/x"),
            ("HTTPS://EVIL.com:443/x", "https://evil.com/x"),
            ("https://me:pw@evil.com./x", "https://evil.com/x"),
            ("https://e%76il.com/x", "https://evil.com/x"),
            ("https:evil.com/x", "https://evil.com/x"),
            ("http://evil.com:8080", "http://evil.com:8080/"),
            ("not one", "none"),
        ];
        for (url, expected) in cases {
            assert_eq!(parts(&fetch, &json!({ "url": url }), Path::new("/w")), expected, "{url}");
        }
    }
}
