//! `locum doctor`: what works and what does not, each with what to do next. The only thing it
//! sends anywhere is one word to each provider there is a key for.

use std::env;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locum_journal::{Error as Failed, Kept, Sqlite};
use locum_kernel::{
    AgentId, Body, Bootstrap, Failure, FailureKind, Line, Note, Purpose, Reply, Request, Seq,
    Source,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::live::Live;
use locum_runtime::provider::Asked;
use locum_runtime::wire::WireName;
use locum_runtime::wire::greet::Silence;
use locum_tools::{Leftover, leftovers, past_bytes};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::complaint::{Complaint, set_aside};
use crate::config::{self, Config};
use crate::data;
use crate::data::Places;
use crate::endpoint::{Endpoint, Found};
use crate::flags::Doctor;
use crate::look::Sight;
use crate::look::sessions::is_aside;
use crate::model;
use crate::models::without_password;
use crate::print;
use crate::screen::{self, Ink};
use crate::text;
use crate::text::quote;

/// Longer than a provider in good health takes for one word.
const PATIENCE: Duration = Duration::from_secs(20);
/// Something that works does not need more of a person's time.
const SICK: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Ok,
    Warn,
    Fail,
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Warn => "warn",
            Health::Fail => "fail",
        }
    }

    fn ink(self) -> Ink {
        match self {
            Health::Ok => Ink::Good,
            Health::Warn => Ink::Warn,
            Health::Fail => Ink::Bad,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
struct Check {
    health: Health,
    /// What was looked at.
    about: String,
    words: String,
    /// What to do about it.
    next: Option<String>,
}

fn ok(about: &str, words: impl Into<String>) -> Check {
    Check { health: Health::Ok, about: about.into(), words: words.into(), next: None }
}

fn warn(about: &str, words: impl Into<String>, next: impl Into<String>) -> Check {
    let next = Some(next.into());
    Check { health: Health::Warn, about: about.into(), words: words.into(), next }
}

fn fail(about: &str, words: impl Into<String>, next: impl Into<String>) -> Check {
    Check { health: Health::Fail, ..warn(about, words, next) }
}

/// What would otherwise end a command is one line here.
fn complaint(about: &str, complaint: Complaint) -> Check {
    let Complaint { what, cause, next, .. } = complaint;
    fail(about, format!("{what} {}", cause.trim_end().replace('\n', "; ")), next)
}

pub(crate) fn examine(flags: &Doctor, places: &Places<'_>) -> Result<u8, Complaint> {
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let (config, mut checks) = match config::read(places.config) {
        Ok(config) => {
            let checks = of_config(&config);
            (config, checks)
        }
        Err(wrong) => (Config::default(), vec![complaint("config", wrong)]),
    };
    checks.extend(tasks.block_on(of_models(&config)));
    checks.extend(of_data(places.data));
    checks.push(of_walls());
    checks.push(of_terminal());
    let sick = checks.iter().filter(|check| check.health == Health::Fail).count();
    if flags.json {
        let checks: Vec<Value> = checks.iter().map(to_json).collect();
        print::line(&text::json(&json!({ "ok": sick == 0, "checks": checks })));
    } else {
        checks.iter().for_each(show);
    }
    Ok(if sick == 0 { 0 } else { SICK })
}

fn to_json(check: &Check) -> Value {
    let Check { health, about, words, next } = check;
    json!({ "state": health.word(), "about": about, "text": words, "next": next })
}

fn show(check: &Check) {
    let Check { health, about, words, next } = check;
    let next = next.as_ref().map(|next| format!("\n       do: {next}")).unwrap_or_default();
    let shown = text::clean(&format!("  {about:<10} {words}{next}"));
    let word = format!("{:<5}", health.word());
    print::line(&format!("{}{}", screen::out(health.ink(), &word), screen::ours(&shown)));
}

/// Whether commands can be walled in, and what the walls do not keep.
fn of_walls() -> Check {
    let survey = locum_sandbox::Survey::take(Path::new("/proc/self/exe"));
    let words = survey.lines().join("; ");
    match survey.caution() {
        None => ok("sandbox", words),
        Some(_) => warn("sandbox", words, "install bubblewrap; until then every command asks"),
    }
}

fn of_config(config: &Config) -> Vec<Check> {
    let mut checks = vec![match &config.path {
        Some(path) => ok("config", path.display().to_string()),
        None => ok("config", "none; the defaults hold"),
    }];
    let passed_over = config.warnings.iter();
    checks
        .extend(passed_over.map(|it| warn("config", it.clone(), "correct the name, or remove it")));
    if Path::new(".locum/config.toml").exists() {
        let words =
            "this folder's .locum/config.toml is not read: projects cannot set anything yet";
        checks.push(warn("config", words, "move what you need to ~/.config/locum/config.toml"));
    }
    checks
}

async fn of_models(config: &Config) -> Vec<Check> {
    let means = model::Means::default();
    let clock: Arc<dyn Clock> = Arc::new(System);
    let all = Endpoint::all(config);
    let mut checks: Vec<(usize, Check)> = Vec::new();
    let mut under_way = JoinSet::new();
    for (at, endpoint) in all.iter().enumerate() {
        let key = match endpoint.key() {
            Ok(Found::Key { key, from }) => format!("{from} ({})", key.ending()),
            // An endpoint of the user's own; servers on this machine come below.
            Ok(Found::Free) if endpoint.preset.list.is_none() => {
                without_password(&endpoint.base().unwrap_or_default())
            }
            Ok(Found::Missing(_) | Found::Free) => continue,
            Err(wrong) => {
                checks.push((at, complaint(endpoint.name, wrong)));
                continue;
            }
        };
        let Some(model) = endpoint.model() else {
            let next = format!("locum run -m {}/MODEL \"text\"", endpoint.name);
            checks.push((at, warn(endpoint.name, format!("{key}: not tried, which model?"), next)));
            continue;
        };
        match model::connect(endpoint, config, Some(fewest_tokens(endpoint)), &means, &clock) {
            Ok(provider) => {
                let asked = one_word(&format!("{}/{model}", endpoint.name));
                under_way.spawn(async move {
                    let answer = provider.answer(asked, Live::nobody());
                    (at, key, tokio::time::timeout(PATIENCE, answer).await.ok())
                });
            }
            Err(wrong) => checks.push((at, complaint(endpoint.name, wrong))),
        }
    }
    while let Some(answer) = under_way.join_next().await {
        let Ok((at, key, answer)) = answer else { continue };
        checks.push((at, tried(&all[at], &key, answer)));
    }
    checks.sort_by_key(|(at, _)| *at);
    let mut checks: Vec<Check> = checks.into_iter().map(|(_, check)| check).collect();
    checks.extend(of_servers(&all).await);
    match model::resolve(model::AUTO, config).await {
        Ok(model) => checks.push(ok("model", format!("auto is {model}"))),
        Err(wrong) => checks.push(complaint("model", wrong)),
    }
    checks
}

async fn of_servers(all: &[Endpoint<'_>]) -> Vec<Check> {
    let servers: Vec<Endpoint<'_>> =
        all.iter().filter(|it| it.preset.list.is_some()).copied().collect();
    let mut checks = Vec::new();
    for (server, found) in servers.iter().zip(model::greet(&servers).await) {
        let base = without_password(&server.base().unwrap_or_default());
        let begin = || format!("start {}, or look who listens at {base}", server.title());
        checks.push(match found {
            Ok(models) if models.is_empty() => {
                warn(server.name, format!("{base} has no model"), "load a model there")
            }
            Ok(models) => {
                let first = models.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                ok(server.name, format!("{base} has {}: {first}", models.len()))
            }
            // That nobody is there is only news if somebody was meant to be.
            Err(Silence::Nobody) => ok(server.name, format!("{base} not running")),
            Err(Silence::Other(why)) => warn(server.name, format!("{base}: {why}"), begin()),
        });
    }
    checks
}

/// What an answer, or its absence, says of a key.
fn tried(endpoint: &Endpoint<'_>, key: &str, answer: Option<Result<Reply, Failure>>) -> Check {
    let name = endpoint.name;
    let failure = match answer {
        None => {
            let words = format!("{key}: no answer for {} s", PATIENCE.as_secs());
            return fail(name, words, "look at the network, then locum doctor");
        }
        Some(Ok(_)) => return ok(name, format!("{key} works")),
        Some(Err(failure)) => failure,
    };
    let words = format!("{key}: {}", text::row(&failure.to_string(), 300));
    let variable = key.split(' ').next().unwrap_or_default();
    match failure.kind {
        FailureKind::Auth => fail(name, words, format!("put a working key into {variable}")),
        FailureKind::Quota => fail(name, words, "add credit there, or use another: locum models"),
        FailureKind::UnknownModel => {
            let next = format!("say which in config.toml: [providers.{name}] model = …");
            fail(name, words, next)
        }
        FailureKind::Absent => fail(name, words, "start its server, then locum doctor"),
        FailureKind::RateLimited | FailureKind::Overloaded => {
            warn(name, words, "wait a little, then locum doctor")
        }
        // The key was taken; the single word was not one we could read.
        FailureKind::Malformed
        | FailureKind::Cut
        | FailureKind::Filtered
        | FailureKind::ContextTooLong => warn(name, words, format!("locum run -m {name} \"hi\"")),
        FailureKind::Server | FailureKind::Timeout | FailureKind::Other => {
            fail(name, words, "look at the network, then locum doctor")
        }
    }
}

/// One wire refuses to be asked for less.
fn fewest_tokens(endpoint: &Endpoint<'_>) -> u32 {
    if endpoint.wire() == WireName::OpenAiResponses { 16 } else { 1 }
}

fn one_word(model: &str) -> Asked {
    let source = Source::Person { channel: "cli".into(), sender: "doctor".into() };
    let told = Body::Told(vec![Note::new(source, "Say ok.".into())]);
    Asked {
        definition: "doctor".into(),
        label: "doctor".into(),
        replies: 0,
        failures: 0,
        tries: 0,
        request: Request {
            tuning: locum_kernel::Tuning::default(),
            output: None,
            agent: AgentId::MAIN,
            model: model.into(),
            purpose: Purpose::Answer,
            bootstrap: Bootstrap::Minimal,
            instructions: String::new(),
            catalogue: Vec::new(),
            tools: Vec::new(),
            lines: [Arc::new(Line { seq: Seq(1), body: told })].into_iter().collect(),
            now: None,
        },
    }
}

fn of_data(flag: Option<&Path>) -> Vec<Check> {
    let folder = match data::place(flag) {
        Ok(folder) => folder,
        Err(wrong) => return vec![complaint("data", wrong)],
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let shown = folder.display();
    // Where it would be made, if it is not there.
    let nearest = folder.ancestors().find(|it| it.exists()).unwrap_or(&folder);
    let mut checks = match try_to_write(nearest) {
        Ok(()) if nearest == folder => vec![ok("data", format!("{shown} can be written"))],
        Ok(()) => vec![ok("data", format!("{shown} is not there yet; the first run makes it"))],
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            vec![fail("data", format!("{shown}: the disk is full"), "make room")]
        }
        Err(error) => {
            let next = format!("ls -ld {}, or use another with --data DIR", nearest.display());
            vec![fail("data", format!("{shown} cannot be written: {error}"), next)]
        }
    };
    if nearest != folder {
        return checks;
    }
    checks.extend(of_leftovers(&folder));
    let file = data::journal_file(&folder);
    if !file.exists() {
        checks.push(ok("sessions", "none yet"));
        return checks;
    }
    match Sqlite::open(&file) {
        Ok(journal) => {
            for notice in journal.notices() {
                checks.push(warn("journal", notice.clone(), "locum sessions"));
            }
            checks.extend(of_room(&journal));
        }
        Err(Failed::Locked { holder, .. }) => {
            checks.push(ok("journal", format!("in use by {holder}")));
        }
        Err(error) => checks.push(complaint("journal", Complaint::journal(&error))),
    }
    checks.push(of_sessions(flag).unwrap_or_else(|wrong| complaint("sessions", wrong)));
    checks
}

/// An empty file would be no proof: a full disk has room for its name.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let trial = folder.join(format!(".doctor-{}", std::process::id()));
    let written = fs::write(&trial, [0; 4_096]);
    let removed = match fs::remove_file(&trial) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    written.and(removed)
}

/// What a run has when the disk is full, to end in order.
fn of_room(journal: &Sqlite) -> Option<Check> {
    match journal.keep_reserve(data::RESERVE_BYTES) {
        Ok(Kept::Room) => None,
        Ok(Kept::Nothing) => {
            let words = "small: there is no room to keep back for when it is full";
            Some(warn("disk", words, "make room, or use another with --data DIR"))
        }
        Ok(Kept::Missing { bytes }) => {
            let words = "nearly full: nothing is begun without room to keep back for when it is";
            let next = format!("make room ({} MB)", bytes.div_ceil(1 << 20));
            Some(fail("disk", words, next))
        }
        Err(error) => Some(complaint("disk", Complaint::journal(&error))),
    }
}

/// What agents have left, how large it is, and how it goes.
fn of_leftovers(folder: &Path) -> Vec<Check> {
    let size = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    let copy = |it: Leftover| {
        let what = if it.is_untouched { "nothing was done there" } else { "with changes" };
        let (top, branch) = (it.folder.display(), &it.branch);
        let words = format!("{top} on the branch {branch}, {what}, {}", size(it.bytes));
        warn("copy", words, it.removal())
    };
    let mut checks: Vec<Check> = leftovers(folder).into_iter().map(copy).collect();
    let past = past_bytes(folder);
    if past > 0 {
        let kept = folder.join("kept");
        let words = format!("{} for `locum undo`; rm -r {} forgets it", size(past), kept.display());
        checks.push(ok("past", words));
    }
    checks
}

fn of_sessions(data: Option<&Path>) -> Result<Check, Complaint> {
    let all = Sight::open(data)?.all()?;
    let damaged = all.iter().filter(|it| it.session.is_err()).map(|it| it.key.as_str());
    let (aside, damaged): (Vec<&str>, Vec<&str>) = damaged.partition(|key| is_aside(key));
    if let Some(first) = damaged.first() {
        let words = format!("{} of {} damaged: {}", damaged.len(), all.len(), damaged.join(", "));
        return Ok(fail("sessions", words, set_aside(first)));
    }
    let whole = format!("{}, all whole", all.len() - aside.len());
    Ok(match aside.first() {
        None => ok("sessions", whole),
        Some(first) => {
            let words = format!("{whole}; damaged and set aside: {}", aside.join(", "));
            let next = format!("locum sessions rm {}, when nobody wants it", quote(first));
            warn("sessions", words, next)
        }
    })
}

fn of_terminal() -> Check {
    let set = |name: &str| env::var(name).unwrap_or_default();
    if !io::stdout().is_terminal() {
        return ok("terminal", "none; plain lines, and nobody is asked");
    }
    let size = terminal_size::terminal_size();
    let size = size.map(|(width, height)| format!("{}x{}", width.0, height.0)).unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(set).find(|it| !it.is_empty());
    let locale = locale.unwrap_or_default().to_lowercase();
    let term = set("TERM");
    if term.is_empty() || term == "dumb" {
        return warn("terminal", format!("{size}, TERM is {term:?}"), "use --plain");
    }
    if !cfg!(windows) && !locale.contains("utf-8") && !locale.contains("utf8") {
        return warn("terminal", format!("{size}, the locale is not UTF-8"), "export LANG=C.UTF-8");
    }
    ok("terminal", format!("{size}, {term}, UTF-8"))
}
