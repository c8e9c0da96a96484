//! Folders that a person's definition lets its program write to besides the workspace: where such
//! programs keep what they know. Never what the walls keep from everybody, nor what agents are
//! made of: a program that could write there would write what it may do next time.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use locum_kernel::Errand;
use locum_sandbox::{Guard, Keep, StandIn, Walls};
use serde_json::Value;
use thiserror::Error;

use crate::Place;
use crate::made_of::{self, real};

/// Opens them in the walls. `places` are where the work is, and whose copy that is.
pub(crate) fn open(walls: &mut Walls, errand: &Errand, places: [&Place; 2]) -> Result<(), String> {
    let named = errand.arguments.get("writes").and_then(Value::as_array);
    let named = named.into_iter().flatten().map(Value::as_str);
    let named: Vec<&str> = named.collect::<Option<_>>().ok_or("`writes` is a list of folders")?;
    if named.is_empty() {
        return Ok(());
    }
    let [place, _] = places;
    walls.guards.extend(made_of(place));
    for name in named {
        let folder = judge(name, &walls.guards, &places).map_err(|unfit| unfit.to_string())?;
        // The program would make it, if it could make anything beside it.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| format!("{name}: cannot be made: {error}"))?;
        walls.writable.push(folder);
    }
    Ok(())
}

/// Why a program cannot be given a folder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    #[error("{0}")]
    Anywhere(String),
    /// It depends on where the work is.
    #[error("{0}")]
    Here(String),
}

/// What a run would say to a folder that a definition names, before there is one.
#[must_use]
pub fn unfit(name: &str, place: &Place) -> Option<Unfit> {
    let guards: Vec<Guard> = place.guards().into_iter().chain(made_of(place)).collect();
    judge(name, &guards, &[place]).err()
}

/// Each can be read behind the walls, and none be changed.
fn made_of(place: &Place) -> impl Iterator<Item = Guard> {
    let paths = made_of::at(place.home.as_deref()).into_iter();
    paths.map(|path| Guard { path, keep: Keep::Frozen, absent: StandIn::Folder })
}

fn whole(name: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        (Some(_), None) => return Err(format!("{name}: nobody knows where the home folder is")),
        (None, _) => PathBuf::from(name),
    };
    let is_plain = path.is_absolute() && !name.split('/').any(|part| part == "..");
    is_plain.then_some(path).ok_or_else(|| format!("`writes`: {name} is no whole path"))
}

/// Where it really is, if it may be given.
fn judge(name: &str, guards: &[Guard], places: &[&Place]) -> Result<PathBuf, Unfit> {
    let home = places.first().and_then(|place| place.home.as_deref());
    let folder = real(&whole(name, home).map_err(Unfit::Anywhere)?);
    let within = |outer: &Path| folder.starts_with(real(outer));
    let holds = |path: &Path| real(path).starts_with(&folder);
    let refuse = |why: &str| format!("`writes`: a program cannot be given {name}: {why}");
    if places.iter().filter_map(|it| it.home.as_deref()).any(holds) {
        let why = refuse("all your files are in it. Name the program's own folders");
        return Err(Unfit::Anywhere(why));
    }
    if let Some(guard) = guards.iter().find(|guard| within(&guard.path)) {
        let why = format!("{} is kept from every command", guard.path.display());
        return Err(Unfit::Anywhere(refuse(&why)));
    }
    if places.iter().any(|it| holds(&it.workspace) || within(&it.workspace)) {
        let why = refuse("it overlaps the workspace, whose rights are the agent's own");
        return Err(Unfit::Here(why));
    }
    Ok(folder)
}
