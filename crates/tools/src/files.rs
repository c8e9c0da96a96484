//! `read`, `write`, `edit`, `ls`, `glob` and `grep`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locum_files::{Answer, ChangeKind, Desk, Error, Spills, Stop};
use locum_kernel::{AgentId, Class, Deed, Errand, Output, ToolSpec};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;

use crate::copies::Copy;
use crate::past::{Care, Past, State, What, meant};
use crate::{Place, Shelf, text};

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
pub struct Files(Arc<Drawer>);

/// What all calls share.
#[derive(Debug)]
struct Drawer {
    place: Place,
    /// The workspace.
    main: Arc<Desk>,
    /// Those of agents with copies of their own. What was read at one says nothing of another.
    own: Mutex<BTreeMap<AgentId, Arc<Desk>>>,
    shelf: Shelf,
}

impl Files {
    pub fn new(place: &Place) -> Result<Files, Error> {
        let desk = Desk::new(place.roots(None)?).with_spills(Spills::open_in(&place.spills())?);
        let shelf = Shelf::new(&place.data);
        let main = Arc::new(desk);
        Ok(Files(Arc::new(Drawer { place: place.clone(), main, own: Mutex::default(), shelf })))
    }
}

impl Drawer {
    fn own(&self) -> MutexGuard<'_, BTreeMap<AgentId, Arc<Desk>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The desk an agent works at, and where that is if it is not the workspace.
    fn desk(&self, agent: Option<AgentId>) -> Result<(Arc<Desk>, Option<PathBuf>), String> {
        let Some(agent) = agent else { return Ok((Arc::clone(&self.main), None)) };
        let copy = Copy::of(&self.place, agent)?;
        let folder = copy.place.workspace.clone();
        if let Some(desk) = self.own().get(&agent) {
            return Ok((Arc::clone(desk), Some(folder)));
        }
        let made = copy.place.roots(Some(&self.place.data)).and_then(|roots| {
            Ok(Desk::new(roots).with_spills(Spills::open_in(&self.place.spills())?))
        });
        let desk = Arc::new(made.map_err(|error| error.to_string())?);
        // Two first calls at once must not have two memories of what was read.
        let desk = Arc::clone(self.own().entry(agent).or_insert(desk));
        Ok((desk, Some(folder)))
    }

    fn run(&self, errand: &Errand, stop: &Stop) -> Result<Output, String> {
        let (desk, folder) = self.desk(errand.desk)?;
        let reader = errand.agent.to_string();
        let workspace = folder.as_deref().unwrap_or(&self.place.workspace);
        let about = self.keep(errand, workspace)?;
        let answer = desk.run(&reader, &errand.tool, &errand.arguments, stop);
        let answer = answer.map_err(|error| error.to_string())?;
        if let (Some((past, path, before)), Some(change)) = (about, &answer.change) {
            let after = past.keep(&path, Care::Synced).ok().flatten();
            // Otherwise somebody was faster, and what the agent left is not known.
            if after.as_ref().is_some_and(|after| after.sha256 == change.after) {
                // Without this the change counts as cut: it is not taken back.
                let _ = past.note(errand, &[What::Changed { path, before, after }]);
            }
        }
        Ok(output(answer, folder.as_deref(), &self.shelf))
    }

    /// Keeps what is about to be changed, where that is wanted.
    fn keep(
        &self,
        errand: &Errand,
        workspace: &Path,
    ) -> Result<Option<(Past, PathBuf, Option<State>)>, String> {
        let past = Past::for_errand(&self.place, errand).filter(|_| errand.class == Class::Write);
        let path = text(&errand.arguments, "path").and_then(|named| meant(workspace, named));
        let Some((past, path)) = past.zip(path) else { return Ok(None) };
        let kept = past.keep(&path, Care::Synced).and_then(|before| {
            past.note(errand, &[What::About { path: path.clone(), before: before.clone() }])?;
            Ok(before)
        });
        let before = kept.map_err(|error| {
            format!("not written, because what is there could not be kept: {error}")
        })?;
        Ok(Some((past, path, before)))
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
        let drawer = Arc::clone(&self.0);
        Box::pin(async move {
            let stop = Stop::new();
            let _gone = Gone(stop.clone());
            let work = tokio::task::spawn_blocking(move || drawer.run(&errand, &stop));
            match work.await {
                Ok(Ok(output)) => output,
                Ok(Err(why)) => Output::error(why),
                Err(error) => Output::error(format!("the file tools failed: {error}")),
            }
        })
    }

    fn ended(&self, agent: AgentId) {
        let reader = agent.to_string();
        self.0.main.forget(&reader);
        let mut own = self.0.own();
        own.remove(&agent);
        own.values().for_each(|desk| desk.forget(&reader));
    }
}

/// `folder` is where it was done if not in the workspace: whoever reads of it is not there.
fn output(answer: Answer, folder: Option<&Path>, shelf: &Shelf) -> Output {
    let mut output = Output::ok(answer.text);
    if let Some(change) = answer.change {
        let kind = match change.kind {
            ChangeKind::Created => "created",
            ChangeKind::Changed => "changed",
        };
        let path = folder.map(|folder| folder.join(&change.path).to_string_lossy().into_owned());
        let (path, sha256) = (path.unwrap_or(change.path), change.after);
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
