//! Where the tools of one session work, and what is kept from them.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use locum_files::{Access, Bar, Error, Roots};
use locum_sandbox::{Guard, Keep, StandIn, Survey, credentials, repository};

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
        for name in DEFINITIONS {
            roots = roots.protect(Path::new(name), Bar::Writing);
        }
        Ok(roots)
    }

    /// What commands are kept from behind their walls.
    pub(crate) fn guards(&self) -> Vec<Guard> {
        let hidden = self.hidden().map(|path| Guard {
            path: path.to_owned(),
            keep: Keep::Hidden,
            absent: StandIn::Folder,
        });
        // There or not: what makes agents is read again when it changes. An empty folder stands in
        // for a file as well, because git does not see one; and most of `.github` is none of our
        // business.
        let made_of = DEFINITIONS.iter().map(|name| Guard {
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
        hidden.chain(made_of).chain(repository(&self.workspace)).chain(home).collect()
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
/// What walls this machine can build, tried once for all who need to know: it takes longer than a
/// start, and is the same for every command and every server.
pub(crate) fn survey() -> &'static Survey {
    static SURVEY: OnceLock<Survey> = OnceLock::new();
    // Once in its way this is the program that runs, whatever is at its path by now.
    SURVEY.get_or_init(|| Survey::take(Path::new("/proc/self/exe")))
}

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

/// What agents are made of. An agent that could write here would write itself.
const DEFINITIONS: [&str; 10] = [
    ".locum",
    ".claude",
    ".agents",
    ".goose",
    ".opencode",
    ".codex",
    ".gemini",
    ".github/agents",
    ".github/skills",
    ".mcp.json",
];

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
            };
            let found: Vec<&Path> = place.hidden().collect();
            assert_eq!(found, [Path::new("/data"), Path::new(hidden)], "{config}");
        }
    }
}
