//! One process of the table: what can be asked of it, and the task that sees it to its end.

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Sender;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::command::{Error, Exit, Id, Log, Output, Progress, Report, Row, Start};
use crate::kept::{Kept, Reader, Scissors};
use crate::leash::{Ended, How, KILL, TERM, Tidings};
use crate::output::Store;

/// Between asking a command to end and killing it.
const GRACE: Duration = Duration::from_secs(2);
/// A keeper that was told to kill and is not done by then is not going to be. Together with the
/// grace less than three seconds, the longest that anything may take to end.
const KEEPER_LATE: Duration = Duration::from_millis(700);
/// For the rest of the output, once all that could write more have ended.
const DRAIN: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Asked first, then killed.
    End,
    /// Killed; the leash is cut already.
    Cut,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: Id,
    pub(crate) owner: String,
    pub(crate) argv: Vec<OsString>,
    pub(crate) start: Mutex<Start>,
    pub(crate) began: Instant,
    pub(crate) store: Arc<Mutex<Store>>,
    pub(crate) news: Arc<Notify>,
    pub(crate) input: tokio::sync::Mutex<Option<Sender>>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    pub(crate) scissors: Scissors,
    /// None while it runs.
    pub(crate) report: watch::Sender<Option<Finish>>,
}

/// How it ended. What it said stays in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    exit: Exit,
    ms: u64,
    left: usize,
}

impl Process {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn output(&self) -> Output {
        self.store().output()
    }

    pub(crate) fn progress(&self, bytes_max: usize) -> Progress {
        let store = self.store();
        Progress { id: self.id, bytes: store.bytes(), tail: store.last(bytes_max) }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.report.borrow().is_none()
    }

    pub(crate) fn send_to_background(&self) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Start::Background;
    }

    pub(crate) fn row(&self) -> Row {
        let finish = *self.report.borrow();
        Row {
            id: self.id,
            owner: self.owner.clone(),
            argv: self.argv.clone(),
            start: *self.start.lock().unwrap_or_else(PoisonError::into_inner),
            ms: finish.map_or_else(|| ms_since(self.began), |finish| finish.ms),
            bytes: self.store().bytes(),
            exit: finish.map(|finish| finish.exit),
        }
    }

    pub(crate) fn log(&self, offset: u64, limit: usize) -> Result<Log, Error> {
        let exit = self.report.borrow().map(|finish| finish.exit);
        let store = self.store();
        let failed = |source| Error::Log { id: self.id, path: store.path().clone(), source };
        let (text, from, next) = store.read(offset, limit).map_err(failed)?;
        Ok(Log { text, from, next, bytes: store.bytes(), exit })
    }

    /// None: nobody saw it to its end.
    pub(crate) async fn ended(&self) -> Option<Report> {
        let mut report = self.report.subscribe();
        let finish = *report.wait_for(Option::is_some).await.ok()?;
        finish.map(|finish| Report {
            id: self.id,
            exit: finish.exit,
            output: self.output(),
            ms: finish.ms,
            left_behind: finish.left,
        })
    }

    pub(crate) fn cut(&self) {
        self.scissors.cut();
        let _ = self.orders.send(Order::Cut);
    }

    pub(crate) async fn write(&self, bytes: &[u8], written: &mut usize) -> Result<(), Error> {
        let id = self.id;
        let input = self.input.lock().await;
        let Some(input) = input.as_ref() else { return Err(Error::NoInput { id }) };
        while *written < bytes.len() {
            if !self.is_running() {
                return Err(Error::Ended { id });
            }
            if input.writable().await.is_err() {
                return Err(Error::Ended { id });
            }
            match input.try_write(&bytes[*written..]) {
                Ok(count) => *written += count,
                // Not ready after all, or interrupted.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Error::Ended { id }),
            }
        }
        Ok(())
    }
}

fn ms_since(moment: Instant) -> u64 {
    u64::try_from(moment.elapsed().as_millis()).unwrap_or(u64::MAX)
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// From the start of a command to the moment nothing of it is left.
pub(crate) async fn supervise(
    mut kept: Kept,
    mut reader: Reader,
    process: Arc<Process>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    longest: Option<Duration>,
) {
    let deadline = longest.and_then(|longest| process.began.checked_add(longest));
    let (asked, ended) = attend(&mut kept, &mut orders, deadline).await;
    let gone = timeout(KEEPER_LATE, kept.child.wait()).await.is_ok();
    // Without a word from it, or with it still there, nobody else has done its work.
    if ended.is_none() || !gone {
        kept.strike().await;
        let _ = timeout(KEEPER_LATE, kept.child.wait()).await;
    }
    reader.finish(DRAIN).await;
    let exit = match (asked, ended.map(|ended| ended.how)) {
        (Some(exit), _) => exit,
        (None, Some(How::Code(code))) => Exit::Code(code),
        (None, Some(How::Signal(signal))) => Exit::Signal(signal),
        (None, Some(How::Told)) => Exit::Killed,
        (None, Some(How::Crowded)) => Exit::TooManyProcesses,
        (None, None) => Exit::Lost,
    };
    let left = ended.map_or(0, |ended| ended.left);
    process.report.send_replace(Some(Finish { exit, ms: ms_since(process.began), left }));
    process.news.notify_one();
}

/// Until the keeper says that the command has ended, is gone, or is too late. Gives why it was
/// asked to end, if it was.
async fn attend(
    kept: &mut Kept,
    orders: &mut mpsc::UnboundedReceiver<Order>,
    deadline: Option<Instant>,
) -> (Option<Exit>, Option<Ended>) {
    let mut asked = None;
    let (mut deadline, mut kill_at, mut late_at) = (deadline, None, None);
    loop {
        tokio::select! {
            heard = kept.hear() => match heard {
                Ok(Some(Tidings::Ended(ended))) => return (asked, Some(ended)),
                Ok(Some(Tidings::Ready | Tidings::Started)) => {}
                Ok(Some(Tidings::Refused | Tidings::Failed(_)) | None) | Err(_) => {
                    return (asked, None);
                }
            },
            () = at(deadline) => {
                deadline = None;
                asked = asked.or(Some(Exit::TimedOut));
                kept.say(TERM);
                kill_at = kill_at.or_else(|| Instant::now().checked_add(GRACE));
            }
            Some(order) = orders.recv() => {
                deadline = None;
                asked = asked.or(Some(Exit::Killed));
                match order {
                    Order::End if kill_at.is_none() && late_at.is_none() => {
                        kept.say(TERM);
                        kill_at = Instant::now().checked_add(GRACE);
                    }
                    Order::End => {}
                    Order::Cut => kill_at = Some(Instant::now()),
                }
            }
            () = at(kill_at) => {
                kill_at = None;
                kept.say(KILL);
                late_at = late_at.or_else(|| Instant::now().checked_add(KEEPER_LATE));
            }
            () = at(late_at) => return (asked, None),
        }
    }
}
