//! How a session is opened: its newest snapshot, then every entry after it. Also what
//! can be done with a session nobody drives: look at it, hear its lines again, take one input.

use std::sync::Arc;

use locum_journal::{Journal, Records};
use locum_kernel::{Entry, Input, Message, Refusal, Seq, Session, Time, To, VERSION, fold, step};
use tokio::sync::mpsc;

use super::snapshot::{self, Snapshots};
use super::{Driver, Error, Handle, POSTS_MAX, World};
use crate::events::Teller;
use crate::inflight::Inflight;
use crate::library;
use crate::line::Line;
use crate::live::Feed;
use crate::subjects;

impl Driver {
    /// Opens a session as its journal left it, or a new one.
    pub fn open(key: &str, world: World) -> Result<Driver, Error> {
        let Unfolded { session, teller, entries, newest } = unfold(world.journal.as_ref(), key)?;
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        let (sync, syncs) = mpsc::unbounded_channel();
        let feed = Feed::new(Arc::clone(&world.clock));
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
            feed,
            unsafe_yet: std::collections::VecDeque::new(),
            posts,
            handle: Handle(sender),
            syncs,
            sync,
            revived: tokio::task::JoinSet::new(),
            snapshots: Snapshots::after(newest, entries),
            keeper: None,
        };
        driver.keep_snapshot();
        Ok(driver)
    }
}

/// A session as its journal has it.
pub(super) struct Unfolded {
    pub(super) session: Session,
    /// Who tells of it.
    pub(super) teller: Teller,
    /// Entries that were folded, and where the snapshot ended that they came after.
    pub(super) entries: u32,
    pub(super) newest: Seq,
}

fn unfold(records: &dyn Records, key: &str) -> Result<Unfolded, Error> {
    unfold_while(records, key, || true).map(|(unfolded, _)| unfolded)
}

/// The same, for as long as it is wanted; and whether it was to the end.
pub(super) fn unfold_while(
    records: &dyn Records,
    key: &str,
    wanted: impl Fn() -> bool,
) -> Result<(Unfolded, bool), Error> {
    let kept = snapshot::newest(records, key)?;
    let (mut session, mut teller) = kept.unwrap_or_default();
    let newest = session.seq();
    let mut entries = 0;
    for entry in records.tail(key, newest)? {
        if !wanted() {
            return Ok((Unfolded { session, teller, entries, newest }, false));
        }
        told(&mut session, &mut teller, key, &entry)?;
        entries += 1;
    }
    Ok((Unfolded { session, teller, entries, newest }, true))
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
    unfold(records, key).map(|unfolded| unfolded.session)
}

/// The event with which this was taken already, if that is all that is wrong with it.
#[must_use]
pub fn taken_before(why: &Refusal) -> Option<Seq> {
    if let Refusal::Duplicate { input } = why { Some(Seq(input.0)) } else { None }
}

/// No definitions are at hand here. Whoever says in `to` that there is one has looked, and it is
/// looked for again when the session is driven; a name that only the text begins with must be one
/// the session knows.
fn named_alone(session: &Session, at: Time, input: Input) -> Result<Input, Refusal> {
    let vouched = |message: &Message| matches!(message.to, To::Name(_));
    if matches!(&input, Input::Said(message) if vouched(message)) {
        return Ok(input);
    }
    library::addressed(None, session, at, input)
}

/// Takes one input in a session nobody drives. It is safe when this returns; what it makes owed
/// is begun by whoever drives the session next, which is why the session is told first that
/// nobody is there.
pub fn take_alone(journal: &dyn Journal, key: &str, at: Time, input: Input) -> Result<Seq, Error> {
    let mut session = unfold(journal, key)?.session;
    let refused = |why| Error::Refused { session: key.to_owned(), why };
    let begun = session.seq();
    let left = (begun > Seq(0)).then_some(Input::Left);
    let mut entries = Vec::new();
    for mut input in left.into_iter().chain([input]) {
        let before = session.seq();
        subjects::fill(&session, &mut input);
        let input = named_alone(&session, at, input).map_err(refused)?;
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
