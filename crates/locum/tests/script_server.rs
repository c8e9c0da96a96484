//! `locum script-server` as other programs meet it: whole bodies in three wires, conversations,
//! faults, and many at once. What the bodies must be is in the files beside this one.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "script_server/faults.rs"]
mod faults;
#[path = "script_server/http.rs"]
mod http;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use http::{Server, locum};
use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/script_server/script.yaml");

/// A script without main.
const ANYBODY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/script_server/anybody.yaml");

const WIRES: [&str; 3] = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];

/// A request as the wire at that path wants it.
fn request(path: &str, model: &str, messages: &Value, stream: bool) -> Value {
    let list = if path == "/v1/responses" { "input" } else { "messages" };
    let mut request = json!({"model": model, "stream": stream, list: messages});
    if path == "/v1/chat/completions" {
        request["stream_options"] = json!({"include_usage": true});
    }
    request
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The text of a whole reply.
fn text(path: &str, reply: &Value) -> String {
    let text = match path {
        "/v1/messages" => &reply["content"][0]["text"],
        "/v1/chat/completions" => &reply["choices"][0]["message"]["content"],
        _ => &reply["output"][0]["content"][0]["text"],
    };
    text.as_str().unwrap_or_default().to_owned()
}

/// The messages that tell of a reply, and of what its calls gave.
fn answered(path: &str, reply: &Value) -> Vec<Value> {
    let result = |index: usize| format!("result {index}");
    match path {
        "/v1/messages" => {
            let calls = reply["content"].as_array().unwrap().iter();
            let ids = calls.filter(|it| it["type"] == "tool_use").map(|it| &it["id"]).enumerate();
            let results = ids.map(|(index, id)| {
                let content = json!([{"type": "text", "text": result(index)}]);
                json!({"type": "tool_result", "tool_use_id": id, "content": content})
            });
            let results = results.collect::<Vec<_>>();
            let reply = json!({"role": "assistant", "content": reply["content"]});
            vec![reply, json!({"role": "user", "content": results})]
        }
        "/v1/chat/completions" => {
            let message = &reply["choices"][0]["message"];
            let calls = message["tool_calls"].as_array().unwrap().iter().enumerate();
            let results = calls.map(|(index, call)| {
                let content = result(index);
                json!({"role": "tool", "tool_call_id": call["id"], "content": content})
            });
            [message.clone()].into_iter().chain(results).collect()
        }
        _ => {
            let output = reply["output"].as_array().unwrap();
            let calls = output.iter().filter(|item| item["type"] == "function_call").enumerate();
            let results = calls.map(|(index, call)| {
                let (id, output) = (&call["call_id"], result(index));
                json!({"type": "function_call_output", "call_id": id, "output": output})
            });
            output.iter().cloned().chain(results).collect()
        }
    }
}

#[test]
fn every_wire_says_it_in_its_own_words_to_the_byte() {
    let server = Server::start(SCRIPT);
    let expected = [
        (include_str!("script_server/anthropic.sse"), include_str!("script_server/anthropic.json")),
        (include_str!("script_server/chat.sse"), include_str!("script_server/chat.json")),
        (include_str!("script_server/responses.sse"), include_str!("script_server/responses.json")),
    ];
    let mut tags = BTreeSet::new();
    for (path, (stream, whole)) in WIRES.into_iter().zip(expected) {
        let ask = |stream| server.post(path, &request(path, "any", &json!([user("hi")]), stream));
        let reply = ask(true);
        assert!(reply.complete && reply.status == 200, "{path}");
        assert_eq!(reply.header("content-type"), Some("text/event-stream; charset=utf-8"));
        assert_eq!(reply.tagged(), stream, "{path}");
        assert_eq!(ask(false).tagged() + "\n", whole, "{path}");
        assert_eq!(ask(true).body, reply.body, "{path}: nothing is random");
        tags.insert(reply.tag().to_owned());
    }
    assert_eq!(tags.len(), 3, "the same words over another wire are another conversation");
    let mut request = request(WIRES[1], "any", &json!([user("hi")]), true);
    request["stream_options"] = Value::Null;
    let reply = server.post(WIRES[1], &request);
    assert!(reply.body.ends_with("data: [DONE]\n\n") && !reply.body.contains("usage"));
}

#[test]
fn a_conversation_goes_on_where_its_messages_say() {
    let server = Server::start(SCRIPT);
    for path in WIRES {
        let mut messages = vec![json!({"role": "system", "content": "Be kind."}), user("hi")];
        let mut texts = Vec::new();
        let mut tags = BTreeSet::new();
        for _ in 0..3 {
            let reply = server.post(path, &request(path, "any", &json!(messages), false));
            tags.insert(reply.tag().to_owned());
            let reply = reply.json();
            texts.push(text(path, &reply));
            if texts.len() == 1 {
                messages.extend(answered(path, &reply));
            } else {
                messages.extend([json!({"role": "assistant", "content": "x"}), user("on")]);
            }
        }
        assert_eq!(texts[1..], ["Then result 1, hi", "[script ended]"], "{path}");
        assert_eq!(tags.len(), 3, "{path}: ids are unique in a conversation");
    }
}

#[test]
fn words_of_the_user_may_come_in_blocks_and_beside_results() {
    let server = Server::start(SCRIPT);
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "result"});
    let word = |text: &str| json!({"type": "text", "text": text});
    let cases = [
        (json!([word("a"), word("b")]), "a\nb"),
        (json!([result, word("a"), word("b")]), "a\nb"),
        (json!([word("a"), result]), "result"),
        (json!([{"type": "image"}]), ""),
    ];
    for (content, last) in cases {
        let messages = json!([{"role": "user", "content": content}]);
        let reply = server.post(WIRES[0], &request(WIRES[0], "echo", &messages, false));
        assert_eq!(text(WIRES[0], &reply.json()), last, "{messages}");
    }
    let messages = json!([{"role": "user", "content": [{"type": "input_text", "text": "in"}]}]);
    let reply = server.post(WIRES[2], &request(WIRES[2], "echo", &messages, false));
    assert_eq!(text(WIRES[2], &reply.json()), "in");
    let reply = server.post(WIRES[2], &request(WIRES[2], "echo", &json!("just text"), false));
    assert_eq!(text(WIRES[2], &reply.json()), "just text");
}

#[test]
fn the_agent_is_the_model_then_whom_the_system_text_names_then_main() {
    let server = Server::start(SCRIPT);
    let researcher = "I am the researcher.";
    let cases = [
        ("researcher", "", researcher),
        ("script/v1/researcher", "You are `echo`.", researcher),
        ("some-model", "You are `researcher`, not `echo`.\nMore.", researcher),
        ("some-model", "You are `researcher`, not `silent`.", researcher),
        ("some-model", "\nYou are \"researcher\".", researcher),
        ("some-model", "You are researcher.", "main"),
        ("some-model", "Listen.\nYou are `researcher`.", "main"),
        ("*", "", "main"),
    ];
    for (model, system, said) in cases {
        for path in WIRES {
            let messages = match path {
                "/v1/chat/completions" => {
                    json!([{"role": "developer", "content": system}, user("hi")])
                }
                _ => json!([user("hi")]),
            };
            let mut request = request(path, model, &messages, false);
            match path {
                "/v1/messages" => request["system"] = json!([{"type": "text", "text": system}]),
                "/v1/responses" => request["instructions"] = json!(system),
                _ => {}
            }
            let reply = server.post(path, &request).body;
            let said = if said == "main" { "Two places." } else { said };
            assert!(reply.contains(said), "{path} {model} {system:?}: {reply}");
        }
    }
    let server = Server::start(ANYBODY);
    for path in WIRES {
        let reply = server.post(path, &request(path, "main", &json!([user("hi")]), false));
        assert_eq!(text(path, &reply.json()), "I could be anybody.");
    }
}

#[test]
fn an_agent_without_words_is_well_formed() {
    let server = Server::start(SCRIPT);
    let ask = |path, messages| server.post(path, &request(path, "silent", &messages, false)).json();
    let calls = WIRES.map(|path| ask(path, json!([user("hi")])));
    assert_eq!(calls[0]["content"].as_array().unwrap().len(), 1);
    assert_eq!(calls[1]["choices"][0]["message"]["content"], Value::Null);
    assert_eq!(calls[2]["output"].as_array().unwrap().len(), 1);
    let said = json!([user("hi"), {"role": "assistant", "content": "x"}, user("go on")]);
    let nothing = WIRES.map(|path| ask(path, said.clone()));
    assert_eq!(
        (&nothing[0]["content"], &nothing[0]["stop_reason"]),
        (&json!([]), &json!("end_turn"))
    );
    assert_eq!(nothing[1]["choices"][0]["message"]["content"], "");
    assert_eq!(nothing[2]["output"][0]["content"][0]["text"], "");
}

#[test]
fn many_are_answered_at_once_and_each_their_own() {
    let server = Server::start(SCRIPT);
    let together = Barrier::new(50);
    thread::scope(|scope| {
        for number in 0..50 {
            let (server, together) = (&server, &together);
            scope.spawn(move || {
                let mut client = server.connect();
                assert_eq!(client.send("GET", "/healthz", b"").unwrap().status, 200);
                // From here on all fifty are there.
                together.wait();
                for round in 0..6 {
                    let path = WIRES[(number + round) % 3];
                    let said = format!("{number} in {round}");
                    let body = request(path, "echo", &json!([user(&said)]), round % 2 == 0);
                    let reply = client.send("POST", path, body.to_string().as_bytes()).unwrap();
                    assert!(reply.complete && reply.body.contains(&said), "{said}: {reply:?}");
                }
            });
        }
    });
}

#[test]
fn routes_that_are_no_model_and_requests_that_make_no_sense() {
    let server = Server::start(SCRIPT);
    let mut client = server.connect();
    let mut get = |method: &str, path: &str, body: &str| {
        let reply = client.send(method, path, body.as_bytes()).unwrap();
        (reply.status, reply.json())
    };
    assert_eq!(get("GET", "/healthz", ""), (200, json!({"status": "ok"})));
    let (status, models) = get("GET", "/v1/models", "");
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("broken")));
    let count = r#"{"model": "any", "messages": [{"role": "user", "content": "hello"}]}"#;
    let counted = get("POST", "/v1/messages/count_tokens?beta=true", count);
    assert_eq!(counted, (200, json!({"input_tokens": 9})));
    let wrong = [
        ("GET", "/v1/nothing", "", 404, "There is no /v1/nothing here."),
        ("GET", "/v1/messages", "", 405, "/v1/messages takes POST, not GET."),
        ("POST", "/v1/messages", "{", 400, "The request is no JSON"),
        ("POST", "/v1/chat/completions", "", 400, "The request is no JSON"),
        ("POST", "/v1/messages", "{}", 400, "`messages` is missing"),
        ("POST", "/v1/messages", r#"{"messages": []}"#, 400, "`model` is missing"),
        ("POST", "/v1/chat/completions", r#"{"messages": 1}"#, 400, "`messages` is missing"),
        ("POST", "/v1/responses", r#"{"model": "any"}"#, 400, "`input` is missing"),
        ("POST", "/v1/responses", r#"{"previous_response_id": "a"}"#, 400, "`previous_response_id"),
        ("POST", "/v1/messages", r#"{"model": "a", "messages": [{}]}"#, 400, "`messages`: there"),
    ];
    for (method, path, body, status, start) in wrong {
        let (found, error) = get(method, path, body);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(found == status && message.starts_with(start), "{path} {body}: {found} {error}");
    }
}

#[test]
fn a_request_may_be_long_and_not_longer() {
    let server = Server::start(SCRIPT);
    let limit = 64 << 20;
    let mut body = json!({"model": "researcher", "messages": []}).to_string().into_bytes();
    body.resize(limit, b' ');
    let mut client = server.connect();
    assert_eq!(client.send("POST", "/v1/messages", &body).unwrap().status, 200);
    body.push(b' ');
    let reply = client.send("POST", "/v1/messages", &body).unwrap();
    assert_eq!((reply.status, &reply.json()["error"]["type"]), (413, &json!("request_too_large")));
    assert_eq!(client.send("GET", "/healthz", b"").unwrap().status, 200);
}

#[test]
#[cfg(unix)]
fn it_ends_when_told() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let server = Server::start(SCRIPT);
        let _idle = server.connect();
        assert_eq!(server.end(signal).code(), Some(code));
    }
}

#[test]
fn it_says_why_it_cannot_begin() {
    let server = Server::start(SCRIPT);
    let cases = [
        (vec!["script-server", SCRIPT, "--listen", &server.address], 6, "error[E109] "),
        (vec!["script-server"], 2, "error[E100] "),
        (vec!["script-server", "no such file"], 2, "error[E400] The script cannot be read."),
        (vec!["script-server", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], 2, "error[E4"),
    ];
    for (arguments, code, start) in cases {
        let output = locum(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && said.starts_with(start), "{said}");
        assert!(output.stdout.is_empty() && said.contains("\ndo: "), "{said}");
    }
}

/// Who would rather have a web socket tries again and again unless told so in its words.
#[test]
fn a_web_socket_is_refused_so_that_its_client_posts_instead() {
    let server = Server::start(SCRIPT);
    let upgrade = "connection: Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    for path in WIRES {
        let reply = server.connect().send_with("GET", path, upgrade, b"").unwrap();
        assert_eq!((reply.status, reply.header("upgrade")), (426, Some("HTTP/1.1")), "{path}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains("POST"), "{path}");
        let plain = server.connect().send("GET", path, b"").unwrap();
        assert_eq!((plain.status, plain.header("allow")), (405, Some("POST")), "{path}");
    }
}
