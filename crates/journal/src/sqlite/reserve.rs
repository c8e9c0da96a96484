//! Room on the disk that is kept back for the day it is full: a file of nothing, removed when an
//! entry would not fit any more, so that what has happened by then can still be written down. From
//! then on the journal is low, and whoever drives a session begins nothing new.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::Sqlite;
use super::keep::beside;
use super::writer::lock;
use crate::Error;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Sqlite {
    /// Keeps so much room back, unless that would take what little there is: then there is none,
    /// as the answer says, and a full disk refuses entries at once.
    pub fn keep_reserve(&self, bytes: u64) -> Result<Kept, Error> {
        let path = beside(&self.shared.path, "-reserve");
        let reserve = Reserve::make(&path, bytes);
        let reserve = reserve.map_err(|source| Error::File { path, source })?;
        let kept = if reserve.is_some() { Kept::Room } else { Kept::Nothing };
        lock(&self.writer).reserve = reserve;
        Ok(kept)
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
    /// The disk is too full for it.
    Nothing,
}

impl Reserve {
    fn make(path: &Path, bytes: u64) -> io::Result<Option<Reserve>> {
        let reserve = Reserve { path: path.to_owned() };
        if fs::metadata(path).is_ok_and(|data| data.len() == bytes && is_there(&data)) {
            return Ok(Some(reserve));
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let made = options.open(path).and_then(|file| {
            // Taking the last room would bring about what it is kept for.
            if free(&file)? < bytes.saturating_mul(2) {
                return Ok(false);
            }
            claim(&file, bytes).map(|()| true)
        });
        match made {
            Ok(true) => return Ok(Some(reserve)),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            Err(error) => {
                let _ = fs::remove_file(path);
                return Err(error);
            }
        }
        fs::remove_file(path)?;
        Ok(None)
    }

    pub(super) fn release(self) -> io::Result<()> {
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

#[cfg(unix)]
fn free(file: &File) -> io::Result<u64> {
    let disk = rustix::fs::fstatvfs(file)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &File) -> io::Result<u64> {
    Ok(u64::MAX)
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
