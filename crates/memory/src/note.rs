//! A note, who may read it, and where it is from.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// `m12`: short enough to be typed, and never given twice in one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let digits = text.trim().strip_prefix(['m', 'M']).unwrap_or_default();
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| all);
        // Beyond this the database cannot count.
        let number = number.filter(|number| *number <= i64::MAX.unsigned_abs());
        number.map(Id).ok_or_else(|| format!("{text:?} is no id of a note; one looks like m12"))
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Who may read a note. A workspace is a path as its caller spells it, always the same way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Scope {
    /// Every agent of this person, everywhere.
    User,
    /// Every agent that works in this folder.
    Workspace { path: String },
    /// One agent, by the name of its definition. Within a folder: an agent of the same name
    /// somewhere else may be made of other words, and has other work.
    Agent { name: String, workspace: String },
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::User => f.write_str("user"),
            Scope::Workspace { path } => write!(f, "workspace {path}"),
            Scope::Agent { name, workspace } => write!(f, "agent {name} in {workspace}"),
        }
    }
}

/// Who wants to read or write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    pub workspace: Option<String>,
    pub agent: Option<String>,
}

impl Reader {
    /// What this reader may see, and nothing else.
    #[must_use]
    pub fn scopes(&self) -> Vec<Scope> {
        let mut scopes = vec![Scope::User];
        if let Some(path) = &self.workspace {
            scopes.push(Scope::Workspace { path: path.clone() });
            if let Some(name) = &self.agent {
                let (name, workspace) = (name.clone(), path.clone());
                scopes.push(Scope::Agent { name, workspace });
            }
        }
        scopes
    }

    #[must_use]
    pub fn sees(&self, scope: &Scope) -> bool {
        self.scopes().contains(scope)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An agent called `memory_save`.
    Model,
    /// Somebody typed or edited it.
    Person,
    /// Taken from an exchange after it was over.
    Extracted,
}

impl Source {
    pub const ALL: [Source; 3] = [Source::Model, Source::Person, Source::Extracted];

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Source::Model => "model",
            Source::Person => "person",
            Source::Extracted => "extracted",
        }
    }
}

/// Where the words of a note are from, as they stand now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub source: Source,
    /// Unix milliseconds, from whoever has a clock.
    pub at: u64,
    pub session: Option<String>,
    /// The path of the agent in its session, such as `main/builder`.
    pub agent: Option<String>,
}

impl Provenance {
    #[must_use]
    pub fn person(at: u64) -> Provenance {
        Provenance { source: Source::Person, at, session: None, agent: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub id: Id,
    pub text: String,
    pub scope: Scope,
    pub provenance: Provenance,
    /// When it was last written or said again, in Unix milliseconds.
    pub updated_at: u64,
}

/// What became of a text that was to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    New(Note),
    /// The same text was there in the same scope.
    Again(Note),
}

impl Saved {
    #[must_use]
    pub fn note(&self) -> &Note {
        match self {
            Saved::New(note) | Saved::Again(note) => note,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub note_bytes: usize,
    pub notes_per_scope: u32,
}

/// A note is what somebody wants to read again, not a document; and a scope with more notes than
/// these is one that nobody looks after.
impl Default for Limits {
    fn default() -> Limits {
        Limits { note_bytes: 8 * 1024, notes_per_scope: 10_000 }
    }
}
