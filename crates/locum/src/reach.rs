//! Gets what a person does into a session, whoever has the journal: through the door of the
//! process that holds it, or, if none does, into the journal itself.

use std::path::Path;

use locum_kernel::{Input, Seq};
use locum_runtime::clock::{Clock as _, System};
use locum_runtime::driver::{Error, take_alone, taken_before};

use crate::complaint::Complaint;
use crate::data;

/// Where it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Somebody is at work in the data folder and was told.
    Running(Seq),
    /// It is written down; whoever opens the session next finds it.
    Resting(Seq),
}

impl Reached {
    /// The number of its first event.
    pub(crate) fn seq(self) -> Seq {
        let (Reached::Running(seq) | Reached::Resting(seq)) = self;
        seq
    }
}

/// A holder may end between the knock and the look; so may another begin.
const TRIES: u32 = 3;

pub(crate) fn reach(folder: &Path, session: &str, input: &Input) -> Result<Reached, Complaint> {
    let mut locked = None;
    for _ in 0..TRIES {
        if let Some(seq) = door::knock(folder, session, input)? {
            return Ok(Reached::Running(seq));
        }
        match data::open(folder) {
            Ok(journal) => {
                let taken = take_alone(&journal, session, System.now(), input.clone());
                let taken = taken.or_else(|error| before(&error).ok_or(error));
                return taken.map(Reached::Resting).map_err(|error| Complaint::driver(&error));
            }
            Err(complaint) => locked = Some(complaint),
        }
    }
    Err(locked.unwrap_or_else(Complaint::no_data_dir))
}

/// Whether a process is at work in the data folder.
pub(crate) fn is_anybody_there(folder: &Path) -> bool {
    door::answers(folder)
}

/// Whoever was behind the door took it, and died before it said so.
fn before(error: &Error) -> Option<Seq> {
    if let Error::Refused { why, .. } = error { taken_before(why) } else { None }
}

#[cfg(unix)]
mod door {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Duration;

    use locum_kernel::{Input, Seq};
    use locum_runtime::door::{self, Knock, Reply};

    use crate::complaint::Complaint;

    pub(super) fn answers(folder: &Path) -> bool {
        UnixStream::connect(door::path(folder)).is_ok()
    }

    /// How long whoever is behind the door may take: far longer than a sync, and with every try
    /// below the five seconds a person may be kept waiting.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// None: nobody is behind the door, or nobody who answers.
    pub(super) fn knock(
        folder: &Path,
        session: &str,
        input: &Input,
    ) -> Result<Option<Seq>, Complaint> {
        let Ok(mut stream) = UnixStream::connect(door::path(folder)) else { return Ok(None) };
        let knock = Knock { session: session.to_owned(), input: input.clone() };
        let Ok(mut line) = serde_json::to_vec(&knock) else { return Ok(None) };
        line.push(b'\n');
        let mut answer = String::new();
        let bounded = stream.set_write_timeout(Some(PATIENCE));
        let bounded = bounded.and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        let asked = bounded.and_then(|()| stream.write_all(&line));
        let heard = asked.and_then(|()| BufReader::new(stream).read_line(&mut answer));
        // Whoever was there died or was stopped before it answered. Asking again is safe for all
        // that is answered once; what could be said twice always carries an id.
        if heard.is_err() {
            return Ok(None);
        }
        match serde_json::from_str(&answer) {
            Ok(Reply::Taken(seq)) => Ok(Some(seq)),
            Ok(Reply::Refused(why)) => Err(Complaint::refused(session, why)),
            Ok(Reply::Failed(why)) => Err(Complaint::not_written(session, why)),
            Ok(Reply::Closed) | Err(_) => Ok(None),
        }
    }
}

#[cfg(not(unix))]
mod door {
    use std::path::Path;

    use locum_kernel::{Input, Seq};

    use crate::complaint::Complaint;

    /// Nobody can tell; a note that may be wrong is worse than none.
    pub(super) fn answers(_: &Path) -> bool {
        true
    }

    pub(super) fn knock(_: &Path, _: &str, _: &Input) -> Result<Option<Seq>, Complaint> {
        Ok(None)
    }
}
