//! Conversations over the Gemini and Ollama wires, through the real binary: two calls at once, a
//! sub-agent, thoughts, a server that is busy and one that breaks off.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// Status and content type, then the body.
type Answer = (&'static str, String);

/// Answers one request after the other, on whatever connection it comes, and gives them back.
fn serve(answers: Vec<Answer>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut answers = answers.into_iter();
        let mut requests = Vec::new();
        while answers.len() > 0 {
            let (mut stream, _) = listener.accept().unwrap();
            while let Some(asked) = request(&mut stream) {
                requests.push(asked);
                let (head, body) = answers.next().unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}")
                    .unwrap();
                if answers.len() == 0 {
                    break;
                }
            }
        }
        requests
    });
    (base, server)
}

/// None if the connection was closed.
fn request(stream: &mut TcpStream) -> Option<Value> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
        if let Some(Ok(asked)) = body {
            return Some(asked);
        }
    }
}

/// The lines a run told, and what it had asked.
fn talk(name: &str, model: &str, variable: &str, answers: Vec<Answer>) -> (Vec<Value>, Vec<Value>) {
    let folder = std::env::temp_dir().join(format!("locum-wires-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (base, server) = serve(answers);
    let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
    command.args(["run", "Hello", "-m", model, "--json", "--data"]).arg(folder.join("data"));
    command.current_dir(&folder).stdin(Stdio::null());
    let output = command.env("GEMINI_API_KEY", "sk").env(variable, base).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    (lines, server.join().unwrap())
}

/// What both conversations come to.
fn check(lines: &[Value]) {
    let told = |kind: &str| lines.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    assert_eq!(lines.last().unwrap()["text"], "All done.");
    assert_eq!(told("retry").len(), 1);
    assert_eq!(told("thinking.delta")[0]["text"], "Let me think.");
    let tools: Vec<_> = told("tool.finished").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(tools, ["list_agents", "ls", "complete", "use_agent"]);
    assert_eq!(told("agent.finished")[0]["result"], "42");
}

#[test]
fn a_conversation_with_gemini() {
    let stream = |events: &[Value]| {
        let events: Vec<String> = events.iter().map(|it| format!("data: {it}\r\n\r\n")).collect();
        ("200 OK\r\ncontent-type: text/event-stream", events.concat())
    };
    let parts = |parts: Value| json!({ "candidates": [{ "content": { "parts": parts } }] });
    let end = json!({ "candidates": [{ "finishReason": "STOP" }] });
    let busy = json!([{ "error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down",
        "details": [{ "retryDelay": "0.1s" }],
    } }]);
    let calls = json!([
        { "functionCall": { "id": "a", "name": "list_agents" }, "thoughtSignature": "c2ln" },
        { "functionCall": { "id": "b", "name": "ls", "args": {} } },
    ]);
    let arguments = json!([
        { "jsonPath": "$.agent", "stringValue": "worker" },
        { "jsonPath": "$.message", "stringValue": "think" },
    ]);
    let complete = json!({ "name": "complete", "args": { "result": "42" } });
    let (lines, requests) = talk(
        "gemini",
        "gemini/gemini-3-pro",
        "GEMINI_BASE_URL",
        vec![
            ("429 Too Many Requests\r\ncontent-type: application/json", busy.to_string()),
            stream(&[
                parts(json!([{ "text": "Let me think.", "thought": true }])),
                parts(calls.clone()),
                end.clone(),
            ]),
            stream(&[
                parts(json!([{ "functionCall": { "name": "use_agent", "willContinue": true } }])),
                parts(json!([{ "functionCall": { "partialArgs": arguments } }])),
                end.clone(),
            ]),
            stream(&[parts(json!([{ "functionCall": complete }])), end.clone()]),
            stream(&[parts(json!([{ "text": "All done." }])), end.clone()]),
        ],
    );
    check(&lines);
    let contents = requests[4]["contents"].as_array().unwrap();
    assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "c2ln");
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["id"], "b");
    assert_eq!(contents[4]["parts"][0]["functionResponse"]["response"], json!({ "output": "42" }));
}

#[test]
fn a_conversation_with_ollama() {
    let stream = |messages: &[Value], done: bool| {
        let line = |it: &Value| format!("{}\n", json!({ "message": it, "done": false }));
        let mut body: String = messages.iter().map(line).collect();
        if done {
            body.push_str("{\"done\":true,\"done_reason\":\"stop\"}\n");
        }
        ("200 OK\r\ncontent-type: application/x-ndjson", body)
    };
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "tool_calls": [{ "function": function }] })
    };
    let look = [
        json!({ "thinking": "Let me think." }),
        call("list_agents", json!({})),
        call("ls", json!({})),
    ];
    let delegate = call("use_agent", json!({ "agent": "worker", "message": "think" }));
    let (lines, requests) = talk(
        "ollama",
        "ollama/qwen3",
        "OLLAMA_HOST",
        vec![
            stream(&look, true),
            stream(std::slice::from_ref(&delegate), false),
            stream(&[delegate], true),
            stream(&[call("complete", json!({ "result": "42" }))], true),
            stream(&[json!({ "content": "All done." })], true),
        ],
    );
    check(&lines);
    let messages = requests[4]["messages"].as_array().unwrap();
    assert_eq!(messages[2]["thinking"], "Let me think.");
    assert_eq!(messages[4]["tool_name"], "ls");
    assert_eq!(messages[6]["content"], "42");
}
