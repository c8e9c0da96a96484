//! `locum mcp`: which servers are configured, whether they come up, what they offer, and logins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_definitions::Wants;
use locum_mcp::{ServerSpec, State};
use locum_tools::{Place, Servers};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::complaint::Complaint;
use crate::config;
use crate::data;
use crate::data::Places;
use crate::flags::{Mcp, McpAct};
use crate::login;
use crate::print;
use crate::text::clean;
use crate::trust::{self, Person, approve};
use crate::workshop;

/// Somebody has to look after a server.
const SICK: u8 = 2;
/// Whoever asks how servers are waits longer than a run does.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn obey(flags: &Mcp, places: &Places<'_>) -> Result<u8, Complaint> {
    if let Some(McpAct::Approve { name, workspace }) = &flags.act {
        let folder = workspace.as_deref().unwrap_or(Path::new("."));
        return approve::approve(name, folder, places);
    }
    let here = PathBuf::from(".").canonicalize();
    let here = here.map_err(|error| Complaint::workspace(Path::new("."), &error))?;
    let folder = data::folder(places.data)?;
    let place = workshop::place("mcp", &here, &folder, places.config);
    let trust = trust::of(&here, &folder, flags.trust.into(), Person::Absent);
    let settings = config::read(places.config)?;
    let (specs, wants) = workshop::server_specs(&place, &settings, &trust, Person::here())?;
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    match &flags.act {
        Some(McpAct::Approve { .. }) => Ok(0),
        None | Some(McpAct::List) => Ok(list(flags, &tasks, &place, specs, &wants)),
        Some(McpAct::Resources { server }) => {
            let told = tasks.block_on(async {
                let (servers, _) = Servers::probe(one(specs, server)?, &place, PATIENCE).await;
                servers.resources(server).await.map_err(|error| Complaint::server(server, &error))
            })?;
            tell(&told);
            Ok(0)
        }
        Some(McpAct::Prompts { server }) => {
            let told = tasks.block_on(async {
                let (servers, _) = Servers::probe(one(specs, server)?, &place, PATIENCE).await;
                servers.prompts(server).await.map_err(|error| Complaint::server(server, &error))
            })?;
            tell(&told);
            Ok(0)
        }
        Some(McpAct::Login(wanted)) => {
            let specs = one(specs, &wanted.server)?;
            tasks.block_on(async {
                let (servers, _) = Servers::probe(specs, &place, PATIENCE).await;
                login::log_in(wanted, servers.client()).await
            })
        }
        Some(McpAct::Logout { server }) => {
            let specs = one(specs, server)?;
            let servers = Servers::unstarted(specs, &place);
            let forgotten = tasks.block_on(async { servers.client().logout(server) });
            forgotten.map_err(|error| Complaint::server(server, &error))?;
            print::line(&clean(&format!(
                "The login at {server} is forgotten. Its tokens stay valid there until they expire."
            )));
            Ok(0)
        }
    }
}

fn one(specs: Vec<ServerSpec>, server: &str) -> Result<Vec<ServerSpec>, Complaint> {
    let found: Vec<ServerSpec> = specs.into_iter().filter(|spec| spec.name == server).collect();
    if found.is_empty() {
        let unknown = locum_mcp::Error::UnknownServer { server: server.to_owned() };
        return Err(Complaint::server(server, &unknown));
    }
    Ok(found)
}

/// A server's words, line by line.
fn tell(rows: &str) {
    for row in rows.lines() {
        print::line(&clean(row));
    }
}

fn list(
    flags: &Mcp,
    tasks: &Runtime,
    place: &Place,
    specs: Vec<ServerSpec>,
    wants: &BTreeMap<String, Wants>,
) -> u8 {
    if specs.is_empty() && !flags.json {
        print::line(
            "No servers. Write them to mcp.json beside config.toml, or to .mcp.json in a folder \
             that you trust.",
        );
        return 0;
    }
    let (servers, _) = tasks.block_on(Servers::probe(specs, place, PATIENCE));
    let all = servers.tools();
    let mut sick = 0;
    let mut rows: Vec<Value> = Vec::new();
    for (name, state) in servers.states() {
        sick += u8::from(state != State::Ready);
        let tools: Vec<_> = all.iter().filter(|tool| tool.server == name).collect();
        let (word, why) = words(&state);
        if flags.json {
            let tools: Vec<Value> = tools
                .iter()
                .map(|tool| json!({ "name": tool.full_name, "about": tool.description }))
                .collect();
            let given: Vec<&str> = wants.get(&name).into_iter().flat_map(Wants::names).collect();
            rows.push(json!({
                "server": name, "state": word, "why": why, "tools": tools, "variables": given,
                "left_out": servers.client().left_out(&name),
            }));
            continue;
        }
        let count =
            if tools.len() == 1 { "1 tool".into() } else { format!("{} tools", tools.len()) };
        let why = why.unwrap_or(count);
        print::line(&clean(&format!("{name}: {word}, {why}")));
        if let Some(wants) = wants.get(&name) {
            print::line(&clean(&format!("  with {wants}")));
        }
        if state == State::Login {
            print::line(&clean(&format!("do: locum mcp login {name}")));
        }
        for tool in tools {
            let about = tool.description.lines().next().unwrap_or_default();
            print::line(&clean(&format!("  {}  {about}", tool.full_name)));
        }
        for why in servers.client().left_out(&name) {
            print::line(&clean(&format!("  left out: {why}")));
        }
    }
    if flags.json {
        print::line(&Value::Array(rows).to_string());
    }
    if sick == 0 { 0 } else { SICK }
}

/// One word for programs, and why for people.
fn words(state: &State) -> (&'static str, Option<String>) {
    match state {
        State::Idle => ("idle", Some("not started".into())),
        State::Starting => ("starting", Some("it has not answered yet".into())),
        State::Ready => ("connected", None),
        State::Backoff { wait, attempt, why } => {
            ("failed", Some(format!("{why}; try {attempt} in {} s", wait.as_secs())))
        }
        State::Login => ("needs login", Some("somebody has to log in".into())),
        State::Broken { why } => ("failed", Some(why.clone())),
    }
}
