//! `locum run`: opens a session, says something, and waits until nothing is left to do.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::Path;
use std::sync::Arc;

use locum_kernel::{
    Audience, Config, Definition, Input, Kind, Message, PolicyMode, To, TreeLimits, Urgency,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::driver::{Driver, Hands, Until, World};
use locum_runtime::line::{Body, RunResult, Status};
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::{Toolbox, Tools};

use crate::complaint::Complaint;
use crate::data;
use crate::flags::{Approvals, Run};
use crate::print::{self, Source, Style};

const MAIN: &str = "main";

pub(crate) fn run(flags: &Run, data: Option<&Path>) -> Result<u8, Complaint> {
    // One thread is enough for waiting; the journal has its own, and so has whoever prints.
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tasks.map_err(|error| Complaint::machine(&error))?.block_on(exchange(flags, data))
}

async fn exchange(flags: &Run, data: Option<&Path>) -> Result<u8, Complaint> {
    let text = flags.text.as_deref().map(said).transpose()?;
    let clock: Arc<dyn Clock> = Arc::new(System);
    let journal = Arc::new(data::open(&data::folder(data)?)?);
    let key = flags.session.as_ref().or(flags.resume.as_ref());
    let key = key.cloned().unwrap_or_else(|| fresh_key(clock.as_ref()));
    let world = World { journal: journal.clone(), clock: Arc::clone(&clock) };
    let mut driver = Driver::open(&key, cwd(), world).map_err(|error| Complaint::driver(&error))?;
    if flags.resume.is_some() {
        check_resumable(&driver, &key, text.is_some())?;
    }

    let model = flags.model.as_deref().unwrap_or(driver.teller().model()).to_owned();
    let script = read_script(&model)?;
    let tools: Arc<dyn Toolbox> = Arc::new(Tools::default());
    let config = Box::new(config(&key, &model, flags.approvals, &script));
    let opening = if driver.is_new() {
        Input::Configured(config)
    } else {
        Input::Restarted { config, captured: Vec::new() }
    };
    let style = if flags.json { Style::Json } else { Style::Plain };
    let source = Source { reader: driver.subscribe(), journal, session: key };
    let printer = print::start(style, source)?;
    let said = text.map(|text| Input::Said(message(text)));
    for input in [Some(opening), said].into_iter().flatten() {
        driver.take(input).map_err(|error| Complaint::driver(&error))?;
    }

    let hands = Hands { provider: Arc::new(Scripted::new(script, clock)), tools };
    let last = driver.run(&hands, Until::Rest).await;
    // With the driver goes its feed, and the printer ends when it has printed everything.
    drop(driver);
    drop(printer.join());
    let last = last.map_err(|error| Complaint::driver(&error))?;
    let Body::RunResult(result) = &last.body else { return Ok(0) };
    verdict(result)
}

/// The text to say; `-` stands for all of standard input.
fn said(text: &str) -> Result<String, Complaint> {
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
fn fresh_key(clock: &dyn Clock) -> String {
    format!("run_{}_{}", clock.now().0, std::process::id())
}

fn cwd() -> String {
    env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default()
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

fn read_script(model: &str) -> Result<Script, Complaint> {
    let file = model.strip_prefix("script:").ok_or_else(|| Complaint::model(model))?;
    Script::read(Path::new(file)).map_err(|error| Complaint::script(&error))
}

fn config(key: &str, model: &str, approvals: Approvals, script: &Script) -> Config {
    let named = script.names().filter(|name| *name != MAIN);
    Config {
        session: key.to_owned(),
        main: definition(MAIN, Kind::Main),
        model: model.to_owned(),
        audience: match approvals {
            Approvals::Deny => Audience::Absent,
        },
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: Vec::new(),
        definitions: named.map(|name| definition(name, Kind::Agent)).collect(),
        models: BTreeMap::new(),
    }
}

fn definition(name: &str, kind: Kind) -> Definition {
    Definition { about: "from the script".into(), ..Definition::new(name, kind) }
}

fn message(text: String) -> Message {
    Message {
        channel: "cli".into(),
        sender: env::var("USER").unwrap_or_default(),
        external_id: None,
        text,
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
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
