//! Servers that a definition brings for agents made from it: started before an agent's first turn,
//! one for all who bring the same, behind the same walls as others. One that does not come up is
//! told to the agent and is no reason to stop.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locum_kernel::{AgentId, Errand, Input, Kit, Output, Ready, Relay, ToolSpec};
use locum_mcp::ServerSpec;
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::schema::{Describe, Description};
use locum_runtime::tool::Toolbox;
use serde_json::Value;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::Place;
use crate::servers::{Company, Servers, Whose};

/// How long an agent waits for its servers before it begins. What comes later is there when it
/// comes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may take to start: some fetch themselves first.
const START: Duration = Duration::from_mins(1);
/// Between a server's name and its tool's.
const MARK: &str = "__";

/// What a server is to whoever reads definitions; here it is only passed on.
pub trait Bring: Debug + Send + Sync {
    /// How to start it, or why it cannot be.
    fn spec(&self, server: &Value) -> Result<ServerSpec, String>;

    /// It is about to start.
    fn starts(&self, server: &Value);

    /// Its tools, or one of them, are missing; why, for people.
    fn fails(&self, why: &str);
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
    /// Those that are being started, whoever still waits for them.
    starting: Mutex<JoinSet<()>>,
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
        let (table, starting) = (Mutex::default(), Mutex::default());
        let (place, came) = (place.clone(), watch::Sender::new(0));
        Brought { inner: Arc::new(Inner { place, bring, table, came, starting }) }
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
        timeout(START, wait).await.ok().flatten()
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

    /// All at once. One that is not there in time is told, and its tools come when it does.
    fn prepare(&self, agent: AgentId, kit: Kit) -> Task<Result<Ready, String>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let until = Instant::now() + PATIENCE;
            let start = |server| (name_of(server), Inner::begin(&inner, agent, server.clone()));
            let begun: Vec<(String, Start)> = kit.servers.iter().map(start).collect();
            let mut ready = Ready::default();
            let mut told = String::new();
            for (name, start) in begun {
                match timeout_at(until, start).await {
                    Ok(Ok(Ok(tools))) => ready.tools.extend(tools),
                    Ok(Ok(Err(why))) => {
                        let _ = writeln!(told, "{why}");
                    }
                    Ok(Err(_)) | Err(_) => {
                        let _ = writeln!(
                            told,
                            "The tools of the server {name} are not there yet: it takes long to \
                             start. They appear when it has."
                        );
                    }
                }
            }
            ready.told = Some(told.trim_end().to_owned()).filter(|told| !told.is_empty());
            Ok(ready)
        })
    }
}

/// What became of a start: tools, or why there are none.
type Start = oneshot::Receiver<Result<Vec<ToolSpec>, String>>;

fn name_of(server: &Value) -> String {
    server.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
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

    /// Whoever waits hears what came of it; else whoever it was for gets its tools when they come.
    fn begin(this: &Arc<Inner>, agent: AgentId, server: Value) -> Start {
        let (tell, told) = oneshot::channel();
        let inner = Arc::downgrade(this);
        let mut starting = this.starting.lock().unwrap_or_else(PoisonError::into_inner);
        while starting.try_join_next().is_some() {}
        starting.spawn(async move {
            let Some(inner) = inner.upgrade() else { return };
            let started = inner.start(&server).await;
            match &started {
                Ok(servers) => {
                    for (server, why) in servers.left_out() {
                        inner.bring.fails(&format!("a tool of {server} is left out: {why}"));
                    }
                }
                Err(why) => inner.bring.fails(why),
            }
            let started = started.map(|servers| servers.specs());
            let Err(Ok(tools)) = tell.send(started) else { return };
            let company = inner.table().company.clone();
            if let Some(company) = company {
                let (gone, beside, to) = (Vec::new(), Vec::new(), Some(agent));
                // A session that was closed needs no tools.
                let _closed =
                    company.session.post(Input::Retooled { tools, gone, beside, to }).await;
            }
        });
        told
    }

    /// One server as it runs, or why it does not.
    async fn start(&self, server: &Value) -> Result<Servers, String> {
        let name = name_of(server);
        let missing = |why: &str| format!("The tools of the server {name} are missing: {why}.");
        let mut spec = self.bring.spec(server).map_err(|why| missing(&why))?;
        let digest = spec.digest();
        let (name, one) = self.table().place(&spec.name, digest);
        spec.name = name;
        let begin = async {
            self.bring.starts(server);
            let (servers, trouble) =
                Servers::probe_for(vec![spec], &self.place, START, Whose::Brought).await;
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
