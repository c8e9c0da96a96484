//! What agents are made of, and what else at home runs things: one list for the file tools, for
//! the walls around commands, and for the folders that programs are given.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use locum_sandbox::{Guard, Keep, StandIn};

use crate::Place;

/// In a project. An agent that could write here would write itself.
pub(crate) const PROJECT: [&str; 10] = [
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

/// In a home: folders of programs, and what in each is read as definitions.
const HOME: &[(&str, &[&str])] = &[
    (".agents", &["agents", "recipes", "skills"]),
    (".ash", &["skills"]),
    (".claude", &["agents", "skills"]),
    (".codex", &["skills"]),
    (".config/agents", &["skills"]),
    (".config/goose", &["agents", "recipes", "skills"]),
    (".config/locum", &["agents", "recipes", "skills"]),
    (".config/opencode", &["agent", "agents"]),
    (".gemini", &["agents", "skills"]),
    (".goose", &["agents", "recipes"]),
    // What folders are trusted is written there.
    (".local/share/locum", &[]),
    (".locum", &[]),
    (".mcp.json", &[]),
    (".opencode", &[]),
];

/// Beside our own configuration.
const CONFIG: [&str; 3] = ["agents", "recipes", "skills"];

/// What starts with a shell, a session or `git`, whoever it is that works in a home.
const STARTS: &[(&str, StandIn)] = &[
    (".bash_aliases", StandIn::File("")),
    (".bash_login", StandIn::File("[ ! -r ~/.profile ] || . ~/.profile\n")),
    (".bash_logout", StandIn::File("")),
    (".bash_profile", StandIn::File(INSTEAD)),
    (".bashrc", StandIn::File("")),
    (".config/autostart", StandIn::Within),
    (".config/fish", StandIn::Within),
    (".config/git", StandIn::Within),
    (".config/systemd/user", StandIn::Within),
    (".gitconfig", StandIn::File("")),
    (".profile", StandIn::File("")),
    (".xprofile", StandIn::File("")),
    (".xsessionrc", StandIn::File("")),
    (".zlogin", StandIn::File("")),
    (".zlogout", StandIn::File("")),
    (".zprofile", StandIn::File("")),
    (".zshenv", StandIn::File("")),
    (".zshrc", StandIn::File("")),
];

/// A shell reads the first of three files that is there, so whatever stands for one reads the next.
const INSTEAD: &str = "if [ -r ~/.bash_login ]; then . ~/.bash_login; \
                       elif [ -r ~/.profile ]; then . ~/.profile; fi\n";

/// Folders that people may have moved elsewhere, and where that is said.
const MOVED: [(&str, &str); 2] =
    [(".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME")];

/// What is the person's own and lies in the workspace, unless the work is in there: then that is
/// what the person wants changed.
pub(crate) fn of_person(place: &Place) -> Vec<Guard> {
    let workspace = real(&place.workspace);
    let within = |path: &Path| {
        let path = real(path);
        path.starts_with(&workspace) && path != workspace
    };
    let mut found = Vec::new();
    let mut keep = |path: PathBuf, absent| {
        let inside = within(&path);
        if inside {
            found.push(Guard { path, keep: Keep::Frozen, absent });
        }
        inside
    };
    for (folder, parts) in HOME {
        for folder in at_home(place.home.as_deref(), folder) {
            if !keep(folder.clone(), StandIn::Within) {
                for part in *parts {
                    keep(folder.join(part), StandIn::Within);
                }
            }
        }
    }
    for (name, absent) in STARTS {
        for path in at_home(place.home.as_deref(), name) {
            keep(path, *absent);
        }
    }
    // Elsewhere its whole folder is hidden.
    let config = place.config.as_deref().and_then(Path::parent);
    let config = config.filter(|folder| workspace.starts_with(real(folder)));
    let beside = config.into_iter().flat_map(|folder| CONFIG.map(|name| folder.join(name)));
    for folder in beside.chain(place.recipes.iter().cloned()) {
        keep(folder, StandIn::Within);
    }
    found
}

/// What at home starts by itself, there or not.
pub(crate) fn starts(place: &Place) -> Vec<PathBuf> {
    let names = STARTS.iter().map(|(name, _)| name);
    names.flat_map(|name| at_home(place.home.as_deref(), name)).collect()
}

/// Where a home has definitions, in all their folders.
pub(crate) fn at(home: Option<&Path>) -> Vec<PathBuf> {
    let parts = HOME.iter().flat_map(|(folder, parts)| {
        let folders = at_home(home, folder);
        folders.into_iter().flat_map(|folder| parts.iter().map(move |part| folder.join(part)))
    });
    parts.collect()
}

/// A place in a home, and where it is if people have moved what it lies in.
fn at_home(home: Option<&Path>, name: &str) -> Vec<PathBuf> {
    home.map(|home| everywhere(home, name, |variable| env::var_os(variable))).unwrap_or_default()
}

fn everywhere(home: &Path, name: &str, set: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let plain = home.join(name);
    let moved = MOVED.iter().filter_map(|(folder, variable)| {
        let rest = name.strip_prefix(folder)?;
        let folder = set(variable).map(PathBuf::from).filter(|it| it.is_absolute())?;
        Some(folder.join(rest)).filter(|path| *path != plain)
    });
    let moved: Vec<PathBuf> = moved.collect();
    [plain].into_iter().chain(moved).collect()
}

/// Where a path leads, by way of whatever of it is there already.
pub(crate) fn real(path: &Path) -> PathBuf {
    let mut known = path.ancestors().filter_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = known.next() else { return path.to_owned() };
    path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_have_moved_is_found_in_both_places() {
        let set = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/etc/me".into()),
            "XDG_DATA_HOME" => Some("not/absolute".into()),
            _ => None,
        };
        let cases = [
            (".config/goose", "/h/.config/goose /etc/me/goose"),
            (".config/git", "/h/.config/git /etc/me/git"),
            (".local/share/locum", "/h/.local/share/locum"),
            (".claude", "/h/.claude"),
        ];
        for (name, expected) in cases {
            let found = everywhere(Path::new("/h"), name, set);
            let found: Vec<_> = found.iter().filter_map(|it| it.to_str()).collect();
            assert_eq!(found.join(" "), expected, "{name}");
        }
    }

    /// Workspace, home, our configuration, a folder of recipes; and what is kept of it.
    #[test]
    fn only_what_lies_in_the_workspace_is_kept() {
        let cases = [
            ("/u/me/project", ".claude .bashrc", ""),
            ("/u/me", ".claude .config/goose .bashrc .mcp.json /u/me/own", "all"),
            ("/u", ".claude .config/goose .bashrc .mcp.json /u/me/own", "all"),
            ("/u/me/.config", ".config/goose .config/fish", "all"),
            ("/u/me/.config", ".claude .bashrc", ""),
            // The work is there, and what is in it that agents are made of is kept all the same.
            ("/u/me/.claude", ".claude/agents .claude/skills", "all"),
            ("/u/me/.claude", ".claude", ""),
            ("/u/me/.claude/agents", ".claude .claude/agents .claude/skills", ""),
            ("/u/me/own", "/u/me/own", ""),
            ("/u/work", "/u/work/recipes /u/work/agents /u/work/skills", "all"),
        ];
        for (workspace, names, kept) in cases {
            let place = Place {
                session: "s".into(),
                workspace: workspace.into(),
                data: "/data".into(),
                config: Some("/u/work/locum.toml".into()),
                home: Some("/u/me".into()),
                recipes: vec!["/u/me/own".into()],
                readable: Vec::new(),
            };
            let found = of_person(&place);
            for name in names.split(' ') {
                let path = Path::new("/u/me").join(name);
                let is_kept = found.iter().any(|guard| guard.path == path);
                assert_eq!(is_kept, kept == "all", "{workspace} {name}");
            }
        }
    }
}
