//! Walls around one command: a plan, stand-ins for what is absent, and the words that start it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bubblewrap;
use crate::environment;
use crate::layers::{self, Plan};
use crate::seatbelt;
use crate::spec::{Room, Rules, Spec, WALL};
use crate::standin::{self, Hold};
use crate::survey::{Builder, Survey};
use crate::walls::{Enclosed, Fragile, NoWalls, Walls};

/// What to spawn so that `program` runs in `cwd` and can do no more than the walls allow.
///
/// The thread that spawns it must outlive it: the walls end the command when that thread ends,
/// so that nothing runs on when we are killed.
pub fn enclose(
    walls: &Walls,
    survey: &Survey,
    program: &[OsString],
    cwd: &Path,
) -> Result<Enclosed, NoWalls> {
    if program.is_empty() {
        return Err(NoWalls::Nothing);
    }
    let (builder, wrapped) = ready(survey)?;
    let _alone = standin::alone();
    let plan = layers::plan(walls)?;
    let env = environment::pass(std::env::vars_os(), &walls.granted);
    let (argv, hold) = match builder {
        Builder::Bubblewrap(path) => {
            let hold = Hold::take(&plan.wants)?;
            let inner = Spec::Inner(rules(walls, &plan, Room::Wrapped, cwd));
            let inner = ourselves(&wrapped, &inner, program)?;
            (bubblewrap::argv(path, walls, &plan, cwd, &inner), hold)
        }
        Builder::Namespaces => {
            let hold = Hold::take(&plan.wants)?;
            let outer = Spec::Outer(rules(walls, &plan, Room::Apart, cwd));
            (ourselves(&survey.ourselves, &outer, program)?, hold)
        }
        Builder::Landlock => {
            if let (Some(path), Fragile::Refuse) = (plan.fragile.first(), walls.fragile) {
                return Err(NoWalls::Unguarded { path: path.clone() });
            }
            let outer = Spec::Outer(rules(walls, &plan, Room::Bare, cwd));
            (ourselves(&survey.ourselves, &outer, program)?, Hold::default())
        }
        Builder::Seatbelt => {
            let hold = Hold::take(&plan.wants)?;
            let start = ["/usr/bin/sandbox-exec".into(), "-p".into()];
            let start = start.into_iter().chain([seatbelt::profile(walls)?.into()]);
            (start.chain(program.iter().cloned()).collect(), hold)
        }
    };
    Ok(Enclosed { argv, env: with_scratch(env, builder), hold })
}

/// Takes away stand-ins that nobody needs any more: whoever was killed has left them behind.
pub fn tidy(walls: &Walls) {
    let _alone = standin::alone();
    // Without a plan there were no walls either.
    let Ok(plan) = layers::plan(walls) else { return };
    let is_left = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| standin::is_one(&data));
    let left: Vec<_> = plan.wants.into_iter().filter(|want| is_left(&want.path)).collect();
    // Whoever lets go last removes them.
    drop(Hold::take(&left));
}

/// The best builder that can be had now, and where bubblewrap finds our program: by a name that
/// means the same to everybody, and not `/proc/self/exe`, which to bubblewrap is bubblewrap. A
/// program that was replaced while it runs has none, and walls of another version are not ours.
fn ready(survey: &Survey) -> Result<(&Builder, PathBuf), NoWalls> {
    let builder = survey.builder()?;
    let Builder::Bubblewrap(_) = builder else { return Ok((builder, PathBuf::new())) };
    if let Some(path) = real(&survey.ourselves) {
        return Ok((builder, path));
    }
    let builder = survey.without_bubblewrap().ok_or(NoWalls::Replaced)?;
    Ok((builder, PathBuf::new()))
}

/// None: what is there by now is something else.
fn real(program: &Path) -> Option<PathBuf> {
    let Ok(target) = fs::read_link(program) else { return Some(program.to_owned()) };
    let target = fs::canonicalize(target).ok()?;
    standin::is_same(&fs::metadata(program).ok()?, &fs::metadata(&target).ok()?).then_some(target)
}

fn rules(walls: &Walls, plan: &Plan, room: Room, cwd: &Path) -> Rules {
    // What bubblewrap has mounted does not have to be mounted again.
    let layers = if room == Room::Apart { plan.layers.clone() } else { Vec::new() };
    let mut writable = plan.writable.clone();
    if room == Room::Wrapped {
        writable.extend(bubblewrap::scratch());
    }
    // Mounts hide better than Landlock, which cannot hide names.
    let hidden = if room == Room::Bare { plan.hidden.clone() } else { Vec::new() };
    Rules {
        room,
        layers,
        writable,
        hidden,
        network: walls.network,
        terminal: walls.terminal,
        cwd: cwd.to_owned(),
    }
}

fn ourselves(own: &Path, spec: &Spec, program: &[OsString]) -> Result<Vec<OsString>, NoWalls> {
    let text = serde_json::to_string(spec).map_err(|_| NoWalls::Name { path: odd(spec) })?;
    let words = [own.into(), WALL.into(), text.into(), "--".into()];
    Ok(words.into_iter().chain(program.iter().cloned()).collect())
}

/// The only thing in there that JSON cannot say.
fn odd(spec: &Spec) -> PathBuf {
    let (Spec::Outer(rules) | Spec::Inner(rules)) = spec else { return PathBuf::new() };
    let layers = rules.layers.iter().map(|layer| &layer.path);
    let mut paths = layers.chain(&rules.writable).chain(&rules.hidden).chain([&rules.cwd]);
    paths.find(|path| path.to_str().is_none()).cloned().unwrap_or_default()
}

/// Without bubblewrap the wall makes a temporary folder and names it itself.
fn with_scratch(
    mut env: Vec<(OsString, OsString)>,
    builder: &Builder,
) -> Vec<(OsString, OsString)> {
    if let Builder::Bubblewrap(_) = builder {
        env.push(("TMPDIR".into(), "/tmp".into()));
    }
    env
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::{NoWalls, ready, real};
    use crate::survey::{Builder, Seccomp, Survey};

    /// A link as the kernel keeps one for a program: it stays with the file, and tells a name.
    #[test]
    fn bubblewrap_is_told_a_name_that_means_us_or_is_not_used() {
        let own = real("/proc/self/exe".as_ref()).expect("nobody replaced us");
        assert_eq!(own, std::env::current_exe().and_then(fs::canonicalize).expect("a path"));
        let base = std::env::temp_dir().join(format!("locum-ready-{}", std::process::id()));
        fs::create_dir_all(&base).expect("a folder");
        let gone = base.join("gone");
        symlink("/nowhere/locum (deleted)", &gone).expect("a link");
        let bwrap = || Builder::Bubblewrap("/usr/bin/bwrap".into());
        let cases = [
            (&own, vec![bwrap()], Some(bwrap())),
            (&gone, vec![bwrap(), Builder::Namespaces], Some(Builder::Namespaces)),
            (&gone, vec![bwrap()], None),
        ];
        for (ourselves, builders, expected) in cases {
            let survey = Survey {
                builders,
                landlock: 7,
                seccomp: Seccomp::There,
                trouble: None,
                ourselves: PathBuf::from(ourselves),
            };
            match ready(&survey) {
                Ok((builder, _)) => assert_eq!(Some(builder), expected.as_ref()),
                Err(NoWalls::Replaced) => assert_eq!(None, expected),
                Err(other) => panic!("{other}"),
            }
        }
        fs::remove_dir_all(&base).expect("removed");
    }
}
