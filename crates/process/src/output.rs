//! Where the output of one process is kept: the beginning and the end in memory, and once that
//! is not all of it, everything in a file, up to a bound. However much is written, memory is not.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use crate::command::{Output, Spill};
use crate::text::{self, Escapes};

/// Of the beginning and of the end, in memory. Together what a result may have in a conversation.
pub(crate) const HEAD_BYTES: usize = 16 << 10;
pub(crate) const TAIL_BYTES: usize = 16 << 10;
/// More of one process is not put on the disk.
pub(crate) const SPILL_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Store {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    path: PathBuf,
    file: Option<File>,
    spilled: u64,
    trouble: Option<String>,
    escapes: Escapes,
}

impl Store {
    /// The file is made when it is needed.
    pub(crate) fn new(path: PathBuf, escapes: Escapes) -> Store {
        Store {
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            path,
            file: None,
            spilled: 0,
            trouble: None,
            escapes,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let whole = self.bytes + chunk.len() as u64 <= (HEAD_BYTES + TAIL_BYTES) as u64;
        if !whole {
            self.spill(chunk);
        }
        self.bytes += chunk.len() as u64;
        let room = (HEAD_BYTES - self.head.len()).min(chunk.len());
        let (first, rest) = chunk.split_at(room);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// A disk that refuses is said in the report; it is no reason to stop the command.
    fn spill(&mut self, chunk: &[u8]) {
        if self.trouble.is_some() {
            return;
        }
        let room = usize::try_from(SPILL_BYTES - self.spilled).unwrap_or(usize::MAX);
        let part = &chunk[..room.min(chunk.len())];
        if let Err(error) = self.write(part) {
            self.trouble = Some(format!("writing it failed: {error}"));
        } else if part.len() < chunk.len() {
            self.trouble = Some(format!("no more than {} MiB is kept", SPILL_BYTES >> 20));
        }
    }

    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let mut new = OpenOptions::new();
            let mut file =
                new.read(true).write(true).create_new(true).mode(0o600).open(&self.path)?;
            // Until now all of it was in memory, with nothing between head and tail.
            let (first, second) = self.tail.as_slices();
            for kept in [&self.head[..], first, second] {
                file.write_all(kept)?;
            }
            self.spilled = self.bytes;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(part)?;
        self.spilled += part.len() as u64;
        Ok(())
    }

    pub(crate) fn output(&self) -> Output {
        let left_out = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let (head, tail) = if left_out == 0 {
            let whole: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
            (text::clean(&whole, self.escapes), String::new())
        } else {
            let tail: Vec<u8> = self.tail.iter().copied().collect();
            let head = &self.head[..self.head.len() - text::unfinished(&self.head)];
            let tail = text::clean(&tail[text::torn(&tail)..], self.escapes);
            (text::clean(head, self.escapes), tail)
        };
        let spill = |_: &File| Spill {
            path: self.path.clone(),
            bytes: self.spilled,
            trouble: self.trouble.clone(),
        };
        Output { head, tail, bytes: self.bytes, left_out, spill: self.file.as_ref().map(spill) }
    }

    /// The last of it, for somebody who looks on.
    pub(crate) fn last(&self, bytes_max: usize) -> String {
        let all = self.head.iter().chain(&self.tail);
        let len = self.head.len() + self.tail.len();
        let gap = self.bytes > len as u64;
        // Nothing from before the gap: it is not what was said last.
        let len = if gap { self.tail.len() } else { len };
        let skip = self.head.len() + self.tail.len() - len.min(bytes_max);
        let last: Vec<u8> = all.skip(skip).copied().collect();
        text::clean(&last[text::torn(&last)..], self.escapes)
    }

    /// From `offset` on, or from where there is something again, at most so many bytes. Gives
    /// the text, where it begins and where it ends.
    pub(crate) fn read(&self, offset: u64, limit: usize) -> io::Result<(String, u64, u64)> {
        let tail_from = self.bytes - self.tail.len() as u64;
        let offset = offset.min(self.bytes);
        let in_file = self.file.as_ref().filter(|_| offset < self.spilled);
        let (from, mut found) = if offset < self.head.len() as u64 && in_file.is_none() {
            let whole = self.bytes == (self.head.len() + self.tail.len()) as u64;
            let tail = if whole { Some(&self.tail) } else { None };
            (offset, slice(self.head.iter().chain(tail.into_iter().flatten()), offset, limit))
        } else if let Some(file) = in_file {
            let room = usize::try_from(self.spilled - offset).unwrap_or(limit).min(limit);
            let mut found = vec![0; room];
            let read = file.read_at(&mut found, offset)?;
            found.truncate(read);
            (offset, found)
        } else {
            let from = offset.max(tail_from);
            (from, slice(self.tail.iter(), from - tail_from, limit))
        };
        // What is not finished is read again with the next part, unless it is all there is.
        let unfinished = text::unfinished(&found);
        if unfinished < found.len() {
            found.truncate(found.len() - unfinished);
        }
        let next = from + found.len() as u64;
        Ok((text::clean(&found, self.escapes), from, next))
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }
}

fn slice<'a>(bytes: impl Iterator<Item = &'a u8>, skip: u64, limit: usize) -> Vec<u8> {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    bytes.skip(skip).take(limit).copied().collect()
}
