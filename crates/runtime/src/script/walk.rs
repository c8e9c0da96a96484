//! Where a conversation stands in a script, and what it has to fill in. Worked out from what was
//! said: nothing here remembers.

use locum_kernel::Use;
use serde_json::Value;

use super::{Fault, Step};

/// One thing of a conversation, as far as a script looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn<'a> {
    /// The user spoke.
    User(&'a str),
    /// Something else was heard: the result of a call, a note.
    Heard(&'a str),
    /// The model replied.
    Replied,
}

/// How many model calls came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// In the whole life of the agent.
    Ever(u32),
    /// Since the newest reply. Whoever was asked for an older one has heard its failures.
    Here(u32),
}

/// What a model has in front of it: the newest words, and the newest words of its user.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard<'a> {
    pub(super) last: &'a str,
    pub(super) user: &'a str,
}

/// What was in front of the model at each of its replies, and what is now.
pub(super) fn heard<'a>(turns: impl Iterator<Item = Turn<'a>>) -> (Vec<Heard<'a>>, Heard<'a>) {
    let mut past = Vec::new();
    let mut now = Heard::default();
    for turn in turns {
        match turn {
            Turn::User(text) => now = Heard { last: text, user: text },
            Turn::Heard(text) => now.last = text,
            Turn::Replied => past.push(now),
        }
    }
    (past, now)
}

/// How far an agent has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    /// Failures not yet laid at some step's door.
    failures: u32,
    /// A step was passed that should have failed more often than anything had: had there been
    /// more failures, they would have been laid there.
    short: bool,
}

impl Place {
    /// The beginning, for somebody whose calls failed so often.
    pub(super) fn with(failures: u32) -> Place {
        Place { at: 0, failures, short: false }
    }

    /// The same after more failures, unless those would have led elsewhere on the way here.
    pub(super) fn failed_more(self, more: u32) -> Option<Place> {
        let failures = self.failures.saturating_add(more);
        (!self.short).then_some(Place { failures, ..self })
    }

    /// Goes past what is behind.
    pub(super) fn after<'a>(
        past: impl Iterator<Item = Heard<'a>>,
        failed: Failed,
        steps: &[Step],
    ) -> Place {
        let (Failed::Ever(failures) | Failed::Here(failures)) = failed;
        let mut place = Place::with(failures);
        for then in past {
            match failed {
                Failed::Ever(_) => place.pass(steps, then.last),
                Failed::Here(_) => place.skip(steps, then.last),
            }
        }
        place
    }

    /// Whether the step that is next is still to fail.
    pub(super) fn fails(&self, fault: &Fault) -> bool {
        self.failures < fault.times()
    }

    /// The step that is next, given what was last said: past conditions that do not hold and
    /// faults that have happened.
    pub(super) fn find<'s>(&mut self, steps: &'s [Step], last: &str) -> Option<&'s Step> {
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
    pub(super) fn pass(&mut self, steps: &[Step], last: &str) {
        let Some(step) = self.find(steps, last) else { return };
        let times = step.fault.as_ref().map_or(0, Fault::times);
        self.short |= self.failures < times;
        self.failures = self.failures.saturating_sub(times);
        // A step that can only fail gave no reply: the file was changed since. Leave it behind.
        self.at += usize::from(!step.repeat || step.words.is_none());
    }

    /// Goes past one reply that was given, and past everything that only fails before it.
    fn skip(&mut self, steps: &[Step], last: &str) {
        while let Some(step) = steps.get(self.at) {
            let holds = step.when.as_ref().is_none_or(|when| when.is_match(last));
            if holds && step.words.is_some() {
                self.at += usize::from(!step.repeat);
                return;
            }
            self.at += 1;
        }
    }
}

/// `{{last}}` and `{{user}}` filled in, in one pass: what was heard is never itself a template.
pub(super) fn filled(template: &str, heard: Heard<'_>) -> String {
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

pub(super) fn filled_call(call: &Use, heard: Heard<'_>) -> Use {
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
