//! `locum check` through the real program: what it says of files, which files of a folder it
//! looks at, and that nothing makes it wait.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "../../definitions/tests/support/mod.rs"]
mod strangers;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use strangers::shake::Dice;
use strangers::spoil::spoil;
use strangers::{QUICK, shortest, spelled_out};
use support::{Folder, stderr};

/// What is told, without the last line, and the last line.
fn told(folder: &Folder, paths: &[&str]) -> (Vec<String>, String, i32) {
    let output = folder.output(&[&["check"], paths].concat());
    assert_eq!(stderr(&output), "", "{paths:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap_or_default();
    (lines, last, output.status.code().unwrap())
}

fn put(folder: &Folder, name: &str, text: &str) -> PathBuf {
    fs::create_dir_all(folder.0.join(name).parent().unwrap()).unwrap();
    folder.write(name, text)
}

/// File, its text, what is told of it, one a line, each the beginning of a line after the name.
const FILES: &[(&str, &str, &[&str])] = &[
    ("good.yaml", "title: t\ndescription: d\nprompt: p\n", &[]),
    ("good.json", r#"{"title": "t", "description": "d", "prompt": "p"}"#, &[]),
    ("including.yaml", "title: t\ndescription: d\n{% include \"words.txt\" %}\n", &[]),
    ("extending.yaml", "{% extends \"good.yaml\" %}\n", &[]),
    ("no_title.yaml", "description: d\nprompt: p\n", &[":1:1: error: \"title\" is missing; "]),
    (
        "near.yaml",
        "title: t\ndescription: d\nprompt: p\ninstuctions: x\n",
        &[":4:1: warning: the key \"instuctions\" is not known here; it does nothing; did"],
    ),
    (
        "two.yaml",
        "title: t\ndescription: d\nprompt: \"{{ a }}\"\nparameters:\n  - key: b\n    \
         input_type: text\n    requirement: required\n    description: d\n",
        &[
            ":3:10: error: \"a\" is used and is no parameter; ",
            ":6:17: error: \"input_type\" is the text \"text\"; one of string, number, ",
        ],
    ),
    (
        "bomb.yaml",
        "title: t\ndescription: d\nprompt: 'x {{ \"a\" * 1000000000 }}'\n",
        &[":3:15: error: the template fails: "],
    ),
    (
        "unclosed.yaml",
        "title: t\ndescription: d\nprompt: \"{{ open\"\nversion: \"{{ recipe_dir }}\"\n",
        &[":3:10: error: {{ is opened here and not closed; "],
    ),
    ("a/SKILL.md", "---\nname: a\ndescription: d\n---\nx\n", &[]),
    ("b/SKILL.md", "---\nname: b\n---\n", &[":"]),
    ("agents/x.md", "---\nname: x\ndescription: d\n---\nHi.\n", &[]),
    ("agents/y.md", "---\nnmae: y\n---\nHi.\n", &[":2:1: error: \"name\" is missing; "]),
    ("agents/README.md", "# not one", &[":1:1: error: "]),
    (
        "agents/wide.md",
        "---\nname: x\ndescription: d\npermissionMode: bypassPermissions\n---\nHi.\n",
        &[":4:1: warning: the permission mode is left out; "],
    ),
    (
        "home/.claude/agents/wide.md",
        "---\nname: x\ndescription: d\npermissionMode: bypassPermissions\n---\nHi.\n",
        &[],
    ),
    (
        "home/.claude/agents/given.md",
        "---\nname: x\ndescription: d\nlocum:\n  passthrough:\n    command: [x]\n    \
         writes: [~/.x, /, ~/.ssh, here, ~/.claude/agents]\n---\n",
        &[":7:31: error: \"here\" is no whole path; "],
    ),
    (
        "home/.claude/agents/too_much.md",
        "---\nname: x\ndescription: d\nlocum:\n  passthrough:\n    command: [x]\n    \
         writes: [~/.x, /, ~/.ssh, ~/.claude/agents]\n---\n",
        &[
            // The home of this test lies in the folder that it works in.
            ":7:14: warning: `writes`: a program cannot be given ~/.x: it overlaps the workspace",
            ":7:20: error: `writes`: a program cannot be given /: all your files are in it",
            ":7:23: error: `writes`: a program cannot be given ~/.ssh: ",
            ":7:31: error: `writes`: a program cannot be given ~/.claude/agents: ",
        ],
    ),
    (
        "agents/text.md",
        "---\nname: x\ndescription: d\nlocum: {passthrough: {command: bash run}}\n---\n",
        &[":4:32: error: \"command\" is the text \"bash run\"; "],
    ),
    ("config.toml", "model = \"a/b\"\nrecipes = [\"r\"]\nenable = [\"x\"]\n", &[]),
    (
        "locum/config.toml",
        "modle = \"x\"\n\n[limits]\nslots = 0\n",
        &[
            ":1:1: warning: there is no setting \"modle\"; it is passed over; did you mean",
            ":4:9: error: limits.slots must be a whole number, 1 or more, found integer; ",
        ],
    ),
    ("rules.toml", "rules = ['forbid exec']\n", &[":1:10: error: \"forbid exec\", column 1: "]),
    (".mcp.json", r#"{"mcpServers": {"a": {"command": "true"}}}"#, &[]),
    (
        "x/.mcp.json",
        "{\"mcpServers\": {\n  \"a\": {}}}",
        &[":2:8: error: server `a` has neither `command` nor `url`; "],
    ),
    (
        "y/mcp.json",
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\", \"args\": [\"${NOT_SET_ANYWHERE}\"]}}}",
        &[":2:3: warning: ${NOT_SET_ANYWHERE} is not set here; "],
    ),
    (
        "z/mcp.json",
        "{\"mcpServers\": {\n  \"a\": {\"type\": \"sse\", \"url\": \"https://x\"}}}",
        &[":2:", ":2:"],
    ),
    ("script.yaml", "agents:\n  main:\n    - say: hi\n", &[]),
    ("broken.yaml", "agents:\n  main:\n    - say: hi\n      sya: ho\n", &[":4:1: error: "]),
    ("notes.txt", "x", &[":1:1: error: not a definition; "]),
    ("absent.yaml", "\0absent", &[":1:1: error: "]),
];

#[test]
fn files() {
    let folder = Folder::new("check-files");
    let mut wrong = Vec::new();
    put(&folder, "words.txt", "prompt: p\n");
    for (name, text, expected) in FILES {
        if *text != "\0absent" {
            put(&folder, name, text);
        }
        let (lines, last, exit) = told(&folder, &[name]);
        let shown = lines.join("\n");
        let begins = |(line, start): (&String, &&str)| line.starts_with(&format!("{name}{start}"));
        let as_expected = lines.len() == expected.len() && lines.iter().zip(*expected).all(begins);
        if !as_expected {
            wrong.push(format!("{name}:\n{shown}"));
        }
        let errors = lines.iter().filter(|line| line.contains(": error: ")).count();
        assert_eq!(exit, if errors == 0 { 0 } else { 2 }, "{name}: {shown}");
        assert!(last.starts_with("1 file, "), "{last}");
        assert!(last.contains(&format!(", {errors} error")), "{last}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_folder_has_what_is_ours_and_one_bad_file_hides_no_other() {
    let folder = Folder::new("check-folder");
    let ours = [
        ("w/top.yaml", "title: t\nprompt: p\n"),
        ("w/.goose/recipes/any.yaml", "x: 1\n"),
        ("w/.claude/agents/one.md", "no front\n"),
        ("w/.claude/skills/s/SKILL.md", "---\nname: s\n---\n"),
        ("w/deep/er/agent.md", "---\nname: x\ndescription: d\ntools: [Raed]\n---\nHi.\n"),
        ("w/.mcp.json", "{"),
        ("w/locum/config.toml", "model = 1\n"),
        ("w/play.yaml", "agents:\n  main:\n    - say: 1\n      calls: 2\n"),
    ];
    let others = [
        ("w/ci.yaml", "name: CI\non: push\njobs: {}\n"),
        ("w/package.json", "{\"name\": \"x\", \"description\": \"y\"}"),
        ("w/docs/page.md", "---\ntitle: x\n---\ntext\n"),
        ("w/.claude/agents/README.md", "about\n"),
        ("w/.claude/skills/s/notes.md", "more\n"),
        ("w/.cargo/config.toml", "[build]\nrules = 1\n"),
        ("w/node_modules/recipes/x.yaml", "x: 1\n"),
    ];
    for (name, text) in ours.iter().chain(&others) {
        put(&folder, name, text);
    }
    let (lines, last, exit) = told(&folder, &["w", "w/top.yaml"]);
    let shown = lines.join("\n");
    for (name, _) in ours {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{name}:"))), "{name}: {shown}");
    }
    for (name, _) in others {
        assert!(!lines.iter().any(|line| line.starts_with(&format!("{name}:"))), "{name}: {shown}");
    }
    assert!(last.starts_with("8 files, "), "what is named twice is checked once: {last}");
    assert_eq!(exit, 2);
    let (lines, last, exit) = told(&folder, &["w/docs"]);
    assert_eq!((lines.len(), last.as_str(), exit), (0, "0 files, 0 errors, 0 warnings", 0));
}

/// What is good here must run there.
#[test]
fn what_cannot_run_is_an_error() {
    let folder = Folder::new("check-run");
    let recipe = |sub: &str| {
        format!("title: t\ndescription: d\nprompt: p\nsub_recipes:\n- {{name: s, path: {sub}}}\n")
    };
    put(&folder, "outside.yaml", "title: t\ndescription: d\nprompt: p\n");
    put(&folder, "w/bit.yaml", "version: 1\n");
    put(&folder, "w/there.yaml", "title: t\ndescription: d\nprompt: p\n");
    let files = [
        ("w/good.yaml", recipe("there.yaml"), ""),
        ("w/a/up.yaml", recipe("../there.yaml"), ""),
        ("w/missing.yaml", recipe("gone.yaml"), ":5:13: error: the sub-recipe \"s\" was not found"),
        ("w/away.yaml", recipe("../outside.yaml"), ":5:13: error: the sub-recipe \"s\" was not"),
        ("w/one.yaml", "{% include \"two.yaml\" %}\n".into(), ":1:4: error: the template leads"),
        ("w/two.yaml", "{% include \"one.yaml\" %}\n".into(), ":1:4: error: the template leads"),
        ("w/whole.yaml", "{% extends \"there.yaml\" %}\nversion: 1\n".into(), ""),
        // A part of a recipe, and what others make with such tags.
        ("w/part.yaml", "prompt: p\n{% include \"bit.yaml\" %}\n".into(), "-"),
        ("w/chart.yaml", "kind: x\n{% include \"chart.yaml\" %}\n".into(), "-"),
        ("w/.claude/commands/go.md", "Go on.\n".into(), "-"),
        ("w/.claude/commands/git/push.md", "---\ndescription: d\n---\nPush.\n".into(), "-"),
    ];
    for (name, text, _) in &files {
        put(&folder, name, text);
    }
    let output = folder.output(&["check", "w"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for (name, _, expected) in &files {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
        match *expected {
            "" | "-" => assert_eq!(line, None, "{text}"),
            start => assert!(line.is_some_and(|it| it[name.len()..].starts_with(start)), "{text}"),
        }
    }
    let left_out = "; 2 files in commands left out: prompts to type, not definitions";
    let last = format!("8 files, 4 errors, 0 warnings{left_out}\n");
    assert!(text.ends_with(&last), "{text}");
    // The same when it is named from inside the project.
    let named = |name: &str| {
        let mut check = folder.locum(&["check", name]);
        let output = check.current_dir(folder.0.join("w")).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    for (name, code) in [("a/up.yaml", 0), ("away.yaml", 2), ("missing.yaml", 2), ("one.yaml", 2)] {
        let (text, exit) = named(name);
        assert_eq!(exit, Some(code), "{name}: {text}");
    }
}

#[test]
fn json_has_every_part() {
    let folder = Folder::new("check-json");
    put(&folder, "a.yaml", "title: t\ndescription: d\nprompt: p\nmore: x\n");
    put(&folder, "b.yaml", "title: [\n");
    let output = folder.output(&["check", "a.yaml", "b.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&whole["files"], &whole["warnings"]), (&2.into(), &1.into()), "{whole}");
    let problems = whole["problems"].as_array().unwrap();
    let errors = problems.iter().filter(|it| it["severity"] == "error").count();
    assert_eq!(whole["errors"], errors);
    assert!(errors > 0, "{whole}");
    for problem in problems {
        let keys: Vec<&String> = problem.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["col", "file", "how", "line", "severity", "what", "why"]);
        assert!(problem["line"].as_u64().unwrap() > 0 && problem["col"].as_u64().unwrap() > 0);
    }
    assert_eq!(problems[0]["file"], "a.yaml");
    assert_eq!((&problems[0]["line"], &problems[0]["severity"]), (&4.into(), &"warning".into()));
}

/// Each must be answered as quickly as a good file, whoever names it.
#[test]
fn nothing_makes_it_wait() {
    let folder = Folder::new("check-wait");
    let recipe = |more: &str| format!("title: t\ndescription: d\nprompt: p\n{more}\n");
    let bomb = |first: &str| {
        let level = |n: usize| format!("a{n}: &a{n} [{}x]\n", format!("*a{}, ", n - 1).repeat(9));
        format!("{first}a0: &a0 [x, x]\n{}", (1..12).map(level).collect::<String>())
    };
    put(&folder, "recipes/bomb.yaml", &bomb(&recipe("")));
    put(&folder, "recipes/cycle.yaml", &recipe("instructions: \"{% include 'cycle.yaml' %}\""));
    put(&folder, "recipes/big.yaml", &"# x\n".repeat(2_600_000));
    put(&folder, "recipes/play.yaml", &bomb("agents:\n  main:\n    - say: x\n"));
    put(&folder, "recipes/deep.toml", &format!("a = {}", "[".repeat(100_000)));
    put(&folder, "recipes/mcp.json", &"[".repeat(100_000));
    let outside = Folder::new("check-wait-outside");
    put(&outside, "outside.yaml", &recipe(""));
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(folder.0.join(to), folder.0.join(name)).unwrap();
    };
    link(outside.0.join("outside.yaml").to_str().unwrap(), "recipes/out.yaml");
    link("recipes/loop.yaml", "recipes/loop.yaml");
    link(".", "recipes/up");
    for round in ["recipes/round", "recipes/about"] {
        link("recipes", round);
    }
    let fifo = Command::new("mkfifo").arg(folder.0.join("recipes/pipe.yaml")).status();
    assert!(fifo.unwrap().success());
    let cases = [
        ("recipes/bomb.yaml", "values"),
        ("recipes/cycle.yaml", "leads back to itself"),
        ("recipes/big.yaml", "bytes"),
        ("recipes/play.yaml", "error: "),
        ("recipes/deep.toml", "error: "),
        ("recipes/mcp.json", "recursion limit"),
        ("recipes/out.yaml", "leads to"),
        ("recipes/loop.yaml", "cannot be read"),
        ("recipes/pipe.yaml", "a pipe"),
        ("/dev/zero", "not a definition"),
        ("recipes/none/at/all.yaml", "does not exist"),
    ];
    for (path, words) in cases {
        let check = || folder.output(&["check", path]);
        let took = shortest(QUICK, || drop(check()));
        assert!(took < QUICK, "{path} took {took:?}");
        let output = check();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{path}: {text}");
        let first = text.lines().next().unwrap();
        assert!(first.contains("error: ") && first.contains(words), "{path}: {text}");
    }
    // Together, too: each is told of in its turn.
    let (lines, _, exit) = told(&folder, &["recipes"]);
    assert!(!lines.iter().any(|line| line.contains("too many files")), "{lines:#?}");
    let inside = cases.iter().filter(|(path, _)| folder.0.join(path).symlink_metadata().is_ok());
    for (path, words) in inside.filter(|(path, _)| *path != "/dev/zero") {
        // A file of settings is ours only if it has one of ours.
        let found = lines.iter().any(|line| line.starts_with(path) && line.contains(words));
        assert_eq!(found, *path != "recipes/deep.toml", "{path}: {lines:#?}");
    }
    assert_eq!(exit, 2);
}

/// Every bad file there is, at once.
#[test]
fn four_hundred_bad_files() {
    let folder = Folder::new("check-bad");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../definitions/tests/fixtures");
    let mut files = BTreeSet::new();
    let table = fs::read_to_string(fixtures.join("bad.txt")).unwrap();
    let cases = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for (number, case) in cases.enumerate() {
        let [kind, text, ..] = case.split(" | ").collect::<Vec<_>>()[..] else { panic!("{case}") };
        let text = spelled_out(text);
        let (name, text) = match kind {
            "recipe" => (
                format!("bad/recipes/{number}.yaml"),
                format!("title: t\ndescription: d\nprompt: p\n{text}\n"),
            ),
            "plain" => (format!("bad/recipes/{number}.yaml"), text),
            "json" => (format!("bad/recipes/{number}.json"), text),
            "skill" => (format!("bad/skills/{number}/SKILL.md"), text),
            "agent" => (format!("bad/agents/{number}.md"), text),
            other => panic!("{other}"),
        };
        put(&folder, &name, &text);
        files.insert(name);
    }
    let text = fs::read_to_string(fixtures.join("recipe.yaml")).unwrap();
    for seed in 1.. {
        if files.len() >= 420 {
            break;
        }
        if let Some((bad, _)) = spoil(&text, &mut Dice::new(seed)) {
            let name = format!("bad/recipes/spoilt{seed}.yaml");
            put(&folder, &name, &bad);
            files.insert(name);
        }
    }
    let whole = folder.output(&["check", "bad", "--json"]);
    assert_eq!(whole.status.code(), Some(2));
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["files"], files.len(), "every file is looked at");
    let errors = whole["problems"].as_array().unwrap().iter();
    let errors = errors.filter(|problem| problem["severity"] == "error");
    let refused: BTreeSet<&str> = errors.map(|it| it["file"].as_str().unwrap()).collect();
    let good: Vec<&String> = files.iter().filter(|it| !refused.contains(it.as_str())).collect();
    assert!(good.is_empty(), "{good:?}");
}

/// What people wrote for other programs is read; what is refused has a reason.
#[test]
fn public_files() {
    let Some(corpus) = strangers::corpus() else { return };
    let folder = Folder::new("check-corpus");
    for (kind, count) in [("recipes", 54), ("agents", 56), ("skills", 70)] {
        let files = strangers::files(&corpus.join(kind));
        let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(files.len(), count, "{kind}");
        let (lines, last, exit) = told(&folder, &files);
        assert!(last.starts_with(&format!("{count} files, ")), "{kind}: {last}");
        let refused = lines.iter().filter(|line| line.contains(": error: "));
        let refused: Vec<&String> = refused.collect();
        assert!(refused.is_empty() && exit == 0, "{kind}: {refused:#?}");
        for line in &lines {
            assert!(line.matches("; ").count() >= 2, "what, why and how: {line}");
        }
    }
}
