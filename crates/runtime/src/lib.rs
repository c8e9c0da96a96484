//! The only room with tasks, network and processes: it performs what the kernel says is owed.
//!
//! In reading order: [`clock`] (the only clock), [`provider`] (what a model is asked), [`tool`]
//! (what a tool is run with), [`schema`] (what a model is told of tools), [`script`] (a model that
//! answers from a file), [`wire`] (models over the network),
//! [`price`] (what an answer costs), [`fallback`] (who answers when the first cannot),
//! [`form`] (what an agent hands in, held against a schema),
//! [`library`] (who brings definitions),
//! [`driver`] (one session's loop), `inflight` (what is under way), [`line`](mod@line) (what is
//! told to people and programs), [`events`] (how the journal becomes such lines), [`live`] (how
//! readers get them), [`answer`] (what people's words mean), `door` (how other processes get in),
//! [`subjects`] (what a shell line would run), [`rules`] (rules as people write them).

pub mod answer;
pub mod clock;
#[cfg(unix)]
pub mod door;
pub mod driver;
pub mod events;
pub mod fallback;
pub mod form;
mod inflight;
pub mod library;
pub mod line;
pub mod live;
pub mod price;
pub mod provider;
pub mod rules;
pub mod schema;
pub mod script;
pub mod subjects;
pub mod tool;
pub mod wire;
