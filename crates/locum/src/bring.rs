//! Servers that definitions bring, as what starts them: with the keys that the person keeps, and
//! what was agreed to remembered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use locum_definitions::{Reach, Server, fill};
use locum_mcp::{ServerSpec, Transport};
use locum_tools::{Bring, Brought, Place};
use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::config::Config;
use crate::print;
use crate::text::clean;
use crate::trust::{By, Trust, approve};
use crate::variables::Environment;

/// Whoever was made from a definition was agreed to, which is kept unless everything is agreed to
/// for this run.
#[derive(Debug)]
struct Agreement {
    data: PathBuf,
    folder: PathBuf,
    keep: Keep,
    persons: Environment,
    projects: Environment,
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
    let (persons, projects) = (Environment::of_person(), Environment::of_project(settings));
    Brought::new(place, Box::new(Agreement { data, folder, keep, persons, projects }))
}

impl Bring for Agreement {
    fn spec(&self, server: &Value) -> Result<ServerSpec, String> {
        let server = Server::deserialize(server).map_err(|error| error.to_string())?;
        let environment = if server.needs_consent { &self.projects } else { &self.persons };
        let allowed = Some(server.available_tools.clone()).filter(|list| !list.is_empty());
        Ok(ServerSpec {
            timeout: Duration::from_secs(server.timeout_s),
            allowed_tools: allowed,
            denied_tools: server.denied_tools.clone(),
            ..ServerSpec::new(&server.name, filled(&server, environment)?)
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

/// How a server is reached, with its variables in it; or why it cannot be.
pub(crate) fn filled(server: &Server, environment: &Environment) -> Result<Transport, String> {
    match &server.how {
        Reach::Stdio { command, args, env, env_keys } => {
            let fill = |text: &String| environment.fill(text);
            let mut env = each(env, fill)?;
            for name in env_keys {
                let value = environment.get(name)?.ok_or_else(|| format!("{name} is not set"))?;
                env.insert(name.clone(), value);
            }
            let args: Result<Vec<String>, String> = args.iter().map(fill).collect();
            Ok(Transport::Stdio { command: fill(command)?, args: args?, env, cwd: None })
        }
        Reach::Http { socket: Some(_), .. } => {
            Err("it is reached through a Unix socket, which is not done here".into())
        }
        Reach::Http { url, headers, env, socket: None, .. } => {
            let own = each(env, |text| environment.fill(text))?;
            let held = |name: &str| match own.get(name) {
                Some(own) => Ok(Some(own.clone())),
                None => environment.get(name),
            };
            let headers = each(headers, |text| fill(text, held))?;
            Ok(Transport::Http { url: fill(url, held)?, headers })
        }
        Reach::Python { code, dependencies } => Ok(python(code, dependencies)),
        Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => {
            Err("it is no server that could be started".into())
        }
    }
}

fn each(
    texts: &BTreeMap<String, String>,
    fill: impl Fn(&String) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    texts.iter().map(|(name, text)| Ok((name.clone(), fill(text)?))).collect()
}

/// A script runs in an interpreter of its own, with what it depends on.
fn python(code: &str, dependencies: &[String]) -> Transport {
    let needed = std::iter::once("mcp").chain(dependencies.iter().map(String::as_str));
    let mut args: Vec<String> =
        needed.flat_map(|name| ["--with", name]).map(str::to_owned).collect();
    args.extend(["python", "-c", code].map(str::to_owned));
    Transport::Stdio { command: "uvx".into(), args, env: BTreeMap::new(), cwd: None }
}
