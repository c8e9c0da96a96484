//! What a project's definition would start, reach or be told: a person agrees to each once. The
//! runtime asks; this only says what there is to ask.

use serde::Serialize;

use crate::definition::{Definition, Scope};
use crate::problem::Place;
use crate::server::Reach;
use crate::variables::Wants;

/// One thing to agree to, in words for the person who is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Consent {
    pub what: String,
    pub place: Place,
}

impl Definition {
    /// Nothing for a person's own definitions: they agreed when they put them there.
    #[must_use]
    pub fn consents(&self) -> Vec<Consent> {
        if self.origin.scope != Scope::Workspace {
            return Vec::new();
        }
        let mut asked = Vec::new();
        let mut ask = |what: String, place| asked.push(Consent { what, place });
        for server in &self.servers {
            let name = &server.name;
            match &server.how {
                Reach::Stdio { command, args, .. } => {
                    let line =
                        [command.as_str()].into_iter().chain(args.iter().map(String::as_str));
                    let line = line.collect::<Vec<_>>().join(" ");
                    ask(
                        format!("start the server {name}: {line}{}", with(&server.wants())),
                        server.place,
                    );
                }
                Reach::Http { url, .. } => {
                    let with = with(&server.wants());
                    ask(format!("reach the server {name}: {url}{with}"), server.place);
                }
                Reach::Python { .. } => ask(format!("run the script {name}"), server.place),
                // Ours, a face's, or one the person configured.
                Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => {}
            }
        }
        if let Some(other) = &self.own.passthrough {
            ask(format!("let a program be the agent: {}", other.command.join(" ")), other.place);
        }
        if let Some(retry) = &self.retry {
            for line in retry.checks.iter().chain(&retry.on_failure) {
                ask(format!("run after every try: {line}"), Place::START);
            }
        }
        asked
    }
}

fn with(wants: &Wants) -> String {
    if wants.is_empty() { String::new() } else { format!(", with {wants}") }
}
