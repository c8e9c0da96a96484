//! The kernel: everything locum decides, as one pure state machine.
//!
//! Read in this order: [`input`] (what can happen), [`event`] (what is then true), [`effect`]
//! (what the world owes us), [`state`] (what all events add up to). Then the functions:
//!
//! - [`step`] decides what an input means: events, or a [`Refusal`];
//! - [`apply`] folds one event into the state, the only mutation, also on replay;
//! - [`owed`] lists what is outstanding, [`deadline`] says when to send [`Input::Ticked`];
//! - [`prompt`], [`errand`], [`parcel`], [`relay`] and [`summons`] say what exactly an effect is
//!   to do; [`meant`] says whom a message is for that names somebody;
//! - [`view`] and [`attention`] say what people and parents see.
//!
//! What is not here, and cannot be named here: clocks, files, sockets, threads, environment,
//! randomness, `await`, floating point. Time is an argument; jitter is hashed from a key. There
//! is no code for recovery (fold the journal, ask what is owed) and none for cancelling (what is
//! no longer owed is dropped).
#![no_std]

extern crate alloc;

mod apply;
mod ask;
mod attention;
mod check;
mod craft;
mod definition;
mod digest;
mod effect;
mod event;
mod id;
mod input;
pub mod limits;
mod lines;
mod message;
mod name;
mod owed;
mod policy;
mod prompt;
mod receipt;
mod state;
mod step;
mod tool;
mod upcast;
mod view;

pub use apply::{Unfoldable, apply, fold, summary};
pub use ask::{
    Allow, Approval, Ask, AskKind, AskTo, Closed, Covers, Grant, Scope, Verdict, Wonder,
};
pub use attention::{Action, Attention, Need, State, attention, state_word};
pub use craft::{Check, Failed, Kit, Made, Offer, Ours, Program, ProgramInput, Proof, Sub, Tuning};
pub use definition::{
    AgentLimits, Audience, Class, Config, Definition, Kind, Mode, ModelSpec, Only, PolicyMode,
    Rights, Rule, RuleKind, ToolSpec, TreeLimits,
};
pub use digest::Digest;
pub use effect::{Effect, Errand, Parcel, Relay, Span};
pub use event::{
    Breach, Change, Compaction, Entry, Event, Limit, Pause, Purpose, Retry, Spawn, TurnStart,
    VERSION,
};
pub use id::{AgentId, AskId, CallId, InputId, Key, Seq, Time};
pub use input::{Command, Failure, FailureKind, Found, Input, Ready, Refusal};
pub use lines::{Iter, Lines};
pub use message::{
    Body, Denial, Line, Message, Note, Output, Picture, Reply, Source, Spent, Subjects, To,
    Urgency, Usage, Use, Who, clip, headline,
};
pub use name::{Known, addressed, at_name, distance, is_same_name, meant};
pub use owed::{deadline, errand, is_repeatable, owed, parcel, relay, summons, summons_words};
pub use policy::{Considered, Explanation, Question, UNKNOWN, WITHIN, explain};
pub use prompt::{Bootstrap, Request, prompt};
pub use receipt::{Copied, Deed, Outcome, Receipt, Tally, Why};
pub use state::{Agent, Session, Spend, WaitFor};
pub use step::{NOBODY_TO_ASK, Wanted, spawn_limit, step, wanted};
pub use upcast::Unreadable;
pub use view::{Card, Lease, Row, SlotsView, View, Waits, view};

// The kernel's own words, so that every file says `use crate::{…}`.
pub(crate) use apply::{dedupe_key, provider_of, tokens};
pub(crate) use digest::mix;
pub(crate) use message::short;
pub(crate) use owed::starts_at;
pub(crate) use policy::{Ruling, declared, has, judge, ruling};
pub(crate) use state::{
    Account, Call, CallState, Delivery, End, Link, Owed, OwnCopy, Phase, Repeat, Thought, Timer,
    Trial, Turn, Waiting,
};
pub(crate) use step::PROGRAM;
pub(crate) use tool::{Make, Tool};
