//! Words every wire puts to a model the same way, however each spells a message.

use locum_kernel::{Note, Source};

use crate::provider::Asked;

/// What a model is asked when the history is about to be replaced.
pub(crate) const SUMMARISE: &str = "Summarise this conversation so far, for yourself: it will \
stand for everything above. Keep the task, what was decided and why, what was done and found out \
(with names, paths and numbers), what is still open and what comes next. Write only the summary.";

/// The system text. Named after its definition, so that all agents of one definition share what
/// the provider remembers of it.
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
    text
}

/// Who a note is from, if it is not the person or the task itself.
pub(crate) fn label(note: &Note) -> Option<String> {
    match &note.source {
        Source::Brief | Source::Person { .. } => None,
        Source::Parent => Some("[from your parent] ".to_owned()),
        Source::Child(child) => Some(format!("[from {child}] ")),
        Source::Runtime => Some("[from locum] ".to_owned()),
    }
}

/// Where the rest of a text is.
pub(crate) fn whole_at(handle: &str) -> String {
    format!("\n[cut; the whole text is kept as {handle}]")
}

/// The model's name without its provider's.
pub(crate) fn model_name(asked: &Asked) -> &str {
    let model = &*asked.request.model;
    model.split_once('/').map_or(model, |(_, name)| name)
}

/// A model may call what no tool could be named; the provider still wants a name it would take.
pub(crate) fn valid_name(name: &str, bytes_max: usize) -> String {
    let valid = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    let name = name.chars().take(bytes_max);
    let name: String = name.map(|sign| if valid(sign) { sign } else { '_' }).collect();
    if name.is_empty() { "_".into() } else { name }
}
