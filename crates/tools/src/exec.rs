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

use crate::around::{Around, Second, forget, look_again, note, survey};
use crate::files::cut;
use crate::past::Moment;
use crate::site::{Watched, with_network};
use crate::{Place, is_set, links, number, numbers, passthrough, process, text};

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
    /// Those up to this number ended with the program that started them.
    pub(crate) before: u32,
    walls: Around,
    /// Where it is written that there are walls.
    note: PathBuf,
    /// Commands that went to the background and whose end nobody has been told yet.
    background: Mutex<BTreeMap<Id, Background>>,
    /// What was in a workspace when it was last looked at, so that not all is read again.
    pub(crate) moments: Mutex<BTreeMap<PathBuf, Moment>>,
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
        let before = numbers::last(&place);
        let processes = Processes::new(Keeper::of_this_program(KEEP)).after(before);
        Exec(Arc::new(Room {
            place,
            processes,
            before,
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
            let again = match &ran {
                _ if tries == TRIES => Ok(false),
                Ok(Ran::Ended(it)) => self.again(&words, it, tries).await,
                Ok(Ran::Backgrounded { .. }) | Err(_) => Ok(false),
            };
            match again {
                Ok(true) => tries += 1,
                Ok(false) => return self.came_to(&errand, ran, hold),
                Err(why) => return Output::error(format!("not run: {why}")),
            }
            next = errand;
        }
    }

    /// Whether a command never began and may be tried again; or why there is no way to.
    async fn again(&self, words: &[OsString], ended: &Report, tries: u32) -> Result<bool, String> {
        if locum_sandbox::never_began(words, &ended.output.head) {
            return Ok(true);
        }
        // One look is enough: a command may say such a thing by itself.
        let told = ended.exit != Exit::Code(0) && locum_sandbox::fell(&ended.output.head);
        if !told || tries > 0 || !matches!(self.walls, Around::Walls) {
            return Ok(false);
        }
        let note = self.note.clone();
        match tokio::task::spawn_blocking(move || look_again(&note)).await {
            Ok(Second::Other) => Ok(true),
            Ok(Second::Gone(why)) => Err(why),
            Ok(Second::Same) | Err(_) => Ok(false),
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
                numbers::keep(&self.place, id);
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
        if line.contains('\0') {
            return Err("a command cannot have a NUL character in it".to_owned());
        }
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
                (locum_sandbox::enclose(&walls, &survey(), &argv, &cwd), Held::Tree)
            }
            Around::Walls => {
                let enclosed = locum_sandbox::enclose(&walls, &survey(), &argv, &cwd);
                if let Err(NoWalls::Machine(_) | NoWalls::Unguarded { .. }) = &enclosed {
                    // They were there once; whoever starts next looks again, and is asked.
                    forget(&self.note);
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
