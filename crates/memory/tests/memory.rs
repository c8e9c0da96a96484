//! The memory through its doors: what is kept and found (`notes`), the page that people edit
//! (`pages`), and what happens to files and processes (`faults`).
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "memory/faults.rs"]
mod faults;
#[path = "memory/notes.rs"]
mod notes;
#[path = "memory/pages.rs"]
mod pages;

use std::fs;
use std::path::PathBuf;

use locum_memory::{Memory, Provenance, Reader, Scope, Source};

/// A folder for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-memory-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn open(&self) -> Memory {
        Memory::open(&self.0).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.0.join("memory.db")
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn reader(workspace: &str, agent: &str) -> Reader {
    Reader { workspace: Some(workspace.into()), agent: Some(agent.into()) }
}

fn workspace(path: &str) -> Scope {
    Scope::Workspace { path: path.into() }
}

fn agent(name: &str, workspace: &str) -> Scope {
    Scope::Agent { name: name.into(), workspace: workspace.into() }
}

fn model(at: u64) -> Provenance {
    let (session, agent) = (Some("run_1".into()), Some("main/builder".into()));
    Provenance { source: Source::Model, at, session, agent }
}
