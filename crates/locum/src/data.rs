//! Where sessions are kept.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use locum_journal::{Error as Failed, Journal, Kept, Records as _, Sqlite};
use locum_runtime::clock::{Clock as _, System};

use crate::complaint::{Complaint, chain};
use crate::print::note;

/// Where things are, if not where they usually are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) data: Option<&'a Path>,
    pub(crate) config: Option<&'a Path>,
}

/// The moment keeps keys in order, the process keeps two of one moment apart.
pub(crate) fn fresh_key(what: &str) -> String {
    format!("{what}_{}_{}", System.now().0, std::process::id())
}

/// The folder, there or not: the flag's, the environment's, or the platform's.
pub(crate) fn place(flag: Option<&Path>) -> Result<PathBuf, Complaint> {
    let place = flag.map(Path::to_owned).or_else(default).ok_or_else(Complaint::no_data_dir)?;
    // Programs that are started elsewhere find files in it as well.
    Ok(std::path::absolute(&place).unwrap_or(place))
}

/// The same, made if it is not there.
pub(crate) fn folder(flag: Option<&Path>) -> Result<PathBuf, Complaint> {
    let folder = place(flag)?;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    // What agents read and say is nobody else's business, and whoever gets through the door
    // answers for its owner. A folder that is there already is left as its owner made it.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|error| Complaint::data_dir(&folder, &error))?;
    Ok(folder)
}

pub(crate) fn journal_file(folder: &Path) -> PathBuf {
    folder.join("journal.db")
}

/// Room that is kept back for a full disk: far more than everything that can be under way.
pub(crate) const RESERVE_BYTES: u64 = 16 << 20;

/// Opens the journal to write, which keeps everybody else from writing.
pub(crate) fn open(folder: &Path) -> Result<impl Journal + use<>, Complaint> {
    sqlite(folder).map(mortal)
}

/// The same for whoever begins things: when the disk is full, there is room to say how they ended.
/// Where that room cannot be kept back nothing is begun: it would take the last there is.
pub(crate) fn open_to_run(folder: &Path) -> Result<impl Journal + use<>, Complaint> {
    let journal = match Sqlite::open(&journal_file(folder)) {
        Err(Failed::NoRoom { .. }) => return Err(Complaint::no_room(folder, missing(folder))),
        opened => noticed(opened)?,
    };
    match journal.keep_reserve(RESERVE_BYTES) {
        Ok(Kept::Room | Kept::Nothing) => {}
        Ok(Kept::Missing { bytes }) => return Err(Complaint::no_room(folder, bytes)),
        Err(error) => note(&format!("note: {}", chain(&error))),
    }
    Ok(mortal(journal))
}

/// How much must be freed before something is begun here; where that cannot be said, a little.
fn missing(folder: &Path) -> u64 {
    const LITTLE: u64 = 1 << 20;
    match Kept::expected(&journal_file(folder), RESERVE_BYTES) {
        Ok(Kept::Missing { bytes }) => bytes,
        Ok(Kept::Room | Kept::Nothing) | Err(_) => LITTLE,
    }
}

/// The same for whoever wants to make room, for which a full disk has some.
pub(crate) fn open_to_make_room(folder: &Path) -> Result<Sqlite, Complaint> {
    noticed(Sqlite::open_to_make_room(&journal_file(folder)))
}

/// Whether there is such a session, as far as that can be seen.
pub(crate) fn has(journal: &Path, session: &str) -> bool {
    let listed = Sqlite::look(journal).and_then(|records| records.sessions());
    listed.is_ok_and(|listed| listed.iter().any(|one| one.session == session))
}

/// The same for what only this store can do.
pub(crate) fn sqlite(folder: &Path) -> Result<Sqlite, Complaint> {
    noticed(Sqlite::open(&journal_file(folder)))
}

fn noticed(journal: Result<Sqlite, Failed>) -> Result<Sqlite, Complaint> {
    let journal = journal.map_err(|error| Complaint::journal(&error))?;
    for notice in journal.notices() {
        note(&format!("note: {notice}"));
    }
    Ok(journal)
}

#[cfg(debug_assertions)]
fn mortal(journal: Sqlite) -> impl Journal {
    crate::mortal::Mortal::new(journal)
}

#[cfg(not(debug_assertions))]
fn mortal(journal: Sqlite) -> impl Journal {
    journal
}

/// Copies that nobody needs any more go, beside everything else: git takes its time. Whoever opened
/// the journal is the only one who runs sessions here.
pub(crate) fn sweep(folder: &Path, key: &str, journal: Arc<dyn Journal>) {
    let (folder, own) = (folder.to_owned(), key.to_owned());
    let known = move || {
        let all = journal.sessions().ok()?.into_iter().map(|listed| listed.session);
        Some(all.chain([own]).collect())
    };
    let sweep = move || locum_tools::sweep(&folder, known);
    // Without a thread to be had they go another time.
    drop(thread::Builder::new().name("locum-sweep".to_owned()).spawn(sweep));
}

fn default() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("LOCUM_DATA") {
        return Some(folder);
    }
    let platform = if cfg!(windows) {
        set("APPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))
    };
    platform.map(|folder| folder.join("locum"))
}
