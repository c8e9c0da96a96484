//! Files of our own, in the data folder: nobody else can read them, there is the old text or the
//! new one, and one process at a time changes them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{process, thread};

/// Somebody else writes for a few milliseconds.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Counts drafts of this process: two of one file may be under way.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// On disk when this returns. Its folder is made if it is not there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    make_folder(folder)?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("draft-{}-{number}", process::id()));
    let written = write_draft(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Nobody would ever look for it.
        let _ = fs::remove_file(&draft);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write_draft(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that a killed program of the same number left, or a link somebody put there.
    let _ = fs::remove_file(draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = private(&mut options).open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Held until what is returned is dropped. Somebody who holds it for long is not waited for.
pub fn lock(path: &Path) -> io::Result<File> {
    make_folder(path.parent().unwrap_or(path))?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = private(&mut options).open(path)?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    let held = format!("another program holds {}", path.display());
    Err(io::Error::new(io::ErrorKind::WouldBlock, held))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
