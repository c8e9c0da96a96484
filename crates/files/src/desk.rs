//! All tools over one set of roots, and who has read what. Everything here blocks on the disk;
//! nothing waits for anybody, and nothing runs a program.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{Edit, Glob, Grep, Ls, Read, Write};
use crate::binary::Image;
use crate::diff::Change;
use crate::error::{Error, shown};
use crate::roots::Roots;
use crate::seen::Seen;
use crate::spill::{Handle, Spills};
use crate::walk::Stop;

#[derive(Debug)]
pub struct Desk {
    pub(crate) roots: Roots,
    pub(crate) spills: Option<Spills>,
    pub(crate) seen: Seen,
}

/// What a tool has to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    /// `read` of a picture.
    pub image: Option<Image>,
    /// `write` or `edit` that changed something; for events and receipts.
    pub change: Option<Change>,
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }
}

impl Desk {
    pub fn new(roots: Roots) -> Desk {
        Desk { roots, spills: None, seen: Seen::default() }
    }

    /// Then `read` and `grep` also take handles.
    #[must_use]
    pub fn with_spills(mut self, spills: Spills) -> Desk {
        self.spills = Some(spills);
        self
    }

    /// The tool of that name with arguments as a model wrote them. `reader` is the agent, whose
    /// edits are held against what it has read.
    pub fn run(
        &self,
        reader: &str,
        tool: &str,
        arguments: &Value,
        stop: &Stop,
    ) -> Result<Answer, Error> {
        match tool {
            "read" => self.read(reader, &parse::<Read>("read", arguments)?),
            "write" => self.write(reader, &parse::<Write>("write", arguments)?),
            "edit" => self.edit(reader, &parse::<Edit>("edit", arguments)?),
            "ls" => self.ls(&parse::<Ls>("ls", arguments)?),
            "glob" => self.glob(&parse::<Glob>("glob", arguments)?, stop),
            "grep" => self.grep(&parse::<Grep>("grep", arguments)?, stop),
            _ => Err(Error::NoTool { tool: shown(tool) }),
        }
    }

    /// An agent that has ended reads nothing any more.
    pub fn forget(&self, reader: &str) {
        self.seen.forget(reader);
    }

    /// None: the path is not a handle.
    pub(crate) fn spill(&self, path: &str) -> Option<Result<(Handle, &Spills), Error>> {
        let handle = Handle::parse(path)?;
        let unknown = || Error::NoSpill { handle: shown(path) };
        Some(self.spills.as_ref().map(|spills| (handle, spills)).ok_or_else(unknown))
    }
}

fn parse<T: DeserializeOwned>(tool: &'static str, arguments: &Value) -> Result<T, Error> {
    serde_json::from_value(arguments.clone()).map_err(|error| {
        let error = error.to_string();
        let why = match error.strip_prefix("missing field ") {
            Some(field) => format!("needs a {field}"),
            None => format!("cannot take these arguments: {error}"),
        };
        Error::Arguments { tool, why }
    })
}
