//! Numbers of commands in the background, beyond the life of this program: an agent that was told
//! of `p1` must not meet another `p1` in the same conversation.

use std::fs;
use std::path::{Path, PathBuf};

use locum_process::Id;

use crate::copies::plain;
use crate::{Place, own};

fn folder(data: &Path) -> PathBuf {
    data.join("processes")
}

/// The last that an agent of this session was told before this program began.
pub(crate) fn last(place: &Place) -> u32 {
    let text = fs::read_to_string(folder(&place.data).join(plain(&place.session)));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Without it the numbers begin anew after a restart, which is no reason not to run.
pub(crate) fn keep(place: &Place, id: Id) {
    let file = folder(&place.data).join(plain(&place.session));
    let _ = own::replace(&file, id.0.to_string().as_bytes());
}

/// Those that are kept, by the names of their sessions in a path.
pub(crate) fn all(data: &Path) -> Vec<(String, PathBuf)> {
    let found = fs::read_dir(folder(data)).into_iter().flatten().flatten();
    let named = |entry: fs::DirEntry| (entry.file_name().to_string_lossy().into(), entry.path());
    found.take(ALL_MAX).map(named).collect()
}

/// Looked at in one go; the rest is looked at when these are gone.
const ALL_MAX: usize = 1000;
