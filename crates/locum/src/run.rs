//! `locum run`: opens a session, says something, and waits until nothing is left to do.

use std::convert::Infallible;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_journal::Journal;
use locum_kernel::{Config, Input, ModelSpec, Urgency};
use locum_runtime::clock::{Clock, System};
use locum_runtime::door::{Desk, Door};
use locum_runtime::driver::{Driver, Handle, Hands, Until, World};
use locum_runtime::files::Files;
use locum_runtime::line::{Body, Line, RunResult, Status};
use locum_runtime::live::Reader;
use locum_runtime::script::{Props, Script};
use locum_runtime::tool::{Toolbox, Tools};

use crate::complaint::Complaint;
use crate::config;
use crate::data;
use crate::demo;
use crate::flags::{Approvals, Run};
use crate::look::Sight;
use crate::model::{self, Chosen};
use crate::people;
use crate::print::{self, Source, Style};
use crate::setup::Setup;
use crate::signal;
use crate::terminal;

pub(crate) fn run(flags: &Run, places: &Places<'_>, plain: bool) -> Result<u8, Complaint> {
    // One thread is enough for waiting; the journal has its own, and so has whoever prints.
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let last = tasks.block_on(exchange(flags, places, plain))?;
    let Body::RunResult(result) = &last.body else { return Ok(0) };
    if let Some(file) = &flags.output {
        fs::write(file, &result.text).map_err(|error| Complaint::output(file, &error))?;
    }
    verdict(result)
}

/// Where things are, if not where they usually are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) data: Option<&'a Path>,
    pub(crate) config: Option<&'a Path>,
}

async fn exchange(flags: &Run, places: &Places<'_>, plain: bool) -> Result<Line, Complaint> {
    let text = flags.text.as_deref().map(said).transpose()?;
    let clock: Arc<dyn Clock> = Arc::new(System);
    let settings = Arc::new(settings(flags, places)?);
    let folder = data::folder(places.data)?;
    let journal: Arc<dyn Journal> = Arc::new(data::open(&folder)?);
    let key = session_key(flags, &folder)?;
    let root = workspace(flags)?;
    let world = World { journal: Arc::clone(&journal), clock: Arc::clone(&clock) };
    let open = Driver::open(&key, root.display().to_string(), world.clone());
    let mut driver = open.map_err(|error| Complaint::driver(&error))?;
    if flags.resume.is_some() || flags.again {
        check_resumable(&driver, &key, text.is_some())?;
    }

    let before = Some(driver.teller().model()).filter(|model| !model.is_empty());
    let named = flags.model.as_deref().or(before);
    let Chosen { model, provider, script, specs } = model::choose(named, &settings, &clock).await?;
    let tools = tools(script.as_ref(), &root, &clock)?;
    let approvals = flags.approvals.unwrap_or_else(approvals_here);
    let setup = Setup {
        session: &key,
        model: &model,
        agent: flags.agent.as_deref(),
        approvals,
        bounds: &flags.bounds,
        limits: settings.limits,
        specs,
        script: script.as_ref(),
        tools: tools.as_ref(),
    };
    let config = setup.config();
    warn_of_unknown_price(&config);
    let source = Source { reader: driver.subscribe(), journal, session: key.clone() };
    let printer = print::start(style(flags.json, plain), source)?;
    open_session(&mut driver, &config, text)?;
    let hands = Hands { provider, tools };
    let desk = Desk { world, session: key, handle: driver.handle() };
    let people = listen(driver.handle(), driver.subscribe(), approvals, config);
    let visitors = receive(&folder, desk);
    let last = drive(&mut driver, &hands, approvals, people, visitors).await;
    // With the driver goes its feed, and the printer ends when it has printed everything.
    drop(driver);
    drop(printer.join());
    last
}

/// The user's configuration. A tour needs none, and works even if it makes no sense.
fn settings(flags: &Run, places: &Places<'_>) -> Result<config::Config, Complaint> {
    if flags.model.as_deref().is_some_and(demo::is_tour) {
        return Ok(config::Config::default());
    }
    let settings = config::read(places.config)?;
    settings.warn();
    Ok(settings)
}

/// Said once, before anything is spent: a limit of money that cannot be kept.
fn warn_of_unknown_price(config: &Config) {
    let is_known = |spec: &ModelSpec| spec.input_price.is_some() && spec.output_price.is_some();
    let model = &config.model;
    let scripted = model.starts_with("script:") || demo::is_tour(model);
    if config.limits.micro_usd_max.is_some()
        && !scripted
        && !config.models.get(model).is_some_and(is_known)
    {
        print::note(&format!(
            "warning: the price of {model} is not known, so the limit of money cannot be kept; \
             say it in config.toml: [prices.\"{model}\"] input = …, output = …"
        ));
    }
}

/// What the session hears first: the world as it is now, then the text.
fn open_session(
    driver: &mut Driver,
    config: &Config,
    text: Option<String>,
) -> Result<(), Complaint> {
    let config = Box::new(config.clone());
    let opening = if driver.is_new() {
        Input::Configured(config)
    } else {
        Input::Restarted { config, captured: Vec::new() }
    };
    let said = text.map(|text| Input::Said(people::message(text, Urgency::Queue)));
    for input in [Some(opening), said].into_iter().flatten() {
        driver.take(input).map_err(|error| Complaint::driver(&error))?;
    }
    Ok(())
}

/// Drives the session until it is over or somebody stops it from outside.
async fn drive(
    driver: &mut Driver,
    hands: &Hands,
    approvals: Approvals,
    people: impl Future<Output = Infallible>,
    visitors: impl Future<Output = Infallible>,
) -> Result<Line, Complaint> {
    let until = match approvals {
        Approvals::Deny => Until::Rest,
        Approvals::Park => Until::Parked,
        Approvals::Stdio | Approvals::Ask | Approvals::Itself => Until::Answered,
    };
    let stop = signal::listen().map_err(|error| Complaint::machine(&error))?;
    let signal = tokio::select! {
        biased;
        signal = stop => signal,
        ended = driver.run(hands, until) => {
            return ended.map_err(|error| Complaint::driver(&error));
        }
        never = people => match never {},
        never = visitors => match never {},
    };
    let stopped = driver.stop(signal.exit_code()).await;
    stopped.map_err(|error| Complaint::driver(&error))
}

/// Passes on what people say for as long as the session is driven.
async fn listen(handle: Handle, lines: Reader, approvals: Approvals, config: Config) -> Infallible {
    // A session that was closed has told how it ended; nobody needs to hear it again here.
    let _ = match approvals {
        Approvals::Stdio => people::stdio(handle, config).await,
        Approvals::Ask => terminal::listen(handle, config).await,
        Approvals::Itself => demo::answer_all(handle, lines).await,
        Approvals::Deny | Approvals::Park => Ok(()),
    };
    std::future::pending().await
}

/// Lets other processes in for as long as the session is driven.
#[cfg(unix)]
async fn receive(folder: &Path, desk: Desk) -> Infallible {
    match Door::open(folder) {
        Ok(door) => door.serve(desk).await,
        Err(error) => {
            print::note(&format!("other terminals cannot reach this run: {error}"));
            std::future::pending().await
        }
    }
}

/// Somebody can be asked only where there is somebody.
fn approvals_here() -> Approvals {
    if io::stdin().is_terminal() { Approvals::Ask } else { Approvals::Deny }
}

fn style(json: bool, plain: bool) -> Style {
    match (json, plain || !io::stderr().is_terminal()) {
        (true, _) => Style::Json,
        (false, true) => Style::Plain,
        (false, false) => Style::Tree,
    }
}

/// What the script brings, and what reads the workspace.
fn tools(
    script: Option<&Script>,
    root: &Path,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Tools>, Complaint> {
    let files = Files::new(root).map_err(|error| Complaint::workspace(root, &error))?;
    let props = script.map(|script| Props::new(script, Arc::clone(clock)));
    let props = props.map(|props| Box::new(props) as Box<dyn Toolbox>);
    let boxes = props.into_iter().chain([Box::new(files) as Box<dyn Toolbox>]);
    Ok(Arc::new(Tools::new(boxes.collect())))
}

fn workspace(flags: &Run) -> Result<PathBuf, Complaint> {
    let named = flags.workspace.as_deref().unwrap_or(Path::new("."));
    named.canonicalize().map_err(|error| Complaint::workspace(named, &error))
}

fn session_key(flags: &Run, folder: &Path) -> Result<String, Complaint> {
    if flags.again {
        return Sight::open(Some(folder))?.find(None).map(|(key, _)| key);
    }
    let named = flags.session.as_ref().or(flags.resume.as_ref());
    Ok(named.cloned().unwrap_or_else(|| fresh_key("run")))
}

/// The text to say; `-` stands for all of standard input.
pub(crate) fn said(text: &str) -> Result<String, Complaint> {
    let text = match text {
        "-" => io::read_to_string(io::stdin()).map_err(|error| Complaint::stdin(&error))?,
        text => text.to_owned(),
    };
    // The kernel would refuse it too, but only after the session was made.
    if text.trim().is_empty() {
        return Err(Complaint::usage("the message is empty"));
    }
    Ok(text)
}

/// The moment keeps keys in order, the process keeps two of one moment apart.
pub(crate) fn fresh_key(what: &str) -> String {
    format!("{what}_{}_{}", System.now().0, std::process::id())
}

fn check_resumable(driver: &Driver, key: &str, has_text: bool) -> Result<(), Complaint> {
    if driver.is_new() {
        return Err(Complaint::nothing_to_resume(key, "There is no such session."));
    }
    if !has_text && !driver.teller().was_asked() {
        return Err(Complaint::nothing_to_resume(key, "Nobody has said anything in it yet."));
    }
    Ok(())
}

/// The exit code, with a complaint if it is not zero.
fn verdict(result: &RunResult) -> Result<u8, Complaint> {
    let (code, what) = match result.status {
        Status::Ok => return Ok(result.exit),
        Status::Denied => ("E130", "A call was denied."),
        Status::NeedsInput => ("E140", "A question was not answered."),
        Status::Limit => ("E150", "A limit was reached."),
        Status::Error => ("E160", "The model failed."),
        Status::Parked => ("E170", "What is left waits for a person."),
        Status::Cancelled => ("E180", "Stopped in the middle; nothing is lost."),
    };
    let cause = match result.status {
        Status::Parked | Status::NeedsInput | Status::Cancelled => {
            format!("Agents below main that have not ended: {}", result.children_pending)
        }
        Status::Denied => result.denials.join("; "),
        Status::Ok | Status::Limit | Status::Error => result.text.clone(),
    };
    let next = result.resume.clone().unwrap_or_default();
    Err(Complaint { code, what: what.into(), cause, next, exit: result.exit })
}
