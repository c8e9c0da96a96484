//! What our own program is told when it starts itself again as a wall. It travels as one word
//! of JSON on a command line that only paths are on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::layers::Layer;
use crate::walls::{Network, Terminal};

/// The hidden subcommand.
pub(crate) const WALL: &str = "__wall";

/// How a wall begins that could not be built.
pub(crate) const NOTHING_RUN: &str = "locum: no sandbox, so nothing was run:";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Spec {
    /// Say what this kernel can do.
    Report,
    /// Stay outside: make the namespaces and the temporary folder, start `Inner`, clean up.
    Outer(Rules),
    /// Put the walls up around oneself, then become the command.
    Inner(Rules),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) room: Room,
    pub(crate) layers: Vec<Layer>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) network: Network,
    pub(crate) terminal: Terminal,
    pub(crate) cwd: PathBuf,
}

/// What stands around the last wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Room {
    /// Bubblewrap made namespaces and mounts.
    Wrapped,
    /// We made them.
    Apart,
    /// Nothing: this kernel or its keeper allows none.
    Bare,
}

/// Which sockets can be made at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    None,
    /// Not to other programs on this machine: without mounts nothing hides theirs.
    Internet,
    All,
}

impl Rules {
    pub(crate) fn sockets(&self) -> Sockets {
        match (self.network, self.room) {
            (Network::Off, _) | (Network::Loopback, Room::Apart | Room::Bare) => Sockets::None,
            (Network::On, Room::Apart | Room::Bare) => Sockets::Internet,
            (Network::Loopback | Network::On, Room::Wrapped) => Sockets::All,
        }
    }
}
