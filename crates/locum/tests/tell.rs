//! What `check` says of a file is what `definitions` and a run say of it, word for word and at the
//! same place, and a run says it once.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use support::{Folder, output_of, stderr};

/// `whose kind | lines of the file | how many things are told of it`: one field each, as it is
/// wrong, does nothing, or is narrowed because a project asks for it. `⏎` ends a line.
const CASES: &str = "
work agent | permissionMode: bypassPermissions | 1
work agent | permission_mode: acceptEdits | 1
work agent | permissionMode: plan | 0
home agent | permissionMode: bypassPermissions | 0
work agent | locum: {passthrough: {command: [\"true\"], env: [A], writes: [~/.x]}} | 3
work agent | locum: {passthrough: {command: [\"true\"], env: A}} | 2
home agent | locum: {passthrough: {command: [\"true\"], env: [A], writes: [~/.x]}} | 1
home agent | locum: {passthrough: {command: [\"true\"], writes: [/, ~/, ~/.ssh, ~/.x]}} | 4
home agent | locum: {passthrough: {command: [\"true\"], writes: [WORK/sub]}} | 2
home agent | locum: {passthrough: {command: [\"true\"], writes: [~]}} | 2
home agent | locum: {passthrough: {command: [a program]}} | 2
home agent | locum: {passthrough: {command: a program, writes: [here]}} | 2
work agent | tools: [Read, Raed] | 1
work agent | disallowed-tools: Raed | 1
work agent | tools: {raed: false} | 1
work agent | effort: extreme | 1
home agent | effort: high | 0
work agent | maxTurns: many | 1
work agent | temperature: 9 | 1
work agent | hooks: {a: b} | 1
work agent | mcpServers: {a: {type: sse, url: \"https://x\"}} | 1
work agent | mcpServers: 5 | 0
work agent | permission: {bash: allow} | 1
work agent | permission: {bash: sometimes} | 1
work agent | mode: primary | 1
work agent | top_p: 0.5 | 1
work agent | handoffs: [a] | 1
work agent | memory: long | 1
work agent | isolation: moon | 1
work agent | background: maybe | 1
work agent | initialPrompt: [a] | 1
work agent | skills: [nobody-has-it] | 1
home agent | skills: [nobody-has-it, nor-this] | 2
work agent | unknown: 1⏎other: 2 | 2
work agent | locum: {mode: flor, slots: 0, budget: x, ceiling: [fly], checkpoint: maybe} | 5
work agent | locum: {unknown: 1} | 1
work skill | env: [A] | 1
work skill | env: {A: b} | 1
home skill | env: [A] | 0
work skill | opt_in: maybe | 1
work skill | access: {chat_types: [Group]} | 1
work skill | access: {chat_types: [x]} | 2
work skill | sensitive: true | 0
work skill | allowed-tools: [Raed] | 1
work skill | input_schema: {type: thing} | 1
work skill | invocation: never | 1
work skill | context: fork | 1
work skill | effort: max | 1
work skill | arguments: [a]⏎paths: [b]⏎shell: zsh | 3
work recipe | unknown: 1 | 1
work recipe | settings: {temperature: 9, max_turns: 0, unknown: 1, base_url: x} | 4
work recipe | temperature: 1⏎json_schema: {}⏎checks: []⏎mcpServers: {} | 4
work recipe | extensions: [{type: builtin, name: slides}] | 1
work recipe | extensions: [{type: frontend, name: x, tools: []}] | 1
work recipe | extensions: [{type: stdio, name: x, cmd: \"false\", envs: {PATH: a, B: \"$C\"}}] | 2
work recipe | sub_recipes: [{name: a, path: gone.yaml}, {name: b, path: /etc/passwd}] | 2
home recipe | sub_recipes: [{name: a, path: gone.yaml}, {name: b, path: /etc/passwd}] | 1
work recipe | response: {json_schema: {type: thing}} | 1
work recipe | retry: {max_retries: 1} | 1
work recipe | tools: [Raed] | 1
work recipe | author: {bad: x} | 1
work recipe | parameters: [{key: a, input_type: string, requirement: required, description: d}] | 1
work recipe | instructions: \"{{ nobody }}\" | 1
work recipe | locum: {passthrough: {command: [\"true\"], env: [A], writes: [~/.ssh]}} | 2
home recipe | locum: {passthrough: {command: [\"true\"], env: [A], writes: [~/.ssh]}} | 1
";

/// The example of the README, which a person puts at home.
const OUTSIDE: &str = "---
name: outside
description: Another agent program
locum:
  passthrough:
    command: [some-agent, run]   # what it prints as plain text, not as JSON lines
    input: arg                   # or stdin
    env: [SOME_API_KEY]          # variables of yours that it sees; it sees no other secrets
    writes: [~/.some-agent]      # where it keeps its state; the rest of your home is read-only
  ceiling: [read, exec, network] # if it is not to change files of the project
---
";

/// A home, and beside it a folder to work in.
struct World(Folder);

impl World {
    fn new(name: &str) -> World {
        let mut world = World(Folder::new(&format!("tell-{name}")));
        for folder in ["home/.config/locum", "home/.ssh", "work/sub"] {
            fs::create_dir_all(world.0.0.join(folder)).unwrap();
        }
        world.0.0 = world.0.0.canonicalize().unwrap();
        world
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        fs::create_dir_all(self.0.0.join(name).parent().unwrap()).unwrap();
        self.0.write(name, text)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.locum(arguments);
        command.current_dir(self.0.0.join("work")).env("HOME", self.0.0.join("home"));
        command.env("XDG_CONFIG_HOME", self.0.0.join("home/.config"));
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_slice(&output_of(self.command(arguments)).stdout).unwrap()
    }
}

struct Case {
    line: &'static str,
    file: String,
    count: usize,
}

fn written(world: &World) -> BTreeMap<String, Case> {
    let mut cases = BTreeMap::new();
    let work = world.0.0.join("work").display().to_string();
    for (number, line) in CASES.lines().filter(|line| !line.is_empty()).enumerate() {
        let [head, text, count] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let (whose, kind) = head.split_once(' ').unwrap();
        let name = format!("case-{number:03}");
        let text = text.replace('⏎', "\n").replace("WORK", &work);
        let head = format!("---\nname: {name}\ndescription: d\n{text}\n---\nHi.\n");
        let (path, text) = match kind {
            "agent" => (format!("{whose}/.claude/agents/{name}.md"), head),
            "skill" => (format!("{whose}/.claude/skills/{name}/SKILL.md"), head),
            "recipe" => {
                let text = format!("title: t\ndescription: d\nprompt: p\nname: {name}\n{text}\n");
                (format!("{whose}/.goose/recipes/{name}.yaml"), text)
            }
            other => panic!("{other}"),
        };
        let file = world.put(&path, &text).display().to_string();
        cases.insert(name, Case { line, file, count: count.parse().unwrap() });
    }
    cases
}

/// Place and words, without how bad it is: who checks wants to know more.
fn told(problems: &Value, file: &str) -> Vec<String> {
    let problems = problems.as_array().unwrap().iter().filter(|it| it["file"] == file);
    let words = |it: &Value| {
        let said = ["what", "why", "how"].map(|key| it[key].as_str().unwrap().to_owned());
        format!("{}:{}: {}", it["line"], it["col"], said.join(", "))
    };
    problems.map(words).collect()
}

/// Each called twice, ten at a time.
fn script(names: &[&String]) -> String {
    let mut text = "agents:\n  main:\n".to_owned();
    for names in names.chunks(10).chain(names.chunks(10)) {
        let calls = names.iter().map(|it| format!("{{call_recipe: {{recipe: {it}, message: x}}}}"));
        let _ = writeln!(text, "    - calls: [{}]", calls.collect::<Vec<_>>().join(", "));
    }
    text.push_str("    - say: done\n");
    for name in names {
        let _ = writeln!(text, "  {name}: [{{say: ok}}]");
    }
    text
}

#[test]
fn all_three_say_the_same_once() {
    let world = World::new("same");
    let cases = written(&world);
    let files: Vec<&str> = cases.values().map(|case| case.file.as_str()).collect();
    let checked = world.json(&[&["check", "--json"], &files[..]].concat());
    let listed = world.json(&["definitions", "--json", "--trust"]);
    let model = world.0.script("script.yaml", &script(&cases.keys().collect::<Vec<_>>()));
    let run = ["run", "--trust", "-m", &model, "--allow", "passthrough", "go"];
    let output = output_of(world.command(&run));
    let run = stderr(&output);
    let (mut wrong, mut used) = (Vec::new(), 0);
    for (name, Case { line, file, count }) in &cases {
        let check = told(&checked["problems"], file);
        let kept = ["found", "skipped"].map(|key| listed[key].as_array().unwrap());
        let mut found = kept.into_iter().flatten().filter(|it| it["file"] == file.as_str());
        let found = found.next().unwrap_or_else(|| panic!("{line}"));
        let mut all = told(&found["problems"], file);
        let is_used = found["name"].is_string();
        if is_used {
            let one = world.json(&["definitions", name, "--json", "--trust"]);
            all = told(&one["problems"], file);
        }
        let start = format!("{file}:");
        let said = run.lines().filter_map(|line| line.strip_prefix(&start));
        let said: Vec<String> = said.map(|line| line.replacen(" warning: ", " ", 1)).collect();
        // What cannot be used is played by the script, and so is told by nobody.
        let as_told = if is_used { said == check } else { said.is_empty() };
        used += usize::from(is_used);
        if check != all || !as_told || check.len() != *count {
            wrong.push(format!("{line}\n  check {check:#?}\n  listed {all:#?}\n  run {said:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 55 && used > 35, "{used} of {} are used", cases.len());
}

/// A file that is the root of a run, by its name or by its path.
#[test]
fn the_root_of_a_run_is_told_of_as_well() {
    let world = World::new("root");
    let agent = "---\nname: rooted\ndescription: d\nunknown: 1\n---\nHi.\n";
    world.put("work/.claude/agents/rooted.md", agent);
    world.put("work/some.yaml", "title: t\ndescription: d\nprompt: p\nunknown: 1\n");
    let model =
        world.0.script("script.yaml", "agents:\n  rooted: [{say: ok}]\n  some: [{say: ok}]\n");
    for (flags, place) in
        [(["--agent", "rooted"], "rooted.md:4:1"), (["--recipe", "some.yaml"], "some.yaml:4:1")]
    {
        let run = [&["run", "--trust", "-m", &model][..], &flags, &["go"]].concat();
        let output = output_of(world.command(&run));
        let said = stderr(&output);
        let words = format!("{place}: warning: the key \"unknown\" is not known here");
        assert_eq!(said.matches(&words).count(), 1, "{said}");
    }
}

/// A session takes no longer message, and nobody learns that from the run alone: neither of what is
/// too long as it stands, nor of what values make too long.
#[test]
fn what_is_too_long_to_be_said_is_too_long_for_all() {
    let world = World::new("long");
    let most = locum_kernel::limits::INPUT_BYTES_MAX;
    let recipe = |prompt: &str| format!("title: t\ndescription: d\nprompt: {prompt}\n");
    let parameters = "parameters: [{key: a, input_type: file, requirement: required, \
        description: d}]\n";
    world.put("work/fits.yaml", &recipe(&"x".repeat(most)));
    world.put("work/long.yaml", &recipe(&"x".repeat(most + 1)));
    world.put("work/filled.yaml", &(recipe("\"{{ a }}\"") + parameters));
    world.put("work/text.txt", &"x".repeat(most + 1));
    let script = "agents: {fits: [{say: ok}], long: [{say: ok}], filled: [{say: ok}]}\n";
    let model = world.0.script("script.yaml", script);
    let told = format!(": \"prompt\" has {} bytes, a message has at most {most}, ", most + 1);
    for (file, is_checked, is_run) in
        [("fits.yaml", true, true), ("long.yaml", false, false), ("filled.yaml", true, false)]
    {
        let checked = output_of(world.command(&["check", file]));
        assert_eq!(checked.status.success(), is_checked, "{file}: {checked:?}");
        let mut run = vec!["run", "--trust", "-m", &model, "--recipe", file];
        run.extend(["--param", "a=text.txt"].iter().filter(|_| file == "filled.yaml"));
        let output = output_of(world.command(&run));
        let said = stderr(&output);
        assert_eq!(output.status.success(), is_run, "{file}: {said}");
        assert_eq!(said.contains(&told), !is_run, "{file}: {said}");
        let words = String::from_utf8_lossy(&checked.stdout).replace("; ", ", ");
        assert_eq!(words.contains(&told.replace(": \"", ": error: \"")), !is_checked, "{words}");
    }
}

#[test]
fn the_example_of_the_readme_is_good_at_home_and_narrowed_in_a_project() {
    let readme = fs::read_to_string("../../README.md").unwrap();
    assert!(readme.contains(OUTSIDE), "the example is another one by now");
    let world = World::new("readme");
    let cases: [(&str, &[&str]); 2] = [
        ("home/.config/locum/agents/outside.md", &[]),
        ("work/.locum/agents/outside.md", &["8:5: a project's program gets no variables", "9:5: "]),
    ];
    for (name, expected) in cases {
        let file = world.put(name, OUTSIDE).display().to_string();
        let said = told(&world.json(&["check", "--json", &file])["problems"], &file);
        let begins = said.iter().zip(expected).all(|(said, start)| said.starts_with(start));
        assert!(said.len() == expected.len() && begins, "{name}: {said:#?}");
    }
}
