//! The commands that do something in a session, as typed.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Act {
    /// Says something in a session: to whoever has the floor, or to one agent
    Send(Send),
    /// Allows what an agent asks for
    Approve(Approve),
    /// Refuses what an agent asks for
    Deny(Deny),
    /// Answers a question
    Answer(Answer),
    /// Stops an agent and everybody below it
    Cancel(Cancel),
    /// Lets a paused agent go on
    Continue(Continue),
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// `[@NAME] TEXT`, for an agent or a definition; `-` reads the text from standard input
    #[arg(required = true, num_args = 1..=2, value_name = "[@NAME] TEXT")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) session: Session,
    /// Read at the agent's next model call instead of after what it is doing
    #[arg(long, conflicts_with = "interrupt")]
    pub(crate) steer: bool,
    /// Drop what the agent is thinking, then read this
    #[arg(long)]
    pub(crate) interrupt: bool,
    /// A name for this message: the same one twice is one message
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The asks, such as q12
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) session: Session,
    /// How far it reaches
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// The asks, such as q12
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) session: Session,
    /// Why; the agent is told
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The question, such as q12
    pub(crate) id: String,
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// By id, label or path
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) session: Session,
    /// Why; whoever waits for it is told
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Continue {
    /// By id, label or path
    pub(crate) agent: String,
    /// What it is to hear first
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

/// Changes to messages that wait their turn.
#[derive(Debug, Subcommand)]
pub(crate) enum Requeue {
    /// Changes what a waiting message says
    Edit { input: String, text: String },
    /// Takes a waiting message away
    Rm { input: String },
    /// Puts a waiting message before another, or last
    Move {
        input: String,
        #[arg(long, value_name = "INPUT")]
        before: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The session [default: where it is found, or the one written last]
    #[arg(short = 's', long = "session", value_name = "KEY")]
    pub(crate) key: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// This call, this time
    #[default]
    Once,
    /// This agent and everybody below it
    Agent,
    /// Its siblings too
    Fanout,
    /// The whole session, and later ones in this folder
    Project,
}

impl From<Scope> for locum_kernel::Scope {
    fn from(scope: Scope) -> locum_kernel::Scope {
        match scope {
            Scope::Once => locum_kernel::Scope::Once,
            Scope::Agent => locum_kernel::Scope::Agent,
            Scope::Fanout => locum_kernel::Scope::Fanout,
            Scope::Project => locum_kernel::Scope::Project,
        }
    }
}
