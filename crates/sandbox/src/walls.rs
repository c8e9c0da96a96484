//! The vocabulary: what a command may touch, and why walls could not be built.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::standin::Hold;

/// Everything a command may do to this machine. What is not said here is not allowed, but
/// reading, which is allowed unless a guard hides the place.
#[derive(Clone, Debug, PartialEq)]
pub struct Walls {
    pub workspace: PathBuf,
    /// Other folders that may be written to.
    pub writable: Vec<PathBuf>,
    pub guards: Vec<Guard>,
    pub network: Network,
    pub writes: Writes,
    pub terminal: Terminal,
    /// Names of environment variables that somebody granted, whatever they look like.
    pub granted: Vec<OsString>,
    pub fragile: Fragile,
}

impl Walls {
    /// For a command that works in a folder: no network but its own, no terminal.
    pub fn around(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            writable: Vec::new(),
            guards: Vec::new(),
            network: Network::Loopback,
            writes: Writes::Workspace,
            terminal: Terminal::Detached,
            granted: Vec::new(),
            fragile: Fragile::Refuse,
        }
    }

    /// For an agent that may only read.
    pub fn read_only(workspace: impl Into<PathBuf>) -> Self {
        let walls = Self::around(workspace);
        Self { network: Network::Off, writes: Writes::Nowhere, ..walls }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// No sockets at all, but for pairs that a process makes with itself.
    Off,
    /// A network of its own with nobody else in it: servers under test can be talked to. Where
    /// such a thing cannot be made this is `Off`.
    Loopback,
    On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// The workspace, the other writable folders, and a temporary folder that is thrown away.
    Workspace,
    /// The other writable folders and the temporary one, and nothing where the work is.
    Nowhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Terminal {
    /// The command cannot reach the terminal that the person sits at.
    Detached,
    /// Whoever spawns it made a terminal for it alone; it keeps that.
    Given,
}

/// Guards of places that a command may write around, on a machine without mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragile {
    /// It is not run.
    Refuse,
    /// A person knows that they are not kept, and has agreed.
    Leave,
}

/// A place that is kept from the command although the rest of the walls would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub path: PathBuf,
    pub keep: Keep,
    /// What stands there while the command runs, if nothing does now and the command could make
    /// something: whoever makes the file decides what it says.
    pub absent: StandIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Cannot be read, nor changed.
    Hidden,
    /// Can be read, not changed.
    Frozen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    Folder,
    /// A folder, and nothing but that one: what leads there is made as well and stays open, so
    /// that other things can be put beside it.
    Within,
    /// A file that says this.
    File(&'static str),
}

/// A command with walls around it, ready to be spawned.
#[derive(Debug)]
pub struct Enclosed {
    pub argv: Vec<OsString>,
    /// The whole environment: whoever spawns it clears its own first.
    pub env: Vec<(OsString, OsString)>,
    /// Stand-ins for absent places. Keep it until the command has ended, then drop it.
    pub hold: Hold,
}

/// Why there are no walls. A command is never run without them unless a person said so.
#[derive(Debug, thiserror::Error)]
pub enum NoWalls {
    #[error("{0}. Install bubblewrap, or allow this command to run without a sandbox")]
    Machine(String),
    #[error(
        "{path}: without bubblewrap or user namespaces it cannot be kept from a command that may \
         write around it. Install bubblewrap, or start again: then every command asks you"
    )]
    Unguarded { path: PathBuf },
    #[error(
        "{path}: is a link that a command could replace. Put the real one there, or work in \
         another folder"
    )]
    Link { path: PathBuf },
    #[error("{path}: cannot be a workspace, because everything is in it. Name a folder")]
    Everything { path: PathBuf },
    #[error("{path}: cannot be written down for the sandbox, because it is not UTF-8. Rename it")]
    Name { path: PathBuf },
    #[error("{path}: cannot be walled in")]
    Path { path: PathBuf, source: io::Error },
    #[error(
        "this program was replaced while it runs, and bubblewrap cannot find it. Start it again"
    )]
    Replaced,
    #[error("nothing to run")]
    Nothing,
}
