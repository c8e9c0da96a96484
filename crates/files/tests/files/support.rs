//! A folder that goes away again, a picture of a tree to compare, and a watch over what might hang.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use locum_files::{Access, Desk, Error, Roots, Stop};
use serde_json::Value;

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch::under(&std::env::temp_dir())
    }

    /// In memory, if there is such a place: for those who do a lot and care about no disk.
    pub(crate) fn quick() -> Scratch {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Scratch::under(memory) } else { Scratch::new() }
    }

    fn under(folder: &Path) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("locum-files-{}-{number}", std::process::id());
        let path = folder.canonicalize().unwrap().join(name);
        fs::create_dir_all(path.join("root")).unwrap();
        Scratch(path)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::new(&self.root(), Access::Writable).unwrap()
    }

    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        fs::read(self.0.join(path)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a tool says to a model: its text or its error.
pub(crate) fn say(desk: &Desk, tool: &str, arguments: &Value) -> Result<String, String> {
    let answer = desk.run("me", tool, arguments, &Stop::new());
    answer.map(|answer| answer.text).map_err(|error: Error| error.to_string())
}

/// Every name below, what it is and what it holds.
pub(crate) fn tree(top: &Path, leave_out: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let data = fs::symlink_metadata(&path).unwrap();
        let what = if data.is_dir() {
            for entry in fs::read_dir(&path).unwrap() {
                let below = entry.unwrap().path();
                if !leave_out.iter().any(|name| below == top.join(name)) {
                    ahead.push(below);
                }
            }
            "folder".to_owned()
        } else if data.is_file() {
            format!("{} {:o} {:?}", data.ino(), data.mode(), fs::read(&path).unwrap())
        } else {
            format!("{} {:?}", data.ino(), data.file_type())
        };
        found.insert(path, what);
    }
    found
}

/// Fails instead of hanging.
pub(crate) fn within(seconds: u64, work: impl FnOnce() + Send + 'static) {
    let (done, waiting) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    let result = waiting.recv_timeout(Duration::from_secs(seconds));
    assert!(result != Err(mpsc::RecvTimeoutError::Timeout), "still not done after {seconds} s");
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}
