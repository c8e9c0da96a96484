//! `memory_save`, `memory_search` and `memory_get`: what is remembered beyond a session. The
//! database is opened by whoever first needs it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use locum_kernel::{Class, Errand, Output, ToolSpec};
use locum_memory::{Error, Id, Memory, Note, Provenance, Reader, Saved, Scope, Source};
use locum_runtime::clock::Clock;
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;

use crate::{Place, number, text};

const FOUND: usize = 8;

#[derive(Debug)]
pub struct Recall(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    data: PathBuf,
    session: String,
    workspace: String,
    clock: Arc<dyn Clock>,
    memory: OnceLock<Memory>,
}

impl Recall {
    #[must_use]
    pub fn new(place: &Place, clock: Arc<dyn Clock>) -> Recall {
        Recall(Arc::new(Desk {
            data: place.data.clone(),
            session: place.session.clone(),
            workspace: place.workspace.display().to_string(),
            clock,
            memory: OnceLock::new(),
        }))
    }
}

impl Toolbox for Recall {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![
            ToolSpec::new("memory_save", Class::Write, Some("scope")),
            ToolSpec::new("memory_search", Class::Read, None),
            ToolSpec::new("memory_get", Class::Read, None),
        ]
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let desk = Arc::clone(&self.0);
        Box::pin(async move {
            let work = tokio::task::spawn_blocking(move || desk.run(&errand));
            match work.await {
                Ok(Ok(text)) => Output::ok(text),
                Ok(Err(why)) => Output::error(why),
                Err(error) => Output::error(format!("memory failed: {error}")),
            }
        })
    }
}

impl Desk {
    fn run(&self, errand: &Errand) -> Result<String, String> {
        let workspace = Some(self.workspace.clone());
        let reader = Reader { workspace, agent: Some(errand.name.clone()) };
        let said = |error: Error| error.to_string();
        let memory = self.memory().map_err(said)?;
        let arguments = &errand.arguments;
        match errand.tool.as_str() {
            "memory_save" => {
                let note = text(arguments, "text").ok_or("memory_save needs a `text`")?;
                let scope = self.scope(text(arguments, "scope"), &errand.name)?;
                let from = Provenance {
                    source: Source::Model,
                    at: self.clock.now().0,
                    session: Some(self.session.clone()),
                    agent: Some(errand.name.clone()),
                };
                let saved = memory.save(&reader, &scope, note, &from).map_err(said)?;
                let what = match &saved {
                    Saved::New(_) => "kept",
                    Saved::Again(_) => "was known already",
                };
                Ok(format!("{} {what}, for {}", saved.note().id, saved.note().scope))
            }
            "memory_get" => {
                let id = text(arguments, "id").ok_or("memory_get needs an `id`")?;
                let id: Id = id.parse()?;
                memory.get(&reader, id).map(|note| whole(&note)).map_err(said)
            }
            _ => {
                let query = text(arguments, "query").ok_or("memory_search needs a `query`")?;
                let limit = number(arguments, "limit").and_then(|it| usize::try_from(it).ok());
                let found = memory.search(&reader, query, limit.unwrap_or(FOUND)).map_err(said)?;
                let rows: Vec<String> =
                    found.iter().map(|it| format!("{} {}", it.note.id, it.snippet)).collect();
                Ok(if rows.is_empty() { "nothing found".into() } else { rows.join("\n") })
            }
        }
    }

    fn memory(&self) -> Result<&Memory, Error> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let opened = Memory::open(&self.data)?;
        Ok(self.memory.get_or_init(|| opened))
    }

    fn scope(&self, named: Option<&str>, agent: &str) -> Result<Scope, String> {
        let workspace = self.workspace.clone();
        match named.unwrap_or("workspace") {
            "user" => Ok(Scope::User),
            "workspace" => Ok(Scope::Workspace { path: workspace }),
            "agent" => Ok(Scope::Agent { name: agent.to_owned(), workspace }),
            other => Err(format!("{other:?} is no scope: it is user, workspace or agent")),
        }
    }
}

fn whole(note: &Note) -> String {
    let from = &note.provenance;
    let who = from.agent.as_deref().unwrap_or("somebody");
    format!("{}\n[{}, {} by {who}]", note.text, note.scope, from.source.word())
}
