//! Servers of tools that a definition brings: programs, addresses, and what we have ourselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::problem::{Place, Problems};
use crate::tree::{Node, Value};

/// Seconds; what the recipes' own program waits for a call.
pub const TIMEOUT_S: u64 = 300;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub name: String,
    /// How its file calls it, when its tools go by another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    pub about: String,
    pub how: Reach,
    /// The only tools of it that may be used; empty is all.
    pub available_tools: Vec<String>,
    /// Tools of it that may not; a star stands for the rest of a name, here and above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    pub timeout_s: u64,
    /// It came with a project: a person agrees to it once before it starts.
    pub needs_consent: bool,
    pub place: Place,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Reach {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// Names whose values the person keeps, to be passed on.
        env_keys: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        env: BTreeMap<String, String>,
        env_keys: Vec<String>,
        /// A Unix socket to reach the address through.
        socket: Option<String>,
    },
    /// What another program has inside; `tools` are ours that do the same.
    Builtin { tools: Vec<String> },
    /// A script to be run by an interpreter as a server.
    Python { code: String, dependencies: Vec<String> },
    /// Tools that a face answers.
    Frontend { tools: Vec<Json>, instructions: Option<String> },
    /// A server from the person's own configuration, by name.
    Named,
}

impl Server {
    /// Whether it is started for the definition, and its tools are this server's alone.
    #[must_use]
    pub fn brings(&self) -> bool {
        match self.how {
            Reach::Stdio { .. } | Reach::Http { .. } | Reach::Python { .. } => true,
            Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => false,
        }
    }
}

/// Variables that would make a program load somebody else's code.
const LOADERS: &[&str] = &[
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5LIB",
    "PERL5OPT",
    "GEM_PATH",
    "CLASSPATH",
    "GO111MODULE",
    "JAVA_TOOL_OPTIONS",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "APPINIT_DLLS",
    "SESSIONNAME",
    "COMSPEC",
    "TEMP",
    "TMP",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
];

/// The same fields have two names each; the first is the one people of that format know.
struct Names {
    command: [&'static str; 2],
    url: [&'static str; 2],
    env: [&'static str; 2],
}

const IN_RECIPES: Names =
    Names { command: ["cmd", "command"], url: ["uri", "url"], env: ["envs", "env"] };
const ELSEWHERE: Names =
    Names { command: ["command", "cmd"], url: ["url", "uri"], env: ["env", "envs"] };

const TYPES: &[(&str, &str)] = &[
    ("stdio", "stdio"),
    ("builtin", "builtin"),
    ("platform", "platform"),
    ("streamable_http", "http"),
    ("streamable-http", "http"),
    ("http", "http"),
    ("sse", "sse"),
    ("frontend", "frontend"),
    ("inline_python", "python"),
];

/// One entry of a recipe's `extensions`.
pub(crate) fn extension(node: &Node, problems: &Problems) -> Option<Server> {
    let fields = Fields::of(node, "an extension", problems)?;
    let place = node.place;
    let kind = fields.required(&["type"], "it says how the server is reached", "type: stdio");
    let kind = kind.and_then(|_| fields.choice(&["type"], TYPES));
    let name = fields.required(&["name"], "its tools are called by it", "name: search");
    let about = fields.text(&["description"]).unwrap_or_default();
    let available_tools = fields.texts(&["available_tools"]).unwrap_or_default();
    let timeout = fields.whole(&["timeout"], 1, 86_400);
    fields.ignore(&["bundled", "display_name"]);
    let how = reach(kind?, &fields, &IN_RECIPES, name.as_deref().unwrap_or(""));
    fields.finish();
    let timeout_s = timeout.unwrap_or(TIMEOUT_S);
    let server = Server { about, how: how?, available_tools, timeout_s, ..by_name(&name?, place) };
    Some(if server.brings() { server.named_for_recipes() } else { server })
}

fn reach(kind: &str, fields: &Fields<'_>, names: &Names, name: &str) -> Option<Reach> {
    match kind {
        "stdio" => {
            let command = program(fields, &names.command)?;
            let args = fields.texts(&["args"]).unwrap_or_default();
            let (env, env_keys) = environment(fields, &names.env);
            Some(Reach::Stdio { command, args, env, env_keys })
        }
        "http" => {
            let url = address(fields, &names.url)?;
            let headers = fields.free(&["headers"]);
            let (env, env_keys) = environment(fields, &names.env);
            for (name, value) in &headers {
                unfilled(name, value, fields, &["headers"]);
            }
            Some(Reach::Http { url, headers, env, env_keys, socket: fields.text(&["socket"]) })
        }
        "sse" => {
            let why = "this transport was given up by its protocol";
            let how = "type: streamable_http, with the server's newer address";
            let what = "a server of the type \"sse\" is left out";
            fields.problems().warn(fields.place("type"), what, why, how);
            fields.ignore(&["uri", "url", "envs", "env_keys", "headers"]);
            None
        }
        "frontend" => Some(frontend(fields)),
        "python" => Some(Reach::Python {
            code: fields.required(&["code"], "it is the server", "code: |")?,
            dependencies: fields.texts(&["dependencies"]).unwrap_or_default(),
        }),
        _ => Some(builtin(fields, name)),
    }
}

fn frontend(fields: &Fields<'_>) -> Reach {
    let what = "a frontend extension brings no tools";
    let why = "the window that would answer them belongs to another program";
    let how = "delete it, or write type: stdio with a server of your own";
    fields.problems().warn(fields.place("type"), what, why, how);
    Reach::Frontend {
        tools: fields.list(&["tools"]).iter().map(Node::to_json).collect(),
        instructions: fields.text(&["instructions"]),
    }
}

/// Platform extensions that are about sub-agents, lists and code: ours are always there.
const OURS_ANYWAY: &[&str] = &[
    "summon",
    "analyze",
    "todo",
    "skills",
    "extensionmanager",
    "chatrecall",
    "code_execution",
    "apps",
    "orchestrator",
    "summarize",
];

fn builtin(fields: &Fields<'_>, name: &str) -> Reach {
    let tools = crate::tools::of_builtin(name).unwrap_or_default();
    if tools.is_empty() && !name.is_empty() && !OURS_ANYWAY.contains(&name) {
        let what = format!("the built-in extension \"{name}\" is not one of ours");
        let why = "its tools are not there unless a server of that name is configured";
        fields.problems().warn(fields.place("name"), what, why, "developer and memory are ours");
    }
    Reach::Builtin { tools: tools.iter().map(|tool| (*tool).to_owned()).collect() }
}

fn program(fields: &Fields<'_>, keys: &[&'static str]) -> Option<String> {
    fields.required(keys, "it is the program", &format!("{}: npx", keys[0]))
}

fn address(fields: &Fields<'_>, keys: &[&'static str]) -> Option<String> {
    let how = format!("{}: https://host/mcp", keys[0]);
    let url = fields.required(keys, "it is the server's address", &how)?;
    // A template may stand for all of it.
    let known = ["http://", "https://", "{{", "${"].iter().any(|start| url.starts_with(start));
    if known || url.starts_with(crate::template::is_sketch) {
        return Some(url);
    }
    let what = format!("the address {} is not http or https", crate::problem::quote(&url));
    let at = fields.node(keys).map_or(Place::START, |(_, node)| node.place);
    let how = format!("write: {}: https://host/mcp", keys[0]);
    fields.problems().error(at, what, "servers are reached so", how);
    None
}

/// Variables with values, and the names of those whose values the person keeps.
fn environment(
    fields: &Fields<'_>,
    keys: &[&'static str],
) -> (BTreeMap<String, String>, Vec<String>) {
    let mut env = fields.free(keys);
    let mut passed = fields.texts(&["env_keys"]).unwrap_or_default();
    // `TOKEN: ${TOKEN}` is how other programs say that it is the person's.
    env.retain(|name, value| {
        let same = [format!("${{{name}}}"), format!("${name}")].contains(value);
        if same && !passed.contains(name) {
            passed.push(name.clone());
        }
        !same
    });
    for (name, value) in &env {
        unfilled(name, value, fields, keys);
    }
    let env_key = keys.iter().find(|key| fields.has(key)).unwrap_or(&keys[0]);
    env.retain(|name, _| {
        let bad = LOADERS.contains(&name.to_uppercase().as_str());
        if bad {
            let what = format!("the variable {name} is left out");
            let why = "it decides which code programs load";
            fields.problems().warn(
                fields.place_below(&[env_key, name]),
                what,
                why,
                "name the program by its path",
            );
        }
        !bad
    });
    (env, passed)
}

/// `$NAME` stays as it is; only `${NAME}` is a variable.
fn unfilled(name: &str, value: &str, fields: &Fields<'_>, keys: &[&str]) {
    let begins = |sign: char| sign.is_ascii_uppercase() || sign == '_';
    let mut after = value.split('$').skip(1).filter(|rest| rest.starts_with(begins));
    let Some(rest) = after.next() else { return };
    let goes_on = |sign: char| begins(sign) || sign.is_ascii_digit();
    let variable = rest.split(|sign| !goes_on(sign)).next().unwrap_or_default();
    let what = format!("{name} has {} in it, which stays as it is", crate::problem::quote(value));
    let how = format!("write: ${{{variable}}}");
    let key = keys.iter().find(|key| fields.has(key)).copied().unwrap_or_default();
    let why = "a variable is put in only where it is in braces";
    fields.problems().warn(fields.place_below(&[key, name]), what, why, how);
}

/// `mcpServers`, in an agent's file or a file of its own: a table, a list of names, or both.
pub(crate) fn servers(node: &Node, problems: &Problems) -> Vec<Server> {
    match &node.value {
        Value::Map(fields) => {
            let named = fields.iter().filter_map(|(key, node)| one(&key.text, node, problems));
            named.collect()
        }
        Value::List(items) => items.iter().flat_map(|item| listed(item, problems)).collect(),
        Value::Plain(text) | Value::Quoted(text) => {
            crate::fields::split(text).iter().map(|name| by_name(name, node.place)).collect()
        }
        Value::Null => Vec::new(),
    }
}

fn listed(item: &Node, problems: &Problems) -> Vec<Server> {
    match item.text() {
        Some(name) => vec![by_name(name, item.place)],
        None => servers(item, problems),
    }
}

pub(crate) fn by_name(name: &str, place: Place) -> Server {
    Server {
        name: name.to_owned(),
        called: None,
        about: String::new(),
        how: Reach::Named,
        available_tools: Vec::new(),
        denied_tools: Vec::new(),
        timeout_s: TIMEOUT_S,
        needs_consent: false,
        place,
    }
}

/// An entry named by its key. What is missing of `type` is plain from the rest.
fn one(name: &str, node: &Node, problems: &Problems) -> Option<Server> {
    if node.is_null() {
        return Some(by_name(name, node.place));
    }
    let fields = Fields::of(node, &format!("the server \"{name}\""), problems)?;
    let types = [
        ("stdio", "stdio"),
        ("local", "stdio"),
        ("http", "http"),
        ("sse", "sse"),
        ("streamable-http", "http"),
        ("streamable_http", "http"),
        ("remote", "http"),
    ];
    let kind = fields.choice(&["type"], &types);
    let address = fields.has("url") || fields.has("uri");
    let told = kind.is_none() && fields.has("type");
    let kind = match kind {
        Some("sse") => "sse",
        _ if fields.has("command") || fields.has("cmd") => "stdio",
        _ if address => "http",
        None if told => return None,
        kind => kind.unwrap_or("stdio"),
    };
    let how = reach(kind, &fields, &ELSEWHERE, name)?;
    let about = fields.text(&["description"]).unwrap_or_default();
    let available_tools = fields.texts(&["tools", "available_tools"]);
    let timeout = fields.whole(&["timeout"], 1, 86_400_000);
    let off = fields.flag(&["disabled"]).unwrap_or(false);
    let why = "only a person allows, never a file";
    fields.misplaced(&["alwaysAllow", "autoApprove"], why, "allow it when you are asked");
    fields.misplaced(&["cwd"], "a file does not choose where it starts", "put the path in args");
    fields.misplaced(&["oauth"], "signing in is not read from a file", "delete it");
    fields.finish();
    let mut available_tools = available_tools.unwrap_or_default();
    available_tools.retain(|tool| tool != "*");
    // Thousands are milliseconds, as the other programs that read this write them.
    let timeout_s = timeout.map_or(TIMEOUT_S, |time| if time >= 1000 { time / 1000 } else { time });
    let server = by_name(name, node.place);
    (!off).then_some(Server { about, how, available_tools, timeout_s, ..server })
}
