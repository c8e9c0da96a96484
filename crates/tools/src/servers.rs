//! Tools of MCP servers. Nothing a server says of its own tools lowers what a call of them must
//! pass: they count as commands, and are approved by name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use locum_kernel::{Class, Errand, Output, ToolSpec};
use locum_mcp::{Attendance, Called, Launch, ServerSpec, Settings, ToolInfo, Transport, Wrap};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::schema::{Describe, Description};
use locum_runtime::tool::Toolbox;
use locum_sandbox::{Hold, Network, Survey, Walls};

use crate::files::cut;
use crate::{Place, Shelf};

/// How long a session waits for its servers before it begins without them.
const PATIENCE: Duration = Duration::from_secs(10);

/// The servers of one session and what they can do.
#[derive(Debug)]
pub struct Servers {
    all: Arc<locum_mcp::Servers>,
    tools: BTreeMap<String, ToolInfo>,
    place: Place,
    shelf: Shelf,
}

/// A server that is not there, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub server: String,
    pub why: String,
}

impl Servers {
    /// Starts them all at once.
    pub async fn start(specs: Vec<ServerSpec>, place: &Place) -> (Servers, Vec<Trouble>) {
        let settings = Settings {
            client_name: "locum".into(),
            client_version: env!("CARGO_PKG_VERSION").into(),
            roots: vec![place.workspace.clone()],
            wrap: wrap(place.clone()),
            credentials: Some(place.data.join("logins")),
        };
        let servers = Arc::new(locum_mcp::Servers::new(specs, settings));
        // What a server asks of people has no way to them yet, so it is told that nobody is here.
        servers.attend(Attendance::Nobody);
        let listed = servers.tools(PATIENCE).await;
        let trouble = listed.missing.into_iter();
        let trouble = trouble.map(|it| Trouble { server: it.server, why: it.why }).collect();
        let named = listed.tools.into_iter().map(|tool| (tool.full_name.clone(), tool));
        let shelf = Shelf::new(&place.data);
        (Servers { all: servers, tools: named.collect(), place: place.clone(), shelf }, trouble)
    }

    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        self.tools.values()
    }

    #[must_use]
    pub fn states(&self) -> Vec<(String, locum_mcp::State)> {
        self.all.states()
    }

    /// What models are told of these tools, and of all others what they are told anyway.
    #[must_use]
    pub fn describe(&self, others: Arc<dyn Describe>) -> Arc<dyn Describe> {
        let told = |tool: &ToolInfo| Description {
            about: tool.description.clone(),
            schema: tool.input_schema.clone(),
        };
        let tools = self.tools.iter().map(|(name, tool)| (name.clone(), told(tool))).collect();
        Arc::new(Told { tools, others })
    }
}

#[derive(Debug)]
struct Told {
    tools: BTreeMap<String, Description>,
    others: Arc<dyn Describe>,
}

impl Describe for Told {
    fn describe(&self, tool: &str) -> Option<Description> {
        self.tools.get(tool).cloned().or_else(|| self.others.describe(tool))
    }
}

impl Toolbox for Servers {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &ToolInfo| ToolSpec {
            idempotent: false,
            identity: Some(tool.digest.clone()),
            ..ToolSpec::new(&tool.full_name, Class::Exec, None)
        };
        self.tools.values().map(spec).collect()
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let servers = Arc::clone(&self.all);
        let approved = self.tools.get(&errand.tool).map(|tool| tool.digest.clone());
        let (pictures, spills) = (self.shelf.clone(), self.place.spills());
        Box::pin(async move {
            // What was approved is what is called: a server may change its mind meanwhile.
            let now = servers.tools(Duration::ZERO).await.tools;
            let now = now.iter().find(|tool| tool.full_name == errand.tool);
            if now.is_some_and(|tool| Some(&tool.digest) != approved.as_ref()) {
                return Output::error(format!(
                    "not run: {} is described otherwise than when this session began; a new run \
                     asks for it again",
                    errand.tool
                ));
            }
            let call = errand.call;
            let told = |it: locum_mcp::Progress| {
                let words = it.message.unwrap_or_default();
                live.output(call, 0, &format!("{words} {}", it.progress));
            };
            match servers.call(&errand.tool, errand.arguments, told).await {
                Ok(called) => {
                    let work = move || output(called, &pictures, &spills);
                    let kept = tokio::task::spawn_blocking(work).await;
                    kept.unwrap_or_else(|error| Output::error(error.to_string()))
                }
                Err(error) => Output::error(error.to_string()),
            }
        })
    }
}

fn output(called: Called, shelf: &Shelf, spills: &Path) -> Output {
    let mut text = called.text;
    if let Some(value) = called.structured.filter(|_| text.trim().is_empty()) {
        text = value.to_string();
    }
    for link in called.resource_links {
        let _ = write!(text, "\n[{}: {}]", link.name, link.uri);
    }
    for missing in called.cut {
        let _ = write!(text, "\n[{missing}]");
    }
    let mut output = Output { is_error: called.is_error, ..cut(spills, text) };
    for image in called.images {
        match shelf.keep(&image.media_type, &image.bytes) {
            Ok(picture) => output.pictures.push(picture),
            Err(error) => {
                let _ = write!(output.text, "\n[a picture is not shown: {error}]");
            }
        }
    }
    output
}

/// Servers run behind walls like any command, but with the network, for which most of them exist.
/// On a machine without walls they do not run: nobody was asked.
fn wrap(place: Place) -> Wrap {
    let survey: OnceLock<Survey> = OnceLock::new();
    // For as long as the session: a server may be started again at any time.
    let holds: Mutex<Vec<Hold>> = Mutex::default();
    Arc::new(move |spec: &ServerSpec| {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = std::env::vars_os().filter_map(text).collect();
        let plain = Launch::plain(spec, &environment);
        if !matches!(spec.transport, Transport::Stdio { .. }) {
            return Ok(plain);
        }
        let survey = survey.get_or_init(|| Survey::take(Path::new("/proc/self/exe")));
        survey.builder().map_err(|why| io::Error::other(why.to_string()))?;
        let mut walls = Walls::around(&place.workspace);
        walls.network = Network::On;
        walls.guards = place.guards();
        walls.writable = caches(place.home.as_deref());
        let argv: Vec<OsString> = plain.argv.iter().map(OsString::from).collect();
        let cwd = plain.cwd.clone().unwrap_or_else(|| place.workspace.clone());
        let enclosed = locum_sandbox::enclose(&walls, survey, &argv, &cwd);
        let enclosed = enclosed.map_err(io::Error::other)?;
        let word = |word: OsString| word.into_string().map_err(|_| io::Error::other("not UTF-8"));
        let argv = enclosed.argv.into_iter().map(word).collect::<io::Result<Vec<_>>>()?;
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in enclosed.env {
            env.insert(word(name)?, word(value)?);
        }
        // What the configuration gives it, it gives on purpose.
        if let Transport::Stdio { env: own, .. } = &spec.transport {
            env.extend(own.clone());
        }
        holds.lock().unwrap_or_else(PoisonError::into_inner).push(enclosed.hold);
        Ok(Launch { argv, env, cwd: Some(cwd) })
    })
}

/// Where the usual runners of servers keep what they have fetched.
fn caches(home: Option<&Path>) -> Vec<PathBuf> {
    let names = [".npm", ".cache/uv"];
    let all = home.into_iter().flat_map(|home| names.map(|name| home.join(name)));
    all.filter(|path| path.is_dir()).collect()
}
