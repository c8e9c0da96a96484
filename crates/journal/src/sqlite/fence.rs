//! One transaction of the one writer, and what keeps every other writer out of the file: the
//! number in `meta`. Each writer has its own, higher than any that wrote before, and looks inside
//! each transaction whether the one in the file is still the one it knows.
//!
//! A writer that came by the lock writes its number together with its first entry, so that opening
//! costs no sync and whoever only reads writes nothing at all. Why that is enough: until then it
//! knows the number it *found*, and that one changes only when
//! - somebody else came by the lock: then this one has lost it, by dying; or
//! - somebody took over. They put their lock in place first and write their number at once, before
//!   they are told that they have the journal. Whoever was taken over from had looked at the number
//!   *before* that (the lock was still its own after looking, or it would not have opened), so it
//!   finds another one in its first transaction, as in any later one, and writes nothing.
//!
//! Taking over counts two up: one is left for the writer that has a number and never wrote it.

use rusqlite::Connection;

use super::tables;

/// Rolled back if it is not committed. Its words are prepared once, not parsed for each entry.
pub(super) struct Turn<'c> {
    pub(super) connection: &'c Connection,
}

impl<'c> Turn<'c> {
    pub(super) fn begin(connection: &'c Connection) -> rusqlite::Result<Turn<'c>> {
        run(connection, "BEGIN IMMEDIATE")?;
        Ok(Turn { connection })
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        run(self.connection, "COMMIT")
    }
}

impl Drop for Turn<'_> {
    /// A commit that failed may have left it open, or not.
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // What cannot be rolled back now is when the file is opened again.
            let _ = run(self.connection, "ROLLBACK");
        }
    }
}

fn run(connection: &Connection, word: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(word)?.execute([]).map(drop)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    pub(super) mine: i64,
    /// What the file must say: mine, or what was found as long as mine is not written.
    pub(super) known: i64,
}

impl Fence {
    /// For whoever came by the lock.
    pub(super) fn look(connection: &Connection) -> rusqlite::Result<Fence> {
        let known = tables::epoch(connection)?;
        Ok(Fence { mine: known + 1, known })
    }

    /// For whoever takes over: from now on nobody else writes. None: somebody else has taken over
    /// meanwhile. That is asked inside the transaction, so that of two the later one has it.
    pub(super) fn put_up(
        connection: &Connection,
        is_held: impl FnOnce() -> bool,
    ) -> rusqlite::Result<Option<Fence>> {
        let turn = Turn::begin(connection)?;
        let mine = tables::epoch(connection)? + 2;
        if !is_held() {
            return Ok(None);
        }
        tables::set_epoch(connection, mine)?;
        turn.commit()?;
        Ok(Some(Fence { mine, known: mine }))
    }

    /// Inside a transaction. The error is the number of who has taken over.
    pub(super) fn check(self, connection: &Connection) -> rusqlite::Result<Result<(), i64>> {
        let found = tables::epoch(connection)?;
        Ok(if found == self.known { Ok(()) } else { Err(found) })
    }

    /// Inside a transaction that is to be committed. Returns the fence as it stands after that.
    pub(super) fn claim(self, connection: &Connection) -> rusqlite::Result<Fence> {
        if self.known != self.mine {
            tables::set_epoch(connection, self.mine)?;
        }
        Ok(Fence { known: self.mine, ..self })
    }
}
