//! Where walls can be made of Landlock alone, what is not kept is said and every command asks;
//! whoever agrees gets it run behind what walls there are.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::process::Command;

use serde_json::json;
use support::{Folder, Running, of_type, output_of};

/// Without rights in a world that has no worlds in it.
const ALONE: &str = "echo 0 > /proc/sys/user/max_user_namespaces; \
     exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"";

/// The same command where nothing but Landlock works, or why there is no such place here.
fn alone(inner: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "bash", "-c", ALONE, "alone"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(std::process::Stdio::null());
    command
}

#[test]
fn what_weak_walls_do_not_keep_is_asked_about() {
    let folder = Folder::new("weak");
    let doctor = output_of(alone(&folder.locum(&["doctor"])));
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let Some(line) =
        doctor.lines().find(|line| line.contains("landlock") && line.contains("no nam"))
    else {
        eprintln!("SKIPPED: there is no place here where Landlock is alone: {doctor}");
        return;
    };
    assert!(line.starts_with("warn"), "{line}");
    assert!(doctor.contains("until then every command asks"), "{doctor}");
    let outside = folder.0.with_extension("outside");
    let tries = format!("echo ran > here; (echo bad > {}) 2>&1; true", outside.display());
    let script = json!({
        "agents": { "main": [{ "calls": [{ "exec": { "command": tries } }] }, { "say": "done" }] },
    });
    let model = folder.script("script.yaml", &script.to_string());
    let run = ["run", "go", "-m", &model, "--allow", "exec", "--json"];
    // A rule is no answer to this.
    let denied = output_of(alone(&folder.locum(&run)));
    let told = String::from_utf8_lossy(&denied.stderr).into_owned();
    assert!(told.contains("note: This sandbox is Landlock alone"), "{told}");
    assert_eq!(denied.status.code(), Some(3), "{told}");
    assert_eq!(folder.read("here"), "");
    let run = ["run", "go", "-m", &model, "--approvals", "stdio"];
    let mut running = Running::of(alone(&folder.locum(&run)));
    let asked = running.until_type("ask.opened");
    let told = folder.text(&["asks"]);
    assert!(told.contains("Landlock alone"), "{told}");
    running.say(&json!({ "type": "decision", "id": asked["id"], "decision": "allow" }));
    let told = running.end();
    assert_eq!(told.exit, Some(0), "{}", told.stderr);
    let result = of_type(&told.lines, "tool.finished")[0].to_string();
    assert!(result.contains("Permission denied") && !outside.exists(), "{result}");
    assert_eq!(folder.read("here"), "ran\n");
}
