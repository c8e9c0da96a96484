//! `passthrough`: another program that does the whole work of an agent. It is told its task, runs
//! until it ends, and what it prints is the result. Its errors are a stream of their own, of which
//! the end is shown if it failed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{Errand, Output};
use locum_process::{Exit, Input, Progress, Ran, Report};
use locum_runtime::live::Live;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

use crate::copies::Copy;
use crate::exec::{Prepared, Room, ran, stay, whole};
use crate::files::cut;
use crate::site::with_network;
use crate::{grants, is_set, text};

pub(crate) const NAME: &str = "passthrough";

/// A whole piece of work by a program that thinks for itself.
const TIMEOUT: Duration = Duration::from_hours(6);
/// Of its errors, if it failed.
const ERRORS_BYTES: usize = 8 << 10;
/// For whoever reads that it could not write.
const WALL: &str = "[it may write to the workspace and to a temporary folder; your own definition \
                    can name folders of its own: passthrough: {writes: [~/.its-folder]}]";
/// For whoever reads that a program which is there is not there.
const HIDDEN: &str = ", or what its first line names, cannot be seen behind the walls, which hide \
                      /tmp, /var/tmp and /dev/shm: it can lie in the workspace, or in a folder of \
                      PATH such as /usr/local/bin]";
/// The system takes no longer argument. On its standard input a task can be as long as it likes.
const ARGUMENT_BYTES_MAX: usize = 128 << 10;

pub(crate) async fn run(room: Arc<Room>, errand: Errand, live: Live) -> Output {
    let (call, agent) = (errand.call, errand.agent.to_string());
    let inside = Arc::clone(&room);
    let own = errand.clone();
    let prepared = tokio::task::spawn_blocking(move || prepare(&inside, &own)).await;
    let Started { prepared, pipe, line: words, program, copy } = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(why)) => return Output::error(why),
        Err(error) => return Output::error(format!("{NAME} failed: {error}")),
    };
    let Prepared { command, hold, watched } = prepared;
    let mut errors = match Errors::open(pipe) {
        Ok(errors) => errors,
        Err(error) => return Output::error(format!("{NAME} failed: {error}")),
    };
    let told = |it: &Progress| live.output(call, it.bytes, &it.tail);
    let ran = tokio::select! {
        ran = room.processes.run(&agent, command, told) => ran,
        never = errors.listen() => match never {},
    };
    drop(hold);
    errors.read();
    room.look_after(errand, watched).await;
    match ran {
        Ok(Ran::Ended(report)) => {
            let spills = room.place.spills();
            let said = errors.said();
            let work = move || {
                let mut output = ended(&spills, words, &report, &said);
                if is_hidden(&program, &report, &said) {
                    let text = output.text.trim_end();
                    output.text = format!("{text}\n[{}{HIDDEN}", program.display());
                }
                // Whoever reads the result is elsewhere.
                if let Some(line) = copy.and_then(|copy| copy.told()) {
                    output.text = format!("{}\n{line}", output.text);
                }
                output
            };
            let output = tokio::task::spawn_blocking(work).await;
            output.unwrap_or_else(|error| Output::error(format!("{NAME} failed: {error}")))
        }
        // Its patience is longer than its life.
        Ok(Ran::Backgrounded { id, .. }) => Output::error(format!("{id} did not end in time")),
        Err(error) => Output::error(error.to_string()),
    }
}

/// A program that is about to be started.
struct Started {
    prepared: Prepared,
    pipe: Pipe,
    line: String,
    program: PathBuf,
    copy: Option<Copy>,
}

fn prepare(room: &Room, errand: &Errand) -> Result<Started, String> {
    let words = errand.arguments.get("command").and_then(Value::as_array);
    let words = words.into_iter().flatten().map(|word| word.as_str().map(str::to_owned));
    let mut words: Vec<String> =
        words.collect::<Option<_>>().ok_or("`command` must be a list of words")?;
    let Some(named) = words.first().filter(|it| !it.is_empty()) else {
        return Err("there is no program to run: `command` is empty".into());
    };
    let line = words.join(" ");
    let site = room.site(errand)?;
    let cwd = site.folder("")?;
    let program = find(named, &cwd, env::var_os("PATH").as_deref())?;
    let task = text(&errand.arguments, "text").unwrap_or_default().to_owned();
    let input = match text(&errand.arguments, "input") {
        Some("arg") if task.len() >= ARGUMENT_BYTES_MAX => {
            let (bytes, most) = (task.len(), ARGUMENT_BYTES_MAX);
            return Err(format!(
                "a task of {bytes} bytes cannot be an argument of {named}, {most} are the most: \
                 let it read its standard input"
            ));
        }
        Some("arg") => {
            words.push(task);
            Input::Nothing
        }
        Some("stdin") | None => Input::Text(task),
        Some(other) => return Err(format!("`input` is stdin or arg, not {other:?}")),
    };
    let rest = words.into_iter().skip(1).map(OsString::from);
    let argv: Vec<OsString> = [program.clone().into_os_string()].into_iter().chain(rest).collect();
    let mut walls = site.walls(errand);
    if is_set(&errand.arguments, "network") {
        with_network(&mut walls, errand);
    }
    grants::open(&mut walls, errand, [&site.place, &room.place])?;
    let mut prepared = room.enclose(&walls, argv, cwd)?;
    let pipe = Pipe::make(&room.place.output(), errand)?;
    let command = &mut prepared.command;
    command.errors = Some(pipe.0.clone());
    command.input = input;
    stay(command, TIMEOUT);
    prepared.watched = room.before(errand, &site.place.workspace);
    Ok(Started { prepared, pipe, line, program, copy: site.copy })
}

/// Where a program is, by the rules of the system.
fn find(named: &str, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, String> {
    let runs = |file: &PathBuf| {
        let data = fs::metadata(file);
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if named.contains('/') {
        let file = cwd.join(named);
        return Some(file).filter(runs).ok_or_else(|| {
            format!("{named} cannot be run: there is no such program. Install it first")
        });
    }
    let folders = path.map(env::split_paths).into_iter().flatten();
    // A folder that is not absolute means another place for everybody.
    let mut found = folders.filter(|it| it.is_absolute()).map(|folder| folder.join(named));
    found.find(runs).ok_or_else(|| {
        format!("{named} is not installed: no folder of PATH has it. Install it first")
    })
}

fn ended(spills: &Path, line: String, report: &Report, said: &str) -> Output {
    let mut output = cut(spills, whole(report).trim_end().to_owned());
    output.deeds.push(ran(line, report.exit));
    if report.exit == Exit::Code(0) {
        return output;
    }
    output.is_error = true;
    // With an exit code everybody is told so anyway.
    let why = match report.exit {
        Exit::Code(_) => None,
        Exit::TimedOut => Some(format!("timed out after {} s", report.ms / 1_000)),
        Exit::Signal(_) | Exit::Killed | Exit::TooManyProcesses | Exit::Lost => {
            Some(report.exit.to_string())
        }
    };
    let hint = [output.text.as_str(), said].iter().any(|it| met_a_wall(it)).then_some(WALL);
    let hint = hint.unwrap_or_default().to_owned();
    let told = [why.unwrap_or_default(), output.text, said.trim().to_owned(), hint];
    let told: Vec<String> = told.into_iter().filter(|it| !it.is_empty()).collect();
    output.text = told.join("\n");
    output
}

/// Whether the walls did not find a program that is there.
fn is_hidden(program: &Path, report: &Report, said: &str) -> bool {
    let missed = format!("{}: No such file or directory", program.display());
    report.exit == Exit::Code(127) && said.contains(&missed) && program.exists()
}

/// What it says when it cannot write, in the words of the system and of those who translate them.
fn met_a_wall(said: &str) -> bool {
    ["ead-only file system", "EROFS", "unable to open database file"]
        .iter()
        .any(|words| said.contains(words))
}

/// A pipe with a name, which goes away with this.
struct Pipe(PathBuf);

impl Pipe {
    fn make(folder: &Path, errand: &Errand) -> Result<Pipe, String> {
        let name = format!("{}-{}-{}.err", errand.agent, errand.call, std::process::id());
        let path = folder.join(name);
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let made = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        made.map_err(|errno| failed(errno.into()))?;
        Ok(Pipe(path))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What a program says on its standard error: the end of it.
struct Errors {
    pipe: Receiver,
    /// Ours: with it open there is no end before we say so.
    _open: Sender,
    last: Vec<u8>,
    left_out: bool,
    _name: Pipe,
}

enum Never {}

impl Errors {
    fn open(name: Pipe) -> io::Result<Errors> {
        let pipe = OpenOptions::new().open_receiver(&name.0)?;
        let open = OpenOptions::new().open_sender(&name.0)?;
        Ok(Errors { pipe, _open: open, last: Vec::new(), left_out: false, _name: name })
    }

    async fn listen(&mut self) -> Never {
        loop {
            if self.pipe.readable().await.is_err() {
                return std::future::pending().await;
            }
            self.read();
        }
    }

    /// All that is there now.
    fn read(&mut self) {
        let mut chunk = [0; 4 << 10];
        while let Ok(count @ 1..) = self.pipe.try_read(&mut chunk) {
            self.last.extend_from_slice(&chunk[..count]);
            let over = self.last.len().saturating_sub(ERRORS_BYTES);
            self.left_out |= over > 0;
            self.last.drain(..over);
        }
    }

    fn said(&self) -> String {
        if self.left_out {
            return format!("[…]{}", String::from_utf8_lossy(from_a_letter(&self.last)));
        }
        String::from_utf8_lossy(&self.last).into_owned()
    }
}

/// Without the rest of a letter whose beginning was left out.
fn from_a_letter(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[rest..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_system_finds_them() {
        let folder = Path::new("/bin");
        let path = Some(OsStr::new("relative:/nowhere:/usr/bin:/bin"));
        let cases = [
            ("sh", "sh"),
            ("./sh", "sh"),
            ("/bin/sh", "sh"),
            ("no-such-program", "no-such-program is not installed"),
            ("./no-such-program", "./no-such-program cannot be run"),
            ("/bin", "/bin cannot be run"),
            ("/etc/passwd", "/etc/passwd cannot be run"),
        ];
        for (named, expected) in cases {
            let shown = match find(named, folder, path) {
                Ok(file) => file.file_name().unwrap().to_string_lossy().into_owned(),
                Err(why) => why,
            };
            assert!(shown.starts_with(expected), "{named}: {shown}");
        }
        assert!(find("sh", folder, None).is_err());
    }

    #[test]
    fn what_is_left_of_errors_begins_with_a_letter() {
        for (text, cut) in [("äb", 1), ("…b", 1), ("…b", 2), ("😀b", 1), ("😀b", 3), ("ab", 1)]
        {
            assert_eq!(from_a_letter(&text.as_bytes()[cut..]), b"b", "{text} {cut}");
        }
        assert_eq!(from_a_letter(b""), b"");
    }
}
