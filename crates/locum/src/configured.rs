//! Which servers are configured, in the files where people keep them: their own `mcp.json`, and a
//! folder's `.mcp.json`.

use std::path::Path;

use locum_definitions::limits::FILE_BYTES_MAX;
use locum_definitions::{Refused, read_text};
use locum_mcp::ServerSpec;
use locum_mcp::config::Config as Read;

use crate::complaint::Complaint;
use crate::config::Config;
use crate::print;
use crate::variables::Environment;

/// The person's own. Wherever the file leads to, the person put it there.
pub(crate) fn of_person(config: Option<&Path>) -> Result<Vec<ServerSpec>, Complaint> {
    let Some(folder) = config.and_then(Path::parent) else { return Ok(Vec::new()) };
    let file = folder.join("mcp.json");
    let text = servers_text(&file, Path::new("/"))?;
    let read = read_servers(&file, &text, &Environment::of_person());
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
    settings: &Config,
) -> Result<(Vec<ServerSpec>, Vec<ServerSpec>), Complaint> {
    let text = servers_text(file, folder)?;
    let read = read_servers(file, &text, &Environment::of_project(settings));
    for error in &read.errors {
        print::note(&format!("warning: {error}; it is left out"));
    }
    let as_it_is = |text: &str| Ok(text.to_owned());
    let written = locum_mcp::config::parse(&file.display().to_string(), &text, &as_it_is);
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

fn read_servers(file: &Path, text: &str, environment: &Environment) -> Read {
    let filled = |text: &str| environment.fill(text);
    let read = locum_mcp::config::parse(&file.display().to_string(), text, &filled);
    for warning in &read.warnings {
        print::note(&format!("warning: {warning}"));
    }
    read
}
