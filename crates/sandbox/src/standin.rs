//! Stand-ins: a place that does not exist cannot be mounted over, so while a command runs an
//! empty folder or a small file stands there, and goes when the last command that needs it ends.
//!
//! Commands share a workspace, so a stand-in is locked by everyone who needs it; whoever can
//! lock it alone is the last and removes it. One left behind by a process that was killed is
//! known by its impossible date, and taken over.
//!
//! A folder that only leads to a stand-in is open to everybody, so it loses that date when
//! something is put there. Whoever found it dated remembers, and removes it if it is empty.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::walls::{NoWalls, StandIn};

/// Somebody may remove what another is about to lock; each try settles one such meeting.
const TRIES: u32 = 100;

/// A folder with more in it is none of ours.
const STAND_INS_MAX: usize = 64;

/// One second into 1970: no file of anybody's is from then.
fn mark() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1)
}

/// Whether this is a stand-in of somebody: to whoever plans, nothing is there.
pub(crate) fn is_one(data: &fs::Metadata) -> bool {
    data.modified().is_ok_and(|at| at == mark())
}

/// Who plans and takes does so alone: a stand-in that is just being made has no date yet, and would
/// be taken for something real.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static PLANNING: Mutex<()> = Mutex::new(());
    PLANNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stand-in that a plan asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) path: PathBuf,
    pub(crate) stand_in: StandIn,
}

/// Keeps stand-ins in place until it is dropped.
#[derive(Debug, Default)]
pub struct Hold {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
    want: Want,
    /// It had the date of a stand-in when it was found.
    ours: bool,
}

impl Held {
    /// What is put into a folder, or taken from it, changes its date.
    fn leads(&self) -> bool {
        self.ours && self.want.stand_in == StandIn::Within
    }

    fn is_dated(&self) -> bool {
        self.file.metadata().is_ok_and(|data| is_one(&data))
    }

    fn date(&self) -> io::Result<()> {
        self.file.set_times(FileTimes::new().set_modified(mark()))
    }
}

/// Something is there, and it could be a stand-in that has no date yet.
pub(crate) fn looks_so(path: &Path, stand_in: StandIn) -> bool {
    let stand_in = if stand_in == StandIn::Within { StandIn::Folder } else { stand_in };
    fits(&Want { path: path.to_owned(), stand_in }).unwrap_or(false)
}

impl Hold {
    pub(crate) fn take(wants: &[Want]) -> Result<Self, NoWalls> {
        let mut hold = Self::default();
        let leads =
            |path: &Path| wants.iter().any(|it| it.stand_in == StandIn::Within && it.path == path);
        for want in wants {
            // One guard may be of a folder, and another of something in it.
            let stand_in = if leads(&want.path) { StandIn::Within } else { want.stand_in };
            let want = &Want { stand_in, ..want.clone() };
            let failed = |source| NoWalls::Path { path: want.path.clone(), source };
            // Held already: two guards below the same absent folder.
            if hold.held.iter().any(|held| held.want.path == want.path) {
                continue;
            }
            if let Some(file) = stand(want).map_err(failed)? {
                let ours = file.metadata().is_ok_and(|data| is_one(&data));
                hold.held.push(Held { file, want: want.clone(), ours });
            }
        }
        for held in hold.held.iter().filter(|held| held.leads()) {
            held.date().map_err(|source| NoWalls::Path { path: held.want.path.clone(), source })?;
        }
        Ok(hold)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for held in &mut self.held {
            held.ours |= held.is_dated();
        }
        // What is in a folder goes before it.
        for held in self.held.drain(..).rev() {
            // What cannot be removed stays, which is untidy and no danger.
            let _ = clear(&held);
        }
    }
}

/// None: something real appeared there meanwhile, and is guarded as it is.
fn stand(want: &Want) -> io::Result<Option<File>> {
    for _ in 0..TRIES {
        let made = match want.stand_in {
            StandIn::Folder | StandIn::Within => fs::create_dir(&want.path),
            StandIn::File(text) => write(&want.path, text),
        };
        match made {
            Ok(()) => File::open(&want.path)?.set_times(FileTimes::new().set_modified(mark()))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let file = match File::open(&want.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match fits(want) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        file.lock_shared()?;
        if still_there(&file, &want.path) {
            return Ok(Some(file));
        }
    }
    Err(io::Error::other("others keep removing it"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn clear(held: &Held) -> io::Result<()> {
    let Held { file, want, .. } = held;
    // Somebody else may have found it without its date, and be the last.
    if held.leads() && holds_nothing_else(&want.path)? {
        held.date()?;
    }
    file.unlock()?;
    if file.try_lock().is_err() || !still_there(file, &want.path) {
        return Ok(());
    }
    // Not from that second: somebody's own, which only happens to look like a stand-in.
    if file.metadata()?.modified()? != mark() || !fits(want)? {
        return Ok(());
    }
    match want.stand_in {
        StandIn::Folder | StandIn::Within => fs::remove_dir(&want.path),
        StandIn::File(_) => fs::remove_file(&want.path),
    }
}

/// By what it is and not by its date: one that is being made has no date yet, and must not lose
/// its lock for that.
fn fits(want: &Want) -> io::Result<bool> {
    match want.stand_in {
        StandIn::Folder => Ok(fs::read_dir(&want.path)?.next().is_none()),
        // Whatever is in it: removing it fails then.
        StandIn::Within => Ok(fs::symlink_metadata(&want.path)?.is_dir()),
        StandIn::File(text) => {
            let length = fs::metadata(&want.path)?.len();
            Ok(length <= text.len() as u64 && text.as_bytes().starts_with(&fs::read(&want.path)?))
        }
    }
}

/// Nothing but stand-ins is in this folder.
fn holds_nothing_else(folder: &Path) -> io::Result<bool> {
    for (count, entry) in fs::read_dir(folder)?.enumerate() {
        if count == STAND_INS_MAX || !is_one(&entry?.metadata()?) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(unix)]
fn still_there(file: &File, path: &Path) -> bool {
    let same = |(a, b): (fs::Metadata, fs::Metadata)| is_same(&a, &b);
    file.metadata().ok().zip(fs::symlink_metadata(path).ok()).is_some_and(same)
}

/// Whether two looks were at one file.
#[cfg(unix)]
pub(crate) fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    one.ino() == other.ino() && one.dev() == other.dev()
}

#[cfg(not(unix))]
pub(crate) fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// Elsewhere there are no walls yet, and so no stand-ins.
#[cfg(not(unix))]
fn still_there(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{Hold, StandIn, Want};
    use crate::enclose::tidy;
    use crate::guards::repository;
    use crate::layers;
    use crate::walls::{Guard, Keep, Walls};

    fn place(name: &str) -> PathBuf {
        let base = std::env::temp_dir().join(format!("locum-standin-{}", std::process::id()));
        fs::create_dir_all(&base).expect("a folder");
        base.join(name)
    }

    const KINDS: [(&str, StandIn); 4] = [
        ("folder", StandIn::Folder),
        ("within", StandIn::Within),
        ("empty", StandIn::File("")),
        ("text", StandIn::File(".\n")),
    ];

    #[test]
    fn it_goes_with_the_last_who_needs_it() {
        for (name, stand_in) in KINDS {
            let path = place(&format!("last-{name}"));
            let wants = [Want { path: path.clone(), stand_in }];
            let first = Hold::take(&wants).expect("held");
            let second = Hold::take(&wants).expect("held");
            drop(first);
            assert!(path.exists(), "{name}: the second still needs it");
            drop(second);
            assert!(!path.exists(), "{name}: nobody needs it");
        }
    }

    #[test]
    fn one_left_behind_by_a_killed_process_is_taken_over() {
        for (name, stand_in) in KINDS {
            let path = place(&format!("left-{name}"));
            let wants = [Want { path: path.clone(), stand_in }];
            // As if killed: nothing is cleared, but the lock is gone with the process.
            let mut hold = Hold::take(&wants).expect("held");
            hold.held.clear();
            assert!(path.exists());
            drop(Hold::take(&wants).expect("held"));
            assert!(!path.exists(), "{name}");
        }
    }

    /// Whoever plans while another's command runs must not take its stand-ins for real places:
    /// they go with that command, and nobody would hold them.
    #[test]
    fn a_plan_beside_a_running_command_wants_the_same() {
        // One guard is of a folder, and another of something in it.
        let home = |workspace: &Path| -> Vec<Guard> {
            let guard = |(name, keep)| {
                let path = workspace.join(name);
                Guard { path, keep, absent: StandIn::Within }
            };
            let names = [(".c/git", Keep::Frozen), (".c/git/keys", Keep::Hidden)];
            names.into_iter().chain([(".c/fish", Keep::Frozen)]).map(guard).collect()
        };
        for name in ["repository", "home"] {
            let workspace = place(name);
            fs::create_dir_all(&workspace).expect("made");
            let guards = if name == "home" { home(&workspace) } else { repository(&workspace) };
            let walls = Walls { guards, ..Walls::around(&workspace) };
            let plan = || layers::plan(&walls).expect("a plan").wants;
            let wants = plan();
            assert!(!wants.is_empty());
            let first = Hold::take(&wants).expect("held");
            assert_eq!(plan(), wants, "{name}");
            let mut second = Hold::take(&plan()).expect("held");
            drop(first);
            assert!(wants.iter().all(|want| want.path.exists()), "{name}");
            tidy(&walls);
            assert!(wants.iter().all(|want| want.path.exists()), "{name}: somebody needs them");
            // As if killed: nothing is cleared, but the locks are gone with the process.
            second.held.clear();
            tidy(&walls);
            assert!(wants.iter().all(|want| !want.path.exists()), "{name}");
        }
    }

    #[test]
    fn what_is_somebodys_own_stays() {
        for (name, stand_in) in KINDS {
            let path = place(&format!("own-{name}"));
            match stand_in {
                StandIn::Folder | StandIn::Within => fs::create_dir(&path).expect("made"),
                StandIn::File(text) => fs::write(&path, text).expect("made"),
            }
            drop(Hold::take(&[Want { path: path.clone(), stand_in }]).expect("held"));
            assert!(path.exists(), "{name}");
        }
    }

    #[test]
    fn what_was_filled_meanwhile_stays() {
        let path = place("filled");
        let want = Want { path: path.clone(), stand_in: StandIn::Folder };
        let hold = Hold::take(&[want]).expect("held");
        fs::write(path.join("HEAD"), "x").expect("filled");
        drop(hold);
        assert!(path.join("HEAD").exists());
    }

    #[test]
    fn many_at_once_never_lose_it() {
        let path = place("many");
        let wants = [Want { path: path.clone(), stand_in: StandIn::Folder }];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let hold = Hold::take(&wants).expect("held");
                        assert!(path.is_dir(), "held and not there");
                        drop(hold);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
