//! Sessions made by real runs, looked at in every way.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{Folder, NEST, PATIENCE, Watch, files, stderr, words};

/// Waits for ever in the middle: the lead's second turn.
fn slow() -> String {
    NEST.replace("hang_ms: 50", "hang_ms: 60000")
}

#[test]
fn where_nothing_is_there_is_nothing_and_nothing_is_made() {
    let folder = Folder::new("nothing");
    for command in [["sessions"].as_slice(), &["asks"], &["search", "x"]] {
        assert_eq!(folder.json(command), json!([]), "{command:?}");
    }
    assert_eq!(folder.json(&["cost"])["rows"], json!([]));
    for command in [["agents"].as_slice(), &["queue", "list"], &["show", "main"]] {
        folder.refused(command, 2, "E120");
    }
    for command in ["replay", "timeline"] {
        folder.refused(&[command, "nobody"], 2, "E120");
    }
    folder.refused(&["fork", "nobody", "--at", "3"], 2, "E120");
    folder.refused(&["sessions", "rm", "nobody"], 2, "E120");
    assert_eq!(files(&folder.0), Vec::<String>::new());
}

#[test]
fn a_run_that_has_ended_is_seen_from_every_side() {
    let folder = Folder::new("sides");
    let model = folder.script("nest.yaml", NEST);
    folder.run(&model, "nest");

    let listed = folder.json(&["sessions"]);
    assert_eq!(listed[0]["session"], "nest");
    assert_eq!(listed[0]["counts"], json!({ "done": 4 }));
    assert_eq!(listed[0]["asked"], "Do it");
    assert_eq!(listed[0]["damaged"], Value::Null);
    let shown = folder.json(&["sessions", "show", "nest"]);
    assert_eq!(shown["agents"].as_array().unwrap().len(), 4);

    let agents = folder.json(&["agents"]);
    let paths = ["main", "main/lead", "main/lead/helper-one", "main/lead/helper-two"];
    assert_eq!(words(&agents, "path"), paths);
    assert_eq!(words(&agents, "state"), ["done"; 4]);
    assert_eq!(agents[1]["own_usd"], Value::Null, "an unknown price is not zero");
    let text = folder.text(&["agents", "--tree"]);
    assert!(text.contains("a2      helper-one  done   ?    ?"), "{text}");

    let lead = folder.json(&["show", "main/lead"]);
    assert_eq!((&lead["brief"], &lead["mode"]), (&json!("lead this"), &json!("floor")));
    assert_eq!(lead["result"], "the helpers found a Needle");
    assert_eq!(lead["receipt"]["tally"]["spawned"], 2);
    assert_eq!(words(&lead["children"], "id"), ["a2", "a3"]);

    let logs = folder.json(&["logs", "helper-one"]);
    let kinds = ["told", "said", "called", "returned", "called", "returned", "ended"];
    assert_eq!(words(&logs, "kind"), kinds);
    assert_eq!(logs[1]["text"], "Helping \u{1b}[31mred\u{202e}", "JSON keeps it");
    for command in [["logs", "a2"].as_slice(), &["replay", "nest"], &["search", "helping"]] {
        let text = folder.text(command);
        assert!(text.contains("red"), "{command:?}: {text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{command:?}");
    }
    assert!(!folder.text(&["logs", "a2", "--json"]).contains(['\u{1b}', '\u{202e}']));

    let found = folder.json(&["search", "NEEDLE"]);
    assert_eq!(words(&found, "kind"), ["said", "returned", "result"], "the newest first");
    assert_eq!(words(&found, "path"), ["main", "main", "main/lead"]);
    assert_eq!(folder.json(&["search", "needle", "--limit", "1"]).as_array().unwrap().len(), 1);

    let cost = folder.json(&["cost", "--by", "model"]);
    assert_eq!(cost["total"]["replies"], 8);
    assert_eq!((&cost["total"]["in"], &cost["total"]["out"]), (&json!(800), &json!(160)));
    assert_eq!((&cost["total"]["usd"], &cost["total"]["unpriced"]), (&Value::Null, &json!(8)));
    assert_eq!(words(&cost["rows"], "name"), [model]);
    assert!(folder.text(&["cost"]).contains("8 of 8 replies have no known price"));

    let timeline = folder.json(&["timeline", "nest"]);
    assert_eq!(words(&timeline["agents"], "path"), paths);
    assert!(timeline["agents"][2]["model_ms"].as_u64().unwrap() >= 50);
    assert!(timeline["agents"][0]["waiting_ms"].as_u64().unwrap() >= 50);
    assert_eq!(timeline["longest_wait"]["state"], "child");
    let bars = folder.text(&["timeline", "nest"]);
    let widest = bars.lines().skip(1).map(|line| line.chars().count()).max();
    assert!(widest <= Some(80) && bars.contains("main/lead/helper-one  |"), "{bars}");
}

#[test]
fn a_replay_steps_through_what_was_decided() {
    let folder = Folder::new("replay");
    folder.run(&folder.script("nest.yaml", NEST), "nest");
    let steps = folder.text(&["replay", "nest", "--json"]);
    let steps: Vec<Value> = steps.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&steps[0]["seq"], &steps[0]["last_seq"]), (&json!(1), &json!(3)));
    let follows = |pair: &[Value]| {
        pair[0]["last_seq"].as_u64().unwrap() + 1 == pair[1]["seq"].as_u64().unwrap()
    };
    assert!(steps.windows(2).all(follows));
    assert!(steps[1]["owed"][0]["call_model"].is_object(), "main must be answered");
    assert_eq!(steps[1]["view"]["agents"][0]["state"], "model");
    let last = &steps[steps.len() - 1];
    assert_eq!((&last["owed"], &last["deadline"]), (&json!([]), &Value::Null));
    assert_eq!(last["view"]["counts"], json!({ "done": 4 }));

    // Every event of an entry leads to it.
    for at in ["4", "5", "6"] {
        assert_eq!(folder.json(&["replay", "nest", "--at", at]), steps[1], "{at}");
    }
    let text = folder.text(&["replay", "nest", "--at", "4"]);
    assert!(text.contains("> call the model for main (#6"), "{text}");
    let told = folder.refused(&["replay", "nest", "--at", "4000"], 2, "E122");
    assert!(told.contains("Its events are 1 to "), "{told}");
}

#[test]
fn names_that_are_not_clear_are_not_guessed() {
    let folder = Folder::new("names");
    folder.run(&folder.script("nest.yaml", NEST), "nest");
    for name in ["a3", "main/lead/helper-two", "helper-two", "helper-t", "@helper-two"] {
        assert_eq!(folder.json(&["show", name])["id"], "a3", "{name}");
    }
    for command in ["show", "logs"] {
        let told = folder.refused(&[command, "help"], 2, "E121");
        let both = "a2 main/lead/helper-one, a3 main/lead/helper-two";
        assert!(told.contains(both), "{told}");
        let told = folder.refused(&[command, "leda"], 2, "E120");
        assert!(told.contains("Near it: a1 main/lead"), "{told}");
    }
    let told = folder.refused(&["agents", "-s", "nets"], 2, "E120");
    assert!(told.contains("Near it: nest"), "{told}");
}

#[test]
fn a_run_under_way_can_be_watched_over_its_death_until_the_end() {
    let folder = Folder::new("watched");
    let model = folder.script("nest.yaml", &slow());
    let running = folder.run_until(&model, "nest", &["turn.started", "\"turn\":2", "helper-two"]);
    let agents = folder.json(&["agents"]);
    assert_eq!(words(&agents, "state"), ["child", "child", "model", "model"]);
    assert_eq!(folder.json(&["sessions"])[0]["damaged"], Value::Null);
    let so_far = folder.json(&["logs", "helper-one"]);

    // Followed beside the first process and into the next.
    let mut logs = folder.locum(&["logs", "helper-one", "-f", "--json"]);
    let mut logs = logs.stdout(Stdio::piped()).spawn().unwrap();
    let _watch = Watch::over(logs.id(), PATIENCE);
    let said = BufReader::new(logs.stdout.take().unwrap()).lines();
    let mut said = said.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let known = so_far.as_array().unwrap();
    for line in known {
        assert_eq!(said.next().as_ref(), Some(line));
    }
    running.kill();
    fs::write(folder.0.join("nest.yaml"), NEST).unwrap();
    folder.text(&["run", "--resume", "nest"]);
    let lines: Vec<Value> = known.iter().cloned().chain(said).collect();
    assert!(logs.wait().unwrap().success());
    assert_eq!(lines[lines.len() - 1]["kind"], "ended");
    assert_eq!(json!(lines), folder.json(&["logs", "helper-one"]));
    assert_eq!(words(&folder.json(&["agents"]), "state"), ["done"; 4]);
}

#[test]
fn following_ends_when_the_session_is_removed() {
    let folder = Folder::new("removed");
    folder.run(&folder.script("nest.yaml", NEST), "nest");
    let known = folder.json(&["logs", "main"]).as_array().unwrap().len();
    let mut logs = folder.locum(&["logs", "main", "-f", "--json"]);
    let mut logs = logs.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watch = Watch::over(logs.id(), PATIENCE);
    let mut said = BufReader::new(logs.stdout.take().unwrap()).lines();
    assert_eq!(said.by_ref().take(known).count(), known, "main rests, and does not end");
    folder.text(&["sessions", "rm", "nest"]);
    assert_eq!(said.count(), 0);
    let output = logs.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error[E120]"), "{}", stderr(&output));
}

#[test]
fn after_a_kill_everything_is_seen_and_nothing_was_touched() {
    let folder = Folder::new("killed");
    let model = folder.script("slow.yaml", &slow());
    folder.run_until(&model, "nest", &["turn.started", "\"turn\":2", "helper-two"]).kill();
    let before = fs::read(folder.journal()).unwrap();
    let agents = folder.json(&["agents", "-s", "nest"]);
    assert_eq!(words(&agents, "state"), ["child", "child", "model", "model"]);
    let last = folder.json(&["sessions"])[0]["last_seq"].as_u64().unwrap();
    let owed = folder.json(&["replay", "nest", "--at", &last.to_string()])["owed"].clone();
    assert_eq!(owed.as_array().unwrap().len(), 2, "both helpers must be answered");
    assert_eq!(fs::read(folder.journal()).unwrap(), before);

    // And the next process goes on from there.
    fs::write(folder.0.join("slow.yaml"), NEST).unwrap();
    let text = folder.text(&["run", "--resume", "nest"]);
    assert_eq!(text, "Done: the helpers found a Needle\n");
}

#[test]
fn one_damaged_session_hides_no_other() {
    let folder = Folder::new("damaged");
    let model = folder.script("nest.yaml", NEST);
    for session in ["one", "two", "three"] {
        folder.run(&model.clone(), session);
    }
    let bytes = folder.damage("two");

    let listed = folder.json(&["sessions"]);
    assert_eq!(words(&listed, "session").len(), 3);
    let damaged: Vec<&Value> =
        listed.as_array().unwrap().iter().filter(|row| !row["damaged"].is_null()).collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0]["session"], "two");
    assert!(damaged[0]["damaged"].as_str().unwrap().contains("checksum"), "{}", damaged[0]);
    let text = folder.text(&["sessions"]);
    assert!(text.contains("damaged"), "{text}");

    assert_eq!(words(&folder.json(&["search", "needle"]), "session").len(), 6);
    assert_eq!(folder.json(&["cost"])["total"]["replies"], 16);
    assert_eq!(folder.json(&["agents"]).as_array().unwrap().len(), 4);
    folder.refused(&["agents", "-s", "two"], 7, "E113");
    folder.refused(&["replay", "two"], 7, "E113");
    assert_eq!(fs::read(folder.journal()).unwrap(), bytes, "looking changed nothing");

    folder.text(&["sessions", "rm", "two"]);
    assert_eq!(words(&folder.json(&["sessions"]), "session"), ["three", "one"]);
    folder.refused(&["sessions", "rm", "two"], 2, "E120");
}

#[test]
fn a_damaged_session_is_moved_aside_and_never_removed() {
    let folder = Folder::new("aside");
    let model = folder.script("nest.yaml", NEST);
    for session in ["one", "two"] {
        folder.run(&model, session);
    }
    for round in 1..=2 {
        folder.damage("two");
        let next = "do: locum sessions set-aside two";
        let told = folder.refused(&["run", "--resume", "two", "on"], 7, "E113");
        assert!(told.contains(next), "{told}");
        assert!(folder.text(&["sessions"]).contains(next));
        let doctor = folder.output(&["doctor"]);
        assert!(String::from_utf8_lossy(&doctor.stdout).contains(&next[4..]), "{doctor:?}");
        assert_ne!(doctor.status.code(), Some(0));

        folder.refused(&["sessions", "set-aside", "one"], 2, "E104");
        folder.refused(&["sessions", "set-aside", "six"], 2, "E120");
        let aside = format!("two.corrupt-{round}");
        let told = folder.json(&["sessions", "set-aside", "two"]);
        assert_eq!((&told["set_aside"], &told["kept_as"]), (&json!("two"), &json!(aside)));
        assert!(told["why"].as_str().unwrap().contains("checksum"), "{told}");
        folder.refused(&["sessions", "set-aside", "two"], 2, "E120");
        folder.refused(&["sessions", "set-aside", &aside], 2, "E104");
        folder.refused(&["agents", "-s", &aside], 7, "E113");
        // The name is free, and everybody else goes on.
        let lines = folder.run(&model, "two");
        assert_eq!(lines[0]["resumed"], false);
    }
    let text = folder.text(&["run", "--resume", "one", "on", "-m", &model]);
    assert!(!text.is_empty());
    let mut names = words(&folder.json(&["sessions"]), "session").join(" ");
    assert!(names.ends_with("two.corrupt-1 two.corrupt-2"), "{names}");
    let doctor = folder.output(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.contains("2, all whole; damaged and set aside: two.corrupt-1"), "{doctor}");
    // What is left of them is in the file, until somebody says that nobody wants it.
    let kept = |flipped: &[u8]| {
        let bytes = fs::read(folder.journal()).unwrap();
        bytes.windows(flipped.len()).filter(|window| *window == flipped).count()
    };
    let mut flipped = b"{\"opened\":{\"session\":\"two\"}}".to_vec();
    flipped[24] ^= 1;
    assert!(kept(&flipped) >= 2);
    folder.text(&["sessions", "rm", "two.corrupt-1"]);
    names = words(&folder.json(&["sessions"]), "session").join(" ");
    assert!(
        names.ends_with("two two.corrupt-2") || names.ends_with("one two.corrupt-2"),
        "{names}"
    );
}

#[test]
fn removing_and_forking_wait_for_the_one_who_writes() {
    let folder = Folder::new("locked");
    folder.run(&folder.script("nest.yaml", NEST), "old");
    let model = folder.script("slow.yaml", &slow());
    let running = folder.run_until(&model, "new", &["turn.started", "\"turn\":2", "helper-two"]);
    for command in [["sessions", "rm", "old"].as_slice(), &["fork", "old", "--at", "6"]] {
        folder.refused(command, 7, "E111");
    }
    running.kill();
    folder.text(&["sessions", "rm", "old"]);
    assert_eq!(words(&folder.json(&["sessions"]), "session"), ["new"]);
}

#[test]
fn what_makes_no_sense_is_told_with_the_right_help() {
    let folder = Folder::new("usage");
    for (arguments, help) in [
        (["fork", "nest"].as_slice(), "locum fork --help"),
        (&["logs"], "locum logs --help"),
        (&["cost", "--by", "hour"], "locum cost --help"),
        (&["frok"], "locum --help"),
        (&["search", " "], "locum search --help"),
        (&["queue", "edit"], "locum queue edit --help"),
    ] {
        let told = folder.refused(arguments, 2, "E100");
        assert!(told.ends_with(&format!("do: {help}\n")), "{told}");
    }
}

#[test]
fn shells_and_readers_get_what_the_flags_say() {
    let folder = Folder::new("man");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.text(&["completions", shell]);
        assert!(script.contains("timeline"), "{shell}");
    }
    let pages = folder.0.join("pages");
    folder.text(&["man", pages.to_str().unwrap()]);
    let pages = files(&pages);
    for page in ["locum.1", "locum-fork.1", "locum-sessions-export.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
    let output = folder.locum(&["man", "/dev/null/pages"]).output().unwrap();
    assert!(stderr(&output).starts_with("error[E124]"), "{}", stderr(&output));
}
