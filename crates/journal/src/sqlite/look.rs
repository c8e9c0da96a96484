//! Looking at a journal that somebody else may be writing, or nobody: without the lock, without
//! changing a byte of what is kept, and with every check the writer makes.
//!
//! Each look is one transaction, so it sees the journal as of one moment. What keeps it from
//! seeing damage where there is only haste is the order of reading:
//! - the marks come first, then the database. A mark is never ahead of the database of its own
//!   moment, so it is not ahead of that of a later one;
//! - a session that has a mark and no row may have been deleted between the two. Its mark is
//!   buried before its row goes, so the marks are read once more: only who still lives in them
//!   is missing.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locum_kernel::{Entry, Seq, Time};
use rusqlite::Connection;

use super::catalogue::{Catalogue, Known};
use super::keep::beside;
use super::tables::{self, Access, Trouble, VERSION};
use super::{Sqlite, parse, read};
use crate::mark::{self, Found};
use crate::{Error, Listed, Records, Snapshot};

/// A reader of a journal. Holds no lock between two looks.
pub struct Onlooker {
    pub(super) path: PathBuf,
    open: Mutex<Option<Open>>,
}

struct Open {
    connection: Connection,
    access: Access,
    /// The sessions, and which state of the database they were read from.
    seen: Option<(i64, Catalogue)>,
}

impl Sqlite {
    /// Opens the file to read, whoever has it open. If it is not there, there are no sessions,
    /// and it is not made; should it come to be, the next look sees it.
    pub fn look(path: &Path) -> Result<Onlooker, Error> {
        let onlooker = Onlooker { path: path.to_owned(), open: Mutex::new(None) };
        onlooker.glance(|_, _| Ok(()))?;
        Ok(onlooker)
    }
}

impl Onlooker {
    /// When each session was last written to, by name; damaged ones, too. One whose end cannot be
    /// read at all may be the newest, and so counts as that.
    pub fn written(&self) -> Result<Vec<(String, Time)>, Error> {
        let written = self.glance(|connection, catalogue| {
            let mut written = Vec::new();
            for one in catalogue.list() {
                let Some(known) = catalogue.any(&one.session) else { continue };
                match read::written(connection, &known) {
                    Ok(Some(at)) => written.push((one.session, at)),
                    Ok(None) if known.least.last == Seq(0) => {}
                    Ok(None) | Err(Trouble::Damage(_)) => {
                        written.push((one.session, Time(u64::MAX)));
                    }
                    Err(Trouble::Sql(error)) => return Err(self.broken(Trouble::Sql(error))),
                }
            }
            Ok(written)
        });
        Ok(written?.unwrap_or_default())
    }

    /// One look at everything; none if there is nothing yet.
    pub(super) fn glance<T>(
        &self,
        read: impl FnOnce(&Connection, &Catalogue) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        // A look that panicked changed nothing but what is read again anyway.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.glance_at(&mut open, read);
        if open.as_ref().is_some_and(|open| open.access == Access::Still) {
            *open = None;
        }
        result
    }

    /// After damage: the database looks at a page once, when it comes from the file, and whoever
    /// asks for it again would be given what was refused before.
    pub(super) fn forget(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn glance_at<T>(
        &self,
        open: &mut Option<Open>,
        read: impl FnOnce(&Connection, &Catalogue) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let marks = self.marks()?;
        let acknowledged = marks.live.values().filter(|mark| mark.head.last > Seq(0)).count();
        if open.is_none() && length(&self.path) == 0 {
            return match acknowledged {
                0 => Ok(None),
                sessions => Err(Error::Lost { path: self.path.clone(), sessions }),
            };
        }
        let Open { connection, seen, .. } = match open {
            Some(open) => open,
            none => none.insert(self.connect().map_err(|error| self.broken(error.into()))?),
        };
        let broken = |error: rusqlite::Error| self.broken(error.into());
        let moment = connection.unchecked_transaction().map_err(broken)?;
        let sql = "PRAGMA data_version";
        let state: i64 = moment.query_row(sql, [], |row| row.get(0)).map_err(broken)?;
        let catalogue = match seen {
            Some((of, catalogue)) if *of == state => catalogue,
            older => {
                if !self.is_made(&moment, acknowledged)? {
                    return Ok(None);
                }
                let catalogue = Catalogue::read(&moment, &marks);
                let mut catalogue = catalogue.map_err(|trouble| self.broken(trouble))?;
                let again = self.marks()?;
                catalogue.keep_orphans(|number| again.live.contains_key(&number));
                &mut older.insert((state, catalogue)).1
            }
        };
        read(&moment, catalogue).map(Some)
    }

    fn connect(&self) -> rusqlite::Result<Open> {
        let open = |access| {
            let connection = tables::connect(&self.path, access)?;
            // The first read is when the log is needed.
            connection.query_row("PRAGMA user_version", [], |_| Ok(()))?;
            Ok(Open { connection, access, seen: None })
        };
        match open(Access::Look) {
            Err(error)
                // Where the index of a log cannot be made, nobody has one.
                if (tables::is_forbidden(&error) || tables::is_full(&error))
                    && length(&beside(&self.path, "-wal")) == 0 =>
            {
                open(Access::Still)
            }
            opened => opened,
        }
    }

    /// Whether its tables are there. Somebody may have died, or be, just before making them.
    fn is_made(&self, connection: &Connection, acknowledged: usize) -> Result<bool, Error> {
        match tables::version(connection).map_err(|trouble| self.broken(trouble))? {
            Some(VERSION) => Ok(true),
            Some(found) => Err(Error::Version { path: self.path.clone(), found, known: VERSION }),
            None if acknowledged == 0 => Ok(false),
            None => Err(self.broken(Trouble::Damage("its tables are gone".into()))),
        }
    }

    fn marks(&self) -> Result<Found, Error> {
        let path = beside(&self.path, "-mark");
        mark::look(&path).map_err(|source| Error::File { path, source })
    }

    /// The same as for a writer, but no copy is made: whoever looks changes nothing.
    pub(super) fn broken(&self, trouble: Trouble) -> Error {
        let path = self.path.clone();
        match trouble {
            Trouble::Sql(error) if tables::is_full(&error) => Error::NoRoom { path },
            Trouble::Sql(error) => Error::Open { path, source: Arc::new(error) },
            Trouble::Damage(why) => Error::Broken { path, why },
        }
    }

    /// Something read from a session that is there and whole; none if it is not there.
    fn of<T>(
        &self,
        session: &str,
        read: impl FnOnce(&Connection, &Known) -> Result<T, Trouble>,
    ) -> Result<Option<T>, Error> {
        let found = self.glance(|connection, catalogue| {
            let failed = |trouble| {
                let (path, session) = (self.path.clone(), session.to_owned());
                match trouble {
                    Trouble::Sql(error) => Error::Read { path, session, source: Arc::new(error) },
                    Trouble::Damage(why) => Error::Damaged { path, session, why },
                }
            };
            let known = catalogue.find(session).map_err(|why| failed(Trouble::Damage(why)))?;
            known.map(|known| read(connection, &known)).transpose().map_err(failed)
        });
        if found.is_err() {
            self.forget();
        }
        Ok(found?.flatten())
    }
}

impl Records for Onlooker {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let rows = self.of(session, |connection, known| read::tail(connection, known, after))?;
        let rows = rows.unwrap_or_default().into_iter();
        rows.map(|(seq, json)| parse(&self.path, session, seq, &json)).collect()
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        let newest = |connection: &Connection, known: &Known| {
            read::newest_snapshot(connection, known).map_err(Trouble::Sql)
        };
        Ok(self.of(session, newest)?.flatten())
    }

    /// The end of each is looked at: nobody else has, and a writer's word is not at hand.
    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        let listed = self.glance(|connection, catalogue| {
            let mut listed = catalogue.list();
            for one in listed.iter_mut().filter(|one| one.damaged.is_none()) {
                let Ok(Some(known)) = catalogue.find(&one.session) else { continue };
                match read::head(connection, &known) {
                    Ok(head) => one.last = head.last,
                    Err(Trouble::Damage(why)) => one.damaged = Some(why),
                    Err(Trouble::Sql(error)) => return Err(self.broken(Trouble::Sql(error))),
                }
            }
            Ok(listed)
        });
        let listed = listed?.unwrap_or_default();
        if listed.iter().any(|one| one.damaged.is_some()) {
            self.forget();
        }
        Ok(listed)
    }
}

impl fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Onlooker({})", self.path.display())
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}
