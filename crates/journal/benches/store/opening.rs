//! Opening: a small journal, as every start of the program does, and a session of 100,000 entries.

use std::path::Path;

use locum_journal::{Journal, Records as _, Sqlite};
use locum_kernel::{Seq, Session, fold};

use crate::talk::talk;
use crate::{Times, ms, timed};

const STARTS: usize = 60;
const LONG: usize = 100_000;
const SNAPSHOT_AT: usize = 99_000;

/// The floor is what no start can do without: one row, synced, between opening and closing.
pub(crate) fn starts(folder: &Path) {
    let path = folder.join("small.db");
    let entries = talk(40 + 2 * STARTS);
    {
        let journal = Sqlite::open(&path).unwrap();
        for entry in &entries[..40] {
            journal.append("main", Seq(entry.seq.0 - 1), entry).unwrap();
        }
    }
    let (mut open, mut first, mut close) = (Times::default(), Times::default(), Times::default());
    let (mut idle, mut idle_close) = (Times::default(), Times::default());
    for start in 0..STARTS {
        let (journal, took) = timed(|| Sqlite::open(&path).unwrap());
        open.add(ms(took));
        let some = &entries[40 + 2 * start..42 + 2 * start];
        let append = |entry: &locum_kernel::Entry| {
            journal.append("main", Seq(entry.seq.0 - 1), entry).unwrap();
        };
        first.add(ms(timed(|| append(&some[0])).1));
        append(&some[1]);
        close.add(ms(timed(|| drop(journal)).1));
        let (journal, took) = timed(|| Sqlite::open(&path).unwrap());
        idle.add(ms(took));
        idle_close.add(ms(timed(|| drop(journal)).1));
    }
    println!();
    println!("a small journal, ms                            median      p95");
    let line = |what: &str, times: &Times| {
        println!("{what:<44} {:>8.2} {:>8.2}", times.at(50), times.at(95));
    };
    line("open", &open);
    line("the first append", &first);
    line("close after two appends", &close);
    line("open again", &idle);
    line("close with nothing written", &idle_close);
}

pub(crate) fn long(folder: &Path) {
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

    println!();
    println!("a session of {} entries, ms", entries.len());
    println!("{:<44} {:>8} {:>8}", "", "journal", "+ fold");
    let count = f64::from(u32::try_from(entries.len()).unwrap());
    let mut rate = 0.0;
    let mut line = |what: &str| {
        let mut best = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            let (whole, stored, made) = open_and_fold(&path);
            assert!(whole == session, "the same session, whichever way");
            best = (best.0.min(stored), best.1.min(stored + made));
        }
        println!("{what:<44} {:>8.1} {:>8.1}", best.0, best.1);
        rate = f64::max(rate, count / best.0 * 1e3);
        rate
    };
    let all = line("open, and load all entries");
    println!("{:<44} {all:>8.0} entries/s", "");
    let (seq, bytes) = snapshot.unwrap();
    Sqlite::open(&path).unwrap().snapshot("main", seq, &bytes).unwrap();
    let size = bytes.len() >> 10;
    line(&format!("open, snapshot of {size} KiB, last 1,000"));
}

/// The session, how long the journal took for it (best of three tells least about the machine's
/// other work), and how long making a state of it took.
fn open_and_fold(path: &Path) -> (Session, f64, f64) {
    let ((journal, snapshot), read) = timed(|| {
        let journal = Sqlite::open(path).unwrap();
        let snapshot = journal.newest_snapshot("main").unwrap();
        (journal, snapshot)
    });
    let (mut session, parsed) = timed(|| match &snapshot {
        Some(snapshot) => serde_json::from_slice(&snapshot.bytes).unwrap(),
        None => Session::new(),
    });
    let (tail, loaded) = timed(|| journal.tail("main", session.seq()).unwrap());
    let ((), folded) = timed(|| tail.iter().for_each(|entry| fold(&mut session, entry).unwrap()));
    (session, ms(read + loaded), ms(parsed + folded))
}
