//! How a caller hears of its sync: by a call, or by a ticket it can wait on. Plain threads; an
//! asynchronous caller passes a `Done` that wakes its task.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::Error;

/// Called once with how it went.
pub type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Something submitted whose outcome will be known.
pub struct Ticket {
    session: String,
    outcome: Receiver<Result<(), Error>>,
}

impl Ticket {
    /// A ticket, and the call that settles it. A call that is dropped unused settles it as
    /// [`Error::Stopped`], so that nobody waits for a writer that died.
    #[must_use]
    pub fn new(session: &str) -> (Ticket, Done) {
        let (sender, outcome) = sync_channel(1);
        // Whoever dropped the ticket does not want to know.
        let done: Done = Box::new(move |result| drop(sender.send(result)));
        (Ticket { session: session.to_owned(), outcome }, done)
    }

    pub fn wait(self) -> Result<(), Error> {
        self.outcome.recv().unwrap_or_else(|_| Err(stopped(&self.session)))
    }

    /// The outcome if it is known already, else the ticket again.
    pub fn poll(self) -> Result<Result<(), Error>, Ticket> {
        match self.outcome.try_recv() {
            Ok(result) => Ok(result),
            Err(TryRecvError::Disconnected) => Ok(Err(stopped(&self.session))),
            Err(TryRecvError::Empty) => Err(self),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({})", self.session)
    }
}

fn stopped(session: &str) -> Error {
    Error::Stopped { path: PathBuf::from("(journal)"), session: session.to_owned() }
}
