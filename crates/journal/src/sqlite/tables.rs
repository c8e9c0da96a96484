//! The tables, and the only place that opens the file. A row of `entry` has the session's number
//! and the entry's first event in its key, so that a session lies together on pages of its own
//! and damage to a page is, but for the pages above them, damage to one session.

use std::fs;
use std::path::Path;
use std::time::Duration;

use locum_kernel::Seq;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::keep::beside;
use crate::chain::{Facts, Hash, Head, sum, sum_of};

/// The version of the tables, not of what is in them: entries carry their own.
pub(super) const VERSION: u32 = 2;

/// The database's own choice for a new file.
pub(super) const PAGE: u64 = 4_096;

/// How long another process's transaction is waited for. There is one only while a journal is
/// taken over.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// 2⁴⁰ events of a session leave room for 2²³ sessions.
const SEQ_BITS: u32 = 40;

/// The text comes last in a row: what is checked most often lies before it.
const TABLES: &str = "
    CREATE TABLE meta (id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;
    CREATE TABLE session (
        number  INTEGER PRIMARY KEY,
        name    TEXT NOT NULL,
        born    TEXT NOT NULL,
        damaged TEXT,
        sum     INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE entry (
        id   INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        at   INTEGER NOT NULL,
        sum  INTEGER NOT NULL,
        hash BLOB NOT NULL,
        json TEXT NOT NULL
    ) STRICT;
    CREATE TABLE snapshot (
        id    INTEGER PRIMARY KEY,
        hash  BLOB NOT NULL,
        seal  BLOB NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT;
    INSERT INTO meta (id, epoch) VALUES (1, 0);
";

/// Why something could not be read: the database as such, or what it holds.
#[derive(Debug)]
pub(super) enum Trouble {
    Sql(rusqlite::Error),
    Damage(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        if is_damage(&error) { Trouble::Damage(error.to_string()) } else { Trouble::Sql(error) }
    }
}

/// The database is broken there, or a column is not of the kind every row was written with.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    let code = error.sqlite_error_code();
    // The file ends before a page that belongs to it.
    let short = error.sqlite_error().map(|error| error.extended_code)
        == Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ);
    short
        || matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            E::InvalidColumnType(..) | E::FromSqlConversionFailure(..) | E::Utf8Error(..)
        )
        || matches!(error, E::IntegralValueOutOfRange(..))
}

/// Space ran out, be it for rows or for the index of the write-ahead log.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    const SHM_SIZE: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
    let extended = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull) || extended == Some(SHM_SIZE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Changes nothing, not even by closing.
    Look,
    /// The same where not even the index of the log can be made: in a folder that cannot be
    /// written. Only for a file without a log, and only for a moment: no writer is noticed.
    Still,
    Write,
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that opens the file")]
pub(super) fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = match access {
        Access::Look => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Still => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match access {
        Access::Look | Access::Write => Connection::open_with_flags(path, flags)?,
        Access::Still => Connection::open_with_flags(still(path), flags)?,
    };
    connection.busy_timeout(BUSY_WAIT)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// The file as an address that says it does not change.
fn still(path: &Path) -> String {
    let spelled = |byte: &u8| match byte {
        b'/' | b'.' | b'_' | b'-' | b'~' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    let path: String = path.as_os_str().as_encoded_bytes().iter().map(spelled).collect();
    format!("file:{path}?immutable=1")
}

/// The folder or the file may not be written by this user.
pub(super) fn is_forbidden(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// None: there are no tables at all. A version without tables or the reverse is damage.
pub(super) fn version(connection: &Connection) -> Result<Option<u32>, Trouble> {
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: u32 = connection.query_row(count, [], |row| row.get(0))?;
    match (version, tables) {
        (0, 0) => Ok(None),
        (0, _) => Err(Trouble::Damage("it has tables but no version".into())),
        (_, 0) => Err(Trouble::Damage("it has a version but no tables".into())),
        (version, _) => Ok(Some(version)),
    }
}

/// A file without a log is whole pages. The database only looks whether the last one begins; if
/// it holds anything, whoever reads that will notice, and if not, this at least is told.
pub(super) fn is_ragged(path: &Path) -> bool {
    let length = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    length(&beside(path, "-wal")) == 0 && length(path) % PAGE != 0
}

/// Free pages can be given back. For a file that is made now, or written anew next.
pub(super) fn set_incremental(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
}

pub(super) fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

pub(super) fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    let both = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;");
    connection.execute_batch(&both)
}

pub(super) fn epoch(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT epoch FROM meta WHERE id = 1")?;
    statement.query_row([], |row| row.get(0))
}

pub(super) fn set_epoch(connection: &Connection, epoch: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE meta SET epoch = ? WHERE id = 1";
    connection.prepare_cached(sql)?.execute([epoch]).map(drop)
}

/// The first key of a session and the first of the next.
pub(super) fn range(number: i64) -> (i64, i64) {
    (number << SEQ_BITS, (number + 1) << SEQ_BITS)
}

/// None: no such session or event can be numbered.
pub(super) fn key(number: i64, seq: Seq) -> Option<i64> {
    let seq = i64::try_from(seq.0).ok().filter(|seq| *seq < 1 << SEQ_BITS)?;
    (number < 1 << (63 - SEQ_BITS)).then_some(number << SEQ_BITS | seq)
}

pub(super) fn seq_of(key: i64) -> Seq {
    Seq((key & ((1 << SEQ_BITS) - 1)).unsigned_abs())
}

/// A row of `entry` as it lies there, its checksum found right.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) facts: Facts,
    pub(super) hash: Hash,
    pub(super) json: String,
}

impl Row {
    pub(super) const COLUMNS: &str = "id, last, at, sum, hash, json";

    pub(super) fn read(row: &rusqlite::Row<'_>) -> Result<Row, Trouble> {
        let id: i64 = row.get(0)?;
        let seq = seq_of(id);
        let last = Seq(row.get::<_, i64>(1)?.unsigned_abs());
        let facts = Facts { seq, last, at: row.get(2)? };
        let hash: Hash = row.get(4)?;
        let json = row.get_ref(5)?.as_bytes().map_err(rusqlite::Error::from)?;
        if sum(id, facts, json, &hash) != row.get::<_, i64>(3)? {
            return Err(Trouble::Damage(format!("the checksum of the entry at {seq} is wrong")));
        }
        let text = std::str::from_utf8(json);
        let text = text.map_err(|_| Trouble::Damage(format!("the entry at {seq} is no text")))?;
        Ok(Row { facts, hash, json: text.to_owned() })
    }

    pub(super) fn head(&self) -> Head {
        Head { last: self.facts.last, hash: self.hash }
    }
}

pub(super) fn insert(
    connection: &Connection,
    id: i64,
    facts: Facts,
    hash: &Hash,
    json: &str,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO entry (id, last, at, sum, hash, json) VALUES (?, ?, ?, ?, ?, ?)";
    let last = i64::try_from(facts.last.0).unwrap_or(i64::MAX);
    let sum = sum(id, facts, json.as_bytes(), hash);
    let values = params![id, last, facts.at, sum, hash, json];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

/// A row of `session`. `born` is the name its chain begins with; `name` changes if it is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) born: String,
    pub(super) damaged: Option<String>,
}

impl Named {
    fn sum(&self) -> i64 {
        let damaged = self.damaged.as_deref().map_or(String::new(), |why| format!("!{why}"));
        let number = self.number.to_le_bytes();
        sum_of(&[&number, self.name.as_bytes(), self.born.as_bytes(), damaged.as_bytes()])
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO session (number, name, born, damaged, sum)
                   VALUES (?, ?, ?, ?, ?)";
        let values = params![self.number, self.name, self.born, self.damaged, self.sum()];
        connection.prepare_cached(sql)?.execute(values).map(drop)
    }

    /// All sessions; the error is the number of one whose row is not as it was written.
    pub(super) fn all(connection: &Connection) -> Result<Vec<Result<Named, i64>>, Trouble> {
        let sql = "SELECT number, name, born, damaged, sum FROM session ORDER BY number";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let number = row.get(0)?;
            let named = Named::read(row, number);
            all.push(named.ok().flatten().ok_or(number));
        }
        Ok(all)
    }

    fn read(row: &rusqlite::Row<'_>, number: i64) -> rusqlite::Result<Option<Named>> {
        let (name, born, damaged) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let named = Named { number, name, born, damaged };
        Ok((named.sum() == row.get::<_, i64>(4)?).then_some(named))
    }
}
