//! What is around commands on this machine, and where that is remembered: trying walls out takes
//! longer than all the rest of a start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use locum_sandbox::Survey;

use crate::Place;

/// What is around commands on this machine.
#[derive(Debug)]
pub(crate) enum Around {
    Walls,
    /// Walls that do not keep the guards of a workspace, and words for the person who is asked for
    /// every command then.
    Weak(String),
    /// Nothing, and why.
    Bare(String),
}

impl Around {
    pub(crate) fn found(note: &Path) -> Around {
        if has_walls(note) { Around::Walls } else { Around::of(&survey(), note) }
    }

    fn of(survey: &Survey, note: &Path) -> Around {
        match (survey.builder(), survey.caution()) {
            (Ok(_), Some(why)) => Around::Weak(why),
            (Err(why), _) => Around::Bare(why.to_string()),
            (Ok(_), None) => {
                remember(note);
                Around::Walls
            }
        }
    }

    pub(crate) fn caution(&self) -> Option<&str> {
        match self {
            Around::Walls => None,
            Around::Weak(why) | Around::Bare(why) => Some(why),
        }
    }
}

static SURVEY: RwLock<Option<Arc<Survey>>> = RwLock::new(None);

/// What walls this machine can build, tried once for all who need to know: it takes longer than a
/// start, and is the same for every command and every server.
pub(crate) fn survey() -> Arc<Survey> {
    let known = SURVEY.read().unwrap_or_else(PoisonError::into_inner).clone();
    known.unwrap_or_else(|| {
        let mut kept = SURVEY.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kept.get_or_insert_with(|| Arc::new(taken())))
    })
}

fn taken() -> Survey {
    // Once in its way this is the program that runs, whatever is at its path by now.
    Survey::take(Path::new("/proc/self/exe"))
}

/// What a second look found after walls had failed.
#[derive(Debug)]
pub(crate) enum Second {
    /// The walls are as good as ever: it was something else.
    Same,
    /// Other walls are to be had that keep as much.
    Other,
    /// There are none that keep as much, and whoever starts next is asked.
    Gone(String),
}

pub(crate) fn look_again(note: &Path) -> Second {
    let before = survey();
    let now = Arc::new(taken());
    *SURVEY.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&now));
    match Around::of(&now, note) {
        Around::Walls if now.builders == before.builders => Second::Same,
        Around::Walls => Second::Other,
        Around::Weak(why) | Around::Bare(why) => {
            forget(note);
            Second::Gone(format!("{why}. Start again: then every command asks you"))
        }
    }
}

/// Where that is written: with the user's caches, because it is the same for all data folders.
pub(crate) fn note(place: &Place) -> PathBuf {
    let caches = std::env::var_os("XDG_CACHE_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let caches = caches.or_else(|| place.home.as_ref().map(|home| home.join(".cache")));
    caches.map_or_else(|| place.data.clone(), |caches| caches.join("locum")).join("walls")
}

/// Whether walls were found on this machine before and nothing they depend on has changed. That
/// there are none is never believed from a file, so nobody can take them down by writing one.
fn has_walls(note: &Path) -> bool {
    fs::read_to_string(note).is_ok_and(|text| text == machine())
}

fn remember(note: &Path) {
    // Nothing depends on it but a little time.
    let _ = note.parent().map(fs::create_dir_all);
    let _ = fs::write(note, machine());
}

pub(crate) fn forget(note: &Path) {
    let _ = fs::remove_file(note);
}

/// Settings of the system that allow namespaces or not; not every system has all of them.
const SETTINGS: [&str; 8] = [
    "kernel/osrelease",
    "kernel/random/boot_id",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "user/max_user_namespaces",
    "user/max_mnt_namespaces",
    "user/max_pid_namespaces",
    "user/max_net_namespaces",
];

/// What a process may do: who it is, with what rights, behind which filter. Somebody in a container
/// has the same home and the same kernel, and less of this.
const RIGHTS: [&str; 5] = ["Uid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];

/// What walls depend on: the system and how it is set, whether bubblewrap is there, who we are.
fn machine() -> String {
    let setting = |name: &&str| fs::read_to_string(Path::new("/proc/sys").join(name));
    let settings = SETTINGS.iter().map(setting).map(Result::unwrap_or_default);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rights = status.lines().filter(|line| RIGHTS.iter().any(|it| line.starts_with(it)));
    let label = fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let wraps = std::env::split_paths(&path).any(|folder| folder.join("bwrap").is_file());
    let words: Vec<String> = settings
        .chain(rights.map(str::to_owned))
        .chain([label, wraps.to_string()])
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    format!("guarded {}\n", words.join(", "))
}
