//! How failures are told: what failed, why, what to do, and an exit code that says the same.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;

use locum_kernel::Unfoldable;
use locum_runtime::clock::rfc3339;
use locum_runtime::{driver, script};

use crate::address;
use crate::screen::{Ink, details, err, ours};
use crate::text::{clean, quote};
use crate::{damage, data};

/// The exit codes of the command line, by what they mean.
pub(crate) const USAGE: u8 = 2;
/// Model, key or network.
const NETWORK: u8 = 6;
pub(crate) const DATA: u8 = 7;

/// Complaints whose cause is what a model said.
const SAID: [&str; 3] = ["E116", "E140", "E150"];

#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) code: &'static str,
    pub(crate) what: String,
    pub(crate) cause: String,
    pub(crate) next: String,
    pub(crate) exit: u8,
}

impl Complaint {
    pub(crate) fn print(&self) {
        let Complaint { code, what, cause, next, .. } = self;
        tracing::error!("{code} {what}");
        // Models, people and files are quoted here: nothing of it moves a cursor.
        let (what, cause, next) = (clean(what), clean(cause), clean(next));
        // What a model handed in is shown as it was said.
        let cause = if SAID.contains(code) { cause.into() } else { ours(&cause) };
        let (what, next) = (ours(&what), ours(&next));
        let mark = err(Ink::Bad, &format!("error[{code}]"));
        let next = next.replace("\ndo: ", &format!("\n{} ", err(Ink::Next, "do:")));
        let (cause, then) = (cause.trim_end(), err(Ink::Next, "do:"));
        // If standard error is closed there is nobody left to tell.
        let _ = writeln!(io::stderr(), "{mark} {what}\n{cause}\n{then} {next}");
    }

    pub(crate) fn usage(text: &str) -> Complaint {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: locum "));
        let word = usage.and_then(|usage| usage.split(' ').next());
        let command = word.filter(|word| word.starts_with(char::is_alphabetic)).unwrap_or("run");
        Complaint {
            code: "E100",
            what: "The command line was not understood.".into(),
            cause: usage_cause(text),
            next: format!("locum {command} --help"),
            exit: USAGE,
        }
    }

    pub(crate) fn no_command() -> Complaint {
        Complaint {
            code: "E100",
            what: "No command was given.".into(),
            cause: "There is no face to talk with yet; the demo shows what there is.".into(),
            next: "locum demo, or locum --help".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn script(error: &script::Error) -> Complaint {
        let (what, next) = match error {
            script::Error::Read { path, .. } => {
                ("The script cannot be read.", format!("ls -l {}", quote(&path.to_string_lossy())))
            }
            script::Error::Parse { path, line, .. } => {
                let next = format!("correct line {line} of {}, then run again", path.display());
                ("The script does not parse.", next)
            }
        };
        Complaint { code: "E400", what: what.into(), cause: chain(error), next, exit: USAGE }
    }

    /// Nobody to talk to, with where it was looked.
    pub(crate) fn no_model(looked: &str) -> Complaint {
        Complaint {
            code: "E101",
            what: "No model to talk to: no key was found and no local server answered.".into(),
            cause: looked.to_owned(),
            next: "export ANTHROPIC_API_KEY=…, or locum demo, which needs no key".into(),
            exit: NETWORK,
        }
    }

    pub(crate) fn model(model: &str, cause: String) -> Complaint {
        Complaint {
            code: "E102",
            what: format!("There is no model {model:?}."),
            cause,
            next: "locum models".into(),
            exit: USAGE,
        }
    }

    /// It had ended; who read what it said has not had all of it.
    pub(crate) fn not_read(exit: u8) -> Complaint {
        Complaint {
            code: "E180",
            what: "Stopped before everything was read; nothing is lost.".into(),
            cause: "Whoever reads what this prints stands still.".into(),
            next: "locum sessions, then locum sessions show KEY".into(),
            exit,
        }
    }

    pub(crate) fn rule_of_no_tool(cause: String) -> Complaint {
        Complaint {
            code: "E410",
            what: "A rule says nothing.".into(),
            cause,
            next: "name the tool as calls do, such as: --deny 'exec \"rm *\"'".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn no_such_tool(name: &str, known: &[&str]) -> Complaint {
        Complaint {
            code: "E410",
            what: format!("There is no tool {name:?} whose rules can be tried."),
            cause: format!("There are {}.", known.join(", ")),
            next: "locum rules test \"cargo test\" --tool exec".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn no_key(variable: &str) -> Complaint {
        Complaint {
            code: "E106",
            what: "There is no key for this model.".into(),
            cause: format!("{variable} is not set."),
            next: format!("export {variable}=…, then run again"),
            exit: NETWORK,
        }
    }

    /// Only the user knows where this provider is.
    pub(crate) fn no_address(provider: &str, variable: &str) -> Complaint {
        Complaint {
            code: "E106",
            what: format!("Nobody knows where {provider} is."),
            cause: format!("{variable} is not set."),
            next: format!("export {variable}=https://…, then run again"),
            exit: NETWORK,
        }
    }

    pub(crate) fn key_file(path: &Path, cause: String, next: String) -> Complaint {
        Complaint {
            code: "E106",
            what: format!("The key in {} cannot be used.", path.display()),
            cause,
            next,
            exit: NETWORK,
        }
    }

    pub(crate) fn key_command(command: &str, cause: String) -> Complaint {
        Complaint {
            code: "E106",
            what: "The key was not found where the configuration says it is kept.".into(),
            cause,
            next: format!("try it yourself: {command}"),
            exit: NETWORK,
        }
    }

    pub(crate) fn config_unread(path: &Path, error: &io::Error) -> Complaint {
        Complaint {
            code: "E401",
            what: "The configuration cannot be read.".into(),
            cause: format!("{}: {}", path.display(), told(error)),
            next: format!("ls -l {}", path.display()),
            exit: USAGE,
        }
    }

    /// `cause` has a line for each mistake.
    pub(crate) fn config(path: &Path, line: usize, cause: String) -> Complaint {
        Complaint {
            code: "E401",
            what: "The configuration makes no sense.".into(),
            cause,
            next: format!("correct line {line} of {}, then run again", path.display()),
            exit: USAGE,
        }
    }

    pub(crate) fn unkept(folder: &Path, error: &io::Error) -> Complaint {
        Complaint {
            code: "E411",
            what: "The rules of this folder cannot be written.".into(),
            cause: format!("{}: {}", folder.display(), told(error)),
            next: format!("ls -ld {}", quote(&folder.to_string_lossy())),
            exit: DATA,
        }
    }

    pub(crate) fn no_such_rule(cause: String) -> Complaint {
        Complaint {
            code: "E412",
            what: "There is no such rule to forget.".into(),
            cause,
            next: "locum rules list".into(),
            exit: USAGE,
        }
    }

    /// The address or the key of a provider makes no sense.
    pub(crate) fn provider(error: &dyn Error, next: String) -> Complaint {
        Complaint {
            code: "E107",
            what: "The model's provider cannot be used.".into(),
            cause: chain(error),
            next,
            exit: NETWORK,
        }
    }

    pub(crate) fn nothing_to_resume(key: &str, cause: &str) -> Complaint {
        Complaint {
            code: "E103",
            what: format!("Session {key} cannot be resumed."),
            cause: cause.into(),
            next: format!("locum run \"text\" -s {key}"),
            exit: USAGE,
        }
    }

    pub(crate) fn listen(address: &str, error: &io::Error) -> Complaint {
        Complaint {
            code: "E109",
            what: format!("Nobody can listen on {address}."),
            cause: told(error),
            next: "locum script-server FILE --listen 127.0.0.1:0".into(),
            exit: NETWORK,
        }
    }

    pub(crate) fn recording(file: &Path, error: &io::Error) -> Complaint {
        Complaint {
            code: "E115",
            what: format!("The recording {} cannot be read.", file.display()),
            cause: told(error),
            next: format!("ls -l {}", file.display()),
            exit: USAGE,
        }
    }

    pub(crate) fn stdin(error: &io::Error) -> Complaint {
        Complaint {
            code: "E105",
            what: "The text could not be read from standard input.".into(),
            cause: told(error),
            next: "locum run \"text\"".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn data_dir(path: &Path, error: &io::Error) -> Complaint {
        Complaint {
            code: "E110",
            what: format!("The data folder {} cannot be used.", path.display()),
            cause: told(error),
            next: "name a folder with --data DIR, then run again".into(),
            exit: DATA,
        }
    }

    pub(crate) fn no_data_dir() -> Complaint {
        Complaint {
            code: "E110",
            what: "There is no folder to keep sessions in.".into(),
            cause: "Neither --data nor LOCUM_DATA nor a home folder is set.".into(),
            next: "name a folder with --data DIR, then run again".into(),
            exit: DATA,
        }
    }

    pub(crate) fn journal(error: &locum_journal::Error) -> Complaint {
        use locum_journal::Error as Failed;
        let (code, what, next) = match error {
            Failed::Conflict { session, .. } => (
                "E111",
                format!("Somebody else is running session {session}."),
                format!("wait until it ends, then locum run --resume {session}"),
            ),
            Failed::Locked { holder, .. } => (
                "E111",
                match holder.since {
                    Some(since) => {
                        format!("The data folder is in use since {}.", rfc3339(since))
                    }
                    None => "The data folder is in use.".to_owned(),
                },
                match holder.pid {
                    Some(pid) => format!("wait until process {pid} ends, or run with --data DIR"),
                    None => "wait until it ends, or run with --data DIR".to_owned(),
                },
            ),
            Failed::Fenced { session, .. } => (
                "E111",
                "Another process took the data folder over.".to_owned(),
                format!("locum run --resume {session}, when the other has ended"),
            ),
            Failed::Version { .. } | Failed::Unreadable { .. } => (
                "E112",
                "The data folder was written by another version of locum.".to_owned(),
                "locum version, then install a newer one".to_owned(),
            ),
            Failed::Damaged { path, session, .. } => (
                "E113",
                format!("Session {session} is damaged; nothing of it was changed."),
                damage::ways(path, session),
            ),
            Failed::Corrupt { .. } | Failed::Broken { .. } | Failed::Lost { .. } => (
                "E113",
                "The journal is damaged; nothing was changed or made anew.".to_owned(),
                "put a backup in its place, or run with --data DIR".to_owned(),
            ),
            Failed::Full { path, session } => (
                "E114",
                "The disk is full; everything accepted before is safe.".to_owned(),
                if data::has(path, session) { room_then(session) } else { ROOM.to_owned() },
            ),
            Failed::NoRoom { .. } => (
                "E114",
                "The disk is full; everything accepted before is safe.".to_owned(),
                ROOM.to_owned(),
            ),
            Failed::Open { .. }
            | Failed::File { .. }
            | Failed::Read { .. }
            | Failed::Write { .. }
            | Failed::Stopped { .. }
            | Failed::NoSuchEnd { .. }
            | Failed::Misplaced { .. } => (
                "E110",
                "The journal could not be used.".to_owned(),
                "look at the disk, then run again".to_owned(),
            ),
        };
        Complaint { code, what, cause: chain(error), next, exit: DATA }
    }

    /// Nothing was begun, because nothing could be written down of it when the disk is full.
    pub(crate) fn no_room(folder: &Path, bytes: u64) -> Complaint {
        Complaint {
            code: "E114",
            what: "The disk is full; nothing was begun.".into(),
            cause: format!(
                "A run keeps {} MB back to end in order; {} has too little for that.",
                data::RESERVE_BYTES >> 20,
                folder.display()
            ),
            next: format!("make room ({} MB), then the same command", bytes.div_ceil(1 << 20)),
            exit: DATA,
        }
    }

    /// The session said no.
    pub(crate) fn refused(session: &str, why: String) -> Complaint {
        Complaint {
            code: "E104",
            what: format!("Session {session} did not take it."),
            cause: why,
            next: format!("locum agents -s {session}"),
            exit: USAGE,
        }
    }

    /// There is no reason to set it aside.
    pub(crate) fn not_aside(session: &str, why: &str) -> Complaint {
        Complaint {
            code: "E104",
            what: format!("Session {session} was not set aside."),
            cause: why.to_owned(),
            next: "locum sessions".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn not_written(session: &str, why: String) -> Complaint {
        Complaint {
            code: "E110",
            what: format!("Session {session} could not be written."),
            cause: why,
            next: "look at the disk, then try again".into(),
            exit: DATA,
        }
    }

    pub(crate) fn no_session_yet() -> Complaint {
        Complaint {
            code: "E120",
            what: "There is no session yet.".into(),
            cause: "Nothing was ever run in this data folder.".into(),
            next: "locum demo, or locum run \"text\"".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn workspace(folder: &Path, error: &dyn Error) -> Complaint {
        Complaint {
            code: "E105",
            what: format!("The folder {} cannot be worked in.", folder.display()),
            cause: told(error),
            next: "name a folder that is there with -C DIR, then run again".into(),
            exit: USAGE,
        }
    }

    /// `cause` has a line for each mistake.
    pub(crate) fn servers(cause: &str) -> Complaint {
        Complaint {
            code: "E403",
            what: "The MCP servers cannot be read.".into(),
            cause: cause.to_owned(),
            next: "correct the file, then locum mcp".into(),
            exit: USAGE,
        }
    }

    /// One server in particular.
    pub(crate) fn server(name: &str, error: &locum_mcp::Error) -> Complaint {
        let login = matches!(error, locum_mcp::Error::Login { .. });
        let next = if login { format!("locum mcp login {name}") } else { "locum mcp".into() };
        Complaint {
            code: "E404",
            what: format!("MCP server {name} did not do it."),
            cause: told(error),
            next,
            exit: 1,
        }
    }

    pub(crate) fn login(name: &str, cause: &str) -> Complaint {
        Complaint {
            code: "E405",
            what: format!("There is no login at MCP server {name}."),
            cause: cause.to_owned(),
            next: format!("locum mcp login {name}"),
            exit: 1,
        }
    }

    pub(crate) fn undo(agent: &str, error: &io::Error) -> Complaint {
        Complaint {
            code: "E406",
            what: format!("What {agent} changed cannot be read."),
            cause: told(error),
            next: format!("locum undo {agent} --list"),
            exit: DATA,
        }
    }

    /// The work is done, and only the file is missing.
    pub(crate) fn output(file: &Path, session: &str, error: &io::Error) -> Complaint {
        Complaint {
            next: format!("locum logs main -s {}", quote(session)),
            ..Complaint::no_output(file, error)
        }
    }

    pub(crate) fn no_output(file: &Path, error: &io::Error) -> Complaint {
        Complaint {
            code: "E108",
            what: format!("The final text cannot be written to {}.", file.display()),
            cause: told(error),
            next: "name a file that can be written with -o FILE, then run again".into(),
            exit: USAGE,
        }
    }

    pub(crate) fn schema(file: &Path, cause: &str) -> Complaint {
        Complaint {
            code: "E402",
            what: format!("The schema in {} cannot be used.", file.display()),
            cause: cause.to_owned(),
            next: "name a JSON schema with --schema FILE, then run again".into(),
            exit: USAGE,
        }
    }

    /// The machine refuses something every program needs.
    pub(crate) fn machine(error: &dyn Error) -> Complaint {
        Complaint {
            code: "E190",
            what: "This machine did not let locum start.".into(),
            cause: chain(error),
            next: "look at the limits of this user (ulimit -a), then run again".into(),
            exit: DATA,
        }
    }

    pub(crate) fn driver(error: &driver::Error) -> Complaint {
        match error {
            driver::Error::Journal(error) => Complaint::journal(error),
            driver::Error::Unfoldable { session, why } => Complaint {
                code: match why {
                    Unfoldable::Newer { .. } => "E112",
                    Unfoldable::OutOfOrder { .. } => "E113",
                },
                what: format!("Session {session} cannot be read."),
                cause: why.to_string(),
                next: "locum version, then install a newer one".into(),
                exit: DATA,
            },
            driver::Error::Refused { session, why } => address::not_meant(session, why),
            driver::Error::Full { session } => Complaint {
                code: "E114",
                what: "The disk is full; everything that had happened is safe.".into(),
                cause: error.to_string(),
                next: room_then(session),
                exit: DATA,
            },
        }
    }
}

/// The command that frees the name of a session that is damaged.
pub(crate) fn set_aside(session: &str) -> String {
    format!("locum sessions set-aside {}", quote(session))
}

/// For whatever was not begun.
const ROOM: &str = "make room, then the same command";

fn room_then(session: &str) -> String {
    format!("make room, then locum run --resume {}", quote(session))
}

/// What is wrong, without the ways to help that `do:` tells anyway.
fn usage_cause(text: &str) -> String {
    let lines = text.trim_start_matches("error: ").lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    lines.collect::<Vec<_>>().join("\n")
}

/// An error; with everything behind it for whoever wants details.
pub(crate) fn told(error: &dyn Error) -> String {
    if details() > 0 { chain(error) } else { error.to_string() }
}

/// An error with everything behind it, outermost first. With details each on a line of its own.
pub(crate) fn chain(error: &dyn Error) -> String {
    let then = if details() > 0 { "\n  because: " } else { ": " };
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(inner) = at {
        text.push_str(then);
        text.push_str(&inner.to_string());
        at = inner.source();
    }
    text
}
