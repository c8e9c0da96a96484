//! What durability costs, as ratios to a floor measured in the same run: the plainest possible
//! program that commits one row with a full sync. `cargo bench -p locum-journal`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program to be read once")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and SQLite without us")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use locum_journal::{Journal, Records as _, Sqlite};
use locum_kernel::{
    Audience, Config, Definition, Entry, Input, Kind, Message, PolicyMode, Reply, Seq, Session,
    Time, To, TreeLimits, Urgency, VERSION, fold, owed, step,
};

const COMMITS: u64 = 400;
const THREADS: u64 = 8;
const ROUNDS: u64 = 5;
const LONG: u64 = 100_000;
const SNAPSHOT_AT: u64 = 99_000;

fn main() {
    let folder = std::env::temp_dir().join(format!("locum-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let entries = talk(COMMITS * ROUNDS);
    commits(&folder, &entries);
    loading(&folder);
    fs::remove_dir_all(&folder).unwrap();
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn us(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap())
}

/// In turns, so that a noisy neighbour disturbs all of them; the median round counts.
fn commits(folder: &Path, entries: &[Entry]) {
    let plain = plain(&folder.join("plain.db"));
    let journal = Sqlite::open(&folder.join("ours.db")).unwrap();
    let (mut floor, mut ours, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let at = usize::try_from(round * COMMITS).unwrap();
        let some = &entries[at..at + usize::try_from(COMMITS).unwrap()];
        floor.push(us(timed(|| some.iter().for_each(|entry| put(&plain, entry))).1, COMMITS));
        let append = |entry: &Entry| {
            journal.append("main", Seq(entry.seq.0 - 1), entry).unwrap();
        };
        ours.push(us(timed(|| some.iter().for_each(append)).1, COMMITS));
        let (journal, text) = (&journal, &entries[0]);
        let together = || {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || crowd(journal, thread, round, text));
                }
            });
        };
        shared.push(us(timed(together).1, COMMITS * THREADS));
    }
    let (floor, ours, shared) = (median(floor), median(ours), median(shared));
    println!("one entry, synced                           µs    × floor");
    println!("plain SQLite, one row, FULL (floor)  {floor:>9.1} {:>8.2}", 1.0);
    println!("our append, one caller               {ours:>9.1} {:>8.2}", ours / floor);
    println!("our append, 8 callers, per entry     {shared:>9.1} {:>8.2}", shared / floor);
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn plain(path: &PathBuf) -> rusqlite::Connection {
    let plain = rusqlite::Connection::open(path).unwrap();
    plain.pragma_update(None, "journal_mode", "WAL").unwrap();
    plain.pragma_update(None, "synchronous", "FULL").unwrap();
    plain.execute_batch("CREATE TABLE entry (id INTEGER PRIMARY KEY, json TEXT)").unwrap();
    plain
}

fn put(plain: &rusqlite::Connection, entry: &Entry) {
    let json = serde_json::to_string(entry).unwrap();
    let mut insert = plain.prepare_cached("INSERT INTO entry (json) VALUES (?)").unwrap();
    insert.execute([json]).unwrap();
}

fn crowd(journal: &Sqlite, thread: u64, round: u64, like: &Entry) {
    let session = format!("s{thread}-{round}");
    let mut last = 0;
    for _ in 0..COMMITS {
        let entry = Entry { seq: Seq(last + 1), ..like.clone() };
        journal.append(&session, Seq(last), &entry).unwrap();
        last += entry.events.len() as u64;
    }
}

/// A person and a model who take turns for ever: what a long session is made of.
fn talk(count: u64) -> Vec<Entry> {
    let mut session = Session::new();
    let mut entries = Vec::new();
    let mut say = |session: &mut Session, input: Input| {
        let seq = Seq(session.seq().0 + 1);
        let at = Time(1_000_000 + seq.0 * 2_000);
        let events = step(session, at, input).unwrap();
        entries.push(Entry { v: VERSION, seq, at, events });
        entries.len() as u64
    };
    say(&mut session, Input::Configured(Box::new(config())));
    loop {
        say(&mut session, Input::Said(message()));
        let key = owed(&session)[0].key();
        let reply =
            Reply { text: "It is so, and for these reasons. ".repeat(4), ..Reply::default() };
        if say(&mut session, Input::Replied { key, reply }) >= count {
            return entries;
        }
    }
}

fn config() -> Config {
    Config {
        session: "main".into(),
        main: Definition::new("main", Kind::Main),
        model: "bench".into(),
        audience: Audience::Absent,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: Vec::new(),
        definitions: Vec::new(),
        models: std::collections::BTreeMap::new(),
    }
}

fn message() -> Message {
    Message {
        channel: "bench".into(),
        sender: "me".into(),
        external_id: None,
        text: "And what of this?".into(),
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
}

fn loading(folder: &Path) {
    let path = folder.join("long.db");
    let journal = Sqlite::open(&path).unwrap();
    let entries = talk(LONG);
    let mut session = Session::new();
    let mut snapshot = None;
    // All submitted, then waited for: the journal takes them a thousand at a time.
    let mut tickets = Vec::new();
    for (number, entry) in (1..).zip(&entries) {
        tickets.push(journal.submit("main", session.seq(), entry));
        fold(&mut session, entry).unwrap();
        if number == SNAPSHOT_AT {
            snapshot = Some((session.seq(), serde_json::to_vec(&session).unwrap()));
        }
    }
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    drop(journal);

    let (whole, without) = timed(|| open_and_fold(&path));
    let (seq, bytes) = snapshot.unwrap();
    Sqlite::open(&path).unwrap().snapshot("main", seq, &bytes).unwrap();
    let (resumed, with) = timed(|| open_and_fold(&path));
    assert!(whole == session && resumed == session, "the same session, whichever way");
    let size = bytes.len() >> 10;
    println!();
    println!("opening a session of {} entries, to a folded state          ms", entries.len());
    println!("all entries                                          {:>9.1}", ms(without));
    println!(
        "a snapshot of {size} KiB and the last {} entries     {:>9.1}",
        LONG - SNAPSHOT_AT,
        ms(with)
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn open_and_fold(path: &Path) -> Session {
    let (journal, open) = timed(|| Sqlite::open(path).unwrap());
    let (snapshot, read) = timed(|| journal.newest_snapshot("main").unwrap());
    let (mut session, parse) = timed(|| match &snapshot {
        Some(snapshot) => serde_json::from_slice(&snapshot.bytes).unwrap(),
        None => Session::new(),
    });
    let (tail, load) = timed(|| journal.tail("main", session.seq()).unwrap());
    let ((), folded) = timed(|| tail.iter().for_each(|entry| fold(&mut session, entry).unwrap()));
    let parts = [open, read, parse, load, folded].map(|part| format!("{:.1}", ms(part)));
    println!("  open, snapshot, parse, tail, fold: {} ms", parts.join(", "));
    session
}
