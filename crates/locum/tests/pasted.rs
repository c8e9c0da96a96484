//! What the program tells people to do next is pasted into a shell as it stands, and helps.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]
#![cfg(unix)]

#[expect(dead_code, reason = "other tests need more of it")]
mod support;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::Folder;

const RELEASE: &str = r#"
tools:
  bump: {class: write, says: "version {{version}}", log: effects.log}
  publish: {class: network, says: "published {{version}}", log: effects.log}
agents:
  main:
    - calls: [{bump: {version: "1.0"}}]
    - calls:
        - spawn_agent: {agent: publisher, message: "publish it", label: "the publisher"}
        - wait: {mode: all, timeout_s: 60}
    - say: "Released."
  publisher:
    - calls: [{publish: {version: "1.0"}}]
    - say: "{{last}}"
"#;

/// A line in a shell that finds the program and its data, with nobody at the keyboard.
fn paste(folder: &Folder, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_locum")).parent().unwrap();
    let mut path = OsString::from(program);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).current_dir(&folder.0).stdin(Stdio::null());
    shell.env("PATH", path).env("LOCUM_DATA", folder.0.join("data")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The first thing it says to do.
fn advice(told: &str) -> String {
    let advice = told.lines().find_map(|line| line.trim_start().strip_prefix("do: "));
    advice.unwrap_or_else(|| panic!("no advice in {told}")).to_owned()
}

#[test]
fn a_parked_release_is_finished_by_doing_what_is_said() {
    let folder = Folder::new("pasted");
    fs::write(folder.0.join("release.yaml"), RELEASE).unwrap();
    let first = "locum run 'release it' -m script:release.yaml -s 'my release' --approvals park";
    let mut run = paste(&folder, first);
    let mut resumed = String::new();
    for _ in 0..2 {
        assert_eq!(run.status.code(), Some(10), "{}", text(&run.stderr));
        let asks = paste(&folder, &advice(&text(&run.stderr)));
        let approve = advice(&text(&asks.stdout));
        assert!(approve.starts_with("locum approve q"), "{approve}");
        resumed = advice(&text(&paste(&folder, &approve).stdout));

        // Allowed, but nobody does it; and it can be allowed once only.
        let agents = text(&paste(&folder, "locum agents").stdout);
        assert!(agents.contains("no locum is at work here"), "{agents}");
        let again = text(&paste(&folder, &approve).stderr);
        assert!(again.starts_with("error[E125] ") && again.contains("allowed by"), "{again}");

        run = paste(&folder, &resumed);
    }
    assert_eq!(run.status.code(), Some(0), "{resumed}: {}", text(&run.stderr));
    assert_eq!(text(&run.stdout), "Released.\n");
    let effects = fs::read_to_string(folder.0.join("effects.log")).unwrap();
    assert_eq!(effects.lines().count(), 2, "{effects}");
    let agents = text(&paste(&folder, "locum agents").stdout);
    assert!(!agents.contains("no locum is at work"), "{agents}");
}

#[test]
fn a_paused_agent_is_named_with_the_command_that_helps_it() {
    let folder = Folder::new("paused");
    let script = r#"
agents:
  main:
    - calls: [{spawn_agent: {agent: helper, message: "try"}}, {wait: {mode: all, timeout_s: 60}}]
    - say: "Over to you."
    - say: "It came back."
      repeat: true
  helper:
    - error: {status: 400, times: 1}
    - say: "fine now"
"#;
    fs::write(folder.0.join("paused.yaml"), script).unwrap();
    let run = paste(&folder, "locum run go -m script:paused.yaml -s it");
    assert_eq!(run.status.code(), Some(10), "{}", text(&run.stderr));
    let told = text(&run.stderr);
    assert!(told.contains("main/helper: paused\n"), "{told}");
    let helped = paste(&folder, &advice(&told));
    let run = paste(&folder, &advice(&text(&helped.stdout)));
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert_eq!(text(&run.stdout), "It came back.\n");
}
