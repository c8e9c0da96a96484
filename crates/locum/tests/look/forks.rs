//! Forks and exports: the past of a session, taken elsewhere.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::{Folder, NEST, words};

fn ends(folder: &Folder, session: &str) -> Vec<u64> {
    let steps = folder.text(&["replay", session, "--json"]);
    let steps = steps.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    steps.map(|step| step["last_seq"].as_u64().unwrap()).collect()
}

#[test]
fn a_fork_from_any_decision_comes_to_the_same_end() {
    let folder = Folder::new("fork");
    let lines = folder.run(&folder.script("nest.yaml", NEST), "nest");
    let text = lines[lines.len() - 1]["text"].as_str().unwrap();
    let original = folder.text(&["replay", "nest", "--json"]);
    let ends = ends(&folder, "nest");
    // Before the second nobody has said anything yet.
    for end in &ends[1..] {
        let at = end.to_string();
        let fork = folder.json(&["fork", "nest", "--at", &at]);
        let key = fork["session"].as_str().unwrap();
        assert_eq!(fork["do"], format!("locum run --resume {key}"));
        let past = folder.json(&["replay", key, "--at", &at]);
        assert_eq!(past["last_seq"], *end, "it ends where it was cut");
        assert_eq!(folder.text(&["run", "--resume", key]), format!("{text}\n"), "at {at}");
        assert_eq!(words(&folder.json(&["agents", "-s", key]), "state"), ["done"; 4]);
    }
    assert_eq!(folder.text(&["replay", "nest", "--json"]), original, "it is as it was");
    assert_eq!(folder.json(&["sessions"]).as_array().unwrap().len(), ends.len());
}

#[test]
fn a_fork_has_a_name_of_its_own_and_a_clear_end() {
    let folder = Folder::new("fork-names");
    folder.run(&folder.script("nest.yaml", NEST), "nest");
    let told = folder.text(&["fork", "nest", "--at", "6", "--name", "other way"]);
    assert_eq!(told, "other way\ndo: locum run --resume 'other way'\n");
    assert_eq!(folder.json(&["sessions", "show", "other way"])["session"], "other way");
    let opened = folder.json(&["replay", "other way", "--at", "1"]);
    assert_eq!(opened["events"][0], json!({ "opened": { "session": "other way" } }));
    folder.refused(&["fork", "nest", "--at", "6", "--name", "other way"], 2, "E123");
    folder.refused(&["fork", "nest", "--at", "6", "--name", "nest"], 2, "E123");
    assert_eq!(folder.json(&["fork", "nest", "--at", "6"])["session"], "nest_at_6");
    assert_eq!(folder.json(&["fork", "nest", "--at", "6"])["session"], "nest_at_6_2");

    let told = folder.refused(&["fork", "nest", "--at", "5"], 2, "E122");
    assert!(told.contains("decisions end at 3 and 6"), "{told}");
    for at in ["0", "4000"] {
        folder.refused(&["fork", "nest", "--at", at], 2, "E122");
    }
}

#[test]
fn exported_events_are_the_lines_of_the_run() {
    let folder = Folder::new("events");
    let mut told = folder.run(&folder.script("nest.yaml", NEST), "nest");
    // Pieces are never kept, and how a run ended is for the one who ran it.
    told.retain(|line| line["type"] != "message.delta" && line["type"] != "run.result");
    // Nor is where it was started.
    told[0]["cwd"] = json!("");
    let exported = folder.text(&["sessions", "export", "nest"]);
    let exported: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(exported, told);

    let file = folder.0.join("out.jsonl");
    folder.text(&["sessions", "export", "nest", "-o", file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), told.len());
    let nowhere = folder.0.join("no/such/file");
    let nowhere = nowhere.to_str().unwrap();
    folder.refused(&["sessions", "export", "nest", "-o", nowhere], 2, "E124");
    folder.refused(&["sessions", "export", "nobody"], 2, "E120");
}

#[test]
fn an_exported_context_tells_children_from_main() {
    let folder = Folder::new("context");
    folder.run(&folder.script("nest.yaml", NEST), "nest");
    let text = folder.text(&["sessions", "export", "nest", "--format", "context-jsonl"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();

    let begun = of("agent_session");
    let parents: Vec<_> =
        begun.iter().map(|line| (&line["id"], &line["parent_agent_session_id"])).collect();
    assert_eq!(
        parents,
        [(&json!("a1"), &Value::Null), (&json!("a2"), &json!("a1")), (&json!("a3"), &json!("a1")),]
    );
    let ended = of("agent_session_complete");
    let results: BTreeMap<&str, &str> = ended
        .iter()
        .map(|line| (line["agent_session_id"].as_str().unwrap(), line["result"].as_str().unwrap()))
        .collect();
    let expected = [("a1", "the helpers found a Needle"), ("a2", "helped"), ("a3", "helped")];
    assert_eq!(results, BTreeMap::from(expected));
    assert!(ended.iter().all(|line| line["is_error"] == false));
    assert!(lines.iter().all(|line| line["created_at"].is_string()));

    // Each line of a child lies between its beginning and its end.
    for id in ["a1", "a2", "a3"] {
        let own: Vec<&Value> =
            lines.iter().filter(|line| line["agent_session_id"] == *id).collect();
        assert_eq!(own[0]["type"], "agent_session", "{id}");
        assert_eq!((&own[1]["type"], &own[1]["role"]), (&json!("message"), &json!("user")));
        assert_eq!(own[own.len() - 1]["type"], "agent_session_complete", "{id}");
    }
    let main: Vec<&Value> =
        lines.iter().filter(|line| line.get("agent_session_id").is_none()).collect();
    let story: Vec<&str> = main.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(story, ["message", "message", "tool_use", "tool_result", "message"]);
    assert_eq!(main[0]["content"], "Do it\nsoon");
    assert_eq!(main[2]["id"], main[3]["tool_use_id"]);
    assert_eq!(begun[0]["parent_tool_use_id"], main[2]["id"]);
    assert_eq!(main[3]["output"], "the helpers found a Needle");

    // Every use has its one result.
    let mut uses: Vec<&str> =
        of("tool_use").iter().map(|line| line["id"].as_str().unwrap()).collect();
    let mut results: Vec<&str> =
        of("tool_result").iter().map(|line| line["tool_use_id"].as_str().unwrap()).collect();
    uses.sort_unstable();
    results.sort_unstable();
    assert_eq!(uses, results);
}
