//! What is said: inputs from people, notes in an agent's inbox, replies of models, results of
//! calls, and the transcript made of them.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::PICTURE_TOKENS;
use crate::{
    AgentId, CallId, Deed, Definition, InputId, Made, Ours, Receipt, Seq, at_name, tokens,
};

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// A person, named as their channel names them.
    Person(String),
    Agent(AgentId),
    /// locum itself: a limit, a fault, a restart.
    Runtime,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Person(name) => f.write_str(name),
            Who::Agent(id) => write!(f, "{id}"),
            Who::Runtime => f.write_str("locum"),
        }
    }
}

/// How a message meets a busy agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Waits its turn.
    #[default]
    Queue,
    /// Read at the next model boundary.
    Steer,
    /// The turn is dropped, then this is read.
    Interrupt,
}

/// Whom a message is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// Whoever holds the floor when its turn comes.
    #[default]
    Floor,
    /// Main, without popping anyone.
    Main,
    /// One agent, once.
    Agent(AgentId),
    /// Somebody who is not there yet: waits until the definition of that name has been brought.
    Name(String),
}

/// A picture that was shown. Its bytes are kept elsewhere, under a name made of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub handle: String,
    /// `image/png` or its like.
    pub media_type: String,
}

/// A message from outside, as a channel hands it over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub channel: String,
    pub sender: String,
    /// The channel's own id, unique within the channel; the same id twice is one input.
    #[serde(default)]
    pub external_id: Option<String>,
    pub text: String,
    #[serde(default)]
    pub urgency: Urgency,
    #[serde(default)]
    pub to: To,
    /// Where replies must be sent; `None` for faces that read the view.
    #[serde(default)]
    pub reply_to: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl Message {
    /// Its words as they were said, with the name of whoever is not there yet before them.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.to {
            To::Name(name) => {
                String::from(alloc::format!("{} {}", at_name(name), self.text).trim_end())
            }
            To::Floor | To::Main | To::Agent(_) => self.text.clone(),
        }
    }
}

/// Where a note in an inbox came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The task an agent was made for.
    Brief,
    Person {
        channel: String,
        sender: String,
    },
    Parent,
    /// A child's result, question or pause.
    Child(AgentId),
    Runtime,
}

/// One thing an agent has been told and will read at its next model call, exactly once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub source: Source,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
    /// Where the whole text can be read, if it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Where those who said it must be answered, when it was passed on from somebody who ended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reply_to: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl Note {
    #[must_use]
    pub fn new(source: Source, text: String) -> Note {
        Note {
            source,
            text,
            input: None,
            receipt: None,
            handle: None,
            reply_to: BTreeSet::new(),
            pictures: Vec::new(),
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.text.len()).saturating_add(shown_tokens(&self.pictures))
    }

    pub(crate) fn is_from_person(&self) -> bool {
        matches!(self.source, Source::Person { .. })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub cached: u64,
    #[serde(default)]
    pub cache_write: u64,
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// One tool use as the model asked for it. Arguments that did not parse arrive as a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub name: String,
    pub arguments: Value,
    /// What the edge's parser found in the arguments (each command of a shell line). `None`:
    /// the kernel takes the tool's subject argument, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Subjects>,
    /// What the edge made of the definition it names. `None`: the name is looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// The runtime made this call, not the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Ours>,
}

impl Use {
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Value) -> Use {
        Use { name: name.into(), arguments, subjects: None, made: None, ours: None }
    }
}

/// What the edge's parser found in a shell line. Journals from before there was a parser that
/// doubts hold only lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Subjects {
    /// Each command, and each file that a redirect opens.
    Parts(Vec<String>),
    /// More than its text tells: what was seen is enough to deny, never to allow.
    Opaque { opaque: String, seen: Vec<String> },
}

/// A whole, finished answer of a model. Half a stream is a failure, never a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    /// What the provider needs back verbatim (signed reasoning); opaque here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Use>,
    #[serde(default)]
    pub usage: Usage,
    /// `None`: the price is not known, which is not the same as free.
    #[serde(default)]
    pub micro_usd: Option<u64>,
    /// What the edge found wrong with its final words or its `complete`, if they must match what
    /// the definition says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
    /// The definitions its calls name, as the edge made them just now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brings: Vec<Definition>,
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub text: String,
    #[serde(default)]
    pub is_error: bool,
    /// It did not run because somebody or something forbade it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub denied: bool,
    /// Why, as far as it says what would help; what older versions denied has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
    /// Where the whole text can be read without running anything again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// What the edge saw happen, for the receipt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deeds: Vec<Deed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
    /// What a model was paid for while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
}

/// Why a call was not let run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Somebody would have been asked, and nobody can be.
    Unheard,
    /// The same, of an agent for whom nobody is ever asked.
    NeverAsks,
    Rule,
    /// The mode changes nothing at all.
    Plan,
    /// This agent's definition gives no such call, to it and to everyone below it.
    Beyond(AgentId),
    /// Somebody said no.
    Person,
}

/// What answers of a model cost that a tool asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub usage: Usage,
    /// `None`: some price is not known.
    pub micro_usd: Option<u64>,
}

impl Spent {
    #[must_use]
    pub fn plus(mut self, more: &Spent) -> Spent {
        self.usage.add(&more.usage);
        self.micro_usd = self.micro_usd.zip(more.micro_usd).map(|(a, b)| a.saturating_add(b));
        self
    }
}

impl Output {
    /// What the command ended with that ran. Below 0 it has no exit code of its own: it was too
    /// late, or killed.
    pub(crate) fn exit(&self) -> Option<i32> {
        let exit = self.deeds.iter().find_map(|deed| match deed {
            Deed::Ran { exit, .. } => Some(*exit),
            Deed::Changed { .. } => None,
        });
        exit.filter(|exit| *exit > 0 || !self.is_error)
    }

    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.text.len()).saturating_add(shown_tokens(&self.pictures))
    }

    #[must_use]
    pub fn ok(text: impl Into<String>) -> Output {
        Output { text: text.into(), ..Output::default() }
    }

    #[must_use]
    pub fn denied(denial: Denial, text: impl Into<String>) -> Output {
        Output { denied: true, denial: Some(denial), ..Output::error(text) }
    }

    #[must_use]
    pub fn error(text: impl Into<String>) -> Output {
        Output { text: text.into(), is_error: true, ..Output::default() }
    }
}

fn shown_tokens(pictures: &[Picture]) -> u64 {
    (pictures.len() as u64).saturating_mul(PICTURE_TOKENS)
}

/// One line of a transcript. `seq` names it for ever, so an edge can cache its encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub seq: Seq,
    pub body: Body,
}

impl Line {
    /// How much it was told in this line; nothing if it is not about being told.
    pub(crate) fn told_bytes(&self) -> usize {
        match &self.body {
            Body::Told(notes) => notes.iter().map(|note| note.text.len()).sum(),
            Body::Replied(_) | Body::Results(_) | Body::Summary(_) => 0,
        }
    }

    pub(crate) fn reply(&self) -> Option<&Reply> {
        if let Body::Replied(reply) = &self.body { Some(reply) } else { None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// What the agent read at one model boundary.
    Told(Vec<Note>),
    /// What the model answered; its calls are numbered by the line's `seq` and their place.
    Replied(Reply),
    /// One result per call of the reply before it, in call order.
    Results(Vec<(CallId, Output)>),
    /// What stands for everything before it.
    Summary(String),
}

/// Cuts text to `max` bytes, keeping its head and tail and saying how much is missing.
#[must_use]
pub fn clip(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - max / 4);
    let cut = tail - head;
    alloc::format!("{}\n[… {cut} bytes cut …]\n{}", &text[..head], &text[tail..])
}

/// A cause or a reason, as long as anybody reads one.
pub(crate) fn short(text: String) -> String {
    clip(text, crate::limits::CAUSE_BYTES_MAX)
}

/// The first line of a text, shortened to fit a row.
#[must_use]
pub fn headline(text: &str, max: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.len() <= max {
        return String::from(line);
    }
    alloc::format!("{}…", &line[..line.floor_char_boundary(max)])
}
