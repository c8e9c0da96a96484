//! What this machine can build walls from, found out by building some, in words for a person.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::enclose::enclose;
use crate::spec::{Spec, WALL};
use crate::walls::{Enclosed, NoWalls, Walls};

/// Together ten seconds: a trial takes milliseconds, and one that hangs is one that failed.
const POLLS: u32 = 1000;
const POLL: Duration = Duration::from_millis(10);

/// The first version of Landlock that keeps files from being emptied.
const LANDLOCK_MIN: u32 = 3;
/// The first that keeps signals and nameless sockets in.
const LANDLOCK_SCOPES: u32 = 6;

/// The ways to build, the best one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builder {
    Bubblewrap(PathBuf),
    /// Namespaces of our own, Landlock, a filter.
    Namespaces,
    /// Landlock and a filter alone.
    Landlock,
    /// `sandbox-exec` on macOS. Untested.
    Seatbelt,
}

/// What was found. A plain value: tests take one and change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Ways that worked when tried, the best one first.
    pub builders: Vec<Builder>,
    /// 0: this kernel has none.
    pub landlock: u32,
    pub seccomp: Seccomp,
    /// Why bubblewrap is not among the builders.
    pub trouble: Option<String>,
    /// The program that becomes the wall: our own.
    pub ourselves: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    There,
    Missing,
}

/// What the walls of this machine do not keep, which others would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Guards in a writable folder are not kept, and a person is asked instead.
    NoGuardsInWorkspace,
    NamesOfHiddenFiles,
    ArgumentsOfOthers,
    SignalsToOthers,
    Survivors,
    NoMarks,
    NoLoopback,
    NoLandlock,
    Untested,
}

impl fmt::Display for Weakness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoGuardsInWorkspace => {
                "places in a workspace, like .git/hooks, are not kept: every command asks"
            }
            Self::NamesOfHiddenFiles => "names of hidden files can be listed, but not read",
            Self::ArgumentsOfOthers => "a command can see how other programs were started",
            Self::SignalsToOthers => "a command can send signals to your other programs",
            Self::Survivors => "what a command leaves running lives on if locum is killed",
            Self::NoMarks => {
                "a command cannot change modes or dates of files, which some compilers need"
            }
            Self::NoLoopback => "without network a command cannot talk with itself either",
            Self::NoLandlock => "there is no second wall around files: this kernel has no Landlock",
            Self::Untested => "nobody has tested the walls of this system yet",
        })
    }
}

impl Survey {
    /// Tries what there is. `ourselves` is a program that calls [`crate::wall`] first thing.
    pub fn take(ourselves: &Path) -> Self {
        let mut survey = Self {
            builders: Vec::new(),
            landlock: 0,
            seccomp: Seccomp::Missing,
            trouble: None,
            ourselves: ourselves.to_owned(),
        };
        if cfg!(target_os = "macos") {
            survey.builders.push(Builder::Seatbelt);
            return survey;
        }
        survey.landlock = report(ourselves).unwrap_or(0);
        if Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
            survey.seccomp = Seccomp::There;
        }
        let found = find("bwrap");
        let candidates =
            [found.map(Builder::Bubblewrap), Some(Builder::Namespaces), Some(Builder::Landlock)];
        let mut builders = Vec::new();
        for builder in candidates.into_iter().flatten() {
            match survey.try_out(&builder) {
                Ok(()) => builders.push(builder),
                Err(why) => {
                    if let Builder::Bubblewrap(path) = builder {
                        survey.trouble = Some(format!("{}: {why}", path.display()));
                    }
                }
            }
        }
        survey.builders = builders;
        survey
    }

    pub fn builder(&self) -> Result<&Builder, NoWalls> {
        if cfg!(target_os = "linux") && self.seccomp == Seccomp::Missing {
            let why = "This kernel cannot filter system calls, so there is no sandbox";
            return Err(NoWalls::Machine(why.to_owned()));
        }
        self.builders.iter().find(|builder| self.fits(builder)).ok_or_else(|| {
            let Self { landlock, trouble, .. } = self;
            let bubblewrap = trouble.as_deref().unwrap_or("bubblewrap is not installed");
            let landlock = match landlock {
                0 => "this kernel has no Landlock".to_owned(),
                version => format!("Landlock {version} is too old, {LANDLOCK_MIN} is needed"),
            };
            NoWalls::Machine(format!("There is no sandbox here: {bubblewrap}, and {landlock}"))
        })
    }

    fn fits(&self, builder: &Builder) -> bool {
        match builder {
            Builder::Bubblewrap(_) | Builder::Seatbelt => true,
            Builder::Namespaces | Builder::Landlock => self.landlock >= LANDLOCK_MIN,
        }
    }

    /// The best that needs nobody to find our program by its name.
    pub(crate) fn without_bubblewrap(&self) -> Option<&Builder> {
        let ours = |it: &&Builder| !matches!(it, Builder::Bubblewrap(_)) && self.fits(it);
        self.builders.iter().find(ours)
    }

    /// Why a person has to be asked before every command here, if so.
    pub fn caution(&self) -> Option<String> {
        match self.builder() {
            Err(why) => Some(why.to_string()),
            Ok(Builder::Landlock) => Some(
                "This sandbox is Landlock alone: in a workspace a command can change .git and what \
                 agents are made of, such as .locum and .claude. Install bubblewrap, or allow this \
                 command all the same"
                    .to_owned(),
            ),
            Ok(Builder::Bubblewrap(_) | Builder::Namespaces | Builder::Seatbelt) => None,
        }
    }

    pub fn weaknesses(&self) -> Vec<Weakness> {
        let mut found = match self.builder() {
            Ok(Builder::Bubblewrap(_)) if self.landlock == 0 => vec![Weakness::NoLandlock],
            Ok(Builder::Bubblewrap(_)) | Err(_) => Vec::new(),
            Ok(Builder::Namespaces) => vec![Weakness::NoLoopback],
            Ok(Builder::Landlock) => vec![
                Weakness::NoGuardsInWorkspace,
                Weakness::NamesOfHiddenFiles,
                Weakness::ArgumentsOfOthers,
                Weakness::Survivors,
                Weakness::NoMarks,
                Weakness::NoLoopback,
            ],
            Ok(Builder::Seatbelt) => vec![Weakness::Untested],
        };
        if self.builder().is_ok_and(|found| *found == Builder::Landlock)
            && self.landlock < LANDLOCK_SCOPES
        {
            found.push(Weakness::SignalsToOthers);
        }
        found
    }

    /// For `doctor`: one line of what there is, then one for each weakness.
    pub fn lines(&self) -> Vec<String> {
        let first = match self.builder() {
            Err(why) => return vec![why.to_string()],
            Ok(Builder::Bubblewrap(path)) => {
                format!("bubblewrap ({}), landlock {}, seccomp", path.display(), self.landlock)
            }
            Ok(Builder::Namespaces) => {
                format!("our own namespaces, landlock {}, seccomp", self.landlock)
            }
            Ok(Builder::Landlock) => {
                format!("landlock {}, seccomp; no namespaces", self.landlock)
            }
            Ok(Builder::Seatbelt) => "sandbox-exec".to_owned(),
        };
        let trouble = self.trouble.iter().map(|why| format!("bubblewrap does not work: {why}"));
        let weaknesses = self.weaknesses();
        let weaknesses = weaknesses.iter().map(ToString::to_string);
        [first].into_iter().chain(trouble).chain(weaknesses).collect()
    }

    /// The real thing, around a program that does nothing: our own, asked for a report.
    fn try_out(&self, builder: &Builder) -> Result<(), String> {
        let alone = Self { builders: vec![builder.clone()], ..self.clone() };
        // Bubblewrap hides where we are, and shows us again under the name it calls us by.
        let program = match builder {
            Builder::Bubblewrap(_) => vec!["/run/locum/wall".into()],
            Builder::Namespaces | Builder::Landlock | Builder::Seatbelt => {
                vec![OsString::from(&self.ourselves)]
            }
        };
        let program: Vec<OsString> = program.into_iter().chain(report_words()).collect();
        let walls = Walls::read_only("/");
        let enclosed = enclose(&walls, &alone, &program, Path::new("/"));
        let Enclosed { argv, env, hold: _hold } = enclosed.map_err(|why| why.to_string())?;
        let (first, rest) = argv.split_first().ok_or("nothing to run")?;
        let mut command = Command::new(first);
        run(command.args(rest).env_clear().envs(env)).map(drop)
    }
}

fn report_words() -> Vec<OsString> {
    let spec = serde_json::to_string(&Spec::Report).unwrap_or_default();
    vec![WALL.into(), spec.into()]
}

fn report(ourselves: &Path) -> Option<u32> {
    let mut command = Command::new(ourselves);
    run(command.args(report_words())).ok()?.trim().parse().ok()
}

fn run(command: &mut Command) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let ended = ended(&mut child).map_err(|error| error.to_string())?;
    let read = |stream: Option<&mut dyn io::Read>| {
        let mut text = String::new();
        // Both say a line at most; a pipe holds far more, so nobody waits for being read.
        let _ = stream.map(|stream| stream.take(4096).read_to_string(&mut text));
        text
    };
    if ended {
        return Ok(read(child.stdout.as_mut().map(|stream| stream as &mut dyn io::Read)));
    }
    Err(read(child.stderr.as_mut().map(|stream| stream as &mut dyn io::Read)).trim().to_owned())
}

/// True: well. It is ended if it does not end by itself.
fn ended(child: &mut Child) -> io::Result<bool> {
    for _ in 0..POLLS {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(POLL);
    }
    child.kill()?;
    child.wait().map(|_| false)
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        // A relative one means whatever folder we happen to be in.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| file.metadata().is_ok_and(|data| data.is_file() && of_the_system(&data)))
}

/// Only the machine's keeper could have put it there, and not a command that ran before.
#[cfg(unix)]
fn of_the_system(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    const OTHERS_WRITE: u32 = 0o022;
    data.uid() == 0 && data.mode() & OTHERS_WRITE == 0
}

#[cfg(not(unix))]
fn of_the_system(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::{Builder, Seccomp, Survey, Weakness};

    fn survey(builders: Vec<Builder>, landlock: u32, seccomp: Seccomp) -> Survey {
        Survey { builders, landlock, seccomp, trouble: None, ourselves: "/locum".into() }
    }

    #[test]
    fn what_a_person_is_told() {
        let bwrap = || Builder::Bubblewrap("/usr/bin/bwrap".into());
        let (there, missing) = (Seccomp::There, Seccomp::Missing);
        let nothing = "There is no sandbox here: bubblewrap is not installed, and";
        let none = format!("{nothing} this kernel has no Landlock");
        let old = format!("{nothing} Landlock 2 is too old, 3 is needed");
        let ask = "Install bubblewrap, or allow this command to run without a sandbox";
        let cases = [
            (survey(vec![bwrap()], 7, there), "bubblewrap (/usr/bin/bwrap), landlock 7, seccomp"),
            (
                survey(vec![Builder::Namespaces], 7, there),
                "our own namespaces, landlock 7, seccomp",
            ),
            (survey(vec![Builder::Landlock], 5, there), "landlock 5, seccomp; no namespaces"),
            (survey(vec![], 0, there), &none),
            (survey(vec![Builder::Landlock], 2, there), &old),
            (
                survey(vec![bwrap()], 7, missing),
                "This kernel cannot filter system calls, so there is no sandbox",
            ),
        ];
        for (survey, expected) in cases {
            let first = survey.lines().remove(0);
            let first = first.strip_suffix(&format!(". {ask}")).unwrap_or(&first);
            assert_eq!(first, expected);
        }
    }

    #[test]
    fn the_weaker_the_walls_the_more_is_told() {
        let told = |builder, landlock| survey(vec![builder], landlock, Seccomp::There).weaknesses();
        assert_eq!(told(Builder::Bubblewrap("/bwrap".into()), 7), []);
        assert_eq!(told(Builder::Bubblewrap("/bwrap".into()), 0), [Weakness::NoLandlock]);
        assert_eq!(told(Builder::Namespaces, 7), [Weakness::NoLoopback]);
        assert!(told(Builder::Landlock, 5).contains(&Weakness::SignalsToOthers));
        assert!(!told(Builder::Landlock, 6).contains(&Weakness::SignalsToOthers));
    }

    #[test]
    fn a_person_is_asked_where_walls_do_not_keep_guards() {
        let asks = |builder| survey(vec![builder], 7, Seccomp::There).caution().is_some();
        assert!(!asks(Builder::Bubblewrap("/bwrap".into())));
        assert!(!asks(Builder::Namespaces));
        assert!(asks(Builder::Landlock));
        assert!(survey(vec![], 7, Seccomp::There).caution().is_some());
    }
}
