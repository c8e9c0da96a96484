//! While the tools work, somebody swaps folders and files for links that lead out, as fast as the
//! machine can. Nothing may come out, and nothing out there may change.
#![expect(clippy::disallowed_methods, reason = "it races for a while, by the clock")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locum_files::{Desk, Stop, Way};
use rustix::fs::{RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::support::{Scratch, tree, within};

const CANARY: &str = "CANARY-91be";
const RACE: Duration = Duration::from_millis(2500);

/// A folder, and two names in it that trade places; the second is a link to what is outside. The
/// folder is held open: by path, the swapper itself could be led out and carry the canary in.
type Swaps = &'static [(&'static str, &'static str, &'static str)];

const SWAPS: [Swaps; 2] = [
    &[(".", "d", "d-link"), ("p", "q", "q-link")],
    &[(".", "f", "f-link"), (".", "p", "p-link"), ("d", "f", "f-link")],
];

fn world() -> Scratch {
    let scratch = Scratch::quick();
    for path in ["outside/f", "outside/q/f", "outside/CANARY-91be"] {
        scratch.put(path, CANARY);
    }
    for path in ["root/d/f", "root/p/q/f", "root/f"] {
        scratch.put(path, "inside\n");
    }
    scratch.link("root/d-link", "../outside");
    scratch.link("root/p-link", scratch.0.join("outside"));
    scratch.link("root/p/q-link", "../../outside/q");
    scratch.link("root/f-link", "../outside/f");
    scratch.link("root/d/f-link", scratch.0.join("outside/f"));
    scratch
}

fn calls(number: usize) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    for path in ["d/f", "p/q/f", "f", "p/../d/f"] {
        calls.push(("read", json!({"path": path})));
        calls.push(("write", json!({"path": path, "content": format!("inside {number}\n")})));
        calls.push(("read", json!({"path": path})));
        calls.push(("edit", json!({"path": path, "edits": [{"old": "inside", "new": "within"}]})));
    }
    for _ in 0..25 {
        for path in ["d/f", "p/q/f", "f", "d/../f"] {
            calls.push(("read", json!({"path": path})));
        }
    }
    for path in ["d", "p/q", "p"] {
        let fresh = format!("{path}/n{}/x", number % 5);
        calls.push(("write", json!({"path": fresh, "content": "inside\n"})));
        calls.push(("ls", json!({"path": path})));
        calls.push(("glob", json!({"pattern": "**", "path": path})));
        calls.push(("grep", json!({"pattern": "CANARY.91b", "path": path})));
    }
    calls.push(("glob", json!({"pattern": "**"})));
    calls.push(("grep", json!({"pattern": "CANARY.91b"})));
    calls
}

#[derive(Default)]
struct Count {
    swaps: AtomicUsize,
    done: AtomicUsize,
    refused: AtomicUsize,
}

fn swap(which: &[(File, &str, &str)], over: &AtomicBool, count: &Count) {
    while !over.load(Ordering::Relaxed) {
        for (folder, one, other) in which {
            let swapped = renameat_with(folder, *one, folder, *other, RenameFlags::EXCHANGE);
            count.swaps.fetch_add(usize::from(swapped.is_ok()), Ordering::Relaxed);
        }
    }
}

fn work(desk: &Desk, me: &str, over: &AtomicBool, count: &Count) {
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        number += 1;
        for (tool, arguments) in calls(number) {
            let said = match desk.run(me, tool, &arguments, &Stop::new()) {
                Ok(answer) => {
                    count.done.fetch_add(1, Ordering::Relaxed);
                    answer.text
                }
                Err(error) => {
                    count.refused.fetch_add(1, Ordering::Relaxed);
                    error.to_string()
                }
            };
            assert!(!said.contains(CANARY), "{tool} {arguments}\n{said}");
        }
    }
}

fn race(way: Way, tally: &mut BTreeMap<&'static str, usize>) {
    let scratch = world();
    let before = tree(&scratch.0.join("outside"), &[]);
    let desk = Arc::new(Desk::new(scratch.roots().by(way)));
    let over = Arc::new(AtomicBool::new(false));
    let count = Arc::new(Count::default());
    let mut threads = Vec::new();
    let open = |folder| File::open(scratch.root().join(folder)).unwrap();
    for which in SWAPS.map(|swaps| swaps.iter().map(|(at, a, b)| (open(at), *a, *b)).collect()) {
        let (over, count) = (Arc::clone(&over), Arc::clone(&count));
        let which: Vec<_> = which;
        threads.push(thread::spawn(move || swap(&which, &over, &count)));
    }
    for me in ["a", "b"] {
        let (desk, over, count) = (Arc::clone(&desk), Arc::clone(&over), Arc::clone(&count));
        threads.push(thread::spawn(move || work(&desk, me, &over, &count)));
    }
    let start = Instant::now();
    while start.elapsed() < RACE && !threads.iter().any(thread::JoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(20));
    }
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    assert_eq!(tree(&scratch.0.join("outside"), &[]), before, "{way:?}");
    let (swaps, done) = (count.swaps.load(Ordering::Relaxed), count.done.load(Ordering::Relaxed));
    let refused = count.refused.load(Ordering::Relaxed);
    // A race that one side always wins is none.
    assert!(swaps > 100 && done > 20 && refused > 20, "{swaps} swaps, {done} done, {refused}");
    for (name, number) in [("swaps", swaps), ("done", done), ("refused", refused)] {
        *tally.entry(name).or_default() += number;
    }
    eprintln!("{way:?}: {swaps} swaps against {done} calls done and {refused} refused: none out");
}

#[test]
fn nobody_is_fast_enough() {
    within(120, || {
        let mut tally = BTreeMap::new();
        for way in [Way::Quick, Way::Stepwise] {
            race(way, &mut tally);
        }
    });
}

/// Many write one file at once: it is always what one of them wrote, and nobody's draft is left.
#[test]
fn writers_do_not_mix() {
    within(60, || {
        let scratch = Scratch::new();
        scratch.put("root/f", "start");
        let desk = Desk::new(scratch.roots());
        let over = AtomicBool::new(false);
        let won = AtomicUsize::new(0);
        thread::scope(|scope| {
            for me in ["a", "b", "c", "d"] {
                let (desk, over, won) = (&desk, &over, &won);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let seen = desk.run(me, "read", &json!({"path": "f"}), &Stop::new());
                        let text = seen.unwrap().text;
                        let first = text.chars().next().unwrap();
                        let rest = text.trim_end().trim_start_matches(first);
                        assert!(text == "start" || rest.starts_with(" [… ") || rest.is_empty());
                        let content = me.repeat(50_000);
                        let asked = json!({"path": "f", "content": content});
                        let wrote = desk.run(me, "write", &asked, &Stop::new());
                        won.fetch_add(usize::from(wrote.is_ok()), Ordering::Relaxed);
                    }
                });
            }
            thread::sleep(Duration::from_millis(1500));
            over.store(true, Ordering::Relaxed);
        });
        assert!(won.load(Ordering::Relaxed) > 4);
        assert_eq!(scratch.get("root/f").len(), 50_000);
        assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 1);
    });
}

/// Each adds one to the number it read. What was acknowledged is in the sum, or somebody's write
/// was lost.
#[test]
fn no_write_is_lost() {
    within(60, || {
        let scratch = Scratch::quick();
        // Of one length, so that only what it says tells one from the next.
        scratch.put("root/f", format!("{:08}", 0));
        let desk = Desk::new(scratch.roots());
        let (over, won, lost) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for me in ["a", "b", "c", "d"] {
                let (desk, over, won, lost) = (&desk, &over, &won, &lost);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let seen = desk.run(me, "read", &json!({"path": "f"}), &Stop::new());
                        let number: usize = seen.unwrap().text.parse().unwrap();
                        let content = format!("{:08}", number + 1);
                        let asked = json!({"path": "f", "content": content});
                        let wrote = desk.run(me, "write", &asked, &Stop::new());
                        let count = if wrote.is_ok() { won } else { lost };
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            thread::sleep(Duration::from_millis(1500));
            over.store(true, Ordering::Relaxed);
        });
        let (won, lost) = (won.into_inner(), lost.into_inner());
        let sum: usize = String::from_utf8(scratch.get("root/f")).unwrap().parse().unwrap();
        assert_eq!(sum, won, "{lost} refused");
        assert!(won > 20 && lost > 0, "{won} done, {lost} refused: they hardly met");
        eprintln!("{won} writes done, {lost} refused, none lost");
    });
}
