//! `read`: text as it is, in pages, with a last line that says what is missing and how to get it.
//! Pictures are handed over, other things named.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use crate::args::Read;
use crate::binary::{self, IMAGE_BYTES_MAX, Image};
use crate::desk::{Answer, Desk};
use crate::error::Error;
use crate::meta::Facts;
use crate::rows::{Long, Rows};
use crate::seen::Mark;
use crate::spot::Spot;
use crate::text::Text;

/// More is not put into a conversation at once.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// What is larger is shown in pages and not edited: it is never in memory whole.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;

impl Spot {
    /// The same file has the same key, whatever link led there.
    pub(crate) fn key(&self) -> PathBuf {
        self.root.real.join(&self.path)
    }
}

/// All of it, unless it is large, and what it is known by.
pub(crate) fn take_in(file: &File, facts: &Facts) -> io::Result<(Option<Vec<u8>>, Mark)> {
    if facts.size <= WHOLE_BYTES_MAX {
        let mut bytes = Vec::with_capacity(usize::try_from(facts.size).unwrap_or(0));
        // It may have grown since; one byte more tells.
        file.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= WHOLE_BYTES_MAX {
            let mark = Mark::of(&bytes);
            return Ok((Some(bytes), mark));
        }
    }
    Ok((None, Mark::Stamp(facts.stamp)))
}

impl Desk {
    pub fn read(&self, reader: &str, args: &Read) -> Result<Answer, Error> {
        if let Some(found) = self.spill(&args.path) {
            let (handle, spills) = found?;
            let file = BufReader::new(spills.open(&handle)?);
            return page(file, Long::Wrap, args, None);
        }
        let spot = self.roots.to_read(&args.path)?;
        let spot = self.with_hint(spot)?;
        let (mut file, facts) = self.roots.open(&spot)?;
        let failed = |error| Error::io(&spot.named, error);
        let (bytes, mark) = take_in(&file, &facts).map_err(failed)?;
        let answer = if let Some(bytes) = bytes {
            whole(&spot.named, bytes, args)
        } else {
            io::Seek::rewind(&mut file).map_err(failed)?;
            large(&spot.named, file, facts.size, args)
        };
        if answer.is_ok() {
            self.seen.note(reader, spot.key(), mark);
        }
        answer
    }
}

fn whole(named: &str, bytes: Vec<u8>, args: &Read) -> Result<Answer, Error> {
    if let Some(media_type) = binary::picture(&bytes) {
        return Ok(picture(named, media_type, bytes));
    }
    // PDFs may have no byte that text has not.
    let is_document = bytes.starts_with(b"%PDF-");
    match Text::decode(&bytes).filter(|_| !is_document) {
        Some(text) if text.body.is_empty() => Ok(Answer::text(format!("[{named} is empty]"))),
        Some(text) => page(text.body.as_bytes(), Long::Cut, args, text.remark()),
        None => Ok(other(named, &bytes, bytes.len() as u64)),
    }
}

/// Read as it comes. Only the beginning is looked at to find out what it is.
fn large(named: &str, file: File, bytes: u64, args: &Read) -> Result<Answer, Error> {
    let mut file = BufReader::new(file);
    let head = file.fill_buf().map_err(|error| Error::io(named, error))?;
    if let Some(media_type) = binary::picture(head) {
        let size = binary::dimensions(head);
        let text = format!("[{}, too large to show]", describe(named, media_type, size, bytes));
        return Ok(Answer::text(text));
    }
    if head.contains(&0) || head.starts_with(b"%PDF-") {
        return Ok(other(named, head, bytes));
    }
    page(file, Long::Cut, args, None)
}

fn describe(named: &str, media_type: &str, size: Option<(u32, u32)>, bytes: u64) -> String {
    let size = size.map_or_else(String::new, |(wide, high)| format!(", {wide}×{high}"));
    format!("{named}: {media_type}{size}, {bytes} bytes")
}

fn picture(named: &str, media_type: &'static str, bytes: Vec<u8>) -> Answer {
    let size = binary::dimensions(&bytes);
    let what = describe(named, media_type, size, bytes.len() as u64);
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Answer::text(format!("[{what}, too large to show]"));
    }
    let image = Image { media_type, size, bytes };
    Answer { image: Some(image), ..Answer::text(format!("[{what}]")) }
}

fn other(named: &str, head: &[u8], bytes: u64) -> Answer {
    Answer::text(format!("[{named} is not text ({bytes} bytes): {}]", binary::kind(head)))
}

fn page(
    from: impl io::BufRead,
    long: Long,
    args: &Read,
    remark: Option<String>,
) -> Result<Answer, Error> {
    let named = crate::error::shown(&args.path);
    let failed = |error| Error::io(&named, error);
    let first = args.offset.unwrap_or(1).max(1);
    let mut rows = Rows::new(from, long);
    let skipped = rows.skip(first - 1).map_err(failed)?;
    let limit = args.limit.unwrap_or(usize::MAX).max(1);
    let page = rows.page(limit, READ_BYTES_MAX).map_err(failed)?;
    let mut notes = Vec::new();
    if page.rows == 0 {
        notes.push(format!("{named} has {skipped} lines; {first} is past its end"));
    }
    if page.has_more {
        let next = first + page.rows;
        let path = serde_json::Value::from(&*args.path);
        let last = next - 1;
        notes.push(format!(
            "lines {first} to {last} of {named}; more follow: \
             read {{\"path\": {path}, \"offset\": {next}}}"
        ));
    }
    notes.extend(remark);
    let mut text = page.text;
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(["[", &note, "]\n"]);
    }
    Ok(Answer::text(text))
}
