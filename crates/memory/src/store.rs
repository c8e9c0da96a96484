//! Keeping notes: each act is one transaction, synced before it is acknowledged. Several processes
//! may do so at once; they wait for one another for milliseconds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};

use crate::merge::{Change, merge};
use crate::page::Base;
use crate::rows::{
    index, listed, read, remove, rewrite, same, scope_at, scope_number, seen, stored,
};
use crate::tables::{self, Check};
use crate::{Error, Id, Limits, Note, Provenance, Reader, Saved, Scope, secret};

/// One process's way to the notes of a data folder.
pub struct Memory {
    path: PathBuf,
    limits: Limits,
    /// None: the file was damaged and set aside; the next act opens what is there then.
    connection: Mutex<Option<Connection>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Why an act came to nothing: the database, which may be tried again, or a reason to be told.
pub(crate) enum Stop {
    Sql(rusqlite::Error),
    Told(Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Sql(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Told(error)
    }
}

impl Memory {
    pub fn open(data_dir: &Path) -> Result<Memory, Error> {
        Memory::open_within(data_dir, Limits::default())
    }

    pub fn open_within(data_dir: &Path, limits: Limits) -> Result<Memory, Error> {
        let path = data_dir.join("memory.db");
        let connection = Mutex::new(Some(tables::open(&path, Check::Small)?));
        Ok(Memory { path, limits, connection })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a text. The same text in the same scope is one note, which is then as fresh as now.
    pub fn save(
        &self,
        reader: &Reader,
        scope: &Scope,
        text: &str,
        from: &Provenance,
    ) -> Result<Saved, Error> {
        permit(reader, scope)?;
        let text = self.fit(text)?;
        self.write(|work| self.insert(work, scope, &text, from))
    }

    /// Gives a note another text, with where that is from. If there is a note with this text
    /// already, that one stays and this one is forgotten.
    pub fn replace(
        &self,
        reader: &Reader,
        id: Id,
        text: &str,
        from: &Provenance,
    ) -> Result<Saved, Error> {
        let text = self.fit(text)?;
        self.write(|work| {
            let old = seen(work, reader, id)?;
            Ok(rewrite(work, &old, &text, from)?)
        })
    }

    /// Returns what was forgotten, so that it can be shown.
    pub fn forget(&self, reader: &Reader, id: Id) -> Result<Note, Error> {
        self.write(|work| {
            let old = seen(work, reader, id)?;
            remove(work, id)?;
            Ok(old)
        })
    }

    pub fn get(&self, reader: &Reader, id: Id) -> Result<Note, Error> {
        self.with(|connection| seen(connection, reader, id))
    }

    /// The notes of a scope in the order in which they were made, from after a note on.
    pub fn list(
        &self,
        reader: &Reader,
        scope: &Scope,
        after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<Note>, Error> {
        permit(reader, scope)?;
        self.with(|connection| Ok(listed(connection, scope, after, limit)?))
    }

    /// Every scope that has notes, with how many. For people: it tells of scopes to which no
    /// agent is given access by it.
    pub fn scopes(&self) -> Result<Vec<(Scope, u32)>, Error> {
        self.with(|connection| {
            let sql = "SELECT kind, place, agent, notes FROM scope WHERE notes > 0
                ORDER BY 1, 2, 3";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| Ok((scope_at(row, 0)?, row.get(3)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Takes an edited page back in, all of it or nothing. Without a base, the one written at the
    /// end of the page counts.
    pub fn take_back(
        &self,
        reader: &Reader,
        scope: &Scope,
        base: Option<&Base>,
        edited: &str,
        from: &Provenance,
    ) -> Result<Vec<Change>, Error> {
        permit(reader, scope)?;
        let written = Base::in_page(edited);
        let base = base.unwrap_or(&written);
        self.write(|work| {
            let now = listed(work, scope, None, usize::MAX)?;
            let changes = merge(base, edited, &now);
            for change in &changes {
                self.apply(work, scope, &now, change, from)?;
            }
            Ok(changes)
        })
    }

    /// Makes the index of words anew.
    pub fn rebuild(&self) -> Result<(), Error> {
        self.with(|connection| Ok(tables::rebuild(connection)?))
    }

    fn apply(
        &self,
        work: &Connection,
        scope: &Scope,
        now: &[Note],
        change: &Change,
        from: &Provenance,
    ) -> Result<(), Stop> {
        let fit = |text: &str| {
            let place = change.place();
            self.fit(text).map_err(|source| Error::InPage { place, source: Box::new(source) })
        };
        match change {
            Change::Added { text } | Change::Both { text, .. } | Change::Revived { text, .. } => {
                self.insert(work, scope, &fit(text)?, from)?;
            }
            Change::Edited { id, text } => {
                let text = fit(text)?;
                if let Some(old) = now.iter().find(|note| note.id == *id) {
                    rewrite(work, old, &text, from)?;
                }
            }
            Change::Forgotten { id } => remove(work, *id)?,
            Change::Kept { .. } => {}
        }
        Ok(())
    }

    /// The text as it is kept, if it may be kept.
    fn fit(&self, text: &str) -> Result<String, Error> {
        let max = self.limits.note_bytes;
        // What is far too long is not even looked at.
        if text.len() > max.saturating_mul(4) {
            return Err(Error::TooLong { bytes: text.len(), max });
        }
        let text = tidy(text);
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if text.len() > max {
            return Err(Error::TooLong { bytes: text.len(), max });
        }
        match secret::find(&text) {
            Some(found) => Err(Error::Secret(found)),
            None => Ok(text),
        }
    }

    fn insert(
        &self,
        work: &Connection,
        scope: &Scope,
        text: &str,
        from: &Provenance,
    ) -> Result<Saved, Stop> {
        let place = scope_number(work, scope)?;
        if let Some(id) = same(work, place, text)? {
            let touch = "UPDATE note SET updated = max(updated, ?2) WHERE number = ?1";
            work.prepare_cached(touch)?.execute(params![id, stored(from.at)])?;
            return Ok(Saved::Again(read(work, id)?));
        }
        let count = "SELECT notes FROM scope WHERE number = ?1";
        let count: u32 = work.prepare_cached(count)?.query_row([place], |row| row.get(0))?;
        let max = self.limits.notes_per_scope;
        if count >= max {
            return Err(Error::TooMany { scope: scope.clone(), max }.into());
        }
        let sql = "INSERT INTO note (scope, digest, source, at, session, agent, updated, text)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, ?7)";
        let Provenance { source, at, session, agent } = from;
        let values = params![place, digest(text), source.word(), stored(*at), session, agent, text];
        work.prepare_cached(sql)?.execute(values)?;
        let number = work.last_insert_rowid();
        index(work, number, text)?;
        Ok(Saved::New(read(work, number)?))
    }

    fn write<T>(&self, mut act: impl FnMut(&Connection) -> Result<T, Stop>) -> Result<T, Error> {
        self.with(|connection| {
            let work = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&work)?;
            work.commit()?;
            Ok(done)
        })
    }

    /// Does it; if that meets damage, opens the file anew, which makes a broken index whole or
    /// sets a broken file aside, and tries once more.
    pub(crate) fn with<T>(
        &self,
        mut act: impl FnMut(&mut Connection) -> Result<T, Stop>,
    ) -> Result<T, Error> {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut depth = Check::Small;
        if let Some(connection) = held.as_mut() {
            match act(connection) {
                Err(Stop::Sql(error)) if tables::may_be_damage(&error) => depth = Check::Whole,
                other => return other.map_err(|stop| self.told(stop)),
            }
        }
        *held = None;
        let connection = held.insert(tables::open(&self.path, depth)?);
        if depth == Check::Whole {
            tables::rebuild(connection).map_err(|error| tables::failed(&self.path, error))?;
        }
        act(connection).map_err(|stop| self.told(stop))
    }

    fn told(&self, stop: Stop) -> Error {
        match stop {
            Stop::Sql(error) => tables::failed(&self.path, error),
            Stop::Told(error) => error,
        }
    }
}

fn permit(reader: &Reader, scope: &Scope) -> Result<(), Error> {
    if reader.sees(scope) { Ok(()) } else { Err(Error::NotYours { scope: scope.clone() }) }
}

/// Without what nobody sees but a model reads: control characters, letters that are only tags,
/// and marks that turn the direction of a line.
pub(crate) fn tidy(text: &str) -> String {
    let is_hidden = |sign: char| {
        let is_mark = matches!(
            sign,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'
        );
        is_mark || (sign.is_control() && sign != '\n' && sign != '\t')
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|sign| !is_hidden(*sign)).collect::<String>().trim().to_owned()
}

/// What makes two texts the same.
pub(crate) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
