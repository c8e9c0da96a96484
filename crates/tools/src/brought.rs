//! Servers that a definition brings for agents made from it: started before an agent's first turn,
//! one for all who bring the same, behind the same walls as others. One that does not come up is
//! told to the agent and is no reason to stop.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locum_kernel::{AgentId, Errand, Kit, Output, Ready, ToolSpec};
use locum_mcp::{ServerSpec, Transport};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::schema::{Describe, Description};
use locum_runtime::tool::Toolbox;
use serde::Deserialize;
use serde_json::Value;

use crate::{Place, Servers, environment};

/// How long an agent waits for its servers: some fetch themselves first.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Between a server's name and its tool's.
const MARK: &str = "__";

/// Hears of every server that is about to start for somebody.
pub type Heard = Arc<dyn Fn(&Value) + Send + Sync>;

#[derive(Clone)]
pub struct Brought {
    inner: Arc<Inner>,
}

struct Inner {
    place: Place,
    heard: Heard,
    /// By the name its tools go by.
    running: Mutex<BTreeMap<String, One>>,
}

#[derive(Clone, Debug)]
struct One {
    digest: String,
    servers: Servers,
}

impl std::fmt::Debug for Brought {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Brought").finish_non_exhaustive()
    }
}

/// A server as a definition describes it.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    how: How,
    #[serde(default)]
    available_tools: Vec<String>,
    timeout_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum How {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        env_keys: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        #[serde(default)]
        socket: Option<String>,
    },
    Python {
        code: String,
        dependencies: Vec<String>,
    },
}

impl Brought {
    #[must_use]
    pub fn new(place: &Place, heard: Heard) -> Brought {
        let inner = Inner { place: place.clone(), heard, running: Mutex::default() };
        Brought { inner: Arc::new(inner) }
    }

    /// After a restart servers come up while their agents already go on.
    async fn arrived(&self, tool: &str) -> Option<One> {
        let wait = async {
            loop {
                if let Some(one) = self.one(tool) {
                    return one;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.ok()
    }

    fn one(&self, tool: &str) -> Option<One> {
        let (server, _) = tool.split_once(MARK)?;
        let running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(server).cloned()
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
                Some(one) => one.servers.run(errand, live).await,
                None => Output::error(format!("the server of {} is not running", errand.tool)),
            }
        })
    }

    /// Everything that looks like a server's and is nobody else's: after a restart it may not be
    /// there yet. This box comes last.
    fn has(&self, tool: &str) -> bool {
        tool.contains(MARK)
    }

    fn prepare(&self, _agent: AgentId, kit: Kit) -> Task<Result<Ready, String>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut ready = Ready::default();
            let mut told = String::new();
            for server in &kit.servers {
                match inner.start(server).await {
                    Ok(tools) => ready.tools.extend(tools),
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
        let one = self.one(tool)?;
        let found = one.servers.tools().into_iter().find(|it| it.full_name == tool)?;
        Some(Description { about: found.description, schema: found.input_schema })
    }
}

impl Inner {
    /// The tools of one server, or why there are none.
    async fn start(&self, server: &Value) -> Result<Vec<ToolSpec>, String> {
        let wanted = Wanted::deserialize(server).map_err(|error| error.to_string())?;
        let missing =
            |why: &str| format!("The tools of the server {} are missing: {why}.", wanted.name);
        let mut spec = wanted.spec().map_err(|why| missing(&why))?;
        let digest = spec.digest();
        spec.name = self.free_name(&spec.name, &digest);
        if let Some(tools) = self.known(&spec.name) {
            return Ok(tools);
        }
        (self.heard)(server);
        let name = spec.name.clone();
        let (servers, trouble) = Servers::probe(vec![spec], &self.place, PATIENCE).await;
        if let Some(trouble) = trouble.first() {
            return Err(missing(&trouble.why));
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been quicker; theirs is as good.
        let one = running.entry(name.clone()).or_insert(One { digest, servers });
        Ok(tools(&one.servers, &name))
    }

    fn known(&self, name: &str) -> Option<Vec<ToolSpec>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(name).map(|one| tools(&one.servers, name))
    }

    /// Two servers of one name that are not the same have tools of different names.
    fn free_name(&self, wanted: &str, digest: &str) -> String {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |name: &String| running.get(name).is_none_or(|one| one.digest == digest);
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(fits).unwrap_or_default()
    }
}

/// What beside tools a server has is not offered: it would be everybody's.
fn tools(servers: &Servers, name: &str) -> Vec<ToolSpec> {
    let own = format!("{name}{MARK}");
    servers.specs().into_iter().filter(|spec| spec.name.starts_with(&own)).collect()
}

impl Wanted {
    fn spec(&self) -> Result<ServerSpec, String> {
        let transport = match &self.how {
            How::Stdio { command, args, env, env_keys } => Transport::Stdio {
                command: command.clone(),
                args: args.clone(),
                env: with_keys(env, env_keys)?,
                cwd: None,
            },
            How::Http { socket: Some(_), .. } => {
                return Err("it is reached through a Unix socket, which is not done here".into());
            }
            How::Http { url, headers, socket: None } => {
                Transport::Http { url: url.clone(), headers: filled(headers) }
            }
            How::Python { code, dependencies } => python(code, dependencies),
        };
        let allowed = Some(self.available_tools.clone()).filter(|list| !list.is_empty());
        Ok(ServerSpec {
            timeout: Duration::from_secs(self.timeout_s),
            allowed_tools: allowed,
            ..ServerSpec::new(self.name.clone(), transport)
        })
    }
}

/// What the definition sets, and what it only names, from where the person keeps it.
fn with_keys(
    set: &BTreeMap<String, String>,
    keys: &[String],
) -> Result<BTreeMap<String, String>, String> {
    let environment = environment();
    let mut all = set.clone();
    for key in keys {
        let value = environment.get(key).ok_or_else(|| format!("{key} is not set"))?;
        all.insert(key.clone(), value.clone());
    }
    Ok(all)
}

/// `${NAME}` in a header is where a token goes.
fn filled(headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let environment = environment();
    let fill = |value: &String| {
        let mut text = value.clone();
        for (name, known) in &environment {
            text = text.replace(&format!("${{{name}}}"), known);
        }
        text
    };
    headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect()
}

/// A script runs in an interpreter of its own, with what it depends on.
fn python(code: &str, dependencies: &[String]) -> Transport {
    let with = |name: &str| ["--with".to_owned(), name.to_owned()];
    let needed = dependencies.iter().map(String::as_str);
    let mut args: Vec<String> = std::iter::once("mcp").chain(needed).flat_map(with).collect();
    args.extend(["python", "-c", code].map(str::to_owned));
    Transport::Stdio { command: "uvx".into(), args, env: BTreeMap::new(), cwd: None }
}
