//! A disk that stays full: what is refused, what still works, and what people are told.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::{Folder, QUICK, Tiny};

/// Larger than what can never have room to keep back.
const SIZE: &str = "48m";

fn told(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new("timeout");
    command.arg("30").arg(env!("CARGO_BIN_EXE_locum")).args(arguments);
    let output = command.arg("--data").arg(folder.0.join("data")).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn full(folder: &Folder) -> Option<Tiny> {
    let tiny = Tiny::mount(&folder.0.join("data"), SIZE);
    if tiny.is_none() {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
    }
    tiny
}

fn free(path: &Path) -> u64 {
    let output = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    numbers.next().unwrap() * numbers.next().unwrap()
}

#[test]
fn without_room_to_keep_back_nothing_is_begun_and_the_room_that_is_there_stays() {
    let folder = Folder::new("no-room");
    let Some(tiny) = full(&folder) else { return };
    let log = folder.0.join("effects.log");
    let model = folder.script(&format!(
        "tools: {{work: {{class: exec, log: {}, says: worked}}}}\n\
         agents: {{main: [{{calls: [{{work: {{n: 1}}}}]}}, {{say: done}}]}}",
        log.display()
    ));
    let quick = format!("script:{}", folder.0.join("quick.yaml").display());
    fs::write(folder.0.join("quick.yaml"), QUICK).unwrap();
    assert_eq!(told(&folder, &["run", "hi", "-m", &quick, "-s", "s"]).0, Some(0));
    // As after a run that has used what was kept back, and somebody who made room.
    fs::remove_file(tiny.0.join("journal.db-reserve")).unwrap();
    tiny.fill(14 << 20);
    let before = free(&tiny.0);
    for arguments in [
        ["run", "--resume", "s", "more", "-m", &model, "--allow", "work"].as_slice(),
        &["run", "hi", "-m", &model, "-s", "another", "--allow", "work"],
    ] {
        let (exit, _, error) = told(&folder, arguments);
        assert_eq!(exit, Some(7), "{error}");
        assert!(error.starts_with("error[E114] The disk is full; nothing was begun."), "{error}");
        let next = "\ndo: make room (19 MB), then the same command\n";
        assert!(error.ends_with(next), "{error}");
    }
    assert!(!log.exists());
    assert!(free(&tiny.0) + (64 << 10) >= before, "{} of {before}", free(&tiny.0));
    let (exit, doctor, _) = told(&folder, &["doctor"]);
    assert!(doctor.contains("make room (19 MB)"), "{doctor}");
    assert_ne!(exit, Some(0));

    fs::remove_file(tiny.0.join("ballast")).unwrap();
    let again = ["run", "--resume", "s", "more", "-m", &model, "--allow", "work"];
    let (exit, text, error) = told(&folder, &again);
    assert_eq!((exit, text.as_str()), (Some(0), "done\n"), "{error}");
}

#[test]
fn on_a_full_disk_sessions_are_seen_and_removed_and_the_rest_is_told_in_words() {
    let folder = Folder::new("full-seen");
    let Some(tiny) = full(&folder) else { return };
    let model = folder.script(QUICK);
    for session in ["s", "t"] {
        assert_eq!(told(&folder, &["run", "hi", "-m", &model, "-s", session]).0, Some(0));
    }
    assert!(tiny.0.join("journal.db-reserve").exists());
    tiny.fill(0);
    let (exit, listed, error) = told(&folder, &["sessions"]);
    assert_eq!(exit, Some(0), "{error}");
    assert!(listed.contains("done"), "{listed}");
    for arguments in
        [["send", "-s", "s", "hello"].as_slice(), &["run", "hi", "-m", &model, "-s", "another"]]
    {
        let (exit, _, error) = told(&folder, arguments);
        assert_eq!(exit, Some(7), "{error}");
        assert!(error.starts_with("error[E114] "), "{error}");
        assert!(error.contains("\ndo: make room") && error.contains("the same command"), "{error}");
        assert!(!error.contains("(any)") && !error.contains("Error code"), "{error}");
    }
    let (exit, doctor, _) = told(&folder, &["doctor"]);
    assert_ne!(exit, Some(0));
    assert!(doctor.contains("the disk is full") && !doctor.contains("can be written"), "{doctor}");
    let (exit, removed, error) = told(&folder, &["sessions", "rm", "t"]);
    assert_eq!((exit, removed.as_str()), (Some(0), "removed t\n"), "{error}");
    let (_, listed, _) = told(&folder, &["sessions"]);
    assert!(listed.contains("\ns ") && !listed.contains("\nt "), "{listed}");
}

#[test]
fn a_folder_that_cannot_be_made_is_not_promised() {
    let folder = Folder::new("read-only");
    let mount = folder.0.join("mount");
    let Some(tiny) = Tiny::mount(&mount, "1m") else {
        eprintln!("SKIPPED: a small file system can be mounted only by root; nothing was tested");
        return;
    };
    fs::set_permissions(&tiny.0, fs::Permissions::from_mode(0o755)).unwrap();
    let mut still = Command::new("mount");
    assert!(still.args(["-o", "remount,ro"]).arg(&tiny.0).status().unwrap().success());
    let mut doctor = Command::new("timeout");
    doctor.arg("30").arg(env!("CARGO_BIN_EXE_locum")).arg("doctor");
    let doctor = doctor.arg("--data").arg(mount.join("deep/data")).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("cannot be written") && !text.contains("first run makes it"), "{text}");
    assert_ne!(doctor.status.code(), Some(0));
}
