//! The file, its tables, and the only place that opens it. What notes say is in `note`; `words`
//! is only an index of it, which is made anew whenever it is not right. A file that is damaged
//! for certain is set aside under another name, and never deleted.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};

use crate::{Error, words};

pub(crate) const VERSION: u32 = 1;

/// How `words` takes a text apart. Another number has the index made anew.
const INDEX: i64 = 1;

/// How long other processes are waited for: each writes for milliseconds.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// A file up to this size is read through when it is opened; that takes some ten milliseconds.
const CHECKED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// So many files of one name are set aside; whoever has more has another trouble.
const KEPT_MAX: u32 = 1_000;

/// `AUTOINCREMENT`: the id of a note that was forgotten is never given to another.
const TABLES: &str = "
    CREATE TABLE scope (
        number INTEGER PRIMARY KEY,
        kind   TEXT NOT NULL,
        place  TEXT NOT NULL,
        agent  TEXT NOT NULL,
        notes  INTEGER NOT NULL DEFAULT 0,
        UNIQUE (kind, place, agent)
    ) STRICT;
    CREATE TABLE note (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        scope   INTEGER NOT NULL REFERENCES scope (number),
        digest  BLOB NOT NULL,
        source  TEXT NOT NULL,
        at      INTEGER NOT NULL,
        session TEXT,
        agent   TEXT,
        updated INTEGER NOT NULL,
        text    TEXT NOT NULL,
        UNIQUE (scope, digest)
    ) STRICT;
    CREATE TRIGGER kept AFTER INSERT ON note BEGIN
        UPDATE scope SET notes = notes + 1 WHERE number = new.scope;
    END;
    CREATE TRIGGER forgotten AFTER DELETE ON note BEGIN
        UPDATE scope SET notes = notes - 1 WHERE number = old.scope;
    END;
    CREATE TABLE meta (id INTEGER PRIMARY KEY, words INTEGER NOT NULL) STRICT;
    INSERT INTO meta (id, words) VALUES (1, 0);
";

/// Without the text: it is in `note`, and what is indexed is not quite the same.
const INDEX_TABLE: &str = "
    DROP TABLE IF EXISTS words;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = '', contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

/// How much is read through when the file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Small,
    Whole,
}

pub(crate) fn open(path: &Path, depth: Check) -> Result<Connection, Error> {
    match try_open(path, depth) {
        Err(Trouble::Sql(error)) if is_damage(&error) => {}
        Err(Trouble::Damage(_)) => {}
        other => return other.map_err(|trouble| trouble.told(path)),
    }
    // Somebody else may have seen the same and put a fresh file there: only who holds the lock
    // moves the file, and only after another look.
    let lock = beside(path, ".lock");
    let held = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
    let held = held.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|source| Error::File { path: lock, source })?;
    match try_open(path, Check::Whole) {
        Err(Trouble::Sql(error)) if is_damage(&error) => Err(set_aside(path, &error.to_string())),
        Err(Trouble::Damage(why)) => Err(set_aside(path, &why)),
        other => other.map_err(|trouble| trouble.told(path)),
    }
}

enum Trouble {
    Sql(rusqlite::Error),
    Damage(String),
    Told(Error),
}

impl Trouble {
    fn told(self, path: &Path) -> Error {
        match self {
            Trouble::Sql(error) => failed(path, error),
            Trouble::Damage(why) => set_aside(path, &why),
            Trouble::Told(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Sql(error)
    }
}

#[expect(clippy::disallowed_methods, reason = "memory has a file of its own, opened only here")]
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A note that was acknowledged outlives a power cut.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn try_open(path: &Path, depth: Check) -> Result<Connection, Trouble> {
    let size = fs::metadata(path).map_or(0, |data| data.len());
    let mut connection = connect(path)?;
    if version(&connection)? == 0 {
        make(&mut connection)?;
    }
    let found = version(&connection)?;
    if found != VERSION {
        let path = path.to_owned();
        return Err(Trouble::Told(Error::Version { path, found, known: VERSION }));
    }
    if size > 0 && (depth == Check::Whole || size <= CHECKED_BYTES_MAX) {
        check(&connection).map_err(Trouble::Damage)?;
    }
    if !index_is_whole(&connection) {
        rebuild(&mut connection)?;
    }
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Whoever comes first; the others find it made.
fn make(connection: &mut Connection) -> Result<(), Trouble> {
    let work = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&work)? != 0 {
        return Ok(());
    }
    let tables: u32 = work.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        return Err(Trouble::Damage("it has tables but no version".into()));
    }
    work.execute_batch(TABLES)?;
    index(&work)?;
    work.pragma_update(None, "user_version", VERSION)?;
    Ok(work.commit()?)
}

/// What is wrong with the notes; the index does not count, it can be made anew.
fn check(connection: &Connection) -> Result<(), String> {
    let told = |error: rusqlite::Error| error.to_string();
    let mut statement = connection.prepare("PRAGMA quick_check(20)").map_err(told)?;
    let mut rows = statement.query([]).map_err(told)?;
    while let Some(row) = rows.next().map_err(told)? {
        let line: String = row.get(0).map_err(told)?;
        // Any of its tables may be meant, by name or as one that is no longer in order.
        if line != "ok" && !line.to_lowercase().contains("fts5") && !line.contains("words") {
            return Err(line);
        }
    }
    Ok(())
}

/// As many texts as notes, taken apart the way this program does it.
fn index_is_whole(connection: &Connection) -> bool {
    let sql = "SELECT (SELECT words FROM meta WHERE id = 1) = ?1
        AND (SELECT count(*) FROM note) = (SELECT count(*) FROM words_docsize)";
    connection.query_row(sql, [INDEX], |row| row.get(0)).unwrap_or(false)
}

/// Makes the index anew from the notes.
pub(crate) fn rebuild(connection: &mut Connection) -> rusqlite::Result<()> {
    let work = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    index(&work)?;
    work.commit()
}

fn index(work: &Connection) -> rusqlite::Result<()> {
    work.execute_batch(INDEX_TABLE)?;
    let mut notes = work.prepare("SELECT number, text FROM note")?;
    let mut rows = notes.query([])?;
    let mut insert = work.prepare("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(1)?;
        insert.execute(params![row.get::<_, i64>(0)?, words::indexed(&text)])?;
    }
    work.execute("UPDATE meta SET words = ?1 WHERE id = 1", [INDEX])?;
    Ok(())
}

/// The database is broken there, or holds what was never written to it.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    let code = error.sqlite_error_code();
    let short = error.sqlite_error().map(|error| error.extended_code)
        == Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ);
    // A table that should be there and is not.
    let lost = error.to_string().contains("no such table");
    short
        || lost
        || matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            E::InvalidColumnType(..) | E::FromSqlConversionFailure(..) | E::Utf8Error(..)
        )
}

/// A broken index has sizes in it that no machine has room for; the file is worth a look.
pub(crate) fn may_be_damage(error: &rusqlite::Error) -> bool {
    is_damage(error) || error.sqlite_error_code() == Some(ErrorCode::OutOfMemory)
}

/// An error that is no damage, in our words.
pub(crate) fn failed(path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
        Some(ErrorCode::DiskFull) => Error::Full { path },
        Some(_) | None => Error::Open { path, source },
    }
}

/// Moves the file and what belongs to it out of the way. Processes that have it open go on with
/// what they have.
fn set_aside(path: &Path, why: &str) -> Error {
    let named = |number| beside(path, &format!(".damaged-{number}"));
    let Some(kept) = (1..KEPT_MAX).map(named).find(|kept| !kept.exists()) else {
        let source = io::Error::other("too many damaged files are kept beside it");
        return Error::File { path: path.to_owned(), source };
    };
    for end in ["-wal", "-shm"] {
        // There may be none.
        let _ = fs::rename(beside(path, end), beside(&kept, end));
    }
    match fs::rename(path, &kept) {
        Ok(()) => Error::Damaged { path: path.to_owned(), kept, why: why.to_owned() },
        Err(source) => Error::File { path: path.to_owned(), source },
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
