//! What a person gives a definition and whom they mean by a name, through the real program: values
//! once and where they are asked for, files from where the person stands, names with spaces, the
//! words a skill was called with.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "choose/server.rs"]
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod server;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;

use serde_json::Value;
use server::{Server, says};
use support::{Folder, output_of, stderr};

/// Files of a project, with the folders they are in.
fn project(name: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(&format!("values-{name}"));
    for (file, text) in files {
        fs::create_dir_all(folder.0.join(file).parent().unwrap()).unwrap();
        folder.write(file, text);
    }
    folder
}

const ASKS: &str = "title: A\ndescription: d\nprompt: 'Read {{ f }} {{ n }}'\nparameters:\n\
    - {key: f, input_type: file, requirement: required, description: what}\n\
    - {key: n, input_type: number, requirement: optional, default: 1, description: many}\n";

const FILES: &[(&str, &str)] = &[
    ("work/a.yaml", ASKS),
    ("work/p.yaml", "title: P\ndescription: d\nprompt: p\n"),
    ("work/in.txt", "inside"),
    ("work/both.txt", "of the workspace"),
    ("both.txt", "of the shell"),
    ("out.txt", "outside"),
    ("work/.claude/agents/plain.md", "---\nname: plain\ndescription: d\n---\nx"),
    ("work/.claude/agents/two.md", "---\nname: my agent\ndescription: d\n---\nx"),
    ("work/.claude/agents/bad.md", "---\nname: bad\ndescription: d\nmaxTurns: lots\n---\nx"),
    (
        "work/.claude/agents/cat.md",
        "---\nname: cat\ndescription: d\nlocum: {passthrough: {command: [cat]}}\n---\n",
    ),
];

/// Whoever is not named says what they were told.
const ANYBODY: &str =
    "agents:\n  main: [{say: 'main: {{user}}'}]\n  '*': [{say: 'told: {{user}}'}]\n";
const NAMED: &str = "agents:\n  main: [{say: 'main: {{user}}'}]\n  played: [{say: 'played'}]\n";

#[test]
fn values_and_names_of_people() {
    let cases: &[(&str, &[&str], i32, &[&str])] = &[
        // Values go where they are asked for, once.
        (ANYBODY, &["hi", "--param", "a=1"], 2, &["error[E411] main takes no values."]),
        (ANYBODY, &["hi", "--agent", "plain", "--param", "a=1"], 2, &["plain takes no values."]),
        (NAMED, &["hi", "--agent", "played", "--param", "a=1"], 2, &["played takes no values."]),
        (
            ANYBODY,
            &["--recipe", "work/a.yaml", "--param", "n=1", "--param", "n=2"],
            2,
            &["--param n is given twice.", "\"1\" and \"2\""],
        ),
        (
            ANYBODY,
            &["--recipe", "work/a.yaml", "--param", "ff=x"],
            2,
            &["\"f\" has no value", "no parameter \"ff\"", "there are f, n"],
        ),
        (
            ANYBODY,
            &["--recipe", "work/a.yaml", "--param", "f=out.txt", "--param", "n=many"],
            2,
            &["is not a number", "do: run again with other values"],
        ),
        // Files are where the person stands, then in the workspace.
        (ANYBODY, &["--recipe", "work/a.yaml", "--param", "f=out.txt"], 0, &["Read outside 1"]),
        (ANYBODY, &["--recipe", "work/a.yaml", "--param", "f=in.txt"], 0, &["Read inside 1"]),
        (ANYBODY, &["--recipe", "work/a.yaml", "--param", "f=both.txt"], 0, &["of the shell"]),
        (ANYBODY, &["--recipe", "work/a.yaml", "--param", "f=none.txt"], 2, &["no such file"]),
        // Names.
        (ANYBODY, &["hi", "--agent", "nosuch"], 2, &["There is no definition \"nosuch\""]),
        (NAMED, &["hi", "--agent", "playd"], 2, &["The script has parts for main, played"]),
        (NAMED, &["hi", "--agent", "played"], 0, &["played"]),
        (ANYBODY, &["hi", "--agent", "bad"], 2, &["bad.md:4:11"]),
        (ANYBODY, &["@bad hi"], 2, &["bad.md:4:11"]),
        (ANYBODY, &["@my-agent rain"], 0, &["told: rain"]),
        (ANYBODY, &["@\"my agent\" rain"], 0, &["told: rain"]),
        (ANYBODY, &["@my_agent: rain"], 0, &["told: rain"]),
        (ANYBODY, &["rain", "--agent", "my agent"], 0, &["told: rain"]),
    ];
    let folder = project("people", FILES);
    for (script, arguments, exit, expected) in cases {
        let model = folder.script("script.yaml", script);
        let flags = ["run", "--trust", "-C", "work", "-m", &model];
        let output = folder.output(&[&flags, *arguments].concat());
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert_eq!(output.status.code(), Some(*exit), "{arguments:?}: {told}");
        for words in *expected {
            assert!(told.contains(words), "{arguments:?}: {words:?} is not in: {told}");
        }
    }
    let model = folder.script("script.yaml", NAMED);
    let flags = ["run", "hi", "--agent", "cat", "--mode", "auto", "--trust", "-C", "work"];
    let told = folder.output(&[&flags[..], &["-m", &model]].concat());
    assert!(!stderr(&told).contains("the script has nothing"), "{}", stderr(&told));
}

/// A model chooses no file outside the workspace.
#[test]
fn values_of_models_stay_in_the_workspace() {
    let folder = project("models", FILES);
    let script = "agents:\n  main:\n    - calls: [{call_recipe: {recipe: a, \
                  parameters: {f: PATH}}}]\n    \
                  - say: '{{last}}'\n  a: [{say: 'told: {{user}}'}]\n";
    fs::create_dir_all(folder.0.join("work/.goose/recipes")).unwrap();
    folder.write("work/.goose/recipes/a.yaml", ASKS);
    let cases = [
        ("in.txt", "told: Read inside 1"),
        ("../out.txt", "leads out of"),
        ("out.txt", "no such file"),
    ];
    for (path, expected) in cases {
        let model = folder.script("script.yaml", &script.replace("PATH", path));
        let told = folder.text(&["run", "go", "--trust", "-C", "work", "-m", &model]);
        assert!(told.contains(expected), "{path}: {told}");
    }
}

/// What its model is told of a skill or agent that a run starts with, or that is named.
fn system(folder: &Folder, arguments: &[&str]) -> String {
    let server = Server::start(|_| says("done"));
    let mut command = folder.locum(&["run", "-m", "anthropic/x", "--trust", "-C", "work"]);
    command.args(arguments);
    command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", server.base());
    let output = output_of(command);
    let asked = server.asked();
    let Some(request) = asked.first() else { panic!("{}", stderr(&output)) };
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["system"].to_string()
}

#[test]
fn what_models_are_told() {
    let folder = project(
        "told",
        &[
            (
                "work/.claude/skills/fix/SKILL.md",
                "---\nname: fix\ndescription: d\n---\nFix issue $ARGUMENTS now, not $ARGUMENTS[0].",
            ),
            ("work/.claude/agents/m.md", "---\nname: m\ndescription: d\nmemory: user\n---\nx"),
            (
                "work/.claude/agents/p.md",
                "---\nname: p\ndescription: d\nmemory: user\npermissionMode: plan\n---\nx",
            ),
            (
                "work/whole.yaml",
                "title: W\ndescription: d\nprompt: go\nsub_recipes:\n\
                 - {name: one, path: one.yaml, values: {a: 1}}\n\
                 - {name: two, path: one.yaml, description: mine}\n",
            ),
            (
                "work/one.yaml",
                "title: O\ndescription: the first\nprompt: '{{ a }}{{ b }}{{ c }}'\nparameters:\n\
                 - {key: a, input_type: string, requirement: required, description: d}\n\
                 - {key: b, input_type: string, requirement: required, description: d}\n\
                 - {key: c, input_type: string, requirement: optional, default: x, \
                    description: d}\n",
            ),
        ],
    );
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&["@fix 42"], &["Fix issue 42 now, not $ARGUMENTS[0]."], &[]),
        (&["42", "--agent", "fix"], &["Fix issue 42 now"], &[]),
        (&["hi", "--agent", "m"], &["memory_search", "memory_save"], &[]),
        (&["hi", "--agent", "p"], &["memory_search"], &["memory_save"]),
        (
            &["--recipe", "work/whole.yaml"],
            &["(parameters: a?, b, c?) the first", "(parameters: a, b, c?) mine"],
            &[],
        ),
    ];
    for (arguments, has, has_not) in cases {
        let told = system(&folder, arguments);
        for words in *has {
            assert!(told.contains(words), "{arguments:?}: {words:?} is not in {told}");
        }
        for words in *has_not {
            assert!(!told.contains(words), "{arguments:?}: {words:?} is in {told}");
        }
    }
}

#[test]
fn what_is_shown_of_them() {
    let long = format!("---\nname: {}\ndescription: d\n---\nx", "n".repeat(200));
    let folder = project(
        "shown",
        &[
            ("work/.claude/agents/long.md", &long),
            (
                "work/.claude/skills/form/SKILL.md",
                "---\nname: form\ndescription: d\ninput_schema:\n  type: object\n  \
                 properties: {city: {type: string}}\n---\nx",
            ),
        ],
    );
    let all = folder.text(&["definitions", "--trust", "-C", "work"]);
    let form = all.lines().find(|line| line.starts_with("form ")).unwrap();
    assert!(form.find("skill").unwrap() < 60, "{form}");
    let one = folder.text(&["definitions", "form", "--trust", "-C", "work"]);
    assert!(one.contains("\"city\": {"), "{one}");
}
