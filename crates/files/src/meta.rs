//! What a name stands for, in the same numbers on every system.

use rustix::fs::{FileType, Stat};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: FileType,
    pub(crate) size: u64,
    pub(crate) links: u64,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) stamp: Stamp,
}

/// Changes whenever a file is written or replaced, as far as its file system can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    size: u64,
    modified: (u64, u64),
    changed: (u64, u64),
}

impl Facts {
    pub(crate) fn of(stat: &Stat) -> Facts {
        let mode = u32::try_from(wide(stat.st_mode)).unwrap_or(0);
        let size = wide(stat.st_size);
        Facts {
            kind: FileType::from_raw_mode(stat.st_mode),
            size,
            links: wide(stat.st_nlink),
            mode,
            owner: (stat.st_uid, stat.st_gid),
            stamp: Stamp {
                device: wide(stat.st_dev),
                inode: wide(stat.st_ino),
                size,
                modified: (wide(stat.st_mtime), wide(stat.st_mtime_nsec)),
                changed: (wide(stat.st_ctime), wide(stat.st_ctime_nsec)),
            },
        }
    }

    /// For the words "is a …".
    pub(crate) fn special(&self) -> Option<&'static str> {
        match self.kind {
            FileType::RegularFile | FileType::Directory => None,
            FileType::Symlink => Some("link"),
            FileType::Fifo => Some("pipe"),
            FileType::Socket => Some("socket"),
            FileType::CharacterDevice | FileType::BlockDevice => Some("device"),
            FileType::Unknown => Some("thing of unknown kind"),
        }
    }
}

/// The fields of `stat` are of different widths and signs everywhere.
fn wide<T: TryInto<u64>>(number: T) -> u64 {
    number.try_into().unwrap_or(0)
}
