//! The file and search tools: `read`, `write`, `edit`, `ls`, `glob` and `grep`, beneath the
//! allowed roots and nowhere else, and the store for results too long to be shown.
//!
//! A root is opened once, as a folder. Every path a model names is walked from there one name at
//! a time (or by one `openat2` that allows no links), links are read by hand and followed only
//! while they stay beneath, and what is done in the end is done to one name in one open folder,
//! without following. So it does not matter what anybody swaps in the meantime.
//!
//! In reading order: what can go wrong, where things are, what is there, what was read, how it is
//! written, the tools, long results. Unix only: elsewhere the crate is empty.
#![cfg(unix)]

mod error;

mod guard;
mod meta;
mod roots;
mod spot;

mod binary;
mod rows;
mod text;

mod atomic;
mod seen;

mod args;
mod desk;
mod diff;
mod edit;
mod glob;
mod grep;
mod hint;
mod ls;
mod read;
mod walk;
mod write;

mod spill;

pub use args::{Edit, Glob, Grep, Ls, Read, Swap, Write};
pub use binary::Image;
pub use desk::{Answer, Desk};
pub use diff::{Change, ChangeKind};
pub use error::Error;
pub use guard::Bar;
pub use roots::{Access, Roots, Way};
pub use spill::{Cut, Handle, Spills};
pub use walk::Stop;
