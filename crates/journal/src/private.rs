//! The files of a journal are their owner's alone: what agents read and were told lies in them.
//! Each is made so, whatever the folder is; one that an older version made is put right by its
//! owner. Paths, never open files: whoever closes a database's file gives up the locks on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to read and write, and makes it if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    restrict(&mut options);
    options.open(path)
}

/// An empty file where there is none. What the database puts beside it is as private as it is.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    restrict(&mut options);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
pub(crate) fn restrict(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(not(unix))]
pub(crate) fn restrict(_: &mut OpenOptions) {}

/// Takes from others what they may do with a file that is ours. One that is not, not there, or on
/// a disk without such rights stays as it is: nothing depends on it.
#[cfg(unix)]
pub(crate) fn tighten(path: &Path) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let Ok(data) = std::fs::metadata(path) else { return };
    let is_ours = data.is_file() && data.uid() == rustix::process::geteuid().as_raw();
    let mut rights = data.permissions();
    if is_ours && rights.mode() & 0o077 != 0 {
        rights.set_mode(rights.mode() & 0o700);
        let _ = std::fs::set_permissions(path, rights);
    }
}

#[cfg(not(unix))]
pub(crate) fn tighten(_: &Path) {}
