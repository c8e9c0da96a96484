//! The driver dies at every moment it can, and whoever opens the session again ends it the same.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod plain;

use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locum_journal::{Done, Error, Journal, Listed, Memory, Records, Snapshot, When};
use locum_kernel::{
    Audience, Config, Definition, Entry, Event, Input, InputId, Kind, Message, Refusal, Seq, Time,
};
use locum_runtime::clock::Clock;
use locum_runtime::driver::{self, Driver, Hands, Until, World};
use locum_runtime::line::{Body, Line};
use locum_runtime::live::Told;
use locum_runtime::provider::Task;
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::Tools;
use tokio::time::Instant;

const SCRIPTS: &[(&str, &str)] = &[
    ("take-over", include_str!("../../../examples/take-over.yaml")),
    (
        "nested, with a sibling after the child",
        r#"
agents:
  main:
    - calls:
        - use_agent: {agent: outer, message: "begin"}
        - list_agents: {}
    - say: "main saw {{last}}"
  outer:
    - say: "asking further"
      calls: [{use_agent: {agent: inner, message: "deeper"}}]
    - calls: [{complete: {result: "outer({{last}})"}}]
  inner:
    - say: "inner words"
"#,
    ),
    (
        "workers, a wait and retries",
        r#"
agents:
  main:
    - error: {status: 529, times: 2}
    - calls:
        - spawn_agent: {agent: one, message: "1"}
        - spawn_agent: {agent: two, message: "2"}
        - wait: {mode: all, timeout_s: 600}
    - say: "both are back"
  one:
    - cut_after_chunks: 1
    - say: "one"
  two:
    - calls: [{ask_parent: {question: "which?"}}]
    - say: "two"
"#,
    ),
    (
        "a failure for good, then another try",
        r#"
agents:
  main:
    - calls: [{use_agent: {agent: broken, message: "try"}}]
    - calls: [{use_agent: {agent: "no such agent", message: "try"}}]
    - say: "gave up: {{last}}"
  broken:
    - error: {status: 401}
"#,
    ),
];

/// A clock that only goes on when everybody sleeps: the tasks' own, paused.
#[derive(Clone, Copy, Debug)]
struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Time {
        Time(1_000_000).plus_ms(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }

    fn sleep_until(&self, moment: Time) -> Task<()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(moment.since(self.now()))))
    }
}

/// When the process dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    Never,
    /// Instead of the nth append.
    Before(usize),
    /// Right after the nth append, before anybody is told.
    After(usize),
    /// The writer alone, at the nth append, without a word.
    Silent(usize),
}

#[derive(Debug)]
struct Mortal {
    journal: Arc<Memory>,
    appends: AtomicUsize,
    death: Death,
}

impl Mortal {
    fn new(death: Death) -> Mortal {
        Mortal { journal: Arc::new(Memory::default()), appends: AtomicUsize::new(0), death }
    }
}

impl Records for Mortal {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        self.journal.tail(session, after)
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        self.journal.newest_snapshot(session)
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        self.journal.sessions()
    }
}

impl Journal for Mortal {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, _: When, done: Done) {
        let nth = self.appends.fetch_add(1, Ordering::Relaxed) + 1;
        let died = || Err(Error::Stopped { path: "(death)".into(), session: session.to_owned() });
        if self.death == Death::Before(nth) {
            return done(died());
        }
        if self.death == Death::Silent(nth) {
            return drop(done);
        }
        let result = self.journal.append(session, expected, entry);
        done(if self.death == Death::After(nth) { died() } else { result });
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        self.journal.snapshot(session, seq, bytes)
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.journal.delete(session)
    }
}

/// Writes at once, and tells nobody before it is let.
#[derive(Default)]
struct Secretive {
    journal: Memory,
    untold: Mutex<Vec<Done>>,
}

impl std::fmt::Debug for Secretive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.journal.fmt(f)
    }
}

impl Records for Secretive {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        self.journal.tail(session, after)
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        self.journal.newest_snapshot(session)
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        self.journal.sessions()
    }
}

impl Journal for Secretive {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, _: When, done: Done) {
        self.journal.append(session, expected, entry).unwrap();
        self.untold.lock().unwrap().push(done);
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        self.journal.snapshot(session, seq, bytes)
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.journal.delete(session)
    }
}

/// One process: opens the session, says the text if nobody has, runs until rest or death.
async fn live(journal: &Arc<Mortal>, clock: Virtual, yaml: &str) -> (Vec<Line>, bool) {
    let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
    let world = World { journal: journal.clone(), clock: Arc::new(clock) };
    let mut driver = Driver::open("test", world).unwrap();
    let mut reader = driver.subscribe();
    let config = Box::new(config(&script));
    let opening = if driver.is_new() {
        Input::Configured(config)
    } else {
        Input::Restarted { config, captured: Vec::new() }
    };
    let said = (!driver.teller().was_asked()).then(|| Input::Said(message()));
    for input in [Some(opening), said].into_iter().flatten() {
        driver.take(input).unwrap();
    }
    let provider = Arc::new(Scripted::new(script, Arc::new(clock)));
    let hands = Hands { provider, tools: Arc::new(Tools::default()) };
    let ended = match driver.run(&hands, Until::Rest).await {
        Ok(_) => true,
        Err(driver::Error::Journal(_)) => false,
        Err(error) => panic!("{error}"),
    };
    drop(driver);
    let mut lines = Vec::new();
    while let Some(told) = reader.next().await {
        match told {
            Told::Line(line) => lines.push(Line::clone(&line)),
            Told::Piece { .. } => {}
            Told::Gap { .. } => panic!("these are short stories"),
        }
    }
    (lines, ended)
}

fn config(script: &Script) -> Config {
    let named = script.names().filter(|name| *name != "main");
    let definitions = named.map(|name| Definition::new(name, Kind::Agent)).collect();
    Config { audience: Audience::Absent, definitions, ..plain::config("test") }
}

fn message() -> Message {
    plain::message("go")
}

/// A line without what a restart may change: times, and numbers that count the restart.
fn gist(line: &Line) -> String {
    let what = match &line.body {
        Body::Message { text, .. } => text.clone(),
        Body::AgentState { state, .. } => state.word().to_owned(),
        Body::ToolStarted { name, input, .. } => format!("{name} {input}"),
        Body::ToolFinished(tool) => format!("{} {}", tool.name, tool.ok),
        Body::TurnStarted { turn, .. } | Body::TurnFinished { turn, .. } => turn.to_string(),
        Body::AgentFinished(end) => format!("{} {}", end.result, end.reason),
        Body::Retry { attempt, .. } => attempt.to_string(),
        Body::RunResult(result) => format!("{:?} {}", result.status, result.text),
        Body::FloorChanged { stack, .. } => stack.join(" "),
        Body::AgentSpawned { brief, .. } => brief.clone(),
        Body::InputQueued(input) | Body::InputStarted(input) | Body::InputDropped(input) => {
            input.text.clone()
        }
        Body::RunStarted(_)
        | Body::AskOpened(_)
        | Body::AskClosed { .. }
        | Body::MessageDelta { .. }
        | Body::ThinkingDelta { .. }
        | Body::ToolOutput { .. }
        | Body::Gap { .. }
        | Body::Attention { .. }
        | Body::Compacted { .. }
        | Body::Error { .. } => String::new(),
    };
    let kind = serde_json::to_value(line).unwrap()["type"].to_string();
    format!("{} {kind} {what}", line.agent.path)
}

async fn undisturbed(yaml: &str) -> (Vec<Line>, usize) {
    let journal = Arc::new(Mortal::new(Death::Never));
    let (lines, ended) = live(&journal, Virtual(Instant::now()), yaml).await;
    assert!(ended);
    (lines, journal.appends.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn numbers_have_no_gaps_and_the_run_ends_with_its_result() {
    for (name, yaml) in SCRIPTS {
        let (lines, _) = undisturbed(yaml).await;
        let numbers: Vec<u64> = lines.iter().map(|line| line.seq).collect();
        assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>(), "{name}");
        assert!(matches!(lines[0].body, Body::RunStarted(_)), "{name}");
        assert!(matches!(lines[lines.len() - 1].body, Body::RunResult(_)), "{name}");
    }
}

/// Whoever prints waits for the end on a thread of its own, while nothing else runs here.
#[tokio::test]
async fn whoever_listens_hears_the_end_of_a_session_that_is_let_go() {
    let yaml = "agents: {main: [{hang_ms: 600000, say: never}]}";
    let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
    let clock = Virtual(Instant::now());
    let world = World { journal: Arc::new(Memory::default()), clock: Arc::new(clock) };
    let mut driver = Driver::open("test", world).unwrap();
    let mut reader = driver.subscribe();
    for input in [Input::Configured(Box::new(config(&script))), Input::Said(message())] {
        driver.take(input).unwrap();
    }
    let provider = Arc::new(Scripted::new(script, Arc::new(clock)));
    let hands = Hands { provider, tools: Arc::new(Tools::default()) };
    let under_way = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        ended = driver.run(&hands, Until::Rest) => panic!("{ended:?}"),
        () = under_way => {}
    }
    driver.release().await;
    // Every look is one poll, and nobody else gets a turn in between.
    loop {
        tokio::select! {
            biased;
            told = reader.next() => if told.is_none() { return },
            () = std::future::ready(()) => panic!("somebody still holds on to the feed"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dying_at_any_append_changes_nothing_but_a_restart() {
    for (name, yaml) in SCRIPTS {
        let (whole, appends) = undisturbed(yaml).await;
        let deaths = (1..=appends)
            .flat_map(|nth| [Death::Before(nth), Death::After(nth), Death::Silent(nth)]);
        for death in deaths {
            eprintln!("{name}: {death:?}");
            check_death(&whole, yaml, death).await;
        }
    }
}

async fn check_death(whole: &[Line], yaml: &str, death: Death) {
    let clock = Virtual(Instant::now());
    let journal = Arc::new(Mortal::new(death));
    let (first, ended) = live(&journal, clock, yaml).await;
    assert!(!ended);
    let journal =
        Arc::new(Mortal { journal: journal.journal.clone(), ..Mortal::new(Death::Never) });
    let (second, ended) = live(&journal, clock, yaml).await;
    assert!(ended);

    // What the first process told is the beginning of the whole story.
    let gists = |lines: &[Line]| lines.iter().map(gist).collect::<Vec<_>>();
    assert_eq!(gists(&first), gists(&whole[..first.len()]));
    // What the second told is the rest of it, after one line about itself. Only the lines of an
    // entry that was safe but not yet told are in the journal and on no screen.
    let at = usize::try_from(second[0].seq).unwrap();
    let restarts = journal.load("test").unwrap();
    let restarts = restarts.iter().flat_map(|entry| &entry.events);
    let restarts = restarts.filter(|event| matches!(event, Event::Restarted)).count();
    let numbers: Vec<u64> = second.iter().map(|line| line.seq).collect();
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
    if restarts == 0 {
        assert_eq!(gists(&second), gists(whole));
        return;
    }
    assert!(matches!(&second[0].body, Body::RunStarted(run) if run.resumed));
    // One number is left out for the result that the first process may have told, or not.
    let rest = at - 2;
    assert_eq!(gists(&second[1..]), gists(&whole[rest..]));
    assert!(rest >= first.len());
    let heard = first.iter().chain(&second);
    let heard = heard.filter(|line| matches!(line.body, Body::InputStarted(_))).count();
    assert!(heard <= 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_something_was_received_before_it_is_safe() {
    let script = Script::parse(Path::new("test.yaml"), "agents: {main: [{hang_ms: 99000}]}");
    let (script, clock) = (script.unwrap(), Virtual(Instant::now()));
    let journal = Arc::new(Secretive::default());
    let world = World { journal: journal.clone(), clock: Arc::new(clock) };
    let mut driver = Driver::open("test", world).unwrap();
    driver.take(Input::Configured(Box::new(config(&script)))).unwrap();
    let handle = driver.handle();
    let provider = Arc::new(Scripted::new(script, Arc::new(clock)));
    let hands = Hands { provider, tools: Arc::new(Tools::default()) };
    let mut run = pin!(driver.run(&hands, Until::Rest));
    let said = || Input::Said(Message { external_id: Some("1".into()), ..message() });
    let (mut first, mut again) = (pin!(handle.post(said())), pin!(handle.post(said())));
    tokio::select! {
        biased;
        _ = &mut run => panic!("it hangs"),
        told = &mut first => panic!("{told:?} is not safe"),
        told = &mut again => panic!("{told:?} is not safe"),
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    for done in journal.untold.lock().unwrap().drain(..) {
        done(Ok(()));
    }
    let input = tokio::select! {
        _ = &mut run => panic!("it hangs"),
        told = first => told.unwrap().unwrap(),
    };
    tokio::select! {
        _ = &mut run => panic!("it hangs"),
        told = again => {
            assert_eq!(told, Ok(Err(Refusal::Duplicate { input: InputId(input.0) })));
        }
    }
}
