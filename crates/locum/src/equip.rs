//! What a run needs before it begins: a model, tools, definitions, and who is at the root.

use std::sync::Arc;

use locum_definitions::Library;
use locum_kernel::Definition;
use locum_mcp::ServerSpec;
use locum_runtime::clock::{Clock, System};
use locum_runtime::tool::{Toolbox, Tools};
use locum_tools::Place;

use crate::bring;
use crate::complaint::Complaint;
use crate::config;
use crate::flags::{Approvals, Run};
use crate::librarian::{Agreed, Librarian, World};
use crate::library::{Shelves, recipe_folders};
use crate::model::{self, Chosen, Instead};
use crate::notes::Notes;
use crate::rehearsal;
use crate::root;
use crate::setup::turns_usual;
use crate::tour;
use crate::trust::{self, By, Person, Trust};
use crate::workshop::{self, Crew};

/// Who answers, with what, and who can be called.
pub(crate) struct Equipped {
    pub(crate) chosen: Chosen,
    pub(crate) tools: Arc<Tools>,
    pub(crate) crew: Crew,
    pub(crate) librarian: Arc<Librarian>,
    /// Who is at the root, if not main.
    pub(crate) from: Option<Definition>,
}

/// `named` is the model, `words` are what is said first.
pub(crate) async fn equip(
    flags: &Run,
    (named, words): (Option<&str>, Option<&str>),
    settings: &Arc<config::Config>,
    mut place: Place,
    clock: &Arc<dyn Clock>,
) -> Result<Equipped, Complaint> {
    place.recipes = recipe_folders(settings);
    locum_tools::tidy(&place);
    let (person, began) = (person(flags), System.now());
    let Found { trust, shelves, specs, notes } = if named.is_some_and(tour::is_tour) {
        Found::default()
    } else {
        Found::of(flags, settings, &place, person)?
    };
    let files = shelves.scan();
    place.readable = workshop::skill_folders(&files, &place.workspace);
    let own = workshop::serve(&place, specs).await;
    let crew = Crew { own, brought: bring::brought(&place, &trust, settings) };
    let means = workshop::means(&place, &crew, notes);
    let instead = instead(flags, named, &files, &place);
    let chosen = model::choose(named, instead, settings, means, clock).await?;
    let props = chosen.script.clone().or_else(rehearsal::props);
    let tools = workshop::furnish(&place, props.as_ref(), &crew, clock)?;
    let agreed = match trust {
        Trust::Yes { by: By::Flag, .. } => Agreed::Before(began),
        Trust::Yes { by: By::Answer, .. } | Trust::No => {
            Agreed::Kept { data: place.data.clone(), folder: place.workspace.clone() }
        }
    };
    let world = World {
        shelves,
        place: place.clone(),
        tools: Arc::clone(&tools) as Arc<dyn Toolbox>,
        settings: Arc::clone(settings),
        script: chosen.script.clone(),
        models: chosen.models.clone(),
        turns_usual: turns_usual(&flags.bounds, settings.limits),
        agreed,
    };
    let librarian = Arc::new(Librarian::new(world, files));
    let from = root::of(flags, &librarian, chosen.script.as_ref(), (person, words))?;
    Ok(Equipped { chosen, tools, crew, librarian, from })
}

/// What lies around a run: in its folder, as far as that is trusted, and of the person's own. The
/// tour finds nothing.
#[derive(Default)]
struct Found {
    trust: Trust,
    shelves: Shelves,
    specs: Vec<ServerSpec>,
    notes: Notes,
}

impl Found {
    fn of(
        flags: &Run,
        settings: &Arc<config::Config>,
        place: &Place,
        person: Person,
    ) -> Result<Found, Complaint> {
        let trust = trust::of(&place.workspace, &place.data, flags.bounds.trust.into(), person);
        let shelves = Shelves::of(place, settings, &trust);
        let (specs, _) = workshop::server_specs(place, settings, &trust, person)?;
        let notes = Notes::read(place, &trust);
        Ok(Found { trust, shelves, specs, notes })
    }
}

/// What does without a model. One that somebody names is meant.
fn instead(flags: &Run, named: Option<&str>, files: &Library, place: &Place) -> Instead {
    match named {
        // A session that began without one goes on so.
        Some(model::AUTO) if flags.model.is_none() => Instead::Program,
        Some(_) => Instead::Nothing,
        None => root::instead(flags, files, &place.workspace),
    }
}

/// Whether somebody can be asked before the run begins.
fn person(flags: &Run) -> Person {
    match flags.approvals {
        // What comes on standard input is meant for the run.
        Some(Approvals::Stdio | Approvals::Itself) => Person::Absent,
        _ if flags.text.as_deref() == Some("-") => Person::Absent,
        Some(Approvals::Deny | Approvals::Park | Approvals::Ask) | None => Person::here(),
    }
}
