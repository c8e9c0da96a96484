//! The scripted model: answers from a file, faults included. For tests, for the demo, and for
//! anybody who wants to see locum work without a key.
//!
//! Where an agent stands in its script is worked out at every call, from the replies and failures
//! the journal knows of, so that after a restart the script goes on where it was. A step that
//! failed or replied is behind; a call that was cut is still ahead. Nothing is remembered but how
//! far that was worked out the last time (`bookmark`).

mod bookmark;
mod file;
mod tools;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use locum_kernel::{
    Body, Class, Failure, FailureKind, Line, Note, Purpose, Reply, Source, Usage, Use, headline,
};
use regex_lite::Regex;
use serde_json::json;

use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task, failure_kind};
use bookmark::{Bookmarks, Walk};
use walk::{Heard, Place, filled, filled_call};

pub use file::Error;
use tools::Prop;
pub use tools::Props;
pub use walk::{Failed, Turn};

/// What an agent says when its script has nothing more for it.
pub const ENDED: &str = "[script ended]";

/// The name that stands for every agent without steps of its own.
pub const ANYBODY: &str = "*";

#[derive(Clone, Debug)]
pub struct Script {
    agents: BTreeMap<String, Vec<Step>>,
    props: BTreeMap<String, Prop>,
    may: BTreeMap<String, BTreeSet<Class>>,
    delay_ms: u64,
    /// Characters in one piece of a stream.
    chunk: usize,
    usage: Usage,
    window_tokens: Option<u64>,
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
    Cut { chunks: usize, words: Words },
    Hang,
}

/// What the model says, in the order in which it is heard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    pub reasoning: String,
    pub say: String,
    pub calls: Vec<Use>,
}

/// What the model does now, and how long it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub after_ms: u64,
    pub act: Act,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Speak(Words),
    /// The stream dies after so many chunks.
    Cut {
        words: Words,
        chunks: usize,
    },
    Refuse {
        status: u16,
        retry_after_ms: Option<u64>,
    },
    /// Nothing ever comes.
    Hang,
}

impl Script {
    /// The same, without any waiting.
    #[must_use]
    pub fn hurried(mut self) -> Script {
        self.delay_ms = 0;
        for step in self.agents.values_mut().flatten() {
            step.hang_ms = 0;
            if let Some(Fault::Error { retry_after_ms, .. }) = &mut step.fault {
                *retry_after_ms = Some(0);
            }
        }
        self.props.values_mut().for_each(|prop| prop.takes_ms = 0);
        self
    }

    /// The agents it names, which are the ones it can play.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str).filter(|name| *name != ANYBODY)
    }

    /// Whether it has words for an agent of this name.
    #[must_use]
    pub fn plays(&self, name: &str) -> bool {
        self.agents.contains_key(name) || self.agents.contains_key(ANYBODY)
    }

    /// Characters in one piece of a stream; never none.
    #[must_use]
    pub fn chunk(&self) -> usize {
        self.chunk.max(1)
    }

    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What the model it plays can hold, if it says so.
    #[must_use]
    pub fn may(&self, agent: &str) -> Option<&BTreeSet<Class>> {
        self.may.get(agent)
    }

    #[must_use]
    pub fn window_tokens(&self) -> Option<u64> {
        self.window_tokens
    }

    #[must_use]
    pub fn answer(&self, asked: &Asked) -> Answer {
        self.answer_at(asked, Walk::whole(asked, self.steps_of(asked)))
    }

    fn answer_at(&self, asked: &Asked, walk: Walk) -> Answer {
        let now = walk.now(&asked.request.lines);
        if let Purpose::Summary { .. } = asked.request.purpose {
            // No step is for this: scripts are about what agents say, not how they forget.
            return self.say(format!("Summary. Last: {}", headline(now.last, 200)));
        }
        self.next(self.steps_of(asked), walk.place, now)
    }

    fn steps_of(&self, asked: &Asked) -> &[Step] {
        self.steps(&[asked.definition.as_str(), asked.label.as_str()])
    }

    /// The same for somebody else's conversation, with the agent of the first name that has steps.
    #[must_use]
    pub fn play(&self, names: &[&str], turns: &[Turn<'_>], failed: Failed) -> Answer {
        let (past, now) = walk::heard(turns.iter().copied());
        let steps = self.steps(names);
        self.next(steps, Place::after(past.into_iter(), failed, steps), now)
    }

    fn next(&self, steps: &[Step], mut place: Place, now: Heard<'_>) -> Answer {
        let Some(step) = place.find(steps, now.last) else { return self.say(ENDED.to_owned()) };
        let act = match (&step.fault, &step.words) {
            (Some(fault), _) if place.fails(fault) => fault.act(now),
            (_, Some(words)) => Act::Speak(words.filled(now)),
            (_, None) => return self.say(ENDED.to_owned()),
        };
        Answer { after_ms: self.delay_ms.saturating_add(step.hang_ms), act }
    }

    fn steps(&self, names: &[&str]) -> &[Step] {
        let mut names = names.iter().chain([&ANYBODY]);
        names.find_map(|name| self.agents.get(*name)).map_or(&[], Vec::as_slice)
    }

    fn say(&self, say: String) -> Answer {
        Answer { after_ms: self.delay_ms, act: Act::Speak(Words { say, ..Words::default() }) }
    }

    /// What the caller of a provider gets of it.
    fn outcome(&self, act: &Act) -> Result<Reply, Failure> {
        let failure = |kind, status, retry_after_ms, message: String| {
            Err(Failure { kind, status, retry_after_ms, message })
        };
        match act {
            Act::Speak(Words { reasoning, say, calls }) => {
                let reasoning = (!reasoning.is_empty()).then(|| json!({"text": reasoning}));
                let (text, calls) = (say.clone(), calls.clone());
                Ok(Reply { text, reasoning, calls, usage: self.usage, ..Reply::default() })
            }
            Act::Cut { words, chunks } => {
                let (_, said) = words.until(*chunks, self.chunk);
                let text: String = pieces(&words.say, self.chunk).take(said).collect();
                let message = format!("scripted, after {chunks} chunks: {text:?}");
                failure(FailureKind::Cut, None, None, message)
            }
            Act::Refuse { status, retry_after_ms } => {
                let kind = failure_kind(*status);
                failure(kind, Some(*status), *retry_after_ms, "scripted".into())
            }
            Act::Hang => failure(FailureKind::Timeout, None, None, "scripted".into()),
        }
    }
}

impl Words {
    fn filled(&self, now: Heard<'_>) -> Words {
        Words {
            reasoning: filled(&self.reasoning, now),
            say: filled(&self.say, now),
            calls: self.calls.iter().map(|call| filled_call(call, now)).collect(),
        }
    }

    /// How much of the reasoning and of the text is heard if it ends after so many chunks.
    fn until(&self, chunks: usize, chunk: usize) -> (usize, usize) {
        let thought = pieces(&self.reasoning, chunk).take(chunks).count();
        (thought, chunks - thought)
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

    fn act(&self, now: Heard<'_>) -> Act {
        match self {
            Fault::Error { status, retry_after_ms, .. } => {
                Act::Refuse { status: *status, retry_after_ms: *retry_after_ms }
            }
            Fault::Cut { chunks, words } => Act::Cut { words: words.filled(now), chunks: *chunks },
            Fault::Hang => Act::Hang,
        }
    }
}

/// A line of a transcript, as a script sees it.
fn turns(line: &Line) -> Vec<Turn<'_>> {
    match &line.body {
        Body::Told(notes) => notes.iter().map(note).collect(),
        Body::Results(results) => {
            results.iter().map(|(_, output)| Turn::Heard(&output.text)).collect()
        }
        Body::Summary(text) => vec![Turn::Heard(text)],
        Body::Replied(_) => vec![Turn::Replied],
    }
}

fn note(note: &Note) -> Turn<'_> {
    match note.source {
        // A child's user is whoever gave it its task.
        Source::Person { .. } | Source::Brief | Source::Parent => Turn::User(&note.text),
        Source::Child(_) | Source::Runtime => Turn::Heard(&note.text),
    }
}

/// The script as a provider: it takes the time it says it takes, and speaks in pieces.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    clock: Arc<dyn Clock>,
    bookmarks: Bookmarks,
}

impl Scripted {
    #[must_use]
    pub fn new(script: Script, clock: Arc<dyn Clock>) -> Scripted {
        Scripted { script, clock, bookmarks: Bookmarks::default() }
    }

    fn next(&self, asked: &Asked) -> Answer {
        let walk = self.bookmarks.walk(asked, self.script.steps_of(asked));
        self.script.answer_at(asked, walk)
    }
}

impl Provider for Scripted {
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        let Answer { after_ms, act } = self.next(&asked);
        let outcome = self.script.outcome(&act);
        let speaks = asked.request.purpose == Purpose::Answer;
        let chunk = self.script.chunk;
        let due = self.clock.now().plus_ms(after_ms);
        // A moment that has passed costs no timer.
        let wait = (after_ms > 0).then(|| self.clock.sleep_until(due));
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            if speaks {
                speak(&act, chunk, &live);
            }
            outcome
        })
    }
}

/// What is heard of it on the way; less than a reply if it is cut.
fn speak(act: &Act, chunk: usize, live: &Live) {
    let (words, chunks) = match act {
        Act::Speak(words) => (words, usize::MAX),
        Act::Cut { words, chunks } => (words, *chunks),
        Act::Refuse { .. } | Act::Hang => return,
    };
    let (thought, said) = words.until(chunks, chunk);
    pieces(&words.reasoning, chunk).take(thought).for_each(|piece| live.thinking(piece));
    pieces(&words.say, chunk).take(said).for_each(|piece| live.text(piece));
}

/// A text in pieces of so many characters.
pub fn pieces(text: &str, chunk: usize) -> impl Iterator<Item = &str> {
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
