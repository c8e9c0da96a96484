//! A file is replaced whole or not at all: written beside under another name, synced, renamed. The
//! other name follows from the file's own, so the next writer finds what a killed one left, and
//! two writers of one file find each other; the kernel frees the lock when its holder dies.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::fs::{fchmod, fchown, flock, fstat, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::diff::hex;
use crate::meta::Facts;
use crate::spot::look;

const DRAFT: OFlags =
    OFlags::WRONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(crate) enum Failure {
    /// Another writer is at it.
    Busy,
    /// It is not what it was when we looked.
    Changed,
    Io(io::Error),
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Io(error.into())
    }
}

/// `before` is what is there now; None: nothing.
pub(crate) fn put(
    folder: &OwnedFd,
    name: &OsStr,
    before: Option<&Facts>,
    bytes: &[u8],
) -> Result<Facts, Failure> {
    // A new file gets what everybody's new files get; a secret one is secret from the start.
    let mode = Mode::from_raw_mode(before.map_or(0o666, |_| 0o600));
    let draft = match Draft::nameless(folder, name, mode) {
        Some(draft) => draft,
        None => Draft::named(folder, name, mode)?,
    };
    put_draft(draft, name, before, bytes)
}

fn put_draft(
    mut draft: Draft<'_>,
    name: &OsStr,
    before: Option<&Facts>,
    bytes: &[u8],
) -> Result<Facts, Failure> {
    let folder = draft.folder;
    draft.file.write_all(bytes)?;
    if let Some(before) = before {
        keep_owner_and_mode(&draft.file, before)?;
    }
    draft.file.sync_all()?;
    draft.appear()?;
    let now = look(folder, name);
    match (now, before) {
        (Ok(now), Some(before)) if now.stamp == before.stamp => {
            renameat(folder, &*draft.name, folder, name)?;
        }
        (Err(Errno::NOENT), None) => draft.create(name)?,
        (Ok(_), _) | (Err(Errno::NOENT), Some(_)) => return Err(Failure::Changed),
        (Err(errno), _) => return Err(errno.into()),
    }
    draft.is_named = false;
    fsync(folder)?;
    Ok(Facts::of(&fstat(&draft.file)?))
}

/// Where the system can, it has no name until it is whole: killed before, it leaves no trace.
struct Draft<'a> {
    folder: &'a OwnedFd,
    name: String,
    file: File,
    is_named: bool,
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.is_named {
            // What stays behind is found by the next writer.
            let _ = unlinkat(self.folder, &*self.name, AtFlags::empty());
        }
    }
}

impl<'a> Draft<'a> {
    /// None: this system or file system cannot.
    fn nameless(folder: &'a OwnedFd, name: &OsStr, mode: Mode) -> Option<Draft<'a>> {
        let file = nameless(folder, mode)?;
        // Nobody else can have it, so this is only refused where there are no locks.
        lock(&file).ok()?;
        let (name, file) = (draft_name(name), File::from(file));
        Some(Draft { folder, name, file, is_named: false })
    }

    fn named(folder: &'a OwnedFd, name: &OsStr, mode: Mode) -> Result<Draft<'a>, Failure> {
        let name = draft_name(name);
        let flags = DRAFT | OFlags::CREATE | OFlags::EXCL;
        let file = free(folder, &name, || openat(folder, &*name, flags, mode))?;
        lock(&file)?;
        if !is_at(&file, folder, &name) {
            return Err(Failure::Busy);
        }
        Ok(Draft { folder, name, file: File::from(file), is_named: true })
    }

    /// Gets its name, if it has none yet.
    fn appear(&mut self) -> Result<(), Failure> {
        if !self.is_named {
            free(self.folder, &self.name, || link(&self.file, self.folder, &self.name))?;
            self.is_named = true;
        }
        Ok(())
    }

    /// Takes the name only if it is still free.
    fn create(&self, name: &OsStr) -> Result<(), Failure> {
        match create(self.folder, &self.name, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(Failure::Changed),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Does what needs the name to be free. What a killed writer left there is cleared away, once.
fn free<T>(
    folder: &OwnedFd,
    name: &str,
    take: impl Fn() -> Result<T, Errno>,
) -> Result<T, Failure> {
    for _ in 0..2 {
        match take() {
            Ok(taken) => return Ok(taken),
            Err(Errno::EXIST) => clear(folder, name)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Failure::Busy)
}

/// None: this system or file system cannot, or could not name it afterwards.
#[cfg(target_os = "linux")]
fn nameless(folder: &OwnedFd, mode: Mode) -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = openat(folder, ".", flags, mode).ok()?;
    rustix::fs::access(in_proc(&file), rustix::fs::Access::EXISTS).is_ok().then_some(file)
}

#[cfg(target_os = "linux")]
fn in_proc(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(target_os = "linux")]
fn link(file: &File, folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    use rustix::fs::{CWD, linkat};
    linkat(CWD, in_proc(file), folder, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &OwnedFd, _: Mode) -> Option<OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &OwnedFd, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn create(folder: &OwnedFd, draft: &str, name: &OsStr) -> Result<(), Errno> {
    use rustix::fs::{RenameFlags, renameat_with};
    match renameat_with(folder, draft, folder, name, RenameFlags::NOREPLACE) {
        // Not every file system can; the look just before has to do.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => renameat(folder, draft, folder, name),
        done => done,
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn create(folder: &OwnedFd, draft: &str, name: &OsStr) -> Result<(), Errno> {
    renameat(folder, draft, folder, name)
}

/// Of fixed length, because the file's own name may already be as long as names can be.
pub(crate) fn draft_name(name: &OsStr) -> String {
    let digest = hex(&Sha256::digest(name.as_bytes()));
    format!(".locum-{}.new", &digest[..16])
}

fn lock(file: &OwnedFd) -> Result<(), Failure> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Failure::Busy),
        // Some network file systems have no locks; the name alone has to do there.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whoever holds the lock of what is at a name is the only one who may take that name away; so a
/// lock is worth something only while its file is still at the name.
fn is_at(file: &OwnedFd, folder: &OwnedFd, name: &str) -> bool {
    let ours = fstat(file).map(|stat| Facts::of(&stat).stamp.inode);
    let there = look(folder, OsStr::new(name)).map(|facts| facts.stamp.inode);
    ours.is_ok_and(|ours| there.is_ok_and(|there| ours == there))
}

/// Removes what a killed writer left. A living one holds its lock.
fn clear(folder: &OwnedFd, name: &str) -> Result<(), Failure> {
    // Open until the end, because the lock goes with it.
    let left = openat(folder, name, DRAFT, Mode::empty());
    match &left {
        Ok(file) => {
            lock(file)?;
            if !is_at(file, folder, name) {
                return Ok(());
            }
        }
        Err(Errno::NOENT) => return Ok(()),
        // A link or whatever else: nobody of ours made it, and it is only a name to be removed.
        Err(_) => {}
    }
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn keep_owner_and_mode(file: &File, before: &Facts) -> Result<(), Failure> {
    let now = Facts::of(&fstat(file)?);
    if now.owner != before.owner {
        let (user, group) = before.owner;
        // Only root can give files away; for others the group alone may still be possible.
        if fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).is_err() {
            let _ = fchown(file, None, Some(Gid::from_raw(group)));
        }
    }
    // Whoever may write a file may not thereby write a program that runs as somebody else.
    Ok(fchmod(file, Mode::from_raw_mode(before.mode & 0o777))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    struct Folder(PathBuf, OwnedFd);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("locum-files-atomic-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            let opened = OwnedFd::from(File::open(&path).unwrap());
            Folder(path, opened)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort_unstable();
            names
        }

        fn put(&self, is_nameless: Nameless, text: &str) -> Result<Facts, Failure> {
            let name = OsStr::new("f");
            let mode = Mode::from_raw_mode(0o600);
            let before = look(&self.1, name).ok();
            let draft = match is_nameless {
                Nameless::Yes => Draft::nameless(&self.1, name, mode),
                Nameless::No => Some(Draft::named(&self.1, name, mode)?),
            };
            // Where it cannot be, there is nothing to test.
            let draft = draft.map_or_else(|| Draft::named(&self.1, name, mode), Ok)?;
            put_draft(draft, name, before.as_ref(), text.as_bytes())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[derive(Clone, Copy)]
    enum Nameless {
        Yes,
        No,
    }

    #[test]
    fn both_ways_replace_and_leave_nothing() {
        for way in [Nameless::Yes, Nameless::No] {
            let folder = Folder::new("both");
            for text in ["one", "two", ""] {
                folder.put(way, text).unwrap();
                assert_eq!(fs::read_to_string(folder.0.join("f")).unwrap(), text);
                assert_eq!(folder.names(), ["f"]);
            }
        }
    }

    #[test]
    fn a_draft_is_respected_while_its_writer_lives() {
        for way in [Nameless::Yes, Nameless::No] {
            let folder = Folder::new("draft");
            let beside = folder.0.join(draft_name(OsStr::new("f")));
            let living = File::create(&beside).unwrap();
            flock(&living, FlockOperation::LockExclusive).unwrap();
            assert!(matches!(folder.put(way, "new"), Err(Failure::Busy)));
            assert!(beside.exists() && !folder.0.join("f").exists());
            drop(living);
            folder.put(way, "new").unwrap();
            assert_eq!(folder.names(), ["f"]);
        }
    }

    #[test]
    fn what_is_in_the_place_of_a_draft_is_not_written() {
        let folder = Folder::new("link");
        fs::write(folder.0.join("other"), "other").unwrap();
        let beside = folder.0.join(draft_name(OsStr::new("f")));
        std::os::unix::fs::symlink("other", &beside).unwrap();
        folder.put(Nameless::No, "new").unwrap();
        assert_eq!(folder.names(), ["f", "other"]);
        assert_eq!(fs::read_to_string(folder.0.join("other")).unwrap(), "other");
    }
}
