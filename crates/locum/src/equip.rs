//! What a run needs before it begins: a model, tools, definitions, and who is at the root.

use std::sync::Arc;

use locum_kernel::Definition;
use locum_runtime::clock::Clock;
use locum_runtime::script::Script;
use locum_runtime::tool::{Toolbox, Tools};
use locum_tools::{Place, Servers};

use crate::complaint::Complaint;
use crate::config;
use crate::demo;
use crate::flags::{Approvals, Run};
use crate::librarian::{Agreed, Librarian, World};
use crate::library::Shelves;
use crate::model::{self, Chosen};
use crate::notes::Notes;
use crate::rehearsal;
use crate::root;
use crate::setup::turns_usual;
use crate::trust::{self, By, Person, Trust};
use crate::workshop;

/// Who answers, with what, and who can be called.
pub(crate) struct Equipped {
    pub(crate) chosen: Chosen,
    pub(crate) tools: Arc<Tools>,
    pub(crate) servers: Option<Servers>,
    pub(crate) librarian: Arc<Librarian>,
    /// Who is at the root, if not main.
    pub(crate) from: Option<Definition>,
}

pub(crate) async fn equip(
    flags: &Run,
    named: Option<&str>,
    settings: &Arc<config::Config>,
    mut place: Place,
    clock: &Arc<dyn Clock>,
) -> Result<Equipped, Complaint> {
    let is_tour = named.is_some_and(demo::is_tour);
    let person = person(flags);
    let trust = if is_tour {
        Trust::No
    } else {
        trust::of(&place.workspace, &place.data, flags.bounds.trust.into(), person)
    };
    let shelves = if is_tour { Shelves::default() } else { Shelves::of(&place, settings, &trust) };
    let files = shelves.scan();
    place.readable = workshop::skill_folders(&files, &place.workspace);
    let (specs, notes) = if is_tour {
        (Vec::new(), Notes::default())
    } else {
        (workshop::server_specs(&place, &trust, person)?, Notes::read(&place, &trust))
    };
    let servers = workshop::serve(&place, specs).await;
    let brought = workshop::brought(&place, &trust);
    let means = workshop::means(&place, servers.as_ref(), &brought, notes);
    let chosen = model::choose(named, settings, means, clock).await?;
    let props = chosen.script.clone().or_else(rehearsal::props);
    let tools = workshop::furnish(&place, props.as_ref(), servers.as_ref(), &brought, clock)?;
    let agreed = match trust {
        Trust::Yes { by: By::Flag, .. } => Agreed::All,
        Trust::Yes { by: By::Answer, .. } | Trust::No => Agreed::Kept(place.data.clone()),
    };
    let world = World {
        shelves,
        tools: Arc::clone(&tools) as Arc<dyn Toolbox>,
        settings: Arc::clone(settings),
        played: chosen.script.iter().flat_map(Script::names).map(str::to_owned).collect(),
        models: chosen.models.clone(),
        turns_usual: turns_usual(&flags.bounds, settings.limits),
        agreed,
    };
    let librarian = Arc::new(Librarian::new(world, files));
    let from = root::of(flags, &librarian, chosen.script.as_ref(), person)?;
    Ok(Equipped { chosen, tools, servers, librarian, from })
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
