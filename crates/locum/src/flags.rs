//! The command line as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(name = "locum", about = "An agent runtime in which sub-agents are first-class")]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Where sessions are kept [env: `LOCUM_DATA`] [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One exchange without a face: waits for everybody, then exits
    #[command(alias = "exec")]
    Run(Run),
    /// Prints the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to say to main; `-` reads it from standard input
    #[arg(required_unless_present = "resume")]
    pub(crate) text: Option<String>,
    /// Who answers: `script:FILE` [default with --resume: the same as before]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The session to speak in, new or not [default: a new one]
    #[arg(short, long, value_name = "KEY", conflicts_with = "resume")]
    pub(crate) session: Option<String>,
    /// Go on with a session where it was left
    #[arg(long, value_name = "KEY")]
    pub(crate) resume: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// What becomes of calls that need approval
    #[arg(long, value_enum, default_value_t = Approvals::Deny)]
    pub(crate) approvals: Approvals,
}

/// Nobody is there to ask yet, so there is one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approvals {
    Deny,
}
