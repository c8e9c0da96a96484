//! The scripted model: answers from a file, faults included. For tests, for the demo, and for
//! anybody who wants to see locum work without a key.
//!
//! It remembers nothing. Where an agent stands in its script is worked out at every call, from
//! the replies and failures the journal knows of, so that after a restart the script goes on
//! where it was. A step that failed or replied is behind; a call that was cut is still ahead.

mod file;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use locum_kernel::{
    Body, Failure, FailureKind, Line, Note, Purpose, Reply, Source, Usage, Use, headline,
};
use regex_lite::Regex;
use serde_json::Value;

use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task, failure_kind};

pub use file::Error;
use tools::Prop;
pub use tools::Props;

/// What an agent says when its script has nothing more for it.
pub const ENDED: &str = "[script ended]";

/// The name that stands for every agent without steps of its own.
pub const ANYBODY: &str = "*";

#[derive(Clone, Debug)]
pub struct Script {
    agents: BTreeMap<String, Vec<Step>>,
    props: BTreeMap<String, Prop>,
    delay_ms: u64,
    /// Characters in one piece of a stream.
    chunk: usize,
    usage: Usage,
}

#[derive(Clone, Debug)]
struct Step {
    /// The step is passed over unless this matches what was last said.
    when: Option<Regex>,
    /// The step stays where it is after it was used.
    repeat: bool,
    hang_ms: u64,
    /// Happens first, as often as it says.
    fault: Option<Fault>,
    /// The reply, if the step has one.
    words: Option<Words>,
}

#[derive(Clone, Debug)]
enum Fault {
    Error { status: u16, retry_after_ms: Option<u64>, times: u32 },
    Cut { chunks: usize, text: String },
    Hang,
}

#[derive(Clone, Debug)]
struct Words {
    say: String,
    calls: Vec<Use>,
}

/// What the model does now, and how long it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub after_ms: u64,
    /// What is heard of it on the way; less than a reply if it is cut.
    pub said: String,
    pub outcome: Result<Reply, Failure>,
}

/// What a model has in front of it: the newest words, and the newest words of its user.
#[derive(Clone, Copy, Debug, Default)]
struct Heard<'a> {
    last: &'a str,
    user: &'a str,
}

impl Script {
    /// The agents it names, which are the ones it can play.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str).filter(|name| *name != ANYBODY)
    }

    #[must_use]
    pub fn answer(&self, asked: &Asked) -> Answer {
        let (past, now) = heard(&asked.request.lines);
        if let Purpose::Summary { .. } = asked.request.purpose {
            // No step is for this: scripts are about what agents say, not how they forget.
            let text = format!("Summary. Last: {}", headline(now.last, 200));
            return self.reply(self.delay_ms, text, Vec::new());
        }
        let mut place = Place { at: 0, failures: asked.failures };
        let steps = self.steps(asked);
        // Replies that a compaction put out of sight: what was said then can match nothing now.
        let hidden = (asked.replies as usize).saturating_sub(past.len());
        for then in std::iter::repeat_n(Heard::default(), hidden).chain(past) {
            place.pass(steps, then.last);
        }
        let Some(step) = place.find(steps, now.last) else {
            return self.reply(self.delay_ms, ENDED.to_owned(), Vec::new());
        };
        let after_ms = self.delay_ms.saturating_add(step.hang_ms);
        match (&step.fault, &step.words) {
            (Some(fault), _) if place.failures < fault.times() => {
                let said = fault.said().to_owned();
                Answer { after_ms, said, outcome: Err(fault.failure()) }
            }
            (_, Some(words)) => {
                let calls = words.calls.iter().map(|call| filled_call(call, now)).collect();
                self.reply(after_ms, filled(&words.say, now), calls)
            }
            (_, None) => self.reply(after_ms, ENDED.to_owned(), Vec::new()),
        }
    }

    fn steps(&self, asked: &Asked) -> &[Step] {
        let names = [asked.definition.as_str(), asked.label.as_str(), ANYBODY];
        names.iter().find_map(|name| self.agents.get(*name)).map_or(&[], Vec::as_slice)
    }

    fn reply(&self, after_ms: u64, text: String, calls: Vec<Use>) -> Answer {
        let said = text.clone();
        let reply = Reply { text, calls, usage: self.usage, ..Reply::default() };
        Answer { after_ms, said, outcome: Ok(reply) }
    }
}

/// How far an agent has come.
#[derive(Debug)]
struct Place {
    at: usize,
    /// Failures not yet laid at some step's door.
    failures: u32,
}

impl Place {
    /// The step that is next, given what was last said: past conditions that do not hold and
    /// faults that have happened.
    fn find<'s>(&mut self, steps: &'s [Step], last: &str) -> Option<&'s Step> {
        loop {
            let step = steps.get(self.at)?;
            if step.when.as_ref().is_some_and(|when| !when.is_match(last)) {
                self.at += 1;
                continue;
            }
            let times = step.fault.as_ref().map_or(0, Fault::times);
            if self.failures < times || step.words.is_some() {
                return Some(step);
            }
            self.failures -= times;
            self.at += usize::from(!step.repeat);
        }
    }

    /// Goes past one reply that was given.
    fn pass(&mut self, steps: &[Step], last: &str) {
        let Some(step) = self.find(steps, last) else { return };
        let times = step.fault.as_ref().map_or(0, Fault::times);
        self.failures = self.failures.saturating_sub(times);
        // A step that can only fail gave no reply: the file was changed since. Leave it behind.
        self.at += usize::from(!step.repeat || step.words.is_none());
    }
}

impl Fault {
    /// How many calls fail before the script goes on; at least one.
    fn times(&self) -> u32 {
        match self {
            Fault::Error { times, .. } => *times,
            Fault::Cut { .. } | Fault::Hang => 1,
        }
    }

    /// What is heard before it breaks off.
    fn said(&self) -> &str {
        match self {
            Fault::Cut { text, .. } => text,
            Fault::Error { .. } | Fault::Hang => "",
        }
    }

    fn failure(&self) -> Failure {
        match self {
            Fault::Error { status, retry_after_ms, .. } => Failure {
                kind: failure_kind(*status),
                status: Some(*status),
                retry_after_ms: *retry_after_ms,
                message: "scripted".into(),
            },
            Fault::Cut { chunks, text } => Failure {
                kind: FailureKind::Cut,
                status: None,
                retry_after_ms: None,
                message: format!("scripted, after {chunks} chunks: {text:?}"),
            },
            Fault::Hang => Failure {
                kind: FailureKind::Timeout,
                status: None,
                retry_after_ms: None,
                message: "scripted".into(),
            },
        }
    }
}

/// What was in front of the model at each of its replies, and what is now.
fn heard<L: AsRef<Line>>(lines: &[L]) -> (Vec<Heard<'_>>, Heard<'_>) {
    let mut past = Vec::new();
    let mut now = Heard::default();
    for line in lines {
        match &line.as_ref().body {
            Body::Told(notes) => notes.iter().for_each(|note| now.hear(note)),
            Body::Results(results) => {
                now.last = results.last().map_or(now.last, |(_, output)| &output.text);
            }
            Body::Summary(text) => now.last = text,
            Body::Replied(_) => past.push(now),
        }
    }
    (past, now)
}

impl<'a> Heard<'a> {
    fn hear(&mut self, note: &'a Note) {
        self.last = &note.text;
        match note.source {
            // A child's user is whoever gave it its task.
            Source::Person { .. } | Source::Brief | Source::Parent => self.user = &note.text,
            Source::Child(_) | Source::Runtime => {}
        }
    }
}

/// `{{last}}` and `{{user}}` filled in, in one pass: what was heard is never itself a template.
fn filled(template: &str, heard: Heard<'_>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let word = after.split_once("}}").map(|(name, after)| (name.trim(), after));
        rest = match word {
            Some(("last", after)) => {
                text.push_str(heard.last);
                after
            }
            Some(("user", after)) => {
                text.push_str(heard.user);
                after
            }
            Some(_) | None => {
                text.push_str("{{");
                after
            }
        };
    }
    text.push_str(rest);
    text
}

fn filled_call(call: &Use, heard: Heard<'_>) -> Use {
    Use { arguments: filled_value(&call.arguments, heard), ..call.clone() }
}

fn filled_value(value: &Value, heard: Heard<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text, heard)),
        Value::Array(items) => items.iter().map(|item| filled_value(item, heard)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled_value(value, heard))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The script as a provider: it takes the time it says it takes, and speaks in pieces.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    clock: Arc<dyn Clock>,
}

impl Scripted {
    #[must_use]
    pub fn new(script: Script, clock: Arc<dyn Clock>) -> Scripted {
        Scripted { script, clock }
    }
}

impl Provider for Scripted {
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        let answer = self.script.answer(&asked);
        let speaks = asked.request.purpose == Purpose::Answer;
        let chunk = self.script.chunk;
        let due = self.clock.now().plus_ms(answer.after_ms);
        // A moment that has passed costs no timer.
        let wait = (answer.after_ms > 0).then(|| self.clock.sleep_until(due));
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            if speaks {
                pieces(&answer.said, chunk).for_each(|piece| live.text(piece));
            }
            answer.outcome
        })
    }
}

/// A text in pieces of so many characters.
fn pieces(text: &str, chunk: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chunk.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests;
