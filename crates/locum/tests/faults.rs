//! Faults around the real program: a second one at the same data folder, a holder that is killed
//! or stopped, a disk that is full, and asks that outlive the process that asked.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "faults/room.rs"]
mod room;

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

/// It says that it has begun, and then takes longer than any test.
const ENDLESS: &str = "agents: {main: [{say: begun, calls: [{list_agents: {}}]}, \
                       {hang_ms: 600000, say: never}]}";

const QUICK: &str = "agents: {main: [{say: done}]}";

/// Thirty notes, each kept by the journal in full.
const TALKATIVE: &str = "tools: {note: {class: read, says: NOTED}}\n\
                         agents: {main: [CALLS {say: finished}]}";

const ASKS: &str = "tools: {build: {class: exec, says: built}}\n\
                    agents: {main: [{calls: [{build: {n: 1}}]}, {say: \"{{last}}\"}]}";

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-faults-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn script(&self, text: &str) -> String {
        let path = self.0.join("script.yaml");
        fs::write(&path, text).unwrap();
        format!("script:{}", path.display())
    }

    fn locum(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(arguments).arg("--data").arg(self.0.join("data")).stdin(Stdio::null());
        command
    }

    /// A run that holds the folder, and has said so.
    fn holder(&self) -> (Child, Lines<BufReader<ChildStdout>>) {
        self.mortal_holder("never")
    }

    /// One that dies at a chosen append.
    fn mortal_holder(&self, death: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
        let model = self.script(ENDLESS);
        let mut holder = self.locum(&["run", "go", "-m", &model, "--json", "-s", "held"]);
        holder.env("LOCUM_DIE_AT", death);
        let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("\"tool.finished\"")));
        (holder, lines)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Refused, by name, within two seconds; the program itself keeps the time.
fn refused_within_two_seconds(folder: &Folder, holder: u32) {
    let model = folder.script(QUICK);
    let mut second = Command::new("timeout");
    second.arg("2").arg(env!("CARGO_BIN_EXE_locum")).args(["run", "hi", "-m", &model]);
    let second = second.arg("--data").arg(folder.0.join("data")).stdin(Stdio::null()).output();
    let second = second.unwrap();
    let told = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(7), "{told}");
    assert!(told.starts_with("error[E111] "), "{told}");
    assert!(told.contains(&format!("process {holder}")), "{told}");
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_holder_is_named_also_when_it_is_stopped_and_a_kill_frees_its_place_at_once() {
    let folder = Folder::new("holder");
    let (mut holder, _lines) = folder.holder();
    refused_within_two_seconds(&folder, holder.id());
    signal("-STOP", holder.id());
    refused_within_two_seconds(&folder, holder.id());
    // It cannot answer at its door either, and whoever knocks is not kept waiting.
    let mut send = Command::new("timeout");
    send.arg("8").arg(env!("CARGO_BIN_EXE_locum")).args(["send", "-s", "held", "hello"]);
    let send = send.arg("--data").arg(folder.0.join("data")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(send.status.code(), Some(7), "{}", String::from_utf8_lossy(&send.stderr));
    signal("-KILL", holder.id());
    holder.wait().unwrap();
    let quick = folder.script(QUICK);
    let third = folder.locum(&["run", "hi", "-m", &quick]).output().unwrap();
    assert_eq!(third.stdout, b"done\n", "{}", String::from_utf8_lossy(&third.stderr));
}

#[test]
fn of_two_that_race_for_a_new_folder_one_runs_and_one_is_refused() {
    for round in 0..2 {
        let folder = Folder::new(&format!("race{round}"));
        let model = folder.script(&QUICK.replace("say: done", "say: done, hang_ms: 1500"));
        let start = || {
            let mut command = folder.locum(&["run", "hi", "-m", &model]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
        let mut exits = both.each_ref().map(|output| output.status.code());
        exits.sort_unstable();
        assert_eq!(exits, [Some(0), Some(7)], "{both:?}");
    }
}

/// A file system of a few pages, unmounted when the test is over.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: &Path, size: &str) -> Option<Tiny> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Tiny(path.to_owned()))
    }

    /// Takes all the room but so much.
    fn fill(&self, left: u64) {
        let file = fs::OpenOptions::new().append(true).create(true).open(self.0.join("ballast"));
        let mut file = file.unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(left)).unwrap();
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_what_was_accepted_goes_on_when_there_is_room() {
    let folder = Folder::new("full");
    let Some(tiny) = Tiny::mount(&folder.0.join("data"), "2m") else {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
        return;
    };
    // No two alike: the same in turn would be a loop.
    let turn = |n: u32| format!("{{calls: [{{note: {{n: {n}}}}}, {{note: {{n: -{n}}}}}]}}, ");
    let calls: String = (1..=45).map(turn).collect();
    let script = TALKATIVE.replace("NOTED", &"n".repeat(20_000)).replace("CALLS", &calls);
    let model = folder.script(&script);
    fs::write(tiny.0.join("ballast"), vec![1; 1 << 20]).unwrap();
    let full = folder.locum(&["run", "go", "-m", &model, "--json", "-s", "s"]).output().unwrap();
    let told = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(7), "{told}");
    assert!(told.starts_with("error[E114] ") && told.contains("--resume s"), "{told}");
    let before = lines(&full);
    assert!(before.iter().any(|line| line["type"] == "input.queued"), "nothing was accepted");

    fs::remove_file(tiny.0.join("ballast")).unwrap();
    let mut room = Command::new("mount");
    room.args(["-o", "remount,size=32m"]).arg(&tiny.0);
    assert!(room.status().unwrap().success());
    let rest = folder.locum(&["run", "--resume", "s", "--json"]).output().unwrap();
    assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
    let after = lines(&rest);
    assert_eq!(after[after.len() - 1]["text"], "finished");
    let all = before.iter().chain(&after);
    let queued = all.clone().filter(|line| line["type"] == "input.queued").count();
    assert_eq!(queued, 1, "what was accepted is there once");
    let notes = all.filter(|line| line["type"] == "tool.finished").count();
    assert!(notes <= 90, "{notes} results were told of 90 calls");
}

/// Room was kept back: what a run had done when the disk was full is known to the last step, and
/// no step is done twice.
#[test]
fn a_run_whose_disk_fills_up_ends_in_order_and_knows_what_it_has_done() {
    const STEPS: usize = 60;
    let folder = Folder::new("reserve");
    let Some(tiny) = Tiny::mount(&folder.0.join("data"), "40m") else {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
        return;
    };
    let quick = folder.script(QUICK);
    assert!(folder.locum(&["run", "hi", "-m", &quick]).status().unwrap().success());
    let reserve = tiny.0.join("journal.db-reserve");
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 16 << 20);
    tiny.fill(600 << 10);

    let log = folder.0.join("effects.log");
    let step = |number| format!("    - calls: [{{work: {{command: 'step {number}'}}}}]\n");
    let script = format!(
        "tools: {{work: {{class: exec, takes_ms: 20, log: {}, says: {}}}}}\n\
         agents:\n  main:\n{}    - say: finished\n",
        log.display(),
        "w".repeat(20_000),
        (0..STEPS).map(step).collect::<String>(),
    );
    let model = folder.script(&script);
    let effects = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let run = ["run", "go", "-m", &model, "--json", "-s", "s", "--allow", "work"];
    let full = folder.locum(&run).output().unwrap();
    let told = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(7), "{told}");
    assert!(told.starts_with("error[E114] "), "{told}");
    assert!(told.contains("\ndo: make room, then locum run --resume s"), "{told}");
    let left = || fs::metadata(&reserve).unwrap().len();
    assert_eq!(left(), 2 << 20, "the last of it is for whoever makes room");
    let before = lines(&full);
    let last = before.last().unwrap();
    assert_eq!((&last["type"], &last["exit"]), (&json!("run.result"), &json!(7)), "{last}");
    let finished = before.iter().filter(|line| line["type"] == "tool.finished");
    let (done, not): (Vec<_>, Vec<_>) = finished.partition(|line| line["ok"] == true);
    assert_eq!(done.len(), effects());
    let not_begun = |line: &&Value| line.to_string().contains("not begun: the disk was full");
    assert!(not.len() <= 1 && not.iter().all(not_begun), "{not:?}");
    assert!((5..STEPS).contains(&effects()), "{}", effects());

    // Still full, and nothing is left to fall back on: nothing is begun.
    tiny.fill(0);
    let done = effects();
    let resume = ["run", "--resume", "s", "--allow", "work"];
    for _ in 0..2 {
        let still = folder.locum(&resume).output().unwrap();
        let told = String::from_utf8_lossy(&still.stderr);
        assert_eq!(still.status.code(), Some(7), "{told}");
        assert!(told.starts_with("error[E114] ") && told.contains("\ndo: make room"), "{told}");
    }
    assert_eq!(effects(), done);
    let text = |output: Output| String::from_utf8(output.stdout).unwrap();
    let listed = text(folder.locum(&["sessions", "--json"]).output().unwrap());
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let other = listed.as_array().unwrap().iter().find(|row| row["session"] != "s").unwrap();
    let other = other["session"].as_str().unwrap();
    let removed = folder.locum(&["sessions", "rm", other]).output().unwrap();
    assert_eq!(text(removed), format!("removed {other}\n"), "room can be made on a full disk");

    fs::remove_file(tiny.0.join("ballast")).unwrap();
    let rest = folder.locum(&resume).output().unwrap();
    assert_eq!(rest.stdout, b"finished\n", "{}", String::from_utf8_lossy(&rest.stderr));
    assert_eq!(effects() + not.len(), STEPS, "each step once, or known not to have been begun");
    assert_eq!(left(), 16 << 20);
    let told = folder.locum(&["sessions", "export", "s"]).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("step 59") && !told.contains("outcome unknown"));
}

#[test]
fn an_ask_that_is_still_open_is_told_to_whoever_resumes() {
    let folder = Folder::new("asks");
    let model = folder.script(ASKS);
    let parked = ["run", "go", "-m", &model, "--json", "-s", "s", "--approvals", "park"];
    let parked = folder.locum(&parked).output().unwrap();
    assert_eq!(parked.status.code(), Some(10));
    let before = lines(&parked);
    assert_eq!(before[0]["asks"], json!([]));
    let opened = before.iter().find(|line| line["type"] == "ask.opened").unwrap();

    let mut resumed = folder.locum(&["run", "--resume", "s", "--json", "--approvals", "stdio"]);
    resumed.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut resumed = resumed.spawn().unwrap();
    let mut said = BufReader::new(resumed.stdout.take().unwrap()).lines();
    let started: Value = serde_json::from_str(&said.next().unwrap().unwrap()).unwrap();
    let [ask] = started["asks"].as_array().unwrap().as_slice() else { panic!("{started}") };
    for field in ["agent", "id", "kind", "summary", "input", "options", "scopes"] {
        assert_eq!(ask[field], opened[field], "{field}");
    }
    let last = before[before.len() - 1]["seq"].as_u64().unwrap();
    assert_eq!(started["seq"], last + 1, "no number is used twice");
    let yes = json!({ "type": "decision", "id": ask["id"], "decision": "allow" });
    let mut stdin = resumed.stdin.take().unwrap();
    writeln!(stdin, "{yes}").unwrap();
    let rest: Vec<Value> = said.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(rest[rest.len() - 1]["text"], "built");
    assert!(resumed.wait().unwrap().success());
}

/// What was allowed while nobody was there has not been cut when somebody comes, and is begun by
/// the first who does: but only when the journal knows that they came.
#[cfg(debug_assertions)]
#[test]
fn what_was_allowed_while_nobody_was_there_runs_once_wherever_the_next_dies() {
    for death in ["before:1", "after:1", "before:2", "after:2"] {
        let folder = Folder::new(&format!("alone-{}", death.replace(':', "-")));
        let log = folder.0.join("effects.log");
        let logged = format!("says: built, log: {}", log.display());
        let model = folder.script(&ASKS.replace("says: built", &logged));
        let run = ["run", "go", "-m", &model, "-s", "alone", "--approvals", "park"];
        assert_eq!(folder.locum(&run).status().unwrap().code(), Some(10));
        assert!(folder.locum(&["approve", "q"]).status().unwrap().success());
        let again = ["run", "--resume", "alone", "--approvals", "park"];
        let died = folder.locum(&again).env("LOCUM_DIE_AT", death).status().unwrap();
        assert_eq!(died.code(), None, "{death}");
        assert_eq!(folder.locum(&again).status().unwrap().code(), Some(0), "{death}");
        let ran = fs::read_to_string(&log).unwrap_or_default().lines().count();
        // Begun and cut, its outcome is unknown: it is never begun twice, and always if nobody can
        // have begun it.
        assert!(ran == 1 || (ran == 0 && death != "before:1"), "{death}: ran {ran} times");
    }
}

/// The append that keeps the message is the fourth: opened, asked, replied, said.
#[cfg(debug_assertions)]
#[test]
fn a_message_is_said_once_though_whoever_took_it_died_before_it_said_so() {
    for death in ["before:4", "after:4"] {
        let folder = Folder::new(&format!("said-{}", death.replace(':', "-")));
        let (mut holder, _lines) = folder.mortal_holder(death);
        let sent = folder.locum(&["send", "-s", "held", "hello"]).output().unwrap();
        let told = String::from_utf8_lossy(&sent.stdout);
        assert!(sent.status.success() && told.starts_with("received as i"), "{sent:?}");
        assert_eq!(holder.wait().unwrap().code(), None);
        let queue = folder.locum(&["queue", "-s", "held"]).output().unwrap();
        let queue = String::from_utf8_lossy(&queue.stdout);
        assert_eq!(queue.matches("hello").count(), 1, "{death}: {queue}");
    }
}

#[test]
fn a_line_that_is_not_text_is_no_reason_to_think_that_nobody_is_there() {
    let folder = Folder::new("bytes");
    let model = folder.script(ASKS);
    let mut run = folder.locum(&["run", "go", "-m", &model, "--approvals", "stdio", "--json"]);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut stdin = run.stdin.take().unwrap();
    stdin.write_all(b"\xff\xfe\n").unwrap();
    // It has been read when it has been complained about; only then is the rest said.
    let mut complaint = String::new();
    BufReader::new(run.stderr.take().unwrap()).read_line(&mut complaint).unwrap();
    assert!(complaint.starts_with("stdin: not understood"), "{complaint}");
    let stdout = BufReader::new(run.stdout.take().unwrap());
    for line in stdout.lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "ask.opened" {
            let allow = json!({"type": "decision", "id": line["id"], "decision": "allow"});
            writeln!(stdin, "{allow}").unwrap();
        }
    }
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_new_data_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("alone");
    let model = folder.script(QUICK);
    assert!(folder.locum(&["run", "hi", "-m", &model]).status().unwrap().success());
    let mode = fs::metadata(folder.0.join("data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Two hundred names of one file: a search through them takes longer than any test may.
#[test]
fn a_search_under_way_does_not_keep_a_run_from_ending() {
    let folder = Folder::new("search");
    let place = folder.0.join("place");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("0"), "some words of no use\n".repeat(190_000)).unwrap();
    for name in 1..200 {
        fs::hard_link(place.join("0"), place.join(name.to_string())).unwrap();
    }
    let script = "agents: {main: [{calls: [{grep: {pattern: '(a|b)*zzz.*q'}}]}, {say: never}]}";
    let model = folder.script(script);
    let mut run = Command::new("timeout");
    run.args(["-k", "20", "-s", "INT", "1"]).arg(env!("CARGO_BIN_EXE_locum"));
    run.args(["run", "go", "-m", &model, "--json", "-C"]).arg(&place).stdin(Stdio::null());
    let run = run.arg("--data").arg(folder.0.join("data")).output().unwrap();
    let lines = lines(&run);
    let last = lines.last().unwrap();
    assert_eq!((&last["status"], &last["exit"]), (&json!("cancelled"), &json!(130)));
    // It ended by itself: `timeout` says 137 if it had to kill it.
    assert_eq!(run.status.code(), Some(124), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn a_reader_that_stands_still_does_not_keep_a_run_from_ending() {
    let folder = Folder::new("stuck");
    // Far more than a pipe holds.
    let model = folder.script(&QUICK.replace("done", &"much ".repeat(100_000)));
    let mut run = folder.locum(&["run", "hi", "-m", &model, "--json"]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("message.delta")));
    signal("-TERM", run.id());
    // The pipe stays open and nobody reads it; whoever never ends is killed, and has no code.
    let mut kill = Command::new("sh");
    kill.args(["-c", "sleep 20; kill -9 $0", &run.id().to_string()]);
    let mut kill = kill.spawn().unwrap();
    let ended = run.wait().unwrap();
    kill.kill().unwrap();
    kill.wait().unwrap();
    drop(lines);
    assert_eq!(ended.code(), Some(143));
}

#[test]
fn what_was_allowed_while_nobody_was_there_is_not_run_by_a_fork_as_well() {
    let folder = Folder::new("forked");
    let log = folder.0.join("effects.log");
    let logged = format!("says: built, log: {}", log.display());
    let model = folder.script(&ASKS.replace("says: built", &logged));
    let run = ["run", "go", "-m", &model, "-s", "one", "--approvals", "park"];
    assert_eq!(folder.locum(&run).status().unwrap().code(), Some(10));
    assert!(folder.locum(&["approve", "q"]).status().unwrap().success());
    let listed = folder.locum(&["sessions", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let last = listed[0]["last_seq"].to_string();
    let fork = ["fork", "one", "--at", &last, "--name", "two"];
    assert!(folder.locum(&fork).status().unwrap().success());
    for session in ["one", "two"] {
        let again = ["run", "--resume", session, "--approvals", "park"];
        assert_eq!(folder.locum(&again).status().unwrap().code(), Some(0), "{session}");
    }
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
}
