//! Attacks on the walls, each through the real path, as root and as an ordinary person, with
//! every builder this machine has; and the ordinary work that walls must not hinder.
//!
//! This program is started by itself in three roles: as the test, as the same test of another
//! user, and as the wall.

#![expect(clippy::print_stdout, reason = "a test without a harness reports by itself")]

mod races;
mod scene;
mod table;
mod works;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, thread};

use locum_sandbox::{Builder, NoWalls, Survey, Walls};
use scene::{Scene, Way};
use table::{Attack, Flag};

/// Nobody, who owns nothing.
const USER: &str = "65534";

/// Where the other user finds a folder and a copy of this program.
const HANDED: &str = "LOCUM_WALLS_BASE";

/// Set if there are to be no walls: then attacks do harm, and nobody else may be at it.
const BARE: &str = "LOCUM_WALLS_BARE";

fn main() -> ExitCode {
    if let Some(code) = locum_sandbox::wall(env::args_os()) {
        return code;
    }
    if env::args().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let root = rustix::process::getuid().is_root();
    if let Some(base) = env::var_os(HANDED) {
        let (base, user) = (Path::new(&base), if root { "root" } else { "user" });
        return verdict(match env::var_os(BARE) {
            None => suite(base, user),
            Some(_) => live(&Scene::new(base), &table::read(), user),
        });
    }
    install();
    let base = if root { PathBuf::from("/var") } else { env!("CARGO_TARGET_TMPDIR").into() };
    let base = base.join(format!("locum-walls-{}", std::process::id()));
    let nobody = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"];
    let mut users: Vec<(&str, &[&str])> = vec![("own", &[])];
    if root {
        users.push(("nobody", &nobody));
    } else {
        println!("SKIPPED: not root, so nothing was tried as root");
    }
    // Behind walls nobody is in anybody's way.
    let walled = thread::scope(|scope| {
        let play = |&(name, words)| {
            let base = base.join(name);
            scope.spawn(move || prepare(&base, words, Around::Walls))
        };
        let all: Vec<_> = users.iter().map(play).collect();
        all.into_iter().map(|one| one.join().expect("it played")).sum::<usize>()
    });
    let unwalled =
        users.iter().map(|(name, words)| prepare(&base.join(name), words, Around::Nothing));
    let faults = walled + unwalled.sum::<usize>();
    let _ = fs::remove_dir_all(&base);
    verdict(faults)
}

#[derive(Clone, Copy, PartialEq)]
enum Around {
    Walls,
    Nothing,
}

fn verdict(faults: usize) -> ExitCode {
    println!("{faults} faults");
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Half of this is about bubblewrap, so it is fetched where that is possible.
fn install() {
    if Command::new("bwrap").arg("--version").output().is_err() {
        let _ = Command::new("apt-get").args(["install", "-y", "bubblewrap"]).output();
    }
}

/// Plays in a folder, as whoever the words in front make of us, and with secrets around us.
fn prepare(base: &Path, other: &[&str], around: Around) -> usize {
    fs::create_dir_all(base).expect("a folder to play in");
    let program = base.join("wall");
    fs::copy(env::current_exe().expect("our own path"), &program).expect("a copy of ourselves");
    for path in [base, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("readable");
        let owner = USER.parse().ok().filter(|_| !other.is_empty());
        std::os::unix::fs::chown(path, owner, owner).expect("given away");
    }
    let program = [program.into_os_string()];
    let words = other.iter().map(OsString::from).chain(program).chain(env::args_os().skip(1));
    let words: Vec<OsString> = words.collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(HANDED, base).env("LOCUM_TEST_API_KEY", "SECRET-KEY");
    if around == Around::Nothing {
        command.env(BARE, "1");
    }
    let status = command.env("LC_SESSION_TOKEN", "SECRET-TOKEN").status();
    let _ = fs::remove_dir_all(base);
    usize::from(!status.expect("it starts").success())
}

fn suite(base: &Path, user: &str) -> usize {
    let survey = Survey::take(&base.join("wall"));
    println!("{user}: {}", survey.lines().join("; "));
    let mut faults = 0;
    if !matches!(survey.builders.first(), Some(Builder::Bubblewrap(_))) {
        println!("SKIPPED: no bubblewrap here: {:?}", survey.trouble);
        faults += usize::from(wraps());
    }
    // The name by which the real program calls itself.
    let own = Survey::take(Path::new("/proc/self/exe"));
    if own.builders != survey.builders {
        println!("FAULT: by its own name: {:?}; {:?}", own.builders, own.trouble);
        faults += 1;
    }
    let attacks = table::read();
    for builder in &survey.builders {
        let survey = Survey { builders: vec![builder.clone()], ..survey.clone() };
        let scene = Scene::new(base);
        faults += refused(&scene, &survey);
        for way in [Way::Writing, Way::Reading] {
            faults += play(&scene, &attacks, &survey, way, user);
        }
        faults += works::play(&scene, &survey);
    }
    faults
}

/// Whether bubblewrap works for everybody else: then it has to for us.
fn wraps() -> bool {
    let words =
        ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "true"];
    Command::new("bwrap").args(words).output().is_ok_and(|done| done.status.success())
}

/// Every attack with walls: none may do anything.
fn play(scene: &Scene, attacks: &[Attack], survey: &Survey, way: Way, user: &str) -> usize {
    let builder = survey.builder().expect("one is there").clone();
    let bare = builder == Builder::Landlock;
    let skip = |flag: Flag| match flag {
        Flag::Guard | Flag::Apart => bare,
        Flag::Walled => false,
    };
    let (mut played, mut faults) = (0, 0);
    for attack in wanted(attacks).filter(|attack| !attack.flags.iter().any(|flag| skip(*flag))) {
        played += 1;
        let harm = scene.attack(attack, Some(survey), way);
        if !harm.is_empty() {
            faults += 1;
            println!("ESCAPE {user} {builder:?} {way:?} {}: {}", attack.name, harm.join("; "));
        }
    }
    println!("{user} {builder:?} {way:?}: {played} attacks, {faults} escapes");
    faults
}

/// The same attacks without walls: an attack that never does anything proves nothing.
fn live(scene: &Scene, attacks: &[Attack], user: &str) -> usize {
    let harmless = |attack: &&Attack| !attack.flags.contains(&Flag::Walled);
    let mut dead = Vec::new();
    let mut played = 0;
    for attack in wanted(attacks).filter(harmless) {
        played += 1;
        if scene.attack(attack, None, Way::Writing).is_empty() {
            dead.push(attack.name);
        }
    }
    let alive = played - dead.len();
    println!("{user} without walls: {played} attacks, {alive} do harm; not: {}", dead.join(" "));
    // A third may be beyond this user or this machine (no bus, no display, no rights).
    usize::from(alive * 3 < played * 2 && played > 9)
}

/// All, or those whose names begin with an argument.
fn wanted(attacks: &[Attack]) -> impl Iterator<Item = &Attack> {
    let words: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    attacks.iter().filter(move |attack| {
        words.is_empty() || words.iter().any(|word| attack.name.starts_with(word.as_str()))
    })
}

/// Landlock alone cannot keep a place in a workspace, and must say so instead of trying.
fn refused(scene: &Scene, survey: &Survey) -> usize {
    let program = ["true".into()];
    let bare = survey.builders == [Builder::Landlock];
    let mut faults = 0;
    for guards in [scene.guards(), scene.within()] {
        let walls = Walls { guards, ..Walls::around(scene.workspace()) };
        let enclosed = locum_sandbox::enclose(&walls, survey, &program, &scene.workspace());
        match enclosed {
            Err(NoWalls::Unguarded { .. }) if bare => {}
            Ok(_) if !bare => {}
            other => {
                println!("FAULT: guards in the workspace with {:?}: {other:?}", survey.builders);
                faults += 1;
            }
        }
    }
    faults
}
