//! What we send, held against what others know of the wires: the types of the official SDKs, and a
//! server that was written by somebody else. Needs the network to fetch them, so only on request:
//! `LOCUM_SDK_TESTS=1`. What is fetched is kept under `target/sdk`.
#![cfg(debug_assertions)] // Props stand beside a model on the network only there.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "proxy/line.rs"]
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod line;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use line::{Fault, Line, Stays};
use serde_json::{Value, json};
use support::{Folder, lines, of_type, output_of, stderr};

/// Everything a request can carry: texts, thoughts, calls side by side, results, errors, arguments
/// that are none, a sub-agent.
const SCRIPT: &str = r#"
tools: {mend: {class: write, says: mended, log: effects.log}}
agents:
  main:
    - say: "Looking. Grüße 👋"
      reasoning: "Two things are broken."
      calls: [{list_agents: {}}, {ls: {path: "."}}, {mend: {path: a.txt}}]
    - calls: [{use_agent: {agent: worker, message: "count to three", label: counter}}]
    - {reasoning: "What was it called?", calls: [{no_such_tool: {a: [1, null]}}]}
    - malformed_call: '{"path": "a'
    - say: "All done."
  worker:
    - {say: "counting", reasoning: "One, two.", calls: [{list_agents: {}}]}
    - calls: [{complete: {result: "three"}}]
"#;

fn is_wanted() -> bool {
    let wanted = std::env::var_os("LOCUM_SDK_TESTS").is_some();
    if !wanted {
        eprintln!("skipped: fetches packages; LOCUM_SDK_TESTS=1 runs it");
    }
    wanted
}

fn fetched() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("sdk");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether it went well; what it said is shown.
fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A Python that has the SDKs. None: they cannot be had.
fn python() -> Option<PathBuf> {
    let folder = fetched().join("venv");
    let python = folder.join("bin/python");
    let packages = ["anthropic", "openai", "google-genai", "ollama"];
    let has_all = "import anthropic, openai, google.genai, ollama";
    if !runs(Command::new(&python).args(["-c", has_all])) {
        let made = runs(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            && runs(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(packages));
        if !made {
            eprintln!("skipped: the SDKs cannot be fetched here");
            return None;
        }
    }
    Some(python)
}

/// A process that ends with the test.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn script_server(folder: &Folder) -> (Helper, String) {
    let script = folder.write("script.yaml", SCRIPT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
    command.arg("script-server").arg(&script).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Helper(command.spawn().unwrap());
    let mut said = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    let address = said.trim().strip_prefix("listening on http://").unwrap().to_owned();
    (server, address)
}

/// The requests of one run over a wire.
fn requests(folder: &Folder, model: &str, variables: [&str; 2], line: &Line) -> Vec<Value> {
    let session = model.replace('/', "-");
    let mut command = folder.locum(&["run", "go", "-m", model, "-s", &session, "--json"]);
    command.args(["--allow", "mend"]).env("LOCUM_PROPS", folder.0.join("script.yaml"));
    command.env(variables[0], "sk-very-secret").env(variables[1], &line.base);
    let output = output_of(command);
    let told = lines(&output);
    assert!(output.status.success(), "{model}: {}", stderr(&output));
    assert_eq!(told.last().unwrap()["text"], "All done.", "{model}");
    let asked = line.asked.lock().unwrap();
    let body = |request: &String| {
        // The line leaves the last brace where it is.
        let body = request.split_once("\r\n\r\n").unwrap().1.to_owned() + "}";
        serde_json::from_str(&body).unwrap()
    };
    asked.iter().map(body).collect()
}

fn answer(kind: &str, body: &str) -> Fault {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}");
    Fault::Instead(format!("{head}\r\nconnection: close\r\n\r\n{body}").into_bytes())
}

/// The same conversation as the script's, over wires our server does not speak.
fn canned_gemini() -> Vec<Fault> {
    let say = |parts: Value| {
        let event = json!({ "candidates": [
            { "content": { "role": "model", "parts": parts }, "finishReason": "STOP" },
        ] });
        answer("text/event-stream", &format!("data: {event}\r\n\r\n"))
    };
    let call = |name: &str, args: Value| json!({ "functionCall": { "name": name, "args": args } });
    let mut signed = call("list_agents", json!({}));
    signed["thoughtSignature"] = json!("c2ln");
    let task = json!({ "agent": "worker", "message": "count" });
    vec![
        say(json!([
            { "text": "Two things.", "thought": true }, { "text": "Looking." },
            signed, call("ls", json!({ "path": "." })), call("mend", json!({ "path": "a.txt" })),
        ])),
        say(json!([call("use_agent", task)])),
        say(json!([call("complete", json!({ "result": "three" }))])),
        say(json!([call("no_such_tool", json!({ "a": [1, null] }))])),
        say(json!([{ "text": "All done.", "thoughtSignature": "c2ln" }])),
    ]
}

fn canned_ollama() -> Vec<Fault> {
    let say = |message: Value| {
        let line = json!({ "message": message, "done": true, "done_reason": "stop" });
        answer("application/x-ndjson", &format!("{line}\n"))
    };
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "function": function })
    };
    let task = json!({ "agent": "worker", "message": "count" });
    vec![
        say(json!({
            "content": "Looking.", "thinking": "Two things.", "tool_calls": [
                call("list_agents", json!({})), call("ls", json!({ "path": "." })),
                call("mend", json!({ "path": "a.txt" })),
            ],
        })),
        say(json!({ "content": "", "tool_calls": [call("use_agent", task)] })),
        say(json!({ "tool_calls": [call("complete", json!({ "result": "three" }))] })),
        say(json!({ "tool_calls": [call("no_such_tool", json!({ "a": [1, null] }))] })),
        say(json!({ "content": "All done." })),
    ]
}

#[test]
fn requests_are_such_as_the_official_sdks_send() {
    if !is_wanted() {
        return;
    }
    let Some(python) = python() else { return };
    let folder = Folder::new("sdk");
    let (_server, address) = script_server(&folder);
    let to_script = || Line::to(&address, Vec::new(), Stays::No);
    let openai = ["OPENAI_API_KEY", "OPENAI_BASE_URL"];
    let gemini = || Line::to("127.0.0.1:1", canned_gemini(), Stays::No);
    let ollama = || Line::to("127.0.0.1:1", canned_ollama(), Stays::No);
    let runs = [
        ("anthropic/x", ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"], to_script()),
        ("openai-chat/x", openai, to_script()),
        ("openai-responses/x", openai, to_script()),
        ("gemini/x", ["GEMINI_API_KEY", "GEMINI_BASE_URL"], gemini()),
        ("ollama/x", ["OLLAMA_API_KEY", "OLLAMA_HOST"], ollama()),
    ];
    let kept = fetched().join("requests");
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept).unwrap();
    for (model, variables, line) in runs {
        let wire = model.split_once('/').unwrap().0;
        let requests = requests(&folder, model, variables, &line);
        assert!(requests.len() >= 5, "{model}: {} requests", requests.len());
        for (at, request) in requests.iter().enumerate() {
            fs::write(kept.join(format!("{wire}.{at:02}.json")), request.to_string()).unwrap();
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/validate.py");
    let output = Command::new(python).arg(script).arg(&kept).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{said}");
}

/// A call, then an answer once there is a result.
const FIXTURES: &str = r#"{"fixtures": [
    {"match": {"userMessage": "Look around", "hasToolResult": false}, "response": {
        "content": "I look.", "toolCalls": [{"name": "list_agents", "arguments": "{}"}]}},
    {"match": {"hasToolResult": true}, "response": {"content": "Nobody else is here."}}
]}"#;

#[test]
fn somebody_elses_server_is_understood_on_every_wire() {
    if !is_wanted() {
        return;
    }
    let npm = fetched().join("npm");
    let program = npm.join("node_modules/@copilotkit/aimock/dist/cli.js");
    if !program.is_file() {
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&npm);
        if !runs(install.arg("@copilotkit/aimock")) {
            eprintln!("skipped: the server cannot be fetched here");
            return;
        }
    }
    let folder = Folder::new("aimock");
    let fixtures = folder.write("fixtures.json", FIXTURES);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new("node");
    command.arg(program).args(["-p", &port.to_string(), "-f"]).arg(fixtures);
    let _server = Helper(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let is_there = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(100));
        TcpStream::connect(&address).is_ok()
    });
    assert!(is_there, "the server did not begin");
    let base = format!("http://{address}");
    let runs = [
        ("anthropic/x", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("openai-chat/x", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("openai-responses/x", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("gemini/x", "GEMINI_API_KEY", "GEMINI_BASE_URL"),
        ("ollama/x", "OLLAMA_API_KEY", "OLLAMA_HOST"),
    ];
    for (model, key, variable) in runs {
        let mut command = folder.locum(&["run", "Look around", "-m", model, "--json"]);
        command.env(key, "sk-very-secret").env(variable, &base);
        let output = output_of(command);
        let told = lines(&output);
        assert!(output.status.success(), "{model}: {} {told:?}", stderr(&output));
        assert_eq!(told.last().unwrap()["text"], "Nobody else is here.", "{model}");
        let tools = of_type(&told, "tool.finished");
        assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("list_agents")), "{model}");
        assert!(of_type(&told, "retry").is_empty(), "{model}");
    }
}
