//! What agents can do: the leaves as the tools that models call. Arguments come in as a model
//! wrote them, what comes back is text, facts for the receipt and pictures; what may run at all is
//! decided before, by the kernel.
//!
//! In reading order: [`Place`] (where tools work), [`Copies`] (of a repository, for agents that
//! have their own), [`Past`] (what was there before), `files`, `site` (where commands run),
//! `around` (with what walls), `exec`, `process` and `passthrough`, `links` (other names of what is
//! kept from commands), `grants` (what a program may write to besides), `made_of` (what nobody
//! writes), [`spilled`] (results too long to be shown), `web`, `recall`, `servers`, `brought`
//! (servers for one agent), and [`Shelf`] (where pictures are kept).

mod around;
mod brought;
mod copies;
mod exec;
mod files;
mod grants;
mod leftovers;
mod links;
mod made_of;
mod numbers;
pub mod own;
mod passthrough;
mod past;
mod place;
mod process;
mod recall;
mod servers;
mod shelf;
mod site;
pub mod spilled;
mod web;

pub use brought::{Bring, Brought};
pub use copies::{Copies, Kept, kept};
pub use exec::{Exec, KEEP};
pub use files::Files;
pub use grants::{Unfit, unfit};
pub use leftovers::{Leftover, leftovers, past_bytes, sweep, tidy};
pub use past::{Act, Past, Row, State, Verdict, What, cut_commands, undo};
pub use place::{Place, environment};
pub use recall::Recall;
pub use servers::{Company, Sampled, Sampler, Servers, Trouble};
pub use shelf::Shelf;
pub use web::Web;

use serde_json::Value;

fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A whole number, however a model wrote it.
fn number(arguments: &Value, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn is_set(arguments: &Value, name: &str) -> bool {
    arguments.get(name).is_some_and(|it| it.as_bool() == Some(true) || it.as_str() == Some("true"))
}
