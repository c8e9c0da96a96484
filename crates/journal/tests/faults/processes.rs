//! More than one process: races for the lock, killed holders, a holder that is stopped, taken
//! over from, and woken. The other processes are this test program, told by a variable what to do.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use locum_journal::{Error, Journal, Records as _, Sqlite};
use locum_kernel::Seq;

use crate::{Folder, beside, entry};

const ROLE: &str = "LOCUM_JOURNAL_CHILD";

/// Not a test of its own: what a child process does. It opens the journal, says how that went,
/// and appends one entry for each line it is given.
#[test]
fn child() {
    let Ok(path) = std::env::var(ROLE) else { return };
    let say = |text: String| {
        let mut err = std::io::stderr();
        writeln!(err, "said {text}").unwrap();
    };
    let journal = match Sqlite::open(Path::new(&path)) {
        Ok(journal) => journal,
        Err(Error::Locked { holder, .. }) => {
            return say(format!("locked {}", holder.pid.unwrap_or_default()));
        }
        Err(error) => return say(format!("failed {error}")),
    };
    say("open".into());
    let mut tools = Vec::new();
    let mut last = journal.load("main").unwrap().len() as u64;
    for line in std::io::stdin().lines() {
        if line.unwrap() == "sleep" {
            // A tool of the holder that outlives it.
            tools.push(Command::new("sleep").arg("5").spawn().unwrap());
            say("sleeping".into());
            continue;
        }
        let result = journal.append("main", Seq(last), &entry(last + 1, "from a child"));
        match result {
            Ok(()) => {
                last += 1;
                say(format!("wrote {last}"));
            }
            Err(Error::Fenced { mine, found, .. }) => say(format!("fenced {mine} {found}")),
            Err(error) => say(format!("failed {error}")),
        }
    }
    for mut tool in tools {
        tool.wait().unwrap();
    }
}

struct Other {
    child: Child,
    /// None: told that there is nothing more.
    stdin: Option<ChildStdin>,
    said: BufReader<std::process::ChildStderr>,
    _out: ChildStdout,
}

impl Other {
    fn start(path: &Path) -> Other {
        Other::spawn(Command::new(std::env::current_exe().unwrap()), path)
    }

    fn spawn(mut command: Command, path: &Path) -> Other {
        command.args(["--exact", "processes::child", "--nocapture"]).env(ROLE, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let said = BufReader::new(child.stderr.take().unwrap());
        let out = child.stdout.take().unwrap();
        Other { child, stdin, said, _out: out }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the child fell silent");
            if let Some(said) = line.strip_prefix("said ") {
                return said.trim().to_owned();
            }
        }
    }

    fn tell(&mut self, line: &str) -> String {
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
        self.hear()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the promise is one of seconds")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

#[test]
fn a_second_process_is_told_who_holds_the_journal_and_a_kill_frees_it() {
    let folder = Folder::new("lock");
    let mut first = Other::start(&folder.journal());
    assert_eq!(first.hear(), "open");
    assert_eq!(first.tell("write"), "wrote 1");
    assert_eq!(first.tell("sleep"), "sleeping");

    let (refused, took) = timed(|| Sqlite::open(&folder.journal()));
    let Err(Error::Locked { holder, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(holder.pid, Some(first.child.id()));
    assert!(!holder.host.is_empty() && holder.since.is_some(), "{holder:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");

    first.signal("-KILL");
    first.child.wait().unwrap();
    let (journal, took) = timed(|| Sqlite::open(&folder.journal()).unwrap());
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(journal.load("main").unwrap().len(), 1);
    journal.append("main", Seq(1), &entry(2, "after")).unwrap();
}

#[test]
fn of_many_openers_one_wins() {
    let folder = Folder::new("race");
    let mut others: Vec<Other> = (0..6).map(|_| Other::start(&folder.journal())).collect();
    let heard: Vec<String> = others.iter_mut().map(Other::hear).collect();
    let won: Vec<usize> = (0..6).filter(|at| heard[*at] == "open").collect();
    let [winner] = won[..] else { panic!("{heard:?}") };
    let holder = format!("locked {}", others[winner].child.id());
    assert_eq!(heard.iter().filter(|said| **said == holder).count(), 5, "{heard:?}");
    assert_eq!(others[winner].tell("write"), "wrote 1");
}

#[test]
fn a_stopped_writer_that_wakes_after_a_take_over_writes_nothing() {
    let folder = Folder::new("fence");
    let mut old = Other::start(&folder.journal());
    assert_eq!(old.hear(), "open");
    assert_eq!(old.tell("write"), "wrote 1");
    old.signal("-STOP");

    // Stopped is not dead: nobody gets in by waiting.
    assert!(matches!(Sqlite::open(&folder.journal()), Err(Error::Locked { .. })));
    let new = Sqlite::take_over(&folder.journal()).unwrap();
    new.append("main", Seq(1), &entry(2, "from the new one")).unwrap();

    old.signal("-CONT");
    assert_eq!(old.tell("write"), format!("fenced {} {}", new.epoch() - 2, new.epoch()));
    assert!(old.tell("write").starts_with("failed"), "and it has stopped for good");
    // Nor does its end open the door: the lock that counts is the new one's.
    drop(old);
    assert!(matches!(Sqlite::open(&folder.journal()), Err(Error::Locked { .. })));
    new.append("main", Seq(2), &entry(3, "and again")).unwrap();
    let expected = [entry(1, "from a child"), entry(2, "from the new one"), entry(3, "and again")];
    assert_eq!(new.load("main").unwrap(), expected);
    drop(new);
    assert_eq!(Sqlite::open(&folder.journal()).unwrap().load("main").unwrap(), expected);
}

/// Its number is not in the file yet, and still it is too late.
#[test]
fn a_writer_that_was_taken_over_from_before_its_first_entry_writes_nothing() {
    let folder = Folder::new("early-fence");
    drop(Sqlite::open(&folder.journal()).unwrap());
    let mut old = Other::start(&folder.journal());
    assert_eq!(old.hear(), "open");
    old.signal("-STOP");
    let new = Sqlite::take_over(&folder.journal()).unwrap();
    old.signal("-CONT");
    // The new one has not written anything yet, either.
    assert_eq!(old.tell("write"), format!("fenced {} {}", new.epoch() - 1, new.epoch()));
    assert_eq!(new.load("main").unwrap(), []);
    new.append("main", Seq(0), &entry(1, "from the new one")).unwrap();
    let newest = Sqlite::take_over(&folder.journal()).unwrap();
    let late = new.append("main", Seq(1), &entry(2, "late"));
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    newest.append("main", Seq(1), &entry(2, "in time")).unwrap();
}

#[test]
fn opening_to_read_writes_nothing() {
    let folder = Folder::new("idle");
    let journal = Sqlite::open(&folder.journal()).unwrap();
    journal.append("main", Seq(0), &entry(1, "x")).unwrap();
    let epoch = journal.epoch();
    drop(journal);
    let files = || ["", "-mark"].map(|file| fs::read(beside(&folder.journal(), file)).unwrap());
    let before = files();
    for _ in 0..3 {
        let journal = Sqlite::open(&folder.journal()).unwrap();
        assert_eq!(journal.load("main").unwrap(), [entry(1, "x")]);
        assert_eq!(journal.epoch(), epoch + 1);
    }
    assert!(files() == before, "not a byte");
}

#[test]
fn killed_again_and_again_nothing_acknowledged_is_lost() {
    let folder = Folder::new("kills");
    let mut acknowledged = 0;
    for round in 0..12 {
        let mut other = Other::start(&folder.journal());
        assert_eq!(other.hear(), "open", "round {round}");
        for _ in 0..=round {
            acknowledged += 1;
            assert_eq!(other.tell("write"), format!("wrote {acknowledged}"));
        }
        // One more is under way, or not yet, or already done.
        writeln!(other.stdin.as_ref().unwrap(), "write").unwrap();
        other.signal("-KILL");
        other.child.wait().unwrap();
        let journal = Sqlite::open(&folder.journal()).unwrap();
        let found = journal.load("main").unwrap().len() as u64;
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        assert_eq!(journal.notices(), Vec::<String>::new());
        acknowledged = found;
    }
}

#[test]
fn a_failed_sync_stops_the_writer_and_loses_nothing() {
    let strace = |inject: &str| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
        command.args(["-e", inject]);
        command
    };
    let usable = strace("inject=fsync:error=EIO").arg("true").output();
    if !usable.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: strace is not there or may not trace; failing syncs were not tested");
        return;
    }
    let folder = Folder::new("sync");
    drop(Sqlite::open(&folder.journal()).unwrap());
    // Opening syncs a few times, each entry once.
    let mut failing = strace("inject=fsync:error=EIO:when=12+");
    failing.arg(std::env::current_exe().unwrap());
    let mut other = Other::spawn(failing, &folder.journal());
    assert_eq!(other.hear(), "open");
    let mut acknowledged = 0;
    let failed = loop {
        let said = other.tell("write");
        if said != format!("wrote {}", acknowledged + 1) {
            break said;
        }
        acknowledged += 1;
        assert!(acknowledged < 20, "no sync failed");
    };
    assert!(acknowledged > 0 && failed.starts_with("failed cannot write"), "{failed}");
    assert!(other.tell("write").contains("has stopped"), "it is not tried again");
    drop(other.stdin.take());
    other.child.wait().unwrap();
    let journal = Sqlite::open(&folder.journal()).unwrap();
    let found = journal.load("main").unwrap().len() as u64;
    assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
}
