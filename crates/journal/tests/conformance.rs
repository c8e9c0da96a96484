//! What every store must do, as one table that is run over each of them.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;

use locum_journal::{Error, Journal, Listed, Memory, Snapshot, Sqlite, When};
use locum_kernel::{Entry, Event, Seq, Time, VERSION};

/// Opens a store, and opens it again: a file is closed between, memory just stays.
type Opener = fn(&Path, Option<Box<dyn Journal>>) -> Box<dyn Journal>;

const STORES: &[(&str, Opener)] = &[("memory", memory), ("sqlite", sqlite)];

type Case = (&'static str, fn(&mut Store));

const CASES: &[Case] = &[
    ("an unknown session is empty", unknown_is_empty),
    ("what was appended is loaded, in order", loads_what_was_appended),
    ("sessions do not see each other", sessions_are_apart),
    ("a stale writer is refused and changes nothing", stale_writer_is_refused),
    ("an entry that does not follow is refused", misplaced_is_refused),
    ("entries are there after opening again", survives_reopening),
    ("text comes back to the byte", text_is_exact),
    ("a tail begins after what is known", tail_begins_after),
    ("the newest snapshot comes back, and the tail goes on from it", snapshot_and_tail),
    ("a snapshot of what is not there is refused", snapshot_must_end_an_entry),
    ("sessions are listed by name", sessions_are_listed),
    ("what was deleted is gone, and its name is free", deleted_is_gone),
    ("submitted in order is written in order", submitted_in_order),
    ("a failed entry takes those behind it along", failed_takes_followers_along),
    ("the caller is told once, by ticket or by call", told_once),
    ("many threads, each its own session and its own answers", many_threads),
    ("one session, many threads: one wins each place", racing_for_one_session),
];

struct Store {
    journal: Option<Box<dyn Journal>>,
    path: PathBuf,
    open: Opener,
}

impl Store {
    fn journal(&self) -> &dyn Journal {
        self.journal.as_deref().unwrap()
    }

    fn append(&mut self, session: &str, expected: u64, entry: &Entry) -> Result<(), Error> {
        self.journal().append(session, Seq(expected), entry)
    }

    fn load(&self, session: &str) -> Vec<Entry> {
        self.journal().load(session).unwrap()
    }

    fn reopen(&mut self) {
        let old = self.journal.take();
        self.journal = Some((self.open)(&self.path, old));
    }
}

#[test]
fn every_store_keeps_the_promise() {
    for (store, open) in STORES {
        for (number, (case, check)) in CASES.iter().enumerate() {
            eprintln!("{store}: {case}");
            let name = format!("locum-journal-{}-{store}-{number}.db", std::process::id());
            let path = std::env::temp_dir().join(name);
            let mut store = Store { journal: None, path: path.clone(), open: *open };
            store.reopen();
            check(&mut store);
            drop(store);
            for suffix in ["", "-wal", "-shm", "-lock", "-mark"] {
                let mut file = path.clone().into_os_string();
                file.push(suffix);
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

fn memory(_: &Path, old: Option<Box<dyn Journal>>) -> Box<dyn Journal> {
    old.unwrap_or_else(|| Box::new(Memory::default()))
}

fn sqlite(path: &Path, old: Option<Box<dyn Journal>>) -> Box<dyn Journal> {
    drop(old);
    Box::new(Sqlite::open(path).unwrap())
}

/// An entry of `texts.len()` events that begins at `seq`.
fn entry(seq: u64, texts: &[&str]) -> Entry {
    let events = texts.iter().map(|text| Event::Opened { session: (*text).to_owned() });
    Entry { v: VERSION, seq: Seq(seq), at: Time(7), events: events.collect() }
}

fn unknown_is_empty(store: &mut Store) {
    assert_eq!(store.load("nobody"), []);
}

fn loads_what_was_appended(store: &mut Store) {
    let (first, second) = (entry(1, &["a", "b"]), entry(3, &["c"]));
    store.append("main", 0, &first).unwrap();
    store.append("main", 2, &second).unwrap();
    assert_eq!(store.load("main"), [first, second]);
}

fn sessions_are_apart(store: &mut Store) {
    let (here, there) = (entry(1, &["here", "too"]), entry(1, &["there"]));
    store.append("here", 0, &here).unwrap();
    store.append("there", 0, &there).unwrap();
    assert_eq!(store.load("here"), [here]);
    assert_eq!(store.load("there"), [there]);
}

fn stale_writer_is_refused(store: &mut Store) {
    let first = entry(1, &["a", "b"]);
    store.append("main", 0, &first).unwrap();
    let late = store.append("main", 0, &entry(1, &["late"]));
    let Err(Error::Conflict { expected, found, .. }) = late else { panic!("{late:?}") };
    assert_eq!((expected, found), (Seq(0), Seq(2)));
    let early = store.append("main", 5, &entry(6, &["early"]));
    assert!(matches!(early, Err(Error::Conflict { .. })), "{early:?}");
    assert_eq!(store.load("main"), [first]);
}

fn misplaced_is_refused(store: &mut Store) {
    for wrong in [entry(2, &["a"]), entry(1, &[])] {
        let refused = store.append("main", 0, &wrong);
        assert!(matches!(refused, Err(Error::Misplaced { .. })), "{refused:?}");
    }
    assert_eq!(store.load("main"), []);
}

fn survives_reopening(store: &mut Store) {
    let (first, second) = (entry(1, &["a"]), entry(2, &["b"]));
    store.append("main", 0, &first).unwrap();
    store.reopen();
    let late = store.append("main", 0, &first);
    assert!(matches!(late, Err(Error::Conflict { .. })), "{late:?}");
    store.append("main", 1, &second).unwrap();
    assert_eq!(store.load("main"), [first, second]);
}

fn text_is_exact(store: &mut Store) {
    let odd = entry(1, &["", "line\nline\r\n", "nul \0 and \u{10FFFF}", "'; DROP TABLE entry; --"]);
    store.append("o'brien/ü", 0, &odd).unwrap();
    store.reopen();
    assert_eq!(store.load("o'brien/ü"), [odd]);
}

fn tail_begins_after(store: &mut Store) {
    let (first, second, third) = (entry(1, &["a", "b"]), entry(3, &["c"]), entry(4, &["d"]));
    for (expected, entry) in [(0, &first), (2, &second), (3, &third)] {
        store.append("main", expected, entry).unwrap();
    }
    let tail = |after| store.journal().tail("main", Seq(after)).unwrap();
    assert_eq!(tail(0), [first, second.clone(), third.clone()]);
    // In the middle of an entry: that one began before.
    assert_eq!(tail(1), [second.clone(), third.clone()]);
    assert_eq!(tail(2), [second, third.clone()]);
    assert_eq!(tail(3), [third]);
    assert_eq!(tail(4), []);
    assert_eq!(tail(99), []);
    assert_eq!(store.journal().tail("nobody", Seq(3)).unwrap(), []);
}

fn snapshot_and_tail(store: &mut Store) {
    assert_eq!(store.journal().newest_snapshot("main").unwrap(), None);
    for number in 1..=6 {
        store.append("main", number - 1, &entry(number, &["x"])).unwrap();
        if number % 2 == 0 {
            let bytes = format!("up to {number}").into_bytes();
            store.journal().snapshot("main", Seq(number), &bytes).unwrap();
        }
    }
    store.append("main", 6, &entry(7, &["after"])).unwrap();
    store.reopen();
    // One that is late is kept or not, but never becomes the newest.
    store.journal().snapshot("main", Seq(3), b"late").unwrap();
    let newest = store.journal().newest_snapshot("main").unwrap().unwrap();
    assert_eq!(newest, Snapshot { seq: Seq(6), bytes: b"up to 6".to_vec() });
    assert_eq!(store.journal().tail("main", newest.seq).unwrap(), [entry(7, &["after"])]);
    assert_eq!(store.journal().newest_snapshot("other").unwrap(), None);
}

fn snapshot_must_end_an_entry(store: &mut Store) {
    store.append("main", 0, &entry(1, &["a", "b"])).unwrap();
    for (session, seq) in [("main", 1), ("main", 0), ("main", 3), ("nobody", 1)] {
        let refused = store.journal().snapshot(session, Seq(seq), b"?");
        assert!(matches!(refused, Err(Error::NoSuchEnd { .. })), "{session} {seq}: {refused:?}");
    }
    assert_eq!(store.journal().newest_snapshot("main").unwrap(), None);
}

fn sessions_are_listed(store: &mut Store) {
    assert_eq!(store.journal().sessions().unwrap(), []);
    store.append("b", 0, &entry(1, &["x", "y"])).unwrap();
    store.append("a", 0, &entry(1, &["x"])).unwrap();
    let listed =
        |session: &str, last| Listed { session: session.into(), last: Seq(last), damaged: None };
    assert_eq!(store.journal().sessions().unwrap(), [listed("a", 1), listed("b", 2)]);
    store.reopen();
    assert_eq!(store.journal().sessions().unwrap(), [listed("a", 1), listed("b", 2)]);
}

fn deleted_is_gone(store: &mut Store) {
    store.append("main", 0, &entry(1, &["old"])).unwrap();
    store.append("other", 0, &entry(1, &["stays"])).unwrap();
    store.journal().snapshot("main", Seq(1), b"old").unwrap();
    store.journal().delete("main").unwrap();
    store.journal().delete("nobody").unwrap();
    store.reopen();
    assert_eq!(store.load("main"), []);
    assert_eq!(store.journal().newest_snapshot("main").unwrap(), None);
    assert_eq!(store.journal().sessions().unwrap().len(), 1);
    store.append("main", 0, &entry(1, &["new"])).unwrap();
    store.reopen();
    assert_eq!(store.load("main"), [entry(1, &["new"])]);
    assert_eq!(store.load("other"), [entry(1, &["stays"])]);
}

fn submitted_in_order(store: &mut Store) {
    let journal = store.journal();
    let submit = |number: u64| journal.submit("main", Seq(number - 1), &entry(number, &["x"]));
    let tickets: Vec<_> = (1..=100).map(submit).collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(store.load("main").len(), 100);
}

fn failed_takes_followers_along(store: &mut Store) {
    let journal = store.journal();
    let good = journal.submit("main", Seq(0), &entry(1, &["a"]));
    let bad = journal.submit("main", Seq(7), &entry(8, &["b"]));
    let follower = journal.submit("main", Seq(8), &entry(9, &["c"]));
    let elsewhere = journal.submit("other", Seq(0), &entry(1, &["d"]));
    good.wait().unwrap();
    assert!(matches!(bad.wait(), Err(Error::Conflict { .. })));
    assert!(matches!(follower.wait(), Err(Error::Conflict { .. })));
    elsewhere.wait().unwrap();
    assert_eq!(store.load("main"), [entry(1, &["a"])]);
    assert_eq!(store.load("other"), [entry(1, &["d"])]);
}

fn told_once(store: &mut Store) {
    let (sender, told) = channel();
    let done = Box::new(move |result: Result<(), Error>| sender.send(result.is_ok()).unwrap());
    store.journal().submit_then("main", Seq(0), &entry(1, &["a"]), When::Now, done);
    // The sender is gone with the call, so this ends.
    assert_eq!(told.iter().collect::<Vec<_>>(), [true]);
    let mut ticket = store.journal().submit("main", Seq(1), &entry(2, &["b"]));
    let result = loop {
        match ticket.poll() {
            Ok(result) => break result,
            Err(again) => ticket = again,
        }
        thread::yield_now();
    };
    result.unwrap();
    // Nobody has to wait.
    drop(store.journal().submit("main", Seq(2), &entry(3, &["c"])));
    store.reopen();
    assert_eq!(store.load("main").len(), 3);
}

fn many_threads(store: &mut Store) {
    let journal = store.journal();
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let session = format!("s{thread}");
                for number in 1..=25 {
                    let text = format!("{thread} {number}");
                    journal.append(&session, Seq(number - 1), &entry(number, &[&text])).unwrap();
                }
            });
        }
    });
    store.reopen();
    for thread in 0..8 {
        let expected: Vec<_> =
            (1..=25).map(|number| entry(number, &[&format!("{thread} {number}")])).collect();
        assert_eq!(store.load(&format!("s{thread}")), expected);
    }
}

fn racing_for_one_session(store: &mut Store) {
    let journal = store.journal();
    let won: Vec<u64> = thread::scope(|scope| {
        let race = |thread: u64| {
            let text = thread.to_string();
            let tried = (1..=50).filter(move |number| {
                journal.append("main", Seq(number - 1), &entry(*number, &[&text])).is_ok()
            });
            tried.collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || race(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // Each place was won once, and everything won is there.
    assert_eq!(store.load("main").len(), won.len());
    let mut places = won.clone();
    places.sort_unstable();
    assert_eq!(places, (1..=won.len() as u64).collect::<Vec<_>>());
}
