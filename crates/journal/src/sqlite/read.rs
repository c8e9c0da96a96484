//! Reading, and believing nothing: each row by its checksum, each step by the chain, the end by
//! the mark, a snapshot by its seal and the entry it stands on.

use locum_kernel::{Seq, Time};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::catalogue::Known;
use super::tables::{Row, Trouble, key, range, seq_of};
use crate::Snapshot;
use crate::chain::{Hash, Head, link, seal};

/// Where a session stands.
pub(super) fn head(connection: &Connection, known: &Known) -> Result<Head, Trouble> {
    let head = end_at_or_before(connection, known, None)?;
    known.check(head.unwrap_or(known.genesis()))
}

/// The newest entry that begins at `seq` or before, or the newest of all.
pub(super) fn end_at_or_before(
    connection: &Connection,
    known: &Known,
    seq: Option<Seq>,
) -> Result<Option<Head>, Trouble> {
    Ok(row_at_or_before(connection, known, seq)?.map(|row| row.head()))
}

/// The moment of the newest entry, as it stands there: it only puts sessions in order, so a
/// damaged one has its place among them, too.
pub(super) fn written(connection: &Connection, known: &Known) -> Result<Option<Time>, Trouble> {
    let (from, to) = range(known.named.number);
    let sql = "SELECT at FROM entry WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1";
    let at = connection.prepare_cached(sql)?.query_row([from, to], |row| row.get(0)).optional()?;
    Ok(at.map(|at: i64| Time(at.unsigned_abs())))
}

fn row_at_or_before(
    connection: &Connection,
    known: &Known,
    seq: Option<Seq>,
) -> Result<Option<Row>, Trouble> {
    let (from, to) = range(known.named.number);
    let to = seq.and_then(|seq| key(known.named.number, seq)).map_or(to, |key| key + 1);
    let columns = Row::COLUMNS;
    let sql =
        format!("SELECT {columns} FROM entry WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([from, to])?;
    rows.next()?.map(Row::read).transpose()
}

/// The rows that begin after `after`, each proved to follow the one before, and the last proved
/// to reach what was acknowledged.
pub(super) fn tail(
    connection: &Connection,
    known: &Known,
    after: Seq,
) -> Result<Vec<(Seq, String)>, Trouble> {
    let Sound { rows, flaw, .. } = sound(connection, known, after)?;
    flaw.map_or(Ok(rows), |why| Err(Trouble::Damage(why)))
}

/// Rows that can be believed, and what is wrong with what should come after them.
#[derive(Debug)]
pub(super) struct Sound {
    pub(super) rows: Vec<(Seq, String)>,
    /// The last event of the last of them.
    pub(super) last: Seq,
    pub(super) flaw: Option<String>,
}

/// The same as far as it is whole. Only what is wrong with the database as such is an error.
pub(super) fn sound(connection: &Connection, known: &Known, after: Seq) -> Result<Sound, Trouble> {
    let mut rows = Vec::new();
    let mut head = known.genesis();
    let flaw = match follow(connection, known, after, &mut head, &mut rows) {
        Ok(()) => None,
        Err(Trouble::Damage(why)) => Some(why),
        Err(Trouble::Sql(error)) => return Err(Trouble::Sql(error)),
    };
    Ok(Sound { rows, last: head.last, flaw })
}

fn follow(
    connection: &Connection,
    known: &Known,
    after: Seq,
    head: &mut Head,
    tail: &mut Vec<(Seq, String)>,
) -> Result<(), Trouble> {
    let anchor = match after {
        Seq(0) => None,
        after => end_at_or_before(connection, known, Some(after))?,
    };
    *head = anchor.unwrap_or(known.genesis());
    let (first, to) = range(known.named.number);
    let from = key(known.named.number, after).map_or(to, |key| key + 1).max(first);
    let columns = Row::COLUMNS;
    let sql = format!("SELECT {columns} FROM entry WHERE id >= ? AND id < ? ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([from, to])?;
    while let Some(row) = rows.next()? {
        let row = Row::read(row)?;
        let seq = row.facts.seq;
        if seq.0 != head.last.0 + 1 {
            return Err(Trouble::Damage(format!("after {} comes {seq}", head.last)));
        }
        if link(&head.hash, row.facts, row.json.as_bytes()) != row.hash {
            return Err(Trouble::Damage(format!("the chain breaks at {seq}")));
        }
        *head = row.head();
        tail.push((seq, row.json));
    }
    known.check(*head).map(drop)
}

/// How many rows lie after an event; none if not even that can be said.
pub(super) fn count_after(connection: &Connection, known: &Known, last: Seq) -> Option<u64> {
    let (_, to) = range(known.named.number);
    let from = key(known.named.number, last)? + 1;
    let sql = "SELECT count(*) FROM entry WHERE id >= ? AND id < ?";
    let count: i64 = connection.query_row(sql, [from, to], |row| row.get(0)).ok()?;
    u64::try_from(count).ok()
}

/// The newest snapshot that can be believed. One that cannot is passed over: it saves time, and
/// the entries are still there.
pub(super) fn newest_snapshot(
    connection: &Connection,
    known: &Known,
) -> rusqlite::Result<Option<Snapshot>> {
    let (from, to) = range(known.named.number);
    let mut statement = connection
        .prepare_cached("SELECT id FROM snapshot WHERE id >= ? AND id < ? ORDER BY id DESC")?;
    let ids = statement.query_map([from, to], |row| row.get(0)).and_then(Iterator::collect);
    let ids: Vec<i64> = match ids.map_err(Trouble::from) {
        Ok(ids) => ids,
        Err(Trouble::Damage(_)) => return Ok(None),
        Err(Trouble::Sql(error)) => return Err(error),
    };
    for id in ids {
        match snapshot(connection, known, id) {
            Ok(Some(snapshot)) => return Ok(Some(snapshot)),
            Ok(None) | Err(Trouble::Damage(_)) => {}
            Err(Trouble::Sql(error)) => return Err(error),
        }
    }
    Ok(None)
}

fn snapshot(connection: &Connection, known: &Known, id: i64) -> Result<Option<Snapshot>, Trouble> {
    let sql = "SELECT hash, seal, bytes FROM snapshot WHERE id = ?";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found = connection.prepare_cached(sql)?.query_row([id], read).optional()?;
    let Some((hash, sealed, bytes)): Option<(Hash, Hash, Vec<u8>)> = found else {
        return Ok(None);
    };
    let seq = seq_of(id);
    let stands_on = end_at_or_before(connection, known, Some(seq))?;
    let believed = stands_on == Some(Head { last: seq, hash }) && sealed == seal(id, &hash, &bytes);
    Ok(believed.then_some(Snapshot { seq, bytes }))
}

pub(super) fn put_snapshot(
    connection: &Connection,
    known: &Known,
    at: Head,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    let (from, to) = range(known.named.number);
    let Some(id) = key(known.named.number, at.last) else { return Ok(()) };
    let put = "INSERT OR REPLACE INTO snapshot (id, hash, seal, bytes) VALUES (?, ?, ?, ?)";
    let values = params![id, at.hash, seal(id, &at.hash, bytes), bytes];
    connection.prepare_cached(put)?.execute(values)?;
    // Two are kept: should the newest be damaged, the one before is nearly as good.
    let drop_old = "DELETE FROM snapshot WHERE id >= ?1 AND id < ?2 AND id NOT IN
        (SELECT id FROM snapshot WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT 2)";
    connection.prepare_cached(drop_old)?.execute([from, to]).map(drop)
}
