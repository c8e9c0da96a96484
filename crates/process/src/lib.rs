//! Commands that run, and the processes they leave behind. A leaf: it knows no other room, and is
//! handed a ready argument list and environment (the walls around them are somebody else's).
//!
//! Every command has a *keeper*: this very program, started again as a hidden subcommand. The
//! keeper holds one end of a socket, the leash. When the other end goes away, because the command
//! was cancelled, its owner ended, or we died of whatever kind of death, it kills all that is
//! below it and ends. So a `Drop` that never runs cannot leave anybody behind.
//!
//! - In a **namespace** the command's world ends with the keeper: the system itself kills all
//!   that is in it, and the keeper is gone only when they are. Used where it costs the command
//!   nothing, which is for root.
//! - Otherwise the keeper is the **reaper of its tree**: whoever loses his parent, by whatever
//!   fork or new session, becomes the keeper's child. It stops all of them, then kills, until it
//!   has no child. An ordinary user could have a namespace too, but then sees the files of all
//!   others as nobody's, which breaks ssh and more; so it is used only when asked for.
//! - A mark in the environment of all is the second net, for when a keeper was killed itself.
//!
//! What this cannot reach: programs that run as another user (`sudo`) outside a namespace, and
//! whatever a command asks a service of the machine to start for it.
//!
//! In reading order: the words, what was said as text, where it is kept, what goes over the
//! leash, who is whose child, the keeper, its other end, the table.

mod command;
mod text;

mod output;

mod leash;
mod tree;

mod keeper;

mod kept;
mod process;

mod table;

pub use command::{
    Command, Error, Exit, Hold, Id, Input, Io, Keeper, Log, Output, PATIENCE, PIDS_MAX, Progress,
    Ran, Report, Row, Spill, Start,
};
pub use keeper::keeper;
pub use table::Processes;
