//! What an onlooker sees must be what was written: while a writer lives, when none does, and
//! after one was killed. It sees the damage a writer sees, none besides, and changes nothing.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use locum_journal::{Error, Journal as _, Onlooker, Records, Sqlite};
use locum_kernel::{Entry, Event, Seq, Time, VERSION};

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-look-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    fn look(&self) -> Onlooker {
        Sqlite::look(&self.journal()).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// An entry of two events, so that not every number ends one.
fn entry(seq: u64, text: &str) -> Entry {
    let events = vec![Event::Opened { session: text.to_owned() }, Event::Restarted];
    Entry { v: VERSION, seq: Seq(seq), at: Time(seq), events }
}

fn fill(journal: &Sqlite, session: &str, entries: u64) {
    for number in 0..entries {
        let text = format!("{session} says {number} {}", "x".repeat(200));
        journal.append(session, Seq(number * 2), &entry(number * 2 + 1, &text)).unwrap();
    }
}

/// Everything two readers can be asked, asked of both.
fn assert_same(one: &dyn Records, other: &dyn Records, what: &str) {
    let listed = other.sessions().unwrap();
    assert_eq!(one.sessions().unwrap(), listed, "{what}");
    for session in listed.iter().map(|listed| listed.session.as_str()).chain(["nobody"]) {
        let (here, there) = (one.load(session).unwrap(), other.load(session).unwrap());
        assert!(here == there, "{what}: {session}");
        for after in [0, 1, 2, 5, 1_000] {
            let (here, there) = (one.tail(session, Seq(after)), other.tail(session, Seq(after)));
            assert!(here.unwrap() == there.unwrap(), "{what}: {session} after {after}");
        }
        let (here, there) = (one.newest_snapshot(session), other.newest_snapshot(session));
        assert_eq!(here.unwrap(), there.unwrap(), "{what}: {session}");
    }
}

#[test]
fn where_nothing_is_nothing_is_made() {
    let folder = Folder::new("nothing");
    let onlooker = folder.look();
    assert_eq!(onlooker.sessions().unwrap(), []);
    assert_eq!(onlooker.load("main").unwrap(), []);
    assert_eq!(onlooker.newest_snapshot("main").unwrap(), None);
    assert_eq!(folder.files(), Vec::<String>::new());
    // Nor is a folder that is not there.
    assert!(Sqlite::look(&folder.0.join("no/such/journal.db")).is_ok());

    // The same onlooker sees what comes to be.
    let journal = Sqlite::open(&folder.journal()).unwrap();
    assert_eq!(onlooker.sessions().unwrap(), []);
    fill(&journal, "main", 3);
    assert_same(&onlooker, &journal, "made meanwhile");
}

#[test]
fn it_sees_what_was_written_beside_a_writer_after_it_and_after_its_death() {
    let folder = Folder::new("same");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    for (session, entries) in [("a", 40), ("b", 1), ("c", 7)] {
        fill(&journal, session, entries);
    }
    journal.snapshot("a", Seq(60), b"sixty").unwrap();
    let onlooker = folder.look();
    assert_same(&onlooker, &journal, "a writer lives");
    let written = [("a", 79), ("b", 1), ("c", 13)].map(|(name, at)| (name.to_owned(), Time(at)));
    assert_eq!(onlooker.written().unwrap(), written);
    fill(&journal, "d", 2);
    journal.delete("b").unwrap();
    assert_same(&onlooker, &journal, "and goes on");

    // What a killed writer leaves: the log, and maybe the index of the log.
    for index in [true, false] {
        let crashed = Folder::new("crashed");
        for suffix in ["", "-wal", "-mark", "-shm"] {
            if suffix != "-shm" || index {
                let (from, to) = (beside(&folder.journal(), suffix), crashed.journal());
                fs::copy(from, beside(&to, suffix)).unwrap();
            }
        }
        let before = fs::read(crashed.journal()).unwrap();
        let log = fs::read(beside(&crashed.journal(), "-wal")).unwrap();
        assert!(!log.is_empty(), "there is a log to be read");
        assert_same(&crashed.look(), &journal, "killed");
        assert_eq!(fs::read(crashed.journal()).unwrap(), before);
        assert_eq!(fs::read(beside(&crashed.journal(), "-wal")).unwrap(), log);
        // Nor was the next writer disturbed.
        let again = Sqlite::open(&crashed.journal()).unwrap();
        assert_eq!(again.notices(), Vec::<String>::new());
        again.append("a", Seq(80), &entry(81, "more")).unwrap();
    }

    drop(journal);
    let alone = folder.look();
    let journal = Sqlite::open(&folder.journal()).unwrap();
    assert_eq!(journal.notices(), Vec::<String>::new());
    assert_same(&alone, &journal, "closed");
    assert_same(&onlooker, &journal, "closed, and looked at since before");
}

#[test]
fn haste_is_never_taken_for_damage() {
    let folder = Folder::new("haste");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    // So many that reading their marks takes as long as writing an entry.
    let crowd = (0..300).map(|number| format!("one of many {number}"));
    let tickets: Vec<_> =
        crowd.map(|name| journal.submit(&name, Seq(0), &entry(1, &name))).collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    fill(&journal, "steady", 1);
    let (written, over) = (AtomicU64::new(1), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1;
            while !over.load(Ordering::SeqCst) {
                let entry = entry(number * 2 + 1, &format!("steady says {number}"));
                journal.append("steady", Seq(number * 2), &entry).unwrap();
                number += 1;
                written.store(number, Ordering::SeqCst);
                if number.is_multiple_of(50) {
                    journal.snapshot("steady", Seq(number * 2), b"so far").unwrap();
                }
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                fill(&journal, "fleeting", 2);
                journal.delete("fleeting").unwrap();
            }
        });
        // One that stays and one that comes anew each time.
        let stays = folder.look();
        let seen = std::panic::catch_unwind(|| {
            for _ in 0..60 {
                for onlooker in [&stays, &folder.look()] {
                    let acknowledged = written.load(Ordering::SeqCst);
                    let listed = onlooker.sessions().unwrap();
                    let damaged = listed.iter().find(|listed| listed.damaged.is_some());
                    assert_eq!(damaged, None);
                    let known = Seq(acknowledged.saturating_sub(3) * 2);
                    let steady = onlooker.tail("steady", known).unwrap();
                    let least = if known.0 == 0 { 1 } else { 3 };
                    assert!(steady.len() >= least, "acknowledged is seen");
                    let fleeting = onlooker.load("fleeting").unwrap();
                    assert!(fleeting.len() <= 2, "{fleeting:?}");
                    onlooker.newest_snapshot("steady").unwrap();
                }
            }
        });
        over.store(true, Ordering::SeqCst);
        if let Err(panic) = seen {
            std::panic::resume_unwind(panic);
        }
    });
    let (seen, kept) = (folder.look().load("steady"), journal.load("steady"));
    assert!(seen.unwrap() == kept.unwrap(), "in the end");
}

#[test]
fn damage_is_seen_where_it_is_and_nothing_is_changed() {
    let folder = Folder::new("damage");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    for session in ["a", "b", "c"] {
        fill(&journal, session, 20);
    }
    let (whole, once) = (journal.load("a").unwrap(), journal.load("b").unwrap());
    drop(journal);
    let mut bytes = fs::read(folder.journal()).unwrap();
    let needle = b"b says 7 ";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 4;
    fs::write(folder.journal(), &bytes).unwrap();

    let onlooker = folder.look();
    let refused = onlooker.load("b");
    assert!(matches!(&refused, Err(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(onlooker.load("a").unwrap(), whole);
    // Twice the same: nobody could write down that it is damaged.
    assert!(matches!(onlooker.load("b"), Err(Error::Damaged { .. })));
    // What lies before the damage can be read all the same, and what does not is counted.
    let sound = || onlooker.sound().load("b").unwrap();
    let count = sound().len();
    assert!((1..19).contains(&count) && sound() == once[..count], "{count}");
    let loss = onlooker.loss("b").unwrap().unwrap();
    assert_eq!(loss.last.0 + 1, once[count].seq.0);
    assert_eq!(loss.entries, Some(20 - u64::try_from(count).unwrap()));
    assert_eq!(onlooker.sound().load("a").unwrap(), whole);
    assert_eq!(onlooker.loss("a").unwrap(), None);
    assert_eq!(onlooker.written().unwrap().len(), 3, "it has its place among the others");
    assert_eq!(fs::read(folder.journal()).unwrap(), bytes);

    // A writer that has read it writes it down, and then the list says so.
    let writer = Sqlite::open(&folder.journal()).unwrap();
    assert!(writer.load("b").is_err());
    let listed = onlooker.sessions().unwrap();
    let damaged: Vec<_> = listed.iter().filter(|one| one.damaged.is_some()).collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].session, "b");
}

#[test]
fn a_lost_end_a_lost_file_and_a_newer_one_are_seen() {
    let folder = Folder::new("lost");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    fill(&journal, "a", 5);
    drop(journal);
    let early = fs::read(folder.journal()).unwrap();
    fill(&Sqlite::open(&folder.journal()).unwrap(), "b", 5);
    let journal = Sqlite::open(&folder.journal()).unwrap();
    journal.append("a", Seq(10), &entry(11, "later")).unwrap();
    drop(journal);
    let late = fs::read(folder.journal()).unwrap();

    // An older file under newer marks.
    fs::write(folder.journal(), &early).unwrap();
    let onlooker = folder.look();
    let listed = onlooker.sessions().unwrap();
    assert_eq!(listed.iter().filter(|one| one.damaged.is_some()).count(), 2, "{listed:?}");
    assert!(matches!(onlooker.load("a"), Err(Error::Damaged { .. })));
    assert!(matches!(onlooker.load("b"), Err(Error::Damaged { .. })));
    let loss = onlooker.loss("a").unwrap().unwrap();
    assert_eq!((loss.last, loss.entries, loss.reached), (Seq(10), Some(0), Seq(12)));
    drop(onlooker);

    let mut newer = late.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(folder.journal(), &newer).unwrap();
    let refused = Sqlite::look(&folder.journal());
    assert!(matches!(refused, Err(Error::Version { found: 99, .. })), "{refused:?}");

    fs::write(folder.journal(), &late[..2_000]).unwrap();
    let refused = Sqlite::look(&folder.journal());
    assert!(matches!(refused, Err(Error::Broken { .. })), "{refused:?}");

    fs::remove_file(folder.journal()).unwrap();
    let refused = Sqlite::look(&folder.journal());
    assert!(matches!(refused, Err(Error::Lost { sessions: 2, .. })), "{refused:?}");
    assert!(!folder.journal().exists());
}

/// A backup, or somebody else's folder: not even an index of the log can be made beside it.
#[test]
#[cfg(unix)]
fn a_folder_that_cannot_be_written_can_be_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("read only 100%?#");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    fill(&journal, "a", 3);
    let entries = journal.load("a").unwrap();
    drop(journal);
    let allow = |mode| fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    if fs::write(folder.0.join("probe"), "").is_ok() {
        eprintln!("SKIPPED: this user may write anywhere; a forbidden folder was not tested");
    } else {
        let onlooker = folder.look();
        assert_eq!(onlooker.load("a").unwrap(), entries);
        assert_eq!(onlooker.load("a").unwrap(), entries);
    }
    allow(0o755);
}
