//! Copies of what is broken, made before anything is put right. The file itself stays as it is;
//! the copy is for whoever wants to look, or to try again.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// So many different broken states of one file are more than anybody will look at.
const COPIES_MAX: u32 = 16;

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Copies the database and its log to `*.corrupt-N` and says where. The same bytes are kept once,
/// so that a program that is started over and over does not fill the disk.
pub(super) fn keep(path: &Path) -> io::Result<PathBuf> {
    let mut copy = beside(path, ".corrupt-1");
    for number in 1..=COPIES_MAX {
        copy = beside(path, &format!(".corrupt-{number}"));
        if !copy.exists() {
            break;
        }
        let log = |path: &Path| beside(path, "-wal");
        if same(path, &copy)? && same(&log(path), &log(&copy))? {
            return Ok(copy);
        }
        if number == COPIES_MAX {
            return Ok(copy);
        }
    }
    let log = beside(path, "-wal");
    if log.exists() {
        fs::copy(&log, beside(&copy, "-wal"))?;
    }
    fs::copy(path, &copy)?;
    File::open(&copy)?.sync_all()?;
    Ok(copy)
}

fn same(one: &Path, other: &Path) -> io::Result<bool> {
    let (Ok(one), Ok(other)) = (File::open(one), File::open(other)) else {
        return Ok(one.exists() == other.exists());
    };
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (io::BufReader::new(one), io::BufReader::new(other));
    let (mut here, mut there) = ([0; 8192], [0; 8192]);
    loop {
        let read = one.read(&mut here)?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut there[..read])?;
        if here[..read] != there[..read] {
            return Ok(false);
        }
    }
}
