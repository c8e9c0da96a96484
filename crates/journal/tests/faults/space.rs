//! A disk that is full: refused with its name, nothing lost, and on again when there is room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use locum_journal::{Error, Journal, Records as _, Sqlite};
use locum_kernel::Seq;

use crate::{Folder, entry, text};

/// A file system of a few pages, unmounted when the test is over.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: &Path) -> Option<Tiny> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(path);
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
    let folder = Folder::new("full");
    let Some(tiny) = Tiny::mount(&folder.0.join("tiny")) else {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
        return;
    };
    let ballast = tiny.0.join("ballast");
    fs::write(&ballast, vec![1; 200 << 10]).unwrap();
    let path = tiny.0.join("journal.db");
    let journal = Sqlite::open(&path).unwrap();
    let line = |number| entry(number, &text(2_000, number));
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
    for _ in 0..10 {
        append(kept + 1).unwrap();
        kept += 1;
    }
    journal.append("other", Seq(0), &line(1)).unwrap();
    drop(journal);
    let journal = Sqlite::open(&path).unwrap();
    let expected: Vec<_> = (1..=kept).map(line).collect();
    assert_eq!(journal.load("main").unwrap(), expected);
    assert_eq!(journal.load("other").unwrap(), [line(1)]);
}
