//! The tools a session has: what its script brings, what works on files, commands, pages and
//! memory, and what MCP servers offer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use locum_definitions::{Kind, Library, Wants};
use locum_mcp::{Attendance, ServerSpec};
use locum_runtime::clock::Clock;
use locum_runtime::driver::{Handle, Hands};
use locum_runtime::schema::{BuiltIn, Describe, Described};
use locum_runtime::script::{Props, Script};
use locum_runtime::tool::{Toolbox, Tools};
use locum_tools::{
    Brought, Company, Copies, Exec, Files, Place, Recall, Servers, Shelf, Trouble, Web,
};

use crate::complaint::Complaint;
use crate::config::{self, Config, set};
use crate::configured;
use crate::flags::Approvals;
use crate::model::Means;
use crate::notes::Notes;
use crate::print;
use crate::sample::Sample;
use crate::text::clean;
use crate::trust::{Person, Trust, approve};
use crate::variables::wants;

/// Where a session works, from what this program knows.
pub(crate) fn place(session: &str, workspace: &Path, data: &Path, config: Option<&Path>) -> Place {
    // A rule for a path that is not absolute would hold in every folder.
    let named = config.and_then(|file| path::absolute(file).ok());
    Place {
        session: session.to_owned(),
        workspace: workspace.to_owned(),
        data: data.to_owned(),
        config: named.or_else(config::default_path),
        home: set("HOME").map(PathBuf::from),
        recipes: Vec::new(),
        readable: Vec::new(),
    }
}

/// The servers people have configured: their own, and those of the folder that are approved, with
/// what of the person's environment the latter are given.
pub(crate) fn server_specs(
    place: &Place,
    settings: &Config,
    trust: &Trust,
    person: Person,
) -> Result<(Vec<ServerSpec>, BTreeMap<String, Wants>), Complaint> {
    let mut specs = configured::of_person(place.config.as_deref())?;
    if trust.root().is_none() {
        return Ok((specs, BTreeMap::new()));
    }
    let file = place.workspace.join(".mcp.json");
    let (mut theirs, written) = configured::of_folder(&file, &place.workspace, settings)?;
    theirs.retain(|spec| specs.iter().all(|other| other.name != spec.name));
    let allowed = approve::allowed(place, trust, person, theirs, &written)?;
    let is_allowed = |it: &&ServerSpec| allowed.iter().any(|spec| spec.name == it.name);
    let wants = written.iter().filter(is_allowed).map(|it| (it.name.clone(), wants(it)));
    let wants = wants.filter(|(_, wants)| !wants.is_empty()).collect();
    specs.extend(allowed);
    Ok((specs, wants))
}

/// Folders of skills outside the workspace: what lies beside a skill may be read.
pub(crate) fn skill_folders(files: &Library, workspace: &Path) -> Vec<PathBuf> {
    let skills = files.found.iter().filter(|it| it.kind == Kind::Skill && !it.origin.is_builtin());
    let folders = skills.filter_map(|found| found.origin.folder().canonicalize().ok());
    let outside: BTreeSet<PathBuf> = folders.filter(|it| !it.starts_with(workspace)).collect();
    outside.into_iter().collect()
}

/// What models are told of tools and of the project, and where they find pictures.
pub(crate) fn means(place: &Place, crew: &Crew, notes: Notes) -> Means {
    let described = Described(vec![Box::new(BuiltIn), Box::new(crew.brought.clone())]);
    let describe: Arc<dyn Describe> = Arc::new(described);
    Means {
        describe: match &crew.own {
            Some(servers) => servers.describe(describe),
            None => describe,
        },
        album: Some(Arc::new(Shelf::new(&place.data))),
        notes: Arc::new(notes),
    }
}

/// Everything but what a script brings, which comes first: it stands for the real thing.
pub(crate) fn furnish(
    place: &Place,
    script: Option<&Script>,
    crew: &Crew,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Tools>, Complaint> {
    let files = Files::new(place);
    let files = files.map_err(|error| Complaint::workspace(&place.workspace, &error))?;
    let mut boxes: Vec<Box<dyn Toolbox>> = Vec::new();
    if let Some(script) = script {
        boxes.push(Box::new(Props::new(script, Arc::clone(clock))));
    }
    let exec = Exec::new(place.clone());
    if let Some(why) = exec.caution() {
        print::note(&format!("note: {why}. You are asked before every command."));
    }
    boxes.push(Box::new(Copies::new(place.clone(), print::note)));
    boxes.push(Box::new(files));
    boxes.push(Box::new(exec));
    boxes.push(Box::new(Web::default()));
    boxes.push(Box::new(Recall::new(place, Arc::clone(clock))));
    boxes.extend(crew.own.iter().map(|own| Box::new(own.clone()) as Box<dyn Toolbox>));
    boxes.push(Box::new(crew.brought.clone()));
    Ok(Arc::new(Tools::new(boxes)))
}

/// Starts the servers, if there are any.
pub(crate) async fn serve(place: &Place, specs: Vec<ServerSpec>) -> Option<Servers> {
    if specs.is_empty() {
        return None;
    }
    let (servers, trouble) = Servers::start(specs, place).await;
    for Trouble { server, why, next } in trouble {
        print::note(&format!("note: the tools of {server} are missing: {why}"));
        if let Some(next) = next {
            print::note(&format!("do: {next}"));
        }
    }
    for (server, why) in servers.left_out() {
        print::note(&clean(&format!("note: a tool of {server} is left out: {why}")));
    }
    Some(servers)
}

/// The servers of a session: those people have configured, and those that definitions bring.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) own: Option<Servers>,
    pub(crate) brought: Brought,
}

impl Crew {
    /// From now on the session hears what its servers tell and ask.
    pub(crate) fn attach(&self, session: Handle, approvals: Approvals, hands: &Hands, model: &str) {
        // One that a person lets ask the model asks the one the run is with.
        let provider = Arc::downgrade(&hands.provider);
        let company = Company {
            session,
            people: attendance(approvals),
            model: Arc::new(Sample { provider, model: model.to_owned() }),
            taken: hands.tools.specs().into_iter().map(|spec| spec.name).collect(),
            tell: declined,
        };
        if let Some(own) = &self.own {
            own.attach(company.clone());
        }
        self.brought.attach(&company);
    }
}

/// A server asked, and nobody will answer. Leaving it open would not help: it waits only while
/// its call runs.
fn declined(told: &str) {
    print::note(&clean(told).replace('\n', " "));
    print::note("do: run it at a terminal, or with --approvals stdio, to answer such questions");
}

/// What a server asks is answered while its call runs, or not at all: a run that ends instead of
/// waiting for people has nobody for it.
fn attendance(approvals: Approvals) -> Attendance {
    match approvals {
        Approvals::Deny | Approvals::Park => Attendance::Nobody,
        Approvals::Stdio | Approvals::Ask | Approvals::Itself => Attendance::Somebody,
    }
}
