//! A disk that can lose what was not synced, driven by what `strace` saw of a process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{Numbers, beside};

const SECTOR: usize = 512;

/// What was done to the journal's files, each named by its suffix.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Make(String),
    Write {
        file: String,
        at: usize,
        bytes: Vec<u8>,
    },
    Cut {
        file: String,
        length: usize,
    },
    Remove(String),
    /// Covers what was done before the operation with this number.
    Sync {
        file: String,
        before: usize,
    },
    SyncFolder,
    /// Not of the journal: what the process said it has done.
    Told(String),
}

impl Op {
    pub(crate) fn is_rare(&self) -> bool {
        match self {
            Op::Write { file, .. } | Op::Sync { file, .. } => file != "-wal",
            Op::Make(_) | Op::Cut { .. } | Op::Remove(_) | Op::SyncFolder => true,
            Op::Told(_) => false,
        }
    }
}

/// What becomes of that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    All,
    None,
    /// Each write is there or not.
    Some,
    /// Everything up to somewhere in the middle of a write.
    Torn,
    /// Each sector of each write is there or not.
    Sectors,
    /// As `Torn`, of everything since the beginning: syncs are ignored.
    Liar,
}

#[derive(Default)]
struct File {
    synced: Vec<u8>,
    pending: Vec<(usize, Change)>,
}

enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(at, new) => {
                let end = at + new.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(new);
            }
            Change::Cut(length) => bytes.resize(*length, 0),
        }
    }
}

/// Files by number; names are given and taken in an order that a loss keeps, as file systems do.
#[derive(Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    kept_names: BTreeMap<String, usize>,
    renamings: Vec<(String, Option<usize>)>,
}

impl Disk {
    fn file(&mut self, name: &str) -> &mut File {
        let number = self.names[name];
        &mut self.files[number]
    }

    pub(crate) fn perform(&mut self, number: usize, op: &Op, loss: Loss) {
        match op {
            // An open that makes what is there already makes nothing.
            Op::Make(name) if self.names.contains_key(name) => {}
            Op::Make(name) => {
                self.names.insert(name.clone(), self.files.len());
                self.renamings.push((name.clone(), Some(self.files.len())));
                self.files.push(File::default());
            }
            Op::Write { file, at, bytes } => {
                let change = Change::Write(*at, bytes.clone());
                self.file(file).pending.push((number, change));
            }
            Op::Cut { file, length } => {
                self.file(file).pending.push((number, Change::Cut(*length)));
            }
            Op::Remove(name) => {
                self.names.remove(name);
                self.renamings.push((name.clone(), None));
            }
            Op::Sync { .. } | Op::SyncFolder if loss == Loss::Liar => {}
            Op::Sync { file, before } => {
                let File { synced, pending } = self.file(file);
                let later = pending.split_off(pending.partition_point(|(at, _)| at < before));
                pending.drain(..).for_each(|(_, change)| change.apply(synced));
                *pending = later;
            }
            Op::SyncFolder => {
                self.renamings.clear();
                self.kept_names.clone_from(&self.names);
            }
            Op::Told(_) => {}
        }
    }

    pub(crate) fn lose(&mut self, loss: Loss, numbers: &mut Numbers) {
        let kept = match loss {
            Loss::All => 0,
            Loss::None | Loss::Liar => self.renamings.len(),
            Loss::Some | Loss::Torn | Loss::Sectors => numbers.below(self.renamings.len() + 1),
        };
        for (name, file) in self.renamings.drain(..).take(kept) {
            match file {
                Some(file) => drop(self.kept_names.insert(name, file)),
                None => drop(self.kept_names.remove(&name)),
            }
        }
        for File { synced, pending } in &mut self.files {
            let last = numbers.below(pending.len() + 1);
            for (number, (_, change)) in pending.drain(..).enumerate() {
                let survives = match loss {
                    Loss::All => false,
                    Loss::None | Loss::Sectors => true,
                    Loss::Some => numbers.below(2) == 0,
                    Loss::Torn | Loss::Liar => number <= last,
                };
                if survives {
                    let is_torn = matches!(loss, Loss::Torn | Loss::Liar) && number == last;
                    survive(&change, is_torn, loss == Loss::Sectors, synced, numbers);
                }
            }
        }
    }

    pub(crate) fn put(&self, path: &Path) {
        for (suffix, number) in &self.kept_names {
            fs::write(beside(path, suffix), &self.files[*number].synced).unwrap();
        }
    }
}

fn survive(
    change: &Change,
    is_torn: bool,
    by_sector: bool,
    bytes: &mut Vec<u8>,
    numbers: &mut Numbers,
) {
    match change {
        Change::Write(at, new) if is_torn => {
            let part = new[..numbers.below(new.len() + 1)].to_vec();
            Change::Write(*at, part).apply(bytes);
        }
        Change::Write(at, new) if by_sector => {
            let mut from = 0;
            while from < new.len() {
                // Sectors are the disk's, wherever the write begins.
                let end = (from + SECTOR - (at + from) % SECTOR).min(new.len());
                if numbers.below(2) == 0 {
                    Change::Write(at + from, new[from..end].to_vec()).apply(bytes);
                }
                from = end;
            }
        }
        change @ (Change::Write(..) | Change::Cut(_)) => change.apply(bytes),
    }
}

/// The operations on the files of a journal, from `strace -f -y -xx`.
pub(crate) fn read_trace(trace: &str, path: &Path) -> Vec<Op> {
    let (mut ops, mut begun) = (Vec::new(), BTreeMap::new());
    for line in trace.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(call) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(process, (call.to_owned(), ops.len()));
        } else if let Some((_, end)) = rest.split_once(" resumed>") {
            let Some((call, before)) = begun.remove(process) else { continue };
            ops.extend(read_call(&format!("{call}{end}"), before, path));
        } else {
            ops.extend(read_call(rest, ops.len(), path));
        }
    }
    ops
}

fn read_call(call: &str, before: usize, path: &Path) -> Option<Op> {
    let (call, result) = call.rsplit_once(" = ")?;
    if result.starts_with('-') {
        return None;
    }
    let (verb, rest) = call.split_once('(')?;
    let text = rest.split('"').nth(1).map(bytes_of).unwrap_or_default();
    let named = match verb {
        "openat" | "unlink" | "rename" => text.clone(),
        _ => bytes_of(rest.split_once('<')?.1.split_once('>')?.0),
    };
    let named = String::from_utf8(named).ok()?;
    if (verb == "fsync" || verb == "fdatasync") && Path::new(&named) == path.parent()? {
        return Some(Op::SyncFolder);
    }
    let file = named.strip_prefix(path.to_str()?)?.to_owned();
    let mut last = rest.trim_end().trim_end_matches(')').rsplit(", ").map(str::parse::<usize>);
    match verb {
        // What these hold is of no use after the power went.
        _ if file == "-shm" || file == "-lock" => None,
        "openat" => rest.contains("O_CREAT").then_some(Op::Make(file)),
        "pwrite64" if file == "-told" => Some(Op::Told(String::from_utf8(text).ok()?)),
        "pwrite64" => Some(Op::Write { file, at: last.next()?.unwrap(), bytes: text }),
        "ftruncate" => Some(Op::Cut { file, length: last.next()?.unwrap() }),
        "unlink" => Some(Op::Remove(file)),
        "fsync" | "fdatasync" => Some(Op::Sync { file, before }),
        other => panic!("{other} of {file:?}: this disk does not know how"),
    }
}

/// `\x66\x6f`, as `-xx` writes everything.
fn bytes_of(text: &str) -> Vec<u8> {
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |part: &[u8]| Some(digit(*part.get(2)?)? << 4 | digit(*part.get(3)?)?);
    text.as_bytes().chunks(4).filter_map(pair).collect()
}
