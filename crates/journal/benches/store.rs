//! What durability costs, as ratios to a floor measured in the same run: the plainest possible
//! program that commits one row with a full sync. `cargo bench -p locum-journal`.
//!
//! A machine is never quiet, so floor and ours take turns in small slices, and what is said is
//! the median and the 95th percentile of single operations, not a mean over everything.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program to be read once")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and SQLite without us")]

#[path = "store/commits.rs"]
mod commits;
#[path = "store/opening.rs"]
mod opening;
#[path = "store/talk.rs"]
mod talk;

use std::fs;
use std::time::{Duration, Instant};

fn main() {
    let folder = std::env::temp_dir().join(format!("locum-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // One part alone, for whoever watches its system calls.
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|word| word == part);
    if is_asked("commits") {
        commits::all(&folder);
    }
    if asked.iter().any(|word| word == "lone") {
        commits::lone(&folder);
    }
    if is_asked("starts") {
        opening::starts(&folder);
    }
    if is_asked("long") {
        opening::long(&folder);
    }
    fs::remove_dir_all(&folder).unwrap();
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What single operations took.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, time: f64) {
        self.0.push(time);
    }

    fn at(&self, percent: usize) -> f64 {
        let mut all = self.0.clone();
        all.sort_by(f64::total_cmp);
        all.get((all.len() * percent / 100).min(all.len() - 1)).copied().unwrap_or_default()
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / f64::from(u32::try_from(self.0.len()).unwrap())
    }
}
