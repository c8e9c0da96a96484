//! `exec`, `process` and `passthrough`: commands behind walls, and what they leave running.

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
use locum_sandbox::{Enclosed, Fragile, Hold, NoWalls, Terminal, Walls};

use crate::files::cut;
use crate::past::Moment;
use crate::place::survey;
use crate::site::{Watched, with_network};
use crate::{Place, is_set, links, number, passthrough, process, text};

/// Longest a command may take if nothing else is said, in the foreground and the background.
const TIMEOUT: Duration = Duration::from_mins(30);
const TIMEOUT_MAX: Duration = Duration::from_hours(24);
/// More than ending one that is too late can take.
const LATE: Duration = Duration::from_mins(1);
/// How often walls are built again because something they were to hide was gone by then.
const TRIES: u32 = 20;
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
    pub(crate) place: Place,
    pub(crate) processes: Processes,
    walls: Around,
    /// Where it is written that there are walls.
    note: PathBuf,
    /// Commands that went to the background and whose end nobody has been told yet.
    background: Mutex<BTreeMap<Id, Background>>,
    /// What was in a workspace when it was last looked at, so that not all is read again.
    pub(crate) moments: Mutex<BTreeMap<PathBuf, Moment>>,
}

/// What is around commands on this machine.
#[derive(Debug)]
enum Around {
    Walls,
    /// Walls that do not keep the guards of a workspace, and words for the person who is asked for
    /// every command then.
    Weak(String),
    /// Nothing, and why.
    Bare(String),
}

impl Around {
    fn found(note: &Path) -> Around {
        if has_walls(note) {
            return Around::Walls;
        }
        match (survey().builder(), survey().caution()) {
            (Ok(_), Some(why)) => Around::Weak(why),
            (Err(why), _) => Around::Bare(why.to_string()),
            (Ok(_), None) => {
                remember(note);
                Around::Walls
            }
        }
    }

    fn caution(&self) -> Option<&str> {
        match self {
            Around::Walls => None,
            Around::Weak(why) | Around::Bare(why) => Some(why),
        }
    }
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
        let walls = Around::found(&note);
        let processes = Processes::new(Keeper::of_this_program(KEEP));
        Exec(Arc::new(Room {
            place,
            processes,
            walls,
            note,
            background: Mutex::default(),
            moments: Mutex::default(),
        }))
    }

    /// Why a person is asked before every command here, if so: there are no walls, or weak ones.
    #[must_use]
    pub fn caution(&self) -> Option<&str> {
        self.0.walls.caution()
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
    format!("guarded {} {} {wraps} {who}\n", system.trim(), boot.trim())
}

impl Toolbox for Exec {
    fn specs(&self) -> Vec<ToolSpec> {
        let command = |name| ToolSpec {
            caution: self.0.walls.caution().map(str::to_owned),
            ..ToolSpec::new(name, Class::Exec, Some("command"))
        };
        let process = ToolSpec::new("process", Class::Exec, Some("action"));
        vec![command("exec"), process, command(passthrough::NAME)]
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let room = Arc::clone(&self.0);
        Box::pin(async move {
            match errand.tool.as_str() {
                "process" => process::run(&room, &errand, &live).await,
                passthrough::NAME => passthrough::run(room, errand, live).await,
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
        let mut next = errand;
        let mut tries = 0;
        loop {
            let room = Arc::clone(&self);
            let prepared = tokio::task::spawn_blocking(move || {
                let prepared = room.prepare(&next);
                (next, prepared)
            });
            let (errand, prepared) = match prepared.await {
                Ok((errand, Ok(prepared))) => (errand, prepared),
                Ok((_, Err(why))) => return Output::error(why),
                Err(error) => return Output::error(format!("exec failed: {error}")),
            };
            let Prepared { command, hold, watched } = prepared;
            let (call, words) = (errand.call, command.argv.clone());
            let told = |it: &Progress| live.output(call, it.bytes, &it.tail);
            let ran = self.processes.run(&errand.agent.to_string(), command, told).await;
            self.let_go();
            let errand = self.look_after(errand, watched).await;
            let never_began = match &ran {
                Ok(Ran::Ended(it)) => locum_sandbox::never_began(&words, &it.output.head),
                Ok(Ran::Backgrounded { .. }) | Err(_) => false,
            };
            if !never_began || tries == TRIES {
                return self.came_to(&errand, ran, hold);
            }
            tries += 1;
            next = errand;
        }
    }

    fn came_to(
        &self,
        errand: &Errand,
        ran: Result<Ran, locum_process::Error>,
        hold: Hold,
    ) -> Output {
        let typed = text(&errand.arguments, "command").unwrap_or_default().to_owned();
        match ran {
            Ok(Ran::Ended(report)) => {
                drop(hold);
                let mut output = self.told(Some(typed), &report);
                if errand.ours.is_some() && report.exit == Exit::TimedOut {
                    // First, because of a check that failed only the first line is told.
                    let after = report.ms / 1_000;
                    output.text = format!("timed out after {after} s\n{}", output.text);
                }
                output
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
        let site = self.site(errand)?;
        let cwd = site.folder(text(&errand.arguments, "cwd").unwrap_or_default())?;
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        let argv: Vec<OsString> = vec![shell.into(), "-c".into(), line.into()];
        let tty = is_set(&errand.arguments, "tty");
        let mut walls = site.walls(errand);
        if is_set(&errand.arguments, "network") {
            with_network(&mut walls, errand);
        }
        walls.terminal = if tty { Terminal::Given } else { Terminal::Detached };
        let mut prepared = self.enclose(&walls, argv, cwd)?;
        let timeout = number(&errand.arguments, "timeout_s").map(Duration::from_secs);
        let timeout = timeout.unwrap_or(TIMEOUT).min(TIMEOUT_MAX);
        let command = &mut prepared.command;
        command.timeout = Some(timeout);
        if tty {
            command.io = Io::Terminal { rows: ROWS, cols: COLS };
        }
        if errand.ours.is_some() {
            stay(command, timeout);
        } else if is_set(&errand.arguments, "background") {
            command.start = Start::Background;
            command.input = locum_process::Input::Open;
        }
        prepared.watched = self.before(errand, &site.place.workspace);
        Ok(prepared)
    }

    /// A command behind what walls there are: where they are weak or none a person has agreed, or
    /// it would not run.
    pub(crate) fn enclose(
        &self,
        walls: &Walls,
        argv: Vec<OsString>,
        cwd: PathBuf,
    ) -> Result<Prepared, String> {
        let output = self.place.output();
        fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let mut walls = walls.clone();
        if !matches!(self.walls, Around::Bare(_)) {
            links::keep(&mut walls, &self.place)?;
        }
        // The walls have a world of their own; two of them would only hide things.
        let (enclosed, held) = match &self.walls {
            Around::Bare(_) => {
                let env = locum_sandbox::environment(&walls.granted);
                (Ok(Enclosed { argv, env, hold: Hold::default() }), Held::Auto)
            }
            Around::Weak(_) => {
                walls.fragile = Fragile::Leave;
                (locum_sandbox::enclose(&walls, survey(), &argv, &cwd), Held::Tree)
            }
            Around::Walls => {
                let enclosed = locum_sandbox::enclose(&walls, survey(), &argv, &cwd);
                if let Err(NoWalls::Machine(_) | NoWalls::Unguarded { .. }) = &enclosed {
                    // They were there once; whoever starts next looks again, and is asked.
                    let _ = fs::remove_file(&self.note);
                }
                (enclosed, Held::Tree)
            }
        };
        let Enclosed { argv, env, hold } = enclosed.map_err(|why| format!("not run: {why}"))?;
        let command = Command { env, hold: held, ..Command::new(argv, cwd, output) };
        Ok(Prepared { command, hold, watched: None })
    }

    /// How a command of the background ended. Its deed is told once, however often it is asked.
    pub(crate) fn ended(&self, report: &Report) -> Output {
        let line = self.background().remove(&report.id).map(|it| it.line);
        self.told(line, report)
    }

    fn told(&self, line: Option<String>, report: &Report) -> Output {
        let mut output = cut(&self.place.spills(), whole(report));
        if report.exit != Exit::Code(0) {
            output.text = format!("{}\n[{}]", output.text.trim_end(), report.exit);
            output.is_error = true;
        }
        if report.left_behind > 0 {
            let left = report.left_behind;
            output.text = format!("{}\n[{left} processes it left were ended]", output.text);
        }
        output.deeds.extend(line.map(|argv| ran(argv, report.exit)));
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

pub(crate) struct Prepared {
    pub(crate) command: Command,
    pub(crate) hold: Hold,
    pub(crate) watched: Option<Watched>,
}

/// It is waited for until it ends, however long that takes.
pub(crate) fn stay(command: &mut Command, timeout: Duration) {
    command.timeout = Some(timeout);
    command.patience = timeout + LATE;
}

/// What the receipt says of a command. Without an exit code it is -1.
pub(crate) fn ran(argv: String, exit: Exit) -> Deed {
    let exit = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::TimedOut | Exit::Killed | Exit::TooManyProcesses | Exit::Lost => -1,
    };
    Deed::Ran { argv, exit }
}

/// All of what a command said, if it is somewhere; the file it was in is not needed any more.
pub(crate) fn whole(report: &Report) -> String {
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
