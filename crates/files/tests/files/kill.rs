//! A writer is killed at any moment: the file is the old one or the new one, whole, and what was
//! left beside it goes with the next write. The writer is this very program, started again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use locum_files::{Access, Desk, Roots, Stop};
use serde_json::json;

use crate::support::{Dice, Scratch, say, within};

const FOLDER: &str = "LOCUM_FILES_KILLED_IN";
const SIZE: usize = 300_000;
const KILLS: usize = 60;

/// Does nothing unless it was started to be killed.
#[test]
fn a_writer_to_be_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let desk = Desk::new(Roots::new(Path::new(&folder), Access::Writable).unwrap());
    let run = |tool, arguments| desk.run("child", tool, &arguments, &Stop::new()).unwrap();
    run("read", json!({"path": "f"}));
    for number in 0_u8.. {
        let letter = char::from(b'a' + number % 26).to_string();
        run("write", json!({"path": "f", "content": letter.repeat(SIZE)}));
    }
}

#[test]
fn old_or_new_and_never_between() {
    within(120, || {
        let scratch = Scratch::new();
        scratch.put("root/f", "0".repeat(SIZE));
        let mut dice = Dice(0x5eed);
        let (mut left, mut changed) = (0, 0);
        for round in 0..KILLS {
            let before = scratch.get("root/f");
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "kill::a_writer_to_be_killed"])
                .env(FOLDER, scratch.root())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Any moment is as good as another; most lie inside a write.
            thread::sleep(Duration::from_micros(5_000 + dice.roll(40_000) as u64));
            child.kill().unwrap();
            child.wait().unwrap();
            let after = scratch.get("root/f");
            assert_eq!(after.len(), SIZE, "round {round}");
            assert!(after.iter().all(|byte| *byte == after[0]), "round {round}");
            changed += usize::from(after != before);
            left += usize::from(fs::read_dir(scratch.root()).unwrap().count() > 1);
        }
        eprintln!("{KILLS} kills: {changed} files changed, {left} drafts found afterwards");
        assert!(changed > KILLS / 10, "the writer hardly ever wrote");
        let desk = Desk::new(scratch.roots());
        say(&desk, "read", &json!({"path": "f"})).unwrap();
        say(&desk, "write", &json!({"path": "f", "content": "end"})).unwrap();
        assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 1);
    });
}
