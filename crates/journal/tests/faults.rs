//! What a machine can do to a journal: flip bits, cut files, zero blocks, kill, stop and race
//! processes, run out of space, lose power. Nothing may go unseen, and nobody else may suffer.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "faults/damage.rs"]
mod damage;
#[cfg(unix)]
#[path = "faults/disk.rs"]
mod disk;
#[cfg(unix)]
#[path = "faults/power.rs"]
mod power;
#[path = "faults/processes.rs"]
mod processes;
#[cfg(unix)]
#[path = "faults/room.rs"]
mod room;
#[path = "faults/space.rs"]
mod space;

use std::fs;
use std::path::{Path, PathBuf};

use locum_kernel::{Entry, Event, Seq, Time, VERSION};

/// A folder of its own for each test, gone when the test is. In memory where there is such a
/// place: thousands of journals are opened here, and what is tested is not the disk.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("locum-faults-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn entry(seq: u64, text: &str) -> Entry {
    let events = vec![Event::Opened { session: text.to_owned() }];
    Entry { v: VERSION, seq: Seq(seq), at: Time(seq), events }
}

/// A long text that is nowhere the same.
fn text(length: usize, seed: u64) -> String {
    let mut numbers = Numbers(seed);
    (0..length).map(|_| char::from(b'a' + u8::try_from(numbers.below(26)).unwrap())).collect()
}

/// The same numbers in every run: a failure can be looked at again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}
