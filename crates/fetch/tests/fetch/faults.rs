//! Answers of every kind, and servers that fail, lie, stall and never end. Limits of time are
//! short here, and held against a clock.

use std::io::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use locum_fetch::{Client, Cut, Limits, Page, Refused, Request, fetch};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::timeout;

use crate::server::{Answer, Server, answer, ok, to};

const WATCH: Duration = Duration::from_secs(30);

fn quick() -> Limits {
    let (first_byte, total) = (Duration::from_millis(300), Duration::from_millis(900));
    Limits { first_byte, total, body_bytes: 256 * 1024, ..Limits::default() }
}

async fn get(server: &Server, path: &str, limits: Limits) -> Result<Page, Refused> {
    let request = Request { limits, ..Request::new(server.url(path)) };
    timeout(WATCH, fetch(&request, &server.client())).await.expect("it ends")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const PAGE: &str = "<!doctype html><title>A  page</title><h1>Hello</h1><p>World";

fn good(path: &str) -> Answer {
    let html = "content-type: text/html; charset=utf-8\r\n";
    match path {
        "/page" => ok("text/html", PAGE),
        "/moved" => to("/page"),
        "/there" => to("page#part"),
        "/404" => answer("404 Not Found", html, "<h1>Not here</h1>"),
        "/500" => answer("500 Oops", "content-type: text/plain\r\n", "it broke"),
        "/204" => Answer::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        "/empty" => ok("text/html", ""),
        "/json" => ok("application/json", "{\"a\": [1, 2]}\n"),
        "/problem" => ok("application/problem+json", "{}"),
        "/xml" => ok("application/rss+xml", "<rss><b>x</b></rss>"),
        "/markdown" => ok("text/markdown", "# Title\r\n\r\ntext\u{e0041}\u{200b}"),
        "/script" => ok("text/javascript", "let a = '<b>';"),
        "/latin" => ok("text/html; charset=ISO-8859-1", b"<p>caf\xe9 \xfcber".as_slice()),
        "/meta" => ok("text/html", b"<meta charset=windows-1251><p>\xcf\xf0\xe8".as_slice()),
        "/long-meta" => {
            let body =
                b"<META http-equiv=content-type content='text/html; Charset=Shift_JIS'>\x93\xfa";
            ok("text/html", body.as_slice())
        }
        "/guessed" => ok("text/plain", b"na\xefve".as_slice()),
        "/utf16" => ok("text/plain", b"\xff\xfeh\0i\0".as_slice()),
        "/bom" => ok("text/plain; charset=latin1", "\u{feff}é".as_bytes()),
        "/unknown-charset" => ok("text/plain; charset=klingon", "é"),
        "/unnamed" => answer("200 OK", "", PAGE),
        "/unnamed-text" => answer("200 OK", "", "just text"),
        "/unnamed-binary" => answer("200 OK", "", b"\x7fELF\0\0\0".as_slice()),
        "/pdf" => ok("application/pdf", vec![b'%'; 5_000]),
        "/image" => ok("image/png", b"\x89PNG\0".as_slice()),
        "/liar" => ok("text/plain", b"PK\x03\x04\0\0\0\0".as_slice()),
        "/gzip" => {
            let head = format!("{html}content-encoding: gzip\r\n");
            answer("200 OK", &head, gzip(PAGE.as_bytes()))
        }
        "/identity" => answer("200 OK", &format!("{html}content-encoding: identity\r\n"), PAGE),
        "/chunked" => Answer::Bytes(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n\
              5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
                .to_vec(),
        ),
        "/to-the-end" => Answer::Bytes(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil it closes".to_vec(),
        ),
        other => ok("text/plain", other),
    }
}

#[tokio::test]
async fn answers_of_every_kind() {
    let server = Server::start(good).await;
    let cases = [
        ("/page", 200, "text/html", "# Hello\n\nWorld"),
        ("/moved", 200, "text/html", "# Hello\n\nWorld"),
        ("/there", 200, "text/html", "# Hello\n\nWorld"),
        ("/404", 404, "text/html", "# Not here"),
        ("/500", 500, "text/plain", "it broke"),
        ("/204", 204, "unnamed", ""),
        ("/empty", 200, "text/html", ""),
        ("/json", 200, "application/json", "{\"a\": [1, 2]}"),
        ("/problem", 200, "application/problem+json", "{}"),
        ("/xml", 200, "application/rss+xml", "<rss><b>x</b></rss>"),
        ("/markdown", 200, "text/markdown", "# Title\n\ntext"),
        ("/script", 200, "text/javascript", "let a = '<b>';"),
        ("/latin", 200, "text/html", "café über"),
        ("/meta", 200, "text/html", "При"),
        ("/long-meta", 200, "text/html", "日"),
        ("/guessed", 200, "text/plain", "naïve"),
        ("/utf16", 200, "text/plain", "hi"),
        ("/bom", 200, "text/plain", "é"),
        ("/unknown-charset", 200, "text/plain", "é"),
        ("/unnamed", 200, "unnamed", "# Hello\n\nWorld"),
        ("/unnamed-text", 200, "unnamed", "just text"),
        ("/gzip", 200, "text/html", "# Hello\n\nWorld"),
        ("/identity", 200, "text/html", "# Hello\n\nWorld"),
        ("/chunked", 200, "text/plain", "hello world"),
        ("/to-the-end", 200, "text/plain", "until it closes"),
    ];
    for (path, status, kind, text) in cases {
        let page = get(&server, path, Limits::default()).await.unwrap();
        let found = (page.status, page.kind.as_str(), page.text.as_str(), page.cut);
        assert_eq!(found, (status, kind, text, None), "{path}");
        assert!(page.is_text, "{path}");
    }
    let named = [
        ("/pdf", "(application/pdf, 5000 bytes: not text, so not shown)"),
        ("/image", "(image/png, 5 bytes: not text, so not shown)"),
        ("/liar", "(text/plain, 8 bytes: not text, so not shown)"),
        ("/unnamed-binary", "(unnamed, 7 bytes: not text, so not shown)"),
    ];
    for (path, told) in named {
        let shown = get(&server, path, Limits::default()).await.unwrap().show(0, 100);
        assert!(shown.ends_with(told), "{path}: {shown}");
    }
}

#[tokio::test]
async fn a_page_says_where_it_is_from_and_comes_in_parts() {
    let server = Server::start(good).await;
    let page = get(&server, "/moved", Limits::default()).await.unwrap();
    let at = server.address;
    let head = format!(
        "http://{at}/page (200, text/html)\ntitle: A page\nredirected from: http://{at}/moved\n\n"
    );
    let cases = [
        (0, 100, "# Hello\n\nWorld"),
        (0, 7, "# Hello\n\n(7 more characters; go on with offset 7)"),
        (9, 100, "World"),
        (99, 100, "(the text ends before character 99)"),
        (0, 0, "#\n\n(13 more characters; go on with offset 1)"),
    ];
    for (offset, limit, text) in cases {
        assert_eq!(page.show(offset, limit), format!("{head}{text}"), "{offset} {limit}");
    }
    let shown = get(&server, "/204", Limits::default()).await.unwrap().show(0, 10);
    assert_eq!(shown, format!("http://{at}/204 (204, unnamed)\n\n(no text)"));
}

#[tokio::test]
async fn who_asks_is_named_and_nothing_more_is_told() {
    let server = Server::start(good).await;
    let page = get(&server, "/echo", Limits::default()).await.unwrap();
    let mut lines: Vec<&str> = page.text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let expected = format!(
        "GET /echo HTTP/1.1\n\
         accept-encoding: gzip\n\
         accept: text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5\n\
         host: {}\n\
         user-agent: locum/{} (web_fetch)",
        server.address,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(lines.join("\n"), expected);
}

/// Packed before anybody waits for them.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![0; 20_000_000]));
static BIG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text: Vec<String> = (0..40_000).map(|number| format!("line {number}\n")).collect();
    gzip(text.concat().as_bytes())
});

fn bad(path: &str) -> Answer {
    let text = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
    let packed = |body: Vec<u8>| {
        answer("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", body)
    };
    match path {
        "/loop" => to("/loop"),
        "/far/0" => ok("text/plain", "there"),
        "/nowhere" => Answer::Bytes(b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_vec()),
        "/garbage" => to("http://[not an address"),
        "/silent" => Answer::Silence,
        "/slow-head" => Answer::Dribble(Vec::new(), vec![b'H'; 500], Duration::from_millis(50)),
        "/slow-body" => {
            let head = format!("{text}content-length: 500\r\n\r\n");
            Answer::Dribble(head.into_bytes(), vec![b'x'; 500], Duration::from_millis(20))
        }
        "/endless" => Answer::Endless(format!("{text}\r\n").into_bytes(), vec![b'x'; 8_192]),
        "/endless-head" => Answer::Endless(text.as_bytes().to_vec(), b"x-a: b\r\n".repeat(500)),
        "/endless-line" => Answer::Endless(format!("{text}x-a: ").into_bytes(), vec![b'x'; 4_096]),
        "/endless-chunks" => Answer::Endless(
            format!("{text}transfer-encoding: chunked\r\n\r\n").into_bytes(),
            b"4\r\nabcd\r\n".repeat(500),
        ),
        "/huge-head" => {
            let big = format!("x-big: {}\r\n", "x".repeat(90_000));
            answer("200 OK", &big, "x")
        }
        "/many-heads" => {
            let many: Vec<String> = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
            answer("200 OK", &many.concat(), "x")
        }
        "/bomb" => packed(BOMB.clone()),
        "/big-gzip" => packed(BIG.clone()),
        "/double-gzip" => {
            let twice = gzip(&gzip(b"text"));
            let head = "content-type: text/plain\r\ncontent-encoding: gzip, gzip\r\n";
            answer("200 OK", head, twice)
        }
        "/not-gzip" => packed(b"this is not packed at all".to_vec()),
        "/cut-gzip" => {
            let mut bytes = gzip(&b"some words to pack, and more of them".repeat(500));
            bytes.truncate(bytes.len() - 20);
            packed(bytes)
        }
        "/brotli" => answer("200 OK", "content-encoding: br\r\n", "x"),
        "/zstd" => answer("200 OK", "content-encoding: zstd\r\n", "x"),
        "/short" => {
            Answer::Bytes(format!("{text}content-length: 500\r\n\r\nonly this").into_bytes())
        }
        "/long" => Answer::Bytes(format!("{text}content-length: 4\r\n\r\nonly this").into_bytes()),
        "/broken-chunk" => Answer::Bytes(
            format!("{text}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n").into_bytes(),
        ),
        "/two-lengths" => Answer::Bytes(
            format!("{text}content-length: 4\r\ncontent-length: 9\r\n\r\nonly this").into_bytes(),
        ),
        "/not-http" => Answer::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        "/nothing" => Answer::Bytes(Vec::new()),
        other => match other.strip_prefix("/far/").and_then(|far| far.parse::<u32>().ok()) {
            Some(far) => to(&format!("/far/{}", far - 1)),
            None => ok("text/plain", "?"),
        },
    }
}

/// Each ends soon, with a reason that says what happened.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "that it ends soon is what is tested")]
async fn servers_that_fail() {
    assert!(BOMB.len() < 100_000 && BIG.len() > 1_000);
    let server = Server::start(bad).await;
    let cases = [
        ("/loop", "leads on after 5 redirects"),
        ("/far/6", "leads on after 5 redirects"),
        ("/nowhere", "redirects (302) to nowhere"),
        ("/garbage", "redirects (302) to nowhere"),
        ("/silent", "said nothing within"),
        ("/slow-head", "said nothing within"),
        ("/slow-body", "took longer than"),
        ("/endless-head", "endless-head "),
        ("/endless-line", "endless-line "),
        ("/huge-head", "have 90"),
        ("/many-heads", "cannot be reached"),
        ("/bomb", "grows to more than 200 times its size"),
        ("/double-gzip", "is sent as gzip, gzip"),
        ("/not-gzip", "is not packed the way it says"),
        ("/brotli", "is sent as br,"),
        ("/zstd", "is sent as zstd,"),
        ("/two-lengths", "cannot be reached"),
        ("/not-http", "cannot be reached"),
        ("/nothing", "cannot be reached"),
    ];
    for (path, told) in cases {
        let begun = Instant::now();
        let refused = get(&server, path, quick()).await.unwrap_err().to_string();
        assert!(refused.contains(told), "{path}: {refused}");
        assert!(refused.contains(&server.address.to_string()), "{path}: {refused}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
    }
}

/// What came is shown, and that it is not all.
#[tokio::test]
async fn pages_that_are_cut() {
    assert!(BOMB.len() < 100_000 && BIG.len() > 1_000);
    let server = Server::start(bad).await;
    let size = quick().body_bytes;
    let cases = [
        ("/endless", Some(Cut::Size), size),
        ("/endless-chunks", Some(Cut::Size), size),
        ("/big-gzip", Some(Cut::Size), size),
        ("/short", Some(Cut::Broken), 9),
        ("/broken-chunk", Some(Cut::Broken), 5),
        ("/long", None, 4),
        ("/far/5", None, 5),
    ];
    for (path, cut, bytes) in cases {
        let limits = Limits { body_bytes: size, ..Limits::default() };
        let page = get(&server, path, limits).await.unwrap();
        assert_eq!((page.cut, page.bytes), (cut, Some(bytes as u64)), "{path}");
    }
    let page = get(&server, "/cut-gzip", quick()).await.unwrap();
    assert_eq!(page.cut, Some(Cut::Broken));
    assert!(page.text.starts_with("some words to pack"), "{}", page.text.len());
    let shown = get(&server, "/short", quick()).await.unwrap().show(0, 99);
    assert!(shown.contains("note: the server stopped in the middle"), "{shown}");
}

#[tokio::test]
async fn a_port_where_nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::builder().allow_private([address]).build().unwrap();
    let refused = fetch(&Request::new(format!("http://{address}/")), &client).await.unwrap_err();
    assert!(refused.to_string().contains("cannot be reached: Connection refused"), "{refused}");
}

/// A certificate that nobody vouches for is refused, and taken if it is named as trusted.
#[tokio::test]
async fn encrypted_pages_need_a_certificate_that_is_trusted() {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("../tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../tls/key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
    let server = Server::serve(good, Some(Arc::new(config).into())).await;
    let request = Request::new(format!("https://{}/page", server.address));
    let stranger = fetch(&request, &server.client()).await.unwrap_err();
    assert!(matches!(stranger, Refused::Unreachable { .. }), "{stranger}");
    assert!(stranger.to_string().contains("certificate"), "{stranger}");
    let friend = Client::builder().allow_private([server.address]).trust_only([certificate]);
    let page = timeout(WATCH, fetch(&request, &friend.build().unwrap())).await.unwrap().unwrap();
    assert_eq!(page.text, "# Hello\n\nWorld");
    let plain = Request::new(server.url("/page"));
    assert!(fetch(&plain, &server.client()).await.is_err(), "not without encryption");
}

/// Variables that send everybody else through a proxy mean nothing here.
#[tokio::test]
async fn no_proxy_is_used() {
    let server = Server::start(good).await;
    let me = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(me);
    command.args(["--exact", "faults::behind_a_proxy", "--nocapture"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env("LOCUM_FETCH_CHILD", server.address.to_string());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("fetched # Hello"), "{told}");
}

/// Not a test of its own: what the process does that was given a proxy.
#[tokio::test]
async fn behind_a_proxy() {
    let Ok(address) = std::env::var("LOCUM_FETCH_CHILD") else { return };
    let client = Client::builder().allow_private([address.parse().unwrap()]).build().unwrap();
    let request = Request::new(format!("http://{address}/page"));
    let page = timeout(WATCH, fetch(&request, &client)).await.unwrap().unwrap();
    writeln!(std::io::stderr(), "fetched {}", page.text).unwrap();
}
