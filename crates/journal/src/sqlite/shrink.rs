//! Room that deleted sessions leave is given back to the file system. It only saves room: whatever
//! does not work out is left for the next time, and until then new entries use it.
//!
//! A file made by this version knows who points to each of its pages, so that those at its end can
//! be moved into holes, some at a time, each time in a transaction like any other. An older file
//! can only be written anew as a whole; that is done once, when more than half of it is holes, and
//! from then on it is such a file, too. Either way the log holds all of it before the file is
//! touched: who dies in between has the old file or the new one, with the same rows.
//!
//! Nothing is moved in a file that has anything wrong with it: what is left of a damaged session
//! stays where it is.

use std::sync::Arc;

use rusqlite::Connection;

use super::Sqlite;
use super::fence::Turn;
use super::tables::{PAGE, is_full, set_incremental};
use super::writer::{Writer, is_busy, lock};
use crate::Error;

/// Pages moved or cut off in one transaction: eight megabytes, as much as a long batch of entries.
const STEP: u32 = 2_048;
/// A quarter of a gigabyte at most for one call; the rest is for the next.
const STEPS_MAX: u32 = 32;

/// An older file is not worth the work if it is smaller, and would take too long if so much of it
/// is in use.
const WHOLE_BYTES_MIN: u64 = 1 << 20;
const WHOLE_BYTES_MAX: u64 = 256 << 20;

/// How a file keeps its free pages.
const NONE: i64 = 0;
const INCREMENTAL: i64 = 2;

impl Sqlite {
    /// Gives free pages back, as far as that is little work. The file is shorter when the journal
    /// is closed. An error says that room was not given back, and nothing else: no entry is less
    /// safe for it.
    pub fn shrink(&self) -> Result<(), Error> {
        if !self.is_sound() {
            return Ok(());
        }
        let mut writer = lock(&self.writer);
        if writer.stopped {
            return Ok(());
        }
        writer.shrink().map_err(|source| {
            let (path, session) = (self.shared.path.clone(), String::new());
            Error::Write { path, session, source: Arc::new(source) }
        })
    }

    fn is_sound(&self) -> bool {
        let catalogue = self.shared.catalogue();
        catalogue.notices.is_empty() && catalogue.list().iter().all(|one| one.damaged.is_none())
    }
}

impl Writer {
    fn shrink(&mut self) -> rusqlite::Result<()> {
        match number(&self.connection, "PRAGMA auto_vacuum")? {
            INCREMENTAL => {
                for _ in 0..STEPS_MAX {
                    if number(&self.connection, "PRAGMA freelist_count")? == 0 || !self.cut()? {
                        break;
                    }
                }
                Ok(())
            }
            NONE => self.write_anew(),
            _ => Ok(()),
        }
    }

    /// One transaction. False: somebody else writes here now.
    fn cut(&mut self) -> rusqlite::Result<bool> {
        let turn = Turn::begin(&self.connection)?;
        if self.fence.check(&self.connection)?.is_err() {
            return Ok(false);
        }
        let sql = format!("PRAGMA incremental_vacuum({STEP})");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut pages = statement.query([])?;
        // Each row is a page, and only whoever asks for the next has it moved.
        while pages.next()?.is_some() {}
        drop(pages);
        let claimed = self.fence.claim(&self.connection)?;
        // As with entries: a writer whose sync failed does not know what the disk has.
        let committed = turn.commit();
        let stopped = |error: &rusqlite::Error| !is_full(error) && !is_busy(error);
        self.stopped = committed.as_ref().is_err_and(stopped);
        drop(statement);
        committed?;
        self.fence = claimed;
        Ok(true)
    }

    /// The same rows in a new order. If somebody took over at just this moment, it is their rows
    /// that are kept: no transaction is open before all of it is read.
    fn write_anew(&mut self) -> rusqlite::Result<()> {
        let pages = number(&self.connection, "PRAGMA page_count")?.unsigned_abs();
        let free = number(&self.connection, "PRAGMA freelist_count")?.unsigned_abs();
        let used = pages.saturating_sub(free) * PAGE;
        let worth = pages * PAGE >= WHOLE_BYTES_MIN && free > pages / 2;
        if !worth || used > WHOLE_BYTES_MAX || !self.is_alone()? {
            return Ok(());
        }
        // A page that cannot be read is not left out: then it is damage, and nothing is done.
        let sound: String =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if sound != "ok" {
            return Ok(());
        }
        set_incremental(&self.connection)?;
        self.connection.execute_batch("VACUUM")
    }

    /// Nobody reads an older state, and this is still the one who writes.
    fn is_alone(&self) -> rusqlite::Result<bool> {
        let busy = number(&self.connection, "PRAGMA wal_checkpoint(TRUNCATE)")?;
        let _turn = Turn::begin(&self.connection)?;
        Ok(busy == 0 && self.fence.check(&self.connection)?.is_ok())
    }
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}
