//! What must go on working behind the walls, and how they end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use locum_sandbox::{Builder, Enclosed, Guard, Keep, Network, StandIn, Survey, Walls, enclose};

use crate::races;
use crate::scene::{self, Scene, Way};

pub(crate) fn play(scene: &Scene, survey: &Survey) -> usize {
    let cases = include_str!("works.txt").lines();
    let cases = cases.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut played, mut faults) = (0, 0);
    for (head, script) in cases.filter_map(|line| line.split_once(": ")) {
        let (name, flags) = head.split_once(" [").unwrap_or((head, ""));
        let flags: Vec<&str> = flags.trim_end_matches(']').split(' ').collect();
        if !fits(name, &flags, survey) {
            continue;
        }
        played += 1;
        let mut walls = scene.walls(survey, Way::Writing);
        if flags.contains(&"on") {
            walls.network = Network::On;
        }
        let output = scene.run(&walls, survey, &format!("{}\n{script}", scene.words()));
        if !output.contains("WORKS") {
            faults += 1;
            println!("IN THE WAY {:?} {name}: {output}", survey.builders);
        }
        scene.fresh_workspace();
    }
    println!("{:?}: {played} kinds of work, {faults} hindered", survey.builders);
    scene.forgive();
    let others = [
        ("places", places(scene, survey)),
        ("codes", codes(scene, survey)),
        ("killed", killed(scene, survey)),
        ("granted", granted(scene, survey)),
        ("left", races::left(scene, survey)),
        ("raced", races::raced(scene, survey)),
    ];
    for (name, fault) in others {
        if let Some(fault) = fault {
            faults += 1;
            println!("FAULT {:?} {name}: {fault}", survey.builders);
        }
    }
    faults
}

fn fits(name: &str, flags: &[&str], survey: &Survey) -> bool {
    let wrapped = matches!(survey.builders.first(), Some(Builder::Bubblewrap(_)));
    let bare = survey.builders == [Builder::Landlock];
    let needed = flags.iter().find_map(|flag| flag.strip_prefix("needs-"));
    let runs = |program| {
        let ran = Command::new(program).arg("--version").output();
        let runs = ran.is_ok_and(|output| output.status.success());
        if !runs {
            println!("SKIPPED {name}: {program} does not run here for this user");
        }
        runs
    };
    (wrapped || !flags.contains(&"wrapped"))
        && !(bare && flags.contains(&"mounts"))
        && needed.is_none_or(runs)
}

/// A writable folder in a hidden one, another beside it, and a workspace among temporary files.
fn places(scene: &Scene, survey: &Survey) -> Option<String> {
    let outside = scene.outside();
    let inside = outside.join("folder");
    let hide = Guard { path: outside.clone(), keep: Keep::Hidden, absent: StandIn::Folder };
    let mut walls = Walls::around(scene.workspace());
    walls.writable = vec![inside.clone()];
    walls.guards = vec![hide];
    let script = format!(
        "echo x > {0}/new && cat {0}/file && ! cat {1}/canary && ! touch {1}/n && echo WORKS",
        inside.display(),
        outside.display()
    );
    let said = scene.run(&walls, survey, &script);
    if !said.contains("WORKS") || said.contains("untouched") || !inside.join("new").exists() {
        return Some(said);
    }
    let _ = fs::remove_file(inside.join("new"));
    let folder = std::env::temp_dir().join(format!("locum-walls-{}", std::process::id()));
    let _ = fs::create_dir_all(&folder);
    let walls = Walls::around(&folder);
    let script = format!("cd {} && echo x > new && echo WORKS", folder.display());
    let said = scene.run(&walls, survey, &script);
    let there = folder.join("new").exists();
    let _ = fs::remove_dir_all(&folder);
    (!said.contains("WORKS") || !there).then_some(said)
}

fn codes(scene: &Scene, survey: &Survey) -> Option<String> {
    let cases = [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137), ("exec /nothing/there", 127)];
    let walls = scene.walls(survey, Way::Reading);
    for (script, code) in cases {
        let program = ["sh".into(), "-c".into(), script.into()];
        let Enclosed { argv, env, hold: _hold } =
            enclose(&walls, survey, &program, Path::new("/")).expect("walls");
        let mut command = Command::new(&argv[0]);
        let command = command.args(&argv[1..]).env_clear().envs(env).stderr(Stdio::null());
        let found = command.status().expect("it starts").code();
        if found != Some(code) {
            return Some(format!("{script}: {found:?}, not {code}"));
        }
    }
    let program = ["/nothing/there".into()];
    let Enclosed { argv, env, hold: _hold } =
        enclose(&walls, survey, &program, Path::new("/")).expect("walls");
    let output = Command::new(&argv[0]).args(&argv[1..]).env_clear().envs(env).output();
    let output = output.expect("it starts");
    (output.status.code() != Some(127)).then(|| format!("{output:?}"))
}

/// Whoever we spawned is killed: nothing it started may live on.
fn killed(scene: &Scene, survey: &Survey) -> Option<String> {
    let mark = scene::mark();
    let script = format!("(setsid sleep {mark} &) ; sleep {mark} & sleep {mark}; true");
    let program = ["sh".into(), "-c".into(), script.into()];
    let walls = scene.walls(survey, Way::Writing);
    let Enclosed { argv, env, hold: _hold } =
        enclose(&walls, survey, &program, Path::new("/")).expect("walls");
    let mut command = Command::new(&argv[0]);
    let command = command.args(&argv[1..]).env_clear().envs(env).stdin(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let all = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        scene::running(&mark).len() == 3
    });
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let left = scene::survivors();
    let bare = survey.builders == [Builder::Landlock];
    if bare {
        println!("known weakness: with Landlock alone, survivors when killed: {left}");
    }
    (!all || (left && !bare)).then(|| format!("started {all}, survived {left}"))
}

fn granted(scene: &Scene, survey: &Survey) -> Option<String> {
    let mut walls = scene.walls(survey, Way::Reading);
    // The test's own environment has it, as cargo sets it.
    let script = "test -z \"$CARGO_PKG_NAME$LOCUM_WALLS_MARK\" && echo WORKS";
    let said = scene.run(&walls, survey, script);
    if !said.contains("WORKS") {
        return Some(format!("passed without a grant: {said}"));
    }
    walls.granted = vec!["CARGO_PKG_NAME".into()];
    let said = scene.run(&walls, survey, "echo \"[$CARGO_PKG_NAME]\"");
    let there = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    (!said.contains(&format!("[{there}]"))).then_some(said)
}
