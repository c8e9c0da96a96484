//! `locum mcp`: which servers are configured, whether they come up, and what they offer.

use std::path::{Path, PathBuf};

use locum_mcp::State;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::data;
use crate::flags::{Mcp, McpAct};
use crate::look::text::clean;
use crate::print;
use crate::run::Places;
use crate::trust::{self, Person, approve};
use crate::workshop;

/// Somebody has to look after a server.
const SICK: u8 = 2;

pub(crate) fn obey(flags: &Mcp, places: &Places<'_>) -> Result<u8, Complaint> {
    match &flags.act {
        Some(McpAct::Approve { name, workspace }) => {
            let folder = workspace.as_deref().unwrap_or(Path::new("."));
            approve::approve(name, folder, places)
        }
        None => list(flags, places),
    }
}

fn list(flags: &Mcp, places: &Places<'_>) -> Result<u8, Complaint> {
    let here = PathBuf::from(".").canonicalize();
    let here = here.map_err(|error| Complaint::workspace(Path::new("."), &error))?;
    let folder = data::folder(places.data)?;
    let place = workshop::place("mcp", &here, &folder, places.config);
    let trust = trust::of(&here, &folder, flags.trust.into(), Person::Absent);
    let specs = workshop::server_specs(&place, &trust, Person::here())?;
    if specs.is_empty() && !flags.json {
        print::line(
            "No servers. Write them to mcp.json beside config.toml, or to .mcp.json in a folder \
             that you trust.",
        );
        return Ok(0);
    }
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let servers = tasks.block_on(workshop::serve(&place, specs));
    let states = servers.as_ref().map(locum_tools::Servers::states).unwrap_or_default();
    let mut sick = 0;
    let mut rows: Vec<Value> = Vec::new();
    for (name, state) in states {
        sick += u8::from(state != State::Ready);
        let tools: Vec<_> = servers.iter().flat_map(locum_tools::Servers::tools).collect();
        let tools: Vec<_> = tools.into_iter().filter(|tool| tool.server == name).collect();
        if flags.json {
            let tools: Vec<Value> = tools
                .iter()
                .map(|tool| json!({ "name": tool.full_name, "about": tool.description }))
                .collect();
            rows.push(json!({ "server": name, "state": words(&state), "tools": tools }));
            continue;
        }
        print::line(&clean(&format!("{name}: {}", words(&state))));
        for tool in tools {
            let about = tool.description.lines().next().unwrap_or_default();
            print::line(&clean(&format!("  {}  {about}", tool.full_name)));
        }
    }
    if flags.json {
        print::line(&Value::Array(rows).to_string());
    }
    Ok(if sick == 0 { 0 } else { SICK })
}

fn words(state: &State) -> String {
    match state {
        State::Idle => "not started".into(),
        State::Starting => "starting".into(),
        State::Ready => "ready".into(),
        State::Backoff { wait, attempt, why } => {
            format!("down ({why}); try {attempt} in {} s", wait.as_secs())
        }
        State::Login => "wants somebody to log in".into(),
        State::Broken { why } => format!("broken: {why}"),
    }
}
