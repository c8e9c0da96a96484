//! MCP servers through the real program: what they want from people, tools that change, starts
//! that nobody waits for, what they have beside tools, and logins.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "servers/given.rs"]
mod given;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Folder, Running, Told, Watch, stderr};

/// The system's own, which is found behind walls too.
fn python() -> Option<&'static str> {
    let found = Path::new("/usr/bin/python3").exists();
    if !found {
        eprintln!("SKIPPED: there is no /usr/bin/python3 to play a server");
    }
    found.then_some("/usr/bin/python3")
}

/// A folder whose configuration names one server, which misbehaves as `mode` says.
fn folder(name: &str, mode: &[&str]) -> Option<Folder> {
    let python = python()?;
    let folder = Folder::new(&format!("mcp-{name}"));
    let rogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/rogue.py");
    // In the workspace: elsewhere it may lie in a folder that commands have a fresh one of.
    let rogue = folder.write("rogue.py", &fs::read_to_string(rogue).unwrap());
    let args: Vec<String> = [rogue.display().to_string()]
        .into_iter()
        .chain(mode.iter().map(|it| (*it).into()))
        .collect();
    configure(&folder, "rogue", &json!({ "command": python, "args": args, "timeout": 20_000 }));
    Some(folder)
}

fn configure(folder: &Folder, name: &str, server: &Value) {
    fs::create_dir_all(folder.0.join("locum")).unwrap();
    folder.write("locum/mcp.json", &json!({ "mcpServers": { name: server } }).to_string());
}

/// Main calls the server once and says what came back.
const ONCE: &str = "
agents:
  main:
    - calls: [{rogue__echo: {words: hello}}]
    - {say: 'got: {{last}}'}
";

const ALONE: [&str; 2] = ["--mode", "auto"];

fn start(folder: &Folder, script: &str, more: &[&str]) -> Running {
    let model = folder.script("script.yaml", script);
    Running::start(folder, &[&["run", "go", "-m", &model, "-s", "s"], more].concat())
}

fn asking(folder: &Folder, script: &str) -> Running {
    start(folder, script, &[&ALONE[..], &["--approvals", "stdio"]].concat())
}

fn outputs(told: &Told) -> Vec<String> {
    let all = told.of_type("tool.finished");
    all.iter().map(|line| line["output"].as_str().unwrap_or_default().replace(' ', "")).collect()
}

fn answer(id: &Value, text: &str) -> Value {
    json!({ "type": "answer", "id": id, "text": text })
}

#[test]
fn a_server_asks_and_its_call_has_the_answer() {
    let Some(folder) = folder("elicit", &["elicit"]) else { return };
    let mut run = asking(&folder, ONCE);
    let ask = run.until_type("ask.opened");
    assert_eq!(ask["kind"], "question", "{ask}");
    let summary = ask["summary"].as_str().unwrap();
    assert!(summary.starts_with("MCP server rogue asks: hello\n"), "{summary}");
    assert!(summary.contains("colour: text (\"blue\" if left out)"), "{summary}");
    let asks = folder.json(&["asks", "-s", "s"]);
    assert_eq!(asks.as_array().map(Vec::len), Some(1), "{asks}");
    assert_eq!(asks[0]["id"], ask["id"], "{asks}");
    run.say(&answer(&ask["id"], "name=Ada"));
    let told = run.end();
    let expected = r#"{"action":"accept","content":{"colour":"blue","name":"Ada"}}"#;
    assert_eq!(outputs(&told), [expected]);
    assert_eq!(told.exit, Some(0), "{}", told.stderr);
    assert_eq!(folder.json(&["asks", "-s", "s"]), json!([]));
}

#[test]
fn an_unfit_answer_is_asked_for_again_and_not_for_ever() {
    let cases = [
        (&["old", "42"][..], r#"{"action":"accept","content":{"age":42}}"#),
        (
            &["old", "4.2", "999"][..],
            "{\"action\":\"decline\"}\n[roguegotnofittinganswer:At/age:999isgreaterthanthe\
             maximumof150.]",
        ),
    ];
    for (at, (given, expected)) in cases.into_iter().enumerate() {
        let Some(folder) = folder(&format!("unfit-{at}"), &["elicit_age"]) else { return };
        let mut run = asking(&folder, ONCE);
        for (nth, text) in given.iter().enumerate() {
            let ask = run.until_type("ask.opened");
            let summary = ask["summary"].as_str().unwrap();
            assert_eq!(summary.contains("The last answer did not fit"), nth > 0, "{summary}");
            // From another terminal as well as from standard input.
            if nth == 0 {
                let id = ask["id"].as_str().unwrap();
                folder.text(&["answer", id, text, "-s", "s"]);
            } else {
                run.say(&answer(&ask["id"], text));
            }
        }
        assert_eq!(outputs(&run.end()), [expected]);
    }
}

#[test]
fn what_is_denied_is_declined_and_secrets_are_never_asked_for() {
    let deny = |id: &Value| json!({ "type": "decision", "id": id, "decision": "deny" });
    let allow = |id: &Value| json!({ "type": "decision", "id": id, "decision": "allow" });
    let declined = r#"{"action":"decline"}"#;
    let Some(first) = folder("deny", &["elicit"]) else { return };
    let mut run = asking(&first, ONCE);
    let ask = run.until_type("ask.opened");
    run.say(&deny(&ask["id"]));
    assert_eq!(outputs(&run.end()), [declined]);

    let Some(page) = folder("visit", &["visit"]) else { return };
    let mut run = asking(&page, ONCE);
    let ask = run.until_type("ask.opened");
    assert!(ask["summary"].as_str().unwrap().contains("visit https://example.org/x"), "{ask}");
    assert_eq!(ask["options"], json!(["yes", "no"]));
    run.say(&allow(&ask["id"]));
    assert_eq!(outputs(&run.end()), [r#"{"action":"accept"}"#]);

    let Some(secret) = folder("secret", &["elicit_secret"]) else { return };
    let told = asking(&secret, ONCE).end();
    assert!(told.of_type("ask.opened").is_empty());
    let output = outputs(&told).remove(0);
    assert!(output.starts_with(declined) && output.contains("lookslikeasecret"), "{output}");
}

#[test]
fn with_nobody_there_a_server_is_told_so_at_once() {
    for approvals in ["deny", "park"] {
        let Some(folder) = folder(&format!("nobody-{approvals}"), &["elicit"]) else { return };
        let run = start(&folder, ONCE, &[&ALONE[..], &["--approvals", approvals]].concat());
        let told = run.end();
        assert!(told.of_type("ask.opened").is_empty());
        assert_eq!(outputs(&told), [r#"{"action":"decline"}"#]);
        // People are told who wanted what, and what to do about it.
        let line = "note: MCP server rogue asked: hello (declined: nobody is there)\n\
                    do: run it at a terminal, or with --approvals stdio, to answer such \
                    questions\n";
        assert!(told.stderr.contains(line), "{}", told.stderr);
    }
    // Whoever leaves in the middle takes the question along.
    let Some(folder) = folder("leaves", &["elicit"]) else { return };
    let mut run = asking(&folder, ONCE);
    run.until_type("ask.opened");
    run.leave();
    assert_eq!(outputs(&run.end()), [r#"{"action":"cancel"}"#]);
}

/// A person lets a server ask the model, or does not; what that cost is the agent's.
#[test]
fn a_server_asks_the_model_if_a_person_agrees() {
    let script = format!("{ONCE}  sampling: [{{say: 'the model says {{{{user}}}} at length'}}]\n");
    let cases = [("yes", "themodelsayshelloatlength", 300), ("no", "\"code\"", 200)];
    for (said, expected, tokens) in cases {
        let Some(folder) = self::folder(&format!("sample-{said}"), &["sample"]) else { return };
        let mut run = asking(&folder, &script);
        let ask = run.until_type("ask.opened");
        let summary = ask["summary"].as_str().unwrap();
        for words in ["MCP server rogue asks", "at most 10 tokens", "hello", "be brief"] {
            assert!(summary.contains(words), "{summary}");
        }
        run.say(&answer(&ask["id"], said));
        let told = run.end();
        let output = &outputs(&told)[0];
        assert!(output.contains(expected), "{said}: {output}");
        assert_eq!(told.result()["usage"]["in"], tokens, "{said}: {}", told.result());
    }
}

#[test]
fn killed_while_a_server_waits_for_an_answer() {
    let Some(folder) = folder("killed", &["elicit"]) else { return };
    let mut run = asking(&folder, ONCE);
    let ask = run.until_type("ask.opened");
    let id = ask["id"].as_str().unwrap();
    run.kill();
    // The server died with the run: whoever answers now is told so.
    folder.refused(&["answer", id, "name=Ada", "-s", "s"], 2, "E104");
    let mut again = Running::start(&folder, &["run", "--resume", "s", "--approvals", "stdio"]);
    let closed = again.until_type("tool.finished");
    assert_eq!(closed["output"], "interrupted: outcome unknown", "{closed}");
    let told = again.end();
    assert!(told.of_type("ask.opened").is_empty());
    assert_eq!(told.result()["text"], "got: interrupted: outcome unknown");
    assert_eq!(folder.json(&["asks", "-s", "s"]), json!([]));
}

#[test]
fn a_tool_that_describes_itself_otherwise_is_approved_again_and_new_ones_appear() {
    let script = "
agents:
  main:
    - calls: [{rogue__echo: {words: hello}}]
    - calls: [{rogue__echo: {words: hello}}]
    - {say: 'got: {{last}}'}
";
    let Some(changes) = folder("rug", &["rug_pull"]) else { return };
    let mut run = start(&changes, script, &["--approvals", "stdio"]);
    let mut asked = Vec::new();
    while let Some(line) = run.line() {
        if line["type"] == "ask.opened" {
            asked.push(line["summary"].as_str().unwrap().split(' ').next().unwrap().to_owned());
            let (id, scope) = (&line["id"], "project");
            run.say(&json!({ "type": "decision", "id": id, "decision": "allow", "scope": scope }));
        }
    }
    assert_eq!(asked, ["rogue__echo", "rogue__echo"]);
    assert_eq!(run.end().result()["text"], "got: hello");

    let Some(grows) = folder("grow", &["grow"]) else { return };
    let script = "
agents:
  main:
    - calls: [{rogue__more: {words: early}}]
    - calls: [{rogue__echo: {words: hello}}]
    - calls: [{rogue__more: {words: late}}]
    - {say: 'got: {{last}}'}
";
    let told = start(&grows, script, &ALONE).end();
    assert_eq!(outputs(&told), ["Toolnotfound:rogue__more", "hello", "late"]);
}

/// What a definition brings asks people and changes its tools like what people have configured;
/// two of one name are told apart.
#[test]
fn servers_that_recipes_bring_ask_and_grow_too() {
    let Some(python) = python() else { return };
    let folder = Folder::new("mcp-brought");
    let rogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/rogue.py");
    folder.write("rogue.py", &fs::read_to_string(rogue).unwrap());
    fs::create_dir_all(folder.0.join(".goose/recipes")).unwrap();
    for (name, mode) in [("asker", "elicit"), ("grower", "grow")] {
        let recipe = format!(
            "title: {name}\ndescription: d\nprompt: p\nextensions:\n- type: stdio\n  \
             name: rogue\n  cmd: {python}\n  args: [rogue.py, {mode}]\n"
        );
        folder.write(&format!(".goose/recipes/{name}.yaml"), &recipe);
    }
    let script = "
agents:
  main:
    - calls: [{call_recipe: {recipe: asker, message: x}}]
    - calls: [{call_recipe: {recipe: grower, message: x}}]
    - {say: 'got: {{last}}'}
  asker:
    - calls: [{rogue__echo: {words: hello}}]
    - {say: '{{last}}'}
  grower:
    - calls: [{rogue-2__more: {words: early}}]
    - calls: [{rogue-2__echo: {words: hello}}]
    - calls: [{rogue-2__more: {words: late}}]
    - {say: '{{last}}'}
";
    let mut run =
        start(&folder, script, &[&ALONE[..], &["--approvals", "stdio", "--trust"]].concat());
    let ask = run.until_type("ask.opened");
    assert!(
        ask["summary"].as_str().unwrap().starts_with("MCP server rogue asks: hello\n"),
        "{ask}"
    );
    assert_eq!(ask["agent"]["path"], "main/asker", "{ask}");
    run.say(&answer(&ask["id"], "name=Ada"));
    let told = run.end();
    // Of each recipe: its calls, then what it came to.
    let asked = r#"{"action":"accept","content":{"colour":"blue","name":"Ada"}}"#;
    let expected = [asked, asked, "Toolnotfound:rogue-2__more", "hello", "late", "late"];
    assert_eq!(outputs(&told), expected, "{}", told.stderr);
}

/// A recipe's server that takes its time holds nobody up, and is there when it comes; of one that
/// never does, people hear too.
#[test]
fn servers_that_recipes_bring_are_not_waited_for() {
    let Some(python) = python() else { return };
    let folder = Folder::new("mcp-brought-slow");
    let rogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/rogue.py");
    folder.write("rogue.py", &fs::read_to_string(rogue).unwrap());
    fs::create_dir_all(folder.0.join(".goose/recipes")).unwrap();
    let recipe = format!(
        "title: slow\ndescription: d\nprompt: p\nextensions:\n\
         - {{type: builtin, name: developer}}\n- type: stdio\n  name: rogue\n  \
         cmd: {python}\n  args: [rogue.py, slow, \"8\"]\n- type: stdio\n  name: nobody\n  \
         cmd: no-such-program\n  args: []\n"
    );
    folder.write(".goose/recipes/slow.yaml", &recipe);
    let script = "
agents:
  main:
    - calls: [{call_recipe: {recipe: slow, message: x}}]
    - {say: 'got: {{last}}'}
  slow:
    - calls: [{rogue__echo: {words: early}}]
    - calls: [{exec: {command: 'sleep 12'}}]
    - calls: [{rogue__echo: {words: late}}]
    - {say: '{{last}}'}
";
    let told = start(&folder, script, &[&ALONE[..], &["--trust"]].concat()).end();
    let expected = ["Toolnotfound:rogue__echo", "", "late", "late"];
    assert_eq!(outputs(&told), expected, "{}", told.stderr);
    let missing = "note: The tools of the server nobody are missing: ";
    assert!(told.stderr.contains(missing), "{}", told.stderr);
}

/// How long until the first tool was called, which is when the model has answered once.
fn first_call(run: &mut Running, since: Instant) -> Duration {
    run.until_type("tool.started");
    since.elapsed()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real time is what is tested")]
fn nobody_waits_for_a_slow_server() {
    let script = "
agents:
  main:
    - calls: [{exec: {command: 'sleep 8'}}]
    - calls: [{rogue__echo: {words: hello}}]
    - {say: 'got: {{last}}'}
";
    let Some(folder) = folder("slow", &["slow", "5"]) else { return };
    let since = Instant::now();
    let mut run = start(&folder, script, &ALONE);
    let fresh = first_call(&mut run, since);
    let told = run.end();
    // Its tools came later, and were there when they were called.
    assert_eq!(outputs(&told).last().map(String::as_str), Some("hello"), "{}", told.stderr);
    assert!(told.stderr.contains("still starting"), "{}", told.stderr);
    let since = Instant::now();
    let model = folder.script("again.yaml", ONCE);
    let arguments = ["run", "go", "-m", &model, "-s", "t", "--mode", "auto"];
    let mut run = Running::start(&folder, &arguments);
    let known = first_call(&mut run, since);
    let told = run.end();
    assert_eq!(outputs(&told), ["hello"], "{}", told.stderr);
    assert!(!told.stderr.contains("missing"), "{}", told.stderr);
    eprintln!("first call after {fresh:?} without, {known:?} with what was remembered");
    // Five would be the server's own time.
    assert!(fresh < Duration::from_millis(4_500), "{fresh:?}");
    assert!(known < Duration::from_millis(1_900), "{known:?}");
}

#[test]
fn a_server_that_hangs_fails_its_call_and_says_so() {
    let Some(folder) = folder("hang", &["hang_call"]) else { return };
    let text = folder.read("locum/mcp.json").replace("20000", "1500");
    folder.write("locum/mcp.json", &text);
    let told = start(&folder, ONCE, &ALONE).end();
    let expected = "MCPserver`rogue`didnotfinishtool`echo`within1.5s";
    assert_eq!(outputs(&told), [expected]);
}

#[test]
fn what_servers_have_beside_tools() {
    let script = "
agents:
  main:
    - calls: [{mcp_resources: {}}]
    - calls: [{mcp_resources: {server: rogue, uri: 'note://one'}}]
    - calls: [{mcp_resources: {server: rogue, uri: 'picture://dot'}}]
    - calls: [{mcp_resources: {uri: 'note://one'}}]
    - calls: [{mcp_prompt: {server: rogue}}]
    - calls: [{mcp_prompt: {server: rogue, name: greet, arguments: {who: Ada}}}]
    - calls: [{mcp_prompt: {server: nobody, name: greet}}]
    - {say: done}
";
    let Some(folder) = folder("offers", &["offers"]) else { return };
    let told = start(&folder, script, &ALONE).end();
    let lines = told.of_type("tool.finished");
    let expected = [
        "rogue:\nnote://one (text/plain)  A note.\npicture://dot (image/png)  dot\ntemplate \
         note://{name}  any note\n",
        "the words of the note",
        "",
        "say which server has it: {\"server\": …, \"uri\": …}",
        "greet {who}  Greets somebody.",
        "user: Greet Ada warmly.",
        "there is no MCP server `nobody`; `locum mcp` lists those configured",
    ];
    let said: Vec<&str> = lines.iter().map(|line| line["output"].as_str().unwrap()).collect();
    assert_eq!(said, expected);
    let listed = folder.text(&["mcp", "resources", "rogue"]);
    assert!(listed.contains("note://one (text/plain)  A note."), "{listed}");
    assert_eq!(folder.text(&["mcp", "prompts", "rogue"]), "greet {who}  Greets somebody.\n");
    folder.refused(&["mcp", "prompts", "nobody"], 1, "E404");
    let servers = folder.json(&["mcp", "list"]);
    assert_eq!(servers[0]["state"], "connected", "{servers}");
    assert_eq!(servers[0]["tools"][0]["name"], "rogue__echo", "{servers}");
}

/// The authority and its server, ended with the test.
struct Guarded {
    child: Child,
    base: String,
    _watch: Watch,
}

impl Guarded {
    fn start() -> Option<Guarded> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/guarded.py");
        let mut child = Command::new(python()?).arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut base = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut base).unwrap();
        let watch = Watch::over(child.id(), support::PATIENCE * 3);
        Some(Guarded { child, base: base.trim().to_owned(), _watch: watch })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a browser does with an address: the head of the answer.
fn visit(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_login_is_wanted_given_kept_and_forgotten() {
    let Some(guarded) = Guarded::start() else { return };
    let folder = Folder::new("mcp-login");
    configure(&folder, "vault", &json!({ "url": format!("{}/mcp", guarded.base) }));
    let script = "
agents:
  main:
    - calls: [{vault__peek: {}}]
    - {say: 'got: {{last}}'}
";
    let told = start(&folder, script, &ALONE).end();
    assert!(told.stderr.contains("do: locum mcp login vault"), "{}", told.stderr);
    let output = folder.output(&["mcp", "list"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.starts_with("vault: needs login"), "{listed}");

    let mut command = folder.locum(&["mcp", "login", "vault"]);
    let mut login = command.stdout(Stdio::piped()).spawn().unwrap();
    let _watch = Watch::over(login.id(), support::PATIENCE);
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
    let page = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("http")).unwrap();
    let answer = visit(&page);
    let target = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    // Somebody else's page is sent away and ends nothing.
    let forged = visit(&target.replace("state=", "state=x"));
    assert!(forged.starts_with("HTTP/1.1 404"), "{forged}");
    assert!(visit(target).starts_with("HTTP/1.1 200"));
    let last: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(login.wait().unwrap().success());
    assert_eq!(last, ["Logged in at vault. Tools: 1"]);

    let kept = fs::read_dir(folder.data().join("logins")).unwrap().next().unwrap().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let model = folder.script("again.yaml", script);
    let run = ["run", "go", "-m", &model, "-s", "t", "--mode", "auto"];
    assert_eq!(Running::start(&folder, &run).end().result()["text"], "got: treasure");
    folder.text(&["mcp", "logout", "vault"]);
    let output = folder.output(&["mcp"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("vault: needs login"));
}
