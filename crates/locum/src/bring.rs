//! Servers that definitions bring, as what starts them: with the keys that the person keeps, and
//! what was agreed to remembered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use locum_definitions::{Reach, Server};
use locum_mcp::{ServerSpec, Transport};
use locum_tools::{Bring, Brought, Place, environment};
use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::print;
use crate::trust::{By, Trust, approve};

/// Whoever was made from a definition was agreed to, which is kept unless everything is agreed to
/// for this run.
#[derive(Debug)]
struct Agreement {
    data: PathBuf,
    folder: PathBuf,
    keep: Keep,
}

#[derive(Debug)]
enum Keep {
    Answers,
    Nothing,
}

pub(crate) fn brought(place: &Place, trust: &Trust) -> Brought {
    let keep = match trust {
        Trust::Yes { by: By::Flag, .. } => Keep::Nothing,
        Trust::Yes { by: By::Answer, .. } | Trust::No => Keep::Answers,
    };
    let (data, folder) = (place.data.clone(), place.workspace.clone());
    Brought::new(place, Box::new(Agreement { data, folder, keep }))
}

impl Bring for Agreement {
    fn spec(&self, server: &Value) -> Result<ServerSpec, String> {
        let server = Server::deserialize(server).map_err(|error| error.to_string())?;
        let allowed = Some(server.available_tools).filter(|list| !list.is_empty());
        Ok(ServerSpec {
            timeout: Duration::from_secs(server.timeout_s),
            allowed_tools: allowed,
            ..ServerSpec::new(server.name, transport(server.how)?)
        })
    }

    fn starts(&self, server: &Value) {
        let kept = match self.keep {
            Keep::Answers => approve::agree(&self.data, server, &self.folder),
            Keep::Nothing => Ok(()),
        };
        if let Err(Complaint { what, cause, .. }) = kept {
            print::note(&format!("note: the answer is not remembered: {what} {cause}"));
        }
    }
}

fn transport(how: Reach) -> Result<Transport, String> {
    match how {
        Reach::Stdio { command, args, env, env_keys } => {
            let env = with_keys(env, &env_keys)?;
            Ok(Transport::Stdio { command, args, env, cwd: None })
        }
        Reach::Http { socket: Some(_), .. } => {
            Err("it is reached through a Unix socket, which is not done here".into())
        }
        Reach::Http { url, headers, socket: None, .. } => {
            Ok(Transport::Http { url, headers: filled(headers) })
        }
        Reach::Python { code, dependencies } => Ok(python(code, dependencies)),
        Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => {
            Err("it is no server that could be started".into())
        }
    }
}

/// What the definition sets, and what it only names, from where the person keeps it.
fn with_keys(
    mut set: BTreeMap<String, String>,
    keys: &[String],
) -> Result<BTreeMap<String, String>, String> {
    let environment = environment();
    for key in keys {
        let value = environment.get(key).ok_or_else(|| format!("{key} is not set"))?;
        set.insert(key.clone(), value.clone());
    }
    Ok(set)
}

/// `${NAME}` in a header is where a token goes.
fn filled(mut headers: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let environment = environment();
    for text in headers.values_mut() {
        for (name, known) in &environment {
            *text = text.replace(&format!("${{{name}}}"), known);
        }
    }
    headers
}

/// A script runs in an interpreter of its own, with what it depends on.
fn python(code: String, dependencies: Vec<String>) -> Transport {
    let needed = std::iter::once("mcp".to_owned()).chain(dependencies);
    let mut args: Vec<String> = needed.flat_map(|name| ["--with".to_owned(), name]).collect();
    args.extend(["python".to_owned(), "-c".to_owned(), code]);
    Transport::Stdio { command: "uvx".into(), args, env: BTreeMap::new(), cwd: None }
}
