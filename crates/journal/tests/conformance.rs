//! What every store must do, as one table that is run over each of them.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::path::{Path, PathBuf};

use locum_journal::{Error, Journal, Memory, Sqlite};
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
];

struct Store {
    journal: Option<Box<dyn Journal>>,
    path: PathBuf,
    open: Opener,
}

impl Store {
    fn append(&mut self, session: &str, expected: u64, entry: &Entry) -> Result<(), Error> {
        self.journal.as_mut().unwrap().append(session, Seq(expected), entry)
    }

    fn load(&self, session: &str) -> Vec<Entry> {
        self.journal.as_ref().unwrap().load(session).unwrap()
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
            for suffix in ["", "-wal", "-shm"] {
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
