//! A story: what the models say (`NAME.yaml`, an ordinary script), and beside it what the people
//! around do (`NAME.people.yaml`): how they start the program, and what they say to which line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) name: String,
    pub(crate) script: PathBuf,
    pub(crate) people: People,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct People {
    /// What is said to main on the command line.
    pub(crate) say: String,
    /// One process each, if nothing dies; every act but the first goes on with `--resume`.
    pub(crate) acts: Vec<Act>,
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// Agents to whom things come in an order that is a matter of timing.
    #[serde(default)]
    pub(crate) unordered: Vec<String>,
    /// It mostly waits: more of it can be played at once.
    #[serde(default)]
    pub(crate) slow: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Act {
    pub(crate) flags: Vec<String>,
    /// How it must end when nobody dies, so that no story goes wrong unnoticed.
    pub(crate) exit: i32,
    #[serde(default)]
    pub(crate) text: String,
}

/// To a line of this kind, about this agent, with this in it, people send that.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// A line's type; `ask` is an open ask, however one hears of it.
    on: String,
    of: Option<String>,
    has: Option<String>,
    pub(crate) send: Value,
}

impl Story {
    pub(crate) fn all(folder: &Path) -> Result<Vec<Story>> {
        let mut stories = Vec::new();
        for file in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let script = file?.path();
            let name = script.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(name) = name.strip_suffix(".yaml").filter(|name| !name.contains('.')) else {
                continue;
            };
            let (name, path) = (name.to_owned(), folder.join(format!("{name}.people.yaml")));
            let wrong = || path.display().to_string();
            let text = std::fs::read_to_string(&path).with_context(wrong)?;
            let people: People = serde_saphyr::from_str(&text).with_context(wrong)?;
            stories.push(Story { name, script, people });
        }
        stories.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(stories)
    }
}

impl Rule {
    pub(crate) fn is_for_asks(&self) -> bool {
        self.on == "ask"
    }

    /// Whether a line, or an ask listed in one, is what these people wait for.
    pub(crate) fn hears(&self, kind: &str, line: &Value) -> Result<bool> {
        let on = if kind == "ask.opened" { "ask" } else { kind };
        let of = self.of.as_ref().is_none_or(|path| line["agent"]["path"] == **path);
        if on != self.on || !of {
            return Ok(false);
        }
        let Some(pattern) = &self.has else { return Ok(true) };
        Ok(Regex::new(pattern)?.is_match(&line.to_string()))
    }

    /// What is sent, as one line of standard input; to an ask, with its id.
    pub(crate) fn words(&self, line: &Value) -> String {
        let mut words = self.send.clone();
        if self.is_for_asks() {
            words["id"] = line["id"].clone();
        }
        format!("{words}\n")
    }
}
