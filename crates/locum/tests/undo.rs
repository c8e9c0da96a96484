//! `locum undo` through the real program. What is kept is written here as the tools write it; that
//! they write it so is tested beside them.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Act, Folder, converse};

/// The SHA-256 of a text, from whoever has it on this machine.
fn sha256(text: &str, folder: &Path) -> String {
    let file = folder.join("hashed");
    fs::write(&file, text).unwrap();
    let output = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
    fs::remove_file(&file).unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

fn state(text: Option<&str>, folder: &Path) -> Value {
    text.map_or(Value::Null, |text| json!({ "sha256": sha256(text, folder), "mode": 0o644 }))
}

#[test]
fn an_agent_is_undone_from_the_command_line() {
    let folder = Folder::new("undo");
    let model = folder.script("script.yaml", "agents: {main: [{say: done}]}");
    let told = converse(&folder, &["run", "go", "-m", &model], |_| Act::Nothing);
    let key = told.lines[0]["session"].as_str().unwrap().to_owned();
    let work = folder.0.canonicalize().unwrap().join("work");
    fs::create_dir(&work).unwrap();
    let data = folder.data();
    // A file changed, one created, one deleted, one that somebody has changed since.
    let files = [
        ("changed", Some("old"), Some("new"), Some("new")),
        ("created", None, Some("new"), Some("new")),
        ("deleted", Some("old"), None, None),
        ("touched", Some("old"), Some("new"), Some("newer")),
    ];
    let (mut index, contents) = (String::new(), data.join("kept/contents"));
    for (name, before, after, now) in files {
        let path: PathBuf = work.join(name);
        if let Some(now) = now {
            fs::write(&path, now).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        if let Some(before) = before {
            let digest = sha256(before, &folder.0);
            fs::create_dir_all(contents.join(&digest[..2])).unwrap();
            fs::write(contents.join(&digest[..2]).join(&digest[2..]), before).unwrap();
        }
        let (before, after) = (state(before, &folder.0), state(after, &folder.0));
        let what = json!({ "changed": { "path": path, "before": before, "after": after } });
        let row = json!({ "at": 1, "session": key, "agent": 0, "call": "c1_0", "what": what });
        index += &row.to_string();
        index.push('\n');
    }
    fs::create_dir_all(data.join("kept").join(&key)).unwrap();
    fs::write(data.join("kept").join(&key).join("a0.jsonl"), index).unwrap();

    let undo = |more: &[&str]| {
        let words = [&["undo", "main", "-s", &key], more].concat();
        let output = folder.output(&words);
        let (text, exit) = (String::from_utf8(output.stdout).unwrap(), output.status.code());
        (text.replace(&format!("{}/", work.display()), ""), exit)
    };
    let listed = "c1_0 changed changed\nc1_0 created created\nc1_0 deleted deleted\n\
                  c1_0 changed touched\n";
    assert_eq!(undo(&["--list"]), (listed.to_owned(), Some(0)));
    let done = "restored  changed\nremoved   created\nrestored  deleted\n\
                left      touched: it has been changed since\n";
    let said = format!("{done}nothing was done: --dry-run\n");
    assert_eq!(undo(&["--dry-run"]), (said, Some(1)));
    assert_eq!(fs::read_to_string(work.join("changed")).unwrap(), "new");
    assert_eq!(undo(&[]), (done.to_owned(), Some(1)));
    let read = |name: &str| fs::read_to_string(work.join(name)).ok();
    assert_eq!(read("changed").as_deref(), Some("old"));
    assert_eq!(read("created"), None);
    assert_eq!(read("deleted").as_deref(), Some("old"));
    assert_eq!(read("touched").as_deref(), Some("newer"));
    let nobody = folder.output(&["undo", "nobody", "-s", &key]);
    assert_eq!(nobody.status.code(), Some(2));
}
