//! A disk that is full: refused with its name, nothing lost, and on again when there is room.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use locum_journal::{Error, Journal, Kept, Records as _, Sqlite};
use locum_kernel::Seq;

use crate::{Folder, entry, text};

/// A file system of a few pages, unmounted when the test is over.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: &Path, size: &str) -> Option<Tiny> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Tiny(path.to_owned()))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_loses_nothing_and_goes_on_when_there_is_room() {
    // On the larger one, entries are of several pages each.
    for (size, ballast, length) in [("512k", 160 << 10, 2_000), ("4m", 1 << 20, 20_000)] {
        let folder = Folder::new(&format!("full-{size}"));
        let Some(tiny) = Tiny::mount(&folder.0.join("tiny"), size) else {
            eprintln!("SKIPPED: small file systems are mounted only by root; nothing was tested");
            return;
        };
        fill_up(&tiny.0, ballast, length);
    }
}

fn fill_up(folder: &Path, ballast: usize, length: usize) {
    let (path, bytes) = (folder.join("journal.db"), vec![1; ballast]);
    let ballast = folder.join("ballast");
    fs::write(&ballast, bytes).unwrap();
    let spare = folder.join("spare");
    fs::write(&spare, vec![1; 80 << 10]).unwrap();
    let journal = Sqlite::open(&path).unwrap();
    let line = |number| entry(number, &text(length, number));
    let append = |number: u64| journal.append("main", Seq(number - 1), &line(number));

    let mut kept = 0;
    let refused = loop {
        match append(kept + 1) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 500, "the disk never was full");
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
    assert!(kept > 3, "{kept}");
    // Still full, still alive, also for others, and everything can be read.
    for _ in 0..3 {
        assert!(matches!(append(kept + 1), Err(Error::Full { .. })));
        let other = journal.append("other", Seq(0), &line(1));
        assert!(matches!(other, Err(Error::Full { .. })), "{other:?}");
        assert_eq!(journal.load("main").unwrap().len() as u64, kept);
    }
    // Those who would have shared a sync are all refused, and nothing of them is there.
    let crowd = ["a", "b", "c", "d"];
    let big = entry(1, &text(60_000, 1));
    let tickets = crowd.map(|session| journal.submit(session, Seq(0), &big));
    for ticket in tickets {
        let result = ticket.wait();
        assert!(matches!(result, Err(Error::Full { .. })), "{result:?}");
    }
    assert!(crowd.iter().all(|session| journal.load(session).unwrap().is_empty()));
    fs::remove_file(&ballast).unwrap();
    for _ in 0..8 {
        append(kept + 1).unwrap();
        kept += 1;
    }
    journal.append("other", Seq(0), &line(1)).unwrap();
    drop(journal);
    // Opened on a full disk, it can still be read.
    let left = fill_disk(&folder.join("more"));
    let journal = Sqlite::open(&path).unwrap();
    let expected: Vec<_> = (1..=kept).map(line).collect();
    assert_eq!(journal.load("main").unwrap(), expected);
    let full = journal.append("main", Seq(kept), &entry(kept + 1, &text(left + 9_000, 1)));
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    // The log may have taken all there was, and emptying it takes some more.
    fs::remove_file(spare).unwrap();
    journal.append("main", Seq(kept), &line(kept + 1)).unwrap();
    drop(journal);
    let journal = Sqlite::open(&path).unwrap();
    let expected: Vec<_> = (1..=kept + 1).map(line).collect();
    assert_eq!(journal.load("main").unwrap(), expected);
    assert_eq!(journal.load("other").unwrap(), [line(1)]);
}

/// Leaves what the database needs to look at itself: the index of its log.
fn fill_disk(path: &Path) -> usize {
    const LEFT: u64 = 40 << 10;
    let mut file = fs::File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(LEFT)).unwrap();
    usize::try_from(LEFT).unwrap()
}

#[test]
fn what_was_kept_back_is_for_entries_and_only_when_nothing_else_is_left() {
    let folder = Folder::new("reserve");
    let Some(tiny) = Tiny::mount(&folder.0.join("tiny"), "4m") else {
        eprintln!("SKIPPED: small file systems are mounted only by root; nothing was tested");
        return;
    };
    let (path, reserve) = (tiny.0.join("journal.db"), tiny.0.join("journal.db-reserve"));
    let journal = Sqlite::open(&path).unwrap();
    // More than half of what is free is left to others. Where it never can be, that is known.
    assert_eq!(journal.keep_reserve(3 << 20).unwrap(), Kept::Nothing);
    let ballast = tiny.0.join("some");
    fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let missing = journal.keep_reserve(1 << 20).unwrap();
    assert!(matches!(missing, Kept::Missing { bytes } if bytes >= 1 << 20), "{missing:?}");
    fs::remove_file(ballast).unwrap();
    assert!(!reserve.exists());
    for _ in 0..2 {
        assert_eq!(journal.keep_reserve(1 << 20).unwrap(), Kept::Room);
        assert_eq!(fs::metadata(&reserve).unwrap().blocks() * 512, 1 << 20);
    }
    let line = |number| entry(number, &text(20_000, number));
    let append = |number: u64| journal.append("main", Seq(number - 1), &line(number));
    append(1).unwrap();
    let left = fill_disk(&tiny.0.join("ballast"));
    // A snapshot only saves time: it is refused, and nothing is taken for it.
    let refused = journal.snapshot("main", Seq(1), &vec![1; left + (200 << 10)]);
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    assert!(reserve.exists() && !journal.is_low());

    let mut kept = 1;
    while !journal.is_low() {
        append(kept + 1).unwrap();
        kept += 1;
        assert!(kept < 100, "the disk never was full");
    }
    assert!(!reserve.exists());
    for _ in 0..5 {
        append(kept + 1).unwrap();
        kept += 1;
    }
    while append(kept + 1).is_ok() {
        kept += 1;
        assert!(kept < 500, "the disk never was full");
    }
    drop(journal);
    fs::remove_file(tiny.0.join("ballast")).unwrap();
    let journal = Sqlite::open(&path).unwrap();
    assert_eq!(journal.load("main").unwrap(), (1..=kept).map(line).collect::<Vec<_>>());
    assert!(!journal.is_low());
}
