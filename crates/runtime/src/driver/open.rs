//! How a session is opened: its newest snapshot, then every entry after it. Also what
//! can be done with a session nobody drives: look at it, hear its lines again, take one input.

use locum_journal::{Journal, Records};
use locum_kernel::{Entry, Input, Refusal, Seq, Session, Time, VERSION, fold, step};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{Driver, Error, Handle, POSTS_MAX, World};
use crate::events::Teller;
use crate::inflight::Inflight;
use crate::line::Line;
use crate::live::Feed;
use crate::subjects;

/// The version of what a snapshot holds. Changes whenever the session's or the teller's fields
/// do; a snapshot of another version is not read, and everything is folded instead.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "+3");

/// Folding this many entries takes longer than reading a snapshot.
const SNAPSHOT_EVERY: u32 = 1_000;

#[derive(Deserialize)]
struct Kept {
    format: String,
    session: Session,
    teller: Teller,
}

#[derive(Serialize)]
struct Keep<'s> {
    format: &'static str,
    session: &'s Session,
    teller: &'s Teller,
}

impl Driver {
    /// Opens a session as its journal left it, or a new one.
    pub fn open(key: &str, world: World) -> Result<Driver, Error> {
        let (session, teller, entries) = unfold(world.journal.as_ref(), key)?;
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        let (sync, syncs) = mpsc::unbounded_channel();
        let mut driver = Driver {
            world,
            key: key.to_owned(),
            came: Seq(session.seq().0 + 1),
            safe: session.seq(),
            session,
            library: None,
            teller,
            ended: Vec::new(),
            inflight: Inflight::default(),
            feed: Feed::default(),
            unsafe_yet: std::collections::VecDeque::new(),
            posts,
            handle: Handle(sender),
            syncs,
            sync,
            revived: tokio::task::JoinSet::new(),
            entries,
            keeper: None,
        };
        driver.keep_snapshot();
        Ok(driver)
    }

    /// Called only when everything is safe. A snapshot that cannot be written is one that is not
    /// there: the next who opens folds a little longer.
    pub(super) fn keep_snapshot(&mut self) {
        if self.entries < SNAPSHOT_EVERY {
            return;
        }
        let keep = Keep { format: FORMAT, session: &self.session, teller: &self.teller };
        let Ok(bytes) = serde_json::to_vec(&keep) else { return };
        if self.world.journal.snapshot(&self.key, self.session.seq(), &bytes).is_ok() {
            self.entries = 0;
        }
    }
}

/// The session, who tells of it, and how many entries were folded.
fn unfold(records: &dyn Records, key: &str) -> Result<(Session, Teller, u32), Error> {
    let kept = records.newest_snapshot(key)?;
    let kept = kept.and_then(|kept| serde_json::from_slice::<Kept>(&kept.bytes).ok());
    let (mut session, mut teller) = match kept.filter(|kept| kept.format == FORMAT) {
        Some(kept) => (kept.session, kept.teller),
        None => (Session::new(), Teller::default()),
    };
    let mut entries = 0;
    for entry in records.tail(key, session.seq())? {
        told(&mut session, &mut teller, key, &entry)?;
        entries += 1;
    }
    Ok((session, teller, entries))
}

fn told(
    session: &mut Session,
    teller: &mut Teller,
    key: &str,
    entry: &Entry,
) -> Result<Vec<Line>, Error> {
    fold(session, entry).map_err(|why| Error::Unfoldable { session: key.to_owned(), why })?;
    Ok(teller.tell(session, entry))
}

/// Folds a session from its beginning, and shows each entry with the session after it and the
/// lines it told.
pub fn retell(
    records: &dyn Records,
    key: &str,
    mut show: impl FnMut(&Session, &Entry, Vec<Line>) -> bool,
) -> Result<Session, Error> {
    let (mut session, mut teller) = (Session::new(), Teller::default());
    for entry in records.load(key)? {
        let lines = told(&mut session, &mut teller, key, &entry)?;
        if !show(&session, &entry, lines) {
            break;
        }
    }
    Ok(session)
}

/// The session as it is now. An unknown one is as before its first event.
pub fn look(records: &dyn Records, key: &str) -> Result<Session, Error> {
    unfold(records, key).map(|(session, ..)| session)
}

/// The event with which this was taken already, if that is all that is wrong with it.
#[must_use]
pub fn taken_before(why: &Refusal) -> Option<Seq> {
    if let Refusal::Duplicate { input } = why { Some(Seq(input.0)) } else { None }
}

/// Takes one input in a session nobody drives. It is safe when this returns; what it makes owed
/// is begun by whoever drives the session next, which is why the session is told first that
/// nobody is there.
pub fn take_alone(journal: &dyn Journal, key: &str, at: Time, input: Input) -> Result<Seq, Error> {
    let (mut session, ..) = unfold(journal, key)?;
    let refused = |why| Error::Refused { session: key.to_owned(), why };
    let begun = session.seq();
    let left = (begun > Seq(0)).then_some(Input::Left);
    let mut entries = Vec::new();
    for mut input in left.into_iter().chain([input]) {
        let before = session.seq();
        subjects::fill(&session, &mut input);
        let events = step(&mut session, at, input).map_err(refused)?;
        entries.push((before, Entry { v: VERSION, seq: Seq(before.0 + 1), at, events }));
    }
    // What was refused, or has changed nothing, is not worth a word in the journal.
    if entries.last().is_none_or(|(_, entry)| entry.events.is_empty()) {
        return Ok(begun);
    }
    let mut taken = begun;
    for (before, entry) in entries.into_iter().filter(|(_, entry)| !entry.events.is_empty()) {
        taken = entry.seq;
        journal.append(key, before, &entry)?;
    }
    Ok(taken)
}
