//! The only room with tasks, network and processes: it performs what the kernel says is owed.
//!
//! In reading order: [`clock`] (the only clock), [`provider`] (what a model is asked), [`script`]
//! (a model that answers from a file), [`driver`] (one session's loop), [`line`] (what is told to
//! people and programs), [`events`] (how the journal becomes such lines).

pub mod clock;
pub mod driver;
pub mod events;
pub mod line;
pub mod provider;
pub mod script;
