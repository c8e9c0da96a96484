//! What can still be read of a damaged session: every entry before the damage, each proved as in
//! a whole one, and what is missing after them. For looking and for taking the past elsewhere;
//! nobody goes on with such a session itself.

use locum_kernel::{Entry, Seq};

use super::read::{self, Sound as Rows};
use super::{Onlooker, parse};
use crate::{Error, Listed, Records, Snapshot};

/// What cannot be read of a session, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The last event that can be read; zero if none can.
    pub last: Seq,
    /// How many entries lie after it, as far as that can be said.
    pub entries: Option<u64>,
    /// How far it had come, as far as anybody knows.
    pub reached: Seq,
    pub why: String,
}

/// The same records, where a damaged session ends before its damage.
#[derive(Debug)]
pub struct Sound<'a>(&'a Onlooker);

impl Onlooker {
    #[must_use]
    pub fn sound(&self) -> Sound<'_> {
        Sound(self)
    }

    /// What is lost of a session; none if it is whole, or not there. Reads all of it.
    pub fn loss(&self, session: &str) -> Result<Option<Loss>, Error> {
        let found = self.glance(|connection, catalogue| {
            let Some(known) = catalogue.any(session) else { return Ok(None) };
            let rows = read::sound(connection, &known, Seq(0));
            let Rows { rows, last, flaw } = rows.map_err(|trouble| self.broken(trouble))?;
            let cut = rows.iter().find_map(|(seq, json)| {
                let unread = parse(&self.path, session, *seq, json).err()?;
                Some((Seq(seq.0.saturating_sub(1)), unread))
            });
            let (last, flaw) = match cut {
                Some((last, Error::Damaged { why, .. })) => (last, Some(why)),
                Some((_, error)) => return Err(error),
                None => (last, flaw),
            };
            // What was noted when it was found counts, even if it is not found again.
            let Some(why) = flaw.or(known.named.damaged.clone()) else { return Ok(None) };
            let entries = read::count_after(connection, &known, last);
            let reached = known.least.last.max(last);
            Ok(Some(Loss { last, entries, reached, why }))
        });
        let loss = found?.flatten();
        if loss.is_some() {
            self.forget();
        }
        Ok(loss)
    }
}

impl Records for Sound<'_> {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let Sound(records) = self;
        let mut is_damaged = false;
        let rows = records.glance(|connection, catalogue| {
            let Some(known) = catalogue.any(session) else { return Ok(Vec::new()) };
            let rows = read::sound(connection, &known, after);
            rows.map_err(|trouble| records.broken(trouble)).map(|sound| {
                is_damaged = sound.flaw.is_some();
                sound.rows
            })
        })?;
        if is_damaged {
            records.forget();
        }
        let mut entries = Vec::new();
        for (seq, json) in rows.unwrap_or_default() {
            match parse(&records.path, session, seq, &json) {
                Ok(entry) => entries.push(entry),
                Err(Error::Damaged { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    /// None of a damaged one: it may stand after the damage, and what is shown must be all of it
    /// that can be read from the beginning.
    fn newest_snapshot(&self, _: &str) -> Result<Option<Snapshot>, Error> {
        Ok(None)
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        let Sound(records) = self;
        records.sessions()
    }
}
