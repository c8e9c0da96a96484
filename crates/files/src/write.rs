//! `write`: a whole file, new or in the place of one that was read. Folders on the way are made.

use std::ffi::OsStr;
use std::fs::File;

use rustix::fs::{Mode, fsync, mkdirat, openat};
use rustix::io::Errno;

use crate::args::Write;
use crate::atomic::{self, Failure};
use crate::desk::{Answer, Desk};
use crate::diff::{Change, ChangeKind, hex, unified};
use crate::error::Error;
use crate::meta::Facts;
use crate::read::take_in;
use crate::seen::Mark;
use crate::spot::{FOLDER, Spot};
use crate::text::{Encoding, Ending, Text};

/// As much as a model can say at once, and then some.
const WRITE_BYTES_MAX: usize = 8 << 20;

/// A file as it is before it is changed by somebody who has read it.
pub(crate) struct Before {
    pub(crate) facts: Facts,
    /// None: it is large.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) mark: Mark,
    /// Open until it is replaced: the number of a file that is gone may be given to the next.
    _file: File,
}

impl Desk {
    pub fn write(&self, reader: &str, args: &Write) -> Result<Answer, Error> {
        if args.content.len() > WRITE_BYTES_MAX {
            let (bytes, most) = (args.content.len() as u64, WRITE_BYTES_MAX as u64);
            let path = crate::error::shown(&args.path);
            return Err(Error::Large { path, tool: "write", bytes, most });
        }
        let spot = self.roots.to_write(&args.path)?;
        let new = args.content.as_bytes();
        let said = spot.root.say(&spot.path);
        if spot.facts.is_none() {
            let spot = make_folders(spot)?;
            self.put(reader, &spot, None, new)?;
            let change = Change::new(said, ChangeKind::Created, None, new, String::new());
            let text = format!("{} created, {} bytes", change.path, new.len());
            return Ok(Answer { change: Some(change), ..Answer::text(text) });
        }
        let before = self.before(reader, &spot)?;
        if before.bytes.as_deref() == Some(new) {
            return Ok(Answer::text(format!("{said} is already so; nothing was written")));
        }
        self.put(reader, &spot, Some(&before.facts), new)?;
        let old = before.bytes.as_deref().and_then(Text::decode);
        let diff = old.as_ref().map(|old| unified(&said, &old.body, &args.content));
        let mut text = format!("{said} written, {} bytes", new.len());
        text.push_str(old.as_ref().map_or("", lost));
        let diff = diff.unwrap_or_default();
        if !diff.is_empty() {
            text = format!("{text}\n{diff}");
        }
        let was = match before.mark {
            Mark::Content(digest) => Some(hex(&digest)),
            Mark::Stamp(_) => None,
        };
        let change = Change::new(said, ChangeKind::Changed, was, new, diff);
        Ok(Answer { change: Some(change), ..Answer::text(text) })
    }

    /// The file as it is, if that is how this reader knows it.
    pub(crate) fn before(&self, reader: &str, spot: &Spot) -> Result<Before, Error> {
        let path = || spot.named.clone();
        let Some(known) = self.seen.mark(reader, &spot.key()) else {
            return Err(Error::Unread { path: path() });
        };
        let (file, facts) = self.roots.open(spot)?;
        let (bytes, mark) = take_in(&file, &facts).map_err(|error| Error::io(&path(), error))?;
        if mark != known {
            return Err(Error::Stale { path: path() });
        }
        Ok(Before { facts, bytes, mark, _file: file })
    }

    pub(crate) fn put(
        &self,
        reader: &str,
        spot: &Spot,
        before: Option<&Facts>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let path = || spot.named.clone();
        let put = atomic::put(&spot.folder, &spot.name, before, bytes);
        put.map_err(|failure| match failure {
            Failure::Busy => Error::Busy { path: path() },
            Failure::Changed => Error::Stale { path: path() },
            Failure::Io(error) => Error::io(&path(), error),
        })?;
        self.seen.note(reader, spot.key(), Mark::of(bytes));
        Ok(())
    }
}

/// What a file had and does not have any more.
fn lost(old: &Text) -> &'static str {
    match (old.encoding, old.ending) {
        (Encoding::Utf8, Ending::Lf) => "",
        (Encoding::Utf8, Ending::CrLf | Ending::Mixed) => {
            "; lines ended in CR LF before, now as you wrote them"
        }
        _ => "; it is plain UTF-8 now, which it was not before",
    }
}

/// The folders between, one by one, each synced into the one it is in.
fn make_folders(mut spot: Spot) -> Result<Spot, Error> {
    for name in std::mem::take(&mut spot.absent) {
        let name: &OsStr = &name;
        match mkdirat(&spot.folder, name, Mode::from_raw_mode(0o777)) {
            // Somebody else made it meanwhile; if it is a link, opening it fails.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::io(&spot.named, errno)),
        }
        let made = openat(&spot.folder, name, FOLDER, Mode::empty());
        let made = made.map_err(|errno| Error::opening(&spot.named, errno))?;
        fsync(&spot.folder).map_err(|errno| Error::io(&spot.named, errno))?;
        spot.folder = made;
    }
    Ok(spot)
}
