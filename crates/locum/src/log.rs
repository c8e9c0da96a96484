//! What the program does, one line each with its time and how much it matters: in the file that
//! `--log` names, and with `-v` on standard error. Names, numbers and states only. What was said,
//! read and printed is in the journal and belongs there; a key is nowhere.

mod lines;

use std::env;
use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use locum_runtime::clock::{Clock as _, System, rfc3339};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::complaint::{Complaint, USAGE, told};
use crate::flags::Face;
use crate::text::row;

pub(crate) use lines::Teller;

/// A line that is longer tells more than what was done.
const CHARACTERS_MAX: usize = 2_000;
/// Shorter values of variables are words, and words may occur.
const KEY_BYTES_MIN: usize = 8;

static IS_ON: OnceLock<()> = OnceLock::new();

/// Where lines go.
struct Log {
    file: Option<Mutex<Kept>>,
    /// For standard error, and up to which level.
    shown: Option<Level>,
    /// What must not be in any line.
    keys: Vec<String>,
}

struct Kept {
    file: File,
    path: PathBuf,
    /// That it cannot be written is said once.
    is_broken: bool,
}

/// Opens what is asked for. The file is opened before anything is done: whoever wants a log would
/// rather not begin than have none.
pub(crate) fn open(face: &Face) -> Result<(), Complaint> {
    let named = env::var_os("LOCUM_LOG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let file = match face.log.clone().or(named) {
        Some(path) => {
            let file = append(&path).map_err(|error| unwritable(&path, &error))?;
            Some(Mutex::new(Kept { file, path, is_broken: false }))
        }
        None => None,
    };
    let shown = match face.verbose {
        0 => None,
        1 => Some(Level::INFO),
        _ => Some(Level::DEBUG),
    };
    if file.is_none() && shown.is_none() {
        return Ok(());
    }
    let log = Log { file, shown, keys: keys() };
    // Nobody else in this program sets one.
    if tracing::subscriber::set_global_default(log).is_ok() {
        let _ = IS_ON.set(());
    }
    Ok(())
}

/// Whether anybody wants to know.
pub(crate) fn is_on() -> bool {
    IS_ON.get().is_some()
}

/// Files, devices and terminals. Whoever opens a pipe waits until somebody reads it, and whoever
/// writes to it, for them: no work waits for its log.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
        let kind = std::fs::metadata(path).map(|data| data.file_type());
        if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir() && !kind.is_char_device()) {
            return Err(io::Error::other("it is a pipe or something else that is no file"));
        }
        options.mode(0o600);
    }
    options.open(path)
}

fn unwritable(path: &Path, error: &dyn Error) -> Complaint {
    Complaint {
        code: "E117",
        what: format!("The log cannot be written to {}.", path.display()),
        cause: told(error),
        next: "name a file that can be written with --log FILE, then run again".into(),
        exit: USAGE,
    }
}

/// What is secret in this program's environment, by the names that such variables have.
fn keys() -> Vec<String> {
    let is_secret = |name: &str| {
        ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|end| name.to_uppercase().ends_with(end))
    };
    let secrets = env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let value = value.into_string().ok()?;
        (is_secret(&name) && value.len() >= KEY_BYTES_MIN).then_some(value)
    });
    secrets.collect()
}

impl Log {
    fn scrubbed(&self, text: &str) -> String {
        let without = |text: String, key: &String| text.replace(key.as_str(), "[key]");
        row(&self.keys.iter().fold(text.to_owned(), without), CHARACTERS_MAX)
    }

    fn keep(&self, line: &str) {
        let Some(file) = &self.file else { return };
        let mut kept = file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write for one line: others may append to the same file.
        let Err(error) = kept.file.write_all(line.as_bytes()) else { return };
        if !std::mem::replace(&mut kept.is_broken, true) {
            // Not through `note`, which would come here again.
            let path = kept.path.display();
            let _ = writeln!(io::stderr(), "note: the log {path} cannot be written: {error}");
        }
    }
}

/// Notes are on standard error anyway.
pub(crate) const NOTE: &str = "locum::note";

impl Subscriber for Log {
    /// Only what we say ourselves: what libraries tell of their work may hold anything.
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        let is_wanted =
            self.file.is_some() || self.shown.is_some_and(|most| *about.level() <= most);
        about.target().starts_with("locum") && *about.level() <= Level::DEBUG && is_wanted
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        let level = *event.metadata().level();
        let text = self.scrubbed(&words.0);
        let line = format!("{} {:<5} {text}\n", rfc3339(System.now()), level.as_str());
        self.keep(&line);
        let is_shown = self.shown.is_some_and(|most| level <= most);
        if is_shown && event.metadata().target() != NOTE {
            // If standard error is closed there is nobody left to tell.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    // Nothing here has a beginning and an end: sessions have, and their lines say so.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message first, then what belongs to it.
#[derive(Default)]
struct Words(String);

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.insert_str(0, value);
        } else {
            let _ = write!(self.0, " {}={value}", field.name());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_without_keys() {
        let log = Log { file: None, shown: None, keys: vec!["sk-12345678".to_owned()] };
        let cases = [
            ("401: bad sk-12345678, try another", "401: bad [key], try another"),
            ("one\ntwo\u{1b}[2J\r\nthree", "one two three"),
        ];
        for (text, expected) in cases {
            assert_eq!(log.scrubbed(text), expected);
        }
        assert_eq!(log.scrubbed(&"x".repeat(5_000)).chars().count(), CHARACTERS_MAX);
    }
}
