//! From a path to one name in one open folder. Links are read here, by hand, and followed only
//! while they stay beneath the root; the kernel is never asked to follow any.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::error::Error;
use crate::meta::Facts;
use crate::roots::{Root, Way};

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;
/// Folders open at once on the way down.
const DEPTH_MAX: usize = 128;

pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A pipe must not keep us waiting, nor a terminal become ours.
pub(crate) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A place beneath a root. Its folder is open, so nobody can move it from under us.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) root: Arc<Root>,
    /// The way from the root, without links.
    pub(crate) path: PathBuf,
    /// As it was asked for, fit to be printed.
    pub(crate) named: String,
    /// The last folder on the way that exists.
    pub(crate) folder: OwnedFd,
    /// Folders that would have to be made first.
    pub(crate) absent: Vec<OsString>,
    /// `.` for the root itself.
    pub(crate) name: OsString,
    pub(crate) facts: Option<Facts>,
}

impl Spot {
    pub(crate) fn find(
        root: &Arc<Root>,
        path: &Path,
        named: String,
        way: Way,
    ) -> Result<Spot, Error> {
        let quick = match way {
            Way::Quick => quick(root, path),
            Way::Stepwise => None,
        };
        if let Some((folder, path, name, facts)) = quick {
            let root = Arc::clone(root);
            return Ok(Spot { root, path, named, folder, absent: Vec::new(), name, facts });
        }
        let mut walk = Walk::new(root, path, &named)?;
        while let Some(part) = walk.ahead.pop_front() {
            walk.step(part)?;
        }
        walk.arrive()
    }

    pub(crate) fn must_be_file(&self, facts: &Facts) -> Result<(), Error> {
        let path = self.named.clone();
        match facts.special() {
            Some(kind) => Err(Error::Special { path, kind }),
            None if facts.kind.is_dir() => Err(Error::Folder { path }),
            None => Ok(()),
        }
    }

    /// What is written takes the place of one name; other names would keep the old content.
    pub(crate) fn must_be_alone(&self) -> Result<(), Error> {
        match self.facts {
            Some(Facts { links, .. }) if links > 1 => {
                Err(Error::Linked { path: self.named.clone(), links })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn open(&self) -> Result<(File, Facts), Error> {
        let facts = self.facts.ok_or_else(|| Error::missing(&self.named))?;
        // Opening a device can have consequences, so look before.
        self.must_be_file(&facts)?;
        let opened = openat(&self.folder, &self.name, FILE, Mode::empty());
        let opened = opened.map_err(|errno| Error::opening(&self.named, errno))?;
        let facts = fstat(&opened).map_err(|errno| Error::opening(&self.named, errno))?;
        let facts = Facts::of(&facts);
        self.must_be_file(&facts)?;
        Ok((File::from(opened), facts))
    }

    pub(crate) fn open_folder(&self) -> Result<OwnedFd, Error> {
        match self.facts {
            None => Err(Error::missing(&self.named)),
            Some(facts) if !facts.kind.is_dir() => {
                Err(Error::NotFolder { path: self.named.clone() })
            }
            Some(_) => openat(&self.folder, &self.name, FOLDER, Mode::empty())
                .map_err(|errno| Error::opening(&self.named, errno)),
        }
    }
}

type Found = (OwnedFd, PathBuf, OsString, Option<Facts>);

/// Most paths have no links and no `..`: one call opens the folder. None: find out step by step.
#[cfg(target_os = "linux")]
fn quick(root: &Root, path: &Path) -> Option<Found> {
    use rustix::fs::{ResolveFlags, openat2};
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => clean.push(name),
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    let parent = clean.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = openat2(&root.folder, parent, FOLDER, Mode::empty(), beneath).ok()?;
    let name = clean.file_name().unwrap_or(OsStr::new(".")).to_owned();
    match look(&folder, &name) {
        Ok(facts) if facts.kind != FileType::Symlink => Some((folder, clean, name, Some(facts))),
        Err(Errno::NOENT) => Some((folder, clean, name, None)),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn quick(_: &Root, _: &Path) -> Option<Found> {
    None
}

pub(crate) fn look(folder: &OwnedFd, name: &OsStr) -> Result<Facts, Errno> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Facts::of(&stat))
}

/// On the way: the folders passed, each open, and the names still ahead.
struct Walk<'a> {
    root: &'a Arc<Root>,
    named: &'a str,
    passed: Vec<(OsString, OwnedFd)>,
    ahead: VecDeque<OsString>,
    /// Names beyond the last that exists.
    absent: Vec<OsString>,
    /// Something that is not a folder; nothing may follow it.
    end: Option<(OsString, Facts)>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Arc<Root>, path: &Path, named: &'a str) -> Result<Walk<'a>, Error> {
        let mut walk = Walk {
            root,
            named,
            passed: Vec::new(),
            ahead: VecDeque::new(),
            absent: Vec::new(),
            end: None,
            links: 0,
        };
        walk.put_ahead(path)?;
        Ok(walk)
    }

    fn outside(&self) -> Error {
        Error::Outside { path: self.named.to_owned() }
    }

    fn put_ahead(&mut self, path: &Path) -> Result<(), Error> {
        for part in path.components().rev() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front("..".into()),
                Component::Prefix(_) | Component::RootDir => return Err(self.outside()),
            }
        }
        Ok(())
    }

    fn here(&self) -> &OwnedFd {
        self.passed.last().map_or(&self.root.folder, |(_, folder)| folder)
    }

    fn step(&mut self, part: OsString) -> Result<(), Error> {
        let path = || self.named.to_owned();
        if self.end.is_some() {
            return Err(Error::NotFolder { path: path() });
        }
        if part == ".." {
            return match (self.absent.is_empty(), self.passed.is_empty()) {
                (false, _) => Err(Error::missing(self.named)),
                (true, true) => Err(self.outside()),
                (true, false) => {
                    self.passed.pop();
                    Ok(())
                }
            };
        }
        if self.passed.len() + self.absent.len() >= DEPTH_MAX {
            return Err(Error::Name { path: path(), why: "its folders nest too deep" });
        }
        if !self.absent.is_empty() {
            self.absent.push(part);
            return Ok(());
        }
        match look(self.here(), &part) {
            Err(Errno::NOENT) => self.absent.push(part),
            Err(errno) => return Err(Error::io(self.named, errno)),
            Ok(facts) if facts.kind == FileType::Symlink => self.follow(&part)?,
            Ok(facts) if facts.kind.is_dir() => {
                let folder = openat(self.here(), &part, FOLDER, Mode::empty());
                let folder = folder.map_err(|errno| Error::opening(self.named, errno))?;
                self.passed.push((part, folder));
            }
            Ok(facts) => self.end = Some((part, facts)),
        }
        Ok(())
    }

    /// What a link says goes in the place of its name. One that is absolute starts again at the
    /// root, if it points there.
    fn follow(&mut self, link: &OsStr) -> Result<(), Error> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Error::Loop { path: self.named.to_owned() });
        }
        let target = readlinkat(self.here(), link, Vec::new());
        let target = target.map_err(|errno| match errno {
            Errno::INVAL | Errno::NOENT => Error::Moved { path: self.named.to_owned() },
            errno => Error::io(self.named, errno),
        })?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_relative() {
            return self.put_ahead(&target);
        }
        let beneath = target.strip_prefix(&self.root.real).map_err(|_| self.outside())?;
        self.passed.clear();
        self.put_ahead(beneath)
    }

    fn arrive(mut self) -> Result<Spot, Error> {
        let mut path: PathBuf = self.passed.iter().map(|(name, _)| name).collect();
        path.extend(&self.absent);
        let (name, facts) = match (self.end, self.absent.pop()) {
            (Some((name, facts)), _) => {
                path.push(&name);
                (name, Some(facts))
            }
            (None, Some(name)) => (name, None),
            // A folder: named from the one it is in.
            (None, None) => {
                let folder = self.passed.pop();
                let opened = folder.as_ref().map_or(&self.root.folder, |(_, folder)| folder);
                let facts = fstat(opened).map_err(|errno| Error::io(self.named, errno))?;
                let facts = Some(Facts::of(&facts));
                (folder.map_or_else(|| OsString::from("."), |(name, _)| name), facts)
            }
        };
        let folder = match self.passed.pop() {
            Some((_, folder)) => folder,
            None => openat(&self.root.folder, ".", FOLDER, Mode::empty())
                .map_err(|errno| Error::io(self.named, errno))?,
        };
        let (root, named) = (Arc::clone(self.root), self.named.to_owned());
        Ok(Spot { root, path, named, folder, absent: self.absent, name, facts })
    }
}
