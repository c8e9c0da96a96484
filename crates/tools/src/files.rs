//! `read`, `write`, `edit`, `ls`, `glob` and `grep`.

use std::path::Path;
use std::sync::Arc;

use locum_files::{Answer, ChangeKind, Desk, Error, Spills, Stop};
use locum_kernel::{AgentId, Class, Deed, Errand, Output, ToolSpec};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;

use crate::{Place, Shelf};

/// A slow disk or an endless tree must not hold an agent for ever.
const TIMEOUT_MS: u64 = 60_000;

const TOOLS: [(&str, Class); 6] = [
    ("read", Class::Read),
    ("ls", Class::Read),
    ("glob", Class::Read),
    ("grep", Class::Read),
    ("write", Class::Write),
    ("edit", Class::Write),
];

#[derive(Debug)]
pub struct Files {
    desk: Arc<Desk>,
    shelf: Shelf,
}

impl Files {
    pub fn new(place: &Place) -> Result<Files, Error> {
        let desk = Desk::new(place.roots()?).with_spills(Spills::open_in(&place.spills())?);
        Ok(Files { desk: Arc::new(desk), shelf: Shelf::new(&place.data) })
    }
}

impl Toolbox for Files {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(name, class): &(&str, Class)| ToolSpec {
            timeout_ms: Some(TIMEOUT_MS),
            ..ToolSpec::new(name, *class, Some("path"))
        };
        TOOLS.iter().map(spec).collect()
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let (desk, pictures) = (Arc::clone(&self.desk), self.shelf.clone());
        Box::pin(async move {
            let stop = Stop::new();
            let _gone = Gone(stop.clone());
            let reader = errand.agent.to_string();
            let work = tokio::task::spawn_blocking(move || {
                let answer = desk.run(&reader, &errand.tool, &errand.arguments, &stop);
                answer.map(|answer| output(answer, &pictures))
            });
            match work.await {
                Ok(Ok(output)) => output,
                Ok(Err(error)) => Output::error(error.to_string()),
                Err(error) => Output::error(format!("the file tools failed: {error}")),
            }
        })
    }

    fn ended(&self, agent: AgentId) {
        self.desk.forget(&agent.to_string());
    }
}

fn output(answer: Answer, shelf: &Shelf) -> Output {
    let mut output = Output::ok(answer.text);
    if let Some(change) = answer.change {
        let kind = match change.kind {
            ChangeKind::Created => "created",
            ChangeKind::Changed => "changed",
        };
        let (path, sha256) = (change.path, change.after);
        output.deeds.push(Deed::Changed { path, sha256, change: kind.into() });
    }
    if let Some(image) = answer.image {
        match shelf.keep(image.media_type, &image.bytes) {
            Ok(picture) => output.pictures.push(picture),
            Err(error) => output.text = format!("{}\n[not shown: {error}]", output.text),
        }
    }
    output
}

/// Whoever waited has gone: a search that nobody waits for stops.
struct Gone(Stop);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// A text too long to be shown, kept beside, and what is shown of it.
pub(crate) fn cut(spills: &Path, text: String) -> Output {
    let cut = Spills::open_in(spills).and_then(|spills| spills.cut(&text));
    match cut {
        Ok(cut) => {
            Output { handle: cut.handle.map(|handle| handle.to_string()), ..Output::ok(cut.text) }
        }
        // Better cut by the kernel than lost.
        Err(_) => Output::ok(text),
    }
}
