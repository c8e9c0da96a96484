//! Laws over all scenarios together: every word of the vocabulary is used, old journals fold,
//! and no input, however bad, breaks a session.

mod bad;
pub(crate) mod words;

use crate::{name_of, play, scenario_files, stage};
use bad::message;
use locum_kernel::{
    AgentId, Entry, Event, Input, Message, Refusal, Seq, Session, State, Time, To, Unfoldable,
    Unreadable, VERSION, apply, fold, owed, prompt, step, view,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Once};
use words::{ALL, Seen};

/// What is left of a scenario after it was played.
struct Played {
    name: String,
    entries: Vec<Entry>,
    seen: Seen,
}

/// Those that play. One that does not is told by `every_scenario_holds`.
static PLAYED: LazyLock<Vec<Played>> = LazyLock::new(|| {
    let files = scenario_files().into_iter();
    let played = files.filter_map(|path| {
        let text = fs::read_to_string(&path).expect("a readable scenario");
        let (_, stage) = play(&text).ok()?;
        Some(Played { name: name_of(&path), entries: stage.entries, seen: stage.seen })
    });
    played.collect()
});

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that must not panic. The error is what it said; nothing is printed, and the
/// panics of other tests still are.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panics, {}", text.unwrap_or("?"))
    })
}

#[test]
fn every_word_is_used_by_some_scenario() {
    let mut seen: BTreeSet<_> = PLAYED.iter().flat_map(|played| played.seen.0.clone()).collect();
    seen.extend(hard_refusals().0);
    let mut missing = Vec::new();
    for (list, words) in ALL {
        let unused = words.iter().filter(|word| !seen.contains(&(list, **word)));
        missing.extend(unused.map(|word| format!("{list} {word}")));
    }
    assert!(missing.is_empty(), "no scenario has: {missing:#?}");
}

/// Refusals that no line of a scenario can bring about, or only a thousand lines.
fn hard_refusals() -> Seen {
    let mut seen = Seen::default();
    let mut refused = |session: &mut Session, input: Input| {
        let before = session.clone();
        let refusal = step(session, Time(1), input).expect_err("an input to refuse");
        assert!(*session == before, "{refusal} changed the session");
        seen.refusal(&refusal);
        refusal
    };
    let mut session = Session::new();
    assert_eq!(refused(&mut session, Input::Said(message("hi"))), Refusal::NotOpen);
    let config = stage::setup::config();
    step(&mut session, Time(1), Input::Configured(Box::new(config.clone()))).expect("a world");
    let other = locum_kernel::Config { session: "other".into(), ..config };
    let refusal = refused(&mut session, Input::Configured(Box::new(other)));
    assert_eq!(refusal.to_string(), "this is session test, not other");
    let aside = || Input::Said(Message { to: To::Main, ..message("hi") });
    let max = locum_kernel::limits::INBOX_MAX;
    // The first one is read at once; the model then thinks and the others wait for it.
    for _ in 0..=max {
        step(&mut session, Time(1), aside()).expect("an inbox with room");
    }
    let full = Refusal::InboxFull { agent: AgentId::MAIN, max };
    assert_eq!(refused(&mut session, aside()), full);
    seen
}

fn fixture() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/version-1.jsonl");
    let text = fs::read_to_string(path).expect("the fixture");
    text.lines().map(String::from).collect()
}

#[test]
fn a_journal_of_version_1_still_folds() {
    let mut session = Session::new();
    for line in fixture() {
        assert!(line.starts_with("{\"v\":1,"), "the fixture must stay as it was written");
        let entry = Entry::read(&line).expect("an old entry");
        assert_eq!(entry.v, VERSION, "it is brought up to today's words");
        fold(&mut session, &entry).expect("an old entry folds");
        session.check().expect("an invariant");
    }
    let view = view(&session, Time(1_794_713_900_000));
    let rows: Vec<_> = view.agents.iter().map(|row| (row.path.as_str(), row.state)).collect();
    assert_eq!(rows, [("main", State::Done), ("main/researcher", State::Done)]);
    assert_eq!(view.agents[1].result.as_deref(), Some("found 3 APIs"));
    assert_eq!((view.stack, view.asks.len()), (vec!["main".to_string()], 0));
    assert!(owed(&session).is_empty(), "nothing is outstanding");
    let lines = prompt(&session, AgentId::MAIN, Time(0)).expect("main").lines.len();
    assert_eq!(lines, 4, "told, replied, results, replied");
    // And it goes on from there.
    step(&mut session, Time(1_794_713_900_000), Input::Said(message("more"))).expect("a message");
    session.check().expect("an invariant");
    assert_eq!(owed(&session).len(), 1);
}

#[test]
fn a_newer_entry_is_refused() {
    let newer = u64::from(VERSION) + 1;
    let text = format!("{{\"v\":{newer},\"seq\":1,\"at\":0,\"events\":[\"restarted\"]}}");
    assert_eq!(Entry::read(&text), Err(Unreadable::Newer { version: newer }));
    let most = "{\"v\":18446744073709551615,\"what\":\"ever\"}";
    assert_eq!(Entry::read(most), Err(Unreadable::Newer { version: u64::MAX }));
    let mut session = Session::new();
    let entry = Entry { v: VERSION + 1, seq: Seq(1), at: Time(0), events: Vec::new() };
    let refused = fold(&mut session, &entry);
    assert_eq!(refused, Err(Unfoldable::Newer { version: VERSION + 1 }));
    assert!(session == Session::new(), "a refused entry changes nothing");
}

#[test]
fn an_entry_out_of_order_is_refused_and_changes_nothing() {
    for played in PLAYED.iter().step_by(9) {
        let mut session = Session::new();
        for (index, entry) in played.entries.iter().enumerate() {
            let next = Seq(session.seq().0 + 1);
            let others = [index.wrapping_sub(1), index + 1].map(|at| played.entries.get(at));
            let before = session.clone();
            for other in others.into_iter().flatten() {
                let refused = fold(&mut session, other);
                let found = other.seq;
                assert_eq!(refused, Err(Unfoldable::OutOfOrder { expected: next, found }));
                assert!(session == before, "{}: a refused entry changed it", played.name);
            }
            fold(&mut session, entry).expect("the entry that follows");
        }
    }
}

/// Cut, with a byte changed, with a value of another type: told, never a panic. What still reads
/// may fold to anything, but without a panic.
#[test]
fn a_damaged_entry_is_an_error() {
    let mut lines = fixture();
    let today = PLAYED.iter().step_by(80).flat_map(|played| &played.entries);
    lines.extend(today.map(|entry| serde_json::to_string(entry).expect("JSON")));
    let mut wrong = Vec::new();
    for line in &lines {
        for damaged in damages(line) {
            let outcome = caught(|| {
                let Ok(entry) = Entry::read(&damaged) else { return };
                let mut session = Session::new();
                let _ = fold(&mut session, &Entry { seq: Seq(1), ..entry });
            });
            if let Err(why) = outcome {
                wrong.push(format!("{} | {why}", damaged.chars().take(300).collect::<String>()));
            }
        }
        let cut: String = line.chars().take(line.chars().count() - 1).collect();
        assert!(matches!(Entry::read(&cut), Err(Unreadable::Broken(_))), "{cut}");
    }
    assert!(wrong.is_empty(), "{} are wrong, such as\n{}", wrong.len(), sample(&wrong));
}

fn damages(line: &str) -> Vec<String> {
    let mut all = vec![String::new(), "null".into(), "[]".into(), "{}".into(), "{\"v\":".into()];
    all.extend(
        ["\"x\"", "{\"v\":1}", "{\"v\":\"1\"}", "{\"v\":-1}", "{\"v\":0}"].map(String::from),
    );
    let places = line.char_indices().map(|(at, _)| at).step_by(line.len() / 40 + 1);
    for at in places {
        all.push(line[..at].into());
        for junk in ["7", "\"", "{", "]", "null"] {
            all.push(format!("{}{junk}{}", &line[..at], &line[at..].get(1..).unwrap_or_default()));
        }
    }
    // A number where something with parts should be.
    for (at, found) in line.match_indices("\":{") {
        all.push(format!("{}\":5,\"x\":{{{}", &line[..at], &line[at + found.len()..]));
    }
    all
}

/// Folding is total: facts about what never was do nothing, or something, but never panic.
#[test]
fn a_journal_with_a_hole_still_folds() {
    let mut wrong = Vec::new();
    for (number, played) in PLAYED.iter().enumerate() {
        let facts = || played.entries.iter().flat_map(|it| it.events.iter().map(|e| (it.at, e)));
        for (hole, (_, lost)) in facts().enumerate() {
            // Births are what others refer to; of the rest a sample will do.
            if !matches!(lost, Event::Spawned(_)) && (hole + number) % 20 != 0 {
                continue;
            }
            let outcome = caught(|| {
                let mut session = Session::new();
                for (_, (at, event)) in facts().enumerate().filter(|(at, _)| *at != hole) {
                    apply(&mut session, at, event);
                }
                (view(&session, Time(0)), owed(&session))
            });
            if let Err(why) = outcome {
                wrong.push(format!("{} without fact {} | {why}", played.name, hole + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} panic, such as\n{}", wrong.len(), sample(&wrong));
}

/// Merely dropping a value nested 10,000 deep takes more stack than a thread usually has.
const STACK: usize = 64 << 20;

#[test]
fn no_input_breaks_a_session_in_any_state() {
    let threads = 2;
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let start = |part| {
            let work = move || PLAYED.iter().skip(part).step_by(threads).flat_map(try_all);
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, move || work().collect::<Vec<_>>()).expect("a thread")
        };
        let workers: Vec<_> = (0..threads).map(start).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    assert!(wrong.is_empty(), "{} are wrong, such as\n{}", wrong.len(), sample(&wrong));
}

/// One of each kind.
fn sample(wrong: &[String]) -> String {
    let kinds: BTreeSet<&str> = wrong.iter().filter_map(|line| line.split(" | ").nth(1)).collect();
    let first = |kind: &&str| wrong.iter().find(|line| line.contains(*kind)).cloned();
    kinds.iter().filter_map(first).collect::<Vec<_>>().join("\n")
}

/// Every bad input after every seventh entry of a scenario's journal; the big ones only in some.
fn try_all(played: &Played) -> Vec<String> {
    let mut session = Session::new();
    let mut wrong = Vec::new();
    let mut number = played.name.len();
    for (index, entry) in played.entries.iter().enumerate() {
        fold(&mut session, entry).expect("the entry that follows");
        if index % 7 != 3 {
            continue;
        }
        number += 1;
        let luck = if index == 3 { played.name.len() } else { 1 };
        // Every second one; the others meet another state.
        let mut inputs: Vec<_> =
            bad::small(&session).into_iter().skip(number % 2).step_by(2).collect();
        let small = inputs.len();
        if luck % 16 == 0 {
            inputs.extend(bad::huge(&session));
        }
        if luck % 32 == 0 {
            inputs.extend(bad::fifty_megabytes(&session));
        }
        let mut tried = session.clone();
        for (place, (what, input)) in inputs.into_iter().enumerate() {
            let outcome = try_one(&session, &mut tried, entry.at, input);
            // Megabytes of JSON take too long for a test that is run all day.
            let whole = outcome.and_then(|taken| match taken {
                Some(entry) if place < small => reads_back(&entry),
                Some(_) | None => Ok(()),
            });
            if let Err(why) = whole {
                let state = format!("{} after entry {}", played.name, index + 1);
                wrong.push(format!("{state} | {what}: {why}"));
            }
        }
        if let Err(why) = try_times(&session) {
            wrong.push(format!("{} after entry {} | {why}", played.name, index + 1));
        }
    }
    wrong
}

/// Taken or refused, never a panic. `tried` is the session before, and is so again afterwards.
fn try_one(
    session: &Session,
    tried: &mut Session,
    at: Time,
    input: Input,
) -> Result<Option<Entry>, String> {
    let outcome = caught(|| step(tried, at, input));
    if outcome.is_err() {
        *tried = session.clone();
    }
    match outcome? {
        Err(_) if tried == session => Ok(None),
        Err(refusal) => Err(format!("changes the session though {refusal}")),
        Ok(events) => {
            let taken = std::mem::replace(tried, session.clone());
            taken.check()?;
            let entry = Entry { v: VERSION, seq: Seq(session.seq().0 + 1), at, events };
            fold(tried, &entry).map_err(|why| why.to_string())?;
            let same = *tried == taken;
            *tried = session.clone();
            if same { Ok(Some(entry)) } else { Err("folds to something else".into()) }
        }
    }
}

fn reads_back(entry: &Entry) -> Result<(), String> {
    let text = serde_json::to_string(entry).map_err(|why| why.to_string())?;
    let read = Entry::read(&text).map_err(|why| why.to_string())?;
    if read == *entry { Ok(()) } else { Err("reads back as something else".into()) }
}

/// The clock jumps from one end to the other and back, while somebody works and stops.
fn try_times(session: &Session) -> Result<(), String> {
    let mut session = session.clone();
    let said = || Input::Said(Message { to: To::Main, ..message("x") });
    for at in [Time(u64::MAX), Time(0), Time(u64::MAX), Time(0), Time(u64::MAX)] {
        for input in [Input::Ticked, bad::cancel(AgentId::MAIN), said()] {
            let outcome = caught(|| step(&mut session, at, input));
            let outcome = outcome.map_err(|why| format!("at {at}: {why}"))?;
            outcome.map_err(|why| format!("at {at}: {why}"))?;
            session.check().map_err(|why| format!("at {at}: {why}"))?;
        }
    }
    Ok(())
}
