//! What every wire tells a model in the same words, whatever they are packed in.

use std::borrow::Cow;

use locum_kernel::{CallId, Note, Output, Purpose, Source};
use serde::Serialize;
use serde_json::Value;

use crate::provider::Asked;

pub(crate) const SUMMARISE: &str = "Summarise this conversation so far, for yourself: it will \
stand for everything above. Keep the task, what was decided and why, what was done and found out \
(with names, paths and numbers), what is still open and what comes next. Write only the summary.";

/// Said when nobody else has the last word.
pub(crate) const GO_ON: &str = "Go on.";
pub(crate) const NOTHING: &str = "(nothing)";
/// Nobody speaks before the user does.
pub(crate) const LEFT_OUT: &str = "(what came before is left out)";

/// Named after its definition, so that all agents of one definition share what the provider
/// remembers of it.
pub(crate) fn system(asked: &Asked) -> String {
    let request = &asked.request;
    let mut text = format!("You are {:?}, an agent of locum.", asked.definition);
    if !request.instructions.trim().is_empty() {
        text.push_str("\n\n");
        text.push_str(&request.instructions);
    }
    if !request.catalogue.is_empty() {
        text.push_str("\n\nWho can be called:");
        for row in &request.catalogue {
            text.push_str("\n- ");
            text.push_str(row);
        }
    }
    if let Some(output) = &request.output {
        text.push_str(FINAL_OUTPUT);
        text.push_str(&output.to_string());
    }
    text
}

const FINAL_OUTPUT: &str = "\n\nYour final output, whether you say it or complete with it, must be \
one JSON value and nothing else, and must match this JSON schema:\n";

/// Whether the provider is to be told the form of the answer: not of a summary.
pub(crate) fn form(asked: &Asked) -> Option<&Value> {
    match asked.request.purpose {
        Purpose::Answer => asked.request.output.as_deref(),
        Purpose::Summary { .. } => None,
    }
}

/// Puts what is set into an object that is written and closed already.
pub(crate) fn set<const N: usize>(into: &mut Vec<u8>, fields: [(&str, Option<Value>); N]) {
    for (name, value) in fields {
        let Some(value) = value else { continue };
        into.pop();
        into.push(b',');
        put(into, name);
        into.push(b':');
        put(into, &value);
        into.push(b'}');
    }
}

/// Which call shows a picture, where the wire has no place for it in the result itself.
pub(crate) fn shown_by(call: CallId) -> String {
    format!("[shown by {call}]")
}

/// The name of a model without that of its provider.
pub(crate) fn model(asked: &Asked) -> &str {
    let model = &asked.request.model;
    model.split_once('/').map_or(model, |(_, name)| name)
}

/// Whether there is anything to say or show.
pub(crate) fn says_something(note: &Note) -> bool {
    !note.text.trim().is_empty() || !note.pictures.is_empty()
}

pub(crate) fn summary(text: &str) -> String {
    format!("[summary of what came before]\n{text}")
}

/// A note with who says it, if it is not the user.
pub(crate) fn note(note: &Note) -> Cow<'_, str> {
    let label = match &note.source {
        Source::Brief | Source::Person { .. } => None,
        Source::Parent => Some("[from your parent] ".to_owned()),
        Source::Child(child) => Some(format!("[from {child}] ")),
        Source::Runtime => Some("[from locum] ".to_owned()),
    };
    match (label, &note.handle) {
        (None, None) => Cow::Borrowed(&note.text),
        (label, handle) => {
            let whole = handle.as_ref().map(|handle| whole_at(handle)).unwrap_or_default();
            Cow::Owned(format!("{}{}{whole}", label.unwrap_or_default(), note.text))
        }
    }
}

/// What came of a call, in full or with where the rest is.
pub(crate) fn output(output: &Output) -> Cow<'_, str> {
    match (&output.handle, output.text.is_empty()) {
        (None, true) if output.is_error => Cow::Borrowed("failed"),
        (None, _) => Cow::Borrowed(&*output.text),
        (Some(handle), _) => Cow::Owned(format!("{}{}", output.text, whole_at(handle))),
    }
}

pub(crate) fn whole_at(handle: &str) -> String {
    format!("\n[cut; the whole text is kept as {handle}]")
}

/// A model may call what no tool could be named; the provider still wants a name it would take.
pub(crate) fn valid_name(name: &str, max: usize) -> String {
    let valid = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    let name: String =
        name.chars().take(max).map(|sign| if valid(sign) { sign } else { '_' }).collect();
    if name.is_empty() { "_".into() } else { name }
}

/// Values of ours always encode, and memory takes whatever is written to it.
pub(crate) fn put<T: Serialize + ?Sized>(into: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(into, value);
}
