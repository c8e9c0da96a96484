//! Nobody but the owner reads a journal: not while it is written, not where the folder is open to
//! all, and not what an older version left behind.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use locum_journal::{Journal as _, Records as _, Sqlite};
use locum_kernel::{Entry, Event, Seq, Time, VERSION};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-own-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Folder(path)
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    /// Every file there is, with who may do what.
    fn files(&self) -> Vec<(String, u32)> {
        let mut files: Vec<(String, u32)> = fs::read_dir(&self.0)
            .unwrap()
            .map(|file| {
                let file = file.unwrap();
                let mode = file.metadata().unwrap().permissions().mode() & 0o777;
                (file.file_name().into_string().unwrap(), mode)
            })
            .collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ALL: [&str; 6] = [
    "journal.db",
    "journal.db-lock",
    "journal.db-mark",
    "journal.db-reserve",
    "journal.db-shm",
    "journal.db-wal",
];

fn write(journal: &Sqlite, session: &str) {
    let events = vec![Event::Opened { session: session.to_owned() }];
    let entry = Entry { v: VERSION, seq: Seq(1), at: Time(1), events };
    journal.append(session, Seq(0), &entry).unwrap();
}

fn private() -> Vec<(String, u32)> {
    ALL.iter().map(|name| ((*name).to_owned(), 0o600)).collect()
}

fn open(path: &Path) -> Sqlite {
    let journal = Sqlite::open(path).unwrap();
    journal.keep_reserve(4_096).unwrap();
    journal
}

#[test]
fn every_file_is_its_owners_from_the_start() {
    let folder = Folder::new("new");
    let journal = open(&folder.journal());
    write(&journal, "a");
    assert_eq!(folder.files(), private());
    // Whoever takes over makes a lock of its own.
    drop(journal);
    let journal = Sqlite::take_over(&folder.journal()).unwrap();
    write(&journal, "b");
    assert_eq!(folder.files(), private());
}

#[test]
fn what_an_older_version_left_open_is_closed_by_its_owner() {
    let folder = Folder::new("old");
    let journal = open(&folder.journal());
    write(&journal, "a");
    // As after a death: the log is still there.
    let copies: Vec<_> = ALL.map(|name| (name, fs::read(folder.0.join(name)).unwrap())).into();
    drop(journal);
    for (name, bytes) in copies {
        fs::write(folder.0.join(name), bytes).unwrap();
        fs::set_permissions(folder.0.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    let journal = open(&folder.journal());
    write(&journal, "b");
    assert_eq!(folder.files(), private());
    assert_eq!(journal.load("a").unwrap().len(), 1);
    assert_eq!(journal.notices(), [""; 0]);
}
