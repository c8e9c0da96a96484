//! What agents can do: the leaves as the tools that models call. Arguments come in as a model
//! wrote them, what comes back is text, facts for the receipt and pictures; what may run at all is
//! decided before, by the kernel.
//!
//! In reading order: [`Place`] (where tools work), `files`, `exec` and `process`, `web`, `recall`,
//! `servers`, and [`Shelf`] (where pictures are kept).

mod exec;
mod files;
mod place;
mod process;
mod recall;
mod servers;
mod shelf;
mod web;

pub use exec::{Exec, KEEP};
pub use files::Files;
pub use place::{Place, environment};
pub use recall::Recall;
pub use servers::{Servers, Trouble};
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
