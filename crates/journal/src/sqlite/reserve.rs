//! Room on the disk that is kept back for the day it is full: a file of nothing, removed when an
//! entry would not fit any more, so that what has happened by then can still be written down. From
//! then on the journal is low, and whoever drives a session begins nothing new. The last of it
//! stays for whoever makes room: deleting takes some, too.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::Sqlite;
use super::keep::beside;
use super::writer::lock;
use crate::Error;
use crate::private::restrict;

/// Enough to open the journal and delete any session: only what lists free pages is written, and
/// what says who points to them.
const LAST_BYTES: u64 = 2 << 20;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Sqlite {
    /// Keeps so much room back, unless that would take what little there is. What was kept before
    /// and is still there is kept, however full the disk is by now.
    pub fn keep_reserve(&self, bytes: u64) -> Result<Kept, Error> {
        let path = beside(&self.shared.path, "-reserve");
        let made = Reserve::make(&path, bytes);
        let (kept, reserve) = made.map_err(|source| Error::File { path, source })?;
        lock(&self.writer).reserve = reserve;
        Ok(kept)
    }

    /// Opens the journal for somebody who wants to make room in it: on a disk that is full the
    /// reserve, if there is one, may be used for that.
    pub fn open_to_make_room(path: &Path) -> Result<Sqlite, Error> {
        let reserve = || Reserve { path: beside(path, "-reserve") };
        let mut opened = Sqlite::open(path);
        // Whoever had it open would have been met before the full disk was. Twice at most: what
        // is kept for a run, then the last of it.
        while matches!(opened, Err(Error::NoRoom { .. })) && reserve().release().is_ok() {
            opened = Sqlite::open(path);
        }
        let journal = opened?;
        if reserve().path.exists() {
            lock(&journal.writer).reserve = Some(reserve());
        }
        Ok(journal)
    }

    /// The reserve had to be used.
    pub(super) fn uses_reserve(&self) -> bool {
        self.shared.low.load(Ordering::Acquire)
    }
}

/// What came of keeping room back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Room,
    /// The file system is so small that it never had room for it: a full disk refuses entries at
    /// once there, and whoever uses such a disk has chosen that.
    Nothing,
    /// The disk is too full for it, by so many bytes.
    Missing {
        bytes: u64,
    },
}

impl Kept {
    /// What would come of keeping so much back beside a journal, for whoever cannot open it.
    pub fn expected(journal: &Path, bytes: u64) -> io::Result<Kept> {
        let path = beside(journal, "-reserve");
        if Reserve::is_kept(&path, bytes) {
            return Ok(Kept::Room);
        }
        Ok(Disk::at(&path)?.judge(bytes))
    }
}

/// How large a file system is, and how much of it is free.
struct Disk {
    size: u64,
    free: u64,
}

impl Disk {
    /// Taking the last room would bring about what it is kept for: so as much again stays free.
    fn judge(&self, bytes: u64) -> Kept {
        let wanted = bytes.saturating_mul(2);
        match wanted.saturating_sub(self.free) {
            0 => Kept::Room,
            _ if self.size <= wanted => Kept::Nothing,
            bytes => Kept::Missing { bytes },
        }
    }
}

impl Reserve {
    fn is_kept(path: &Path, bytes: u64) -> bool {
        fs::metadata(path).is_ok_and(|data| data.len() == bytes && is_there(&data))
    }

    fn make(path: &Path, bytes: u64) -> io::Result<(Kept, Option<Reserve>)> {
        let reserve = Reserve { path: path.to_owned() };
        if Reserve::is_kept(path, bytes) {
            return Ok((Kept::Room, Some(reserve)));
        }
        // What is left of one that was used stays, until there is room for a new one.
        match Disk::at(path)?.judge(bytes) {
            Kept::Room => {}
            none @ (Kept::Nothing | Kept::Missing { .. }) => return Ok((none, None)),
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        restrict(&mut options);
        match options.open(path).and_then(|file| claim(&file, bytes)) {
            Ok(()) => Ok((Kept::Room, Some(reserve))),
            Err(error) => {
                let _ = fs::remove_file(path);
                if error.kind() == io::ErrorKind::StorageFull {
                    return Ok((Kept::Missing { bytes }, None));
                }
                Err(error)
            }
        }
    }

    /// Gives back all but the last of it; then that, too.
    pub(super) fn release(self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        if file.metadata()?.len() > LAST_BYTES {
            return file.set_len(LAST_BYTES);
        }
        fs::remove_file(self.path)
    }
}

/// A file can be long and hold nothing, such as one that was copied.
#[cfg(unix)]
fn is_there(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    data.blocks().saturating_mul(512) >= data.len()
}

#[cfg(not(unix))]
fn is_there(_: &fs::Metadata) -> bool {
    true
}

impl Disk {
    /// Where this file is or would be, which takes no room of its own.
    #[cfg(unix)]
    fn at(path: &Path) -> io::Result<Disk> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new(".")))?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        let own = fs::metadata(path).map_or(0, |data| data.len());
        let free = bytes(disk.f_bavail).saturating_add(own);
        Ok(Disk { size: bytes(disk.f_blocks), free })
    }

    #[cfg(not(unix))]
    fn at(_: &Path) -> io::Result<Disk> {
        Ok(Disk { size: u64::MAX, free: u64::MAX })
    }
}

#[cfg(target_os = "linux")]
fn claim(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Not every file system can; every one can be written to.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file, bytes),
        claimed => Ok(claimed?),
    }
}

#[cfg(not(target_os = "linux"))]
fn claim(file: &File, bytes: u64) -> io::Result<()> {
    fill(file, bytes)
}

fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    let mut nothing = io::Read::take(io::repeat(0), bytes);
    io::copy(&mut nothing, &mut file)?;
    file.sync_all()
}
