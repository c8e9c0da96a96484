//! The command line as typed.

pub(crate) mod act;
mod face;
mod look;
mod memory;
mod own;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use locum_kernel::{PolicyMode, Rule, RuleKind};
use locum_runtime::wire::WireName;

use crate::rule;

pub(crate) use face::{Face, When};
pub(crate) use look::{
    Agents, Asks, By, Completions, Cost, Fork, Format, Logs, Look, Man, Queue, QueueAct, Replay,
    Search, Sessions, SessionsAct, Show, Timeline,
};

pub(crate) use own::{Check, Definitions, Trust};

pub(crate) use memory::{Memory, MemoryAct, Whose};

#[derive(Debug, Parser)]
#[command(name = "locum", version, about = "An agent runtime in which sub-agents are first-class")]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Where sessions are kept [env: `LOCUM_DATA`] [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR", overrides_with = "data")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration [env: `LOCUM_CONFIG`] [default: ~/.config/locum/config.toml]
    #[arg(long, global = true, value_name = "FILE", overrides_with = "config")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) face: Face,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One exchange without a face: waits for everybody, then exits
    #[command(alias = "exec")]
    Run(Box<Run>),
    #[command(flatten)]
    Act(act::Act),
    #[command(flatten)]
    Look(Look),
    /// Which models can be reached: keys that are set, servers on this machine
    Models(Models),
    /// Tests keys, local servers, the data folder and the terminal; asks each provider one word
    Doctor(Doctor),
    /// Servers whose tools agents may use: whether they come up, and what they offer
    Mcp(Mcp),
    /// What agents and people want remembered beyond a session
    Memory(Memory),
    /// Serves a scripted model to other programs, in the words of real providers
    ScriptServer(ScriptServer),
    /// Reads a recorded stream of a provider and prints what it says, as one JSON object
    Decode(Decode),
    /// A tour over the real engine: no key, no network, nothing changed
    Demo(Demo),
    /// Recipes, skills, agents, configuration: every problem with its place
    ///
    /// Exits with 0 only if all are good.
    Check(Check),
    /// Recipes, skills and agents that were found, and what was skipped and why
    Definitions(Definitions),
    /// Lets agents follow what a folder brings along
    Trust(Trust),
    /// Rules that allow, ask about and forbid calls
    Rules(Rules),
    /// Takes back what an agent changed in files, where its definition had that kept
    ///
    /// A file that is no longer as the agent left it stays as it is. Exits with 1 if one did.
    Undo(Undo),
    /// Prints the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Whose changes: an id, label or path
    pub(crate) agent: String,
    /// The session [default: the one written to last]
    #[arg(short, long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Only list what it changed
    #[arg(long)]
    pub(crate) list: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rules {
    #[command(subcommand)]
    pub(crate) act: RulesAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesAct {
    /// Says what would become of a call, and why; nothing is run
    ///
    /// Exits with 0 if it would run, with 3 if it would not without a person.
    Test(RulesTest),
    /// Shows every rule that holds in this folder, and where it comes from
    List(RulesList),
    /// Takes back a rule that was kept for this folder
    Forget(RulesForget),
    /// Tries the examples of every rule; exits with 2 if one does not hold
    Check(RulesCheck),
}

#[derive(Debug, Args)]
pub(crate) struct RulesList {
    /// The folder agents work in [default: the current one]
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The rules of this session, whose runs may have brought some of their own
    #[arg(short, long, value_name = "KEY", conflicts_with = "workspace")]
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RulesForget {
    /// Its number in `locum rules list`
    #[arg(value_name = "N")]
    pub(crate) number: usize,
    /// The folder agents work in [default: the current one]
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RulesCheck {
    /// The folder agents work in [default: the current one]
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RulesTest {
    /// The shell line; with --tool the path or address
    #[arg(value_name = "TEXT")]
    pub(crate) subject: String,
    /// The tool that would be called
    #[arg(long, value_name = "NAME", default_value = "exec")]
    pub(crate) tool: String,
    /// The agent that would call it
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) agent: String,
    /// What is free and what asks [default: ask]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Allow calls without asking: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::allow)]
    pub(crate) allow: Vec<Rule>,
    /// Ask about calls, even where the mode would not: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::ask)]
    pub(crate) ask: Vec<Rule>,
    /// Forbid calls: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::deny)]
    pub(crate) deny: Vec<Rule>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl RulesTest {
    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.allow.iter().chain(&self.ask).chain(&self.deny).cloned().collect()
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct Run {
    /// What to say to main; `-` reads it from standard input
    #[arg(required_unless_present_any = ["resume", "again", "recipe"])]
    pub(crate) text: Option<String>,
    /// Who answers: PROVIDER/NAME, an alias, `auto`, `demo` or script:FILE [env: `LOCUM_MODEL`]
    /// [default: as before with --resume, else the configuration's, else auto]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Start from this agent instead of main
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Start from this recipe, by file or name; it may bring its own first message
    #[arg(long, value_name = "FILE", conflicts_with = "agent")]
    pub(crate) recipe: Option<PathBuf>,
    /// A value the recipe or agent asks for
    #[arg(long, value_name = "KEY=VALUE", value_parser = param)]
    pub(crate) param: Vec<(String, String)>,
    /// The session to speak in, new or not [default: a new one]
    #[arg(short, long, value_name = "KEY", conflicts_with_all = ["resume", "again"])]
    pub(crate) session: Option<String>,
    /// Go on with a session where it was left
    #[arg(long, value_name = "KEY", conflicts_with = "again")]
    pub(crate) resume: Option<String>,
    /// Go on with the session that was written last
    #[arg(short = 'c', long = "continue")]
    pub(crate) again: bool,
    /// The folder agents work in [default: the current one]
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the final text to a file as well
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What the final text must be: a JSON schema. Exit 1 if it is not
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// What becomes of calls that need approval [default: ask on a terminal, else deny]
    #[arg(long, value_enum)]
    pub(crate) approvals: Option<Approvals>,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) act: Option<McpAct>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Also those this folder brings along
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpAct {
    /// Lets a server of this folder's .mcp.json start, now and later
    Approve {
        /// What the file calls it
        #[arg(value_name = "NAME")]
        name: String,
        /// The folder whose server it is [default: the current one]
        #[arg(short = 'C', value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Starts every server and says how it is and what tools it has
    List,
    /// What a server has to read
    Resources { server: String },
    /// What prompts a server has
    Prompts { server: String },
    /// Logs in at a server that wants it: prints the page to open and waits for its answer
    Login(McpLogin),
    /// Forgets the login at a server
    Logout { server: String },
}

#[derive(Debug, Args)]
pub(crate) struct McpLogin {
    pub(crate) server: String,
    /// Read the address the page ended at from standard input, where the browser cannot reach
    /// this machine
    #[arg(long)]
    pub(crate) code: bool,
    /// Listen on this port instead of a free one
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Where clients are registered by hand
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Ask for these instead of what the server asks for
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Without pauses; the demo answers itself
    #[arg(long)]
    pub(crate) fast: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// How far agents may go.
#[derive(Debug, Default, Args)]
pub(crate) struct Bounds {
    /// What is free and what asks, for this run [default: ask]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Allow calls without asking: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::allow)]
    pub(crate) allow: Vec<Rule>,
    /// Ask about calls, even where the mode would not: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::ask)]
    pub(crate) ask: Vec<Rule>,
    /// Forbid calls: `TOOL ["PATTERN"] [agent=NAME]`
    #[arg(long, value_name = "RULE", value_parser = rule::deny)]
    pub(crate) deny: Vec<Rule>,
    /// Trust what is in this folder, for this run
    #[arg(long)]
    pub(crate) trust: bool,
    /// Dollars the whole tree may spend
    #[arg(long, value_name = "USD", value_parser = rule::micro_usd)]
    pub(crate) max_cost: Option<u64>,
    /// Model calls one agent may make per exchange
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Agents one request may lead to
    #[arg(long, value_name = "N")]
    pub(crate) max_agents: Option<u32>,
    /// Time agents may be active, such as 90s, 10m or 1h
    #[arg(long, value_name = "DURATION", value_parser = rule::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Agents that may be active beside the floor at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slots: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptServer {
    /// The script, as for `run -m script:FILE`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
}

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// How the provider speaks
    #[arg(long, value_name = "NAME", value_parser = wire)]
    pub(crate) wire: WireName,
    /// Server-sent events as they came, or one JSON event per line; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

fn param(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

fn wire(word: &str) -> Result<WireName, String> {
    WireName::named(word).ok_or_else(|| {
        let all: Vec<&str> = WireName::ALL.iter().map(|wire| wire.word()).collect();
        format!("a wire is one of {}", all.join(", "))
    })
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approvals {
    /// Nobody: what would ask is denied
    Deny,
    /// Whoever writes JSON lines to standard input
    Stdio,
    /// Nobody now: the run ends when only people can help, and goes on with --resume
    Park,
    /// The person at the terminal
    Ask,
    /// The demo, by itself
    #[value(skip)]
    Itself,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Reads and delegation are free, the rest asks
    Ask,
    /// Writes are free too
    Edits,
    /// Nothing is changed at all
    Plan,
    /// Everything is free that no rule forbids
    Auto,
}

impl From<Mode> for PolicyMode {
    fn from(mode: Mode) -> PolicyMode {
        match mode {
            Mode::Ask => PolicyMode::Ask,
            Mode::Edits => PolicyMode::Edits,
            Mode::Plan => PolicyMode::Plan,
            Mode::Auto => PolicyMode::Auto,
        }
    }
}

impl Bounds {
    pub(crate) fn rules(&self) -> Vec<Rule> {
        debug_assert!(self.deny.iter().all(|rule| rule.kind == RuleKind::Deny));
        self.allow.iter().chain(&self.ask).chain(&self.deny).cloned().collect()
    }
}
