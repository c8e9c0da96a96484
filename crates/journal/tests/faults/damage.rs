//! Flipped bits, cut files and zeroed blocks, over the database, its log and the marks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use locum_journal::{Error, Journal, Records as _, Sqlite};
use locum_kernel::{Entry, Seq};

use crate::{Folder, Numbers, beside, entry, text};

const SESSIONS: u64 = 6;
/// In the image of a crash only these have anything in the log.
const BUSY: [&str; 2] = ["s1", "s4"];

const FILES: [&str; 3] = ["", "-wal", "-mark"];

/// A journal as bytes, with what it holds.
struct Image {
    files: BTreeMap<&'static str, Vec<u8>>,
    entries: BTreeMap<String, Vec<Entry>>,
    snapshots: BTreeMap<(String, Seq), Vec<u8>>,
}

impl Image {
    fn take(path: &Path, journal: &Sqlite) -> Image {
        let read = |suffix: &&'static str| Some((*suffix, fs::read(beside(path, suffix)).ok()?));
        let files = FILES.iter().filter_map(read).collect();
        let listed = journal.sessions().unwrap().into_iter();
        let load = |name: String| (name.clone(), journal.load(&name).unwrap());
        let entries: BTreeMap<_, _> = listed.map(|listed| load(listed.session)).collect();
        let ends = entries.iter().flat_map(|(name, entries)| {
            entries.iter().map(|entry| ((name.clone(), entry.seq), made_of(name, entry.seq)))
        });
        let snapshots = ends.collect();
        Image { files, entries, snapshots }
    }

    fn put(&self, path: &Path) {
        for (suffix, bytes) in &self.files {
            fs::write(beside(path, suffix), bytes).unwrap();
        }
    }
}

fn made_of(session: &str, seq: Seq) -> Vec<u8> {
    text(3_000, seq.0 + session.len() as u64).into_bytes()
}

/// Sessions of several pages each, written in turns; one entry longer than a page; snapshots.
fn fill(journal: &Sqlite) {
    for number in 1..=28 {
        for session in 0..SESSIONS {
            let name = format!("s{session}");
            let length = if number == 20 { 9_000 } else { 200 + 40 * session };
            let text = text(usize::try_from(length).unwrap(), number * 10 + session);
            journal.append(&name, Seq(number - 1), &entry(number, &text)).unwrap();
            if number % 9 == 0 && session < 3 {
                journal.snapshot(&name, Seq(number), &made_of(&name, Seq(number))).unwrap();
            }
        }
    }
}

/// Closed as it should be: everything is in the database.
fn closed(folder: &Folder) -> Image {
    fill(&Sqlite::open(&folder.journal()).unwrap());
    let journal = Sqlite::open(&folder.journal()).unwrap();
    let mut image = Image::take(&folder.journal(), &journal);
    drop(journal);
    image.files.remove("-wal");
    image.files.insert("", fs::read(folder.journal()).unwrap());
    image
}

/// Killed: the newest entries of two sessions are only in the log.
fn crashed(folder: &Folder) -> Image {
    fill(&Sqlite::open(&folder.journal()).unwrap());
    let journal = Sqlite::open(&folder.journal()).unwrap();
    for number in 29..=48 {
        for session in BUSY {
            let entry = entry(number, &text(300, number));
            journal.append(session, Seq(number - 1), &entry).unwrap();
        }
    }
    let image = Image::take(&folder.journal(), &journal);
    assert!(image.files["-wal"].len() > 50_000, "there is a log to damage");
    image
}

#[derive(Debug, PartialEq)]
enum Seen {
    /// Everything is as it was.
    Whole,
    /// These sessions are refused, the others are as they were.
    Sessions(BTreeSet<String>),
    /// The journal as such is refused.
    Journal,
}

/// Opens what is there, and panics if anything comes back that was not put in, or is missing
/// without a word.
fn look(image: &Image, path: &Path, what: &str) -> (Seen, usize) {
    let before = fs::read(path).unwrap();
    let glanced = glance(image, path, what);
    assert!(fs::read(path).unwrap() == before, "{what}: looking changed it");
    let (seen, notices) = open(image, path, what);
    // What a writer cannot write may still be read.
    let same = glanced == seen || seen == Seen::Journal;
    assert!(same, "{what}: who looks sees {glanced:?}, a writer {seen:?}");
    (seen, notices)
}

/// The same, only looked at.
fn glance(image: &Image, path: &Path, what: &str) -> Seen {
    let Ok(onlooker) = Sqlite::look(path) else { return Seen::Journal };
    let mut damaged = BTreeSet::new();
    for (name, entries) in &image.entries {
        if let Ok(Some(snapshot)) = onlooker.newest_snapshot(name) {
            let made = &image.snapshots[&(name.clone(), snapshot.seq)];
            assert!(snapshot.bytes == *made, "{what}: a damaged snapshot was believed by a look");
        }
        match onlooker.load(name) {
            Ok(loaded) => assert!(loaded == *entries, "{what}: {name} changed unseen by a look"),
            Err(Error::Damaged { .. }) => {
                // What lies before the damage is as it was, and what is missing is told.
                let sound = onlooker.sound().load(name).unwrap();
                assert!(entries.starts_with(&sound), "{what}: {name} changed, and is shown");
                assert!(onlooker.loss(name).unwrap().is_some(), "{what}: {name} lost nothing");
                damaged.insert(name.clone());
            }
            Err(_) => return Seen::Journal,
        }
    }
    if damaged.is_empty() { Seen::Whole } else { Seen::Sessions(damaged) }
}

fn open(image: &Image, path: &Path, what: &str) -> (Seen, usize) {
    let before = fs::read(path).unwrap();
    let journal = match Sqlite::open(path) {
        Ok(journal) => journal,
        Err(Error::Corrupt { kept, .. }) => {
            assert_eq!(fs::read(kept).unwrap(), before, "{what}: the copy has the same bytes");
            return (Seen::Journal, 0);
        }
        Err(Error::Lost { .. } | Error::Version { .. } | Error::Open { .. }) => {
            return (Seen::Journal, 0);
        }
        Err(error) => panic!("{what}: {error:?}"),
    };
    let mut damaged = BTreeSet::new();
    for (name, entries) in &image.entries {
        if let Ok(Some(snapshot)) = journal.newest_snapshot(name) {
            let made = &image.snapshots[&(name.clone(), snapshot.seq)];
            assert!(snapshot.bytes == *made, "{what}: a damaged snapshot was believed");
        }
        match journal.load(name) {
            Ok(loaded) => assert!(loaded == *entries, "{what}: {name} changed unseen"),
            Err(Error::Damaged { .. }) => drop(damaged.insert(name.clone())),
            Err(error) => panic!("{what}: {name}: {error:?}"),
        }
    }
    // A lost name is listed by its number, so damaged ones are counted.
    let listed = journal.sessions().unwrap();
    let listed = listed.iter().filter(|listed| listed.damaged.is_some()).count();
    assert_eq!(listed, damaged.len(), "{what}: damaged sessions are listed");
    let notices = journal.notices().len();
    (if damaged.is_empty() { Seen::Whole } else { Seen::Sessions(damaged) }, notices)
}

#[expect(clippy::disallowed_methods, reason = "a look at the pages, past the journal")]
/// Pages that belong to one session, or to two that meet there.
fn own_pages(folder: &Folder, image: &Image) -> BTreeSet<usize> {
    let path = folder.0.join("pages.db");
    fs::write(&path, &image.files[""]).unwrap();
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = rusqlite::Connection::open_with_flags(&path, flags).unwrap();
    let sql =
        "SELECT pageno FROM dbstat WHERE name IN ('entry', 'snapshot') AND pagetype <> 'internal'";
    let mut statement = connection.prepare(sql).unwrap();
    let pages = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    pages.map(|page| usize::try_from(page.unwrap()).unwrap()).collect()
}

#[derive(Debug, Default)]
struct Tally {
    tried: usize,
    harmless: usize,
    sessions: usize,
    journal: usize,
}

impl Tally {
    fn count(&mut self, seen: &Seen) {
        self.tried += 1;
        match seen {
            Seen::Whole => self.harmless += 1,
            Seen::Sessions(_) => self.sessions += 1,
            Seen::Journal => self.journal += 1,
        }
    }
}

/// Damages one file of an image, looks, and puts it right again.
fn try_one(folder: &Folder, image: &Image, file: &str, what: &str, bytes: &[u8]) -> (Seen, usize) {
    let path = folder.journal();
    let left = fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().path());
    left.filter(|file| file.is_file()).for_each(|file| fs::remove_file(file).unwrap());
    image.put(&path);
    fs::write(beside(&path, file), bytes).unwrap();
    look(image, &path, what)
}

/// So many bits of each part of a file, wherever they are in it.
fn spread(bytes: Range<usize>, part: usize, each: usize, numbers: &mut Numbers) -> Vec<usize> {
    let parts = bytes.clone().step_by(part).map(|from| from..(from + part).min(bytes.end));
    let one =
        |part: &Range<usize>, numbers: &mut Numbers| part.start * 8 + numbers.below(part.len() * 8);
    parts.flat_map(|part| (0..each).map(|_| one(&part, numbers)).collect::<Vec<_>>()).collect()
}

#[test]
fn no_flipped_bit_goes_unseen_in_the_database() {
    let folder = Folder::new("flips");
    let image = closed(&folder);
    let own = own_pages(&folder, &image);
    let (mut tally, mut numbers) = (Tally::default(), Numbers(1));
    let whole = &image.files[""];
    // The header is small and everything hangs on it: every bit of it, and many of each page.
    let pages = spread(0..whole.len(), 4096, 30, &mut numbers);
    for bit in (0..800).chain(pages) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (seen, _) = try_one(&folder, &image, "", &format!("bit {bit}"), &bytes);
        if own.contains(&(bit / 8 / 4096 + 1)) {
            let few = matches!(&seen, Seen::Sessions(damaged) if damaged.len() <= 2);
            assert!(few || seen == Seen::Whole, "bit {bit}: {seen:?}");
        }
        tally.count(&seen);
    }
    eprintln!("database, {} pages: {tally:?}", whole.len() / 4096);
    assert!(tally.tried >= 2_000 && tally.sessions > 500, "{tally:?}");
}

#[test]
fn no_flipped_bit_goes_unseen_in_the_log() {
    let folder = Folder::new("log-flips");
    let image = crashed(&folder);
    let (mut tally, mut numbers) = (Tally::default(), Numbers(2));
    let whole = &image.files["-wal"];
    // A header, and then pages with a header each.
    let frames = spread(32..whole.len(), 24 + 4096, 12, &mut numbers);
    for bit in (0..32 * 8).chain(frames) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (seen, _) = try_one(&folder, &image, "-wal", &format!("log bit {bit}"), &bytes);
        if let Seen::Sessions(damaged) = &seen {
            assert!(damaged.iter().all(|name| BUSY.contains(&name.as_str())), "{damaged:?}");
            assert!(beside(&folder.journal(), ".corrupt-1-wal").exists(), "the log is kept");
        }
        tally.count(&seen);
    }
    eprintln!("log, {} frames: {tally:?}", whole.len() / 4120);
    assert_eq!(tally.journal, 0, "a damaged log is no damaged database");
    assert!(tally.sessions > 500, "{tally:?}");
}

#[test]
fn no_flipped_bit_goes_unseen_in_the_marks() {
    let folder = Folder::new("mark-flips");
    for (name, image) in [("closed", closed(&folder)), ("crashed", crashed(&Folder::new("mark-2")))]
    {
        let whole = &image.files["-mark"];
        eprintln!("marks, {name}, {} slots: {} tried", whole.len() / 64, whole.len() * 8 / 13);
        for bit in (0..whole.len() * 8).step_by(13) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let what = format!("{name}, mark bit {bit}");
            let (seen, notices) = try_one(&folder, &image, "-mark", &what, &bytes);
            assert_eq!(seen, Seen::Whole, "{what}: the sessions are whole");
            assert!(notices > 0, "{what}: and the mark was noticed");
            let again = Sqlite::open(&folder.journal()).unwrap();
            assert_eq!(again.notices(), Vec::<String>::new(), "{what}: and put right");
        }
    }
}

#[test]
fn nothing_cut_off_or_zeroed_goes_unseen() {
    let folder = Folder::new("cuts");
    let mut tally = Tally::default();
    for (name, image) in [("closed", closed(&folder)), ("crashed", crashed(&Folder::new("cuts-2")))]
    {
        for (file, whole) in &image.files {
            let step = if *file == "-mark" { 32 } else { 2_048 };
            for at in (0..whole.len()).step_by(step) {
                let what = format!("{name} {file:?} cut at {at}");
                let (seen, notices) = try_one(&folder, &image, file, &what, &whole[..at]);
                // What was cut off may have been nobody's, which is told all the same; or the
                // log has it, and then nothing is missing.
                let mended = name == "crashed" && file.is_empty();
                assert!(mended || notices > 0 || seen != Seen::Whole, "{what}");
                tally.count(&seen);
            }
            for at in (0..whole.len()).step_by(step * 4) {
                let mut bytes = whole.clone();
                let end = (at + step.max(512)).min(bytes.len());
                bytes[at..end].fill(0);
                let what = format!("{name} {file:?} zeroed at {at}");
                let (seen, _) = try_one(&folder, &image, file, &what, &bytes);
                tally.count(&seen);
            }
        }
    }
    eprintln!("cut and zeroed: {tally:?}");
}

#[test]
fn a_damaged_session_is_refused_until_somebody_decides() {
    let folder = Folder::new("aside");
    let image = closed(&folder);
    let mut bytes = image.files[""].clone();
    let needle = text(300, 10 * 25 + 3);
    let needle = &needle.as_bytes()[..60];
    let at = bytes.windows(needle.len()).position(|window| window == needle);
    bytes[at.unwrap_or_else(|| panic!("s3 has such a text")) + 5] ^= 4;
    assert!(matches!(try_one(&folder, &image, "", "s3", &bytes).0, Seen::Sessions(_)));

    let journal = Sqlite::open(&folder.journal()).unwrap();
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Damaged { .. })));
    refused(journal.load("s3").map(drop));
    refused(journal.append("s3", Seq(28), &entry(29, "more")));
    refused(journal.append("s3", Seq(0), &entry(1, "anew")));
    let name = journal.set_aside("s3").unwrap();
    refused(journal.load(&name).map(drop));
    assert_eq!(journal.load("s3").unwrap(), []);
    journal.append("s3", Seq(0), &entry(1, "anew")).unwrap();
    drop(journal);
    let journal = Sqlite::open(&folder.journal()).unwrap();
    assert_eq!(journal.load("s3").unwrap(), [entry(1, "anew")]);
    let listed = journal.sessions().unwrap();
    let listed = listed.iter().find(|listed| listed.session == name).unwrap();
    assert!(listed.damaged.as_ref().unwrap().contains("checksum"), "{listed:?}");
    assert_eq!(journal.load("s2").unwrap(), image.entries["s2"]);
}

#[test]
fn a_newer_journal_is_left_as_it_is() {
    let folder = Folder::new("newer");
    let image = closed(&folder);
    let mut bytes = image.files[""].clone();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(folder.journal(), &bytes).unwrap();
    let refused = Sqlite::open(&folder.journal());
    assert!(matches!(refused, Err(Error::Version { found: 99, .. })), "{refused:?}");
    assert_eq!(fs::read(folder.journal()).unwrap(), bytes);
}

#[test]
fn a_journal_that_is_gone_is_not_made_anew() {
    let folder = Folder::new("gone");
    let image = closed(&folder);
    fs::remove_file(folder.journal()).unwrap();
    let refused = Sqlite::open(&folder.journal());
    assert!(matches!(refused, Err(Error::Lost { sessions: 6, .. })), "{refused:?}");
    assert!(!folder.journal().exists());
    image.put(&folder.journal());
    assert_eq!(Sqlite::open(&folder.journal()).unwrap().load("s0").unwrap(), image.entries["s0"]);
}

/// What a kill leaves behind between the first page and the log: that page, and beside it the note
/// that there was none before.
#[test]
fn a_journal_whose_making_was_cut_is_made() {
    let folder = Folder::new("cut-making");
    fs::write(folder.journal(), [0; 4096]).unwrap();
    let mut note = [0; 512];
    note[..8].copy_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    note[20..28].copy_from_slice(&[0, 0, 2, 0, 0, 0, 16, 0]);
    fs::write(beside(&folder.journal(), "-journal"), note).unwrap();
    let journal = Sqlite::open(&folder.journal()).unwrap();
    journal.append("main", Seq(0), &entry(1, "hello")).unwrap();
    drop(journal);
    assert_eq!(Sqlite::open(&folder.journal()).unwrap().load("main").unwrap().len(), 1);
}

#[test]
fn a_session_whose_name_is_lost_is_still_known_by_it() {
    let folder = Folder::new("name");
    let image = closed(&folder);
    let mut bytes = image.files[""].clone();
    // The row of the list of sessions: its name, twice.
    let at = bytes.windows(4).position(|window| window == b"s2s2").unwrap();
    bytes[at] ^= 1;
    let (seen, _) = try_one(&folder, &image, "", "name", &bytes);
    assert_eq!(seen, Seen::Sessions(BTreeSet::from(["s2".to_owned()])));
    let journal = Sqlite::open(&folder.journal()).unwrap();
    assert!(matches!(journal.append("s2", Seq(0), &entry(1, "anew")), Err(Error::Damaged { .. })));
    assert_eq!(journal.set_aside("s2").unwrap(), "s2.corrupt-1");
    journal.append("s2", Seq(0), &entry(1, "anew")).unwrap();
    journal.delete("s2.corrupt-1").unwrap();
    drop(journal);
    let journal = Sqlite::open(&folder.journal()).unwrap();
    assert!(journal.sessions().unwrap().iter().all(|listed| listed.damaged.is_none()));
    assert_eq!(journal.load("s2").unwrap(), [entry(1, "anew")]);
}
