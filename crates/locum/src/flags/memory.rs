//! `locum memory` as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use locum_memory::Id;

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) act: Option<MemoryAct>,
    /// The folder whose notes are meant [default: the current one]
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The agent whose own notes are meant as well
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Whose notes [default: all to read; the folder's to save, edit, export and import]
    #[arg(long, global = true, value_enum)]
    pub(crate) scope: Option<Whose>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Whose {
    /// For every agent, everywhere
    User,
    /// For every agent that works in the folder
    Workspace,
    /// For the agent named with --agent, in the folder
    Agent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAct {
    /// All notes that can be seen from here
    List {
        /// Show at most so many of each scope
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Only those after this one
        #[arg(long, value_name = "ID")]
        after: Option<Id>,
    },
    /// Finds notes by what they say, the best first
    Search {
        text: String,
        /// Show at most so many
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
    },
    /// One note in full, with where it is from
    Show { id: Id },
    /// Keeps a note; `-` reads it from standard input
    Save { text: String },
    /// Removes notes for good
    Forget {
        #[arg(required = true)]
        ids: Vec<Id>,
    },
    /// Opens the notes of a scope in $VISUAL or $EDITOR and takes back what was changed
    Edit,
    /// Writes the notes of a scope as one page of Markdown
    Export {
        /// Where to [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Takes an edited page back in; `-` reads it from standard input
    Import { file: PathBuf },
}
