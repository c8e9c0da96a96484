//! `.mcp.json`: the servers that a project proposes. A person agrees to each before it starts.

use std::path::Path;

use crate::fields::Fields;
use crate::limits::FILE_BYTES_MAX;
use crate::problem::{Place, Problem, Problems};
use crate::server::{self, Server};
use crate::tree::{Node, Value};
use crate::{file, json};

/// The servers of a workspace's `.mcp.json`; none if there is no such file.
#[must_use]
pub fn proposed_servers(workspace: &Path) -> (Vec<Server>, Vec<Problem>) {
    let path = workspace.join(".mcp.json");
    // While a command runs, an empty folder keeps it from making one.
    if std::fs::symlink_metadata(&path).map_or(true, |it| it.is_dir()) {
        return (Vec::new(), Vec::new());
    }
    servers_in(&path, workspace)
}

/// The servers of one such file, wherever beneath `root` it is.
#[must_use]
pub fn servers_in(path: &Path, root: &Path) -> (Vec<Server>, Vec<Problem>) {
    let problems = Problems::new(path);
    let mut servers = Vec::new();
    match file::read(path, root, FILE_BYTES_MAX) {
        Ok(text) => servers = read(&text, &problems),
        Err(refused) => refused.tell(&problems),
    }
    (servers, problems.take())
}

fn read(text: &str, problems: &Problems) -> Vec<Server> {
    let node = match json::parse(text) {
        Ok(node) => node,
        Err(fault) => {
            problems.error(fault.place, fault.what, "no server is taken from it", fault.how);
            return Vec::new();
        }
    };
    let Some(fields) = Fields::of(&node, "the file", problems) else { return Vec::new() };
    let table = fields.node(&["mcpServers", "servers"]).map(|(_, table)| table);
    let Some(table) = table.or_else(|| bare(&node)) else {
        let why = "servers are listed under it";
        let how = "write: {\"mcpServers\": {\"name\": {\"command\": \"…\"}}}";
        problems.error(Place::START, "\"mcpServers\" is missing", why, how);
        return Vec::new();
    };
    if !std::ptr::eq(table, &raw const node) {
        fields.ignore(&["inputs", "$schema"]);
        fields.finish();
    }
    let mut servers = server::servers(table, problems);
    for server in &mut servers {
        server.needs_consent = true;
    }
    servers
}

/// Plugins leave the outer table away: every entry is a server by its looks.
fn bare(node: &Node) -> Option<&Node> {
    let Value::Map(entries) = &node.value else { return None };
    let keys = ["command", "cmd", "url", "uri"];
    let server = |node: &Node| keys.iter().any(|key| node.get(key).is_some());
    let all = !entries.is_empty() && entries.iter().all(|(_, entry)| server(entry));
    all.then_some(node)
}
