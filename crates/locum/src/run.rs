//! `locum run`: opens a session, says something, and waits until nothing is left to do.

use std::convert::Infallible;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{Config, Grant, Input, ModelSpec, Rule, ToolSpec, Urgency};
use locum_runtime::door::{Desk, Door};
use locum_runtime::driver::{self, Driver, Handle, Hands, Until, World};
use locum_runtime::form;
use locum_runtime::library::Library;
use locum_runtime::line::{Body, Line, Status};
use locum_runtime::live::Reader;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::address;
use crate::complaint::{self, Complaint};
use crate::config;
use crate::data::{self, Places, fresh_key};
use crate::ending::{approvals_here, verdict};
use crate::equip::{Equipped, equip};
use crate::extract::{self, Extract};
use crate::flags::{Approvals, Bounds, Run};
use crate::kept::{self, Kept};
use crate::look::Sight;
use crate::model::{self, Chosen};
use crate::people::{self, Crowd, said};
use crate::print;
use crate::printer::{self, Source, Style};
use crate::rehearsal;
use crate::root;
use crate::rule;
use crate::screen;
use crate::setup::Setup;
use crate::signal;
use crate::terminal;
use crate::tour;
use crate::whom;
use crate::workshop;

pub(crate) fn run(flags: &Run, places: &Places<'_>) -> Result<u8, Complaint> {
    // One thread is enough for waiting; the journal has its own, and so has whoever prints.
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let ended = tasks.block_on(exchange(flags, places));
    let verdict = ended.and_then(|(last, extract)| {
        let verdict = conclude(flags, &last, places)?;
        // Whoever asked has the answer by now.
        tasks.block_on(async {
            if let Some(extract) = extract {
                extract.run().await;
            }
        });
        verdict
    });
    // A search that nobody waits for any more cannot be stopped; nor need it be waited for.
    tasks.shutdown_background();
    verdict
}

/// Writes the answer where it is wanted, and says how it went.
fn conclude(
    flags: &Run,
    last: &Line,
    places: &Places<'_>,
) -> Result<Result<u8, Complaint>, Complaint> {
    let Body::RunResult(result) = &last.body else { return Ok(Ok(0)) };
    if let Some(file) = &flags.output {
        let failed = |error| Complaint::output(file, &last.session, &error);
        // Whoever wanted a form wants nothing around it.
        let text = match &result.structured {
            Some(value) => value.to_string(),
            None => result.text.clone(),
        };
        fs::write(file, text).map_err(failed)?;
    }
    let approvals = flags.approvals.unwrap_or_else(approvals_here);
    // What would have helped depends on the rules that held; without them less is offered.
    let look = || Sight::open(Some(&data::place(places.data)?))?.find(Some(&last.session));
    let seen = (result.status == Status::Denied).then(look).and_then(Result::ok);
    let seen = seen.as_ref().map(|(_, session)| session);
    Ok(verdict(result, &last.session, approvals, &flags.bounds, seen))
}

/// A run may cost money: that its result can be written nowhere is better known before.
fn check_output(file: &Path) -> Result<(), Complaint> {
    // Whoever reads a pipe must not see it closed before anything was written.
    if fs::metadata(file).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        return Ok(());
    }
    let begun = fs::OpenOptions::new().append(true).create(true).open(file);
    begun.map(drop).map_err(|error| Complaint::no_output(file, &error))
}

/// The last line, and what is to be remembered of it all.
type Ended = (Line, Option<Extract>);

async fn exchange(flags: &Run, places: &Places<'_>) -> Result<Ended, Complaint> {
    let text = flags.text.as_deref().map(said).transpose()?;
    let clock = rehearsal::clock();
    let settings = Arc::new(settings(flags, places)?);
    let folder = data::folder(places.data)?;
    let world = World { journal: Arc::new(data::open_to_run(&folder)?), clock: Arc::clone(&clock) };
    let key = session_key(flags, &folder)?;
    data::sweep(&folder, &key, Arc::clone(&world.journal));
    let (mut driver, root) = open(flags, &key, &world, text.is_some())?;
    let kept = kept::here(&folder, driver.session(), &root)?;
    let named = model_named(flags, &driver);
    let place = workshop::place(&key, &root, &folder, places.config);
    let Equipped { chosen, tools, crew, librarian, from } =
        equip(flags, (named.as_deref(), text.as_deref()), &settings, place.clone(), &clock).await?;
    let Chosen { model, provider, script, specs, .. } = chosen;
    let text = root::first_words(from.as_ref(), text);
    let approvals = flags.approvals.unwrap_or_else(approvals_here);
    let schema = flags.schema.as_deref().map(schema).transpose()?;
    let setup = Setup {
        session: &key,
        model: &model,
        agent: flags.agent.as_deref(),
        root: from,
        offers: librarian.offers(),
        before: (!driver.is_new()).then_some(driver.session()),
        workspace: &root,
        approvals,
        bounds: &flags.bounds,
        limits: settings.limits,
        rules: &settings.rules,
        kept: &kept,
        specs,
        schema,
        script: script.as_ref(),
        is_defined: &|name| librarian.has(name),
        tools: tools.as_ref(),
    };
    let config = setup.config();
    flags.output.as_deref().map_or(Ok(()), check_output)?;
    look_over(&flags.bounds, &config, &settings, &kept)?;
    let source = || Source::of(&driver, &world.journal, &config);
    let printed = printer::start_all(style(flags.json, approvals), source)?;
    driver.set_library(librarian as Arc<dyn Library>);
    let since = driver.session().seq();
    let unread = |why| whom::unread(why, &root, &folder, flags.bounds.trust.into());
    open_session(&mut driver, &config, text).map_err(unread)?;
    let hands = Hands { provider, tools };
    crew.attach(driver.handle(), approvals, &hands, &model);
    let is_wanted = settings.extract && is_read_over(&model, script.as_ref());
    let extract = is_wanted.then(|| Extract::new(&world, since, &config, &hands, place));
    let desk = Desk { world, session: key, handle: driver.handle() };
    // Only for whoever reads it: what is sent is kept until every reader has had it.
    let lines = (approvals == Approvals::Itself).then(|| driver.subscribe());
    let keeper = keep(driver.grants(), &folder, &config);
    let crowd = Crowd { config: config.clone(), tools: Arc::clone(&hands.tools) };
    let people = listen(driver.handle(), lines, approvals, crowd);
    let mut door = door(&folder);
    let visitors = receive(door.as_mut(), desk);
    let around = join(people, visitors, keeper);
    let last = Box::pin(drive(&mut driver, &hands, approvals, around)).await;
    kept::keep(&folder, driver.session());
    // With the driver goes its feed, and the printer ends when it has printed everything.
    driver.release().await;
    if let Some(door) = door {
        door.close().await;
    }
    wait_for_readers(printed, &last).await?;
    last.map(|last| ended(last, extract))
}

fn ended(last: Line, extract: Option<Extract>) -> Ended {
    let is_ok = matches!(&last.body, Body::RunResult(it) if it.status == Status::Ok);
    (last, extract.filter(|_| is_ok))
}

/// Whether there is somebody who can say what of it is worth keeping.
fn is_read_over(model: &str, script: Option<&locum_runtime::script::Script>) -> bool {
    model != model::AUTO && script.is_none_or(|it| it.plays(extract::NAME))
}

/// The session as it was left, and the folder it works in.
fn open(
    flags: &Run,
    key: &str,
    world: &World,
    has_text: bool,
) -> Result<(Driver, PathBuf), Complaint> {
    let open = Driver::open(key, world.clone());
    let mut driver = open.map_err(|error| Complaint::driver(&error))?;
    let root = workspace(flags, driver.session().workspace())?;
    driver.set_cwd(root.display().to_string());
    if flags.resume.is_some() || flags.again {
        check_resumable(&driver, key, has_text)?;
    }
    Ok((driver, root))
}

/// Whoever reads slowly gets everything, unless somebody wants this process gone: a pipe that
/// nobody empties must not hold it, and what is not read is in the journal.
async fn wait_for_readers(
    printed: Vec<oneshot::Receiver<()>>,
    last: &Result<Line, Complaint>,
) -> Result<(), Complaint> {
    let stop = signal::listen().map_err(|error| Complaint::machine(&error))?;
    let stopped =
        |line: &Line| matches!(&line.body, Body::RunResult(it) if it.status == Status::Cancelled);
    let is_stopped = last.as_ref().is_ok_and(stopped);
    let patience = async {
        if is_stopped { tokio::time::sleep(LAST_WORDS).await } else { std::future::pending().await }
    };
    let printed = async {
        for printed in printed {
            let _ = printed.await;
        }
    };
    tokio::select! {
        () = printed => Ok(()),
        signal = stop => Err(Complaint::not_read(signal.exit_code())),
        () = patience => Ok(()),
    }
}

/// How long the last words of a run that was told to stop may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the final text must be.
fn schema(file: &Path) -> Result<Arc<Value>, Complaint> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| Complaint::schema(file, &error.to_string()))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| {
        Complaint::schema(file, &format!("{}:{}: {error}", file.display(), error.line()))
    })?;
    form::check(&schema).map_err(|why| Complaint::schema(file, &why))?;
    Ok(Arc::new(schema))
}

/// The user's configuration. A tour needs none, and works even if it makes no sense.
fn settings(flags: &Run, places: &Places<'_>) -> Result<config::Config, Complaint> {
    if flags.model.as_deref().is_some_and(tour::is_tour) {
        return Ok(config::Config::default());
    }
    let settings = config::read(places.config)?;
    settings.warn();
    Ok(settings)
}

/// A flag that names no tool is a mistake: whoever denies must not be left believing it.
fn rules_of_tools(bounds: &Bounds, tools: &[ToolSpec]) -> Result<(), Complaint> {
    let is_brought = |rule: &Rule| tools.iter().any(|tool| tool.name == rule.tool);
    let rules = bounds.rules().into_iter().filter(|rule| !is_brought(rule));
    let mut wrong = rules.filter_map(|rule| {
        let why = rule::of_no_tool(&rule)?;
        Some(format!("--{} {}: {why}", rule.kind.word(), rule::called(&rule)))
    });
    wrong.next().map_or(Ok(()), |cause| Err(Complaint::rule_of_no_tool(cause)))
}

/// Said once, before anything is spent: rules that say nothing, a limit of money that cannot be
/// kept.
fn look_over(
    bounds: &Bounds,
    config: &Config,
    settings: &config::Config,
    kept: &Kept,
) -> Result<(), Complaint> {
    rules_of_tools(bounds, &config.tools)?;
    let place = |rule: &Rule| settings.place_of(rule).or_else(|| kept.place_of(rule));
    for doubt in rule::doubts(&config.rules, &config.tools, place) {
        print::note(&format!("note: {doubt}"));
    }
    let is_known = |spec: &ModelSpec| spec.input_price.is_some() && spec.output_price.is_some();
    let model = &config.model;
    let scripted = model.starts_with("script:") || tour::is_tour(model);
    if config.limits.micro_usd_max.is_some()
        && !scripted
        && !config.models.get(model).is_some_and(is_known)
    {
        print::note(&format!(
            "warning: the price of {model} is not known, so the limit of money cannot be kept; \
             say it in config.toml: [prices.\"{model}\"] input = …, output = …"
        ));
    }
    Ok(())
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
    let inputs: Vec<Input> = [Some(opening), said].into_iter().flatten().collect();
    // Words that are refused leave no session behind.
    driver.foresee(&inputs).map_err(|error| match Complaint::driver(&error) {
        // Nobody is in a session that there will not be.
        why if why.code == address::UNKNOWN && driver.is_new() => {
            Complaint { next: "locum definitions".into(), ..why }
        }
        why => why,
    })?;
    for input in inputs {
        driver.take(input).map_err(|error| Complaint::driver(&error))?;
    }
    Ok(())
}

/// Drives the session until it is over or somebody stops it from outside.
async fn drive(
    driver: &mut Driver,
    hands: &Hands,
    approvals: Approvals,
    around: impl Future<Output = Infallible>,
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
        ended = driver.run(hands, until) => match ended {
            Ok(last) => return Ok(last),
            Err(error) => return Err(failed(driver, &error).await),
        },
        never = around => match never {},
    };
    let stopped = driver.stop(signal.exit_code()).await;
    stopped.map_err(|error| Complaint::driver(&error))
}

/// A run that a full disk has ended says so itself where it is read: it was closed in order.
async fn failed(driver: &mut Driver, error: &driver::Error) -> Complaint {
    if let driver::Error::Full { .. } = error {
        // What keeps it from being told is the same that has ended it.
        let _ = driver.stop(complaint::DATA).await;
    }
    Complaint::driver(error)
}

/// Passes on what people say for as long as the session is driven.
async fn listen(
    handle: Handle,
    lines: Option<Reader>,
    approvals: Approvals,
    crowd: Crowd,
) -> Infallible {
    // A session that was closed has told how it ended; nobody needs to hear it again here.
    let _ = match (approvals, lines) {
        (Approvals::Stdio, _) => people::stdio(handle, crowd).await,
        (Approvals::Ask, _) => terminal::listen(handle, crowd).await,
        (Approvals::Itself, Some(lines)) => tour::answer_all(handle, lines).await,
        (Approvals::Itself | Approvals::Deny | Approvals::Park, _) => Ok(()),
    };
    std::future::pending().await
}

/// Everything that goes on beside the session until it ends.
async fn join(
    people: impl Future<Output = Infallible>,
    visitors: impl Future<Output = Infallible>,
    keeper: impl Future<Output = Infallible>,
) -> Infallible {
    tokio::select! {
        never = people => never,
        never = visitors => never,
        never = keeper => never,
    }
}

/// Keeps what is allowed for the project as soon as it is safe.
async fn keep(mut grants: UnboundedReceiver<Grant>, folder: &Path, config: &Config) -> Infallible {
    while let Some(grant) = grants.recv().await {
        let workspace = Path::new(&config.workspace);
        kept::keep_one(folder, workspace, &config.session, &config.tools, &grant);
    }
    std::future::pending().await
}

fn door(folder: &Path) -> Option<Door> {
    let door = Door::open(folder);
    door.inspect_err(|error| {
        print::note(&format!("other terminals cannot reach this run: {error}"));
    })
    .ok()
}

/// Lets other processes in for as long as the session is driven.
async fn receive(door: Option<&mut Door>, desk: Desk) -> Infallible {
    match door {
        Some(door) => door.serve(desk).await,
        None => std::future::pending().await,
    }
}

fn style(json: bool, approvals: Approvals) -> Style {
    let hints = approvals == Approvals::Ask;
    match (io::stderr().is_terminal(), screen::plainly()) {
        _ if json => Style::Json,
        (true, None) => Style::Tree,
        (true, Some(how)) => {
            print::say(&how.told());
            Style::Plain { hints }
        }
        (false, _) => Style::Plain { hints },
    }
}

/// The model that is named, or the one the session had before.
fn model_named(flags: &Run, driver: &Driver) -> Option<String> {
    let named = flags.model.as_deref().map(found_again);
    let before = || Some(driver.teller().model().to_owned()).filter(|model| !model.is_empty());
    named.or_else(before)
}

/// A script is found again from whatever folder the session is resumed in.
fn found_again(model: &str) -> String {
    let script = model.strip_prefix("script:").and_then(|file| path::absolute(file).ok());
    script.map_or_else(|| model.to_owned(), |file| format!("script:{}", file.display()))
}

/// The folder that is named, the one the session worked in before, or this one.
fn workspace(flags: &Run, before: &str) -> Result<PathBuf, Complaint> {
    let before = if before.is_empty() { "." } else { before };
    let named = flags.workspace.as_deref().unwrap_or(Path::new(before));
    let failed = |error| Complaint::workspace(named, &error);
    let root = named.canonicalize().map_err(failed)?;
    // Not left to the first tool that looks into it.
    fs::read_dir(&root).map_err(failed)?;
    Ok(root)
}

fn session_key(flags: &Run, folder: &Path) -> Result<String, Complaint> {
    if flags.again {
        return Sight::open(Some(folder))?.newest();
    }
    let named = flags.session.as_ref().or(flags.resume.as_ref());
    Ok(named.cloned().unwrap_or_else(|| fresh_key("run")))
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
