//! Commands that share a workspace and meet at a place that is guarded and not there: one runs for
//! long, another comes and goes, and what leads to the place is made, filled and emptied meanwhile.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use locum_sandbox::{Builder, Enclosed, Hold, Survey, enclose};

use crate::scene::{Scene, Way};

/// Ten seconds; each step takes a few milliseconds.
const POLLS: u32 = 1000;
const POLL: Duration = Duration::from_millis(10);

/// What a command does, and what is then left of the folder on the way.
const LEFT: &[(&str, Option<&str>)] = &[
    ("true", None),
    ("mkdir -p .github/workflows", Some("workflows")),
    ("echo x > .github/a", Some("a")),
    // Git would not see it either.
    ("mkdir -p .github; touch -d 2020-01-01 .github", None),
    ("mkdir -p .github/workflows; rmdir .github/workflows", None),
    ("rm -rf .github far", None),
];

/// Nothing of ours stays in the workspace, everything of the command's does.
pub(crate) fn left(scene: &Scene, survey: &Survey) -> Option<String> {
    if survey.builders == [Builder::Landlock] {
        return None;
    }
    for (script, expected) in LEFT {
        let said = scene.run(&scene.walls(survey, Way::Writing), survey, script);
        let names = names(&scene.workspace().join(".github"));
        let far = names_or_none(&scene.workspace().join("far"));
        let fits = match expected {
            Some(name) => names == [*name],
            None => names.is_empty() && !scene.workspace().join(".github").exists(),
        };
        if !fits || far.is_some() {
            return Some(format!("{script}: left {names:?} {far:?}; {said}"));
        }
        scene.fresh_workspace();
    }
    None
}

/// What the first does once it may, and what the second does before.
const RACES: &[(&str, &str)] = &[
    ("mkdir -p .github/agents; echo x > .github/agents/evil.md", "mkdir -p .github/workflows"),
    ("mkdir -p .github/agents; echo x > .github/agents/evil.md", "mkdir .github; rmdir .github"),
    ("mkdir -p .github/agents; echo x > .github/agents/evil.md", "true"),
    ("echo x > .github/agents/evil.md; mv .github/agents a", "rm -rf .github"),
    (
        "mkdir -p .github/agents; echo x > .github/agents/evil.md",
        "mkdir -p .github/x; rmdir .github/x; touch -d @1 .github",
    ),
    ("rmdir .github/agents; mv e .github/agents", "mkdir e; echo x > e/evil.md"),
];

/// Who began when nothing was there is kept out all the same, whoever makes the way there, and
/// whoever ends first.
pub(crate) fn raced(scene: &Scene, survey: &Survey) -> Option<String> {
    if survey.builders == [Builder::Landlock] {
        return None;
    }
    for (first, second) in RACES {
        let (mut long, hold) = begin(scene, survey, &wait_for("go", first));
        let met = appears(&scene.workspace().join("ready"));
        let said = scene.run(&scene.walls(survey, Way::Writing), survey, second);
        // A third one is there when the first ends, and is told to go on after that.
        let (mut third, kept) = begin(scene, survey, &wait_for("on", first));
        fs::write(scene.workspace().join("go"), "").expect("a sign");
        let ended = ends(&mut long);
        drop(hold);
        fs::write(scene.workspace().join("on"), "").expect("a sign");
        let ended = ends(&mut third) && ended;
        drop(kept);
        let names = names(&scene.workspace().join(".github"));
        let expected: &[&str] = if second.ends_with("workflows") { &["workflows"] } else { &[] };
        let bare = !expected.is_empty() || !scene.workspace().join(".github").exists();
        if !met || !ended || names != expected || !bare {
            return Some(format!("{first} / {second}: {met} {ended} {bare} {names:?} {said}"));
        }
        scene.fresh_workspace();
    }
    None
}

fn wait_for(sign: &str, then: &str) -> String {
    format!("echo > ready; while ! test -e {sign}; do sleep 0.01; done; {then}")
}

fn begin(scene: &Scene, survey: &Survey, script: &str) -> (Child, Hold) {
    let program = ["sh".into(), "-c".into(), script.into()];
    let walls = scene.walls(survey, Way::Writing);
    let Enclosed { argv, env, hold } =
        enclose(&walls, survey, &program, &scene.workspace()).expect("walls");
    let mut command = Command::new(&argv[0]);
    let command = command.args(&argv[1..]).env_clear().envs(env).stdin(Stdio::null());
    let child = command.stderr(Stdio::null()).spawn().expect("it starts");
    (child, hold)
}

fn appears(path: &Path) -> bool {
    (0..POLLS).any(|_| {
        thread::sleep(POLL);
        path.exists()
    })
}

fn ends(child: &mut Child) -> bool {
    let ended = (0..POLLS).any(|_| {
        thread::sleep(POLL);
        !matches!(child.try_wait(), Ok(None))
    });
    if !ended {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn names(folder: &Path) -> Vec<String> {
    names_or_none(folder).unwrap_or_default()
}

fn names_or_none(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    Some(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
