//! `exec` and `process`: commands behind walls, and what they leave running.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locum_kernel::{AgentId, Class, Deed, Errand, Output, ToolSpec};
use locum_process::{
    Command, Exit, Hold as Held, Id, Io, Keeper, Processes, Progress, Ran, Report, Start,
};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;
use locum_sandbox::{Enclosed, Hold, Network, Terminal, Walls, Writes};

use crate::files::cut;
use crate::place::survey;
use crate::process;
use crate::{Place, is_set, number, text};

/// Longest a command may take if nothing else is said, in the foreground and the background.
const TIMEOUT: Duration = Duration::from_mins(30);
const TIMEOUT_MAX: Duration = Duration::from_hours(24);
/// A terminal as wide as most.
const ROWS: u16 = 40;
const COLS: u16 = 120;

/// How this program is started again, by whom, is said where the program begins.
pub const KEEP: &str = "__keep";

#[derive(Debug)]
pub struct Exec(Arc<Room>);

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Room {
    place: Place,
    pub(crate) processes: Processes,
    /// Why there are no walls on this machine; a person is asked for every command then.
    bare: Option<String>,
    /// Commands that went to the background and whose end nobody has been told yet.
    background: Mutex<BTreeMap<Id, Background>>,
}

#[derive(Debug)]
struct Background {
    line: String,
    /// What stands in for absent places while it runs.
    hold: Option<Hold>,
}

impl Exec {
    #[must_use]
    pub fn new(place: Place) -> Exec {
        let note = note(&place);
        let bare = if has_walls(&note) {
            None
        } else {
            let found = survey().builder().err().map(|why| why.to_string());
            if found.is_none() {
                remember(&note);
            }
            found
        };
        let processes = Processes::new(Keeper::of_this_program(KEEP));
        Exec(Arc::new(Room { place, processes, bare, background: Mutex::default() }))
    }

    /// Why commands run without walls here, if they do.
    #[must_use]
    pub fn bare(&self) -> Option<&str> {
        self.0.bare.as_deref()
    }
}

/// Where that is written: with the user's caches, because it is the same for all data folders.
fn note(place: &Place) -> PathBuf {
    let caches = std::env::var_os("XDG_CACHE_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let caches = caches.or_else(|| place.home.as_ref().map(|home| home.join(".cache")));
    caches.map_or_else(|| place.data.clone(), |caches| caches.join("locum")).join("walls")
}

/// Whether walls were found on this machine before and nothing they depend on has changed: trying
/// them out takes longer than all the rest of a start. That there are none is never believed from
/// a file, so nobody can take them down by writing one.
fn has_walls(note: &Path) -> bool {
    fs::read_to_string(note).is_ok_and(|text| text == machine())
}

fn remember(note: &Path) {
    // Nothing depends on it but a little time.
    let _ = note.parent().map(fs::create_dir_all);
    let _ = fs::write(note, machine());
}

/// What walls depend on: the system, whether bubblewrap is there, who we are.
fn machine() -> String {
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let wraps = std::env::split_paths(&path).any(|folder| folder.join("bwrap").is_file());
    let who = fs::metadata("/proc/self").map(|it| std::os::unix::fs::MetadataExt::uid(&it));
    let who = who.unwrap_or_default();
    format!("{} {} {wraps} {who}\n", system.trim(), boot.trim())
}

impl Toolbox for Exec {
    fn specs(&self) -> Vec<ToolSpec> {
        let caution = self.0.bare.clone();
        let exec = ToolSpec { caution, ..ToolSpec::new("exec", Class::Exec, Some("command")) };
        vec![exec, ToolSpec::new("process", Class::Exec, Some("action"))]
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let room = Arc::clone(&self.0);
        Box::pin(async move {
            match errand.tool.as_str() {
                "process" => process::run(&room, &errand).await,
                _ => room.exec(errand, live).await,
            }
        })
    }

    fn ended(&self, agent: AgentId) {
        // All that was its own is killed at once, whether or not anybody waits.
        drop(self.0.processes.end_owner(&agent.to_string()));
    }
}

impl Room {
    async fn exec(self: Arc<Self>, errand: Errand, live: Live) -> Output {
        let room = Arc::clone(&self);
        let prepared = tokio::task::spawn_blocking(move || {
            let prepared = room.prepare(&errand);
            (errand, prepared)
        });
        let (errand, prepared) = match prepared.await {
            Ok((errand, Ok(prepared))) => (errand, prepared),
            Ok((_, Err(why))) => return Output::error(why),
            Err(error) => return Output::error(format!("exec failed: {error}")),
        };
        let Prepared { command, hold } = prepared;
        let call = errand.call;
        let typed = text(&errand.arguments, "command").unwrap_or_default().to_owned();
        let told = |it: &Progress| live.output(call, it.bytes, &it.tail);
        let ran = self.processes.run(&errand.agent.to_string(), command, told).await;
        self.let_go();
        match ran {
            Ok(Ran::Ended(report)) => {
                drop(hold);
                self.told(Some(typed), &report)
            }
            Ok(Ran::Backgrounded { id, so_far }) => {
                self.background().insert(id, Background { line: typed, hold: Some(hold) });
                let next = format!("{{\"action\": \"wait\", \"id\": \"{id}\"}}");
                let said = shown(&so_far);
                Output::ok(format!("{said}\n[goes on in the background as {id}: process {next}]"))
            }
            Err(error) => Output::error(error.to_string()),
        }
    }

    fn prepare(&self, errand: &Errand) -> Result<Prepared, String> {
        let line = text(&errand.arguments, "command").filter(|line| !line.trim().is_empty());
        let line = line.ok_or("exec needs a `command`")?;
        let cwd = self.folder(text(&errand.arguments, "cwd").unwrap_or_default())?;
        let output = self.place.output();
        fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        let argv: Vec<OsString> = vec![shell.into(), "-c".into(), line.into()];
        let tty = is_set(&errand.arguments, "tty");
        let walls = self.walls(errand, tty);
        let Enclosed { argv, env, hold } = if self.bare.is_some() {
            // A person has agreed, or this would not run.
            let env = locum_sandbox::environment(&walls.granted);
            Enclosed { argv, env, hold: Hold::default() }
        } else {
            let enclosed = locum_sandbox::enclose(&walls, survey(), &argv, &cwd);
            enclosed.map_err(|why| format!("not run: {why}"))?
        };
        let io = if tty { Io::Terminal { rows: ROWS, cols: COLS } } else { Io::Pipes };
        let background = is_set(&errand.arguments, "background");
        let timeout = number(&errand.arguments, "timeout_s").map(Duration::from_secs);
        let command = Command {
            env,
            io,
            start: if background { Start::Background } else { Start::Foreground },
            input: if background {
                locum_process::Input::Open
            } else {
                locum_process::Input::Nothing
            },
            timeout: Some(timeout.unwrap_or(TIMEOUT).min(TIMEOUT_MAX)),
            // The walls have a world of their own; two of them would only hide things.
            hold: if self.bare.is_some() { Held::Auto } else { Held::Tree },
            ..Command::new(argv, cwd, output)
        };
        Ok(Prepared { command, hold })
    }

    /// An agent that may not write has commands that cannot; one without network likewise.
    fn walls(&self, errand: &Errand, tty: bool) -> Walls {
        let may = |class: Class| errand.may.contains(&class);
        let workspace = &self.place.workspace;
        let mut walls =
            if may(Class::Write) { Walls::around(workspace) } else { Walls::read_only(workspace) };
        if may(Class::Network) && is_set(&errand.arguments, "network") {
            walls.network = Network::On;
        }
        debug_assert!(may(Class::Write) || walls.writes == Writes::Nowhere);
        walls.guards = self.place.guards();
        walls.terminal = if tty { Terminal::Given } else { Terminal::Detached };
        walls
    }

    fn folder(&self, named: &str) -> Result<PathBuf, String> {
        let folder = self.place.workspace.join(named);
        let real = folder.canonicalize().map_err(|error| format!("{named}: {error}"))?;
        let root = self.place.workspace.canonicalize();
        let root = root.map_err(|error| format!("the workspace: {error}"))?;
        if real.starts_with(root) {
            Ok(real)
        } else {
            Err(format!("{named} is outside the workspace"))
        }
    }

    /// How a command of the background ended. Its deed is told once, however often it is asked.
    pub(crate) fn ended(&self, report: &Report) -> Output {
        let line = self.background().remove(&report.id).map(|it| it.line);
        self.told(line, report)
    }

    fn told(&self, line: Option<String>, report: &Report) -> Output {
        let exit = match report.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::TimedOut | Exit::Killed | Exit::TooManyProcesses | Exit::Lost => -1,
        };
        let mut output = cut(&self.place.spills(), whole(report));
        if report.exit != Exit::Code(0) {
            output.text = format!("{}\n[{}]", output.text.trim_end(), report.exit);
            output.is_error = true;
        }
        if report.left_behind > 0 {
            let left = report.left_behind;
            output.text = format!("{}\n[{left} processes it left were ended]", output.text);
        }
        output.deeds.extend(line.map(|argv| Deed::Ran { argv, exit }));
        output
    }

    /// Stand-ins of commands that have ended.
    fn let_go(&self) {
        for (id, background) in self.background().iter_mut() {
            if !self.processes.log(*id, 0, 0).is_ok_and(|log| log.exit.is_none()) {
                background.hold = None;
            }
        }
    }

    fn background(&self) -> MutexGuard<'_, BTreeMap<Id, Background>> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Prepared {
    command: Command,
    hold: Hold,
}

/// All of what a command said, if it is somewhere; the file it was in is not needed any more.
fn whole(report: &Report) -> String {
    let Some(spill) = &report.output.spill else { return shown(&report.output) };
    let whole = fs::read(&spill.path);
    let _ = fs::remove_file(&spill.path);
    match whole {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            match &spill.trouble {
                Some(why) => format!("{text}\n[{why}]\n{}", report.output.tail),
                None => text,
            }
        }
        Err(_) => shown(&report.output),
    }
}

/// What is in memory of it. Where the rest lies is our own affair: no agent can look there.
pub(crate) fn shown(output: &locum_process::Output) -> String {
    if output.left_out == 0 {
        return output.head.clone();
    }
    let left = output.left_out;
    format!("{}\n[… {left} bytes left out; process log shows them …]\n{}", output.head, output.tail)
}
