//! `locum memory` through the real binary: kept, listed, found, edited and taken back.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;

use serde_json::Value;
use support::{Folder, output_of, stderr, words};

impl Folder {
    fn memory(&self, arguments: &[&str]) -> String {
        self.text(&[&["memory"], arguments].concat())
    }

    fn notes(&self, arguments: &[&str]) -> Value {
        self.json(&[&["memory"], arguments].concat())
    }

    fn editor(&self, script: &str, arguments: &[&str]) -> std::process::Output {
        let script = self.write("editor.sh", script);
        let mut command = self.locum(&[&["memory", "edit"], arguments].concat());
        command.env_remove("VISUAL").env("EDITOR", format!("sh {}", script.display()));
        output_of(command)
    }
}

#[test]
fn notes_are_kept_listed_found_shown_and_forgotten() {
    let folder = Folder::new("memory-notes");
    assert_eq!(folder.memory(&[]), "nothing is remembered here\n");
    assert_eq!(folder.notes(&["list"]), Value::Array(vec![]));
    let told = folder.memory(&["save", "Run the tests with `make test`"]);
    assert!(told.starts_with("m1 kept for workspace "), "{told}");
    let told = folder.memory(&["save", "Run the tests with `make test`"]);
    assert!(told.starts_with("m1 says so already"), "{told}");
    folder.memory(&["save", "Ann likes short answers", "--scope", "user"]);
    folder.memory(&["save", "look twice", "--scope", "agent", "--agent", "tester"]);
    assert_eq!(words(&folder.notes(&["list"]), "id"), ["m2", "m1"]);
    let mine = folder.notes(&["list", "--agent", "tester"]);
    assert_eq!(words(&mine, "id"), ["m2", "m1", "m3"]);
    assert_eq!(words(&folder.notes(&["list", "--scope", "user"]), "id"), ["m2"]);
    fs::create_dir(folder.0.join("other")).unwrap();
    assert_eq!(words(&folder.notes(&["list", "-C", "other"]), "id"), ["m2"]);

    let found = folder.notes(&["search", "how are \"tests\" run*?"]);
    assert_eq!(words(&found, "id"), ["m1"]);
    assert!(found[0]["score"].as_f64().unwrap() > 0.0, "{found}");
    assert!(folder.memory(&["search", "answers"]).contains("Ann likes short answers"));
    assert_eq!(folder.memory(&["search", "zebra"]), "nothing found\n");

    let shown = folder.notes(&["show", "m2"]);
    assert_eq!(
        (&shown["text"], &shown["source"]),
        (&"Ann likes short answers".into(), &"person".into())
    );
    assert_eq!(shown["scope"]["kind"], "user");
    assert!(folder.memory(&["show", "m2"]).ends_with("\n\nAnn likes short answers\n"));
    assert_eq!(folder.memory(&["forget", "m2"]), "m2 forgotten: Ann likes short answers\n");
    folder.refused(&["memory", "show", "m2"], 2, "E425");
    assert_eq!(words(&folder.notes(&[]), "id"), ["m1"]);
}

#[test]
fn what_goes_wrong_is_told() {
    let folder = Folder::new("memory-wrong");
    let key = format!("the key is ghp_{}", "Ab3dEf6hIj9kLm2nOp5qRs8t");
    let cases: &[(&[&str], &str)] = &[
        (&["save", ""], "E424"),
        (&["save", &key], "E424"),
        (&["save", &"x".repeat(9_000)], "E424"),
        (&["show", "m9"], "E425"),
        (&["forget", "m9"], "E425"),
        (&["show", "nine"], "E100"),
        (&["forget"], "E100"),
        (&["save", "x", "--scope", "agent"], "E429"),
        (&["list", "-C", "nowhere"], "E105"),
        (&["import", "nowhere.md"], "E427"),
        (&["export", "-o", "no/where.md"], "E427"),
    ];
    for (arguments, code) in cases {
        let told = folder.refused(&[&["memory"], *arguments].concat(), 2, code);
        assert!(!told.contains("Ab3dEf6h"), "{told}");
    }
    let mut command = folder.locum(&["memory", "edit"]);
    command.env_remove("VISUAL").env_remove("EDITOR");
    assert!(stderr(&output_of(command)).starts_with("error[E426] "));
    assert!(stderr(&folder.editor("exit 3", &[])).starts_with("error[E426] "));

    folder.memory(&["save", "kept"]);
    let file = folder.data().join("memory.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
    fs::write(&file, &bytes).unwrap();
    folder.refused(&["memory"], 7, "E422");
    fs::write(&file, "no database at all, and long enough to look like one").unwrap();
    let told = folder.refused(&["memory"], 7, "E421");
    assert!(told.contains("memory.db.damaged-1"), "{told}");
    assert_eq!(folder.memory(&[]), "nothing is remembered here\n");
}

#[test]
fn a_page_is_edited_and_taken_back() {
    let folder = Folder::new("memory-edit");
    for text in ["one", "two", "three"] {
        folder.memory(&["save", text]);
    }
    let program = env!("CARGO_BIN_EXE_locum");
    let (data, here) = (folder.data(), &folder.0);
    // While the page is open, somebody else changes the second note.
    let script = format!(
        "sed -i -e 's/^one$/One!/' -e 's/^two$/Two!/' -e '/^## m3/,/^three$/d' \"$1\"\n\
         printf '\\n## new\\n\\nfour\\n' >> \"$1\"\n\
         '{program}' memory forget m2 --data '{}' -C '{}' >/dev/null\n",
        data.display(),
        here.display()
    );
    let output = folder.editor(&script, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "changed m1\n\
         m2 was forgotten elsewhere: your text is a new note\n\
         added a note\n\
         forgot m3\n"
    );
    let notes = folder.notes(&["list", "--scope", "workspace"]);
    assert_eq!(words(&notes, "text"), ["One!", "Two!", "four"]);
    assert_eq!(words(&notes, "source"), ["person"; 3]);
    let same = folder.editor("true", &["--json"]);
    assert_eq!(String::from_utf8(same.stdout).unwrap(), "[]\n");

    // What cannot be taken in is kept, and the way on is told.
    let output = folder.editor("printf '\\n## new\\n\\n%09000d\\n' 1 >> \"$1\"", &[]);
    let told = stderr(&output);
    assert!(told.starts_with("error[E428] ") && told.contains("a new note"), "{told}");
    let left: Vec<String> = fs::read_dir(folder.data())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("MEMORY-"))
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(told.contains(&left[0]), "{told}");
}

#[test]
fn a_page_is_exported_and_imported_later() {
    let folder = Folder::new("memory-export");
    folder.memory(&["save", "one", "--scope", "user"]);
    folder.memory(&["save", "two\n## m1\nis no heading", "--scope", "user"]);
    let page = folder.memory(&["export", "--scope", "user"]);
    assert!(page.starts_with("# Memory: user\n"), "{page}");
    folder.memory(&["export", "--scope", "user", "-o", "page.md"]);
    assert_eq!(folder.read("page.md"), page);
    let import = ["import", "page.md", "--scope", "user"];
    assert_eq!(folder.memory(&import), "nothing was changed\n");
    folder.write("page.md", &page.replace("\none\n", "\nuno\n"));
    assert_eq!(folder.memory(&import), "changed m1\n");
    assert_eq!(folder.memory(&import), "nothing was changed\n");
    let notes = folder.notes(&["export", "--scope", "user"]);
    assert_eq!(words(&notes, "text"), ["uno", "two\n## m1\nis no heading"]);
}

/// Off unless it is wanted; then after the answer, in a session of its own, never a secret.
#[test]
fn what_is_worth_keeping_is_kept_after_the_answer() {
    let folder = Folder::new("memory-extract");
    let script = r#"
agents:
  main:
    - {say: "It is built with make now.", repeat: true}
  memory:
    - calls:
        - memory_save: {text: "The project is built with make"}
        - memory_save: {text: "The key is sk-abcdefghijklmnopqrstuvwxyz123456"}
        - memory_save: {text: "Everybody likes make", scope: user}
        - memory_search: {query: make}
    - {say: "{{user}}"}
    - error: {status: 400}
"#;
    let model = folder.script("script.yaml", script);
    let run = |more: &[&str]| {
        folder.output(&[&["run", "Use make please", "-m", &model, "-s", "it"], more].concat())
    };
    assert_eq!(run(&[]).status.code(), Some(0));
    assert_eq!(folder.notes(&["list"]), Value::Array(vec![]));
    fs::create_dir_all(folder.0.join("locum")).unwrap();
    folder.write("locum/config.toml", "memory.extract = true\n");
    let output = run(&["--json", "-o", "answer.txt"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = support::lines(&output);
    assert_eq!(told.last().unwrap()["type"], "run.result");
    assert!(told.iter().all(|line| line["session"] == "it"), "nothing of it is told");
    assert_eq!(folder.read("answer.txt"), "It is built with make now.");
    let notes = folder.notes(&["list"]);
    assert_eq!(words(&notes, "text"), ["The project is built with make"]);
    let from = &folder.notes(&["show", "m1"])["provenance"];
    let from = if from.is_null() { &notes[0] } else { from };
    assert!(from.to_string().contains("\"it\""), "{from}");
    assert!(from.to_string().contains("\"memory\""), "{from}");

    let lines = folder.text(&["sessions", "export", "it.memory"]);
    let heard = "<person>\\nUse make please\\n</person>\\n<assistant>\\nIt is built with make now.";
    assert!(lines.contains(heard), "{lines}");
    assert!(lines.contains("it seems to hold an API key"), "{lines}");
    assert!(lines.contains("denied by rule: deny memory_save"), "{lines}");
    assert!(lines.contains("Tool not found: memory_search"), "{lines}");
    let cost = folder.text(&["cost", "--json"]);
    assert!(cost.contains("memory"), "{cost}");
    // Nobody means it who names no session, and nobody hears that it failed.
    let again = folder.output(&["run", "-c", "And again"]);
    assert_eq!((again.status.code(), stderr(&again)), (Some(0), ""));
    let lines = folder.text(&["sessions", "export", "it.memory"]);
    assert!(lines.contains("And again") && lines.contains("\"type\":\"error\""), "{lines}");
    assert_eq!(words(&folder.notes(&["list"]), "id"), ["m1"]);
}
