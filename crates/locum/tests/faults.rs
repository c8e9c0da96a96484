//! Faults around the real program: a second one at the same data folder, a holder that is killed
//! or stopped, a disk that is full, and asks that outlive the process that asked.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

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
        let model = self.script(ENDLESS);
        let mut holder = self.locum(&["run", "go", "-m", &model, "--json", "-s", "held"]);
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
    fn mount(path: &Path) -> Option<Tiny> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Tiny(path.to_owned()))
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
    let Some(tiny) = Tiny::mount(&folder.0.join("data")) else {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
        return;
    };
    let calls = "{calls: [{note: {n: 1}}, {note: {n: 2}}, {note: {n: 3}}]}, ".repeat(30);
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
