//! A session that is damaged further in: what can still be read of it, and how the work goes on.

use std::fs;

use crate::{Folder, NEST, stderr, words};

/// Flips a bit in the middle of a session; returns the last event before the damage.
fn damage_late(folder: &Folder, session: &str) -> u64 {
    let steps = folder.text(&["replay", session, "--json"]);
    let steps = steps.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ends: Vec<u64> = steps.map(|step| step["last_seq"].as_u64().unwrap()).collect();
    let mut bytes = fs::read(folder.journal()).unwrap();
    // Said late, and only there.
    let needle = b"the helpers found a Needle";
    let found: Vec<usize> = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, window)| window == needle)
        .map(|(at, _)| at)
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at] ^= 1;
    }
    fs::write(folder.journal(), &bytes).unwrap();
    let told = folder.output(&["replay", session, "--json"]);
    let count = String::from_utf8(told.stdout).unwrap().lines().count();
    assert!(count > 3 && count < ends.len(), "{count} of {}", ends.len());
    ends[count - 1]
}

/// What it says of what is missing, and what it shows.
fn cut(folder: &Folder, arguments: &[&str], session: &str, last: u64) -> String {
    let output = folder.output(arguments);
    let told = stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {told}");
    let (begins, after) = (format!("session {session} is damaged: "), format!(" after #{last} "));
    let line = told.lines().find(|line| line.starts_with(&begins));
    let line = line.unwrap_or_else(|| panic!("{arguments:?}: {told}"));
    assert!(line.contains(&after) && line.contains("cannot be read"), "{line}");
    assert_eq!(told.matches(&begins).count(), 1, "told once: {told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_lies_before_the_damage_can_be_read_and_gone_on_with() {
    let folder = Folder::new("sound");
    let model = folder.script("nest.yaml", NEST);
    folder.run(&model, "two");
    let last = damage_late(&folder, "two");
    let at = last.to_string();
    let bytes = fs::read(folder.journal()).unwrap();
    for (round, key) in ["two", "two.corrupt-1"].into_iter().enumerate() {
        for (arguments, shown) in [
            (["replay", key].as_slice(), "opened"),
            (&["logs", "main", "-s", key], "Handing this over."),
            (&["logs", "main", "-f", "-s", key], "Handing this over."),
            (&["show", "lead", "-s", key], "lead this"),
            (&["agents", "-s", key], "main/lead/helper-two"),
            (&["timeline", key], "main/lead"),
            (&["sessions", "show", key], "Do it"),
            (&["sessions", "export", key], "I need two hands."),
            (&["sessions", "export", key, "--format", "context-jsonl"], "I need two hands."),
            (&["search", "two hands"], "I need two hands."),
            (&["cost", "--session", key], "main/lead"),
            (&["cost"], "main/lead"),
        ] {
            let text = cut(&folder, arguments, key, last);
            assert!(text.contains(shown), "{arguments:?}: {text}");
        }
        let is_same = fs::read(folder.journal()).unwrap() == bytes;
        assert!(is_same || round > 0, "looking changed something");
        let fork = format!("\ndo: locum fork {key} --at {at}\n");
        let aside = "do: locum sessions set-aside two\n";
        let told = folder.refused(&["run", "--resume", key, "on"], 7, "E113");
        assert!(told.contains(&fork), "{told}");
        assert_eq!(told.contains(aside), round == 0, "{told}");
        if round == 0 {
            folder.text(&["sessions", "set-aside", "two"]);
        } else {
            let told = folder.refused(&["sessions", "set-aside", key], 2, "E104");
            assert!(told.contains(&fork), "{told}");
        }
    }
    let beyond = (last + 1).to_string();
    let told = folder.output(&["fork", "two.corrupt-1", "--at", &beyond]);
    assert!(stderr(&told).contains("error[E122]"), "{}", stderr(&told));
    let fork = cut(
        &folder,
        &["fork", "two.corrupt-1", "--at", &at, "--name", "two"],
        "two.corrupt-1",
        last,
    );
    assert_eq!(fork, "two\ndo: locum run --resume two\n");
    let text = folder.text(&["run", "--resume", "two"]);
    assert_eq!(text, "Done: the helpers found a Needle\n");
    assert_eq!(words(&folder.json(&["agents"]), "state"), ["done"; 4]);
}

#[test]
fn what_is_damaged_from_its_beginning_is_told_where_it_is_left_out() {
    let folder = Folder::new("left-out");
    let model = folder.script("nest.yaml", NEST);
    folder.run(&model, "one");
    folder.run(&model, "two");
    folder.damage("two");
    for (command, words) in [
        (["search", "needle"].as_slice(), "not searched: Session two is damaged"),
        (&["cost"], "not counted: Session two is damaged"),
        (&["asks"], "not looked into: session two is damaged"),
    ] {
        let output = folder.output(command);
        assert!(output.status.success() && stderr(&output).contains(words), "{output:?}");
    }
    folder.text(&["sessions", "set-aside", "two"]);
    let told = folder.refused(&["replay", "two.corrupt-1"], 7, "E113");
    assert!(told.contains("\ndo: locum sessions rm two.corrupt-1"), "{told}");
}

#[test]
fn going_on_means_the_newest_session_also_if_it_is_damaged() {
    let folder = Folder::new("newest");
    let model = folder.script("nest.yaml", NEST);
    folder.run(&model, "one");
    folder.run(&model, "two");
    folder.damage("two");
    let one = folder.text(&["replay", "one", "--json"]);
    for command in [["run", "-c", "hi"].as_slice(), &["send", "hi"], &["agents"]] {
        let told = folder.refused(command, 7, "E113");
        assert!(told.starts_with("error[E113] Session two is damaged"), "{told}");
        assert!(told.contains("\ndo: locum sessions set-aside two"), "{told}");
    }
    assert_eq!(folder.text(&["replay", "one", "--json"]), one, "nothing went on elsewhere");
    // What was moved out of the way is meant no more.
    folder.text(&["sessions", "set-aside", "two"]);
    folder.text(&["run", "-c", "hi", "-m", &model]);
    assert_ne!(folder.text(&["replay", "one", "--json"]), one);
}
