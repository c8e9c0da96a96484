//! The script's file: YAML in, steps out, every mistake with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_kernel::{Class, Usage, Use};
use regex_lite::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::tools::{self, Prop};
use super::{Fault, Script, Step, Words};

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the script {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {message}", path.display())]
    Parse { path: PathBuf, line: u64, message: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Accepted, so that scripts may carry it already; nothing is random yet.
    #[serde(default, rename = "seed")]
    _seed: Option<u64>,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    tools: BTreeMap<String, Spanned<RawTool>>,
    /// What an agent may do, if not everything.
    #[serde(default)]
    may: BTreeMap<String, BTreeSet<Class>>,
    agents: BTreeMap<String, Vec<Spanned<RawStep>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Defaults {
    delay_ms: u64,
    chunk: usize,
    usage: RawUsage,
    /// What the model can hold; short, it makes agents forget early.
    window_tokens: Option<u64>,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults { delay_ms: 0, chunk: 12, usage: RawUsage::default(), window_tokens: None }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawUsage {
    #[serde(rename = "in")]
    input: u64,
    #[serde(rename = "out")]
    output: u64,
    cached: u64,
    cache_write: u64,
    reasoning: u64,
}

impl Default for RawUsage {
    fn default() -> RawUsage {
        RawUsage { input: 100, output: 20, cached: 0, cache_write: 0, reasoning: 0 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    /// Heard before the rest, by those who show it.
    reasoning: Option<String>,
    say: Option<String>,
    /// Each a map of one key: the tool, and its arguments.
    #[serde(default)]
    calls: Vec<Spanned<BTreeMap<String, Value>>>,
    when: Option<Spanned<String>>,
    #[serde(default)]
    repeat: bool,
    error: Option<RawError>,
    cut_after_chunks: Option<usize>,
    hang_ms: Option<u64>,
    malformed_call: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawError {
    status: u16,
    retry_after_s: Option<f64>,
    #[serde(default = "once")]
    times: u32,
}

/// A tool that is there only for this script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    #[serde(default = "read")]
    class: Class,
    idempotent: Option<bool>,
    #[serde(default)]
    says: String,
    #[serde(default)]
    fails: bool,
    #[serde(default)]
    takes_ms: u64,
    log: Option<PathBuf>,
}

fn read() -> Class {
    Class::Read
}

impl From<RawTool> for Prop {
    fn from(raw: RawTool) -> Prop {
        let RawTool { class, idempotent, says, fails, takes_ms, log } = raw;
        let idempotent = idempotent.unwrap_or(class == Class::Read);
        Prop { class, idempotent, says, fails, takes_ms, log }
    }
}

fn once() -> u32 {
    1
}

impl Script {
    pub fn read(path: &Path) -> Result<Script, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Script::parse(path, &text)
    }

    /// `path` only names the file in messages.
    pub fn parse(path: &Path, text: &str) -> Result<Script, Error> {
        let wrong = |line: u64, message: String| {
            Err(Error::Parse { path: path.to_owned(), line: line.max(1), message })
        };
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        let file: File = match serde_saphyr::from_str_with_options(text, options) {
            Ok(file) => file,
            Err(error) => {
                let line = error.location().map_or(1, |location| location.line());
                return wrong(line, plain(&error.to_string()));
            }
        };
        let mut agents = BTreeMap::new();
        for (name, raw) in file.agents {
            let mut steps = Vec::with_capacity(raw.len());
            for step in raw {
                match step_of(step) {
                    Ok(step) => steps.push(step),
                    Err((line, message)) => return wrong(line, message),
                }
            }
            agents.insert(name, steps);
        }
        let RawUsage { input, output, cached, cache_write, reasoning } = file.defaults.usage;
        let usage = Usage { input, output, cached, cache_write, reasoning };
        let Defaults { delay_ms, chunk, window_tokens, .. } = file.defaults;
        let mut props = BTreeMap::new();
        for (name, raw) in file.tools {
            if let Err(message) = tools::stands_in(&name, raw.value.class) {
                return wrong(raw.referenced.line(), message);
            }
            props.insert(name, raw.value.into());
        }
        let may = file.may;
        Ok(Script { agents, props, may, delay_ms, chunk, usage, window_tokens })
    }
}

/// The parser says where at the end; we say it in front.
fn plain(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let end = line.find(" at line ").unwrap_or(line.len());
    line[..end].trim_end_matches(',').to_owned()
}

type Mistake = (u64, String);

fn step_of(raw: Spanned<RawStep>) -> Result<Step, Mistake> {
    let line = raw.referenced.line();
    let raw = raw.value;
    let when = raw.when.as_ref().map(pattern).transpose()?;
    let mut calls = raw.calls.into_iter().map(call).collect::<Result<Vec<Use>, Mistake>>()?;
    if let Some(text) = raw.malformed_call {
        // Arguments that do not parse reach the kernel as the text they are; any tool will do.
        calls.push(Use::new("read", Value::String(text)));
    }
    let answers = raw.say.is_some() || !calls.is_empty();
    let reasoning = raw.reasoning.unwrap_or_default();
    let words = Words { reasoning, say: raw.say.unwrap_or_default(), calls };
    let mut reply = answers.then_some(&words).cloned();
    let fault = match (raw.error, raw.cut_after_chunks) {
        (Some(_), Some(_)) => return Err((line, "a step has one fault: error or cut".into())),
        (Some(error), None) => Some(error_of(line, &error)?),
        (None, Some(chunks)) => {
            // What was cut is not said again: the next step follows.
            reply = None;
            Some(Fault::Cut { chunks, words })
        }
        (None, None) if raw.hang_ms.is_some() && !answers => Some(Fault::Hang),
        (None, None) => None,
    };
    if fault.is_none() && reply.is_none() {
        return Err((line, "a step needs `say`, `calls` or a fault".into()));
    }
    Ok(Step { when, repeat: raw.repeat, hang_ms: raw.hang_ms.unwrap_or(0), fault, words: reply })
}

fn pattern(when: &Spanned<String>) -> Result<Regex, Mistake> {
    let wrong = |error| (when.referenced.line(), format!("`when` is no regex: {error}"));
    Regex::new(&when.value).map_err(wrong)
}

fn call(raw: Spanned<BTreeMap<String, Value>>) -> Result<Use, Mistake> {
    let line = raw.referenced.line();
    let mut entries = raw.value.into_iter();
    let (Some((name, arguments)), None) = (entries.next(), entries.next()) else {
        return Err((line, "a call is one tool with its arguments: `- tool: {…}`".into()));
    };
    // `- list_agents:` has no arguments, which is an object without any.
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    Ok(Use::new(name, arguments))
}

fn error_of(line: u64, error: &RawError) -> Result<Fault, Mistake> {
    if error.times == 0 {
        return Err((line, "an error that happens 0 times is no error".into()));
    }
    let wait = error.retry_after_s.map(Duration::try_from_secs_f64).transpose();
    let wait = wait.map_err(|error| (line, format!("`retry_after_s`: {error}")))?;
    let retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    Ok(Fault::Error { status: error.status, retry_after_ms, times: error.times })
}
