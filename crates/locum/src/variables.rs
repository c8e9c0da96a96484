//! The person's environment, as servers are given it: all of it to the person's own, and to a
//! project's everything but keys to models. What is given is told by name.

use std::collections::{BTreeMap, BTreeSet};

use locum_definitions::{Wants, fill};
use locum_mcp::{ServerSpec, Transport};
use locum_tools::environment;

use crate::config::Config;
use crate::providers;

#[derive(Debug)]
pub(crate) struct Environment {
    held: BTreeMap<String, String>,
    /// Names of keys to models, which are the person's and no project's.
    kept: BTreeSet<String>,
}

impl Environment {
    pub(crate) fn of_person() -> Environment {
        Environment { held: environment(), kept: BTreeSet::new() }
    }

    pub(crate) fn of_project(settings: &Config) -> Environment {
        let own = settings.keys().map(str::to_owned);
        let kept = own.chain(providers::keys().map(str::to_owned)).collect();
        Environment { kept, ..Environment::of_person() }
    }

    /// What a variable is, if it is set and may be had.
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>, String> {
        if self.kept.contains(name) {
            return Err(format!(
                "{name} is the key to a model, which no project's server is given"
            ));
        }
        Ok(self.held.get(name).cloned())
    }

    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        fill(text, |name| self.get(name))
    }
}

/// The variables that a server of a file would be given; as it is written, not as it is filled.
pub(crate) fn wants(written: &ServerSpec) -> Wants {
    let mut wants = Wants::default();
    match &written.transport {
        Transport::Stdio { command, args, env, cwd } => {
            wants.text(command, "in its command");
            for text in args {
                wants.text(text, "in its arguments");
            }
            for (name, text) in env {
                wants.variable(name, text);
            }
            let cwd = cwd.as_ref().map(|cwd| cwd.display().to_string());
            wants.text(&cwd.unwrap_or_default(), "in its folder");
        }
        Transport::Http { url, headers } => {
            for (name, text) in headers {
                wants.text(text, &format!("in {name}"));
            }
            wants.text(url, "in its address");
        }
    }
    wants
}
