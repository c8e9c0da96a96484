//! `.mcp.json`: the servers that a project proposes. A person agrees to each before it starts.

use std::path::Path;

use crate::fields::Fields;
use crate::limits::FILE_BYTES_MAX;
use crate::problem::{Place, Problem, Problems};
use crate::server::{self, Server};
use crate::{file, json};

/// The servers of a workspace's `.mcp.json`; none if there is no such file.
#[must_use]
pub fn proposed_servers(workspace: &Path) -> (Vec<Server>, Vec<Problem>) {
    let path = workspace.join(".mcp.json");
    if std::fs::symlink_metadata(&path).is_err() {
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
    let Some((_, table)) = fields.node(&["mcpServers", "servers"]) else {
        let why = "servers are listed under it";
        problems.error(Place::START, "\"mcpServers\" is missing", why, "{\"mcpServers\": {…}}");
        return Vec::new();
    };
    fields.ignore(&["inputs", "$schema"]);
    fields.finish();
    let mut servers = server::servers(table, problems);
    for server in &mut servers {
        server.needs_consent = true;
    }
    servers
}
