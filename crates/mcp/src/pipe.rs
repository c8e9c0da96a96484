//! Messages over a program's input and output, one line each. Unlike the SDK's own transport it
//! gives up on a server that writes rubbish without end, and when an answer is too long it says
//! so to whoever waits for it.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::limits;
use crate::logs::{Logs, clip};
use crate::mend;

/// Of a line that is too long, enough to find out whom it answers.
const EDGE_BYTES: usize = 256;

pub(crate) struct Pipe<R, W> {
    read: R,
    line: Vec<u8>,
    /// The line is too long: only its edges are kept.
    tail: Option<Vec<u8>>,
    rubbish: usize,
    write: Arc<Mutex<Option<W>>>,
    logs: Arc<Logs>,
}

enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncBufRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Pipe<R, W> {
    pub(crate) fn new(read: R, write: W, logs: Arc<Logs>) -> Pipe<R, W> {
        let write = Arc::new(Mutex::new(Some(write)));
        Pipe { read, line: Vec::new(), tail: None, rubbish: 0, write, logs }
    }

    /// May be dropped at any await: what was read is in `self`.
    async fn read_line(&mut self) -> Line {
        loop {
            let bytes = match self.read.fill_buf().await {
                Ok([]) | Err(_) => return Line::End,
                Ok(bytes) => bytes,
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if let Some(tail) = &mut self.tail {
                tail.extend_from_slice(&part[part.len().saturating_sub(EDGE_BYTES)..]);
                let surplus = tail.len().saturating_sub(EDGE_BYTES);
                tail.drain(..surplus);
            } else if self.line.len() + part.len() > limits::MESSAGE_BYTES {
                let tail = part[part.len().saturating_sub(EDGE_BYTES)..].to_vec();
                self.line.extend_from_slice(&part[..part.len().min(EDGE_BYTES)]);
                self.line.truncate(EDGE_BYTES);
                self.line.shrink_to(EDGE_BYTES);
                self.tail = Some(tail);
            } else {
                self.line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.read.consume(taken);
            if end.is_some() {
                return if self.tail.is_some() { Line::TooLong } else { Line::Whole };
            }
        }
    }

    fn parse(&mut self) -> Option<ServerJsonRpcMessage> {
        let line = self.line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        if let Ok(message) = mend::message(line) {
            self.rubbish = 0;
            return Some(message);
        }
        if self.rubbish == 0 {
            let text = clip(&String::from_utf8_lossy(&line[..line.len().min(200)]), 200);
            self.logs.note(&format!("not a message: {text}"));
        }
        self.rubbish += line.len();
        None
    }

    /// The answer nobody can have, so that whoever waits for it need not wait longer.
    fn too_long(&mut self) -> Option<ServerJsonRpcMessage> {
        let tail = self.tail.take().unwrap_or_default();
        let limit = limits::MESSAGE_BYTES;
        self.logs.note(&format!("dropped a message of more than {limit} bytes"));
        let id = edge_id(&self.line, &tail);
        self.line = Vec::new();
        let what = format!("the answer is longer than {limit} bytes and was dropped");
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, what, None);
        Some(ServerJsonRpcMessage::error(error, Some(id?)))
    }
}

/// Servers write the id either right at the front or right at the end.
fn edge_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let number = |text: &str| {
        let text = text.trim_start();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        text[..digits].parse().ok().map(RequestId::Number)
    };
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    // What comes before `result` cannot be inside of it.
    let front = head.split_once("\"result\"").map(|(front, _)| front);
    let front = front.filter(|front| !front.contains("\"method\""));
    let front = front.and_then(|front| front.split_once("\"id\":"));
    if let Some((_, rest)) = front {
        return number(rest);
    }
    // And what is followed by the message's own brace alone is not inside of anything else.
    let (_, rest) = tail.rsplit_once("\"id\":")?;
    let id = rest.trim_end().strip_suffix('}')?.trim_end();
    id.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ').then(|| number(id))?
}

impl<R, W> Transport<RoleClient> for Pipe<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut bytes = serde_json::to_vec(&item)?;
            bytes.push(b'\n');
            let mut write = write.lock().await;
            let Some(write) = write.as_mut() else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            write.write_all(&bytes).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.read_line().await {
                Line::Whole => {
                    let message = self.parse();
                    self.line.clear();
                    // One large picture should not cost its size for ever.
                    self.line.shrink_to(64 << 10);
                    message
                }
                Line::TooLong => self.too_long(),
                Line::End => return None,
            };
            if message.is_some() {
                return message;
            }
            if self.rubbish > limits::RUBBISH_BYTES {
                self.logs.note("gave up: its output is not a stream of messages");
                return None;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A write that hangs keeps the lock; the program's end will free it.
        if let Ok(mut write) = self.write.try_lock() {
            write.take();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{RequestId, ServerJsonRpcMessage};
    use rmcp::transport::Transport as _;

    use super::{Pipe, edge_id};
    use crate::limits;
    use crate::logs::Logs;

    #[test]
    fn whom_a_long_line_answers() {
        let cases: &[(&str, &str, Option<i64>)] = &[
            (r#"{"jsonrpc":"2.0","id":7,"result":{"#, "}}", Some(7)),
            (r#"{"id": 12, "jsonrpc":"2.0","result":{"#, "}}", Some(12)),
            (r#"{"result":{"content":[{"id":5"#, r#"}]},"jsonrpc":"2.0","id":9}"#, Some(9)),
            (r#"{"result":{"content":[{"id":5"#, r#""id":5}]}}"#, None),
            (r#"{"jsonrpc":"2.0","id":3,"method":"x","params":{"#, "}}", None),
            ("garbage", "garbage", None),
            (r#"{"jsonrpc":"2.0","id":"a","result":{"#, "}}", None),
        ];
        for (head, tail, expected) in cases {
            let got = edge_id(head.as_bytes(), tail.as_bytes());
            assert_eq!(got, expected.map(RequestId::Number), "{head} … {tail}");
        }
    }

    #[tokio::test]
    async fn long_lines_do_not_stay_in_memory() {
        let logs = Arc::new(Logs::default());
        let filler = "x".repeat(limits::MESSAGE_BYTES + 10);
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{{\"x\":\"{filler}\"}}}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{{}}}}\n"
        );
        let mut pipe = Pipe::new(text.as_bytes(), tokio::io::sink(), logs);
        let first = pipe.receive().await;
        let Some(ServerJsonRpcMessage::Error(error)) = first else { panic!("{first:?}") };
        assert_eq!(error.id, Some(RequestId::Number(4)));
        assert!(pipe.line.capacity() <= 64 << 10);
        let second = pipe.receive().await;
        assert!(matches!(second, Some(ServerJsonRpcMessage::Response(_))), "{second:?}");
        assert!(pipe.receive().await.is_none());
    }
}
