//! How far each session had come, in a second place: a file of 64-byte slots, one per session.
//! A database that lost its end looks whole (a write-ahead log cut at a frame is simply shorter);
//! next to this file it does not.
//!
//! The exact promise. A slot is written after the commit it speaks of was synced and before the
//! caller is told, so
//! - a mark is never ahead of the database: a session that stands *behind* its mark has lost
//!   something that was acknowledged, and there is no other way to get there;
//! - after kill -9 every acknowledged entry is covered: what was written stays in the kernel;
//! - after a power cut a mark may be old, because slots are not synced with every commit (that
//!   would double its cost) but every 256 batches, before a delete, and on close, and the kernel
//!   writes them back within half a minute of its own. Entries newer than the mark on disk are as
//!   safe as any, they are only not guarded against being cut off unseen.
//!
//! A slot that cannot be read says nothing about its session, whose rows guard themselves: it is
//! noted and written anew.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use locum_kernel::Seq;

use crate::chain::{Hash, Head, sum_of};
use crate::private;

const SLOT: usize = 64;
const LIVE: u32 = 0x6b72_616d;
const DEAD: u32 = 0x6461_6564;
const SYNC_EVERY: u32 = 256;

/// The first bytes of a session's genesis hash: enough to tell which name a slot is about.
pub(crate) type Origin = [u8; 8];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) origin: Origin,
    pub(crate) head: Head,
}

#[derive(Debug)]
pub(crate) struct Marks {
    file: File,
    /// Nothing was written since the last sync, so the next one has nothing to do.
    is_synced: bool,
    unsynced: u32,
}

/// What the file says when it is opened.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) live: BTreeMap<i64, Mark>,
    /// Numbers whose slot cannot be read.
    pub(crate) broken: Vec<i64>,
    /// The highest number that ever had a slot, living or not.
    pub(crate) highest: i64,
}

pub(crate) fn origin(genesis: &Hash) -> Origin {
    let mut origin = [0; 8];
    origin.copy_from_slice(&genesis[..8]);
    origin
}

impl Marks {
    pub(crate) fn open(path: &Path) -> io::Result<(Marks, Found)> {
        let mut file = private::open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((Marks { file, is_synced: true, unsynced: 0 }, found(&bytes)))
    }

    pub(crate) fn write(&mut self, number: i64, mark: Mark) -> io::Result<()> {
        self.put(number, LIVE, mark)
    }

    /// The session is about to be deleted. Synced first: a mark that outlived its session would
    /// look like a loss.
    pub(crate) fn bury(&mut self, number: i64, mark: Mark) -> io::Result<()> {
        self.put(number, DEAD, mark)?;
        self.sync()
    }

    /// After each batch.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        self.unsynced += 1;
        if self.unsynced < SYNC_EVERY { Ok(()) } else { self.sync() }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }

    fn put(&mut self, number: i64, state: u32, mark: Mark) -> io::Result<()> {
        let mut slot = Vec::with_capacity(SLOT);
        slot.extend(state.to_le_bytes());
        slot.extend(number.to_le_bytes());
        slot.extend(mark.head.last.0.to_le_bytes());
        slot.extend(mark.head.hash);
        slot.extend(mark.origin);
        slot.extend(check(&slot).to_le_bytes());
        assert_eq!(slot.len(), SLOT, "slots have one size");
        let at = u64::try_from(number).unwrap_or(u64::MAX).saturating_mul(SLOT as u64);
        self.is_synced = false;
        write_at(&mut self.file, &slot, at)
    }
}

/// What the file says, for whoever only reads it; nothing if it is not there. A slot that is just
/// being written may be unreadable for a moment, and then says nothing.
pub(crate) fn look(path: &Path) -> io::Result<Found> {
    match fs::read(path) {
        Ok(bytes) => Ok(found(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::default()),
        Err(error) => Err(error),
    }
}

fn found(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    for (number, slot) in bytes.chunks(SLOT).enumerate() {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        // A hole: the session was never made, or its number is not used (as is zero).
        if slot.iter().all(|byte| *byte == 0) {
            continue;
        }
        found.highest = number;
        match read(number, slot) {
            Some((LIVE, mark)) => drop(found.live.insert(number, mark)),
            Some(_) => {}
            None => found.broken.push(number),
        }
    }
    found
}

#[cfg(unix)]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

fn check(bytes: &[u8]) -> u32 {
    u32::try_from(sum_of(&[bytes])).unwrap_or_default()
}

fn read(number: i64, slot: &[u8]) -> Option<(u32, Mark)> {
    let (body, sum) = slot.split_at_checked(SLOT - 4)?;
    let (state, body) = body.split_first_chunk::<4>()?;
    let (own, body) = body.split_first_chunk::<8>()?;
    let (last, body) = body.split_first_chunk::<8>()?;
    let (hash, body) = body.split_first_chunk::<32>()?;
    let (origin, _) = body.split_first_chunk::<8>()?;
    let whole = check(&slot[..SLOT - 4]).to_le_bytes() == sum && i64::from_le_bytes(*own) == number;
    let head = Head { last: Seq(u64::from_le_bytes(*last)), hash: *hash };
    whole.then_some((u32::from_le_bytes(*state), Mark { origin: *origin, head }))
}
