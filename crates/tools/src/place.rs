//! Where the tools of one session work, and what is kept from them.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use locum_files::{Access, Bar, Error, Roots};
use locum_sandbox::{Below, Guard, Keep, StandIn, credentials, repository};

use crate::made_of::{self, PROJECT};

use crate::spilled;

/// One session's place in the world.
#[derive(Clone, Debug)]
pub struct Place {
    pub session: String,
    pub workspace: PathBuf,
    /// Ours: journals, memory, what was too long to be shown. Nobody reads it but through us.
    pub data: PathBuf,
    /// The user's configuration, which says where keys are.
    pub config: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Folders of recipes that the person named, which are the person's own wherever they are.
    pub recipes: Vec<PathBuf>,
    /// Folders outside the workspace that may be read: skills bring files along.
    pub readable: Vec<PathBuf>,
}

impl Place {
    /// Where long results of the session are kept.
    pub(crate) fn spills(&self) -> PathBuf {
        spilled::folder(&self.data, &self.session)
    }

    /// Where commands write what is too long for memory.
    pub(crate) fn output(&self) -> PathBuf {
        self.data.join("output")
    }

    /// Where agents have copies of repositories.
    pub(crate) fn copies(&self) -> PathBuf {
        copies(&self.data)
    }

    /// `around` is a folder of ours that the work lies in on purpose: a root is left by no path, so
    /// nothing else of it can be reached.
    pub(crate) fn roots(&self, around: Option<&Path>) -> Result<Roots, Error> {
        let mut roots = Roots::new(&self.workspace, Access::Writable)?;
        roots = roots.known_beside(&self.copies());
        // One that cannot be opened is one less; the workspace is what matters.
        for folder in self.readable.iter().take(READABLE_MAX).filter(|it| it.is_dir()) {
            roots = roots.and(folder, Access::ReadOnly)?;
        }
        for path in self.hidden().filter(|path| Some(*path) != around) {
            roots = roots.protect(path, Bar::Everything);
        }
        // By any name: a hard link is the file itself, and no path in here tells.
        for path in self.secrets() {
            roots = roots.protect(&path, Bar::Everything);
        }
        for name in PROJECT {
            roots = roots.protect(Path::new(name), Bar::Writing);
        }
        for guard in made_of::of_person(self) {
            roots = roots.protect(&guard.path, Bar::Writing);
        }
        Ok(roots)
    }

    /// What commands are kept from behind their walls.
    pub(crate) fn guards(&self) -> Vec<Guard> {
        let hidden = self.hidden().map(|path| Guard {
            path: path.to_owned(),
            keep: Keep::Hidden,
            absent: StandIn::Within,
        });
        // There or not: what makes agents is read again when it changes. An empty folder stands in
        // for a file as well, because git does not see one; and most of `.github` is none of our
        // business.
        let made_of = PROJECT.iter().map(|name| Guard {
            path: self.workspace.join(name),
            keep: Keep::Frozen,
            absent: StandIn::Within,
        });
        let home = self.home.iter().flat_map(|home| credentials(home));
        let machine = MACHINE.map(|path| Guard {
            path: path.into(),
            keep: Keep::Hidden,
            absent: StandIn::Folder,
        });
        let machine = machine.into_iter().filter(|it| !self.workspace.starts_with(&it.path));
        let home = home.chain(machine);
        let own = made_of::of_person(self);
        let project = made_of.chain(own).chain(repository(&self.workspace));
        hidden.chain(project).chain(home).collect()
    }

    /// The same for commands that may write: what is there below the workspace is kept as well.
    pub(crate) fn guards_below(&self) -> Vec<Guard> {
        static FOUND: Mutex<BTreeMap<PathBuf, Below>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() > WORKSPACES_MAX {
            found.clear();
        }
        let below = found.entry(self.workspace.clone()).or_default();
        below.guards(&self.workspace, &PROJECT)
    }

    /// Where keys and passwords are kept, unless the work is in there.
    fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let own = self.home.iter().flat_map(|home| credentials(home)).map(|guard| guard.path);
        let all = own.chain(MACHINE.map(PathBuf::from));
        all.filter(|path| !self.workspace.starts_with(path))
    }

    /// Keys may lie beside the configuration, so its folder is hidden, unless the work is in there.
    fn hidden(&self) -> impl Iterator<Item = &Path> {
        let apart = |folder: &&Path| !self.workspace.starts_with(folder);
        let config = self.config.as_deref();
        let config = config.and_then(Path::parent).filter(apart).or(config);
        [Some(self.data.as_path()), config].into_iter().flatten()
    }
}

/// Each is held open for as long as the session is.
const READABLE_MAX: usize = 256;
/// Workspaces of which it is remembered what is below them: agents with copies have their own.
const WORKSPACES_MAX: usize = 64;

pub(crate) fn copies(data: &Path) -> PathBuf {
    data.join("worktrees")
}

/// What of the environment can be written down as text.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// What only the machine itself keeps.
const MACHINE: [&str; 5] =
    ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_hides_its_folder_but_never_the_work() {
        let cases = [
            ("/users/me/.config/locum/config.toml", "/users/me/.config/locum"),
            ("/srv/project/locum.toml", "/srv/project/locum.toml"),
            ("/srv/config.toml", "/srv/config.toml"),
        ];
        for (config, hidden) in cases {
            let place = Place {
                session: "s".into(),
                workspace: "/srv/project".into(),
                data: "/data".into(),
                config: Some(config.into()),
                home: None,
                readable: Vec::new(),
                recipes: Vec::new(),
            };
            let found: Vec<&Path> = place.hidden().collect();
            assert_eq!(found, [Path::new("/data"), Path::new(hidden)], "{config}");
        }
    }
}
