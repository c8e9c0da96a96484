//! Rows of the tables as notes and scopes, and the small steps that acts are made of. Every one of
//! them runs inside of somebody's transaction.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::store::{Stop, digest};
use crate::{Error, Id, Note, Provenance, Reader, Saved, Scope, Source, words};

/// The database counts with a sign.
pub(crate) fn stored(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

pub(crate) const COLUMNS: &str = "n.number, n.text, n.source, n.at, n.session, n.agent, \
    n.updated, s.kind, s.place, s.agent";

pub(crate) fn note_at(row: &rusqlite::Row<'_>) -> rusqlite::Result<Note> {
    let word: String = row.get(2)?;
    let source = Source::ALL.into_iter().find(|source| source.word() == word);
    let provenance = Provenance {
        source: source.ok_or_else(|| odd(2, &word))?,
        at: row.get::<_, i64>(3)?.unsigned_abs(),
        session: row.get(4)?,
        agent: row.get(5)?,
    };
    Ok(Note {
        id: Id(row.get::<_, i64>(0)?.unsigned_abs()),
        text: row.get(1)?,
        scope: scope_at(row, 7)?,
        provenance,
        updated_at: row.get::<_, i64>(6)?.unsigned_abs(),
    })
}

pub(crate) fn scope_at(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Scope> {
    let kind: String = row.get(column)?;
    let (place, agent) = (row.get(column + 1)?, row.get(column + 2)?);
    match kind.as_str() {
        "user" => Ok(Scope::User),
        "workspace" => Ok(Scope::Workspace { path: place }),
        "agent" => Ok(Scope::Agent { name: agent, workspace: place }),
        _ => Err(odd(column, &kind)),
    }
}

/// A word that was never written there.
fn odd(column: usize, word: &str) -> rusqlite::Error {
    let kind = rusqlite::types::Type::Text;
    rusqlite::Error::InvalidColumnType(column, word.to_owned(), kind)
}

fn parts(scope: &Scope) -> (&'static str, &str, &str) {
    match scope {
        Scope::User => ("user", "", ""),
        Scope::Workspace { path } => ("workspace", path, ""),
        Scope::Agent { name, workspace } => ("agent", workspace, name),
    }
}

/// None: nothing was ever kept there.
pub(crate) fn find_scope(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT number FROM scope WHERE kind = ?1 AND place = ?2 AND agent = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(parts(scope), |row| row.get(0)).optional()
}

pub(crate) fn scope_number(work: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
    if let Some(number) = find_scope(work, scope)? {
        return Ok(number);
    }
    let sql = "INSERT INTO scope (kind, place, agent) VALUES (?1, ?2, ?3)";
    work.prepare_cached(sql)?.execute(parts(scope))?;
    Ok(work.last_insert_rowid())
}

pub(crate) fn same(
    connection: &Connection,
    scope: i64,
    text: &str,
) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT number FROM note WHERE scope = ?1 AND digest = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(params![scope, digest(text)], |row| row.get(0)).optional()
}

pub(crate) fn read(connection: &Connection, number: i64) -> rusqlite::Result<Note> {
    let sql = format!(
        "SELECT {COLUMNS} FROM note n JOIN scope s ON s.number = n.scope WHERE n.number = ?1"
    );
    connection.prepare_cached(&sql)?.query_row([number], note_at)
}

/// A note of somebody else is as good as none.
pub(crate) fn seen(connection: &Connection, reader: &Reader, id: Id) -> Result<Note, Stop> {
    let number = i64::try_from(id.0).map_err(|_| Error::Unknown { id })?;
    let note = read(connection, number).optional()?;
    let note = note.filter(|note| reader.sees(&note.scope));
    Ok(note.ok_or(Error::Unknown { id })?)
}

pub(crate) fn listed(
    connection: &Connection,
    scope: &Scope,
    after: Option<Id>,
    limit: usize,
) -> rusqlite::Result<Vec<Note>> {
    let Some(scope) = find_scope(connection, scope)? else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {COLUMNS} FROM note n JOIN scope s ON s.number = n.scope
         WHERE n.scope = ?1 AND n.number > ?2 ORDER BY n.number LIMIT ?3"
    );
    let after = after.map_or(0, |id| stored(id.0));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([scope, after, limit], note_at)?.collect()
}

pub(crate) fn index(work: &Connection, number: i64, text: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO words (rowid, text) VALUES (?1, ?2)";
    work.prepare_cached(sql)?.execute(params![number, words::indexed(text)]).map(drop)
}

pub(crate) fn remove(work: &Connection, id: Id) -> rusqlite::Result<()> {
    let number = stored(id.0);
    work.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([number])?;
    work.prepare_cached("DELETE FROM note WHERE number = ?1")?.execute([number]).map(drop)
}

pub(crate) fn rewrite(
    work: &Connection,
    old: &Note,
    text: &str,
    from: &Provenance,
) -> rusqlite::Result<Saved> {
    let number = stored(old.id.0);
    let place = scope_number(work, &old.scope)?;
    match same(work, place, text)? {
        Some(other) if other != number => {
            remove(work, old.id)?;
            return Ok(Saved::Again(read(work, other)?));
        }
        Some(_) | None => {}
    }
    let sql = "UPDATE note SET text = ?2, digest = ?3, source = ?4, at = ?5, session = ?6,
        agent = ?7, updated = ?5 WHERE number = ?1";
    let Provenance { source, at, session, agent } = from;
    let values = params![number, text, digest(text), source.word(), stored(*at), session, agent];
    work.prepare_cached(sql)?.execute(values)?;
    work.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([number])?;
    index(work, number, text)?;
    Ok(Saved::New(read(work, number)?))
}
