//! What servers had when they were last asked, kept beside the journal: a run that finds it here
//! begins without waiting for anybody, and the server is started when it is first called. A file
//! is named after everything its server is configured with, so that another server finds another
//! file. It is only ever a hint: what is called is compared with what was approved.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use locum_mcp::{Known, ServerSpec};

use crate::own;

/// A thousand tools at their longest would be more; then the server is simply asked.
const FILE_BYTES: u64 = 16 << 20;

/// The folder of these files.
#[derive(Clone, Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    pub(super) fn new(data: &Path) -> Cache {
        Cache(data.join("mcp"))
    }

    fn file(&self, digest: &str) -> PathBuf {
        self.0.join(format!("{digest}.json"))
    }

    /// None also if it cannot be read: then it is asked for again.
    pub(super) fn read(&self, spec: &ServerSpec) -> Option<Known> {
        let mut text = Vec::new();
        let file = fs::File::open(self.file(&spec.digest())).ok()?;
        file.take(FILE_BYTES).read_to_end(&mut text).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        // What was written under another name could stand in for another server's tools.
        known.tools.iter().all(|tool| tool.server == spec.name).then_some(known)
    }

    pub(super) fn write(&self, digest: &str, known: &Known) -> io::Result<()> {
        own::replace(&self.file(digest), &serde_json::to_vec(known)?)
    }
}
