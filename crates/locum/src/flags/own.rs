//! `locum check`, `locum definitions` and `locum trust` as typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files, and folders with everything in them that is one
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Definitions {
    /// Show all of one
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The folder agents would work in [default: the current one]
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Trust what is in this folder, for this look
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The folder; of a repository, all of it [default: the current one]
    #[arg(value_name = "DIR", conflicts_with_all = ["list", "forget"])]
    pub(crate) folder: Option<PathBuf>,
    /// What was answered so far
    #[arg(long, conflicts_with = "forget")]
    pub(crate) list: bool,
    /// Take an answer back, and those about the folder's servers
    #[arg(long, value_name = "DIR")]
    pub(crate) forget: Option<PathBuf>,
    /// Print JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}
