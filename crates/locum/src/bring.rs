//! Servers that definitions bring, as what starts them: with the keys that the person keeps, and
//! what was agreed to remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use locum_definitions::{Reach, Server};
use locum_mcp::{ServerSpec, Transport};
use locum_tools::{Bring, Brought, Place, environment};
use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::config::Config;
use crate::text::clean;
use crate::trust::{By, Trust, approve};
use crate::{print, providers};

/// Whoever was made from a definition was agreed to, which is kept unless everything is agreed to
/// for this run.
#[derive(Debug)]
struct Agreement {
    data: PathBuf,
    folder: PathBuf,
    keep: Keep,
    /// Names of keys to models, which are the person's and no project's.
    keys: BTreeSet<String>,
}

#[derive(Debug)]
enum Keep {
    Answers,
    Nothing,
}

pub(crate) fn brought(place: &Place, trust: &Trust, settings: &Config) -> Brought {
    let keep = match trust {
        Trust::Yes { by: By::Flag, .. } => Keep::Nothing,
        Trust::Yes { by: By::Answer, .. } | Trust::No => Keep::Answers,
    };
    let (data, folder) = (place.data.clone(), place.workspace.clone());
    let mut keys: BTreeSet<String> = settings.keys().map(str::to_owned).collect();
    keys.extend(providers::keys().map(str::to_owned));
    Brought::new(place, Box::new(Agreement { data, folder, keep, keys }))
}

impl Bring for Agreement {
    fn spec(&self, server: &Value) -> Result<ServerSpec, String> {
        let server = Server::deserialize(server).map_err(|error| error.to_string())?;
        if let Some(key) = self.wrongly_wanted(&server) {
            return Err(format!("{key} is the key to a model, which no project's server is given"));
        }
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

    fn fails(&self, why: &str) {
        print::note(&format!("note: {}", clean(why).replace('\n', " ")));
    }
}

impl Agreement {
    /// A key that a project's file wants for its server.
    fn wrongly_wanted(&self, server: &Server) -> Option<&String> {
        let is_wanted = |key: &&String| match &server.how {
            Reach::Stdio { env_keys, env: filled, .. }
            | Reach::Http { env_keys, headers: filled, .. } => {
                let place = format!("${{{key}}}");
                env_keys.contains(key) || filled.values().any(|text| text.contains(&place))
            }
            Reach::Python { .. }
            | Reach::Builtin { .. }
            | Reach::Frontend { .. }
            | Reach::Named => false,
        };
        self.keys.iter().find(is_wanted).filter(|_| server.needs_consent)
    }
}

fn transport(how: Reach) -> Result<Transport, String> {
    match how {
        Reach::Stdio { command, args, env, env_keys } => {
            let env = with_keys(filled(env), &env_keys)?;
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

/// `${NAME}` in a value is where a token goes.
fn filled(mut values: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let environment = environment();
    for text in values.values_mut() {
        for (name, known) in &environment {
            *text = text.replace(&format!("${{{name}}}"), known);
        }
    }
    values
}

/// A script runs in an interpreter of its own, with what it depends on.
fn python(code: String, dependencies: Vec<String>) -> Transport {
    let needed = std::iter::once("mcp".to_owned()).chain(dependencies);
    let mut args: Vec<String> = needed.flat_map(|name| ["--with".to_owned(), name]).collect();
    args.extend(["python".to_owned(), "-c".to_owned(), code]);
    Transport::Stdio { command: "uvx".into(), args, env: BTreeMap::new(), cwd: None }
}
