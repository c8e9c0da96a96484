//! What people answered: which folders they trust and which servers of those they let start. One
//! file in the data folder, which agents can neither read nor write; it is replaced as a whole.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use locum_definitions::{Refused, read_text};
use locum_kernel::Digest;
use locum_runtime::clock::{Clock as _, System, rfc3339};
use locum_tools::own;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaint;

const NAME: &str = "trust.json";
const VERSION: u32 = 1;
/// Some ten thousand folders.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Store {
    v: u32,
    /// By real path.
    #[serde(default)]
    pub(crate) folders: BTreeMap<String, Answer>,
    /// By what they would run, and where.
    #[serde(default)]
    servers: BTreeMap<String, Approval>,
}

/// What a person said. In the file it is true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub(crate) enum Verdict {
    Yes,
    No,
}

impl From<bool> for Verdict {
    fn from(yes: bool) -> Verdict {
        if yes { Verdict::Yes } else { Verdict::No }
    }
}

impl From<Verdict> for bool {
    fn from(verdict: Verdict) -> bool {
        verdict == Verdict::Yes
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) trusted: Verdict,
    pub(crate) at: String,
}

/// What was answered of a server; `line` and `folder` are for whoever reads the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Approval {
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) folder: String,
    pub(crate) approved: Verdict,
    pub(crate) at: String,
}

impl Default for Store {
    fn default() -> Store {
        Store { v: VERSION, folders: BTreeMap::new(), servers: BTreeMap::new() }
    }
}

impl Store {
    pub(crate) fn read(data: &Path) -> Result<Store, Complaint> {
        let file = data.join(NAME);
        let text = match read_text(&file, data, BYTES_MAX) {
            Ok(text) => text,
            Err(Refused::Missing { .. }) => return Ok(Store::default()),
            Err(refused) => return Err(unusable(&file, &refused.to_string())),
        };
        let store: Store =
            serde_json::from_str(&text).map_err(|error| unusable(&file, &error.to_string()))?;
        if store.v > VERSION {
            return Err(unusable(&file, "it was written by a newer version of locum"));
        }
        Ok(store)
    }

    /// Two programs that answer at the same time both have their answer kept.
    pub(crate) fn change<T>(
        data: &Path,
        change: impl FnOnce(&mut Store) -> T,
    ) -> Result<T, Complaint> {
        let file = data.join(NAME);
        let failed = |error: io::Error| unusable(&file, &error.to_string());
        let _lock = own::lock(&data.join("trust.lock")).map_err(failed)?;
        let mut store = Store::read(data)?;
        let changed = change(&mut store);
        let text = serde_json::to_string_pretty(&store).map_err(io::Error::from);
        text.and_then(|text| own::replace(&file, text.as_bytes())).map_err(failed)?;
        Ok(changed)
    }

    /// The answer for a folder: its own, or that of the nearest above, but not above `top`.
    pub(crate) fn of_folder(
        &self,
        folder: &Path,
        top: Option<&Path>,
    ) -> Option<(PathBuf, Verdict)> {
        let within = |it: &&Path| top.is_none_or(|top| it.starts_with(top));
        let answer = |it: &Path| Some((it.to_owned(), self.folders.get(it.to_str()?)?.trusted));
        folder.ancestors().take_while(within).find_map(answer)
    }

    pub(crate) fn keep(&mut self, folder: &str, trusted: Verdict) {
        self.folders.insert(folder.to_owned(), Answer { trusted, at: now() });
    }

    /// Whether there was an answer. What was said of its servers is forgotten as well.
    pub(crate) fn forget(&mut self, folder: &str) -> bool {
        self.servers.retain(|_, approval| approval.folder != folder);
        self.folders.remove(folder).is_some()
    }

    pub(crate) fn of_server(&self, digest: &Digest) -> Option<Verdict> {
        self.servers.get(digest.as_str()).map(|approval| approval.approved)
    }

    pub(crate) fn approve(&mut self, digest: &Digest, approval: Approval) {
        self.servers.insert(digest.as_str().to_owned(), approval);
    }
}

pub(crate) fn now() -> String {
    rfc3339(System.now())
}

fn unusable(file: &Path, cause: &str) -> Complaint {
    Complaint {
        code: "E127",
        what: format!("What you trust cannot be read or kept in {}.", file.display()),
        cause: cause.to_owned(),
        next: format!("mend or remove {}, then locum trust", file.display()),
        exit: crate::complaint::DATA,
    }
}
