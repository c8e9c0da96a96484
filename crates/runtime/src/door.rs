//! The way in for other processes while this one holds the journal: a socket in the data folder.
//! Whoever may write there may speak; one JSON line in, one line back once it is safe.
//!
//! Only what people do comes through the door. Looking needs no door: the journal can be read by
//! anybody at any time.
//!
//! A session that nobody drives is folded to hear what is for it, which takes as long as it is
//! long: on another thread, so that the session that is driven never waits for it.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_kernel::{Input, Refusal, Seq};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinSet, spawn_blocking};

use crate::driver::{Closed, Error, Handle, OUR_FAULT, World, take_alone, taken_before};

/// More than the largest message, and no more.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Something for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knock {
    pub session: String,
    pub input: Input,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is safe, from this event on.
    Taken(Seq),
    Refused(String),
    /// The session is being closed: try the journal itself.
    Closed,
    Failed(String),
}

/// Where the door of a data folder is.
#[must_use]
pub fn path(folder: &Path) -> PathBuf {
    folder.join("door")
}

#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    visits: JoinSet<io::Result<()>>,
    /// True from when nothing more is heard.
    closing: watch::Sender<bool>,
}

/// Who is behind the door: one session is driven, the others only keep what they are told.
#[derive(Clone, Debug)]
pub struct Desk {
    pub world: World,
    pub session: String,
    pub handle: Handle,
}

/// What all visitors share.
struct Hall {
    desk: Desk,
    /// One at a time for the sessions that nobody drives: of two who fold the same one at once,
    /// the second would write where the first has written.
    others: Mutex<()>,
}

impl Door {
    /// Only for whoever holds the journal: a door left by somebody who died is taken away.
    pub fn open(folder: &Path) -> io::Result<Door> {
        let path = path(folder);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        only_for_me(&path)?;
        let (visits, closing) = (JoinSet::new(), watch::Sender::new(false));
        Ok(Door { listener, path, visits, closing })
    }

    /// Lets everybody in, for as long as this is waited for.
    pub async fn serve(&mut self, desk: Desk) -> Infallible {
        let hall = Arc::new(Hall { desk, others: Mutex::new(()) });
        loop {
            tokio::select! {
                visitor = self.listener.accept() => {
                    // One who left before coming in is nobody's trouble.
                    if let Ok((stream, _)) = visitor {
                        let closing = self.closing.subscribe();
                        self.visits.spawn(receive(stream, Arc::clone(&hall), closing));
                    }
                }
                Some(_) = self.visits.join_next() => {}
            }
        }
    }

    /// Nothing more is heard, but whoever was heard is told what became of it: left without a
    /// word, they would say it again. Only when the session is no longer driven.
    pub async fn close(mut self) {
        self.closing.send_replace(true);
        while self.visits.join_next().await.is_some() {}
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Left behind, it only makes the next who knocks look at the journal first.
        let _ = fs::remove_file(&self.path);
    }
}

fn only_for_me(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

/// A visitor may ask for several things, one after another.
async fn receive(
    mut stream: UnixStream,
    hall: Arc<Hall>,
    mut closing: watch::Receiver<bool>,
) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        let read = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => 0,
            read = limited.read_line(&mut line) => read?,
        };
        if read == 0 {
            return Ok(());
        }
        let reply = match serde_json::from_str(&line) {
            Ok(knock) => hear(&hall, knock).await,
            Err(error) => Reply::Refused(format!("not understood: {error}")),
        };
        let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
        bytes.push(b'\n');
        writer.write_all(&bytes).await?;
    }
}

async fn hear(hall: &Hall, knock: Knock) -> Reply {
    let desk = &hall.desk;
    if !is_for_people(&knock.input) {
        return Reply::Refused("only what people do comes through the door".into());
    }
    if knock.session != desk.session {
        let _alone = hall.others.lock().await;
        let world = desk.world.clone();
        let kept = spawn_blocking(move || keep(&world, knock)).await;
        return kept.unwrap_or_else(|_| Reply::Failed(OUR_FAULT.into()));
    }
    match desk.handle.post(knock.input).await {
        Ok(Ok(seq)) => Reply::Taken(seq),
        Ok(Err(why)) => refused(&why),
        Err(Closed) => Reply::Closed,
    }
}

/// Whoever drives the session next finds it there.
fn keep(World { journal, clock }: &World, Knock { session, input }: Knock) -> Reply {
    match take_alone(journal.as_ref(), &session, clock.now(), input) {
        Ok(seq) => Reply::Taken(seq),
        Err(Error::Refused { why, .. }) => refused(&why),
        Err(error) => Reply::Failed(error.to_string()),
    }
}

/// What was taken before is as good as taken: whoever says it again has not heard so.
fn refused(why: &Refusal) -> Reply {
    taken_before(why).map_or_else(|| Reply::Refused(why.to_string()), Reply::Taken)
}

/// What the world owes is never told by a stranger.
fn is_for_people(input: &Input) -> bool {
    match input {
        Input::Said(_)
        | Input::Edited { .. }
        | Input::Dropped { .. }
        | Input::Moved { .. }
        | Input::Answered { .. }
        | Input::Commanded { .. } => true,
        Input::Configured(_)
        | Input::Restarted { .. }
        | Input::Left
        | Input::Offered { .. }
        | Input::Retooled { .. }
        | Input::Wondered { .. }
        | Input::Relayed { .. }
        | Input::Replied { .. }
        | Input::Failed { .. }
        | Input::Ran { .. }
        | Input::Prepared { .. }
        | Input::Delivered { .. }
        | Input::Summoned { .. }
        | Input::Ticked => false,
    }
}
