//! A line between a program and a server that behaves as it is told: slow, cut, reset, or with
//! somebody else's words on it. Every request is passed on whole and answered whole; what happens
//! to the answer on its way back is the fault.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A server that says nothing any more must not stop the tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    Chunks,
    /// By its length, more or less this many bytes.
    Length(isize),
    /// By the end of the connection.
    Close,
}

/// What happens to one answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    None,
    Framed(Framed),
    /// The connection is closed after so many bytes of the body.
    Cut(usize, Framed),
    /// The connection is closed after so many events, where nothing looks torn.
    CutAfter(usize),
    /// The connection is reset after so many bytes of the body.
    Reset(usize),
    /// One byte at a time, the head too.
    Dribble,
    Delay(Duration),
    /// Nothing at all comes back.
    Closed,
    /// Nobody is asked; this comes back.
    Instead(Vec<u8>),
    /// The body is changed on its way.
    Changed(fn(Vec<u8>) -> Vec<u8>),
}

pub(crate) struct Line {
    pub(crate) base: String,
    address: String,
    closing: Arc<AtomicBool>,
    /// What was asked, heads and bodies.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Line {
    /// To `server`, with these faults for the first answers; the last one stays if `stays`.
    pub(crate) fn to(server: &str, faults: Vec<Fault>, stays: Stays) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (closing, count) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let desk = Arc::new(Desk {
            server: server.to_owned(),
            faults,
            stays,
            count,
            asked: Arc::clone(&asked),
        });
        let over = Arc::clone(&closing);
        thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let desk = Arc::clone(&desk);
                // Whoever hangs up early is no failure of the line.
                thread::spawn(move || client.and_then(|client| desk.serve(client)));
            }
        });
        Line { base: format!("http://{address}"), address, closing, asked }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    Yes,
    No,
}

struct Desk {
    server: String,
    faults: Vec<Fault>,
    stays: Stays,
    count: AtomicUsize,
    asked: Arc<Mutex<Vec<String>>>,
}

/// Of the server's answer, without what the connection put around it.
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Desk {
    /// One request: every connection is closed after it, so that nothing is left over.
    fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_nodelay(true)?;
        client.set_read_timeout(Some(PATIENCE))?;
        let request = request(&mut client)?;
        self.asked.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
        let at = self.count.fetch_add(1, Ordering::Relaxed);
        let last = (self.stays == Stays::Yes).then(|| self.faults.last()).flatten();
        let fault = self.faults.get(at).or(last).cloned().unwrap_or(Fault::None);
        let is_reset = matches!(fault, Fault::Reset(_));
        self.answer(&mut client, &request, fault)?;
        if is_reset {
            // Closed with something unread, a connection is reset: see `request`.
            return Ok(());
        }
        client.shutdown(Shutdown::Write)?;
        while client.read(&mut [0; 4096])? > 0 {}
        Ok(())
    }

    fn answer(&self, client: &mut TcpStream, request: &[u8], fault: Fault) -> std::io::Result<()> {
        let ask = || self.ask(request);
        match fault {
            Fault::None => send(client, &ask()?, Framed::Chunks, usize::MAX),
            Fault::Framed(framed) => send(client, &ask()?, framed, usize::MAX),
            Fault::Cut(at, framed) => send(client, &ask()?, framed, at),
            Fault::CutAfter(events) => {
                let answer = ask()?;
                let ends = answer.body.windows(2).enumerate().filter(|(_, two)| two == b"\n\n");
                let end = ends.map(|(at, _)| at + 2).take(events).last().unwrap_or(0);
                send(client, &answer, Framed::Close, end)
            }
            Fault::Reset(at) => send(client, &ask()?, Framed::Chunks, at),
            Fault::Dribble => {
                let answer = ask()?;
                let mut bytes = Vec::new();
                put(&mut bytes, &answer, Framed::Length(0), usize::MAX)?;
                for byte in bytes {
                    client.write_all(&[byte])?;
                }
                Ok(())
            }
            Fault::Delay(pause) => {
                thread::sleep(pause);
                send(client, &ask()?, Framed::Chunks, usize::MAX)
            }
            Fault::Closed => Ok(()),
            Fault::Instead(bytes) => client.write_all(&bytes),
            Fault::Changed(change) => {
                let Answer { head, body } = ask()?;
                send(client, &Answer { head, body: change(body) }, Framed::Chunks, usize::MAX)
            }
        }
    }

    fn ask(&self, request: &[u8]) -> std::io::Result<Answer> {
        let mut server = TcpStream::connect(&self.server)?;
        server.set_read_timeout(Some(PATIENCE))?;
        let at = head_end(request).unwrap_or(request.len());
        server.write_all(&request[..at - 2])?;
        server.write_all(b"connection: close\r\n\r\n")?;
        server.write_all(&request[at..])?;
        // Left unread on the client's side, so that the connection can be reset.
        server.write_all(b"}")?;
        let mut bytes = Vec::new();
        server.read_to_end(&mut bytes)?;
        let at = head_end(&bytes).unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let is_chunked = head.contains("transfer-encoding: chunked");
        let framing = ["transfer-encoding", "content-length", "connection"];
        let kept = head.trim_end().split("\r\n");
        let kept = kept.filter(|line| !framing.iter().any(|name| line.starts_with(name)));
        let head = kept.collect::<Vec<_>>().join("\r\n");
        let body = bytes.split_off(at);
        Ok(Answer { head, body: if is_chunked { unchunked(&body) } else { body } })
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// A request without its last byte, which is always the brace that ends the body.
fn request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while head_end(&bytes).is_none() {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(1);
    let at = bytes.len();
    bytes.resize(at + length - 1, 0);
    client.read_exact(&mut bytes[at..])?;
    Ok(bytes)
}

fn send(
    client: &mut TcpStream,
    answer: &Answer,
    framed: Framed,
    most: usize,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    put(&mut bytes, answer, framed, most)?;
    client.write_all(&bytes)
}

/// As much of an answer as `most` bytes of its body are.
fn put(into: &mut Vec<u8>, answer: &Answer, framed: Framed, most: usize) -> std::io::Result<()> {
    let Answer { head, body } = answer;
    let part = &body[..most.min(body.len())];
    write!(into, "{head}\r\nconnection: close\r\n")?;
    match framed {
        Framed::Close => write!(into, "\r\n")?,
        Framed::Length(wrong) => {
            let length = body.len().saturating_add_signed(wrong);
            write!(into, "content-length: {length}\r\n\r\n")?;
        }
        Framed::Chunks => {
            write!(into, "transfer-encoding: chunked\r\n\r\n")?;
            // Chunks end anywhere, also inside a character.
            for piece in part.chunks(61) {
                write!(into, "{:x}\r\n", piece.len())?;
                into.extend_from_slice(piece);
                into.extend_from_slice(b"\r\n");
            }
            if part.len() == body.len() {
                into.extend_from_slice(b"0\r\n\r\n");
            }
            return Ok(());
        }
    }
    into.extend_from_slice(part);
    Ok(())
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        body.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 2 + size + 2..];
    }
    body
}
