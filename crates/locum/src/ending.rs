//! How a run ends for whoever started it: the exit code, what is left, and what helps.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum as _;
use locum_kernel::{Failed, Rule, Session, State};
use locum_runtime::line::{RunResult, Status};

use crate::complaint::Complaint;
use crate::denial;
use crate::flags::{Approvals, Bounds};
use crate::rule;
use crate::text::{clean, quote};

/// Somebody can be asked only where there is somebody.
pub(crate) fn approvals_here() -> Approvals {
    if io::stdin().is_terminal() { Approvals::Ask } else { Approvals::Deny }
}

/// The exit code, with a complaint if it is not zero.
pub(crate) fn verdict(
    result: &RunResult,
    session: &str,
    approvals: Approvals,
    bounds: &Bounds,
    seen: Option<&Session>,
) -> Result<u8, Complaint> {
    let (code, what) = match result.status {
        Status::Ok => return Ok(result.exit),
        Status::Failed => ("E116", of_failure(result.failed)),
        Status::Denied => ("E130", "A call was denied."),
        Status::NeedsInput => ("E140", "A question was not answered."),
        Status::Limit => ("E150", "A limit was reached."),
        Status::Error => ("E160", "The model failed."),
        Status::Parked => ("E170", "What is left waits for a person."),
        Status::Cancelled => ("E180", "Stopped in the middle; nothing is lost."),
    };
    let pending = format!("Agents below main that have not ended: {}", result.children_pending);
    let cause = match result.status {
        // Whoever had a question went on without an answer.
        Status::NeedsInput if result.children_pending == 0 => result.text.clone(),
        Status::Parked | Status::NeedsInput => waiting(result).unwrap_or(pending),
        Status::Cancelled => pending,
        Status::Denied => denial::told(result),
        Status::Failed => of_flaw(result),
        Status::Ok | Status::Limit | Status::Error => result.text.clone(),
    };
    let resume = result.resume.clone().unwrap_or_default();
    // Where nobody can be asked, going on means that the next ask is denied for good.
    let keep_asks = match approvals {
        Approvals::Park => approvals_here() == Approvals::Deny,
        Approvals::Deny => result.status == Status::Denied && denial::is_unheard(result),
        Approvals::Stdio | Approvals::Ask | Approvals::Itself => false,
    };
    let resume = if keep_asks { format!("{resume} --approvals park") } else { resume };
    let steps = match result.status {
        Status::Parked | Status::NeedsInput => {
            first_help(result, session).into_iter().chain([resume]).collect()
        }
        Status::Denied => denial::remedies(result, session, &resume, seen),
        Status::Ok | Status::Failed | Status::Limit | Status::Error | Status::Cancelled => {
            vec![resume]
        }
    };
    let steps: Vec<String> = steps.into_iter().map(|step| carried(step, bounds)).collect();
    let next = steps.join("\ndo: ");
    Err(Complaint { code, what: what.into(), cause, next, exit: result.exit })
}

/// The next run with the rules, the mode and the trust of this one: they hold for one run.
fn carried(step: String, bounds: &Bounds) -> String {
    if !step.starts_with("locum run ") {
        return step;
    }
    let mode = bounds.mode.filter(|_| !step.contains(" --mode "));
    let mode =
        mode.and_then(|mode| Some(format!(" --mode {}", mode.to_possible_value()?.get_name())));
    let rule = |rule: Rule| format!(" --{} {}", rule.kind.word(), quote(&rule::called(&rule)));
    let rules: String = bounds.rules().into_iter().map(rule).collect();
    let trust = if bounds.trust { " --trust" } else { "" };
    format!("{step}{}{rules}{trust}", mode.unwrap_or_default())
}

/// An agent that is a program hands nothing in that could be judged.
fn of_failure(failed: Option<Failed>) -> &'static str {
    match failed {
        Some(Failed::Program { .. }) => "The program failed.",
        Some(Failed::Work) | None => "What was handed in was not accepted.",
    }
}

/// The kernel names the exit code with the least words.
fn of_flaw(result: &RunResult) -> String {
    match result.failed {
        Some(Failed::Program { exit: Some(code) }) => {
            format!("It ended with exit code {code}. What it said is above.")
        }
        Some(Failed::Program { exit: None } | Failed::Work) | None => {
            result.flaw.clone().unwrap_or_else(|| result.text.clone())
        }
    }
}

/// Those whom only a person can help, as one line.
fn waiting(result: &RunResult) -> Option<String> {
    let stuck = result.agents.iter().filter(|agent| help(agent.state).is_some());
    let told: Vec<String> = stuck.map(|it| format!("{}: {}", it.path, it.state.word())).collect();
    (!told.is_empty()).then(|| clean(&told.join(", ")))
}

/// What has to happen before going on helps.
fn first_help(result: &RunResult, session: &str) -> Option<String> {
    let session = quote(session);
    result.agents.iter().find_map(|agent| match help(agent.state)? {
        Help::Answer => Some(format!("locum asks -s {session}")),
        Help::Continue => Some(format!("locum continue {} -s {session}", quote(&agent.path))),
        Help::Look => Some(format!("locum show {} -s {session}", quote(&agent.path))),
    })
}

/// What a person can do for an agent that waits for one.
enum Help {
    Answer,
    Continue,
    Look,
}

fn help(state: State) -> Option<Help> {
    match state {
        State::Approve => Some(Help::Answer),
        State::Paused => Some(Help::Continue),
        State::Input => Some(Help::Look),
        State::Queued
        | State::Starting
        | State::Model
        | State::Tool
        | State::Child
        | State::Done
        | State::Failed
        | State::Cancelled => None,
    }
}
