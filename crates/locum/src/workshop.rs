//! The tools a session has: what its script brings, what works on files, commands, pages and
//! memory, and what MCP servers offer.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use locum_mcp::ServerSpec;
use locum_runtime::clock::Clock;
use locum_runtime::schema::{BuiltIn, Describe};
use locum_runtime::script::{Props, Script};
use locum_runtime::tool::{Toolbox, Tools};
use locum_tools::{Exec, Files, Place, Recall, Servers, Shelf, Trouble, Web};

use crate::complaint::Complaint;
use crate::config::{self, set};
use crate::model::Means;
use crate::print;

/// Where a session works, from what this program knows.
pub(crate) fn place(session: &str, workspace: &Path, data: &Path, config: Option<&Path>) -> Place {
    // A rule for a path that is not absolute would hold in every folder.
    let named = config.and_then(|file| path::absolute(file).ok());
    Place {
        session: session.to_owned(),
        workspace: workspace.to_owned(),
        data: data.to_owned(),
        config: named.or_else(config::default_path),
        home: set("HOME").map(PathBuf::from),
    }
}

/// The servers people have configured: their own, and those of the folder if it is trusted.
pub(crate) fn server_specs(place: &Place, trusted: bool) -> Result<Vec<ServerSpec>, Complaint> {
    let environment = environment();
    let own = place.config.as_deref().and_then(Path::parent).map(|it| it.join("mcp.json"));
    let theirs = place.workspace.join(".mcp.json");
    let mut specs: Vec<ServerSpec> = Vec::new();
    for file in own.into_iter().chain(trusted.then_some(theirs)) {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Complaint::servers(&format!("{}: {error}", file.display()))),
        };
        let read = locum_mcp::config::parse(&file.display().to_string(), &text, &environment);
        for warning in &read.warnings {
            print::note(&format!("warning: {warning}"));
        }
        if !read.errors.is_empty() {
            let all: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
            return Err(Complaint::servers(&all.join("\n")));
        }
        let is_new = |spec: &ServerSpec| specs.iter().all(|other| other.name != spec.name);
        let new: Vec<ServerSpec> = read.servers.into_iter().filter(is_new).collect();
        specs.extend(new);
    }
    Ok(specs)
}

/// What of the environment can be written down as text.
fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// What models are told of tools, and where they find pictures.
pub(crate) fn means(place: &Place, servers: Option<&Servers>) -> Means {
    let describe: Arc<dyn Describe> = Arc::new(BuiltIn);
    Means {
        describe: match servers {
            Some(servers) => servers.describe(describe),
            None => describe,
        },
        album: Some(Arc::new(Shelf::new(&place.data))),
    }
}

/// Everything but what a script brings, which comes first: it stands for the real thing.
pub(crate) fn furnish(
    place: &Place,
    script: Option<&Script>,
    servers: Option<Servers>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Tools>, Complaint> {
    let files = Files::new(place);
    let files = files.map_err(|error| Complaint::workspace(&place.workspace, &error))?;
    let mut boxes: Vec<Box<dyn Toolbox>> = Vec::new();
    if let Some(script) = script {
        boxes.push(Box::new(Props::new(script, Arc::clone(clock))));
    }
    let exec = Exec::new(place.clone());
    if let Some(why) = exec.bare() {
        print::note(&format!("note: {why}. You are asked before every command."));
    }
    boxes.push(Box::new(files));
    boxes.push(Box::new(exec));
    boxes.push(Box::new(Web::default()));
    boxes.push(Box::new(Recall::new(place, Arc::clone(clock))));
    boxes.extend(servers.map(|servers| Box::new(servers) as Box<dyn Toolbox>));
    Ok(Arc::new(Tools::new(boxes)))
}

/// Starts the servers, if there are any.
pub(crate) async fn serve(place: &Place, specs: Vec<ServerSpec>) -> Option<Servers> {
    if specs.is_empty() {
        return None;
    }
    let (servers, trouble) = Servers::start(specs, place).await;
    for Trouble { server, why } in trouble {
        print::note(&format!("note: the tools of {server} are missing: {why}"));
    }
    Some(servers)
}
