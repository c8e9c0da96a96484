//! What is known of every session without reading its entries: its number, how far it must have
//! come at least, and whether it is set aside.

use std::collections::BTreeMap;
use std::io;

use locum_kernel::Seq;
use rusqlite::Connection;

use super::read;
use super::tables::{Named, Trouble};
use crate::Listed;
use crate::chain::{Head, genesis};
use crate::mark::{self, Found, Mark, Marks};

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) named: Named,
    /// At least this far: everything up to here was acknowledged.
    pub(super) least: Head,
    /// Exactly this far, once somebody has looked. Only the writer moves it.
    pub(super) head: Option<Head>,
}

impl Known {
    pub(super) fn new(number: i64, name: &str) -> Known {
        let (name, born) = (name.to_owned(), name.to_owned());
        let least = genesis(number, &name);
        let named = Named { number, name, born, damaged: None };
        Known { named, least, head: Some(least) }
    }

    pub(super) fn genesis(&self) -> Head {
        genesis(self.named.number, &self.named.born)
    }

    pub(super) fn mark(&self, head: Head) -> Mark {
        Mark { origin: mark::origin(&self.genesis().hash), head }
    }

    /// Where the session stands, unless it stands behind what was acknowledged.
    pub(super) fn check(&self, head: Head) -> Result<Head, Trouble> {
        let Head { last: least, .. } = self.least;
        if head.last < least {
            let why = format!("it ends at {}, but had reached {least}", head.last);
            return Err(Trouble::Damage(why));
        }
        if head.last == least && head.hash != self.least.hash {
            return Err(Trouble::Damage(format!("its history up to {least} is another one")));
        }
        Ok(head)
    }
}

#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) sessions: BTreeMap<String, Known>,
    /// Marks of sessions whose own row is lost or cannot be trusted, and with it their name.
    orphans: BTreeMap<i64, Mark>,
    pub(super) highest: i64,
    /// What was found wrong beside the sessions, and put right.
    pub(super) notices: Vec<String>,
    /// Sessions without a mark that can be read, and slots that belong to nobody.
    unmarked: Vec<String>,
    stray: Vec<i64>,
}

impl Catalogue {
    pub(super) fn read(connection: &Connection, marks: &Found) -> Result<Catalogue, Trouble> {
        let mut catalogue = Catalogue { highest: marks.highest, ..Catalogue::default() };
        let mut live = marks.live.clone();
        for row in Named::all(connection)? {
            let number = row.as_ref().map_or_else(|number| *number, |named| named.number);
            catalogue.highest = catalogue.highest.max(number);
            let Ok(named) = row else { continue };
            let known = catalogue.admit(named, live.remove(&number));
            catalogue.sessions.insert(known.named.name.clone(), known);
        }
        // A slot at zero was made for a session whose first entry never was.
        live.retain(|_, mark| mark.head.last > Seq(0));
        catalogue.orphans = live;
        for number in &marks.broken {
            catalogue.notices.push(format!("the mark of session {number} was unreadable"));
            if !catalogue.sessions.values().any(|known| known.named.number == *number) {
                catalogue.stray.push(*number);
            }
        }
        Ok(catalogue)
    }

    fn admit(&mut self, named: Named, mark: Option<Mark>) -> Known {
        let least = genesis(named.number, &named.born);
        let mut known = Known { named, least, head: None };
        match mark {
            Some(mark) if mark.origin == mark::origin(&least.hash) => known.least = mark.head,
            Some(_) | None => {
                self.notices.push(format!("session {} had no mark", known.named.name));
                self.unmarked.push(known.named.name.clone());
            }
        }
        known
    }

    /// The session of this name; the error says why it is set aside.
    pub(super) fn find(&self, session: &str) -> Result<Option<Known>, String> {
        let any = self.any(session);
        let damaged = any.as_ref().and_then(|known| known.named.damaged.clone());
        damaged.map_or(Ok(any), Err)
    }

    /// The session of this name, whole or not.
    pub(super) fn any(&self, session: &str) -> Option<Known> {
        self.sessions.get(session).cloned().or_else(|| {
            let (number, mark) = self.orphan(session)?;
            let mut known = Known::new(number, session);
            known.named.damaged = Some(lost(&mark));
            Some(Known { least: mark.head, head: None, ..known })
        })
    }

    /// A mark does not say a name, but a name says whether a mark is its own.
    fn orphan(&self, session: &str) -> Option<(i64, Mark)> {
        let own = |(number, mark): &(&i64, &Mark)| {
            mark.origin == mark::origin(&genesis(**number, session).hash)
        };
        self.orphans.iter().find(own).map(|(number, mark)| (*number, *mark))
    }

    pub(super) fn forget(&mut self, session: &str) {
        self.sessions.remove(session);
        if let Some((number, _)) = self.orphan(session) {
            self.orphans.remove(&number);
        }
    }

    pub(super) fn list(&self) -> Vec<Listed> {
        let orphan = |(number, mark): (&i64, &Mark)| Listed {
            session: format!("(session {number})"),
            last: mark.head.last,
            damaged: Some(lost(mark)),
        };
        let known = |known: &Known| Listed {
            session: known.named.name.clone(),
            last: known.head.unwrap_or(known.least).last,
            damaged: known.named.damaged.clone(),
        };
        self.sessions.values().map(known).chain(self.orphans.iter().map(orphan)).collect()
    }

    /// Sessions that stand behind their marks, with why. Reads the last row of each.
    pub(super) fn behind(&self, connection: &Connection) -> Result<Vec<(String, String)>, Trouble> {
        let mut behind = Vec::new();
        let whole = self.sessions.values().filter(|known| known.named.damaged.is_none());
        for known in whole {
            match read::head(connection, known) {
                Ok(_) => {}
                Err(Trouble::Damage(why)) => behind.push((known.named.name.clone(), why)),
                Err(Trouble::Sql(error)) => return Err(Trouble::Sql(error)),
            }
        }
        Ok(behind)
    }

    /// Writes marks anew where they could not be read, from rows that can.
    pub(super) fn mend(&mut self, connection: &Connection, marks: &mut Marks) -> io::Result<()> {
        for name in std::mem::take(&mut self.unmarked) {
            let Some(known) = self.sessions.get_mut(&name) else { continue };
            if let Ok(head) = read::head(connection, known) {
                marks.write(known.named.number, known.mark(head))?;
                known.least = head;
            }
        }
        for number in std::mem::take(&mut self.stray) {
            marks.bury(number, Mark { origin: [0; 8], head: genesis(number, "") })?;
        }
        Ok(())
    }

    /// Marks turn out to belong to nobody who is missed.
    pub(super) fn keep_orphans(&mut self, lives: impl Fn(i64) -> bool) {
        self.orphans.retain(|number, _| lives(*number));
    }

    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }
}

fn lost(mark: &Mark) -> String {
    format!("its name is lost from the journal; it had reached {}", mark.head.last)
}
