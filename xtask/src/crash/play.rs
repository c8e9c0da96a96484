//! A story played to its end, however often it dies on the way, and what is left of it then.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use locum_journal::{Records as _, Sqlite};
use locum_kernel::{Ask, AskId, Entry, Session};
use locum_runtime::driver::retell;
use serde_json::Value;

use super::point::{Death, Point};
use super::process::{KEY, Run, Stage};
use super::story::Story;

/// More deaths than any point has.
const PROCESSES_MAX: usize = 12;

#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) record: Record,
    pub(crate) runs: Vec<Run>,
    /// Appends in each act, and how long it took.
    pub(crate) acts: Vec<(usize, u64)>,
    /// Lines of the log that tools write to.
    pub(crate) effects: Vec<String>,
    /// What was wrong already on the way.
    pub(crate) problems: Vec<String>,
}

/// What the journal holds, and what it tells.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
    pub(crate) lines: Vec<Value>,
    pub(crate) session: Session,
    pub(crate) problems: Vec<String>,
}

/// A folder that is gone when the play is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// In memory where there is such a place: it is processes that die here, not machines.
    pub(crate) fn new(name: &str) -> Result<Folder> {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = base.join(format!("locum-crash-{}-{name}", std::process::id()));
        // What an earlier process of the same number left behind.
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Folder(path))
    }
}

impl Folder {
    /// A file that was left there, if it was.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn play(binary: &Path, story: &Story, point: &Point, folder: &Folder) -> Result<Played> {
    let stage = Stage { binary, folder: &folder.0, story };
    let mut played = Played {
        record: Record::default(),
        runs: Vec::new(),
        acts: Vec::new(),
        effects: Vec::new(),
        problems: Vec::new(),
    };
    let mut deaths = point.deaths.iter();
    let mut act = 0;
    while act < story.people.acts.len() {
        if played.runs.len() >= PROCESSES_MAX {
            bail!("{PROCESSES_MAX} processes and no end");
        }
        let death: Option<&Death> = if act >= point.act { deaths.next() } else { None };
        let run = stage.run(act, &played.record.lines, death)?;
        let before = std::mem::replace(&mut played.record, Record::read(&folder.0)?);
        played.problems.extend(asks_are_told(&before, &run));
        if run.exit.is_some() {
            played.acts.push((played.record.entries.len() - before.entries.len(), run.ms));
            act += 1;
        }
        played.runs.push(run);
    }
    played.effects = folder.read("effects.log").lines().map(str::to_owned).collect();
    Ok(played)
}

/// Asks that were open when a process died are open in the next, and it says so at once.
fn asks_are_told(before: &Record, run: &Run) -> Option<String> {
    let started = run.told.first()?;
    let closed_now =
        |id: &str| run.told.iter().any(|line| line["type"] == "ask.closed" && line["id"] == *id);
    let listed: Vec<&str> =
        started["asks"].as_array()?.iter().filter_map(|ask| ask["id"].as_str()).collect();
    let open: Vec<String> =
        before.session.asks().map(|ask: &Ask| ask.id).map(|id: AskId| id.to_string()).collect();
    let missing = open.iter().find(|id| !listed.contains(&id.as_str()) && !closed_now(id));
    let invented = listed.iter().find(|id| !open.iter().any(|open| open == **id));
    match (missing, invented) {
        (Some(id), _) => Some(format!("{id} was open before a death, and is not told after it")),
        (None, Some(id)) => Some(format!("{id} is told as open, and was not")),
        (None, None) => None,
    }
}

impl Record {
    /// From a copy: whoever opens a journal also repairs it, and that is for the program to do.
    fn read(folder: &Path) -> Result<Record> {
        let (data, copy) = (folder.join("data"), folder.join("copy"));
        drop(fs::remove_dir_all(&copy));
        fs::create_dir_all(&copy)?;
        let mut record = Record::default();
        let Ok(files) = fs::read_dir(&data) else { return Ok(record) };
        for file in files {
            let file = file?;
            // The door of a program that was killed is still there, and no file.
            if file.file_type()?.is_file() {
                fs::copy(file.path(), copy.join(file.file_name()))?;
            }
        }
        if !copy.join("journal.db").exists() {
            return Ok(record);
        }
        let journal = Sqlite::open(&copy.join("journal.db")).context("the journal")?;
        let damaged = journal.sessions()?.into_iter().find_map(|listed| listed.damaged);
        record.problems.extend(damaged.map(|why| format!("the journal is damaged: {why}")));
        record.problems.extend(journal.notices());
        let (entries, lines, problems) =
            (&mut record.entries, &mut record.lines, &mut record.problems);
        let session = retell(&journal, KEY, |session, entry, told| {
            if let Err(why) = session.check() {
                problems.push(format!("after {}: {why}", entry.seq));
            }
            entries.push(entry.clone());
            lines.extend(told.iter().filter_map(|line| serde_json::to_value(line).ok()));
            true
        })?;
        record.session = session;
        Ok(record)
    }
}
