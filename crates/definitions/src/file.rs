//! Files of strangers: read beneath a folder, up to a bound, and only if they are plain files.
//! A pipe, a device or a link that leads out is an error at once, never a wait.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::problem::{Place, Problem, Problems};

/// Why a file was not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Refused {
    #[error("{path}: there is no such file")]
    Missing { path: PathBuf },
    #[error("{path}: this is {found}, not a file")]
    NotAFile { path: PathBuf, found: &'static str },
    #[error("{path}: {bytes} bytes, at most {max} are read")]
    TooBig { path: PathBuf, bytes: u64, max: u64 },
    #[error("{path}: leads out of {root}, to {target}")]
    Outside { path: PathBuf, root: PathBuf, target: PathBuf },
    #[error("{path}: not UTF-8 text (byte {byte})")]
    NotText { path: PathBuf, byte: usize, place: Place },
    #[error("{path}: a NUL (byte {byte}), so no text")]
    Nul { path: PathBuf, byte: usize, place: Place },
    #[error("{path}: cannot be read")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Refused {
    /// The same as something to mend in `file`.
    #[must_use]
    pub fn problems(&self, file: &Path) -> Vec<Problem> {
        let problems = Problems::new(file);
        self.tell(&problems);
        problems.take()
    }

    /// The same as something to mend.
    pub(crate) fn tell(&self, problems: &Problems) {
        let start = Place::START;
        match self {
            Refused::Missing { path } => {
                let what = format!("{} does not exist", path.display());
                problems.error(start, what, "nothing was read", "check the name");
            }
            Refused::NotAFile { found, .. } => {
                let why = "only plain files are read";
                problems.error(start, format!("this is {found}"), why, "put a text file here");
            }
            Refused::TooBig { bytes, max, .. } => {
                let what = format!("{bytes} bytes");
                let why = format!("at most {max} bytes are read");
                problems.error(start, what, why, "keep long texts in files of their own");
            }
            Refused::Outside { root, target, .. } => {
                let what = format!("leads to {}", target.display());
                let why = format!("nothing outside {} is read", root.display());
                problems.error(start, what, why, "copy the file here");
            }
            Refused::NotText { byte, place, .. } => {
                let what = format!("byte {byte} is not UTF-8 text");
                problems.error(*place, what, "definitions are text", "save the file as UTF-8");
            }
            Refused::Nul { byte, place, .. } => {
                let what = format!("byte {byte} is a NUL");
                let how = "delete it; if there are many, save the file as UTF-8";
                problems.error(*place, what, "no text has one", how);
            }
            Refused::Io { source, .. } => {
                let why = source.to_string();
                problems.error(start, "cannot be read", why, "check who may read it");
            }
        }
    }
}

/// The text of a plain file beneath `root`: no byte order mark, lines ended by `\n`.
pub fn read(path: &Path, root: &Path, max: u64) -> Result<String, Refused> {
    let bytes = read_bytes(path, root, max)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let byte = error.utf8_error().valid_up_to();
            let good = String::from_utf8_lossy(&error.as_bytes()[..byte]).into_owned();
            let place = Place::of_byte(&good, byte);
            return Err(Refused::NotText { path: path.to_owned(), byte, place });
        }
    };
    if let Some(byte) = text.find('\0') {
        let place = Place::of_byte(&text, byte);
        return Err(Refused::Nul { path: path.to_owned(), byte, place });
    }
    Ok(plain(text))
}

/// As every reader here wants it.
pub(crate) fn plain(text: String) -> String {
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

fn read_bytes(path: &Path, root: &Path, max: u64) -> Result<Vec<u8>, Refused> {
    let real = beneath(path, root)?;
    let failed = |source| Refused::Io { path: path.to_owned(), source };
    plain_file(path, &fs::metadata(&real).map_err(failed)?, max)?;
    let file = open(&real).map_err(failed)?;
    // Looked at again: what was checked and what was opened may be two things.
    plain_file(path, &file.metadata().map_err(failed)?, max)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(failed)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > max {
        return Err(Refused::TooBig { path: path.to_owned(), bytes: length, max });
    }
    Ok(bytes)
}

/// The real path, which is beneath the real root.
pub fn beneath(path: &Path, root: &Path) -> Result<PathBuf, Refused> {
    let real = |asked: &Path| {
        fs::canonicalize(asked).map_err(|source| {
            let path = asked.to_owned();
            if source.kind() == io::ErrorKind::NotFound {
                Refused::Missing { path }
            } else {
                Refused::Io { path, source }
            }
        })
    };
    let target = real(path)?;
    let root = real(root)?;
    if target.starts_with(&root) {
        return Ok(target);
    }
    Err(Refused::Outside { path: path.to_owned(), root, target })
}

fn plain_file(path: &Path, data: &Metadata, max: u64) -> Result<(), Refused> {
    if !data.is_file() {
        return Err(Refused::NotAFile { path: path.to_owned(), found: kind(data) });
    }
    if data.len() > max {
        return Err(Refused::TooBig { path: path.to_owned(), bytes: data.len(), max });
    }
    Ok(())
}

#[cfg(unix)]
fn kind(data: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = data.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn kind(data: &Metadata) -> &'static str {
    if data.is_dir() { "a folder" } else { "something else" }
}

/// A pipe put in the file's place between look and open must not wait for a writer.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
