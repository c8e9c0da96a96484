//! Room that removed sessions leave: given back to the file system, by whichever kind of file,
//! and whoever dies meanwhile loses nothing.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use locum_journal::{Journal, Records as _, Sqlite};
use locum_kernel::{Entry, Seq};
use rusqlite::Connection;

use crate::{Folder, beside, entry, text};

const ROLE: &str = "LOCUM_JOURNAL_ROOM";

const KEPT: u64 = 40;
/// With those of a session of 200.
const ROWS: u32 = 240;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// As this version makes them.
    New,
    /// As older ones did.
    Old,
}

#[expect(clippy::disallowed_methods, reason = "looked at from outside, without our own code")]
fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

fn number(path: &Path, pragma: &str) -> i64 {
    raw(path).query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn kept() -> Vec<Entry> {
    (1..=KEPT).map(|seq| entry(seq, &text(2_000, seq))).collect()
}

/// Two sessions that lie among each other: `kept` to its end, and `gone`.
fn fill(path: &Path, kind: Kind, gone: u64) {
    let journal = Sqlite::open(path).unwrap();
    let mut written = 0;
    for entry in kept() {
        let before = Seq(entry.seq.0 - 1);
        journal.append("kept", before, &entry).unwrap();
        let share = gone * entry.seq.0 / KEPT;
        while written < share {
            written += 1;
            let large = crate::entry(written, &text(9_000, written));
            journal.append("gone", Seq(written - 1), &large).unwrap();
        }
    }
    drop(journal);
    if kind == Kind::Old {
        raw(path).execute_batch("PRAGMA auto_vacuum = NONE; VACUUM;").unwrap();
    }
    let expected = if kind == Kind::Old { 0 } else { 2 };
    assert_eq!(number(path, "auto_vacuum"), expected, "{kind:?}");
}

/// Everything that should be there is, and the file is as whole as it can be.
fn assert_well(path: &Path, about: &str) {
    let journal = Sqlite::open(path).unwrap();
    assert_eq!(journal.notices(), Vec::<String>::new(), "{about}");
    assert_eq!(journal.load("kept").unwrap(), kept(), "{about}");
    drop(journal);
    let check = "PRAGMA integrity_check";
    let said: String = raw(path).query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok", "{about}");
}

#[test]
fn what_was_removed_is_given_back() {
    for kind in [Kind::New, Kind::Old] {
        let folder = Folder::new(&format!("room-{kind:?}"));
        let path = folder.journal();
        fill(&path, kind, 200);
        let before = length(&path);
        let journal = Sqlite::open(&path).unwrap();
        journal.delete("gone").unwrap();
        journal.shrink().unwrap();
        // It goes on as if nothing had been.
        journal.append("gone", Seq(0), &entry(1, "anew")).unwrap();
        assert_eq!(journal.load("kept").unwrap(), kept());
        drop(journal);
        let after = length(&path);
        assert!(after < before / 4, "{kind:?}: {before}, then {after}");
        assert_eq!(number(&path, "auto_vacuum"), 2, "{kind:?}");
        assert_eq!(number(&path, "freelist_count"), 0, "{kind:?}");
        assert_well(&path, &format!("{kind:?}"));
        let journal = Sqlite::open(&path).unwrap();
        assert_eq!(journal.load("gone").unwrap(), [entry(1, "anew")]);
    }
}

/// Nobody reads a state of before, and nobody who does is hurt.
#[test]
fn whoever_looks_on_meanwhile_sees_what_there_is() {
    for kind in [Kind::New, Kind::Old] {
        let folder = Folder::new(&format!("room-looked-at-{kind:?}"));
        let path = folder.journal();
        fill(&path, kind, 200);
        let onlooker = Sqlite::look(&path).unwrap();
        let reading = raw(&path);
        reading.execute_batch("BEGIN; SELECT count(*) FROM entry;").unwrap();
        let rows = "SELECT count(*) FROM entry";
        let count = || reading.query_row(rows, [], |row| row.get::<_, u32>(0)).unwrap();
        assert_eq!(count(), ROWS);
        let journal = Sqlite::open(&path).unwrap();
        journal.delete("gone").unwrap();
        journal.shrink().unwrap();
        assert_eq!(count(), ROWS, "{kind:?}: what it had begun to read");
        assert_eq!(onlooker.load("kept").unwrap(), kept(), "{kind:?}");
        if kind == Kind::Old {
            assert_eq!(number(&path, "auto_vacuum"), 0, "not while somebody reads");
        }
        drop(reading);
        journal.shrink().unwrap();
        drop((journal, onlooker));
        assert_eq!(number(&path, "freelist_count"), 0, "{kind:?}");
        assert_well(&path, &format!("{kind:?}"));
    }
}

#[test]
fn an_old_file_is_not_written_anew_for_little() {
    for (what, gone) in [("less than half", 8), ("a small file", 25)] {
        let folder = Folder::new(&format!("room-little-{gone}"));
        let path = folder.journal();
        fill(&path, Kind::Old, gone);
        let before = length(&path);
        let journal = Sqlite::open(&path).unwrap();
        journal.delete("gone").unwrap();
        journal.shrink().unwrap();
        drop(journal);
        assert_eq!((length(&path), number(&path, "auto_vacuum")), (before, 0), "{what}");
        assert_well(&path, what);
    }
}

#[test]
fn nothing_is_moved_beside_damage() {
    for kind in [Kind::New, Kind::Old] {
        let folder = Folder::new(&format!("room-damage-{kind:?}"));
        let path = folder.journal();
        fill(&path, kind, 200);
        let mut bytes = fs::read(&path).unwrap();
        let words = text(2_000, 7);
        let at = bytes.windows(900).position(|it| it == &words.as_bytes()[..900]).unwrap();
        bytes[at + 100] ^= 1;
        fs::write(&path, bytes).unwrap();
        let journal = Sqlite::open(&path).unwrap();
        assert!(journal.load("kept").is_err(), "{kind:?}");
        journal.delete("gone").unwrap();
        journal.shrink().unwrap();
        drop(journal);
        assert!(number(&path, "freelist_count") > 200, "{kind:?}");
    }
}

#[test]
fn whoever_was_taken_over_from_moves_nothing() {
    for kind in [Kind::New, Kind::Old] {
        let folder = Folder::new(&format!("room-fence-{kind:?}"));
        let path = folder.journal();
        fill(&path, kind, 200);
        let old = Sqlite::open(&path).unwrap();
        old.delete("gone").unwrap();
        let new = Sqlite::take_over(&path).unwrap();
        old.shrink().unwrap();
        assert!(number(&path, "freelist_count") > 200, "{kind:?}");
        new.shrink().unwrap();
        assert_eq!(number(&path, "freelist_count"), 0, "{kind:?}");
        drop((old, new));
        assert_well(&path, &format!("{kind:?}"));
    }
}

/// Not a test of its own: what the process does that is killed.
#[test]
fn child() {
    let Ok(path) = std::env::var(ROLE) else { return };
    let journal = Sqlite::open(Path::new(&path)).unwrap();
    journal.delete("gone").unwrap();
    writeln!(std::io::stderr(), "said removed").unwrap();
    journal.shrink().unwrap();
    drop(journal);
    writeln!(std::io::stderr(), "said over").unwrap();
}

/// Dies at so many calls of the system that write, cut or sync; says how far it came.
fn die_at(path: &Path, call: &str, nth: usize) -> String {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=KILL:when={nth}")]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "room::child", "--nocapture"]).env(ROLE, path);
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn killed_at_any_write_it_loses_nothing() {
    let usable = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !usable.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: strace is not there or may not trace; deaths were not tested");
        return;
    }
    for kind in [Kind::New, Kind::Old] {
        let folder = Folder::new(&format!("room-deaths-{kind:?}"));
        let whole = folder.0.join("whole.db");
        fill(&whole, kind, 120);
        let path = folder.journal();
        for (call, step) in [("pwrite64", 7), ("fdatasync", 1), ("ftruncate", 1)] {
            let mut nth = 1;
            let (mut early, mut late) = (0, 0);
            loop {
                for file in ["", "-wal", "-shm", "-mark", "-lock"] {
                    let _ = fs::remove_file(beside(&path, file));
                    let _ = fs::copy(beside(&whole, file), beside(&path, file));
                }
                let said = die_at(&path, call, nth);
                if said.contains("said over") {
                    break;
                }
                let about = format!("{kind:?}, {call} {nth}: {said}");
                let removed = said.contains("said removed");
                *(if removed { &mut late } else { &mut early }) += 1;
                let journal = Sqlite::open(&path).unwrap();
                let gone = journal.load("gone").unwrap().len();
                // What was promised is so; what was not is so or not, but never half.
                assert!(gone == 0 || (gone == 120 && !removed), "{gone}, {about}");
                drop(journal);
                assert_well(&path, &about);
                nth += step;
                assert!(nth < 3_000, "it never ends");
            }
            eprintln!("{kind:?}, {call}: {early} deaths before it was removed, {late} after");
            assert!(call != "pwrite64" || late > 3, "{kind:?}: nothing was tested");
        }
    }
}
