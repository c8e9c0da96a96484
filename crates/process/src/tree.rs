//! Who is whose child, as the system tells it, and how to end all below somebody. A number of a
//! process can be given to another one at any moment; so each is known by its number and the
//! moment it began, and signals go through a handle that was held when that was compared.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal,
};

use crate::leash::MARK;

/// Between two looks: while the dead are taken away, and when nobody was seen.
const PAUSE: Duration = Duration::from_millis(2);
const GLANCE: Duration = Duration::from_micros(100);
/// Who is still there then cannot be killed by us.
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pid: i32,
    group: i32,
    began: u64,
    dead: bool,
}

/// Everybody. What cannot be read has ended meanwhile.
pub(crate) fn everybody() -> Vec<Seen> {
    numbers("/proc").filter_map(look).filter(|seen| !seen.dead).collect()
}

/// How many there are, dead ones included: no more than their names is read.
pub(crate) fn count() -> usize {
    numbers("/proc").count()
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn look(pid: i32) -> Option<Seen> {
    look_with_parent(pid).map(|(seen, _)| seen)
}

fn look_with_parent(pid: i32) -> Option<(Seen, i32)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, but nothing after it contains a bracket.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let dead = matches!(*words.first()?, "Z" | "X");
    let (group, began) = (words.get(2)?.parse().ok()?, words.get(19)?.parse().ok()?);
    Some((Seen { pid, group, began, dead }, words.get(1)?.parse().ok()?))
}

/// All below `root` that are alive. Asked from parent to child, because who forks and ends all
/// the time is gone before a look at everybody is over.
pub(crate) fn below(root: i32) -> Vec<Seen> {
    let Some(first) = children(root) else { return below_by_parents(root) };
    let (mut found, mut next, mut met) = (Vec::new(), first, HashSet::from([root]));
    while let Some(pid) = next.pop() {
        if met.insert(pid) {
            found.extend(look(pid).filter(|seen| !seen.dead));
            next.extend(children(pid).unwrap_or_default());
        }
    }
    found
}

/// None: this system does not say.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for task in numbers(&format!("/proc/{pid}/task")) {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).ok()?;
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(found)
}

fn below_by_parents(root: i32) -> Vec<Seen> {
    let all: Vec<(Seen, i32)> = numbers("/proc").filter_map(look_with_parent).collect();
    let (mut family, mut found) = (HashSet::from([root]), Vec::new());
    loop {
        let new = |(seen, parent): &(Seen, i32)| {
            (family.contains(parent) && !family.contains(&seen.pid)).then_some(*seen)
        };
        let new: Vec<Seen> = all.iter().filter_map(new).collect();
        if new.is_empty() {
            found.retain(|seen: &Seen| !seen.dead);
            return found;
        }
        family.extend(new.iter().map(|seen| seen.pid));
        found.extend(new);
    }
}

/// All that carry this mark and are alive.
pub(crate) fn marked(mark: &str) -> Vec<Seen> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let carries = |seen: &Seen| {
        let environment = fs::read(format!("/proc/{}/environ", seen.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let own = std::process::id().cast_signed();
    let mut found = everybody();
    found.retain(|seen| seen.pid != own && carries(seen));
    found
}

fn signal(seen: Seen, signal: Signal) {
    let Some(pid) = Pid::from_raw(seen.pid) else { return };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) if look(seen.pid).is_some_and(|now| now.began == seen.began) => {
            // An error means that it is gone, or that it is another user's: the time is bounded.
            let _ = pidfd_send_signal(handle, signal);
        }
        // Before Linux 5.3 there are no handles.
        Err(rustix::io::Errno::NOSYS) => {
            let _ = kill_process(pid, signal);
        }
        Ok(_) | Err(_) => {}
    }
}

/// Each of them and all of their groups. A group gets a signal in one instant, so nobody in it
/// can fork out of the way. Nobody else is in their groups: a group cannot span two sessions, and
/// the keeper has begun one of its own.
fn signal_all(seen: &[Seen], sign: Signal) {
    let own = getpgrp();
    let groups: HashSet<i32> = seen.iter().map(|seen| seen.group).collect();
    let groups = groups.into_iter().filter_map(Pid::from_raw);
    for group in groups.filter(|group| *group != own && !group.is_init()) {
        let _ = kill_process_group(group, sign);
    }
    for one in seen {
        signal(*one, sign);
    }
}

/// Ends all that `find` finds, until `done`. First everybody is stopped: who does not run cannot
/// start another one while we look. Gives how many there were.
#[expect(clippy::disallowed_methods, reason = "only bounds a wait; nothing depends on the time")]
pub(crate) fn end(find: impl Fn() -> Vec<Seen>, done: impl Fn() -> bool) -> usize {
    let began = Instant::now();
    let mut met = HashSet::new();
    while !done() && began.elapsed() < LONGEST {
        let found = find();
        let fresh = |seen: &&Seen| met.insert((seen.pid, seen.began));
        let new: Vec<Seen> = found.iter().filter(fresh).copied().collect();
        if found.is_empty() {
            thread::sleep(GLANCE);
        } else if new.is_empty() {
            signal_all(&found, Signal::KILL);
            thread::sleep(PAUSE);
        } else {
            signal_all(&new, Signal::STOP);
        }
    }
    met.len()
}
