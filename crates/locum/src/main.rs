//! The one composition root: flags are read and rooms are wired here, and only here.
//!
//! In reading order: the flags, the user's `config`, who answers (`model`, with `endpoint` and
//! `providers`; `models` and `doctor` tell of them), one headless run (`run`) and what it needs
//! (`equip`) with its tools (`workshop`, with `configured` and `bring` for servers), what it prints
//! (`printer`, with the faces `plain` and `tree`), how it ends (`ending`, `denial`) and complains;
//! whom a name means (`address`, `whom`), the commands that look at sessions (`look`), those that
//! do something in them (`act`), and what is remembered beyond them (`memory`); what people and
//! projects define (`library`, `notes`), whether it may be read at all (`trust`), and the commands
//! that tell of it (`check`, `definitions`).

mod absent;
mod act;
mod address;
mod arguments;
mod bring;
mod check;
mod complaint;
mod config;
mod configured;
mod damage;
mod data;
mod decode;
mod definitions;
mod demo;
mod denial;
mod doctor;
mod ending;
mod endpoint;
mod equip;
mod extract;
mod face;
mod flags;
mod kept;
mod librarian;
mod library;
mod log;
mod login;
mod look;
mod memory;
mod model;
mod models;
#[cfg(debug_assertions)]
mod mortal;
mod notes;
mod overheard;
mod people;
mod plain;
mod print;
mod printer;
mod providers;
mod reach;
mod reading;
mod rehearsal;
mod root;
mod rule;
mod rules;
mod run;
mod sample;
mod screen;
mod serve_script;
mod servers;
mod setup;
mod signal;
mod terminal;
mod text;
mod tour;
mod tree;
mod trust;
mod undo;
mod variables;
mod whom;
mod workshop;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use complaint::Complaint;
use data::Places;
use flags::{Command, Face, Flags, Look, Queue, QueueAct};

fn main() -> ExitCode {
    // This program is also the wall around a command and the keeper of what it starts. Both come
    // before anything else: there must be no thread and no file yet.
    if let Some(code) = locum_sandbox::wall(env::args_os()) {
        return code;
    }
    let mut typed = env::args_os().skip(1);
    if typed.next().is_some_and(|word| word == locum_tools::KEEP) {
        return locum_process::keeper(&typed.collect::<Vec<_>>());
    }
    let exit = match Flags::try_parse_from(words()) {
        Ok(flags) => begin(&flags).and_then(|()| obey(&flags)),
        Err(error) => misread(&error),
    };
    let code = exit.unwrap_or_else(|complaint| {
        complaint.print();
        complaint.exit
    });
    tracing::info!("locum ends exit={code}");
    ExitCode::from(code)
}

/// `locum -p TEXT` is `locum run TEXT`, as people are used to, with flags of any command before it.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = env::args_os().collect();
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        match word {
            "-p" => {
                words[at] = "run".into();
                break;
            }
            "--data" | "--config" | "--color" | "--log" => at += 2,
            flag if flag.starts_with('-') => at += 1,
            _ => break,
        }
    }
    words
}

/// Before anything is shown or done.
fn begin(flags: &Flags) -> Result<(), Complaint> {
    screen::set(&flags.face);
    log::open(&flags.face)?;
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!("locum {version} begins pid={process} command={}", command());
    Ok(())
}

/// The command that was typed, by its names alone: what else was typed is nobody's business.
fn command() -> String {
    let mut at = Flags::command();
    let mut line = Vec::new();
    for typed in env::args_os().skip(1).filter_map(|typed| typed.into_string().ok()) {
        let Some(below) = at.find_subcommand(&typed).cloned() else { continue };
        line.push(below.get_name().to_owned());
        at = below;
    }
    line.join(" ")
}

fn obey(flags: &Flags) -> Result<u8, Complaint> {
    let places = Places { data: flags.data.as_deref(), config: flags.config.as_deref() };
    match &flags.command {
        Command::Run(run) => run::run(run, &places),
        Command::Models(models) => models::list(models, places.config),
        Command::Doctor(doctor) => doctor::examine(doctor, &places),
        Command::Mcp(mcp) => servers::obey(mcp, &places),
        Command::Check(it) => Ok(check::check(it, &places)),
        Command::Definitions(it) => definitions::obey(it, &places),
        Command::Trust(it) => trust::obey(it, places.data),
        Command::Act(act) => act::act(act, &places),
        Command::Memory(memory) => memory::obey(memory, places.data),
        Command::Look(Look::Queue(Queue {
            act: Some(QueueAct::Change(change)), session, ..
        })) => act::requeue(change, session.as_deref(), places.data).map(|()| 0),
        Command::Look(look) => look::obey(look, places.data),
        Command::ScriptServer(server) => serve_script::serve(server),
        Command::Decode(it) => decode::decode(it),
        Command::Demo(demo) => demo::demo(demo, places.data),
        Command::Rules(rules) => rules::obey(rules, &places),
        Command::Undo(it) => undo::undo(it, places.data),
        Command::Version => {
            print::line(&format!("locum {}", env!("CARGO_PKG_VERSION")));
            Ok(0)
        }
    }
}

/// Help was asked for, or the flags make no sense.
fn misread(error: &clap::Error) -> Result<u8, Complaint> {
    let typed: Vec<String> = env::args_os().filter_map(|word| word.into_string().ok()).collect();
    screen::set(&Face::guessed(&typed));
    let text = error.to_string();
    let text = screen::ours(&text);
    if error.exit_code() == 0 {
        // Whoever closed standard output does not want to read it.
        let _ = io::stdout().write_all(text.as_bytes());
        return Ok(0);
    }
    if env::args_os().len() == 1 {
        return Err(Complaint::no_command());
    }
    Err(Complaint { next: help(), ..Complaint::usage(&text) })
}

/// Where the flags of the command that was typed are explained.
fn help() -> String {
    let mut at = Flags::command();
    let mut line = "locum".to_owned();
    for typed in env::args().skip(1) {
        let Some(below) = at.find_subcommand(&typed).cloned() else { break };
        line = format!("{line} {}", below.get_name());
        at = below;
    }
    format!("{line} --help")
}
