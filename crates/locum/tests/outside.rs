//! Agents that are programs of other people: what they get to work with, and that nobody gets more
//! than a person gave. The programs here are small and need no network; they stand in for large
//! ones, which keep keys in variables and their state in the home folder.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use support::{Folder, output_of, stderr};

const SCRIPT: &str = "agents:
  main: [{calls: [{call_recipe: {recipe: outside, message: hello}}]}, {say: 'got {{last}}'}]
";

/// A home, and beside it a folder to work in.
struct World(Folder);

impl World {
    fn new(name: &str) -> World {
        let world = World(Folder::new(&format!("outside-{name}")));
        for folder in ["home/.config", "home/.claude/agents", "work/.claude/agents"] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.0.join(name)
    }

    fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The agent, in somebody's folder, and its program.
    fn agent(&self, whose: &str, keys: &str, program: &str) {
        let text = format!(
            "---\nname: outside\ndescription: d\nlocum:\n  passthrough:\n    \
             command: [./program]\n    {keys}\n---\nx\n"
        );
        self.0.write(&format!("{whose}/.claude/agents/outside.md"), &text);
        let file = self.0.write("work/program", &format!("#!/bin/sh\n{program}\n"));
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.locum(arguments);
        command.current_dir(self.path("work")).env("HOME", self.path("home"));
        command.env("XDG_CONFIG_HOME", self.path("home/.config"));
        command.env("OUTSIDE_API_KEY", "granted").env("OUTSIDE_OTHER", "not this");
        command
    }

    fn run(&self, flags: &[&str]) -> Output {
        let model = self.0.script("script.yaml", SCRIPT);
        output_of(self.command(&[&["run", "--trust", "-m", &model, "go"], flags].concat()))
    }

    /// What main heard of it, and what was told beside.
    fn said(&self) -> String {
        let output = self.run(&["--allow", "passthrough"]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
    }
}

#[test]
fn a_program_gets_what_its_own_definition_names_and_a_project_names_nothing() {
    let tells = "echo key=$OUTSIDE_API_KEY other=$OUTSIDE_OTHER";
    let keeps = "echo kept > \"$HOME/.outside/deep/state\" && cat \"$HOME/.outside/deep/state\"";
    let cases = [
        ("home", "", tells, "got key= other=\n"),
        ("home", "env: [OUTSIDE_API_KEY]", tells, "got key=granted other=\n"),
        ("home", "env: OUTSIDE_API_KEY", tells, "got key=granted other=\n"),
        ("home", "env: [OUTSIDE_NOT_SET]", tells, "got key= other=\n"),
        ("work", "env: [OUTSIDE_API_KEY]", tells, "got key= other=\n"),
        ("work", "env: [OUTSIDE_API_KEY]", tells, "program gets no variables of yours"),
        ("home", "writes: [~/.outside/deep]", keeps, "got kept\n"),
        ("home", "writes: ~/.outside/deep", keeps, "got kept\n"),
        ("home", "", keeps, "the program ended with"),
        ("work", "writes: [~/.outside/deep]", keeps, "the program ended with"),
        ("work", "writes: [~/.outside/deep]", keeps, "program gets no folders of yours"),
        ("home", "", "echo x > /usr/outside-test", "passthrough: {writes: [~/.its-folder]}"),
    ];
    for (whose, keys, program, expected) in cases {
        let world = World::new("gets");
        world.agent(whose, keys, program);
        let said = world.said();
        assert!(said.contains(expected), "{whose} {keys}: {said}");
        let kept = world.exists("home/.outside/deep/state");
        assert_eq!(kept, expected == "got kept\n", "{whose} {keys}");
    }
}

/// It may think for itself, and change nothing where the work is.
#[test]
fn a_program_that_only_reads_still_has_folders_of_its_own() {
    let world = World::new("reads");
    world.agent(
        "home",
        "writes: [~/.outside]\n  ceiling: [read, exec, network]",
        "echo kept > \"$HOME/.outside/state\"; (echo x > here) || echo not here",
    );
    let said = world.said();
    assert!(said.contains("got not here"), "{said}");
    assert!(world.exists("home/.outside/state") && !world.exists("work/here"), "{said}");
}

#[test]
fn whoever_is_asked_sees_what_it_gets() {
    let world = World::new("asked");
    world.agent("home", "env: [OUTSIDE_API_KEY]\n    writes: [~/.outside]", "touch ran");
    let output = world.run(&[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let asked = [
        r#"passthrough {"command":["./program"],"#,
        r#""env":["OUTSIDE_API_KEY"],"input":"stdin","network":true,"#,
        r#""text":"hello","writes":["~/.outside"]}"#,
    ];
    assert!(stderr(&output).contains(&asked.concat()), "{}", stderr(&output));
    assert!(!world.exists("work/ran") && !world.exists("home/.outside"));
    let shown = output_of(world.command(&["definitions", "outside"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    for words in ["it sees the variables OUTSIDE_API_KEY", "it may write to ~/.outside"] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn some_folders_are_given_to_nobody() {
    let world = World::new("nobody");
    fs::create_dir_all(world.path("home/.ssh")).unwrap();
    fs::create_dir_all(world.path("home/.config/locum")).unwrap();
    std::os::unix::fs::symlink(world.path("home/.ssh"), world.path("home/innocent")).unwrap();
    std::os::unix::fs::symlink(world.path("work"), world.path("home/work")).unwrap();
    let (work, data) = (world.path("work/sub"), world.path("data"));
    let (work, data) = (work.to_str().unwrap(), data.to_str().unwrap());
    let cases = [
        ("/", "all your files are in it"),
        (work, "it overlaps the workspace"),
        ("~/work/sub", "it overlaps the workspace"),
        ("~/", "all your files are in it"),
        ("~/.ssh", "is kept from every command"),
        ("~/.ssh/keys", "is kept from every command"),
        ("~/innocent", "is kept from every command"),
        ("~/.config/locum", "is kept from every command"),
        ("~/.config/locum/agents", "is kept from every command"),
        ("~/.claude/agents", "is kept from every command"),
        ("~/.codex/skills/mine", "is kept from every command"),
        (data, "is kept from every command"),
    ];
    for (folder, expected) in cases {
        world.agent("home", &format!("writes: [\"{folder}\"]"), "touch ran");
        let said = world.said();
        assert!(said.contains("a program cannot be given") && said.contains(expected), "{said}");
        assert!(!world.exists("work/ran"), "{folder}");
    }
    for folder in ["work/sub", "home/.ssh/keys", "home/.codex", "home/.config/locum/agents"] {
        assert!(!world.exists(folder), "{folder} was made");
    }
}

/// A program that could write what agents are made of would choose what it may do next time.
#[test]
fn no_program_writes_definitions_whatever_it_is_given() {
    let world = World::new("definitions");
    let listed = output_of(world.command(&["definitions", "--json"]));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let home = world.path("home");
    let folders = listed["looked_in"].as_array().unwrap().iter();
    let folders = folders.filter_map(|it| it["folder"].as_str());
    let folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
    let mut below: Vec<_> = folders.iter().filter_map(|it| it.strip_prefix(&home).ok()).collect();
    below.sort();
    assert!(below.len() > 15, "{listed}");
    let mut given: Vec<String> = below
        .iter()
        .map(|it| it.components().next().unwrap())
        .map(|it| format!("~/{}", it.as_os_str().to_str().unwrap()))
        .collect();
    given.dedup();
    let tries: Vec<String> = below
        .iter()
        .map(|it| {
            let folder = it.to_str().unwrap();
            format!("mkdir -p \"$HOME/{folder}\"; echo x > \"$HOME/{folder}/evil.md\"")
        })
        .collect();
    let tries = format!("{}\ntouch \"$HOME/.agents/own\"; echo tried", tries.join("\n"));
    world.agent("home", &format!("writes: [{}]", given.join(", ")), &tries);
    let said = world.said();
    assert!(said.contains("got tried"), "{said}");
    assert!(world.exists("home/.agents/own"), "the rest of what it was given is its own");
    for folder in below {
        assert!(!home.join(folder).join("evil.md").exists(), "{}", folder.display());
    }
}

/// Notes for a program are written in capitals; an agent may be named after it.
#[test]
fn an_agent_may_be_named_after_the_program_that_it_is() {
    let world = World::new("named");
    for name in ["claude", "gemini", "CLAUDE", "README", "agents"] {
        let text = format!("---\nname: {name}\ndescription: d\n---\nx\n");
        world.0.write(&format!("home/.claude/agents/{name}.md"), &text);
    }
    let listed = output_of(world.command(&["definitions"]));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<&str> = listed.lines().filter_map(|it| it.split_whitespace().next()).collect();
    let found = ["claude", "gemini", "CLAUDE", "README", "agents"].map(|it| names.contains(&it));
    assert_eq!(found, [true, true, false, false, false], "{listed}");
}

/// At the root there is nobody else to say that it failed, and how.
#[test]
fn a_program_that_fails_at_the_root_is_told_as_that() {
    let world = World::new("root");
    world.agent("home", "", "echo partial; exit 7");
    let model = world.0.script("script.yaml", SCRIPT);
    let run = ["run", "go", "--agent", "outside", "-m", &model, "--allow", "passthrough"];
    let output = output_of(world.command(&run));
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let expected = "error[E116] The program failed.\nIt ended with exit code 7.";
    assert!(told.contains(expected), "{told}");
}

/// It is there, and yet it is not: the walls hide what others put into folders for everybody.
#[test]
fn a_program_that_the_walls_hide_is_told_as_that() {
    let world = World::new("hidden");
    world.agent("home", "", "echo seen");
    let folder = std::env::temp_dir().join(format!("locum-hidden-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    fs::copy(world.path("work/program"), &program).unwrap();
    let file = world.path("home/.claude/agents/outside.md");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(file, text.replace("./program", program.to_str().unwrap())).unwrap();
    let said = world.said();
    fs::remove_dir_all(folder).unwrap();
    assert!(said.contains("cannot be seen behind the walls"), "{said}");
    assert!(said.contains("it can lie in the workspace"), "{said}");
}
