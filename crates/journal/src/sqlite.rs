//! Entries in one database file: the default store. A write-ahead log with a full sync, because
//! kill -9 is not the only way to die: an accepted entry survives a power cut, too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_kernel::{Entry, Seq};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::{Error, Journal, last_of};

/// The version of the tables, not of what is in them: entries carry their own.
const VERSION: u32 = 1;

/// How long another writer is waited for. Its longest transaction is one row.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// `last` repeats what the JSON says, so that a check before each append parses nothing.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS entry (
        session TEXT    NOT NULL,
        seq     INTEGER NOT NULL,
        last    INTEGER NOT NULL,
        json    TEXT    NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT;
";

#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

impl Sqlite {
    /// Opens the file, and makes it if it is not there. Its folder must exist.
    pub fn open(path: &Path) -> Result<Sqlite, Error> {
        let failed = |source| Error::Open { path: path.to_owned(), source };
        let connection = connect(path).map_err(failed)?;
        let found = version(&connection).map_err(failed)?;
        if found > VERSION {
            return Err(Error::Newer { path: path.to_owned(), found, known: VERSION });
        }
        prepare(&connection).map_err(failed)?;
        Ok(Sqlite { path: path.to_owned(), connection })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that opens the file")]
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "user_version", VERSION)
}

impl Journal for Sqlite {
    fn append(&mut self, session: &str, expected: Seq, entry: &Entry) -> Result<(), Error> {
        let path = self.path.clone();
        let Some(last) = last_of(entry, expected) else {
            let (session, found) = (session.to_owned(), entry.seq);
            return Err(Error::Misplaced { path, session, expected, found });
        };
        match insert(&mut self.connection, session, expected, last, entry) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(found)) => {
                Err(Error::Conflict { path, session: session.to_owned(), expected, found })
            }
            Err(source) => Err(Error::Write { path, session: session.to_owned(), source }),
        }
    }

    fn load(&self, session: &str) -> Result<Vec<Entry>, Error> {
        let path = &self.path;
        let rows = select(&self.connection, session).map_err(|source| Error::Read {
            path: path.clone(),
            session: session.to_owned(),
            source,
        })?;
        let entry = |(seq, json): (Seq, String)| {
            Entry::read(&json).map_err(|source| Error::Damaged {
                path: path.clone(),
                session: session.to_owned(),
                seq,
                source,
            })
        };
        rows.into_iter().map(entry).collect()
    }
}

/// The check and the row are one transaction, which takes the write lock before it looks. The
/// inner error is where the session stands instead.
fn insert(
    connection: &mut Connection,
    session: &str,
    expected: Seq,
    last: Seq,
    entry: &Entry,
) -> rusqlite::Result<Result<(), Seq>> {
    let json = serde_json::to_string(entry)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT last FROM entry WHERE session = ? ORDER BY seq DESC LIMIT 1";
    let newest = transaction.query_row(sql, [session], |row| row.get(0).map(unsigned));
    let found = newest.optional()?.unwrap_or_default();
    if found != expected {
        return Ok(Err(found));
    }
    transaction.execute(
        "INSERT INTO entry (session, seq, last, json) VALUES (?, ?, ?, ?)",
        params![session, signed(entry.seq), signed(last), json],
    )?;
    transaction.commit().map(Ok)
}

fn select(connection: &Connection, session: &str) -> rusqlite::Result<Vec<(Seq, String)>> {
    let sql = "SELECT seq, json FROM entry WHERE session = ? ORDER BY seq";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([session], |row| Ok((unsigned(row.get(0)?), row.get(1)?)))?;
    rows.collect()
}

/// The database counts to 2⁶³; no session ever will.
fn signed(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or_default())
}
