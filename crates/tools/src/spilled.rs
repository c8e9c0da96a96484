//! Results that were too long to be shown, each session's in a folder of its own: a handle is read
//! by the agents of the session that was given it and by nobody else, however it came to be known.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::copies::plain;

const MARK: &str = "spill:";

pub(crate) fn folder(data: &Path, session: &str) -> PathBuf {
    data.join("spills").join(plain(session))
}

/// The names of results that a text mentions.
#[must_use]
pub fn mentioned(text: &str) -> BTreeSet<String> {
    let ends = |sign: char| !sign.is_ascii_hexdigit();
    let names = text.split(MARK).skip(1).filter_map(|rest| rest.split(ends).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A session that is made of another's past can read what that past mentions. Copied, not linked:
/// the other may be removed, and a file with one name is no riddle to anybody.
pub fn inherit(data: &Path, from: &str, to: &str, names: &BTreeSet<String>) -> io::Result<()> {
    let (from, to) = (folder(data, from), folder(data, to));
    let there: Vec<&String> = names.iter().filter(|name| from.join(name).is_file()).collect();
    if there.is_empty() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&to)?;
    for name in there {
        fs::copy(from.join(name), to.join(name))?;
        File::open(to.join(name))?.sync_all()?;
    }
    File::open(&to)?.sync_all()
}

/// The session has another name from now on.
pub fn rename(data: &Path, from: &str, to: &str) -> io::Result<()> {
    absent_is_fine(fs::rename(folder(data, from), folder(data, to)))
}

/// The session is gone, and the next of its name is another one.
pub fn forget(data: &Path, session: &str) -> io::Result<()> {
    absent_is_fine(fs::remove_dir_all(folder(data, session)))
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
