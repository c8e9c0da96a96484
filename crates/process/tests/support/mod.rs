//! What the tests of this crate share: scripts as commands, who is left of them, and doing it all
//! again as an ordinary user. Each test is a program of its own and its own keeper.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locum_process::{Command, Hold, Keeper, Processes};

pub(crate) const KEEPER: &str = "__keep";
/// The longest that anything may take to end, after its deadline.
pub(crate) const END: Duration = Duration::from_secs(3);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// If this program was started as a keeper, it is one.
pub(crate) fn if_keeper() -> Option<ExitCode> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (first, rest) = args.split_first()?;
    (first == KEEPER).then(|| locum_process::keeper(rest))
}

pub(crate) fn processes() -> Processes {
    Processes::new(Keeper::of_this_program(KEEPER))
}

/// A folder that goes away.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("locum-process-{}", token()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A word that is in the environment and the arguments of one command and of nobody else.
pub(crate) fn token() -> String {
    format!("t{}x{}t", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn argv(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

/// A script as a command. In it, `sleep 1000` carries the token even where the environment is
/// cleared: the system shows what somebody was started with.
pub(crate) fn script(shell: &str, text: &str, token: &str, folder: &Path, hold: Hold) -> Command {
    let flag = if shell == "perl" { "-e" } else { "-c" };
    let text = text.replace("TOKEN", token);
    let words = argv(&[shell, flag, &text, token]);
    let mut command = Command::new(words, folder.to_owned(), folder.to_owned());
    command.env = vec![
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("TOKEN".into(), token.into()),
    ];
    command.hold = hold;
    command
}

/// All processes, also dead ones, that carry the token.
pub(crate) fn left(token: &str) -> Vec<String> {
    let carries = |pid: &String| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.windows(token.len()).any(|part| part == token.as_bytes())
        })
    };
    let own = process::id().to_string();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.starts_with(|c: char| c.is_ascii_digit()) && *pid != own)
        .filter(carries)
        .collect()
}

/// Nobody is left, at the latest in so long.
pub(crate) async fn nobody_left(token: &str, longest: Duration) -> Result<(), String> {
    for _ in 0..longest.as_millis() / 10 {
        if left(token).is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let pids = left(token);
    let name = |pid: &String| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    if pids.is_empty() { Ok(()) } else { Err(pids.iter().map(name).collect()) }
}

/// Our own children that nobody has waited for, and keepers among them.
pub(crate) fn children() -> usize {
    let own = process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let parent =
        |stat: String| Some(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned());
    stats.filter_map(parent).filter(|parent| *parent == own).count()
}

/// The control group that we are in, where the system counts processes in one.
fn group() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let line = own.lines().find(|line| line.split(':').nth(1) == Some("pids"))?;
    let place = line.splitn(3, ':').nth(2)?.trim_start_matches('/');
    Some(Path::new("/sys/fs/cgroup/pids").join(place))
}

/// Control groups of commands that nobody has taken away.
pub(crate) fn groups() -> usize {
    let entries = group().and_then(|group| fs::read_dir(group).ok());
    let entries = entries.into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("locum-")).count()
}

/// A wall around the tests: a fork bomb that is not held by what is tested must not take the
/// machine along. Only root can be kept in by a control group, and only root needs to be.
pub(crate) struct Wall(Option<(PathBuf, PathBuf)>);

impl Wall {
    pub(crate) fn new() -> Wall {
        let Some(home) = group().filter(|_| is_root()) else { return Wall(None) };
        let path = home.join(format!("test-{}", token()));
        let join = |()| {
            fs::write(path.join("pids.max"), "4000")?;
            fs::write(path.join("cgroup.procs"), "0")
        };
        match fs::create_dir(&path).and_then(join) {
            Ok(()) => Wall(Some((home, path))),
            Err(error) => {
                println!("SKIPPED the wall around fork bombs: {}: {error}", path.display());
                Wall(None)
            }
        }
    }
}

impl Drop for Wall {
    fn drop(&mut self) {
        if let Some((home, path)) = &self.0 {
            let _ = fs::write(home.join("cgroup.procs"), "0");
            let _ = fs::remove_dir(path);
        }
    }
}

/// The most memory this process has ever had, in KiB.
pub(crate) fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// Does the same as an ordinary user, if we are root and can: whether that went well.
pub(crate) fn again_as_nobody(folder: &Path, args: &[String]) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    if !is_root() {
        return true;
    }
    // Where we were built may be closed to others.
    let copy = folder.join("copy");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let mut again = process::Command::new("setpriv");
    again.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).args(args);
    match again.current_dir("/").status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("SKIPPED as an ordinary user: setpriv: {error}");
            true
        }
    }
}
