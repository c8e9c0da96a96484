//! What providers say when they will not answer, in their own words, through the real program: the
//! cause in human words, the exit code, no try that would be in vain; and a conversation that has
//! grown too long goes on after it was compacted.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "proxy/line.rs"]
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod line;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::process::Output;

use line::{Fault, Line, Stays};
use serde_json::{Value, json};
use support::{Folder, lines, of_type, output_of, stderr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

use Wire::{Anthropic, Chat, Gemini, Ollama, Responses};

impl Wire {
    /// The model, and the variables for key and address.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Anthropic => ("anthropic/x", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            Chat => ("openai-chat/x", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
            Responses => ("openai-responses/x", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
            Gemini => ("gemini/x", "GEMINI_API_KEY", "GEMINI_BASE_URL"),
            Ollama => ("ollama/x", "OLLAMA_API_KEY", "OLLAMA_HOST"),
        }
    }

    fn named(name: &str) -> Wire {
        match name {
            "anthropic" => Anthropic,
            "openai-chat" => Chat,
            "openai-responses" => Responses,
            "gemini" => Gemini,
            "ollama" => Ollama,
            _ => panic!("no wire is called {name}"),
        }
    }

    /// A whole answer that says this.
    fn says(self, text: &str) -> Vec<u8> {
        let all = match self {
            Anthropic => {
                let (block, delta) = (json!({ "type": "text" }), json!({ "stop_reason": "x" }));
                let said = json!({ "type": "text_delta", "text": text });
                vec![
                    json!({ "type": "message_start", "message": { "id": "m" } }),
                    json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                    json!({ "type": "content_block_delta", "index": 0, "delta": said }),
                    json!({ "type": "content_block_stop", "index": 0 }),
                    json!({ "type": "message_delta", "delta": delta }),
                    json!({ "type": "message_stop" }),
                ]
            }
            Chat => {
                let delta = json!({ "content": text });
                vec![json!({ "choices": [{ "delta": delta, "finish_reason": "stop" }] })]
            }
            Responses => {
                let parts = json!([{ "type": "output_text", "text": text }]);
                let output = json!([{ "type": "message", "content": parts }]);
                let response = json!({ "status": "completed", "output": output });
                vec![json!({ "type": "response.completed", "response": response })]
            }
            Gemini => {
                let content = json!({ "parts": [{ "text": text }] });
                vec![json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })]
            }
            Ollama => {
                let line = json!({ "message": { "content": text }, "done": true });
                return response("200", "application/x-ndjson", &format!("{line}\n"));
            }
        };
        let all: Vec<String> = all.iter().map(Value::to_string).collect();
        events(&all.join(" || "))
    }
}

fn response(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {length}");
    format!("{head}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

fn run(name: &str, wire: Wire, answers: Vec<Vec<u8>>) -> (Folder, Output) {
    let folder = Folder::new(&format!("refusals-{name}"));
    let answers = answers.into_iter().map(Fault::Instead).collect();
    let line = Line::to("127.0.0.1:1", answers, Stays::Yes);
    let (model, key, base) = wire.names();
    let mut command = folder.locum(&["run", "Hello", "-m", model, "--json", "-s", "s"]);
    command.env("LOCUM_HURRY", "1000").env(key, "sk-very-secret").env(base, &line.base);
    let output = output_of(command);
    drop(line);
    (folder, output)
}

/// What providers say, a line each; the file says how to read it.
const WORDS: &str = include_str!("refusals/words.txt");

struct Said {
    wire: Wire,
    cause: &'static str,
    answer: Vec<u8>,
    line: &'static str,
}

/// The lines of this kind.
fn words(kind: &str) -> Vec<Said> {
    let lines = WORDS.lines().filter(|line| line.starts_with(kind));
    let said: Vec<_> = lines.map(read).collect();
    assert!(said.len() >= 15, "only {} lines of {kind}", said.len());
    said
}

fn read(line: &'static str) -> Said {
    let [_, wire, status, cause, body] =
        line.splitn(5, " | ").collect::<Vec<_>>().try_into().unwrap();
    let answer = if status == "200" { events(body) } else { response(status, JSON, body) };
    Said { wire: Wire::named(wire), cause, answer, line }
}

const JSON: &str = "application/json";

fn events(events: &str) -> Vec<u8> {
    let events: Vec<String> =
        events.split(" || ").map(|event| format!("data: {event}\n\n")).collect();
    response("200", "text/event-stream", &events.concat())
}

/// Told once, without another try, in human words, with what to do.
fn check_told(output: &Output, cause: &str) -> Result<(), String> {
    let told = lines(output);
    let result = told.last().cloned().unwrap_or(Value::Null);
    let complaint = stderr(output);
    let retries = of_type(&told, "retry");
    let fine = output.status.code() == Some(6)
        && retries.is_empty()
        && result["status"] == "error"
        && result["text"].as_str().is_some_and(|text| text.contains(cause))
        && complaint.starts_with("error[E160] ")
        && complaint.contains(cause)
        && complaint.contains("\ndo: ")
        && !complaint.contains("sk-very-secret");
    if fine { Ok(()) } else { Err(format!("{:?} {retries:?} {result} {complaint}", output.status)) }
}

#[test]
fn a_refusal_is_told_with_its_cause() {
    let mut wrong = Vec::new();
    for (at, Said { wire, cause, answer, line }) in words("refused").into_iter().enumerate() {
        let (_folder, output) = run(&format!("refused-{at}"), wire, vec![answer]);
        wrong.extend(check_told(&output, cause).err().map(|it| format!("{line}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn what_has_grown_too_long_is_compacted_and_asked_once_more() {
    let mut wrong = Vec::new();
    for (at, Said { wire, cause, answer, line }) in words("too long").into_iter().enumerate() {
        let answers = vec![answer.clone(), wire.says("what was said"), wire.says("after all")];
        let (_folder, output) = run(&format!("long-{at}"), wire, answers);
        let told = lines(&output);
        let result = told.last().cloned().unwrap_or(Value::Null);
        let compacted = of_type(&told, "compacted").len();
        if !output.status.success() || result["text"] != "after all" || compacted != 1 {
            wrong.push(format!("{line}: {result} {} {compacted}", stderr(&output)));
        }
        // Too long even then: that is told, and not tried for ever.
        let answers = vec![answer.clone(), wire.says("what was said"), answer];
        let (_folder, output) = run(&format!("longer-{at}"), wire, answers);
        wrong.extend(check_told(&output, cause).err().map(|it| format!("again {line}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
