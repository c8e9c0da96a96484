//! `locum run`: opens a session, says something, and waits until nothing is left to do.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

use locum_journal::Sqlite;
use locum_kernel::{
    Audience, Config, Definition, Input, Kind, Message, PolicyMode, To, TreeLimits, Urgency,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::driver::{Driver, World};
use locum_runtime::line::{Body, RunResult, Status};
use locum_runtime::script::{Script, Scripted};

use crate::complaint::Complaint;
use crate::flags::{Approvals, Run};
use crate::print::Printer;

const MAIN: &str = "main";

pub(crate) fn run(flags: &Run, data: Option<&Path>) -> Result<u8, Complaint> {
    let text = flags.text.as_deref().map(said).transpose()?;
    let clock = System;
    let journal = open_journal(data)?;
    let key = flags.session.as_ref().or(flags.resume.as_ref());
    let key = key.cloned().unwrap_or_else(|| fresh_key(&clock));
    let world = World { journal: &journal, clock: &clock };
    let mut driver = Driver::open(&key, cwd(), world).map_err(|error| Complaint::driver(&error))?;
    if flags.resume.is_some() {
        check_resumable(&driver, &key, text.is_some())?;
    }

    let model = flags.model.as_deref().unwrap_or(driver.teller().model()).to_owned();
    let script = read_script(&model)?;
    let config = Box::new(config(&key, &model, flags.approvals, &script));
    driver.post(if driver.is_new() {
        Input::Configured(config)
    } else {
        Input::Restarted { config, captured: Vec::new() }
    });
    if let Some(text) = text {
        driver.post(Input::Said(message(text)));
    }

    let provider = Scripted::new(script, &clock);
    let mut printer = Printer::new(flags.json);
    let last = driver
        .run(&provider, &mut |line| printer.tell(line))
        .map_err(|error| Complaint::driver(&error))?;
    let Body::RunResult(result) = &last.body else { return Ok(0) };
    printer.result(&last, result);
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

fn open_journal(data: Option<&Path>) -> Result<Sqlite, Complaint> {
    let folder = data.map(Path::to_owned).or_else(default_data_dir);
    let folder = folder.ok_or_else(Complaint::no_data_dir)?;
    std::fs::create_dir_all(&folder).map_err(|error| Complaint::data_dir(&folder, &error))?;
    Sqlite::open(&folder.join("journal.db")).map_err(|error| Complaint::journal(&error))
}

fn default_data_dir() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("LOCUM_DATA") {
        return Some(folder);
    }
    let platform = if cfg!(windows) {
        set("APPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))
    };
    platform.map(|folder| folder.join("locum"))
}

/// The moment keeps keys in order, the process keeps two of one moment apart.
fn fresh_key(clock: &dyn Clock) -> String {
    format!("run_{}_{}", clock.now().0, std::process::id())
}

fn cwd() -> String {
    env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default()
}

fn check_resumable(driver: &Driver<'_>, key: &str, has_text: bool) -> Result<(), Complaint> {
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
        Status::NeedsInput => ("E140", "A question was not answered."),
        Status::Limit => ("E150", "A limit was reached."),
        Status::Error => ("E160", "The model failed."),
        Status::Parked => ("E170", "Somebody below main stopped and can go on."),
    };
    let cause = match result.status {
        Status::Parked | Status::NeedsInput => {
            format!("Agents below main that have not ended: {}", result.children_pending)
        }
        Status::Ok | Status::Limit | Status::Error => result.text.clone(),
    };
    let next = result.resume.clone().unwrap_or_default();
    Err(Complaint { code, what: what.into(), cause, next, exit: result.exit })
}
