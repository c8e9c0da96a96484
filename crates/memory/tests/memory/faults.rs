//! Files that are damaged, newer or foreign; processes that are killed or write at once; and how
//! long a hundred thousand notes take. The other processes are this test program, told by a
//! variable what to do.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use locum_memory::{Error, Memory, Provenance, Reader, Scope};

use super::{Folder, agent, model, reader, workspace};

const ROLE: &str = "LOCUM_MEMORY_CHILD";
const NAME: &str = "LOCUM_MEMORY_NAME";
const COUNT: &str = "LOCUM_MEMORY_COUNT";
const PATIENCE: Duration = Duration::from_mins(2);

/// Not a test of its own: what a child process does. It saves and says what was acknowledged.
#[test]
fn child() {
    let Ok(path) = std::env::var(ROLE) else { return };
    let name = std::env::var(NAME).unwrap();
    let count: u32 = std::env::var(COUNT).unwrap().parse().unwrap();
    let memory = Memory::open(Path::new(&path)).unwrap();
    let mut out = std::io::stderr();
    for number in 0..count {
        let text = format!("{name} note {number} {}", "filler ".repeat(20));
        let saved = memory.save(&Reader::default(), &Scope::User, &text, &model(1)).unwrap();
        writeln!(out, "kept {} {name} note {number}", saved.note().id).unwrap();
    }
    writeln!(out, "kept all").unwrap();
}

fn start(folder: &Folder, name: &str, count: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::child", "--nocapture"]);
    command.env(ROLE, &folder.0).env(NAME, name).env(COUNT, count.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a child said was kept. After so many notes it is killed, in the middle of the next.
fn follow(mut child: Child, kill_after: Option<usize>) -> Vec<String> {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (done, waiting) = channel::<()>();
    let process = child.id();
    std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
    });
    let mut kept = Vec::new();
    for line in lines.map_while(Result::ok) {
        let Some(line) = line.strip_prefix("kept ") else { continue };
        kept.push(line.to_owned());
        if kill_after == Some(kept.len()) {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    drop(done);
    kept
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let folder = Folder::new("killed");
    let me = Reader::default();
    let mut acknowledged = Vec::new();
    for round in 0..8_usize {
        let child = start(&folder, &format!("round{round}"), 5_000);
        let kept = follow(child, Some(1 + round * 7 % 23));
        assert!(kept.last().is_some_and(|line| line != "all"), "it was killed: {kept:?}");
        acknowledged.extend(kept);
        let memory = folder.open();
        let notes = memory.list(&me, &Scope::User, None, usize::MAX).unwrap();
        for line in &acknowledged {
            let (id, text) = line.split_once(' ').unwrap();
            let note = notes.iter().find(|note| note.id.to_string() == id);
            assert!(note.is_some_and(|note| note.text.starts_with(text)), "{line}");
        }
        let found = memory.search(&me, &format!("round{round} filler"), 100).unwrap();
        assert!(!found.is_empty(), "round {round} is indexed");
    }
    assert!(acknowledged.len() >= 8);
    assert_eq!(folder.names().iter().filter(|name| name.contains("damaged")).count(), 0);
}

#[test]
fn several_processes_open_and_write_at_once() {
    let folder = Folder::new("several");
    let children: Vec<Child> =
        (0..4).map(|number| start(&folder, &format!("child{number}"), 40)).collect();
    for child in children {
        let kept = follow(child, None);
        assert_eq!(kept.last().map(String::as_str), Some("all"), "{kept:?}");
    }
    let memory = folder.open();
    let notes = memory.list(&Reader::default(), &Scope::User, None, usize::MAX).unwrap();
    assert_eq!(notes.len(), 160);
    for number in 0..4 {
        let found = memory.search(&Reader::default(), &format!("child{number}"), 100).unwrap();
        assert_eq!(found.len(), 40);
    }
}

/// A memory with notes, closed, so that everything is in the one file.
fn filled(folder: &Folder) -> Vec<u8> {
    let memory = folder.open();
    for number in 0..200 {
        let text = format!("note {number} {}", "words of some length ".repeat(20));
        memory.save(&Reader::default(), &Scope::User, &text, &model(1)).unwrap();
    }
    drop(memory);
    assert_eq!(folder.names(), ["memory.db"]);
    fs::read(folder.file()).unwrap()
}

#[test]
fn a_damaged_file_is_set_aside_and_never_deleted() {
    let folder = Folder::new("damaged");
    let whole = filled(&folder);
    let schema = whole.windows(12).position(|window| window == b"CREATE TABLE").unwrap();
    let mut garbled = whole.clone();
    garbled[schema..schema + 12].fill(b'x');
    let mut zeroed = whole.clone();
    zeroed[4_096 * 3..4_096 * 40].fill(0);
    let cases = [
        ("no database", b"this is not a database, and long enough to be taken for one".to_vec()),
        ("schema", garbled),
        ("pages", zeroed),
        ("cut", whole[..whole.len() / 2 / 4_096 * 4_096].to_vec()),
    ];
    for (number, (name, bytes)) in cases.iter().enumerate() {
        fs::write(folder.file(), bytes).unwrap();
        let error = Memory::open(&folder.0).unwrap_err();
        let Error::Damaged { kept, .. } = &error else { panic!("{name}: {error:?}") };
        assert_eq!(kept.file_name().unwrap(), format!("memory.db.damaged-{}", number + 1).as_str());
        assert_eq!(&fs::read(kept).unwrap(), bytes, "{name}: it was not changed");
        assert!(!folder.file().exists(), "{name}");
        let memory = folder.open();
        memory.save(&Reader::default(), &Scope::User, "goes on", &model(1)).unwrap();
    }
}

#[test]
fn damage_met_in_the_middle_of_work_is_told_and_the_next_act_begins_anew() {
    let folder = Folder::new("middle");
    let me = Reader::default();
    // More than a connection keeps in its cache.
    let text = "word ".repeat(1_600);
    let page: Vec<String> = (0..500).map(|number| format!("## new\n{number} {text}\n")).collect();
    folder.open().take_back(&me, &Scope::User, None, &page.concat(), &model(1)).unwrap();
    let memory = folder.open();
    let bytes = fs::read(folder.file()).unwrap();
    // Everything but the first page, under the feet of a process that has it open.
    let mut broken = bytes.clone();
    broken[4_096..].fill(0x5a);
    fs::write(folder.file(), &broken).unwrap();
    let error = memory.list(&me, &Scope::User, None, 999).map(|notes| notes.len()).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    memory.save(&me, &Scope::User, "goes on", &model(1)).unwrap();
    assert_eq!(memory.list(&me, &Scope::User, None, 9).unwrap().len(), 1);
}

#[test]
fn a_newer_file_is_left_alone() {
    let folder = Folder::new("newer");
    let mut bytes = filled(&folder);
    // Where the file keeps `user_version`.
    bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
    fs::write(folder.file(), &bytes).unwrap();
    let error = Memory::open(&folder.0).unwrap_err();
    assert!(matches!(error, Error::Version { found: 9, known: 1, .. }), "{error:?}");
    assert_eq!(fs::read(folder.file()).unwrap(), bytes);
}

fn sql(folder: &Folder, text: &str) {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    #[expect(clippy::disallowed_methods, reason = "a test breaks the file on purpose")]
    let connection = rusqlite::Connection::open_with_flags(folder.file(), flags).unwrap();
    let off = rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE;
    connection.set_db_config(off, false).unwrap();
    connection.execute_batch(text).unwrap();
}

#[test]
fn a_broken_index_is_made_anew() {
    let breaks = [
        "DELETE FROM words_data WHERE id > 10",
        "UPDATE words_data SET block = zeroblob(40) WHERE id > 10",
        "UPDATE words_data SET block = randomblob(60)",
        "DELETE FROM words_docsize WHERE id < 20",
        "DELETE FROM words WHERE rowid < 100",
        "DROP TABLE words",
        "UPDATE meta SET words = 0",
    ];
    let me = Reader::default();
    for (number, text) in breaks.iter().enumerate() {
        for open in ["before", "after"] {
            let folder = Folder::new(&format!("index-{number}-{open}"));
            filled(&folder);
            let before = (open == "before").then(|| folder.open());
            sql(&folder, text);
            let memory = before.unwrap_or_else(|| folder.open());
            memory.save(&me, &Scope::User, "a word that is fresh", &model(1)).unwrap();
            let found = memory.search(&me, "fresh", 9).unwrap();
            assert_eq!(found.len(), 1, "{text} {open}");
            drop(memory);
            let found = folder.open().search(&me, "note 7 words", 100).unwrap();
            assert_eq!(found.len(), 100, "{text} {open}");
            assert_eq!(found[0].note.id.to_string(), "m8", "{text} {open}");
            let names = folder.names();
            assert!(!names.iter().any(|name| name.contains("damaged")), "{names:?}");
        }
    }
}

/// A tenth of them in each of the three scopes that the reader sees. With `LOCUM_MEMORY_MANY=10000`
/// they are as many as a scope can have, a hundred thousand in all.
#[test]
#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn many_notes_are_searched_at_once() {
    let each = std::env::var("LOCUM_MEMORY_MANY").map_or(1_000, |many| many.parse().unwrap());
    let folder = Folder::new("many");
    let memory = folder.open();
    let nouns = ["database", "server", "parser", "release", "meeting", "index", "journal", "agent"];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let mut scopes = vec![(Scope::User, reader("/w", "main"))];
    scopes.push((agent("main", "/w"), reader("/w", "main")));
    scopes.extend((0..8).map(|number| match number {
        0 => (workspace("/w"), reader("/w", "main")),
        number => (workspace(&format!("/w{number}")), reader(&format!("/w{number}"), "main")),
    }));
    let filling = std::time::Instant::now();
    for (place, (scope, who)) in scopes.iter().enumerate() {
        let mut page = String::new();
        for number in 0..each {
            let words: Vec<String> = (0..20)
                .map(|_| format!("{}{}", nouns[random(nouns.len())], random(3_000)))
                .collect();
            let _ = write!(page, "## new\nThe note {place}x{number}: {}\n", words.join(" "));
        }
        let from = Provenance::person(1);
        memory.take_back(who, scope, None, &page, &from).unwrap();
    }
    let filled = filling.elapsed();
    let me = reader("/w", "main");
    let mut table = format!("{} notes taken in within {filled:?}\n", each * 10);
    for question in ["note", "database7 server9", "0x424", "parser17", "the release", "atabase8"] {
        let asked = std::time::Instant::now();
        let found = memory.search(&me, question, 10).unwrap();
        let took = asked.elapsed();
        let _ = writeln!(table, "{question:20} {:3} found in {took:?}", found.len());
        assert!(took < Duration::from_secs(5), "{table}");
        assert!(!found.is_empty(), "{table}");
    }
    let asked = std::time::Instant::now();
    memory.save(&me, &workspace("/w9"), "x", &model(1)).unwrap_err();
    drop(memory);
    let memory = folder.open();
    let _ = writeln!(table, "opened again in {:?}", asked.elapsed());
    let size = fs::metadata(folder.file()).unwrap().len();
    let _ = writeln!(table, "{} KiB", size / 1_024);
    drop(memory);
    std::io::stderr().write_all(table.as_bytes()).unwrap();
}
