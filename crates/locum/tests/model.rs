//! Models over the network, through the real binary: an answer, a call and its result, and what is
//! said when the key or the address is of no use.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

const SECRET: &str = "sk-very-secret";

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("locum-model-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn run(&self, model: &str, variables: &[(&str, &str)], flags: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.args(["run", "Hello", "-m", model]).args(flags).arg("--data").arg(&self.0);
        command.env("XDG_CONFIG_HOME", &self.0).env_remove("LOCUM_CONFIG");
        command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
        let output = command.envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
        for stream in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(stream).contains(SECRET), "{output:?}");
        }
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Answers one request after the other on one connection, and gives the requests back.
fn serve(answers: Vec<Vec<Value>>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        answers.iter().map(|events| answer(&mut stream, events)).collect()
    });
    (base, server)
}

fn answer(stream: &mut TcpStream, events: &[Value]) -> Value {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let asked = loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the connection was closed early");
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
        if let Some(Ok(asked)) = body {
            break asked;
        }
    };
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let body = events.concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    asked
}

fn message(blocks: &[(Value, Value)], reason: &str) -> Vec<Value> {
    let mut events = vec![json!({ "type": "message_start", "message": {
        "id": "m", "usage": { "input_tokens": 3, "cache_read_input_tokens": 4 },
    } })];
    for (index, (block, delta)) in blocks.iter().enumerate() {
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        let delta = json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend([start, delta, json!({ "type": "content_block_stop", "index": index })]);
    }
    let delta = json!({ "stop_reason": reason });
    let usage = json!({ "output_tokens": 5 });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn text(text: &str) -> (Value, Value) {
    (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }))
}

fn call(name: &str, arguments: &str) -> (Value, Value) {
    let block = json!({ "type": "tool_use", "id": "toolu_1", "name": name, "input": {} });
    (block, json!({ "type": "input_json_delta", "partial_json": arguments }))
}

#[test]
fn a_call_and_an_answer() {
    let folder = Folder::new("answer");
    let (base, server) = serve(vec![
        message(&[text("I look."), call("list_agents", "{}")], "tool_use"),
        message(&[text("Nobody else is here.")], "end_turn"),
    ]);
    let variables = [("ANTHROPIC_API_KEY", SECRET), ("ANTHROPIC_BASE_URL", base.as_str())];
    let output = folder.run("anthropic/some-model", &variables, &["--json"]);
    let requests = server.join().unwrap();
    assert!(output.status.success(), "{output:?}");

    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let result = lines.last().unwrap();
    assert_eq!(result["type"], "run.result");
    assert_eq!(result["text"], "Nobody else is here.");
    assert_eq!(result["usage"]["in"], 14, "{result}");
    assert!(lines.iter().any(|it| it["type"] == "message.delta" && it["text"] == "I look."));

    let names: Vec<&Value> =
        requests[0]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("spawn_agent")), "{names:?}");
    let system = requests[0]["system"][0]["text"].as_str().unwrap();
    assert!(system.starts_with("You are \"main\", an agent of locum."), "{system}");
    assert!(system.contains("worker: Carries out one well-described piece of work"), "{system}");
    assert_eq!(requests[1]["model"], "some-model");
    let messages = requests[1]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(messages[0], requests[0]["messages"][0], "what was said stays as it was said");
    let (call, result) = (&messages[1]["content"][1], &messages[2]["content"][0]);
    assert_eq!(call["name"], "list_agents");
    assert_eq!(result["type"], "tool_result");
    assert_eq!(call["id"], result["tool_use_id"]);
}

/// The model, the environment, the exit code, the error's code and part of its words.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], i32, &'c str, &'c str);

#[test]
fn what_cannot_be_used_is_told_with_what_to_do() {
    let folder = Folder::new("wrong");
    let key = ("ANTHROPIC_API_KEY", SECRET);
    let base = "ANTHROPIC_BASE_URL";
    let cases: &[Case<'_>] = &[
        ("anthropic/x", &[], 6, "error[E106]", "ANTHROPIC_API_KEY is not set"),
        ("anthropic/x", &[key, (base, "ftp://a.example")], 6, "error[E107]", "no address of"),
        ("anthropic/x", &[key, (base, "a.example")], 6, "error[E107]", "no address of a provider"),
        ("anthropic/", &[key], 2, "error[E102]", "none without a name"),
        ("oracle/x", &[key], 2, "error[E102]", "There is no model \"oracle/x\"."),
    ];
    for (model, variables, exit, code, words) in cases {
        let output = folder.run(model, variables, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*exit), "{errors}");
        assert!(errors.starts_with(code) && errors.contains(words), "{errors}");
        assert!(errors.lines().last().unwrap().starts_with("do: "), "{errors}");
    }
}
