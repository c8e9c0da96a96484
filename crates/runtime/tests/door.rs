//! Visitors at the door: what they bring for a session that nobody drives is heard beside the one
//! that is driven, however long the other is.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod plain;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use locum_journal::{Done, Error, Journal, Listed, Memory, Records, Snapshot, When};
use locum_kernel::{Entry, Input, Message, Seq};
use locum_runtime::clock::System;
use locum_runtime::door::{self, Desk, Door, Knock, Reply};
use locum_runtime::driver::{Driver, Hands, Until, World};
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::Tools;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

const DRIVEN: &str = "driven";
const OTHER: &str = "other";

/// Longer than any test may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A journal whose other session is so long that reading it takes until somebody says so.
#[derive(Debug, Default)]
struct Long {
    inner: Memory,
    is_read: AtomicBool,
    may_end: Mutex<bool>,
    said: Condvar,
}

impl Long {
    fn let_end(&self) {
        *self.may_end.lock().unwrap() = true;
        self.said.notify_all();
    }
}

impl Records for Long {
    fn tail(&self, session: &str, after: Seq) -> Result<Vec<Entry>, Error> {
        let tail = self.inner.tail(session, after)?;
        if session == OTHER && !tail.is_empty() {
            self.is_read.store(true, Ordering::Release);
            let waits = self.may_end.lock().unwrap();
            let waits = self.said.wait_timeout_while(waits, PATIENCE / 2, |may_end| !*may_end);
            assert!(!waits.unwrap().1.timed_out(), "nobody else was let go on meanwhile");
            // Time for whoever would come between reading and writing.
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(tail)
    }

    fn newest_snapshot(&self, session: &str) -> Result<Option<Snapshot>, Error> {
        self.inner.newest_snapshot(session)
    }

    fn sessions(&self) -> Result<Vec<Listed>, Error> {
        self.inner.sessions()
    }
}

impl Journal for Long {
    fn submit_then(&self, session: &str, expected: Seq, entry: &Entry, when: When, done: Done) {
        self.inner.submit_then(session, expected, entry, when, done);
    }

    fn snapshot(&self, session: &str, seq: Seq, bytes: &[u8]) -> Result<(), Error> {
        self.inner.snapshot(session, seq, bytes)
    }

    fn delete(&self, session: &str) -> Result<(), Error> {
        self.inner.delete(session)
    }
}

fn config(session: &str) -> Input {
    Input::Configured(Box::new(plain::config(session)))
}

fn said(id: &str) -> Input {
    let text = format!("words of {id}");
    Input::Said(Message { external_id: Some(id.into()), ..plain::message(&text) })
}

async fn knock(folder: &Path, id: &str) -> Reply {
    let mut stream = UnixStream::connect(door::path(folder)).await.unwrap();
    let knock = Knock { session: OTHER.into(), input: said(id) };
    let line = format!("{}\n", serde_json::to_string(&knock).unwrap());
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).await.unwrap();
    serde_json::from_str(&reply).unwrap()
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One thread for everything, as in the program.
#[tokio::test]
async fn a_long_session_is_heard_beside_the_one_that_is_driven() {
    let folder = std::env::temp_dir().join(format!("locum-door-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let folder = Folder(folder);
    let journal = Arc::new(Long::default());
    let world = World { journal: journal.clone(), clock: Arc::new(System) };
    Driver::open(OTHER, world.clone()).unwrap().take(config(OTHER)).unwrap();
    let mut driver = Driver::open(DRIVEN, world.clone()).unwrap();
    driver.take(config(DRIVEN)).unwrap();
    driver.take(said("first")).unwrap();
    let yaml = "agents: {main: [{hang_ms: 600000, say: never}]}";
    let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
    let provider = Arc::new(Scripted::new(script, Arc::new(System)));
    let hands = Hands { provider, tools: Arc::new(Tools::default()) };
    let mut door = Door::open(&folder.0).unwrap();
    let handle = driver.handle();
    let desk = Desk { world, session: DRIVEN.into(), handle: handle.clone() };
    let visits = async {
        let two = async { tokio::join!(knock(&folder.0, "one"), knock(&folder.0, "two")) };
        let meanwhile = async {
            while !journal.is_read.load(Ordering::Acquire) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // The other is being read, and will be until this is over.
            for number in 0..20 {
                handle.post(said(&format!("post {number}"))).await.unwrap().unwrap();
            }
            journal.let_end();
        };
        tokio::join!(two, meanwhile).0
    };
    let replies = tokio::select! {
        replies = tokio::time::timeout(PATIENCE, visits) => replies.unwrap(),
        ended = driver.run(&hands, Until::Rest) => panic!("it ended: {ended:?}"),
        never = door.serve(desk) => match never {},
    };
    let (Reply::Taken(one), Reply::Taken(two)) = replies else { panic!("{replies:?}") };
    assert_ne!(one, two);
}
