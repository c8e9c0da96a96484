//! Walls as flags of bubblewrap: a whole tree of mounts, then our own program as the last wall.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::layers::{Layer, Mount, Plan};
use crate::spec::NOTHING_RUN;
use crate::walls::{Network, Terminal, Walls, Writes};

/// Temporary folders are memory. This much of it is a large build's worth of scratch.
const SCRATCH_BYTES: &str = "2147483648";

/// Folders where programs meet: sockets of daemons, of agents for keys, of the desktop. Each
/// command has empty ones of its own.
const SCRATCH: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
const MEETING: &str = "/run";

/// Links in there that systems keep their programs behind.
const PROGRAMS: &[&str] = &["/run/current-system", "/run/opengl-driver"];

/// Where our own program is found inside, wherever it is outside.
const OURSELVES: &str = "/run/locum/wall";

/// Sockets outside of the meeting places are hidden one by one; more than that is no machine
/// somebody works at.
const SOCKETS_MAX: usize = 256;

/// How the kernel's list of sockets says so.
const LISTENING: &str = "00010000";
const DATAGRAM: &str = "0002";

/// Folders that are fresh inside, so that nothing of ours is found there.
pub(crate) fn scratch() -> Vec<PathBuf> {
    SCRATCH.iter().map(PathBuf::from).collect()
}

/// Words for bubblewrap.
#[derive(Debug, Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn at(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into()]);
    }

    fn same(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into(), path.into()]);
    }
}

/// Everything up to our own program, whose words `inner` has. The first of them is its path.
pub(crate) fn argv(
    bwrap: &Path,
    walls: &Walls,
    plan: &Plan,
    cwd: &Path,
    inner: &[OsString],
) -> Vec<OsString> {
    let mut words = Words(vec![bwrap.into()]);
    words.add(["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    words.add(["--unshare-user-try", "--unshare-cgroup-try", "--cap-drop", "ALL"]);
    if walls.network != Network::On {
        words.add(["--unshare-net"]);
    }
    if walls.terminal == Terminal::Detached {
        words.add(["--new-session"]);
    }
    words.add(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", MEETING]);
    for folder in SCRATCH {
        words.add(["--size", SCRATCH_BYTES, "--tmpfs", folder]);
    }
    programs(&mut words);
    if walls.network == Network::On {
        resolver(&mut words);
    }
    let (ourselves, rest) = inner.split_first().map_or((None, inner), |(a, b)| (Some(a), b));
    if let Some(ourselves) = ourselves {
        words.0.extend(["--ro-bind".into(), ourselves.clone(), OURSELVES.into()]);
    }
    shown(walls, &mut words);
    for layer in &plan.layers {
        mount(layer, &mut words);
    }
    if walls.network != Network::Off {
        for socket in sockets(plan) {
            hide_file(&socket, &mut words);
        }
    }
    for layer in plan.layers.iter().filter(|layer| layer.mount == Mount::HideFolder) {
        words.at("--remount-ro", &layer.path);
    }
    words.add(["--remount-ro", MEETING]);
    words.at("--chdir", cwd);
    words.add(["--", OURSELVES]);
    words.0.extend_from_slice(rest);
    words.0
}

fn mount(layer: &Layer, words: &mut Words) {
    let path = &layer.path;
    match layer.mount {
        Mount::Open => words.same("--bind", path),
        Mount::Show | Mount::Freeze => words.same("--ro-bind", path),
        Mount::HideFile => hide_file(path, words),
        Mount::HideFolder => words.at("--tmpfs", path),
    }
}

/// A device in a place where devices do not work: it cannot even be opened.
fn hide_file(path: &Path, words: &mut Words) {
    words.0.extend(["--ro-bind".into(), "/dev/null".into(), path.into()]);
}

/// Whether a command failed before it began, because something that was to be hidden was gone by
/// then: a socket of a program that has just ended. Nothing was run, so it can be tried again.
#[must_use]
pub fn never_began(argv: &[OsString], said: &str) -> bool {
    let said = said.trim_end();
    let ours = said.starts_with("bwrap: Can't ") && !said.contains('\n');
    let hidden = argv.windows(3).filter(|it| it[0] == "--ro-bind" && it[1] == "/dev/null");
    // It may be there again by now.
    ours && hidden.filter_map(|it| it[2].to_str()).any(|path| said.contains(path))
}

/// Whether what was said before anything ran may mean that walls could not be built: bubblewrap
/// says so in one line, and our own wall in words that are known. A command could say the same, so
/// whoever hears it tries the walls before believing it.
#[must_use]
pub fn fell(said: &str) -> bool {
    let said = said.trim_end();
    said.starts_with(NOTHING_RUN) || (said.starts_with("bwrap: ") && !said.contains('\n'))
}

/// Who may write nowhere still reads where the work is, if that is in a folder that is fresh.
fn shown(walls: &Walls, words: &mut Words) {
    let Ok(root) = fs::canonicalize(&walls.workspace) else { return };
    let fresh = SCRATCH.iter().chain([&MEETING]).any(|place| root.starts_with(place));
    if walls.writes == Writes::Nowhere && fresh {
        words.same("--ro-bind", &root);
    }
}

fn programs(words: &mut Words) {
    for place in PROGRAMS {
        if let Ok(target) = fs::read_link(place) {
            words.0.extend(["--symlink".into(), target.into(), (*place).into()]);
        }
    }
}

/// Who answers for names is often written in a file among the sockets.
fn resolver(words: &mut Words) {
    let file = fs::canonicalize("/etc/resolv.conf").ok();
    if let Some(file) = file.filter(|file| file.starts_with(MEETING)) {
        words.same("--ro-bind", &file);
    }
}

/// Sockets that programs listen at right now, in places that the command would see. One that is
/// made later is not covered, but by Landlock where it knows sockets (Linux 7.1).
fn sockets(plan: &Plan) -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let unseen = |path: &Path| {
        let fresh = SCRATCH.iter().chain([&MEETING, &"/dev"]).any(|place| path.starts_with(place));
        let opened = plan.writable.iter().any(|place| path.starts_with(place));
        let hidden = plan.hidden.iter().any(|place| path.starts_with(place));
        hidden || (fresh && !opened)
    };
    // Those who listen, or take what is sent without being asked: the others cannot be reached.
    let reachable = |line: &&str| {
        let mut words = line.split_whitespace().skip(3);
        let (flags, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        flags == LISTENING || kind == DATAGRAM
    };
    let paths = text.lines().filter(reachable);
    let paths = paths.filter_map(|line| line.split_once('/').map(|(_, path)| path));
    let mut found: Vec<PathBuf> = paths
        .map(|path| PathBuf::from(format!("/{path}")))
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| !unseen(path))
        .collect();
    found.sort();
    found.dedup();
    found.truncate(SOCKETS_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_that_fall_say_so() {
        let cases = [
            ("bwrap: Creating new namespace failed: No space left on device\n", true),
            ("locum: no sandbox, so nothing was run: EPERM\n", true),
            ("bwrap: Can't mkdir /x\nand more\n", false),
            ("cat: bwrap: No such file\n", false),
            ("", false),
        ];
        for (said, expected) in cases {
            assert_eq!(fell(said), expected, "{said}");
        }
    }

    #[test]
    fn what_never_began_says_so_of_something_that_is_gone() {
        let words = |path: &str| -> Vec<OsString> {
            ["bwrap", "--ro-bind", "/dev/null", path, "--", "sh"].map(OsString::from).into()
        };
        let gone = "/no/such/door";
        let failed = |path: &str| format!("bwrap: Can't mkdir parents for {path}: Read-only\n");
        let cases = [
            (words(gone), failed(gone), true),
            (words(gone), format!("bwrap: Can't create file at {gone}: x"), true),
            // Not ours, not hidden, or more than that.
            (words(gone), format!("sh: Can't mkdir parents for {gone}"), false),
            (words(gone), failed("/no/other/door"), false),
            (words(gone), format!("{}and more", failed(gone)), false),
            (words(gone), String::new(), false),
        ];
        for (argv, said, expected) in cases {
            assert_eq!(never_began(&argv, &said), expected, "{said}");
        }
    }
}
