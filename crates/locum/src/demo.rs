//! `locum demo`: a tour with a scripted model over the real engine, in the user's own folder. It
//! needs no key and no network, and changes nothing. With `--fast`, or where nobody can be asked,
//! it answers itself.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use locum_kernel::{AskKind, Card, Input, Scope, Verdict};
use locum_runtime::answer;
use locum_runtime::driver::{Closed, Handle};
use locum_runtime::line::Body;
use locum_runtime::live::{Reader, Told};
use locum_runtime::script::Script;

use crate::complaint::Complaint;
use crate::flags::{Approvals, Bounds, Demo, Run};
use crate::people::me;
use crate::print::note;
use crate::run::{self, Places};

/// The script, by the name of the model that plays it.
const MODEL: &str = "demo";
const FAST: &str = "demo-fast";
const TOUR: &str = include_str!("../../../examples/demo.yaml");

/// One of the three workers has to wait for a slot, so that it is seen how that looks.
const SLOTS: u32 = 2;

pub(crate) fn demo(flags: &Demo, data: Option<&Path>) -> Result<u8, Complaint> {
    let itself = flags.fast || !io::stdin().is_terminal();
    let key = run::fresh_key("demo");
    let tour = Run {
        text: Some("Show me around.".into()),
        model: Some(if flags.fast { FAST } else { MODEL }.into()),
        session: Some(key.clone()),
        json: flags.json,
        approvals: Some(if itself { Approvals::Itself } else { Approvals::Ask }),
        bounds: Bounds { slots: Some(SLOTS), ..Bounds::default() },
        ..Run::default()
    };
    let code = run::run(&tour, &Places { data, config: None })?;
    note("");
    for (command, shows) in [
        (format!("locum agents -s {key} --tree"), "who was there, and what each one did"),
        (format!("locum replay {key}"), "every decision, one by one"),
        (format!("locum timeline {key}"), "who waited for what"),
        ("locum run --help".to_owned(), "with a model of your own"),
    ] {
        note(&format!("  {command:<50}  {shows}"));
    }
    Ok(code)
}

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
