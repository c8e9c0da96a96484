//! A client that looks at bytes: it knows where a response ends, and whether it did end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than any test takes; a server that hangs fails it instead of stopping everything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The real program, ended with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(script: &str) -> Server {
        let mut child = locum(&["script-server", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on http://").unwrap().trim_end().to_owned();
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
        Server { child, address }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    /// One request on a connection of its own.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.connect().send("POST", path, body.to_string().as_bytes()).unwrap()
    }

    /// Sends it a signal and waits for what that does.
    #[cfg(unix)]
    pub(crate) fn end(mut self, signal: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn locum(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) struct Client(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// It ended where it said it would.
    pub(crate) complete: bool,
}

impl Client {
    /// `None`: the connection was closed without an answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Option<Reply> {
        self.send_with(method, path, "", body)
    }

    /// With more headers, each of which has an end.
    pub(crate) fn send_with(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
    ) -> Option<Reply> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\n{more}content-length: {length}\r\n\r\n"
        );
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
        self.0.get_mut().write_all(body).unwrap();
        let mut reply = self.head()?;
        let mut bytes = Vec::new();
        reply.complete = match reply.header("content-length") {
            Some(length) => {
                let length = length.parse().unwrap();
                self.0.by_ref().take(length).read_to_end(&mut bytes).unwrap();
                bytes.len() as u64 == length
            }
            None => self.chunks(&mut bytes),
        };
        reply.body = String::from_utf8(bytes).unwrap();
        Some(reply)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end_matches("\r\n").to_owned()
    }

    fn head(&mut self) -> Option<Reply> {
        let status = self.line();
        let status = status.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Some(Reply { status, headers, body: String::new(), complete: false })
    }

    /// Whether the last chunk came.
    fn chunks(&mut self, bytes: &mut Vec<u8>) -> bool {
        loop {
            let Ok(length) = u64::from_str_radix(&self.line(), 16) else { return false };
            self.0.by_ref().take(length).read_to_end(bytes).unwrap();
            self.line();
            if length == 0 {
                return true;
            }
        }
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    /// What all ids of this reply are made from.
    pub(crate) fn tag(&self) -> &str {
        let id = self.header("request-id").or(self.header("x-request-id")).unwrap();
        let tag = id.strip_prefix("req_").unwrap();
        assert!(tag.len() == 24 && tag.bytes().all(|byte| byte.is_ascii_hexdigit()), "{tag}");
        tag
    }

    /// The body with `TAG` for what differs from conversation to conversation.
    pub(crate) fn tagged(&self) -> String {
        self.body.replace(self.tag(), "TAG")
    }
}
