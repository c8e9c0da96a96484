//! What people say to a run that is under way, from standard input: JSON lines (`--approvals
//! stdio`) or words at the terminal (`--approvals ask`). Either becomes inputs of the session.
//!
//! Standard input is read on a thread of its own, because nothing can stop such a read: the
//! thread is left behind when the run ends.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::thread;

use locum_kernel::{
    AgentId, Allow, AskId, Audience, Card, Command, Config, Input, Message, Scope, To, Urgency,
    Verdict, View, Who,
};
use locum_runtime::answer;
use locum_runtime::driver::{Closed, Handle};
use locum_runtime::tool::Toolbox;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::address;
use crate::complaint::Complaint;
use crate::kept::unkept;
use crate::print::{self, note};

/// The text to say; `-` stands for all of standard input.
pub(crate) fn said(text: &str) -> Result<String, Complaint> {
    let text = match text {
        "-" => io::read_to_string(io::stdin()).map_err(|error| Complaint::stdin(&error))?,
        text => text.to_owned(),
    };
    // The kernel would refuse it too, but only after the session was made.
    if text.trim().is_empty() {
        return Err(Complaint::usage("the message is empty"));
    }
    Ok(text)
}

/// Lines of standard input, until it ends.
pub(crate) fn lines() -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(64);
    let echoes = io::stdin().is_terminal();
    let read = move || {
        // By bytes: a line that is not text is a bad line, not the end of all lines.
        for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            // At once: until it is known, a tree would be drawn in the wrong place.
            if echoes {
                print::typed(&line);
            }
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("stdin".into()).spawn(read)?;
    Ok(receiver)
}

/// One line of `--approvals stdio`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Said {
    Message {
        to: Option<String>,
        text: String,
        #[serde(default)]
        mode: Urgency,
        /// The same id twice is one message.
        id: Option<String>,
    },
    Decision {
        id: String,
        decision: Decision,
        #[serde(default)]
        scope: Scope,
        message: Option<String>,
        input: Option<Value>,
    },
    Answer {
        id: String,
        text: String,
    },
    Cancel {
        agent: String,
        message: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    Deny,
}

/// Passes on what comes until nothing comes any more; from then on nobody is there, and what
/// still asks is denied. What cannot be read or is refused is told on standard error.
pub(crate) async fn stdio(handle: Handle, crowd: Crowd) -> Result<(), Closed> {
    match lines() {
        Ok(mut lines) => {
            while let Some(line) = lines.recv().await {
                if !line.trim().is_empty() {
                    hear(&handle, &line).await?;
                }
            }
        }
        Err(error) => note(&format!("standard input cannot be read: {error}")),
    }
    leave(&handle, crowd).await
}

/// The world people leave: as the session was told, but with the tools there are by then.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) config: Config,
    pub(crate) tools: Arc<dyn Toolbox>,
}

/// From now on nobody is there.
pub(crate) async fn leave(handle: &Handle, crowd: Crowd) -> Result<(), Closed> {
    let (audience, tools) = (Audience::Absent, crowd.tools.specs());
    let absent = Config { audience, tools, ..crowd.config };
    if let Err(why) = handle.post(Input::Configured(Box::new(absent))).await? {
        note(&format!("the session was not told that nobody is there: {why}"));
    }
    Ok(())
}

async fn hear(handle: &Handle, line: &str) -> Result<(), Closed> {
    let view = handle.view().await?;
    let input = match serde_json::from_str(line) {
        Ok(said) => input(&view, said),
        Err(error) => Err(format!("not understood: {error}")),
    };
    let unkept = input.as_ref().ok().and_then(|input| unkept::of_answer(&view, input));
    let refused = match input {
        Ok(input) => handle.post(input).await?.err().map(|why| why.to_string()),
        Err(why) => Some(why),
    };
    match (refused, unkept) {
        (Some(why), _) => note(&format!("stdin: {why}: {line}")),
        (None, Some(told)) => note(&format!("note: {told}")),
        (None, None) => {}
    }
    Ok(())
}

fn input(view: &View, said: Said) -> Result<Input, String> {
    Ok(match said {
        Said::Message { to, text, mode, id } => {
            // Whom a name means is decided by whoever drives the session.
            let to = to.map_or(To::Floor, |name| To::Name(plain(&name).to_owned()));
            Input::Said(Message { to, external_id: id, ..message(text, mode) })
        }
        Said::Decision { id, decision, scope, message, input } => {
            let verdict = match (decision, ask(view, &id)) {
                (Decision::Deny, _) => answer::deny(message),
                (Decision::Allow, Some(card)) => answer::allow(&card.kind, scope, input),
                // It has been answered, or never was: the kernel knows which, and says so.
                (Decision::Allow, None) => Verdict::Allow(Allow::default()),
            };
            Input::Answered { ask: ask_id(&id)?, verdict, by: me(), digest: None }
        }
        Said::Answer { id, text } => {
            let verdict = match ask(view, &id) {
                Some(card) => answer::words(&card.kind, text),
                None => Verdict::Answer { text },
            };
            Input::Answered { ask: ask_id(&id)?, verdict, by: me(), digest: None }
        }
        Said::Cancel { agent: name, message } => {
            let why = message.unwrap_or_else(|| "cancelled by the user".into());
            let agent = agent(view, &name)?;
            Input::Commanded { by: me(), command: Command::Cancel { agent, why } }
        }
    })
}

pub(crate) fn ask<'v>(view: &'v View, id: &str) -> Option<&'v Card> {
    view.asks.iter().find(|card| card.id.to_string() == id)
}

fn ask_id(id: &str) -> Result<AskId, String> {
    let number = id.strip_prefix('q').unwrap_or(id).parse().map(AskId);
    number.map_err(|_| format!("{id:?} is no ask"))
}

/// A name without the sign that says it is one.
pub(crate) fn plain(name: &str) -> &str {
    name.strip_prefix('@').unwrap_or(name)
}

/// Whom a typed name means, or why it means nobody.
pub(crate) fn agent(view: &View, name: &str) -> Result<AgentId, String> {
    address::agent_seen(view, name).map_err(|why| format!("{} {}", why.what, why.cause))
}

pub(crate) fn me() -> Who {
    Who::Person(user())
}

fn user() -> String {
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "user".into())
}

pub(crate) fn message(text: String, urgency: Urgency) -> Message {
    let (channel, sender) = ("cli".into(), user());
    Message {
        pictures: Vec::new(),
        channel,
        sender,
        external_id: None,
        text,
        urgency,
        to: To::Floor,
        reply_to: None,
    }
}
