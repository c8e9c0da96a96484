//! Which servers are configured, in the files where people keep them: their own `mcp.json`, and a
//! folder's `.mcp.json`.

use std::collections::BTreeMap;
use std::path::Path;

use locum_definitions::limits::FILE_BYTES_MAX;
use locum_definitions::{Refused, read_text};
use locum_mcp::ServerSpec;
use locum_mcp::config::Config;
use locum_tools::environment;

use crate::complaint::Complaint;
use crate::{print, providers};

/// The person's own. Wherever the file leads to, the person put it there.
pub(crate) fn of_person(config: Option<&Path>) -> Result<Vec<ServerSpec>, Complaint> {
    let Some(folder) = config.and_then(Path::parent) else { return Ok(Vec::new()) };
    let file = folder.join("mcp.json");
    let text = servers_text(&file, Path::new("/"))?;
    let read = read_servers(&file, &text, &environment());
    if !read.errors.is_empty() {
        let all: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
        return Err(Complaint::servers(&all.join("\n")));
    }
    Ok(read.servers)
}

/// A folder's servers: as they would run, and as they are written. Both from one reading: what a
/// person approves must be what starts. What is wrong in a file that somebody else wrote is told
/// and left out. Keys to models are the person's, and are not there for it.
pub(crate) fn of_folder(
    file: &Path,
    folder: &Path,
) -> Result<(Vec<ServerSpec>, Vec<ServerSpec>), Complaint> {
    let mut environment = environment();
    environment.retain(|name, _| providers::keys().all(|key| key != name));
    let text = servers_text(file, folder)?;
    let read = read_servers(file, &text, &environment);
    for error in &read.errors {
        print::note(&format!("warning: {error}; it is left out"));
    }
    let names = names_only(&environment);
    let written = locum_mcp::config::parse(&file.display().to_string(), &text, &names);
    Ok((read.servers, written.servers))
}

/// A file that is not there has no servers. While a command runs, an empty folder keeps it from
/// making one.
fn servers_text(file: &Path, root: &Path) -> Result<String, Complaint> {
    if file.is_dir() {
        return Ok(NO_SERVERS.to_owned());
    }
    match read_text(file, root, FILE_BYTES_MAX) {
        Ok(text) => Ok(text),
        Err(Refused::Missing { .. }) => Ok(NO_SERVERS.to_owned()),
        Err(refused) => {
            let told = refused.problems(file);
            let told: Vec<String> = told.iter().map(ToString::to_string).collect();
            Err(Complaint::servers(&told.join("\n")))
        }
    }
}

const NO_SERVERS: &str = "{\"mcpServers\": {}}";

fn read_servers(file: &Path, text: &str, environment: &BTreeMap<String, String>) -> Config {
    let read = locum_mcp::config::parse(&file.display().to_string(), text, environment);
    for warning in &read.warnings {
        print::note(&format!("warning: {warning}"));
    }
    read
}

/// The environment with names instead of values, so that a file can be read without its secrets.
/// What is set to nothing stays so: a default stands in for it.
fn names_only(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let name = |(name, value): (&String, &String)| {
        let kept = if value.is_empty() { String::new() } else { format!("${{{name}}}") };
        (name.clone(), kept)
    };
    environment.iter().map(name).collect()
}
