//! Tools of MCP servers. Nothing a server says of its own tools lowers what a call of them must
//! pass: they count as commands, and are approved by name and by what they say of themselves.
//!
//! In reading order: this box, `pump` (what servers tell reaches the session), `known` (what is
//! remembered of them), `wonder` and `form` (what they want from people), `offer` (what they have
//! beside tools), `walls`.

mod form;
mod known;
mod offer;
mod pump;
mod sample;
mod walls;
mod wonder;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use locum_kernel::{Class, Errand, Output, Relay, ToolSpec};
use locum_mcp::{Attendance, Called, Known, Sampling, ServerSpec, Settings, ToolInfo};
use locum_runtime::driver::Handle;
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::schema::{Describe, Description};
use locum_runtime::tool::Toolbox;
use tokio::task::JoinSet;

use crate::files::cut;
use crate::{Place, Shelf};
use known::Cache;
use pump::Beside;
use wonder::Wonders;

pub use sample::{Sampled, Sampler};

/// How long a run waits for servers it knows nothing of before it begins without them. Their
/// tools appear when they come.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a result waits until the session knows of tools that its call has changed.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The servers of one session and what they can do. Cloning shares.
#[derive(Clone, Debug)]
pub struct Servers {
    inner: Arc<Inner>,
    /// Who listens to what servers tell; ends with the last clone.
    pump: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Debug)]
struct Inner {
    all: locum_mcp::Servers,
    /// The digest of each configuration.
    digests: BTreeMap<String, String>,
    /// As the session was last told.
    tools: RwLock<BTreeMap<String, ToolInfo>>,
    specs: RwLock<Vec<ToolSpec>>,
    /// Names that are somebody else's.
    taken: RwLock<BTreeSet<String>>,
    /// Who is told, once somebody is there; one change after another.
    session: OnceLock<Handle>,
    telling: tokio::sync::Mutex<()>,
    wonders: Wonders,
    /// Who answers what servers want to ask a model.
    sampler: RwLock<Option<Arc<dyn Sampler>>>,
    cache: Cache,
    place: Place,
    shelf: Shelf,
    whose: Whose,
    /// Every tool a server that was brought has had: by them it is known who has it.
    ever: Mutex<BTreeSet<String>>,
}

/// Who may use the tools of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Everybodys,
    /// Brought for some agents; what it has beside tools is not offered.
    Brought,
}

/// Who is there for servers while a session is driven.
#[derive(Clone, Debug)]
pub struct Company {
    /// Hears of tools that change and of what servers want from people.
    pub session: Handle,
    pub people: Attendance,
    /// Answers what servers want to ask a model. Each time a person agrees first.
    pub model: Arc<dyn Sampler>,
    /// The names of all tools that are not theirs.
    pub taken: BTreeSet<String>,
    /// What was asked and nobody will answer.
    pub tell: fn(&str),
}

/// A server that is not there, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub server: String,
    pub why: String,
    /// What a person can do about it.
    pub next: Option<String>,
}

impl Servers {
    /// With what is remembered of them; whoever is not known is started, all at once, and waited
    /// for until it has said what it has, or for no longer than two seconds.
    pub async fn start(specs: Vec<ServerSpec>, place: &Place) -> (Servers, Vec<Trouble>) {
        let servers = Servers::new(specs, place, Remember::Everything, Whose::Everybodys);
        let trouble = servers.list(PATIENCE).await;
        (servers, trouble)
    }

    /// Starts every one of them, whatever is remembered.
    pub async fn probe(
        specs: Vec<ServerSpec>,
        place: &Place,
        patience: Duration,
    ) -> (Servers, Vec<Trouble>) {
        Servers::probe_for(specs, place, patience, Whose::Everybodys).await
    }

    pub(crate) async fn probe_for(
        specs: Vec<ServerSpec>,
        place: &Place,
        patience: Duration,
        whose: Whose,
    ) -> (Servers, Vec<Trouble>) {
        let servers = Servers::new(specs, place, Remember::Nothing, whose);
        let trouble = servers.list(patience).await;
        (servers, trouble)
    }

    /// Without anything started.
    #[must_use]
    pub fn unstarted(specs: Vec<ServerSpec>, place: &Place) -> Servers {
        Servers::new(specs, place, Remember::Nothing, Whose::Everybodys)
    }

    fn new(specs: Vec<ServerSpec>, place: &Place, remember: Remember, whose: Whose) -> Servers {
        let settings = Settings {
            client_name: "locum".into(),
            client_version: env!("CARGO_PKG_VERSION").into(),
            roots: vec![place.workspace.clone()],
            wrap: walls::wrap(place.clone()),
            sampling: Sampling::Offered,
            credentials: Some(place.data.join("logins")),
        };
        let cache = Cache::new(&place.data);
        let digests = specs.iter().map(|spec| (spec.name.clone(), spec.digest())).collect();
        let remembered = |spec: &ServerSpec| Some((spec.name.clone(), cache.read(spec)?));
        let remembered: Vec<(String, Known)> = match remember {
            Remember::Everything => specs.iter().filter_map(remembered).collect(),
            Remember::Nothing => Vec::new(),
        };
        let all = locum_mcp::Servers::new(specs, settings);
        // Until a session is there to be asked.
        all.attend(Attendance::Nobody);
        for (server, known) in remembered {
            all.remember(&server, known);
        }
        let inner = Inner {
            all,
            digests,
            tools: RwLock::default(),
            specs: RwLock::default(),
            taken: RwLock::default(),
            session: OnceLock::new(),
            telling: tokio::sync::Mutex::default(),
            wonders: Wonders::default(),
            sampler: RwLock::default(),
            cache,
            place: place.clone(),
            shelf: Shelf::new(&place.data),
            whose,
            ever: Mutex::default(),
        };
        Servers { inner: Arc::new(inner), pump: Arc::default() }
    }

    async fn list(&self, patience: Duration) -> Vec<Trouble> {
        let unknown: Vec<&String> =
            self.inner.digests.keys().filter(|it| self.inner.all.known(it).is_none()).collect();
        let missing = self.inner.all.tools(patience).await.missing;
        for server in unknown {
            self.inner.keep(server);
        }
        self.inner.renew();
        let states: BTreeMap<String, locum_mcp::State> = self.states().into_iter().collect();
        let trouble = |it: locum_mcp::Missing| {
            let login = states.get(&it.server) == Some(&locum_mcp::State::Login);
            let next = login.then(|| format!("locum mcp login {}", it.server));
            Trouble { server: it.server, why: it.why, next }
        };
        missing.into_iter().map(trouble).collect()
    }

    /// From now on somebody is there; the first who comes is heard.
    pub fn attach(&self, company: Company) {
        let Company { session, people, model, mut taken, tell } = company;
        for own in self.inner.specs() {
            taken.remove(&own.name);
        }
        *self.inner.taken.write().unwrap_or_else(PoisonError::into_inner) = taken;
        *self.inner.sampler.write().unwrap_or_else(PoisonError::into_inner) = Some(model);
        self.inner.all.attend(people);
        let mut pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner);
        if self.inner.session.set(session.clone()).is_ok() {
            pump.spawn(pump::run(Arc::clone(&self.inner), session, tell));
        }
    }

    /// All tools as the session was last told.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolInfo> {
        let tools = self.inner.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.values().cloned().collect()
    }

    /// Tools that servers have listed and nobody can use, with why, server by server.
    #[must_use]
    pub fn left_out(&self) -> Vec<(String, String)> {
        let of = |server: &String| {
            let server = server.clone();
            let lines = self.inner.all.left_out(&server);
            lines.into_iter().map(move |line| (server.clone(), line))
        };
        self.inner.digests.keys().flat_map(of).collect()
    }

    #[must_use]
    pub fn states(&self) -> Vec<(String, locum_mcp::State)> {
        self.inner.all.states()
    }

    #[must_use]
    pub fn client(&self) -> &locum_mcp::Servers {
        &self.inner.all
    }

    /// What a server has to read, a line each.
    pub async fn resources(&self, server: &str) -> Result<String, locum_mcp::Error> {
        let resources = self.inner.all.resources(server).await?;
        let templates = self.inner.all.resource_templates(server).await.unwrap_or_default();
        Ok(offer::resource_rows(&resources, &templates))
    }

    /// The prompts of a server, a line each.
    pub async fn prompts(&self, server: &str) -> Result<String, locum_mcp::Error> {
        Ok(offer::prompt_rows(&self.inner.all.prompts(server).await?))
    }

    /// What models are told of these tools, and of all others what they are told anyway.
    #[must_use]
    pub fn describe(&self, others: Arc<dyn Describe>) -> Arc<dyn Describe> {
        Arc::new(Told { inner: Arc::clone(&self.inner), others })
    }
}

/// Whether what was known in an earlier run counts.
#[derive(Clone, Copy, Debug)]
enum Remember {
    Everything,
    Nothing,
}

#[derive(Debug)]
struct Told {
    inner: Arc<Inner>,
    others: Arc<dyn Describe>,
}

/// Texts may speak of a server by a name that no tool can have.
fn with_server(tool: &ToolInfo) -> String {
    let ToolInfo { server, name, full_name, description, .. } = tool;
    if *full_name == format!("{server}__{name}") {
        return description.clone();
    }
    format!("{description} (the server {server:?} calls it {name:?})").trim_start().to_owned()
}

impl Describe for Told {
    fn describe(&self, tool: &str) -> Option<Description> {
        let tools = self.inner.tools.read().unwrap_or_else(PoisonError::into_inner);
        let told = |tool: &ToolInfo| Description {
            about: with_server(tool),
            schema: tool.input_schema.clone(),
        };
        let own = tools.get(tool).map(told);
        own.or_else(|| self.others.describe(tool)).or_else(|| offer::describe(tool))
    }
}

impl Toolbox for Servers {
    fn specs(&self) -> Vec<ToolSpec> {
        self.inner.specs()
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            match errand.tool.as_str() {
                offer::RESOURCES | offer::PROMPT => offer::run(&inner, &errand).await,
                _ => inner.call(errand, live).await,
            }
        })
    }

    fn answered(&self, relay: &Relay) {
        let Some(sample) = self.inner.wonders.answered(&self.inner.all, relay) else { return };
        let inner = Arc::clone(&self.inner);
        let mut pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner);
        pump.spawn(async move {
            let sampler = inner.sampler.read().unwrap_or_else(PoisonError::into_inner).clone();
            let said = match sampler {
                Some(sampler) => sampler.sample(sample.system.clone(), sample.text.clone()).await,
                None => Err("there is none".to_owned()),
            };
            inner.wonders.sampled(&inner.all, &sample, said);
        });
    }
}

impl Inner {
    fn specs(&self) -> Vec<ToolSpec> {
        self.specs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn known(&self) -> Vec<(String, Known)> {
        let known = |server: &String| Some((server.clone(), self.all.known(server)?));
        self.digests.keys().filter_map(known).collect()
    }

    /// Remembers what a server has now. A file that cannot be written is one that is not there.
    fn keep(&self, server: &str) {
        if let (Some(digest), Some(known)) = (self.digests.get(server), self.all.known(server)) {
            let _asked_again_next_time = self.cache.write(digest, &known);
        }
    }

    /// Every tool that somebody may have been given, if they are not everybody's.
    fn beside(&self, now: &[ToolSpec]) -> Vec<String> {
        if self.whose == Whose::Everybodys {
            return Vec::new();
        }
        let mut ever = self.ever.lock().unwrap_or_else(PoisonError::into_inner);
        ever.extend(now.iter().map(|spec| spec.name.clone()));
        ever.iter().cloned().collect()
    }

    /// Takes over what servers have now, and says what of it is new and what is gone.
    fn renew(&self) -> (Vec<ToolSpec>, Vec<String>) {
        let taken = self.taken.read().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = self.all.listed().into_iter().filter(|tool| !taken.contains(&tool.full_name));
        let tools: BTreeMap<String, ToolInfo> =
            listed.map(|tool| (tool.full_name.clone(), tool)).collect();
        let spec = |tool: &ToolInfo| ToolSpec {
            idempotent: false,
            identity: Some(tool.digest.clone()),
            brought: self.whose == Whose::Brought,
            ..ToolSpec::new(&tool.full_name, Class::Exec, None)
        };
        let offers = match self.whose {
            Whose::Everybodys => offer::specs(&self.known()),
            Whose::Brought => Vec::new(),
        };
        let offers = offers.into_iter().filter(|spec| !taken.contains(&spec.name));
        let specs: Vec<ToolSpec> = tools.values().map(spec).chain(offers).collect();
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools;
        let mut told = self.specs.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *told, specs.clone());
        let is_gone = |old: &ToolSpec| !specs.iter().any(|spec| spec.name == old.name);
        let gone = before.iter().filter(|old| is_gone(old)).map(|old| old.name.clone()).collect();
        let new = specs.iter().filter(|spec| !before.contains(spec)).cloned().collect();
        (new, gone)
    }

    async fn call(self: &Arc<Inner>, errand: Errand, live: Live) -> Output {
        // What was approved is what is called: a server may have changed its mind meanwhile.
        let tool = match self.all.ready(&errand.tool).await {
            Ok(tool) => tool,
            Err(error) => return Output::error(error.to_string()),
        };
        if errand.identity.is_some_and(|approved| approved != tool.digest) {
            return Output::error(format!(
                "not run: {} describes itself otherwise than when this was allowed; look at it \
                 again, and call it again if it is still what you want",
                errand.tool
            ));
        }
        let call = errand.call;
        let told = |it: locum_mcp::Progress| {
            let words = it.message.unwrap_or_default();
            live.output(call, 0, &format!("{words} {}", it.progress));
        };
        let beside = Beside::begin(Arc::clone(self), live.key(), &tool.server, call);
        let called = self.all.call(&errand.tool, errand.arguments, told).await;
        let over = beside.end();
        // What a call has changed is there when its result is.
        if self.all.caught_up(&tool.server, CATCH_UP).await
            && let Some(session) = self.session.get()
        {
            pump::changed(self, session, Some(&tool.server)).await;
        }
        let mut output = match called {
            Ok(called) => self.shown(called).await,
            Err(error) => Output::error(error.to_string()),
        };
        for note in over.notes {
            let _ = write!(output.text, "\n{note}");
        }
        output.spent = over.spent.map(Box::new);
        output
    }

    async fn shown(&self, called: Called) -> Output {
        let (pictures, spills) = (self.shelf.clone(), self.place.spills());
        let work = move || output(called, &pictures, &spills);
        let kept = tokio::task::spawn_blocking(work).await;
        kept.unwrap_or_else(|error| Output::error(error.to_string()))
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
