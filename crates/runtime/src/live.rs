//! What is said while it is being said. Never journaled: the finished message is, and whoever
//! missed something reads that.
//!
//! One bounded channel carries the lines of a session and the pieces between them. A reader that
//! is too slow loses the oldest, is told so once, and gets the lines again from the journal; the
//! pieces it missed are in the messages that follow. Nobody ever waits for a reader.

use std::collections::VecDeque;
use std::sync::Arc;

use locum_kernel::{CallId, Key, Seq, Time};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::clock::{Clock, System};
use crate::line::{AgentRef, Line};

/// How many batches of lines or pieces a reader may be behind.
const BEHIND_MAX: usize = 4_096;

/// One thing for a reader.
#[derive(Clone, Debug)]
enum Sent {
    /// The lines of one decision that is safe, and its last event.
    Lines(Arc<[Arc<Line>]>, Seq),
    Piece(Arc<Piece>),
}

/// Part of what a model is saying or a tool is printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The turn it belongs to.
    pub key: Key,
    pub agent: Arc<AgentRef>,
    pub kind: PieceKind,
    pub text: String,
    /// When it was heard.
    pub at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    Text,
    Thinking,
    /// The newest of what a tool prints, and how much that was so far.
    Output {
        call: CallId,
        bytes: u64,
    },
}

/// Where a session's lines and pieces are sent.
#[derive(Clone, Debug)]
pub struct Feed {
    sender: broadcast::Sender<Sent>,
    clock: Arc<dyn Clock>,
}

impl Default for Feed {
    fn default() -> Feed {
        Feed::new(Arc::new(System))
    }
}

impl Feed {
    /// Whose pieces carry the time of this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Feed {
        Feed { sender: broadcast::channel(BEHIND_MAX).0, clock }
    }

    #[must_use]
    pub fn subscribe(&self) -> Reader {
        Reader {
            sent: self.sender.subscribe(),
            seen: 0,
            safe: Seq(0),
            early: Vec::new(),
            due: VecDeque::new(),
        }
    }

    /// For the pieces of one model call.
    #[must_use]
    pub fn live(&self, key: Key, agent: AgentRef) -> Live {
        Live { feed: Some(self.clone()), key, agent: Arc::new(agent) }
    }

    pub(crate) fn lines(&self, lines: Vec<Line>, last: Seq) {
        // Nobody listens: the journal has it.
        let lines = lines.into_iter().map(Arc::new).collect();
        let _ = self.sender.send(Sent::Lines(lines, last));
    }
}

/// A model call's way to be heard while it speaks.
#[derive(Clone, Debug)]
pub struct Live {
    feed: Option<Feed>,
    key: Key,
    agent: Arc<AgentRef>,
}

impl Live {
    /// For a call of nobody known.
    pub(crate) fn unheard(key: Key) -> Live {
        Live { key, ..Live::nobody() }
    }

    /// For a call nobody listens to.
    #[must_use]
    pub fn nobody() -> Live {
        Live { feed: None, key: Seq(0), agent: Arc::new(AgentRef::nobody()) }
    }

    /// What the call is owed under.
    #[must_use]
    pub fn key(&self) -> Key {
        self.key
    }

    pub fn text(&self, text: &str) {
        self.send(PieceKind::Text, text);
    }

    pub fn thinking(&self, text: &str) {
        self.send(PieceKind::Thinking, text);
    }

    pub fn output(&self, call: CallId, bytes: u64, tail: &str) {
        self.send(PieceKind::Output { call, bytes }, tail);
    }

    fn send(&self, kind: PieceKind, text: &str) {
        let Some(Feed { sender, clock }) = &self.feed else { return };
        if sender.receiver_count() == 0 || text.is_empty() {
            return;
        }
        let (key, agent, text) = (self.key, Arc::clone(&self.agent), text.to_owned());
        let at = clock.now();
        let _ = sender.send(Sent::Piece(Arc::new(Piece { key, agent, kind, text, at })));
    }
}

/// What a reader gets next.
#[derive(Clone, Debug)]
pub enum Told {
    Line(Arc<Line>),
    /// `seq` is the last line before it.
    Piece {
        seq: u64,
        piece: Arc<Piece>,
    },
    /// So many batches were missed. Lines after `seq` must be read from the journal, with
    /// [`Reader::caught_up`]; pieces are gone.
    Gap {
        seq: u64,
        missed: u64,
    },
}

/// One reader of a feed.
#[derive(Debug)]
pub struct Reader {
    sent: broadcast::Receiver<Sent>,
    /// The number of the last line it was given.
    seen: u64,
    /// The last event known to be safe.
    safe: Seq,
    /// Pieces of turns whose beginning is not safe yet: nothing is told before what explains it.
    early: Vec<Arc<Piece>>,
    due: VecDeque<Told>,
}

impl Reader {
    /// The next thing; `None` when the session is closed and everything was read.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.due.pop_front() {
                return Some(told);
            }
            match self.sent.recv().await {
                Ok(sent) => self.take(sent),
                Err(RecvError::Lagged(missed)) => {
                    self.early.clear();
                    return Some(Told::Gap { seq: self.seen, missed });
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Whether nothing is waiting to be read right now.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.due.is_empty() && self.sent.is_empty()
    }

    /// The reader has had every line up to `seq` from elsewhere.
    pub fn caught_up(&mut self, seq: u64) {
        self.seen = self.seen.max(seq);
    }

    fn take(&mut self, sent: Sent) {
        match sent {
            Sent::Lines(lines, last) => {
                for line in lines.iter().filter(|line| line.seq > self.seen) {
                    self.due.push_back(Told::Line(Arc::clone(line)));
                }
                self.seen = lines.last().map_or(self.seen, |line| line.seq.max(self.seen));
                self.safe = self.safe.max(last);
                // Not only from the front: a turn that is safe must not wait for another that is
                // not, or its next pieces would overtake those that wait.
                let (safe, seq) = (self.safe, self.seen);
                let ripe = self.early.extract_if(.., |piece| piece.key <= safe);
                self.due.extend(ripe.map(|piece| Told::Piece { seq, piece }));
            }
            Sent::Piece(piece) if piece.key <= self.safe => {
                self.due.push_back(Told::Piece { seq: self.seen, piece });
            }
            Sent::Piece(piece) => self.hold(piece),
        }
    }

    /// A disk that stands still must not fill the memory with what is said meanwhile.
    fn hold(&mut self, piece: Arc<Piece>) {
        if self.early.len() == BEHIND_MAX {
            let missed = self.early.drain(..).len() as u64;
            self.due.push_back(Told::Gap { seq: self.seen, missed });
        }
        self.early.push(piece);
    }
}

#[cfg(test)]
mod tests;
