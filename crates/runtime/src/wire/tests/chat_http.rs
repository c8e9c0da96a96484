//! The chat wire over a real socket: its headers, its errors, and answers that are not streamed.

use std::sync::Arc;

use locum_kernel::{Failure, FailureKind, Reply};

use super::http::{Still, block_on, response, serve, stream};
use super::{asked, person};
use crate::live::Live;
use crate::wire::{self, Key, Settings, WireName};

const WHOLE: &str = r#"{
  "object": "chat.completion",
  "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
  ]
}"#;

const STREAMED: &str = concat!(
    r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
);

fn ask(key: &str, bytes: Vec<u8>) -> (Result<Reply, Failure>, String) {
    let (base, server) = serve(vec![bytes]);
    let settings = Settings::new(&base, Key::new(key));
    let chat = wire::provider(WireName::OpenAiChat, &settings, Arc::new(Still)).unwrap();
    let answer = block_on(chat.answer(asked(vec![person(1, "Hello")]), Live::nobody()));
    (answer, server.join().unwrap().remove(0))
}

fn json(status: &str, body: &str) -> Vec<u8> {
    response(status, "content-type: application/json; charset=utf-8\r\n", body)
}

#[test]
fn a_key_goes_into_its_header_and_none_goes_nowhere() {
    let (answer, request) = ask("sk-1", stream(&format!("{STREAMED}data: [DONE]\n\n")));
    assert_eq!(answer.unwrap().text, "hi");
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer sk-1\r\n"), "{request}");
    let (answer, request) = ask("", stream(STREAMED));
    assert_eq!(answer.unwrap().text, "hi", "a clean end without a mark");
    assert!(!request.contains("authorization"), "{request}");
}

#[test]
fn an_end_that_is_not_clean_is_a_cut() {
    let length = STREAMED.len() + 14;
    let torn = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{STREAMED}");
    let (answer, _) = ask("", torn.into_bytes());
    assert_eq!(answer.unwrap_err().kind, FailureKind::Cut);
}

#[test]
fn an_answer_in_one_piece_is_an_answer() {
    assert_eq!(ask("", json("200 OK", WHOLE)).0.unwrap().text, "hi");
    let cases = [
        (&WHOLE[..WHOLE.len() - 4], FailureKind::Malformed),
        (r#"{"error":{"code":429,"message":"slow"}}"#, FailureKind::RateLimited),
        (r#"{"hello":"world"}"#, FailureKind::Malformed),
        ("", FailureKind::Cut),
    ];
    for (body, kind) in cases {
        let failure = ask("", json("200 OK", body)).0.unwrap_err();
        assert_eq!(failure.kind, kind, "{body}: {failure:?}");
    }
}

#[test]
fn statuses_say_what_failed() {
    use FailureKind::{
        Auth, ContextTooLong, Filtered, Other, Overloaded, Quota, RateLimited, Server, UnknownModel,
    };
    let named = |kind: &str, code: &str, words: &str| {
        format!(r#"{{"error":{{"message":"{words}","type":"{kind}","param":null,"code":{code}}}}}"#)
    };
    let bad = "invalid_request_error";
    let big = "Request too large for this model on tokens per min (TPM)";
    let cases = [
        ("401 No", named(bad, "\"invalid_api_key\"", "no"), Auth),
        ("404 No", named(bad, "\"model_not_found\"", "no"), UnknownModel),
        ("400 No", named(bad, "\"context_length_exceeded\"", "no"), ContextTooLong),
        ("400 No", named(bad, "null", "no"), Other),
        ("402 No", named("unknown_error", "\"invalid_request_error\"", "no"), Quota),
        ("429 No", named("insufficient_quota", "\"insufficient_quota\"", "no"), Quota),
        ("429 No", named("tokens", "\"rate_limit_exceeded\"", "slow"), RateLimited),
        ("429 No", named("tokens", "\"rate_limit_exceeded\"", big), ContextTooLong),
        (
            "400 No",
            named("BadRequestError", "400", "the maximum context length is 9"),
            ContextTooLong,
        ),
        ("400 No", named(bad, "\"content_filter\"", "no"), Filtered),
        ("503 No", named("service_unavailable", "null", "no"), Overloaded),
        ("500 No", "<html>".into(), Server),
        ("404 No", r#"{"error":"model \"x\" not found"}"#.into(), UnknownModel),
        ("400 No", r#"[{"error":{"code":400,"message":"API key not valid"}}]"#.into(), Other),
        ("422 No", r#"{"object":"error","message":{"detail":[1]},"code":null}"#.into(), Other),
    ];
    for (status, body, kind) in cases {
        let failure = ask("", json(status, &body)).0.unwrap_err();
        assert_eq!(failure.kind, kind, "{status} {body}: {failure:?}");
        assert!(
            !failure.message.is_empty() && !failure.message.starts_with('{')
                || body.contains("detail"),
            "{failure:?}"
        );
    }
}

#[test]
fn somebody_known_is_spoken_with_wherever_it_is() {
    let (base, server) = serve(vec![stream(STREAMED)]);
    let provider = "mistral".to_owned();
    let settings = Settings { provider, ..Settings::new(&base, Key::new("k")) };
    let chat = wire::provider(WireName::OpenAiChat, &settings, Arc::new(Still)).unwrap();
    block_on(chat.answer(asked(vec![person(1, "Hello")]), Live::nobody())).unwrap();
    let request = server.join().unwrap().remove(0);
    assert!(!request.contains("stream_options"), "{request}");
}
