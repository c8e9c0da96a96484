//! A server on this machine that answers each path with bytes as they are written here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locum_fetch::{Client, Looking, Lookup};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    /// The same piece until nobody listens, after a head.
    Endless(Vec<u8>, Vec<u8>),
    /// One byte at a time, with a pause, after a head.
    Dribble(Vec<u8>, Vec<u8>, Duration),
    Silence,
}

pub(crate) fn ok(kind: &str, body: impl AsRef<[u8]>) -> Answer {
    answer("200 OK", &format!("content-type: {kind}\r\n"), body)
}

pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n");
    Answer::Bytes([head.as_bytes(), body].concat())
}

pub(crate) fn to(place: &str) -> Answer {
    answer("302 Found", &format!("location: {place}\r\n"), "")
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// How many connections were made.
    pub(crate) met: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Server {
        Server::serve(answer, None).await
    }

    #[expect(clippy::disallowed_methods, reason = "a test's server lives as long as its runtime")]
    pub(crate) async fn serve(
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let met = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), Arc::clone(&met));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, tls) = (Arc::clone(&answer), tls.clone());
                tokio::spawn(async move {
                    // Whoever leaves in the middle has a reason.
                    let _ = match tls {
                        Some(tls) => match tls.accept(socket).await {
                            Ok(socket) => talk(socket, answer.as_ref()).await,
                            Err(error) => Err(error),
                        },
                        None => talk(socket, answer.as_ref()).await,
                    };
                });
            }
        });
        Server { address, met }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder().allow_private([self.address]).build().unwrap()
    }
}

async fn talk(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    answer: &(dyn Fn(&str) -> Answer + Send + Sync),
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 4_096];
        match socket.read(&mut piece).await? {
            0 => return Ok(()),
            read => head.extend_from_slice(&piece[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let what = if path == "/echo" { ok("text/plain", &head) } else { answer(path) };
    match what {
        Answer::Bytes(bytes) => socket.write_all(&bytes).await?,
        Answer::Endless(head, piece) => {
            socket.write_all(&head).await?;
            loop {
                socket.write_all(&piece).await?;
            }
        }
        Answer::Dribble(head, bytes, pause) => {
            socket.write_all(&head).await?;
            for byte in bytes {
                socket.write_all(&[byte]).await?;
                socket.flush().await?;
                tokio::time::sleep(pause).await;
            }
        }
        Answer::Silence => std::future::pending().await,
    }
    socket.shutdown().await
}

/// Names that mean what a test says; each time they are asked for, the next meaning counts.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) meanings: Vec<Vec<IpAddr>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn new(meanings: &[&[IpAddr]]) -> Arc<Names> {
        let meanings = meanings.iter().map(|meaning| meaning.to_vec()).collect();
        Arc::new(Names { meanings, asked: AtomicUsize::new(0) })
    }
}

impl Lookup for Names {
    fn look_up(&self, _: &str) -> Looking {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let meaning = self.meanings.get(number).or(self.meanings.last()).cloned();
        Box::pin(async move { Ok(meaning.unwrap_or_default()) })
    }
}
