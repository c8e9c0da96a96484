//! A model of this machine whose server nobody has started: who wants it, and what to do.

use locum_kernel::{Failure, FailureKind};

/// Says who wants a model of this machine that nobody has started, and what to do about it.
pub(crate) fn told(failure: Failure, (definition, model): &(String, String)) -> Failure {
    if failure.kind != FailureKind::Absent {
        return failure;
    }
    let provider = model.split_once('/').map_or(model.as_str(), |(provider, _)| provider);
    let start = match provider {
        "ollama" => "start it with: ollama serve".to_owned(),
        other => format!("start the server of {other}"),
    };
    let message = format!(
        "{definition} wants {model}, but {}; {start}, or choose another: locum models",
        failure.message
    );
    Failure { message, ..failure }
}
