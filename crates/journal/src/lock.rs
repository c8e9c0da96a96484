//! Who may write: one process holds a kernel lock on a small file beside the journal, and the
//! file says who. The kernel frees the lock the instant its holder dies, however it dies. Rust
//! opens files close-on-exec, so tools started by the holder do not inherit it; only between
//! fork and exec does a child hold a copy, and that is why a refused lock is tried for a while.
//!
//! Taking over puts a fresh, locked file in the place of the old one: a holder that is stopped
//! keeps a lock that means nothing any more. What keeps it from writing is the epoch in the
//! database, not this file.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use locum_kernel::Time;

use crate::Error;
use crate::private::open;

/// Together half a second: far longer than a fork, and below the two seconds an error may take
/// even where every pause is twice as long as asked for.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// Who holds a journal, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    pub pid: Option<u32>,
    pub host: String,
    pub since: Option<Time>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid} on {}", self.host),
            None => write!(f, "a process that did not say its name"),
        }
    }
}

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    pub(crate) fn acquire(path: &Path) -> Result<Lock, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        for _ in 0..TRIES {
            if let Some(mut file) = attempt(path).map_err(failed)? {
                sign(&mut file).map_err(failed)?;
                return Ok(Lock { file, path: path.to_owned() });
            }
            thread::sleep(PAUSE);
        }
        Err(Error::Locked { path: path.to_owned(), holder: holder(path) })
    }

    /// Takes the place of whoever holds the lock now.
    pub(crate) fn take_over(path: &Path) -> Result<Lock, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{}", process::id()));
        let fresh = PathBuf::from(name);
        let mut file = open(&fresh).map_err(failed)?;
        file.lock().map_err(failed)?;
        sign(&mut file).map_err(failed)?;
        fs::rename(&fresh, path).map_err(failed)?;
        Ok(Lock { file, path: path.to_owned() })
    }

    /// Nobody has taken over since.
    pub(crate) fn is_held(&self) -> bool {
        still_there(&self.file, &self.path)
    }

    /// Who did.
    pub(crate) fn lost(&self) -> Error {
        Error::Locked { path: self.path.clone(), holder: holder(&self.path) }
    }
}

/// None: somebody else has it.
fn attempt(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match file.try_lock() {
        // Taken over between opening and locking: this is the lock of nothing.
        Ok(()) if !still_there(&file, path) => Ok(None),
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(unix)]
fn still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |(a, b): (fs::Metadata, fs::Metadata)| a.ino() == b.ino() && a.dev() == b.dev();
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(same)
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn still_there(_: &File, _: &Path) -> bool {
    true
}

/// The file's own time says since when, so that no clock is read here. A full disk is no reason
/// not to hold the lock: it only leaves the holder unnamed.
fn sign(file: &mut File) -> io::Result<()> {
    let signed = file.set_len(0);
    let signed = signed.and_then(|()| write!(file, "{}\n{}\n", process::id(), host()));
    match signed {
        Err(error) if error.kind() != io::ErrorKind::StorageFull => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn holder(path: &Path) -> Holder {
    let mut text = String::new();
    let mut holder = Holder::default();
    let Ok(mut file) = File::open(path) else { return holder };
    if file.read_to_string(&mut text).is_ok() {
        let mut lines = text.lines();
        holder.pid = lines.next().and_then(|pid| pid.parse().ok());
        lines.next().unwrap_or_default().clone_into(&mut holder.host);
    }
    let changed = file.metadata().and_then(|data| data.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    holder.since = since.and_then(|since| u64::try_from(since.as_millis()).ok()).map(Time);
    holder
}

fn host() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = || std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok();
    kernel.or_else(named).map_or_else(|| "this machine".to_owned(), |name| name.trim().to_owned())
}
