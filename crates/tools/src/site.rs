//! Where an agent's commands run, behind which walls, and what they change there if that is kept.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use locum_kernel::{Class, Errand};
use locum_sandbox::{Network, Walls, Writes, worktree};

use crate::Place;
use crate::copies::Copy;
use crate::exec::Room;
use crate::past::{Moment, Past, What};

/// The workspace, or an agent's copy of it.
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) copy: Option<Copy>,
}

impl Site {
    /// An agent that may not write has commands that cannot; one without network likewise.
    pub(crate) fn walls(&self, errand: &Errand) -> Walls {
        let writes = errand.may.contains(&Class::Write);
        let workspace = &self.place.workspace;
        let mut walls = if writes { Walls::around(workspace) } else { Walls::read_only(workspace) };
        debug_assert!(writes || walls.writes == Writes::Nowhere);
        walls.guards = self.place.guards();
        if writes {
            walls.guards.extend(self.place.guards_below());
        }
        if let Some(copy) = &self.copy {
            if writes {
                // Commits go to the repository that it is a copy of.
                walls.writable.push(copy.made.common.clone());
            }
            walls.guards.extend(worktree(&copy.made.common, &copy.made.git));
        }
        walls.granted = errand.env.iter().map(OsString::from).collect();
        walls
    }

    pub(crate) fn folder(&self, named: &str) -> Result<PathBuf, String> {
        let folder = self.place.workspace.join(named);
        let real = folder.canonicalize().map_err(|error| format!("{named}: {error}"))?;
        let root = self.place.workspace.canonicalize();
        let root = root.map_err(|error| format!("the workspace: {error}"))?;
        if real.starts_with(root) {
            Ok(real)
        } else {
            Err(format!("{named} is outside the workspace"))
        }
    }
}

/// Only for an agent that may.
pub(crate) fn with_network(walls: &mut Walls, errand: &Errand) {
    if errand.may.contains(&Class::Network) {
        walls.network = Network::On;
    }
}

/// A workspace as it is before a command.
pub(crate) struct Watched {
    past: Past,
    workspace: PathBuf,
    before: Moment,
}

impl Room {
    /// Where an agent's commands run.
    pub(crate) fn site(&self, errand: &Errand) -> Result<Site, String> {
        let copy = errand.desk.map(|agent| Copy::of(&self.place, agent)).transpose()?;
        Ok(match copy {
            Some(copy) => Site { place: copy.place.clone(), copy: Some(copy) },
            None => Site { place: self.place.clone(), copy: None },
        })
    }

    /// Before a command of an agent whose changes are kept. That nothing could be is no reason not
    /// to run it, but is said by whoever looks for it.
    pub(crate) fn before(&self, errand: &Errand, workspace: &Path) -> Option<Watched> {
        let past = Past::for_errand(&self.place, errand)?;
        let workspace = workspace.canonicalize().ok()?;
        let last = self.moments().remove(&workspace).unwrap_or_default();
        let before = Moment::take(&past, &workspace, &last).ok().flatten()?;
        past.note(errand, &[What::Runs]).ok()?;
        Some(Watched { past, workspace, before })
    }

    /// And after it.
    pub(crate) fn after(&self, errand: &Errand, watched: Watched) {
        let Watched { past, workspace, before } = watched;
        let Ok(Some(after)) = Moment::take(&past, &workspace, &before) else { return };
        let mut changes = before.changes(&after);
        changes.push(What::Ran);
        // Without this the command counts as cut.
        let _ = past.note(errand, &changes);
        self.moments().insert(workspace, after);
    }

    pub(crate) async fn look_after(
        self: &Arc<Self>,
        errand: Errand,
        watched: Option<Watched>,
    ) -> Errand {
        let Some(watched) = watched else { return errand };
        let (room, own) = (Arc::clone(self), errand.clone());
        let looked = tokio::task::spawn_blocking(move || room.after(&own, watched));
        // If it fails, the command counts as cut.
        let _ = looked.await;
        errand
    }

    fn moments(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Moment>> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
