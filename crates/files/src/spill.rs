//! Results too long for a conversation: the whole is kept in a file named after its content, and
//! the conversation gets the beginning, the end and a handle. Reading a handle reads that file
//! and never runs anything again.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, fsync, openat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::atomic::{self, Failure};
use crate::diff::hex;
use crate::error::{Error, shown};
use crate::meta::Facts;
use crate::rows::{Long, Rows};
use crate::spot::{FILE, FOLDER};

/// What is longer is cut.
pub(crate) const SHOWN_BYTES_MAX: usize = 32 << 10;
const HEAD_BYTES: usize = 16 << 10;
const TAIL_BYTES: usize = 8 << 10;
/// Of more than this, the middle is lost, and the file says how much.
const KEPT_BYTES_MAX: usize = 64 << 20;
const KEPT_TAIL_BYTES: usize = 8 << 20;
/// Digits of the content's digest in a handle: short enough to be copied by a model. If two
/// contents should share them, the second gets more.
const DIGITS: usize = 16;
const DIGITS_MORE: usize = 16;
/// Somebody else keeps the same content at this moment. Together two seconds.
const TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// `spill:` and the first digits of the content's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle(String);

impl Handle {
    /// None: it is a path.
    pub fn parse(text: &str) -> Option<Handle> {
        text.strip_prefix("spill:").map(|digits| Handle(digits.to_owned()))
    }

    fn is_possible(&self) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (DIGITS..=64).contains(&self.0.len()) && self.0.bytes().all(is_digit)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spill:{}", self.0)
    }
}

/// A result as it goes into a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub text: String,
    /// None: it was short enough.
    pub handle: Option<Handle>,
}

#[derive(Debug)]
pub struct Spills {
    folder: OwnedFd,
    named: String,
}

impl Spills {
    /// The folder is made if need be, for its owner only.
    pub fn open_in(folder: &Path) -> Result<Spills, Error> {
        let named = shown(&folder.to_string_lossy());
        let failed = |error: io::Error| Error::io(&named, error);
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = fs::File::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
            parent.sync_all().map_err(failed)?;
        }
        let opened = openat(CWD, folder, FOLDER, Mode::empty());
        let folder = opened.map_err(|errno| failed(errno.into()))?;
        Ok(Spills { folder, named })
    }

    /// On disk and synced when this returns. The same text has the same handle.
    pub fn keep(&self, text: &str) -> Result<Handle, Error> {
        let shortened;
        let text = if text.len() > KEPT_BYTES_MAX {
            shortened = without_middle(text);
            &shortened
        } else {
            text
        };
        let digest = hex(&Sha256::digest(text));
        let mut digits = DIGITS;
        for _ in 0..TRIES {
            let name = &digest[..digits];
            let handle = Handle(name.to_owned());
            let before = match self.look(name)? {
                // It may have been seen before its folder was synced.
                Some((facts, found)) if found == digest => {
                    let synced = fsync(&self.folder);
                    synced.map_err(|errno| Error::io(&self.named, errno))?;
                    debug_assert!(facts.size == text.len() as u64);
                    return Ok(handle);
                }
                Some((_, found)) if found.starts_with(name) => {
                    digits = (digits + DIGITS_MORE).min(digest.len());
                    continue;
                }
                // What is there is damaged.
                Some((facts, _)) => Some(facts),
                None => None,
            };
            let name = OsStr::new(name);
            match atomic::put(&self.folder, name, before.as_ref(), text.as_bytes()) {
                Ok(_) => return Ok(handle),
                Err(Failure::Busy | Failure::Changed) => thread::sleep(PAUSE),
                Err(Failure::Io(error)) => return Err(Error::io(&self.named, error)),
            }
        }
        Err(Error::Busy { path: self.named.clone() })
    }

    /// Short text as it is. Of long text the beginning, the end, and how to read the rest.
    pub fn cut(&self, text: &str) -> Result<Cut, Error> {
        if text.len() <= SHOWN_BYTES_MAX {
            return Ok(Cut { text: text.to_owned(), handle: None });
        }
        let handle = self.keep(text)?;
        let failed = |error| Error::io(&self.named, error);
        let mut rows = Rows::new(text.as_bytes(), Long::Wrap);
        let head = rows.page(usize::MAX, HEAD_BYTES).map_err(failed)?;
        let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
        // From the start of a line, if lines are not endless. The last letter starts none.
        let last = text.floor_char_boundary(text.len() - 1);
        let line = text[tail..last].find('\n').map(|at| tail + at + 1);
        let tail = line.unwrap_or(tail);
        let left_out = tail.saturating_sub(head.text.len());
        let next = head.rows + 1;
        let text = format!(
            "{}[… {left_out} of {} bytes are left out here; all of it is kept: \
             read {{\"path\": \"{handle}\", \"offset\": {next}}} …]\n{}",
            head.text,
            text.len(),
            &text[tail..]
        );
        Ok(Cut { text, handle: Some(handle) })
    }

    /// Whole and undamaged, or an error.
    pub(crate) fn open(&self, handle: &Handle) -> Result<File, Error> {
        let said = || shown(&handle.to_string());
        if !handle.is_possible() {
            return Err(Error::NoSpill { handle: said() });
        }
        let failed = |error: io::Error| Error::io(&said(), error);
        let mut file = match openat(&self.folder, &*handle.0, FILE, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Err(Error::NoSpill { handle: said() }),
            Err(errno) => return Err(failed(errno.into())),
        };
        if !digest(&mut file).map_err(failed)?.starts_with(&handle.0) {
            return Err(Error::BadSpill { handle: said() });
        }
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    /// What is there under that name, and the digest of its content.
    fn look(&self, name: &str) -> Result<Option<(Facts, String)>, Error> {
        let failed = |error: io::Error| Error::io(&self.named, error);
        let mut file = match openat(&self.folder, name, FILE, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(errno.into())),
        };
        let facts = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        let digest = digest(&mut file).map_err(failed)?;
        Ok(Some((Facts::of(&facts), digest)))
    }
}

fn digest(file: &mut File) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&buffer[..count]),
        }
    }
}

fn without_middle(text: &str) -> String {
    let head = text.floor_char_boundary(KEPT_BYTES_MAX - KEPT_TAIL_BYTES);
    let tail = text.ceil_char_boundary(text.len() - KEPT_TAIL_BYTES);
    let lost = tail - head;
    format!("{}\n[… {lost} bytes were not kept …]\n{}", &text[..head], &text[tail..])
}
