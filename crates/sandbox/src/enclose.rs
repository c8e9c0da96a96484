//! Walls around one command: a plan, stand-ins for what is absent, and the words that start it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::bubblewrap;
use crate::environment;
use crate::layers::{self, Plan};
use crate::seatbelt;
use crate::spec::{Room, Rules, Spec, WALL};
use crate::standin::{self, Hold};
use crate::survey::{Builder, Survey};
use crate::walls::{Enclosed, NoWalls, Walls};

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
    let builder = survey.builder()?;
    let _alone = standin::alone();
    let plan = layers::plan(walls)?;
    let env = environment::pass(std::env::vars_os(), &walls.granted);
    let (argv, hold) = match builder {
        Builder::Bubblewrap(path) => {
            let hold = Hold::take(&plan.wants)?;
            let inner = Spec::Inner(rules(walls, &plan, Room::Wrapped, cwd));
            let inner = ourselves(survey, &inner, program)?;
            (bubblewrap::argv(path, walls, &plan, cwd, &inner), hold)
        }
        Builder::Namespaces => {
            let hold = Hold::take(&plan.wants)?;
            let outer = Spec::Outer(rules(walls, &plan, Room::Apart, cwd));
            (ourselves(survey, &outer, program)?, hold)
        }
        Builder::Landlock => {
            if let Some(path) = plan.fragile.first() {
                return Err(NoWalls::Unguarded { path: path.clone() });
            }
            let outer = Spec::Outer(rules(walls, &plan, Room::Bare, cwd));
            (ourselves(survey, &outer, program)?, Hold::default())
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

fn ourselves(survey: &Survey, spec: &Spec, program: &[OsString]) -> Result<Vec<OsString>, NoWalls> {
    let text = serde_json::to_string(spec).map_err(|_| NoWalls::Name { path: odd(spec) })?;
    let words = [survey.ourselves.clone().into(), WALL.into(), text.into(), "--".into()];
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
