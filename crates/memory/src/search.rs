//! Finding notes. First those that have every word of the question, then those that have some or
//! words that begin so, the best first and of equals the freshest. If nothing has any, the
//! letters are looked for anywhere, also inside of words.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::rows::{COLUMNS, find_scope, note_at};
use crate::store::Memory;
use crate::{Error, Note, Reader, words};

const FOUND_MAX: usize = 100;

/// A reader has at most three scopes; those without notes have a number that no scope has.
const NOWHERE: i64 = -1;

#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub note: Note,
    /// The place in the text that the question is about, on one line.
    pub snippet: String,
    /// Higher is better; only good to compare finds of one question.
    pub score: f64,
}

impl Memory {
    /// No question is wrong: signs that mean something to the database mean nothing here.
    pub fn search(
        &self,
        reader: &Reader,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let limit = limit.clamp(1, FOUND_MAX);
        let terms = words::terms(question);
        let found = self.with(|connection| {
            let places = places(connection, reader)?;
            let mut found = Vec::new();
            if !terms.is_empty() {
                found = ranked(connection, &words::all(&terms), places, limit)?;
            }
            if !terms.is_empty() && found.len() < limit {
                let more = ranked(connection, &words::any(&terms), places, limit)?;
                let is_new = |(note, _): &(Note, f64)| {
                    !found.iter().any(|(other, _): &(Note, f64)| other.id == note.id)
                };
                let more: Vec<_> = more.into_iter().filter(is_new).collect();
                found.extend(more);
                found.truncate(limit);
            }
            if found.is_empty() {
                found = scanned(connection, &terms, question, places, limit)?;
            }
            Ok(found)
        })?;
        let show = |(note, score): (Note, f64)| {
            let snippet = words::snippet(&note.text, &terms, question);
            Found { note, snippet, score }
        };
        Ok(found.into_iter().map(show).collect())
    }
}

fn places(connection: &Connection, reader: &Reader) -> rusqlite::Result<[i64; 3]> {
    let mut places = [NOWHERE; 3];
    for (place, scope) in places.iter_mut().zip(reader.scopes()) {
        *place = find_scope(connection, &scope)?.unwrap_or(NOWHERE);
    }
    Ok(places)
}

/// The order is found without the texts; only those that are shown are read.
fn ranked(
    connection: &Connection,
    question: &str,
    [a, b, c]: [i64; 3],
    limit: usize,
) -> rusqlite::Result<Vec<(Note, f64)>> {
    let sql = format!(
        "WITH best AS MATERIALIZED (
             SELECT words.rowid AS number, bm25(words) AS score, m.updated AS updated
             FROM words JOIN note m ON m.number = words.rowid
             WHERE words MATCH ?1 AND m.scope IN (?2, ?3, ?4)
             ORDER BY score, m.updated DESC, m.number DESC LIMIT ?5)
         SELECT {COLUMNS}, best.score FROM best
         JOIN note n ON n.number = best.number JOIN scope s ON s.number = n.scope
         ORDER BY best.score, best.updated DESC, best.number DESC"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    // The database counts better finds lower.
    let read = |row: &rusqlite::Row<'_>| Ok((note_at(row)?, -row.get::<_, f64>(10)?));
    statement.query_map(params![question, a, b, c, limit], read)?.collect()
}

/// Every note of the reader is read. Capital letters count only outside of ASCII.
fn scanned(
    connection: &Connection,
    terms: &[String],
    question: &str,
    places: [i64; 3],
    limit: usize,
) -> rusqlite::Result<Vec<(Note, f64)>> {
    let mut wanted: Vec<String> = terms.iter().map(|term| term.replace(' ', "")).collect();
    let whole = question.trim();
    if wanted.is_empty() && !whole.is_empty() {
        wanted.push(whole[..whole.floor_char_boundary(100)].to_owned());
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let like = " AND n.text LIKE ? ESCAPE '\\'".repeat(wanted.len());
    let sql = format!(
        "SELECT {COLUMNS} FROM note n JOIN scope s ON s.number = n.scope
         WHERE n.scope IN (?, ?, ?){like} ORDER BY n.updated DESC, n.number DESC LIMIT ?"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let patterns = wanted.iter().map(|word| Value::Text(pattern(word)));
    let values = places.into_iter().map(Value::Integer).chain(patterns);
    let values = values.chain([Value::Integer(limit)]);
    let mut statement = connection.prepare_cached(&sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((note_at(row)?, 0.0));
    statement.query_map(params_from_iter(values), read)?.collect()
}

fn pattern(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}
