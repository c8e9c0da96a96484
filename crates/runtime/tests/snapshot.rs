//! A long session is opened from its snapshot: as the whole history would have it, with the same
//! numbers to come. A snapshot that is not understood is not there.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod plain;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locum_journal::{Done, Error, Journal, Listed, Memory, Records, Snapshot, When};
use locum_kernel::{Entry, Event, Input, Message, Seq, Time, VERSION};
use locum_runtime::clock::Clock;
use locum_runtime::driver::{Driver, Hands, Until, World, look, retell};
use locum_runtime::line::Line;
use locum_runtime::live::Told;
use locum_runtime::provider::Task;
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::Tools;

const KEY: &str = "long";
/// From here on it is worth a snapshot.
const MANY: u64 = 1_000;
/// Entries after the snapshot.
const MORE: u64 = 3;

/// What whoever opens the session finds in place of its snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    AsItIs,
    Nothing,
    OtherFormat,
    NotJson,
    CutShort,
}

/// A journal that counts what is read from it.
#[derive(Debug)]
struct Counting {
    inner: Arc<Memory>,
    found: Found,
    read: AtomicUsize,
}

impl Records for Counting {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let entries = self.inner.tail(session, after)?;
        self.read.fetch_add(entries.len(), Ordering::Relaxed);
        Ok(entries)
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        let kept = self.inner.newest_snapshot(session)?;
        Ok(kept.and_then(|Snapshot { seq, mut bytes }| {
            match self.found {
                Found::AsItIs => {}
                Found::Nothing => return None,
                Found::OtherFormat => {
                    let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    value["format"] = "0.0.0+0".into();
                    bytes = serde_json::to_vec(&value).unwrap();
                }
                Found::NotJson => bytes[0] = b'?',
                Found::CutShort => bytes.truncate(bytes.len() / 2),
            }
            Some(Snapshot { seq, bytes })
        }))
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        self.inner.sessions()
    }
}

/// Nothing is kept of what a look brings about.
impl Journal for Counting {
    fn submit_then(&self, _: &str, _: Seq, _: &Entry, _: When, done: Done) {
        done(Ok(()));
    }

    fn snapshot(&self, _: &str, _: Seq, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.inner.delete(session)
    }
}

/// It is always the same moment.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        Time(1_000_000)
    }

    fn sleep_until(&self, _: Time) -> Task<()> {
        Box::pin(std::future::pending())
    }
}

fn open(journal: Arc<dyn Journal>) -> Driver {
    Driver::open(KEY, World { journal, clock: Arc::new(Still) }).unwrap()
}

fn config() -> Input {
    Input::Configured(Box::new(plain::config(KEY)))
}

fn said(text: &str) -> Input {
    let (sender, external_id) = (text.into(), Some(text.into()));
    Input::Said(Message { sender, external_id, ..plain::message(text) })
}

/// Restarts, each of which tells lines.
fn restarts(journal: &Memory, count: u64) {
    let entries = journal.load(KEY).unwrap();
    let last: u64 = entries.iter().map(|entry| entry.events.len() as u64).sum();
    for before in last..last + count {
        let (seq, at) = (Seq(before + 1), Still.now());
        let entry = Entry { v: VERSION, seq, at, events: vec![Event::Restarted] };
        journal.append(KEY, Seq(before), &entry).unwrap();
    }
}

/// A session with a message under way and one waiting, so many entries, and a snapshot among them.
fn long_session() -> Arc<Memory> {
    let journal = Arc::new(Memory::default());
    let mut driver = open(journal.clone());
    for input in [config(), said("first"), said("second")] {
        driver.take(input).unwrap();
    }
    drop(driver);
    restarts(&journal, MANY);
    assert_eq!(journal.newest_snapshot(KEY).unwrap(), None, "nobody has opened it yet");
    drop(open(journal.clone()));
    assert!(journal.newest_snapshot(KEY).unwrap().is_some(), "whoever opens it keeps one");
    restarts(&journal, MORE);
    journal
}

/// The lines of one more decision.
async fn next_lines(mut driver: Driver) -> Vec<Line> {
    let mut reader = driver.subscribe();
    driver.take(said("third")).unwrap();
    // All of it is safe at once; stopping tells it.
    driver.stop(130).await.unwrap();
    drop(driver);
    let mut lines = Vec::new();
    while let Some(told) = reader.next().await {
        match told {
            Told::Line(line) => lines.push(Line::clone(&line)),
            Told::Piece { .. } | Told::Gap { .. } => panic!("{told:?}"),
        }
    }
    lines
}

#[tokio::test]
async fn a_snapshot_spares_the_fold_and_changes_nothing_else() {
    let journal = long_session();
    let entries = journal.load(KEY).unwrap().len();
    assert!(entries as u64 > MANY + MORE);
    let mut told = 0;
    let whole = retell(journal.as_ref(), KEY, |_, _, lines| {
        told = lines.last().map_or(told, |line| line.seq);
        true
    });
    let whole = whole.unwrap();
    let few = usize::try_from(MORE).unwrap();
    let cases = [
        (Found::AsItIs, few),
        (Found::Nothing, entries),
        (Found::OtherFormat, entries),
        (Found::NotJson, entries),
        (Found::CutShort, entries),
    ];
    let mut expected = None;
    for (found, read) in cases {
        let counting =
            Arc::new(Counting { inner: journal.clone(), found, read: AtomicUsize::new(0) });
        let driver = open(counting.clone());
        assert_eq!(counting.read.load(Ordering::Relaxed), read, "{found:?}");
        assert!(*driver.session() == whole, "{found:?} is another session");
        assert_eq!(driver.teller().told(), told, "{found:?}");
        let lines = next_lines(driver).await;
        assert_eq!(lines[0].seq, told + 1, "{found:?}");
        assert_eq!(expected.get_or_insert(lines.clone()), &lines, "{found:?}");
    }
}

#[test]
fn a_short_session_has_no_snapshot() {
    let journal = Arc::new(Memory::default());
    let mut driver = open(journal.clone());
    driver.take(config()).unwrap();
    drop(driver);
    restarts(&journal, MANY - 2);
    drop(open(journal.clone()));
    assert_eq!(journal.newest_snapshot(KEY).unwrap(), None);
}

/// Turns enough for several snapshots in between. Two calls in turns, because the same one over
/// and over would be asked about.
fn busy_script() -> Script {
    let two = "    - calls: [{list_agents: {}}]\n    - calls: [{get_agent: {agent: main}}]\n";
    let yaml = format!("agents:\n  main:\n{}", two.repeat(4_000));
    Script::parse(Path::new("test.yaml"), &yaml).unwrap()
}

/// Somebody works for long and is killed: whoever opens the session next folds only its end.
#[tokio::test]
async fn a_run_that_is_killed_has_snapshots_from_in_between() {
    let journal = Arc::new(Memory::default());
    let mut driver = open(journal.clone());
    let Input::Configured(mut config) = config() else { panic!("it is one") };
    config.limits.turns_max = u32::MAX;
    driver.take(Input::Configured(config)).unwrap();
    driver.take(said("go")).unwrap();
    let provider = Arc::new(Scripted::new(busy_script(), Arc::new(Still)));
    let hands = Hands { provider, tools: Arc::new(Tools::default()) };
    let newest = || journal.newest_snapshot(KEY).unwrap().map_or(Seq(0), |kept| kept.seq);
    // Until one is there that had another before it.
    let killed = async {
        let mut seen = Vec::new();
        while seen.len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            seen.push(newest());
            seen.dedup();
        }
        seen
    };
    let seen = tokio::select! {
        seen = tokio::time::timeout(Duration::from_mins(1), killed) => seen.unwrap(),
        ended = driver.run(&hands, Until::Rest) => panic!("it ended before: {ended:?}"),
    };
    drop(driver);
    assert_eq!(seen[0], Seq(0), "the first was made in between");
    let entries = journal.load(KEY).unwrap().len();
    let (found, read) = (Found::AsItIs, AtomicUsize::new(0));
    let counting = Counting { inner: journal.clone(), found, read };
    let opened = look(&counting, KEY).unwrap();
    let folded = counting.read.into_inner();
    assert!(folded < entries / 2, "{folded} of {entries} entries were folded");
    assert_eq!(opened, retell(journal.as_ref(), KEY, |_, _, _| true).unwrap());
}
