//! The commands that look at sessions, as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Look {
    /// Lists, shows, exports and removes sessions
    Sessions(Sessions),
    /// Who is there, what they do, and whether they need you
    Agents(Agents),
    /// One agent in full
    Show(Show),
    /// What an agent was told, said, called and got back
    Logs(Logs),
    /// Everything that waits for an answer, in all sessions
    Asks(Asks),
    /// Messages that wait their turn
    Queue(Queue),
    /// Steps through a session's journal
    Replay(Replay),
    /// Makes a new session of the past of another
    Fork(Fork),
    /// Finds a text in what was said, returned and concluded, in all sessions
    Search(Search),
    /// What was spent
    Cost(Cost),
    /// Who did what when
    Timeline(Timeline),
    /// Prints a completion script for a shell
    Completions(Completions),
    /// Writes a manual page for each command into a folder
    Man(Man),
}

/// Which session, and for whom.
#[derive(Debug, Args)]
pub(crate) struct In {
    /// The session [default: the one written to last]
    #[arg(short, long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) act: Option<SessionsAct>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAct {
    /// All of them, the newest first
    List,
    /// One of them, with everybody in it
    Show { key: String },
    /// Writes one of them out, one JSON object per line
    Export {
        key: String,
        #[arg(long, value_enum, default_value_t = Format::Events)]
        format: Format,
        /// Where to [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Moves a damaged one out of the way: it is kept under another name, and its own is free
    SetAside { key: String },
    /// Removes one of them for good
    Rm { key: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The lines `run --json` tells
    Events,
    /// Messages and tool uses, those of children with their `agent_session_id`
    ContextJsonl,
}

#[derive(Debug, Args)]
pub(crate) struct Agents {
    #[command(flatten)]
    pub(crate) place: In,
    /// By who made whom, not by who needs you
    #[arg(long)]
    pub(crate) tree: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Its id, label or path, or the beginning of one
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) place: In,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Its id, label or path, or the beginning of one
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) place: In,
    /// Go on until the agent has ended; with --json, one object per line
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Asks {
    /// Only this one, by its id or the beginning of it
    pub(crate) id: Option<String>,
    /// Only this session
    #[arg(short, long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) act: Option<QueueAct>,
    /// The session [default: the one written to last]
    #[arg(short, long, global = true, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueAct {
    /// Who said what and still waits, the next first
    List,
    #[command(flatten)]
    Change(super::act::Requeue),
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    pub(crate) session: String,
    /// Only the state after the entry that holds this event
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// Print JSON, one object per entry
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    pub(crate) session: String,
    /// The last event the fork shares with the session; must end an entry
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u64,
    /// What the fork is called [default: made from the session and the event]
    #[arg(long, value_name = "KEY")]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    pub(crate) text: String,
    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cost {
    #[arg(long, value_enum, default_value_t = By::Agent)]
    pub(crate) by: By,
    /// Only this session
    #[arg(short, long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Agent,
    Model,
    Day,
}

#[derive(Debug, Args)]
pub(crate) struct Timeline {
    pub(crate) session: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to; made if it is not there
    pub(crate) dir: PathBuf,
}
