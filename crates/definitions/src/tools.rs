//! Names of tools in other systems, and what they are here.

use crate::definition::ToolUse;
use crate::fields::Placed;
use crate::problem::{Place, Problems};

/// Their name in small letters, without dashes and underscores; ours. Several of ours where
/// theirs does the work of several.
const NAMES: &[(&str, &[&str])] = &[
    ("read", &["read"]),
    ("readfile", &["read"]),
    ("readmanyfiles", &["read"]),
    ("viewfile", &["read"]),
    ("view", &["read"]),
    ("notebookread", &["read"]),
    ("write", &["write"]),
    ("writefile", &["write"]),
    ("createfile", &["write"]),
    ("writetofile", &["write"]),
    ("fswrite", &["write", "edit"]),
    ("fsread", &["read", "ls", "grep"]),
    ("edit", &["edit"]),
    ("multiedit", &["edit"]),
    ("editfile", &["edit"]),
    ("editfiles", &["edit", "write"]),
    ("replace", &["edit"]),
    ("strreplace", &["edit"]),
    ("applypatch", &["edit"]),
    ("patch", &["edit"]),
    ("notebookedit", &["edit"]),
    ("ls", &["ls"]),
    ("list", &["ls"]),
    ("listdir", &["ls"]),
    ("listfiles", &["ls"]),
    ("listdirectory", &["ls"]),
    ("glob", &["glob"]),
    ("findfiles", &["glob"]),
    ("globsearch", &["glob"]),
    ("globfiles", &["glob"]),
    ("filesearch", &["glob"]),
    ("grep", &["grep"]),
    ("grepsearch", &["grep"]),
    ("textsearch", &["grep"]),
    ("greptool", &["grep"]),
    ("searchfilecontent", &["grep"]),
    ("search", &["grep", "glob"]),
    ("codebase", &["grep", "glob"]),
    ("bash", &["exec"]),
    ("shell", &["exec"]),
    ("exec", &["exec"]),
    ("execute", &["exec"]),
    ("executebash", &["exec"]),
    ("executecommand", &["exec"]),
    ("terminal", &["exec"]),
    ("runinterminal", &["exec"]),
    ("runcommand", &["exec"]),
    ("runcommands", &["exec"]),
    ("runshellcommand", &["exec"]),
    ("powershell", &["exec"]),
    ("bashoutput", &["process"]),
    ("killshell", &["process"]),
    ("killbash", &["process"]),
    ("process", &["process"]),
    ("webfetch", &["web_fetch"]),
    ("fetch", &["web_fetch"]),
    ("web", &["web_fetch"]),
    ("fetchwebpage", &["web_fetch"]),
    ("task", &["spawn_agent", "use_agent"]),
    ("agent", &["spawn_agent", "use_agent"]),
    ("runsubagent", &["spawn_agent", "use_agent"]),
    ("spawnagent", &["spawn_agent"]),
    ("useagent", &["use_agent"]),
    ("skill", &["use_skill"]),
    ("useskill", &["use_skill"]),
    ("callrecipe", &["call_recipe"]),
    ("platformcallrecipe", &["call_recipe"]),
    ("platformspawninteractivesubagent", &["use_agent"]),
    ("sessionsspawn", &["call_recipe"]),
    ("delegate", &["call_recipe", "spawn_agent"]),
    ("sendmessage", &["agent_eval"]),
    ("askuserquestion", &["ask_user"]),
    ("askuser", &["ask_user"]),
    ("askparent", &["ask_parent"]),
    ("interrupt", &["ask_user"]),
    ("complete", &["complete"]),
    ("wait", &["wait"]),
    ("listagents", &["list_agents"]),
    ("mcplistagents", &["list_agents"]),
    ("getagent", &["get_agent"]),
    ("mcpgetagent", &["get_agent"]),
    ("agenteval", &["agent_eval"]),
    ("agentclose", &["agent_close"]),
    ("memorysave", &["memory_save"]),
    ("remember", &["memory_save"]),
    ("savememory", &["memory_save"]),
    ("memorysearch", &["memory_search"]),
    ("memoryget", &["memory_get"]),
    ("cron", &["cron"]),
    ("message", &["message"]),
    ("developershell", &["exec"]),
    ("developertexteditor", &["read", "write", "edit"]),
    ("developerwrite", &["write"]),
    ("developeredit", &["edit"]),
    ("developertree", &["ls"]),
    ("texteditor", &["read", "write", "edit"]),
    ("strreplacebasededittool", &["read", "write", "edit"]),
    ("tree", &["ls"]),
];

/// Tools of others that have no counterpart here and are no loss.
const NOTHING: &[&str] = &[
    "todowrite",
    "todoread",
    "todo",
    "todos",
    "writetodos",
    "exitplanmode",
    "enterplanmode",
    "websearch",
    "googlewebsearch",
    "googlesearch",
    "tasklist",
    "taskget",
    "taskcreate",
    "taskupdate",
    "githubrepo",
    "problems",
    "usages",
    "changes",
    "testfailure",
    "findtestfiles",
    "runtests",
    "runtasks",
    "runnotebooks",
    "opensimplebrowser",
    "extensions",
    "new",
    "vscode",
    "vscodeapi",
    "terminallastcommand",
    "terminalselection",
    "searchresults",
    "slashcommand",
    "lsp",
    "think",
];

/// Whole groups that one word stands for.
fn group(word: &str) -> Option<&'static [&'static str]> {
    match word {
        "developer" => Some(&["read", "write", "edit", "ls", "glob", "grep", "exec", "process"]),
        "memory" => Some(&["memory_save", "memory_search", "memory_get"]),
        _ => None,
    }
}

/// The tools that a bundled extension of another system stands for.
pub(crate) fn of_builtin(name: &str) -> Option<&'static [&'static str]> {
    group(&plain(name))
}

/// Our names for the tools of a list. `None`: the list says "everything".
pub(crate) fn ours(words: &[Placed], problems: &Problems) -> Option<Vec<ToolUse>> {
    let mut uses = Vec::new();
    for (word, at) in words {
        if matches!(word.trim(), "*" | "all") {
            return None;
        }
        uses.extend(one(word, *at, problems));
    }
    uses.dedup();
    Some(uses)
}

pub(crate) fn one(word: &str, at: Place, problems: &Problems) -> Vec<ToolUse> {
    let (name, pattern) = match word.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')'))),
        None => (word.trim(), None),
    };
    let pattern = pattern.filter(|text| *text != "*");
    let named = |name: &str| ToolUse {
        name: name.to_owned(),
        pattern: pattern.map(|text| calls(name, text)),
    };
    let plain_name = plain(name);
    if let Some((_, ours)) = NAMES.iter().find(|(theirs, _)| *theirs == plain_name) {
        return ours.iter().map(|name| named(name)).collect();
    }
    if let Some(ours) = group(&plain_name) {
        return ours.iter().map(|name| named(name)).collect();
    }
    if let Some(tool) = of_server(name) {
        return vec![named(&tool)];
    }
    let what = format!("the tool \"{name}\" is not known");
    if NOTHING.contains(&&*plain_name) {
        let why = "it has no counterpart here; the agent goes without it";
        problems.warn(at, what, why, "delete it from the list");
    } else {
        let why = "it is kept, in case a server offers it";
        problems.warn(at, what, why, "ours are read, write, edit, ls, glob, grep, exec, web_fetch");
    }
    vec![named(name)]
}

/// `Bash(git add:*)` and `Bash(git add *)` mean `git add`, with or without more words. A domain's
/// star is its own: `WebFetch(domain:*.example.com)`.
fn calls(tool: &str, pattern: &str) -> String {
    if tool == "web_fetch" && pattern.starts_with("domain:") {
        return pattern.to_owned();
    }
    let start = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match start {
        Some(start) if tool == "exec" => format!("{start}:*"),
        Some(_) | None => pattern.replace(":*", " *"),
    }
}

/// `mcp__github__create_issue`, `github__create_issue`, `github/*`: a tool of a server, or all.
fn of_server(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        let whole = if rest.contains("__") { rest.to_owned() } else { format!("{rest}__*") };
        return Some(whole);
    }
    let (server, tool) = name.split_once("__").or_else(|| name.split_once('/'))?;
    (!server.is_empty() && !tool.is_empty()).then(|| format!("{server}__{tool}"))
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|sign| !matches!(sign, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}
