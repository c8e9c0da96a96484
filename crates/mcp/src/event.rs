//! What servers tell and ask us, as plain data in one bounded queue, and the asks that are open.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use crate::error::AnswerError;
use crate::limits;
use crate::logs::Logs;

/// What a person or the engine may want to know at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Look at the digests: what was approved may have changed.
    ToolsChanged {
        server: String,
    },
    ResourcesChanged {
        server: String,
    },
    PromptsChanged {
        server: String,
    },
    /// One that was subscribed to.
    ResourceUpdated {
        server: String,
        uri: String,
    },
    State {
        server: String,
        state: State,
    },
    Asked(Request),
    /// Nobody is there, so this was declined without being put to anybody.
    Declined(Request),
    /// Nobody waits for an answer to this any more.
    Withdrawn {
        id: u64,
    },
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Nobody needed it yet.
    Idle,
    Starting,
    Ready,
    /// Started again on demand, but not before this long from now.
    Backoff {
        wait: Duration,
        attempt: u32,
        why: String,
    },
    /// A person has to log in; then `restart`.
    Login,
    /// Only a person can help; then `restart`.
    Broken {
        why: String,
    },
}

/// Something a server wants from a person or a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub id: u64,
    pub server: String,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// A model's reply. `params` is the whole request as the protocol has it.
    Sampling { system: Option<String>, text: String, tokens_max: u32, params: Value },
    /// A form to fill in; `schema` says which fields it has.
    Elicitation { message: String, schema: Value },
    /// A page to visit. The address comes from the server: show it before it is opened.
    Visit { message: String, url: String },
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Declined,
    /// Closed without a decision.
    Dismissed,
    /// The fields of a form. Fields left out take their defaults.
    Filled(Value),
    /// The page was opened.
    Visited,
    Sampled {
        model: String,
        text: String,
        stop_reason: Option<String>,
    },
}

/// Whether anybody can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attendance {
    Somebody,
    Nobody,
}

/// Bounded because it forgets what a later event replaces: each server has one state and one
/// kind of change at a time, and asks and watched resources are bounded themselves.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    events: Mutex<VecDeque<Event>>,
    more: Notify,
}

impl Queue {
    pub(crate) fn push(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = |old: &Event| match (old, &event) {
            (Event::State { server: a, .. }, Event::State { server: b, .. }) => a == b,
            // A server that asks for ever fills nothing: of what was declined the last is told.
            (Event::Declined(a), Event::Declined(b)) => a.server == b.server,
            (old, new) => old == new,
        };
        events.retain(|old| !stale(old));
        if let Event::Withdrawn { id } = &event {
            let before = events.len();
            events.retain(|old| !matches!(old, Event::Asked(request) if request.id == *id));
            if events.len() < before {
                return;
            }
        }
        events.push_back(event);
        drop(events);
        self.more.notify_one();
    }

    pub(crate) async fn next(&self) -> Event {
        loop {
            let more = self.more.notified();
            let event = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match event {
                Some(event) => return event,
                None => more.await,
            }
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

struct Open {
    server: String,
    kind: Kind,
    reply: oneshot::Sender<Answer>,
}

/// Asks of all servers.
#[derive(Default)]
pub(crate) struct Asks {
    open: Mutex<BTreeMap<u64, Open>>,
    attended: AtomicBool,
    last: AtomicU64,
    pub(crate) queue: Queue,
}

impl Asks {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dropping the future withdraws the question.
    pub(crate) async fn ask(self: &Arc<Asks>, server: &str, kind: Kind, logs: &Logs) -> Answer {
        let bytes = serde_json::to_vec(&kind).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > limits::ASK_BYTES {
            logs.note(&format!("declined a question of {bytes} bytes"));
            return Answer::Declined;
        }
        let (reply, answer) = oneshot::channel();
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        {
            let mut open = self.open();
            if !self.attended.load(Ordering::Acquire) {
                drop(open);
                let request = Request { id, server: server.to_owned(), kind };
                self.queue.push(Event::Declined(request));
                return Answer::Declined;
            }
            if open.values().filter(|ask| ask.server == server).count() >= limits::ASKS {
                logs.note("declined a question: too many are open");
                return Answer::Declined;
            }
            open.insert(id, Open { server: server.to_owned(), kind: kind.clone(), reply });
        }
        let _withdrawal = Withdrawal { asks: self, id };
        let request = Request { id, server: server.to_owned(), kind };
        self.queue.push(Event::Asked(request));
        answer.await.unwrap_or(Answer::Declined)
    }

    pub(crate) fn answer(&self, id: u64, answer: Answer) -> Result<(), AnswerError> {
        let mut open = self.open();
        let ask = open.get(&id).ok_or(AnswerError::Gone(id))?;
        if !fits(&ask.kind, &answer) {
            return Err(AnswerError::Mismatch(id));
        }
        let ask = open.remove(&id).ok_or(AnswerError::Gone(id))?;
        ask.reply.send(answer).map_err(|_| AnswerError::Gone(id))
    }

    pub(crate) fn attend(&self, attendance: Attendance) {
        let mut open = self.open();
        match attendance {
            Attendance::Somebody => self.attended.store(true, Ordering::Release),
            Attendance::Nobody => {
                self.attended.store(false, Ordering::Release);
                for (id, ask) in std::mem::take(&mut *open) {
                    // Who asked may be gone already; then there is nobody to tell.
                    let _gone = ask.reply.send(Answer::Declined);
                    self.queue.push(Event::Withdrawn { id });
                }
            }
        }
    }

    pub(crate) fn is_waiting(&self, server: &str) -> bool {
        self.open().values().any(|ask| ask.server == server)
    }

    pub(crate) fn list(&self) -> Vec<Request> {
        let open = self.open();
        let request = |(id, ask): (&u64, &Open)| Request {
            id: *id,
            server: ask.server.clone(),
            kind: ask.kind.clone(),
        };
        open.iter().map(request).collect()
    }
}

fn fits(kind: &Kind, answer: &Answer) -> bool {
    match answer {
        Answer::Declined | Answer::Dismissed => true,
        Answer::Filled(value) => matches!(kind, Kind::Elicitation { .. }) && value.is_object(),
        Answer::Visited => matches!(kind, Kind::Visit { .. }),
        Answer::Sampled { .. } => matches!(kind, Kind::Sampling { .. }),
    }
}

struct Withdrawal<'a> {
    asks: &'a Asks,
    id: u64,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if self.asks.open().remove(&self.id).is_some() {
            self.asks.queue.push(Event::Withdrawn { id: self.id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Queue, State};

    #[test]
    fn a_storm_leaves_one_event_of_each_kind() {
        let queue = Queue::default();
        for number in 0..10_000 {
            let server = "s".to_owned();
            queue.push(Event::ToolsChanged { server: server.clone() });
            let why = format!("{number}");
            queue.push(Event::State { server, state: State::Broken { why } });
        }
        assert_eq!(queue.len(), 2);
    }
}
