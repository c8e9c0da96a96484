//! Reads `.mcp.json` and other files with a map of `mcpServers`, as people already have them.
//! Every complaint says where: `file:line: what`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::place::Places;
use crate::name;
use crate::spec::{ServerSpec, Transport};

mod place;

/// A file of servers is a page or two; a megabyte is no such file.
const FILE_BYTES: usize = 1 << 20;

/// Something in the file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// What was read. A server with an error is left out; one with only a warning is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub servers: Vec<ServerSpec>,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

/// What a text is with its variables in it, or why it cannot be. Whoever asks knows which it may
/// have.
pub type Fill<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// `file` is only named in complaints. Every text is what `filled` makes of it.
pub fn parse(file: &str, text: &str, filled: Fill<'_>) -> Config {
    let mut reader = Reader { file, filled, places: Places::default(), out: Config::default() };
    reader.read(text);
    reader.out
}

struct Reader<'a> {
    file: &'a str,
    filled: Fill<'a>,
    places: Places,
    out: Config,
}

impl Reader<'_> {
    fn read(&mut self, text: &str) {
        if text.len() > FILE_BYTES {
            return self.fail(1, format!("{} bytes; at most {FILE_BYTES} are read", text.len()));
        }
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return self.fail(error.line().max(1), said(&error)),
        };
        self.places = Places::of(text);
        let Value::Object(root) = value else {
            return self.fail(1, "an object with `mcpServers` is expected".to_owned());
        };
        let found = ["mcpServers", "servers"].into_iter().find(|key| root.contains_key(*key));
        let (Some(key), repeated) = (found, self.places.repeated()) else {
            return self.fail(1, "`mcpServers` is missing".to_owned());
        };
        for (line, path) in repeated {
            self.warn(line, format!("`{path}` is given twice; the last one counts"));
        }
        let Value::Object(servers) = &root[key] else {
            return self.fail(self.line(&[key]), format!("`{key}` is not an object"));
        };
        for (name, entry) in servers {
            let plain = name::plain(name);
            let others = servers.keys().filter(|other| *other != name);
            let is_taken =
                plain.is_empty() || others.map(|it| name::plain(it)).any(|it| it == plain);
            self.server((key, name), if is_taken { name } else { &plain }, entry);
        }
    }

    /// `called` is how its tools begin: lists and rules name them as other programs do.
    fn server(&mut self, (key, name): (&str, &str), called: &str, entry: &Value) {
        let line = self.line(&[key, name]);
        let Value::Object(map) = entry else {
            return self.fail(line, format!("server `{name}` is not an object"));
        };
        if map.get("disabled") == Some(&Value::Bool(true)) {
            return;
        }
        let before = self.out.errors.len();
        let at = At { key, name, map };
        self.unknown_keys(&at);
        let kind = self.text(&at, "type").or_else(|| self.text(&at, "transport"));
        let remote = match kind.as_deref() {
            None => map.contains_key("url"),
            Some("stdio" | "local") => false,
            Some("http" | "streamable-http" | "streamableHttp" | "remote") => true,
            Some("sse") => {
                let what = "the old `sse` transport is not spoken; use `http`, most servers do";
                return self.fail(self.line(&[key, name, "type"]), what.to_owned());
            }
            Some(other) => {
                let what = format!("`type` is `{other}`; `stdio` and `http` are known");
                return self.fail(self.line(&[key, name, "type"]), what);
            }
        };
        let transport = if remote { self.http(&at) } else { self.stdio(&at) };
        let Some(transport) = transport else { return };
        if called != name {
            self.warn(line, format!("the tools of `{name}` are called `{called}__…` here"));
        }
        let mut spec = ServerSpec::new(called, transport);
        if let Some(timeout) = self.millis(&at, "timeout") {
            spec.timeout = timeout;
        }
        spec.allowed_tools = map.get("allowedTools").map(|_| self.list(&at, "allowedTools"));
        if self.out.errors.len() == before {
            self.out.servers.push(spec);
        }
    }

    fn unknown_keys(&mut self, at: &At<'_>) {
        const KNOWN: &[&str] = &[
            "allowedTools",
            "args",
            "command",
            "cwd",
            "disabled",
            "env",
            "headers",
            "timeout",
            "transport",
            "type",
            "url",
        ];
        for key in at.map.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            let line = self.line(&[at.key, at.name, key]);
            self.warn(line, format!("`{key}` means nothing here"));
        }
    }

    fn http(&mut self, at: &At<'_>) -> Option<Transport> {
        let Some(url) = self.text(at, "url") else {
            self.fail(self.line(&[at.key, at.name]), format!("server `{}` has no `url`", at.name));
            return None;
        };
        // Before its variables are known, one that begins with one may be any.
        if !["http://", "https://", "${"].iter().any(|start| url.starts_with(start)) {
            let line = self.line(&[at.key, at.name, "url"]);
            self.fail(line, format!("`{url}` is no http or https address"));
        }
        let headers = self.table(at, "headers");
        Some(Transport::Http { url, headers })
    }

    fn stdio(&mut self, at: &At<'_>) -> Option<Transport> {
        let Some(command) = self.text(at, "command").filter(|command| !command.is_empty()) else {
            let what = format!("server `{}` has neither `command` nor `url`", at.name);
            self.fail(self.line(&[at.key, at.name]), what);
            return None;
        };
        let args = self.list(at, "args");
        let env = self.table(at, "env");
        let cwd = self.text(at, "cwd").map(PathBuf::from);
        Some(Transport::Stdio { command, args, env, cwd })
    }

    fn text(&mut self, at: &At<'_>, field: &str) -> Option<String> {
        let value = at.map.get(field)?;
        let line = self.line(&[at.key, at.name, field]);
        self.string(line, field, value)
    }

    fn list(&mut self, at: &At<'_>, field: &str) -> Vec<String> {
        let line = self.line(&[at.key, at.name, field]);
        match at.map.get(field) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().filter_map(|item| self.string(line, field, item)).collect()
            }
            Some(_) => {
                self.fail(line, format!("`{field}` is not a list"));
                Vec::new()
            }
        }
    }

    fn table(&mut self, at: &At<'_>, field: &str) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        match at.map.get(field) {
            None => {}
            Some(Value::Object(entries)) => {
                for (key, value) in entries {
                    let line = self.line(&[at.key, at.name, field, key]);
                    if let Some(value) = self.string(line, key, value) {
                        table.insert(key.clone(), value);
                    }
                }
            }
            Some(_) => {
                let line = self.line(&[at.key, at.name, field]);
                self.fail(line, format!("`{field}` is not an object"));
            }
        }
        table
    }

    fn millis(&mut self, at: &At<'_>, field: &str) -> Option<Duration> {
        let value = at.map.get(field)?;
        let millis = value.as_u64().filter(|millis| (1..=86_400_000).contains(millis));
        if millis.is_none() {
            let line = self.line(&[at.key, at.name, field]);
            self.fail(line, format!("`{field}` is in milliseconds, from 1 to 86400000"));
        }
        millis.map(Duration::from_millis)
    }

    fn string(&mut self, line: usize, field: &str, value: &Value) -> Option<String> {
        let Value::String(text) = value else {
            self.fail(line, format!("`{field}` takes text"));
            return None;
        };
        match (self.filled)(text) {
            Ok(text) => Some(text),
            Err(what) => {
                self.fail(line, what);
                None
            }
        }
    }

    fn line(&self, path: &[&str]) -> usize {
        self.places.line(path)
    }

    fn fail(&mut self, line: usize, what: String) {
        self.out.errors.push(Problem { file: self.file.to_owned(), line, what });
    }

    fn warn(&mut self, line: usize, what: String) {
        self.out.warnings.push(Problem { file: self.file.to_owned(), line, what });
    }
}

/// One server's entry and the way to it.
struct At<'a> {
    key: &'a str,
    name: &'a str,
    map: &'a Map<String, Value>,
}

/// What the parser says, without the place that is said already.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

#[cfg(test)]
mod tests;
