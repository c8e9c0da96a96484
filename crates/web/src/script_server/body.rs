//! What goes over the wire: pieces, and sometimes an end in the middle.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;

/// The connection ends here, without a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was dropped, as the script says")
    }
}

impl Error for Broken {}

#[derive(Debug)]
pub(super) struct Pieces {
    left: VecDeque<Bytes>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Proper,
    /// What was said before is sent first, then it breaks.
    Breaks,
    BreaksNow,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(piece) = self.left.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Proper => Poll::Ready(None),
            End::Breaks => {
                // An error throws away what was not written yet; a pause has it written.
                self.end = End::BreaksNow;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            End::BreaksNow => Poll::Ready(Some(Err(Broken))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.end == End::Proper
    }

    fn size_hint(&self) -> SizeHint {
        match (self.end, self.left.len()) {
            // More than one piece is a stream: its length is nobody's business.
            (End::Proper, 0 | 1) => {
                SizeHint::with_exact(self.left.iter().map(|piece| piece.len() as u64).sum())
            }
            (End::Proper | End::Breaks | End::BreaksNow, _) => SizeHint::default(),
        }
    }
}

pub(super) fn json(status: StatusCode, value: &Value) -> Response<Pieces> {
    let pieces = Pieces { left: [Bytes::from(value.to_string())].into(), end: End::Proper };
    response(status, "application/json", pieces)
}

/// As much of a JSON as arrives before the connection is dropped.
pub(super) fn half_json(value: &Value) -> Response<Pieces> {
    let text = Bytes::from(value.to_string());
    let length = text.len();
    let pieces = Pieces { left: [text.slice(..length / 2)].into(), end: End::Breaks };
    let mut response = response(StatusCode::OK, "application/json", pieces);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

pub(super) fn stream(events: impl Iterator<Item = String>, cut: bool) -> Response<Pieces> {
    let end = if cut { End::Breaks } else { End::Proper };
    let pieces = Pieces { left: events.map(Bytes::from).collect(), end };
    let mut response = response(StatusCode::OK, "text/event-stream; charset=utf-8", pieces);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn response(status: StatusCode, kind: &'static str, pieces: Pieces) -> Response<Pieces> {
    let mut response = Response::new(pieces);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
