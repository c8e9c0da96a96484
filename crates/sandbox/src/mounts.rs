//! Mounts of our own, in a namespace of our own: places that are hidden or frozen, a list of
//! processes that has only those inside, and everything else read-only. Landlock would keep the
//! contents of files, but not their modes, owners and dates.

use std::ffi::{CStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};

use crate::layers::{Layer, Mount};

/// Memory that processes share by name. The command gets some of its own.
pub(crate) const SHARED: &str = "/dev/shm";
const SHARED_OPTIONS: &CStr = c"mode=1777,size=1073741824";

/// A folder that something is hidden behind holds nothing.
const EMPTY_OPTIONS: &CStr = c"mode=755,size=65536,nr_inodes=128";

const HARMLESS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// A place and what went wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be mounted: {source}")]
pub(crate) struct Failed {
    path: PathBuf,
    source: io::Error,
}

fn at<T>(path: &Path, done: Result<T, impl Into<io::Error>>) -> Result<T, Failed> {
    done.map_err(|source| Failed { path: path.to_owned(), source: source.into() })
}

pub(crate) fn apply(layers: &[Layer]) -> Result<(), Failed> {
    let root = Path::new("/");
    // What is mounted here stays here.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    at(root, mount_change(root, private))?;
    let before = mounted()?;
    let opened = opened(layers)?;
    for (index, layer) in layers.iter().enumerate() {
        let path = &layer.path;
        match layer.mount {
            Mount::Open => open(path, opened.iter().find(|(layer, _)| *layer == index))?,
            Mount::Show => {
                open(path, opened.iter().find(|(layer, _)| *layer == index))?;
                restrict(path, MountFlags::RDONLY)?;
            }
            Mount::Freeze => {
                at(path, mount_bind_recursive(path, path))?;
                restrict(path, MountFlags::RDONLY)?;
            }
            Mount::HideFile => {
                at(path, mount_bind("/dev/null", path))?;
                restrict(path, MountFlags::RDONLY | MountFlags::NODEV)?;
            }
            Mount::HideFolder => {
                at(path, mount("tmpfs", path, "tmpfs", HARMLESS, EMPTY_OPTIONS))?;
            }
        }
    }
    for layer in layers.iter().filter(|layer| layer.mount == Mount::HideFolder) {
        restrict(&layer.path, MountFlags::RDONLY)?;
    }
    for path in before.iter().filter(|path| !is_open(path, layers)) {
        match restrict(path, MountFlags::RDONLY) {
            // Behind another mount, or in a place that is closed to us: closed to all inside.
            Err(Failed { source, .. }) if unreachable(&source) => {}
            other => other?,
        }
    }
    let shared = Path::new(SHARED);
    if shared.is_dir() {
        at(shared, mount("tmpfs", shared, "tmpfs", HARMLESS, SHARED_OPTIONS))?;
    }
    let processes = Path::new("/proc");
    let flags = HARMLESS | MountFlags::NOEXEC;
    at(processes, mount("proc", processes, "proc", flags, None))?;
    restrict(processes, MountFlags::RDONLY)
}

/// Where things are mounted now.
fn mounted() -> Result<Vec<PathBuf>, Failed> {
    let list = Path::new("/proc/self/mountinfo");
    let text = at(list, fs::read(list))?;
    let lines = text.split(|sign| *sign == b'\n');
    let places = lines.filter_map(|line| line.split(|sign| *sign == b' ').nth(4));
    Ok(places.map(|place| PathBuf::from(OsString::from_vec(unescaped(place)))).collect())
}

/// The list writes blanks and the like as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let escaped = octal.filter(|_| *first == b'\\');
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    plain
}

/// What decides about a place is the innermost layer around it.
fn is_open(path: &Path, layers: &[Layer]) -> bool {
    let around = layers.iter().filter(|layer| path.starts_with(&layer.path));
    let innermost = around.max_by_key(|layer| layer.path.components().count());
    innermost.is_some_and(|layer| layer.mount == Mount::Open)
}

fn unreachable(error: &io::Error) -> bool {
    let known = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
    known.contains(&error.kind()) && error.raw_os_error() != Some(libc::EPERM)
}

/// Open folders in hidden ones, which have to be found before they are hidden.
fn opened(layers: &[Layer]) -> Result<Vec<(usize, File)>, Failed> {
    let mut found = Vec::new();
    let seen = |layer: &Layer| matches!(layer.mount, Mount::Open | Mount::Show);
    for (index, layer) in layers.iter().enumerate().filter(|(_, layer)| seen(layer)) {
        let hides =
            |other: &Layer| other.mount == Mount::HideFolder && layer.path.starts_with(&other.path);
        if layers.iter().any(hides) {
            let mut options = OpenOptions::new();
            let options = options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY);
            found.push((index, at(&layer.path, options.open(&layer.path))?));
        }
    }
    Ok(found)
}

fn open(path: &Path, kept: Option<&(usize, File)>) -> Result<(), Failed> {
    let Some((_, file)) = kept else {
        return at(path, mount_bind_recursive(path, path));
    };
    at(path, fs::create_dir_all(path))?;
    at(path, mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), path))
}

/// Adds flags to those that the mount has: some of those may not be taken away by us.
fn restrict(path: &Path, more: MountFlags) -> Result<(), Failed> {
    let has = at(path, statvfs(path))?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | more, MountFlags::union);
    at(path, mount_remount(path, flags, ""))
}
