//! A provider that answers over a real socket, well or badly.

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use locum_kernel::{Failure, FailureKind, Reply, Time};

use super::{asked, person};
use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task};
use crate::wire::{self, BadAddress, Key, Settings, WireName};

const SECRET: &str = "sk-very-secret";

const WHOLE: &str = concat!(
    r#"data: {"type":"message_start","message":{"id":"m"}}"#,
    "\n\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
    "\n\n",
    r#"data: {"type":"content_block_delta","index":0,"#,
    r#""delta":{"type":"text_delta","text":"hi"}}"#,
    "\n\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
    "\n\n",
    r#"data: {"type":"message_stop"}"#,
    "\n\n",
);

/// Stands still.
#[derive(Debug)]
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        Time(784_111_777_000)
    }

    fn sleep_until(&self, _: Time) -> Task<()> {
        Box::pin(std::future::ready(()))
    }
}

/// Accepts one connection, reads one request for each of these responses, and shows the requests.
pub(super) fn serve(responses: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        responses.iter().map(|response| exchange(&mut stream, response)).collect()
    });
    (base, server)
}

fn exchange(stream: &mut TcpStream, response: &[u8]) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if read == 0 || length.is_some_and(|length| body.len() >= length.parse().unwrap()) {
            break;
        }
    }
    stream.write_all(response).unwrap();
    String::from_utf8(request).unwrap()
}

pub(super) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

pub(super) fn stream(body: &str) -> Vec<u8> {
    response("200 OK", "content-type: text/event-stream\r\n", body)
}

fn provider(base: &str, idle: Duration) -> Arc<dyn Provider> {
    let settings = Settings { idle, ..Settings::new(base, Key::new(SECRET)) };
    wire::provider(WireName::Anthropic, &settings, Arc::new(Still)).unwrap()
}

pub(super) fn block_on<T>(task: impl Future<Output = T>) -> T {
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tasks.block_on(task)
}

fn ask(anthropic: &Arc<dyn Provider>) -> Task<Result<Reply, Failure>> {
    anthropic.answer(asked(vec![person(1, "Hello")]), Live::nobody())
}

/// What any wire makes of one response, and what it had sent.
pub(super) fn answer_of(
    wire: WireName,
    asked: Asked,
    bytes: Vec<u8>,
) -> (Result<Reply, Failure>, String) {
    let (base, server) = serve(vec![bytes]);
    let settings = Settings::new(&base, Key::new(SECRET));
    let provider = wire::provider(wire, &settings, Arc::new(Still)).unwrap();
    let answer = block_on(provider.answer(asked, Live::nobody()));
    (answer, server.join().unwrap().remove(0))
}

fn answer(bytes: Vec<u8>) -> Result<Reply, Failure> {
    let (base, server) = serve(vec![bytes]);
    let answer = block_on(ask(&provider(&base, Duration::from_mins(1))));
    server.join().unwrap();
    answer
}

#[test]
fn two_questions_share_a_connection() {
    let (base, server) = serve(vec![stream(WHOLE), stream(WHOLE)]);
    let anthropic = provider(&base, Duration::from_mins(1));
    block_on(async {
        assert_eq!(ask(&anthropic).await.unwrap().text, "hi");
        assert_eq!(ask(&anthropic).await.unwrap().text, "hi");
    });
    let requests = server.join().unwrap();
    for request in requests {
        assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("x-api-key: sk-very-secret\r\n"), "{request}");
        assert!(request.contains("anthropic-version: 2023-06-01\r\n"), "{request}");
        assert!(request.contains("content-type: application/json\r\n"), "{request}");
        assert!(request.contains("\"stream\":true"), "{request}");
    }
}

#[test]
fn statuses_say_what_failed() {
    use FailureKind::{
        Auth, ContextTooLong, Malformed, Other, Overloaded, Quota, RateLimited, Server, Timeout,
        UnknownModel,
    };
    let named = |kind: &str, words: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{words}"}}}}"#)
    };
    let bad = named("invalid_request_error", "messages: nonsense");
    let long = named("invalid_request_error", "prompt is too long: 201 tokens > 200 maximum");
    let poor = named("invalid_request_error", "Your credit balance is too low");
    let cases = [
        ("401 Unauthorized", named("authentication_error", "invalid x-api-key"), Auth),
        ("403 Forbidden", String::new(), Auth),
        ("400 Bad Request", bad, Other),
        ("400 Bad Request", long, ContextTooLong),
        ("400 Bad Request", poor, Quota),
        ("404 Not Found", named("not_found_error", "model: x"), UnknownModel),
        ("413 Too Large", String::new(), ContextTooLong),
        ("429 Too Many", named("rate_limit_error", "slow down"), RateLimited),
        ("500 Oops", "<html>".into(), Server),
        ("502 Bad Gateway", String::new(), Server),
        ("504 Gateway Timeout", String::new(), Timeout),
        ("529 Overloaded", named("overloaded_error", "Overloaded"), Overloaded),
        ("302 Found", String::new(), Other),
        ("204 No Content", String::new(), Other),
    ];
    for (status, body, kind) in cases {
        let failure = answer(response(status, "location: http://127.0.0.1:1/\r\n", &body));
        let failure = failure.expect_err(status);
        assert_eq!(failure.kind, kind, "{status}: {failure:?}");
        assert_eq!(failure.status, Some(status[..3].parse().unwrap()));
        assert!(!failure.message.is_empty(), "{status}");
    }
    for kind in ["text/html; charset=utf-8", "application/json"] {
        let headers = format!("content-type: {kind}\r\n");
        let page = answer(response("200 OK", &headers, "<html><body>Sign in</body>"));
        assert_eq!(page.unwrap_err().kind, Malformed, "{kind}");
    }
    let page = answer(response("200 OK", "", "<html>\n<body>Sign in</body>"));
    assert_eq!(page.unwrap_err().kind, Malformed, "a page that does not say so");
}

#[test]
fn when_to_come_back_is_passed_on() {
    let cases = [
        ("retry-after: 7\r\n", Some(7_000)),
        ("retry-after: Sun, 06 Nov 1994 08:49:47 GMT\r\n", Some(10_000)),
        ("retry-after: later\r\n", None),
        ("", None),
    ];
    for (headers, expected) in cases {
        let failure = answer(response("429 Too Many", headers, "")).unwrap_err();
        assert_eq!(failure.retry_after_ms, expected, "{headers:?}");
    }
}

#[test]
fn a_connection_that_breaks_is_a_cut() {
    // Said to be longer than it is, then closed.
    let half = &WHOLE[..WHOLE.len() / 2];
    let torn = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{half}", WHOLE.len());
    assert_eq!(answer(torn.into_bytes()).unwrap_err().kind, FailureKind::Cut);
    // Without a length the end of the connection is the end of the body.
    let closed = format!("HTTP/1.1 200 OK\r\n\r\n{half}");
    assert_eq!(answer(closed.into_bytes()).unwrap_err().kind, FailureKind::Cut);
    let closed = format!("HTTP/1.1 200 OK\r\n\r\n{}", WHOLE.trim_end());
    assert_eq!(answer(closed.into_bytes()).unwrap().text, "hi");
    let broken = answer(b"SSH-2.0-hello\r\n".to_vec()).unwrap_err();
    assert_eq!(broken.kind, FailureKind::Server, "{broken:?}");
}

/// On this machine nobody comes by waiting: the second try is the last, and quick.
#[test]
fn nobody_there_is_told_with_the_address() {
    for host in ["127.0.0.1", "localhost"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("{host}:{}", listener.local_addr().unwrap().port());
        drop(listener);
        let asking = ask(&provider(&format!("http://{at}/v1"), Duration::from_mins(1)));
        let failure = block_on(asking).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Absent, "{failure:?}");
        assert_eq!(failure.message, format!("nobody listens at {at}"));
    }
}

/// A server that is started again is not given up in the moment it is away.
#[test]
fn who_comes_back_in_a_moment_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        let listener = TcpListener::bind(address).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        exchange(&mut stream, format!("HTTP/1.1 200 OK\r\n\r\n{WHOLE}").as_bytes());
    });
    let reply = block_on(ask(&provider(&format!("http://{address}"), Duration::from_mins(1))));
    assert_eq!(reply.unwrap().text, "hi");
    server.join().unwrap();
}

/// The server says nothing more until the client has gone.
#[test]
fn silence_is_a_timeout_before_and_within_an_answer() {
    for said in [String::new(), format!("HTTP/1.1 200 OK\r\n\r\n{}", &WHOLE[..200])] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            exchange(&mut stream, said.as_bytes());
            let mut rest = [0; 16];
            while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
        });
        let failure = block_on(ask(&provider(&base, Duration::from_millis(50)))).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{failure:?}");
        server.join().unwrap();
    }
}

#[test]
fn the_key_is_shown_to_nobody_else() {
    let echo = format!(r#"{{"error":{{"type":"x","message":"bad key {SECRET}!"}}}}"#);
    let failure = answer(response("401 Unauthorized", "", &echo)).unwrap_err();
    assert_eq!(failure.message, "bad key (the key)!");
    // Key, header, and what is left of a message that repeats both.
    let cases = [
        ("sk-very-secret", "Bearer also-very-secret-9", "bad (the key) or (the key), sk-"),
        ("k", "eu", "bad k or eu, sk-"),
        ("ollama", "team a", "bad ollama or team a, sk-"),
    ];
    for (key, header, expected) in cases {
        let echo = format!(r#"{{"error":{{"message":"bad {key} or {header}, sk-"}}}}"#);
        let (base, server) = serve(vec![response("401 Unauthorized", "", &echo)]);
        let headers = vec![("x-team".to_owned(), Key::new(header))];
        let settings = Settings { headers, ..Settings::new(&base, Key::new(key)) };
        let anthropic = wire::provider(WireName::Anthropic, &settings, Arc::new(Still)).unwrap();
        let failure = block_on(ask(&anthropic)).unwrap_err();
        assert_eq!(failure.message.replace("Bearer ", ""), expected);
        server.join().unwrap();
    }
    let settings = Settings::new("http://user:pw-1@127.0.0.1:1", Key::new(SECRET));
    let anthropic = wire::provider(WireName::Anthropic, &settings, Arc::new(Still)).unwrap();
    for shown in [format!("{settings:?}").replace("pw-1@", ""), format!("{anthropic:?}")] {
        assert!(!shown.contains(SECRET) && !shown.contains("pw-1"), "{shown}");
    }
    let failure = block_on(ask(&anthropic)).unwrap_err();
    assert!(!failure.message.contains("pw-1"), "{failure:?}");
}

#[test]
fn addresses_that_cannot_be_used() {
    let error = |base: &str, key: &str| {
        let settings = Settings::new(base, Key::new(key));
        wire::provider(WireName::Anthropic, &settings, Arc::new(Still)).map(drop).err()
    };
    assert!(matches!(error("nowhere", "k"), Some(BadAddress::NotOne(_))));
    assert!(matches!(error("ftp://host", "k"), Some(BadAddress::NotOne(_))));
    assert_eq!(error("http://host", "a\nb"), Some(BadAddress::Key));
    for base in ["https://host", "http://host", "http://host/", "http://host/v1", "http://host/v1/"]
    {
        assert_eq!(error(base, "k"), None, "{base}");
    }
}
