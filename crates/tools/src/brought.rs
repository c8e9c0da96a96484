//! Servers that a definition brings for agents made from it: started before an agent's first turn,
//! one for all who bring the same, behind the same walls as others. One that does not come up is
//! told to the agent and is no reason to stop.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locum_kernel::{AgentId, Errand, Kit, Output, Ready, Relay, ToolSpec};
use locum_mcp::ServerSpec;
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::schema::{Describe, Description};
use locum_runtime::tool::Toolbox;
use serde_json::Value;
use tokio::sync::{OnceCell, watch};

use crate::Place;
use crate::servers::{Company, Servers, Whose};

/// How long an agent waits for its servers: some fetch themselves first.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between a server's name and its tool's.
const MARK: &str = "__";

/// What a server is to whoever reads definitions; here it is only passed on.
pub trait Bring: Debug + Send + Sync {
    /// How to start it, or why it cannot be.
    fn spec(&self, server: &Value) -> Result<ServerSpec, String>;

    /// It is about to start.
    fn starts(&self, server: &Value);
}

#[derive(Clone, Debug)]
pub struct Brought {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    bring: Box<dyn Bring>,
    table: Mutex<Table>,
    /// Counts those that came up.
    came: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Table {
    /// By the name its tools go by.
    all: BTreeMap<String, One>,
    company: Option<Company>,
}

/// Whoever comes first starts it; whoever comes meanwhile waits for that.
#[derive(Clone, Debug)]
struct One {
    digest: String,
    servers: Arc<OnceCell<Servers>>,
}

impl Brought {
    #[must_use]
    pub fn new(place: &Place, bring: Box<dyn Bring>) -> Brought {
        let (table, came) = (Mutex::default(), watch::Sender::new(0));
        Brought { inner: Arc::new(Inner { place: place.clone(), bring, table, came }) }
    }

    /// From now on somebody is there for those that run and those that will.
    pub fn attach(&self, company: &Company) {
        let running = {
            let mut table = self.inner.table();
            table.company = Some(company.clone());
            table.running()
        };
        for servers in running {
            servers.attach(company.clone());
        }
    }

    /// After a restart servers come up while their agents already go on.
    async fn arrived(&self, tool: &str) -> Option<Servers> {
        let mut came = self.inner.came.subscribe();
        let wait = async {
            loop {
                if let Some(servers) = self.inner.of(tool) {
                    return Some(servers);
                }
                came.changed().await.ok()?;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.ok().flatten()
    }
}

impl Toolbox for Brought {
    /// Nothing for everybody.
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let this = self.clone();
        Box::pin(async move {
            match this.arrived(&errand.tool).await {
                Some(servers) => servers.run(errand, live).await,
                None => Output::error(format!("the server of {} is not running", errand.tool)),
            }
        })
    }

    /// Everything that looks like a server's and is nobody else's: after a restart it may not be
    /// there yet. This box comes last.
    fn has(&self, tool: &str) -> bool {
        tool.contains(MARK)
    }

    /// Questions are numbered by each for itself; whose call it is tells them apart.
    fn answered(&self, relay: &Relay) {
        let running = self.inner.table().running();
        for servers in running {
            servers.answered(relay);
        }
    }

    fn prepare(&self, _agent: AgentId, kit: Kit) -> Task<Result<Ready, String>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut ready = Ready::default();
            let mut told = String::new();
            for server in &kit.servers {
                match inner.start(server).await {
                    Ok(servers) => ready.tools.extend(servers.specs()),
                    Err(why) => {
                        let _ = writeln!(told, "{why}");
                    }
                }
            }
            ready.told = Some(told.trim_end().to_owned()).filter(|told| !told.is_empty());
            Ok(ready)
        })
    }
}

impl Describe for Brought {
    fn describe(&self, tool: &str) -> Option<Description> {
        let servers = self.inner.of(tool)?;
        let found = servers.tools().into_iter().find(|it| it.full_name == tool)?;
        Some(Description { about: found.description, schema: found.input_schema })
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has a tool of this name.
    fn of(&self, tool: &str) -> Option<Servers> {
        let (server, _) = tool.split_once(MARK)?;
        self.table().all.get(server)?.servers.get().cloned()
    }

    /// One server as it runs, or why it does not.
    async fn start(&self, server: &Value) -> Result<Servers, String> {
        let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
        let missing = |why: &str| format!("The tools of the server {name} are missing: {why}.");
        let mut spec = self.bring.spec(server).map_err(|why| missing(&why))?;
        let digest = spec.digest();
        let (name, one) = self.table().place(&spec.name, digest);
        spec.name = name;
        let begin = async {
            self.bring.starts(server);
            let (servers, trouble) =
                Servers::probe_for(vec![spec], &self.place, PATIENCE, Whose::Brought).await;
            match trouble.first() {
                None => Ok(servers),
                Some(trouble) => Err(missing(&trouble.why)),
            }
        };
        let mut is_new = false;
        let servers = one.servers.get_or_try_init(|| async {
            let servers = begin.await?;
            is_new = true;
            Ok::<Servers, String>(servers)
        });
        let servers = servers.await?.clone();
        if is_new {
            let company = self.table().company.clone();
            if let Some(company) = company {
                servers.attach(company);
            }
            self.came.send_modify(|count| *count += 1);
        }
        Ok(servers)
    }
}

impl Table {
    fn running(&self) -> Vec<Servers> {
        self.all.values().filter_map(|one| one.servers.get().cloned()).collect()
    }

    /// Two servers of one name that are not the same have tools of different names.
    fn place(&mut self, wanted: &str, digest: String) -> (String, One) {
        let fits = |name: &String| self.all.get(name).is_none_or(|one| one.digest == digest);
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        let name = names.find(fits).unwrap_or_default();
        let new = || One { digest, servers: Arc::default() };
        (name.clone(), self.all.entry(name).or_insert_with(new).clone())
    }
}
