//! The folders that may be reached, each opened once: the workspace first, then others. Whatever
//! is later put in the place of a root has nothing to do with it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::error::{Error, escaped, shown};
use crate::guard::{Bar, Deed, Guard, Hidden};
use crate::meta::Facts;
use crate::spot::Spot;

/// As long as a path can be for the kernel.
const PATH_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    Writable,
}

/// How a folder beneath a root is opened. Both ways are safe; the first is one call to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `openat2` where the kernel has it, step by step where not.
    Quick,
    /// Always name by name.
    Stepwise,
}

#[derive(Debug)]
pub struct Roots {
    all: Vec<Arc<Root>>,
    guard: Guard,
    pub(crate) way: Way,
}

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) folder: OwnedFd,
    /// Where it was when it was opened, without links.
    pub(crate) real: PathBuf,
    /// As it was given, for those who name it so.
    given: PathBuf,
    access: Access,
    pub(crate) is_workspace: bool,
}

impl Root {
    /// What people call a path in it: short in the workspace, whole elsewhere.
    pub(crate) fn say(&self, path: &Path) -> String {
        shown(&self.named(path))
    }

    /// The same however long it is: somebody will ask for it by this name.
    pub(crate) fn say_whole(&self, path: &Path) -> String {
        escaped(&self.named(path))
    }

    fn named(&self, path: &Path) -> String {
        let said = if self.is_workspace { path.to_owned() } else { self.real.join(path) };
        let said = said.to_string_lossy();
        if said.is_empty() { ".".to_owned() } else { said.into_owned() }
    }
}

impl Roots {
    /// `.git` is never written, in any folder: what is in there decides which programs run.
    pub fn new(workspace: &Path, access: Access) -> Result<Roots, Error> {
        let mut guard = Guard::default();
        guard.add(Path::new(".git"), Bar::Writing);
        let roots = Roots { all: Vec::new(), guard, way: Way::Quick };
        roots.and(workspace, access)
    }

    /// One more folder, named by its absolute path.
    pub fn and(mut self, folder: &Path, access: Access) -> Result<Roots, Error> {
        let named = shown(&folder.to_string_lossy());
        let failed = |error| Error::io(&named, error);
        let real = folder.canonicalize().map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = openat(CWD, &real, flags, Mode::empty());
        let opened = opened.map_err(|errno| Error::io(&named, errno))?;
        let is_workspace = self.all.is_empty();
        let given = folder.to_owned();
        self.all.push(Arc::new(Root { folder: opened, real, given, access, is_workspace }));
        Ok(self)
    }

    /// A relative path is protected in every folder, an absolute one there. It need not exist.
    #[must_use]
    pub fn protect(mut self, path: &Path, from: Bar) -> Roots {
        self.guard.add(path, from);
        self
    }

    /// A folder in a hidden one that is no secret: a file that has a name there and another beneath
    /// a root can be read here. Agents may have filled it with more than could be looked through.
    #[must_use]
    pub fn known_beside(mut self, folder: &Path) -> Roots {
        self.guard.set_apart(folder);
        self
    }

    #[must_use]
    pub fn by(mut self, way: Way) -> Roots {
        self.way = way;
        self
    }

    pub(crate) fn hides(&self, root: &Root, path: &Path) -> bool {
        self.guard.hides(&root.real, path)
    }

    pub(crate) fn hidden(&self) -> Hidden {
        self.guard.hidden()
    }

    /// Where that is, if it may be read.
    pub(crate) fn to_read(&self, named: &str) -> Result<Spot, Error> {
        self.spot(named, Deed::Read)
    }

    /// Where that is, if it may be written: a file, or nothing yet.
    pub(crate) fn to_write(&self, named: &str) -> Result<Spot, Error> {
        let spot = self.spot(named, Deed::Write)?;
        if spot.root.access == Access::ReadOnly {
            return Err(Error::ReadOnly { path: spot.named });
        }
        match spot.facts {
            Some(facts) => spot.must_be_file(&facts).map(|()| facts)?,
            None => return Ok(spot),
        };
        spot.must_be_alone()?;
        Ok(spot)
    }

    fn spot(&self, named: &str, deed: Deed) -> Result<Spot, Error> {
        let (root, path) = self.locate(named)?;
        let spot = Spot::find(root, path, shown(named), self.way)?;
        let deed_word = if deed == Deed::Read { "read" } else { "write" };
        if self.guard.bars(deed, &spot.root.real, &spot.path) {
            return Err(Error::Protected { path: spot.named, deed: deed_word });
        }
        // `a.txt/` means a folder, as everywhere.
        let is_folder = spot.facts.is_some_and(|facts| facts.kind.is_dir());
        if (named.ends_with('/') || named.ends_with("/.")) && !is_folder {
            return Err(Error::NotFolder { path: spot.named });
        }
        Ok(spot)
    }

    /// Which root a path names, and the rest of it. Words only; nothing is looked up.
    fn locate<'a>(&self, named: &'a str) -> Result<(&Arc<Root>, &'a Path), Error> {
        let refused = |why| Err(Error::Name { path: shown(named), why });
        match named {
            "" => return refused("it is empty"),
            _ if named.contains('\0') => return refused("it contains a NUL"),
            _ if named.len() > PATH_BYTES_MAX => return refused("it is too long"),
            _ if named == "~" || named.starts_with("~/") => {
                return Err(Error::Home { path: shown(named) });
            }
            _ => {}
        }
        let path = Path::new(named);
        if path.is_relative() {
            return Ok((&self.all[0], path));
        }
        let inside = |root: &'_ Arc<Root>| {
            let rest = path.strip_prefix(&root.real).or_else(|_| path.strip_prefix(&root.given));
            rest.ok().map(|rest| rest.components().count())
        };
        // Roots may nest; the innermost knows best what may be done there.
        let found = self.all.iter().filter_map(|root| Some((inside(root)?, root)));
        let Some((_, root)) = found.min_by_key(|(left, _)| *left) else {
            return Err(Error::Outside { path: shown(named) });
        };
        let rest = path.strip_prefix(&root.real).or_else(|_| path.strip_prefix(&root.given));
        Ok((root, rest.unwrap_or(path)))
    }

    /// An open file and what it is, unless it is another name of something hidden.
    pub(crate) fn open(&self, spot: &Spot) -> Result<(File, Facts), Error> {
        let (file, facts) = spot.open()?;
        let Facts { links, stamp, .. } = facts;
        if links > 1 && self.hidden().has(stamp.device, stamp.inode) {
            return Err(Error::Alias { path: spot.named.clone(), links });
        }
        Ok((file, facts))
    }
}
