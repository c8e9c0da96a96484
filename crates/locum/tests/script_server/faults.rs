//! The faults of a script, as they come over the wire.

use serde_json::{Value, json};

use super::http::{Reply, Server};
use super::{SCRIPT, WIRES, request, text, user};

fn ask(server: &Server, path: &str, model: &str, stream: bool) -> Reply {
    server.post(path, &request(path, model, &json!([user("go")]), stream))
}

#[test]
fn an_error_comes_as_often_as_it_says_at_each_place_of_a_conversation() {
    let server = Server::start(SCRIPT);
    let begun = vec![user("go"), json!({"role": "assistant", "content": "one"}), user("more")];
    let errors = [
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "scripted"}}),
        json!({"error": {
            "type": "requests", "code": "rate_limit_exceeded", "message": "scripted", "param": null,
        }}),
    ];
    for (path, error) in WIRES.into_iter().zip([&errors[0], &errors[1], &errors[1]]) {
        // Whether it is the first time or not: who has been answered begins anew.
        for _ in 0..2 {
            let ask = |now: &str| {
                let mut messages = begun.clone();
                messages[0] = user(now);
                server.post(path, &request(path, "limited", &json!(messages), true))
            };
            for now in ["a", "b", "a", "b"] {
                let reply = ask(now);
                let waits = ["retry-after", "retry-after-ms"].map(|name| reply.header(name));
                assert_eq!((reply.status, waits), (429, [Some("2"), Some("1500")]));
                assert_eq!(&reply.json(), error);
            }
            assert!(ask("a").body.contains("two") && ask("b").body.contains("two"));
        }
        let mut later = begun.clone();
        later.extend([json!({"role": "assistant", "content": "two"}), user("and")]);
        let reply = server.post(path, &request(path, "limited", &json!(later), false));
        assert_eq!(text(path, &reply.json()), "three", "{path}: faults of the past are past");
    }
}

#[test]
fn every_status_has_its_word_and_what_is_none_is_500() {
    let server = Server::start(SCRIPT);
    let words = [
        ["overloaded_error", "api_error", "api_error"],
        ["server_error", "server_error", "server_error"],
        ["server_error", "server_error", "server_error"],
    ];
    for (path, words) in WIRES.into_iter().zip(words) {
        for (status, word) in [529, 500, 500].into_iter().zip(words) {
            let reply = ask(&server, path, "broken", false);
            assert_eq!((reply.status, &reply.json()["error"]["type"]), (status, &json!(word)));
            assert_eq!(reply.header("retry-after"), None);
        }
        assert_eq!(text(path, &ask(&server, path, "broken", false).json()), "mended");
    }
}

#[test]
fn a_system_text_that_tells_the_time_does_not_make_another_place() {
    let server = Server::start(SCRIPT);
    for path in WIRES {
        let statuses = [1, 2, 3, 4].map(|minute| {
            let system = json!({"role": "system", "content": format!("It is 12:0{minute}.")});
            let mut request = request(path, "broken", &json!([system, user("go")]), false);
            request["instructions"] = system["content"].clone();
            server.post(path, &request).status
        });
        assert_eq!(statuses, [529, 500, 500, 200], "{path}");
    }
}

/// The pieces of text and arguments in a stream.
fn pieces(body: &str) -> Vec<String> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let piece = |data: Value| {
        let places = [
            "/delta",
            "/delta/text",
            "/delta/partial_json",
            "/choices/0/delta/content",
            "/choices/0/delta/tool_calls/0/function/arguments",
        ];
        let piece = places.iter().find_map(|place| data.pointer(place)?.as_str());
        piece.filter(|piece| !piece.is_empty()).map(str::to_owned)
    };
    data.filter_map(piece).collect()
}

#[test]
fn a_stream_is_cut_where_the_script_says() {
    let server = Server::start(SCRIPT);
    let cases = [
        ("cut", vec!["This tex", "t is cut"]),
        ("cut-call", vec![r#"{"path":"#]),
        ("cut-at-end", vec!["12345678"]),
        ("cut-at-once", vec![]),
    ];
    let ends = ["message_delta", "finish_reason\":\"", "response.completed"];
    for (path, end) in WIRES.into_iter().zip(ends) {
        for (model, heard) in &cases {
            let cut = ask(&server, path, model, true);
            assert!(cut.status == 200 && !cut.complete, "{path} {model}");
            assert_eq!(&pieces(&cut.body), heard, "{path} {model}");
            let last = cut.body.trim_end().lines().last().unwrap();
            let nothing_follows = pieces(last).iter().eq(heard.last());
            assert!(nothing_follows, "{path} {model}: {last}");
            assert!(cut.body.ends_with("\n\n") && !cut.body.contains(end), "{}", cut.body);
            let whole = ask(&server, path, model, true);
            assert!(whole.complete && whole.body.contains(end), "{path} {model}");
            assert_eq!(pieces(&whole.body).concat(), "whole");
        }
        let cut = ask(&server, path, "cut", false);
        assert!(cut.status == 200 && !cut.complete && !cut.body.is_empty(), "{path}");
        assert_eq!(text(path, &ask(&server, path, "cut", false).json()), "whole");
    }
}

#[test]
fn who_hangs_says_nothing_and_is_late_the_next_time() {
    let server = Server::start(SCRIPT);
    for path in WIRES {
        let body = request(path, "hang", &json!([user("go")]), true).to_string();
        assert!(server.connect().send("POST", path, body.as_bytes()).is_none(), "{path}");
        let reply = ask(&server, path, "hang", true);
        assert!(reply.complete && pieces(&reply.body).concat() == "awake", "{path}");
    }
}

#[test]
fn arguments_may_be_malformed_in_a_stream_that_is_not() {
    let server = Server::start(SCRIPT);
    for path in WIRES {
        let reply = ask(&server, path, "malformed", true);
        assert!(reply.complete, "{path}");
        assert_eq!(pieces(&reply.body).concat(), r#"{"path": "a"#, "{path}");
    }
    let whole = WIRES.map(|path| ask(&server, path, "malformed", false).json());
    assert_eq!(whole[0]["content"][0]["input"], json!({}), "only a stream can say it");
    let call = &whole[1]["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], r#"{"path": "a"#);
    assert_eq!(whole[2]["output"][0]["arguments"], r#"{"path": "a"#);
}
