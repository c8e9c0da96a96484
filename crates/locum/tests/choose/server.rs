//! Providers for tests, on this machine: each answers every request the same way, and remembers
//! what it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

pub(crate) struct Server {
    /// Its address, without a scheme.
    pub(crate) host: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers with what `answer` makes of the request's first line.
    pub(crate) fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
        Server::with(answer, |stream, exchange| exchange(stream))
    }

    /// The same behind TLS, with the certificate of the test authority.
    pub(crate) fn encrypted(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");
        let certificate = CertificateDer::from_pem_file(format!("{folder}/server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(format!("{folder}/server.key")).unwrap();
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(crypto);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
        Server::with(answer, move |stream, exchange| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            exchange(&mut StreamOwned::new(connection, stream));
        })
    }

    fn with(
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
        wrap: impl Fn(&mut TcpStream, &mut dyn FnMut(&mut dyn Channel)) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (remembered, both) = (Arc::clone(&asked), Arc::new((answer, wrap)));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (remembered, both) = (Arc::clone(&remembered), Arc::clone(&both));
                thread::spawn(move || {
                    let (answer, wrap) = &*both;
                    wrap(&mut stream.unwrap(), &mut |channel| {
                        while let Some(request) = read(channel) {
                            let first = request.lines().next().unwrap_or_default().to_owned();
                            remembered.lock().unwrap().push(request);
                            if channel.write_all(answer(&first).as_bytes()).is_err() {
                                break;
                            }
                            let _ = channel.flush();
                        }
                    });
                });
            }
        });
        Server { host, asked }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.host)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

pub(crate) trait Channel: Read + Write {}

impl<T: Read + Write> Channel for T {}

/// One request, whole; none when the client has gone.
fn read(channel: &mut dyn Channel) -> Option<String> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = channel.read(&mut buffer).ok().filter(|count| *count > 0)?;
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return Some(text.into_owned());
        }
    }
}

pub(crate) fn response(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// An answer in the words of the Anthropic wire: a thousand tokens in, a hundred out.
pub(crate) fn says(text: &str) -> String {
    let events = [
        json!({ "type": "message_start", "message": { "id": "m",
            "usage": { "input_tokens": 1_000 } } }),
        json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
            "usage": { "output_tokens": 100 } }),
        json!({ "type": "message_stop" }),
    ];
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    response("200 OK", "text/event-stream", &events.concat())
}

pub(crate) fn refuses(status: &str, kind: &str, message: &str) -> String {
    let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
    response(status, "application/json", &error.to_string())
}

/// A server on this machine that has these models, and says this.
pub(crate) fn local(models: &[&str], text: &'static str) -> Server {
    let rows: Vec<Value> = models.iter().map(|name| json!({ "id": name, "name": name })).collect();
    let list = json!({ "data": rows, "models": rows }).to_string();
    Server::start(move |request| {
        let json = || response("200 OK", "application/json", &list);
        if request.starts_with("GET ") { json() } else { says(text) }
    })
}
