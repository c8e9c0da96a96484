//! The tour's own parts: the script behind its models, and who answers for the person.

use std::path::Path;

use locum_kernel::{AskKind, Card, Input, Scope, Verdict};
use locum_runtime::answer;
use locum_runtime::driver::{Closed, Handle};
use locum_runtime::line::Body;
use locum_runtime::live::{Reader, Told};
use locum_runtime::script::Script;

use crate::complaint::Complaint;
use crate::people::me;
use crate::print::note;

/// The script, by the name of the model that plays it.
pub(crate) const MODEL: &str = "demo";
pub(crate) const FAST: &str = "demo-fast";
const TOUR: &str = include_str!("../../../examples/demo.yaml");

/// The tour's script, if that is the model's name.
pub(crate) fn script(model: &str) -> Option<Result<Script, Complaint>> {
    let parsed = || {
        let script = Script::parse(Path::new("demo.yaml"), TOUR);
        script.map_err(|error| Complaint::script(&error))
    };
    match model {
        MODEL => Some(parsed()),
        FAST => Some(parsed().map(Script::hurried)),
        _ => None,
    }
}

/// Whether a model of this name plays the tour.
pub(crate) fn is_tour(model: &str) -> bool {
    matches!(model, MODEL | FAST)
}

/// Answers whatever is asked, as a friendly person would.
pub(crate) async fn answer_all(handle: Handle, mut lines: Reader) -> Result<(), Closed> {
    while let Some(told) = lines.next().await {
        let Told::Line(line) = told else { continue };
        let Body::AskOpened(opened) = &line.body else { continue };
        let view = handle.view().await?;
        let Some(card) = view.asks.iter().find(|card| card.id.to_string() == opened.id) else {
            continue;
        };
        let verdict = friendly(card);
        let input = Input::Answered { ask: card.id, verdict, by: me(), digest: None };
        if let Err(why) = handle.post(input).await? {
            note(&format!("{} was not answered: {why}", card.id));
        }
    }
    Ok(())
}

fn friendly(card: &Card) -> Verdict {
    match &card.kind {
        AskKind::Question { options, .. } => {
            let last = options.last().map_or("yes", String::as_str);
            answer::words(&card.kind, last.to_owned())
        }
        AskKind::Approval(_) | AskKind::Continue { .. } | AskKind::Budget { .. } => {
            answer::allow(&card.kind, Scope::Once, None)
        }
    }
}
