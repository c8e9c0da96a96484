//! One entry, synced: alone, in a row of up to 64 that are not waited for, and beside others.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use locum_journal::{Journal, Sqlite, When};
use locum_kernel::{Entry, Seq};

use crate::talk::talk;
use crate::{Times, timed, us};

/// Slices are short against the moods of a disk, and long against what changing over costs.
const SLICE: usize = 50;
const ROUNDS: usize = 60;
const THREADS: usize = 8;
/// What a driver may have under way before it waits.
const UNDER_WAY: usize = 64;
const PIPED: usize = 256;

#[derive(Default)]
struct Told {
    floor: Times,
    lone: Times,
    between: Times,
    piped: Times,
    piped_each: Times,
    crowd: Times,
    crowd_each: Times,
}

pub(crate) fn all(folder: &Path) {
    let entries = talk(SLICE * ROUNDS);
    let plain = plain(&folder.join("plain.db"));
    let journal = Sqlite::open(&folder.join("ours.db")).unwrap();
    // Sessions before and behind the measured one, so that it lies in the middle of the file.
    let old = Sqlite::open(&folder.join("old.db")).unwrap();
    fill(&old, "a", 150);
    old.append("main", Seq(0), &entries[0]).unwrap();
    fill(&old, "z", 150);
    let long = talk(PIPED * ROUNDS);
    let mut told = Told::default();
    for round in 0..ROUNDS {
        let some = &entries[round * SLICE..(round + 1) * SLICE];
        for entry in some {
            told.floor.add(us(timed(|| put(&plain, entry)).1));
        }
        for entry in some {
            told.lone.add(us(timed(|| append(&journal, "main", entry)).1));
        }
        for entry in some.iter().filter(|entry| entry.seq > Seq(1)) {
            told.between.add(us(timed(|| append(&old, "main", entry)).1));
        }
        pipe(&journal, &long[round * PIPED..(round + 1) * PIPED], &mut told);
        crowd(&journal, round, &entries[1], &mut told);
    }
    told.print();
}

/// Our appends and nothing else.
pub(crate) fn lone(folder: &Path) {
    let journal = Sqlite::open(&folder.join("lone.db")).unwrap();
    for entry in &talk(3_000) {
        append(&journal, "main", entry);
    }
}

fn fill(journal: &Sqlite, prefix: &str, sessions: usize) {
    for session in 0..sessions {
        let name = format!("{prefix}{session}");
        let tickets: Vec<_> = talk(20)
            .iter()
            .map(|entry| journal.submit(&name, Seq(entry.seq.0 - 1), entry))
            .collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
    }
}

fn append(journal: &Sqlite, session: &str, entry: &Entry) {
    journal.append(session, Seq(entry.seq.0 - 1), entry).unwrap();
}

fn plain(path: &Path) -> rusqlite::Connection {
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

/// One caller that waits only when there is too much under way.
fn pipe(journal: &Sqlite, entries: &[Entry], told: &mut Told) {
    let (sender, done) = channel();
    let submit = |entry: &Entry| {
        let (sender, start) = (sender.clone(), Instant::now());
        let settled = Box::new(move |result: Result<(), _>| {
            result.unwrap();
            sender.send(us(start.elapsed())).unwrap();
        });
        journal.submit_then("piped", Seq(entry.seq.0 - 1), entry, When::Now, settled);
    };
    let ((), took) = timed(|| {
        for (number, entry) in entries.iter().enumerate() {
            if number >= UNDER_WAY {
                told.piped.add(done.recv().unwrap());
            }
            submit(entry);
        }
        (0..UNDER_WAY).for_each(|_| told.piped.add(done.recv().unwrap()));
    });
    told.piped_each.add(us(took) / f64::from(u32::try_from(entries.len()).unwrap()));
}

/// Each caller its own session, each waiting for each of its entries.
fn crowd(journal: &Sqlite, round: usize, like: &Entry, told: &mut Told) {
    let (sender, times) = channel();
    let one = |thread: usize, sender: Sender<f64>| {
        let session = format!("s{thread}-{}", round / 10);
        let events = like.events.len() as u64;
        let mut last = (round % 10 * SLICE) as u64 * events;
        for _ in 0..SLICE {
            let entry = Entry { seq: Seq(last + 1), ..like.clone() };
            sender.send(us(timed(|| append(journal, &session, &entry)).1)).unwrap();
            last += events;
        }
    };
    let ((), took) = timed(|| {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (one, sender) = (&one, sender.clone());
                scope.spawn(move || one(thread, sender));
            }
        });
    });
    drop(sender);
    for time in times {
        told.crowd.add(time);
    }
    told.crowd_each.add(us(took) / f64::from(u32::try_from(SLICE * THREADS).unwrap()));
}

impl Told {
    fn print(&self) {
        let floor = (self.floor.at(50), self.floor.at(95), self.floor.mean());
        let line = |what: &str, times: &Times| {
            let (half, most, mean) = (times.at(50), times.at(95), times.mean());
            let ratios = (half / floor.0, most / floor.1, mean / floor.2);
            println!(
                "{what:<44} {half:>8.1} {most:>8.1} {mean:>8.1}   {:>5.2} {:>5.2} {:>5.2}",
                ratios.0, ratios.1, ratios.2
            );
        };
        let rate = |each: &Times| 1e6 / each.at(50);
        println!(
            "µs until synced                                median      p95     mean   × floor's"
        );
        line("plain SQLite, one row, FULL (the floor)", &self.floor);
        line("append, one caller", &self.lone);
        line("append, one caller, 300 other sessions", &self.between);
        line("submit, up to 64 under way: until done", &self.piped);
        line("submit, up to 64 under way: per entry", &self.piped_each);
        line("append, 8 callers: until done", &self.crowd);
        line("append, 8 callers: per entry", &self.crowd_each);
        println!(
            "entries per second: {:.0} under way, {:.0} from 8 callers",
            rate(&self.piped_each),
            rate(&self.crowd_each)
        );
    }
}
