//! What servers that come with a project are given of the person's environment, and that it is
//! said; which of their tools an agent has; and servers that are dead or half right.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{Folder, Running, lines, of_type, output_of, stderr};
use crate::{ALONE, configure, outputs, python};

const SECRETS: [(&str, &str); 4] = [
    ("GITHUB_TOKEN", "ghp_secret ${AWS_SECRET}"),
    ("AWS_SECRET", "aws_secret"),
    ("ANTHROPIC_API_KEY", "sk-secret"),
    ("UNSET_HERE", ""),
];

/// The program in this folder, with secrets around it. A folder with a home in it is not trusted.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.locum(arguments);
    command.envs(SECRETS).env_remove("UNSET_HERE").env("HOME", "/nowhere-at-home");
    command
}

fn output(folder: &Folder, arguments: &[&str]) -> Output {
    output_of(command(folder, arguments))
}

fn text(folder: &Folder, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&output(folder, arguments).stdout).into_owned()
}

/// A folder with an agent that brings one server, as this line says.
fn project(name: &str, server: &str) -> Folder {
    let folder = Folder::new(&format!("mcp-given-{name}"));
    write_agent(&folder, &format!("mcpServers: {{pot: {server}}}"));
    folder
}

fn write_agent(folder: &Folder, more: &str) {
    fs::create_dir_all(folder.0.join(".claude/agents")).unwrap();
    let agent = format!("---\nname: inl\ndescription: d\n{more}\n---\nWork.\n");
    folder.write(".claude/agents/inl.md", &agent);
}

/// How a server is written, and what a person is asked.
const ASKED: &[(&str, &str)] = &[
    ("{command: p, args: [q]}", "start the server pot: p q"),
    (
        r#"{command: p, env: {LANGX: "${GITHUB_TOKEN}"}}"#,
        "start the server pot: p, with GITHUB_TOKEN of your environment as LANGX",
    ),
    (
        r#"{command: p, env: {A: "x-${B:-d}", GITHUB_TOKEN: "$GITHUB_TOKEN"}}"#,
        "start the server pot: p, with B of your environment as A, GITHUB_TOKEN of your \
         environment",
    ),
    (
        r#"{command: "${P}", args: ["--t=${T}"], env: {E: "${T}"}}"#,
        "start the server pot: ${P} --t=${T}, with P of your environment in its command, T of your \
         environment in its arguments and as E",
    ),
    (
        r#"{url: "https://h/${U}", headers: {Authorization: "Bearer ${T}", X: "${T}"}}"#,
        "reach the server pot: https://h/${U}, with T of your environment in Authorization and in \
         X, U of your environment in its address",
    ),
    (
        r#"{url: "https://h", env: {V: "${W}", O: own}, headers: {X: "${V} ${O}"}}"#,
        "reach the server pot: https://h, with W of your environment in X",
    ),
];

#[test]
fn the_question_names_every_variable() {
    for (at, (server, expected)) in ASKED.iter().enumerate() {
        let folder = project(&format!("named-{at}"), server);
        let told = text(&folder, &["definitions", "inl", "--json", "--trust"]);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["consents"], json!([expected]), "{server}");
    }
}

/// A program that writes down what it was given.
const TELLS: &str = "{command: sh, args: [-c, 'echo \"$LANGX|$OTHER|$1\" > got', x, \
                     'a-${GITHUB_TOKEN}'], env: {LANGX: '${GITHUB_TOKEN}', \
                     OTHER: '${UNSET_HERE:-fallen back}'}}";
const GIVEN: &str = "ghp_secret ${AWS_SECRET}|fallen back|a-ghp_secret ${AWS_SECRET}\n";

const CALLS: &str = "
agents:
  main:
    - calls: [{use_agent: {agent: inl, message: x}}]
    - {say: 'got: {{last}}'}
  inl: [{calls: [{complete: {result: done}}]}]
";

fn start(folder: &Folder, more: &[&str]) -> Running {
    let model = folder.script("script.yaml", CALLS);
    let run = ["run", "go", "-m", &model, "--approvals", "stdio"];
    Running::of(command(folder, &[&run[..], &ALONE, more].concat()))
}

/// What was asked before the agent began; it is allowed.
fn asked(folder: &Folder) -> Vec<String> {
    let mut run = start(folder, &[]);
    let mut asked = Vec::new();
    loop {
        let line =
            run.until(|line| matches!(line["type"].as_str(), Some("ask.opened" | "run.result")));
        if line["type"] == "run.result" {
            run.end();
            return asked;
        }
        asked.push(line.to_string());
        run.say(&json!({ "type": "decision", "id": line["id"], "decision": "allow" }));
    }
}

#[test]
fn what_was_agreed_to_is_given_and_nothing_more() {
    let folder = project("agreed", TELLS);
    text(&folder, &["trust"]);
    let first = asked(&folder);
    let words =
        "GITHUB_TOKEN of your environment in its arguments and as LANGX, UNSET_HERE of your";
    assert!(first.len() == 1 && first[0].contains(words), "{first:?}");
    assert_eq!(folder.read("got"), GIVEN, "values are not looked at again");
    assert_eq!(asked(&folder), [] as [String; 0], "the same is agreed to");
    write_agent(&folder, &format!("mcpServers: {{pot: {}}}", TELLS.replace("UNSET_HERE", "HOME")));
    let changed = asked(&folder);
    assert!(changed.len() == 1 && changed[0].contains("HOME of your"), "{changed:?}");
    // The same words in another folder may start another program.
    let other = project("agreed-elsewhere", TELLS);
    let [here, there] = [&folder, &other].map(|it| it.0.canonicalize().unwrap());
    let kept = folder.read("data/trust.json");
    fs::create_dir_all(other.0.join("data")).unwrap();
    let moved = kept.replace(here.to_str().unwrap(), there.to_str().unwrap());
    other.write("data/trust.json", &moved);
    assert_eq!(asked(&other).len(), 1);
}

/// Who trusts everything for one run is told; what is refused is refused all the same.
#[test]
fn a_trusted_run_says_what_servers_are_given() {
    let folder = project("trusted", TELLS);
    let told = start(&folder, &["--trust"]).end();
    let note = "note: inl starts the server pot with GITHUB_TOKEN of your environment in its \
                arguments and as LANGX, UNSET_HERE of your environment as OTHER\n";
    assert!(told.stderr.contains(note), "{}", told.stderr);
    assert_eq!(folder.read("got"), GIVEN);
    for (server, why) in [
        (r#"{command: p, args: ["${ANTHROPIC_API_KEY}"]}"#, "ANTHROPIC_API_KEY is the key to a"),
        (r#"{command: p, env: {A: "${UNSET_HERE}"}}"#, "${UNSET_HERE} is not set; set it or"),
    ] {
        write_agent(&folder, &format!("mcpServers: {{pot: {server}}}"));
        let told = start(&folder, &["--trust"]).end();
        assert!(told.stderr.contains(&format!("pot are missing: {why}")), "{}", told.stderr);
        // What is checked is what a run does.
        let checked = text(&folder, &["check", ".claude/agents/inl.md"]);
        let why = format!("warning: the server \"pot\" is not started: {}", &why[..20]);
        assert!(checked.contains(&why), "{checked}");
    }
}

/// A model that calls a recipe chooses its values, and with them no variable of the person's.
#[test]
fn a_value_names_no_variable() {
    let folder = Folder::new("mcp-given-value");
    fs::create_dir_all(folder.0.join("home/.goose/recipes")).unwrap();
    let recipe = "title: r\ndescription: d\nprompt: p\nparameters:\n- {key: v, input_type: string, \
                  requirement: required, description: d}\nextensions:\n- type: stdio\n  \
                  name: pot\n  cmd: sh\n  \
                  args: [-c, 'echo \"$1\" > got', x, '{{ v }} ${AWS_SECRET}']\n";
    folder.write("home/.goose/recipes/r.yaml", recipe);
    let script = "
agents:
  main:
    - calls: [{call_recipe: {recipe: r, parameters: {v: '${GITHUB_TOKEN}'}}}]
    - calls: [{call_recipe: {recipe: r, parameters: {v: plain}}}]
    - {say: 'got: {{last}}'}
  r: [{say: done}]
";
    let model = folder.script("script.yaml", script);
    let mut run = command(&folder, &["run", "go", "--json", "--mode", "auto", "-m", &model]);
    run.env("HOME", folder.0.join("home"));
    let run = output_of(run);
    let lines = lines(&run);
    let finished = of_type(&lines, "tool.finished");
    let refused = finished[0]["output"].as_str().unwrap();
    assert!(refused.contains("a value puts ${GITHUB_TOKEN} into what a server"), "{refused}");
    assert_eq!(finished[1]["output"], "done", "{}", stderr(&run));
    // The file of the person's own may name what it likes.
    assert_eq!(folder.read("got"), "plain aws_secret\n");
}

/// The same for what a folder proposes: when it is approved, when it is listed, when it is checked.
#[test]
fn proposed_servers_say_what_they_are_given() {
    let Some(python) = python() else { return };
    let folder = Folder::new("mcp-given-proposed");
    let rogue = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/rogue.py"));
    folder.write("rogue.py", &rogue.unwrap());
    let server = |token: &str| {
        let (args, env) = (["rogue.py", "malformed"], json!({ "LANGX": token }));
        let pot = json!({ "command": python, "args": args, "env": env });
        let servers = json!({ "mcpServers": { "pot": pot } });
        folder.write(".mcp.json", &servers.to_string());
    };
    server("${GITHUB_TOKEN}");
    text(&folder, &["trust"]);
    let words = "with GITHUB_TOKEN of your environment as LANGX";
    let unapproved = stderr(&output(&folder, &["mcp", "list"])).to_owned();
    assert!(unapproved.contains(words), "{unapproved}");
    let approved = text(&folder, &["mcp", "approve", "pot"]);
    assert!(approved.starts_with("approved pot: ") && approved.contains(words), "{approved}");
    let listed = text(&folder, &["mcp", "list"]);
    assert!(listed.starts_with("pot: connected, 1 tool\n") && listed.contains(words), "{listed}");
    assert!(listed.contains("\n  left out: tool `bare`: missing field `inputSchema`"), "{listed}");
    let listed: Value = serde_json::from_str(&text(&folder, &["mcp", "--json"])).unwrap();
    assert_eq!(listed[0]["variables"], json!(["GITHUB_TOKEN"]));
    assert_eq!(listed[0]["left_out"].as_array().unwrap().len(), 3, "{listed}");
    let model = folder.script("script.yaml", "agents: {main: [{say: hello}]}\n");
    let run = output(&folder, &["run", "go", "-m", &model]);
    let note = "note: a tool of pot is left out: tool `bare`";
    assert!(stderr(&run).contains(note), "{}", stderr(&run));
    server("${AWS_SECRET}");
    let again = stderr(&output(&folder, &["mcp", "list"])).to_owned();
    assert!(again.contains("not approved") && again.contains("AWS_SECRET of your"), "{again}");
    let run = output(&folder, &["run", "go", "--trust", "-m", &model]);
    let note = "note: the server pot of .mcp.json starts with AWS_SECRET of your environment as";
    assert!(stderr(&run).contains(note), "{}", stderr(&run));
    // What is checked, and what a run then does.
    for (token, checked, does) in [
        ("${GITHUB_TOKEN}", "", ""),
        ("${UNSET_HERE:-x}", "", ""),
        ("${ANTHROPIC_API_KEY:-x}", "", ""),
        ("${UNSET_HERE}", "${UNSET_HERE} is not set here; a run leaves its server out", "left out"),
        ("${ANTHROPIC_API_KEY}", "ANTHROPIC_API_KEY is the key to a model, which", "left out"),
    ] {
        server(token);
        let told = text(&folder, &["check", ".mcp.json"]);
        assert_eq!(told.contains("warning:"), !checked.is_empty(), "{token}: {told}");
        assert!(told.contains(checked), "{token}: {told}");
        let told = stderr(&output(&folder, &["mcp", "list"])).to_owned();
        assert!(told.contains(does), "{token}: {told}");
        assert_eq!(told.contains("warning:"), !does.is_empty(), "{token}: {told}");
    }
}

/// What an agent's file says of tools, whether `rogue__echo` is there.
const LISTS: &[(&str, bool)] = &[
    ("color: red", true),
    ("tools: Read", false),
    ("tools: Read, mcp__rogue__echo", true),
    ("tools: Read, rogue__echo", true),
    ("tools: mcp__rogue", true),
    ("tools: mcp__rogue__*", true),
    ("tools: mcp__rogue__other", false),
    ("disallowedTools: mcp__rogue__echo", false),
    ("disallowedTools: rogue__echo", false),
    ("disallowedTools: mcp__rogue", false),
    ("disallowedTools: mcp__rogue__other", true),
    ("tools: mcp__rogue\ndisallowedTools: mcp__rogue__*", false),
];

#[test]
fn lists_of_tools_bind_the_servers_an_agent_brings() {
    let Some(python) = python() else { return };
    let folder = Folder::new("mcp-given-lists");
    let rogue = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/rogue.py"));
    folder.write("rogue.py", &rogue.unwrap());
    let script = "
agents:
  main:
    - calls: [{use_agent: {agent: inl, message: x}}]
    - {say: 'got: {{last}}'}
  inl:
    - calls: [{rogue__echo: {words: hello}}]
    - {say: '{{last}}'}
";
    let model = folder.script("script.yaml", script);
    for (list, is_there) in LISTS {
        let server =
            format!("mcpServers: {{rogue: {{command: {python}, args: [rogue.py, good]}}}}");
        write_agent(&folder, &format!("{list}\n{server}"));
        let run = ["run", "go", "--trust", "-m", &model];
        let told = Running::start(&folder, &[&run[..], &ALONE].concat()).end();
        let first = outputs(&told).remove(0);
        assert_eq!(first == "hello", *is_there, "{list}: {first} {}", told.stderr);
    }
}

/// One that is dead is told as that, once.
#[test]
fn dead_servers_are_told_as_dead() {
    let folder = Folder::new("mcp-given-dead");
    for (command, args, why) in [
        (
            "sh",
            &["-c", "echo boom >&2; exit 3"][..],
            "it ended (exit status: 3); its last words: boom\n",
        ),
        ("no-such-program", &[], "there is no program `no-such-program`; install it or give its"),
    ] {
        configure(&folder, "dead", &json!({ "command": command, "args": args }));
        let model = folder.script("script.yaml", "agents: {main: [{say: hello}]}\n");
        let run = folder.output(&["run", "go", "-m", &model]);
        let note = format!("note: the tools of dead are missing: {why}");
        assert!(stderr(&run).contains(&note), "{}", stderr(&run));
        let listed = String::from_utf8(folder.output(&["mcp", "list"]).stdout).unwrap();
        assert!(listed.starts_with("dead: failed, ") && !listed.contains("boom / "), "{listed}");
    }
}
