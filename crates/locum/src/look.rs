//! Commands that look at sessions. They take no lock: they work beside a locum that runs, and
//! when none does. (`sessions rm` and `fork` write, and take it.)
//!
//! In reading order: what all of them share (here), what to do next (`next`), then a file for each
//! command.

mod agents;
mod asks;
mod context;
mod cost;
mod export;
mod fork;
mod list;
mod logs;
mod man;
pub(crate) mod next;
mod queue;
mod replay;
mod search;
pub(crate) mod sessions;
mod show;
mod timeline;
mod transcript;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use locum_journal::{Error as Failed, Onlooker, Records, Sqlite};
use locum_kernel::{Entry, Event, Row, Seq, Session, State, View, fold, view};
use locum_runtime::clock::{Clock as _, System, rfc3339};
use locum_runtime::driver;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::damage;
use crate::extract;
use crate::flags::Look;
use crate::text;
use crate::{address, data, print, reach};

pub(crate) fn obey(look: &Look, data: Option<&Path>) -> Result<u8, Complaint> {
    match look {
        Look::Sessions(flags) => sessions::run(flags, data)?,
        Look::Agents(flags) => agents::run(flags, &Sight::open(data)?)?,
        Look::Show(flags) => show::run(flags, &Sight::open(data)?)?,
        Look::Logs(flags) => logs::run(flags, &Sight::open(data)?)?,
        Look::Asks(flags) => asks::run(flags, &Sight::open(data)?)?,
        Look::Queue(flags) => queue::list(flags, &Sight::open(data)?)?,
        Look::Replay(flags) => replay::run(flags, &Sight::open(data)?)?,
        Look::Fork(flags) => fork::run(flags, data)?,
        Look::Search(flags) => search::run(flags, &Sight::open(data)?)?,
        Look::Cost(flags) => cost::run(flags, &Sight::open(data)?)?,
        Look::Timeline(flags) => timeline::run(flags, &Sight::open(data)?)?,
        Look::Completions(flags) => man::completions(flags),
        Look::Man(flags) => man::pages(flags)?,
    }
    Ok(0)
}

/// All sessions, as far as they can be read.
pub(crate) struct Sight {
    records: Onlooker,
    folder: PathBuf,
    /// Damaged sessions of which it was told what is missing.
    cut: RefCell<BTreeSet<String>>,
}

/// Whether somebody drives a session on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Somebody does, or there is nothing to drive.
    No,
    /// There is work, and nobody does it.
    Cut,
}

impl Rest {
    /// What has to be known beside what agents seem to do.
    fn told(self, key: &str, session: &Session) -> Option<String> {
        match self {
            Rest::No => None,
            Rest::Cut => Some(format!(
                "no locum is at work here: this is how it was left at {} UTC\n\
                 do: {}",
                text::moment(session.now()),
                next::resume(key),
            )),
        }
    }
}

/// A session that can be looked at, or why it cannot.
pub(crate) struct Seen {
    pub(crate) key: String,
    last: Seq,
    pub(crate) session: Result<Session, String>,
}

impl Sight {
    pub(crate) fn open(data: Option<&Path>) -> Result<Sight, Complaint> {
        let folder = data::place(data)?;
        let records = Sqlite::look(&data::journal_file(&folder));
        let records = records.map_err(|error| Complaint::journal(&error))?;
        Ok(Sight { records, folder, cut: RefCell::default() })
    }

    /// A session as it is now or, if nobody is at work in the data folder, as it was left: a tool
    /// that was cut off does not run longer and longer.
    fn view(&self, session: &Session) -> (View, Rest) {
        let unfinished = session.agents().iter().any(|agent| !agent.has_ended());
        if unfinished && !reach::is_anybody_there(&self.folder) {
            let view = view(session, session.now());
            let cut = view.agents.iter().any(|row| is_under_way(row.state));
            return (view, if cut { Rest::Cut } else { Rest::No });
        }
        (view(session, System.now()), Rest::No)
    }

    /// Every session, the one written to last first; damaged ones at the end.
    pub(crate) fn all(&self) -> Result<Vec<Seen>, Complaint> {
        let listed = self.records.sessions().map_err(|error| Complaint::journal(&error))?;
        let mut all = Vec::new();
        for one in listed {
            let session = match one.damaged {
                Some(why) => Err(why),
                None => damage_apart(driver::look(&self.records, &one.session))?,
            };
            all.push(Seen { key: one.session, last: one.last, session });
        }
        all.sort_by_key(|seen| std::cmp::Reverse(seen.session.as_ref().ok().map(Session::now)));
        Ok(all)
    }

    /// The keys of sessions: one, if it is named, or all, the newest first.
    fn keys(&self, named: Option<&str>) -> Result<Vec<String>, Complaint> {
        if let Some(key) = named {
            self.session(key)?;
            return Ok(vec![key.to_owned()]);
        }
        Ok(self.all()?.into_iter().map(|seen| seen.key).collect())
    }

    /// Where everything is kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The session of this name, or the one written to last.
    pub(crate) fn find(&self, named: Option<&str>) -> Result<(String, Session), Complaint> {
        let key = named.map_or_else(|| self.newest(), |key| Ok(key.to_owned()))?;
        let session = self.session(&key)?;
        Ok((key, session))
    }

    /// The one written to last, whole or not: nobody is led to another without a word. What was
    /// set aside is meant only if there is nothing else.
    pub(crate) fn newest(&self) -> Result<String, Complaint> {
        let mut written = self.records.written().map_err(|error| Complaint::journal(&error))?;
        written.retain(|(key, _)| !extract::is_extract(key));
        written.sort_by_key(|(key, at)| (sessions::is_aside(key), std::cmp::Reverse(*at)));
        let newest = written.into_iter().next().map(|(key, _)| key);
        newest.ok_or_else(Complaint::no_session_yet)
    }

    fn session(&self, key: &str) -> Result<Session, Complaint> {
        let session = self.as_far(key, |records| driver::look(records, key))?;
        if session.seq() > Seq(0) {
            return Ok(session);
        }
        Err(self.unknown(key)?)
    }

    /// What is made of a session's entries; of a damaged one's, of those before the damage, and
    /// then it is told, once, what is missing.
    fn as_far<T>(
        &self,
        key: &str,
        read: impl Fn(&dyn Records) -> Result<T, driver::Error>,
    ) -> Result<T, Complaint> {
        let failed = |error| Complaint::driver(&error);
        let error = match read(&self.records) {
            Err(error @ driver::Error::Journal(Failed::Damaged { .. })) => error,
            other => return other.map_err(failed),
        };
        let loss = self.records.loss(key).map_err(|error| Complaint::journal(&error))?;
        let Some(loss) = loss.filter(|loss| loss.last > Seq(0)) else { return Err(failed(error)) };
        if self.cut.borrow_mut().insert(key.to_owned()) {
            print::note(&damage::told(key, &loss));
        }
        read(&self.records.sound()).map_err(failed)
    }

    /// It was found damaged: nothing more will come of it.
    fn is_cut(&self, key: &str) -> bool {
        self.cut.borrow().contains(key)
    }

    fn unknown(&self, key: &str) -> Result<Complaint, Complaint> {
        let listed = self.records.sessions().map_err(|error| Complaint::journal(&error))?;
        let own = listed.iter().find(|one| one.session == key);
        if let Some(why) = own.and_then(|one| one.damaged.clone()) {
            let (path, session) = (data::journal_file(&self.folder), key.to_owned());
            return Ok(Complaint::journal(&Failed::Damaged { path, session, why }));
        }
        let names: Vec<String> = listed.into_iter().map(|one| one.session).collect();
        Ok(address::no_session(key, &names))
    }

    /// How an ask was answered that is open no more, in the session named or the newest that had
    /// it.
    pub(crate) fn answered(&self, named: Option<&str>, ask: &str) -> Option<Complaint> {
        let keys = self.keys(named).ok()?;
        keys.iter().find_map(|key| {
            let mut told = None;
            let seen = self.walk(key, |_, entry| {
                told = told.take().or_else(|| address::answered(key, ask, entry));
            });
            seen.ok().and(told)
        })
    }

    /// Folds a session from its beginning, and shows each entry with the session after it.
    fn walk(
        &self,
        key: &str,
        mut show: impl FnMut(&Session, &Entry),
    ) -> Result<Session, Complaint> {
        let entries = self.as_far(key, |records| Ok(records.load(key)?))?;
        let mut session = Session::new();
        for entry in &entries {
            fold(&mut session, entry).map_err(|why| {
                Complaint::driver(&driver::Error::Unfoldable { session: key.to_owned(), why })
            })?;
            show(&session, entry);
        }
        match session.seq() {
            Seq(0) => Err(self.unknown(key)?),
            _ => Ok(session),
        }
    }
}

/// Somebody has to be there for it to go on.
fn is_under_way(state: State) -> bool {
    match state {
        State::Queued | State::Starting | State::Model | State::Tool => true,
        State::Child
        | State::Approve
        | State::Input
        | State::Paused
        | State::Done
        | State::Failed
        | State::Cancelled => false,
    }
}

/// A session that is damaged, or newer than this program, is no reason not to show the others.
fn damage_apart<T>(result: Result<T, driver::Error>) -> Result<Result<T, String>, Complaint> {
    match result {
        Ok(it) => Ok(Ok(it)),
        Err(driver::Error::Journal(Failed::Damaged { why, .. })) => Ok(Err(why)),
        Err(driver::Error::Journal(Failed::Unreadable { source, .. })) => {
            Ok(Err(source.to_string()))
        }
        Err(driver::Error::Unfoldable { why, .. }) => Ok(Err(why.to_string())),
        Err(error) => Err(Complaint::driver(&error)),
    }
}

/// The events of an entry with their numbers.
fn numbered(entry: &Entry) -> impl Iterator<Item = (Seq, &Event)> {
    (entry.seq.0..).map(Seq).zip(&entry.events)
}

fn show_json(value: &Value) {
    print::line(&text::json(value));
}

/// An agent as JSON tells of it everywhere.
fn agent_json(session: &str, row: &Row) -> Value {
    json!({
        "session": session,
        "id": row.id.to_string(),
        "path": row.path,
        "label": row.label,
        "parent": row.parent.map(|id| id.to_string()),
        "definition": row.definition,
        "mode": row.mode,
        "depth": row.depth,
        "state": row.state,
        "attention": {
            "required": row.attention.required,
            "kind": row.attention.kind,
            "since": rfc3339(row.attention.since),
            "sentence": row.attention.sentence,
            "action": row.attention.action,
        },
        "next": next::of_agent(session, row),
        "lease": row.lease,
        "position": row.position,
        "latest": row.latest,
        "turns": row.turns,
        "calls": row.calls,
        "own_usd": text::usd(row.own_micro_usd, !row.unpriced),
        "tree_usd": text::usd(row.tree_micro_usd, !row.tree_unpriced),
        "active_ms": row.active_ms,
        "result": row.result,
    })
}
