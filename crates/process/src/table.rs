//! The processes of one session, and whose they are. Whoever drops what he has, a future of `run`
//! or the table itself, has killed what it stood for.

use std::collections::BTreeMap;
use std::future::pending;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::geteuid;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::command::{
    Command, Error, Hold, Id, Input, Io, Keeper, Log, Progress, Ran, Report, Row, Start,
};
use crate::kept::{self, Held, Kept, Reader, Refusal};
use crate::output::Store;
use crate::process::{Order, Process, supervise};
use crate::text::Escapes;

/// Processes that run at the same time.
const RUNNING_MAX: usize = 64;
/// Ended processes whose end can still be asked for.
const ENDED_MAX: usize = 64;
/// How often somebody who looks on is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_BYTES: usize = 2 << 10;
/// How long a process may take to read what is written to it.
const WRITE: Duration = Duration::from_secs(5);
/// What one look into a log gives at most.
const LOG_BYTES_MAX: usize = 32 << 10;

/// The table of one session.
#[derive(Debug)]
pub struct Processes {
    keeper: Keeper,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    last: u32,
    rows: BTreeMap<Id, Arc<Process>>,
    /// One for each process: sees it to its end.
    tasks: JoinSet<()>,
    /// What `Hold::Auto` means here.
    auto: Held,
}

impl Processes {
    pub fn new(keeper: Keeper) -> Processes {
        let auto = if geteuid().is_root() { Held::Namespace } else { Held::Tree };
        let table = Table { last: 0, rows: BTreeMap::new(), tasks: JoinSet::new(), auto };
        Processes { keeper, table: Mutex::new(table) }
    }

    /// Numbers go on after this one: whoever was told of a process before must not take another for
    /// it.
    #[must_use]
    pub fn after(self, last: u32) -> Processes {
        self.table().last = last;
        self
    }

    /// Runs a command until it ends, or until patience ends and it goes on in the background. To
    /// cancel it, drop this: all that it started is killed.
    pub async fn run(
        &self,
        owner: &str,
        command: Command,
        progress: impl FnMut(&Progress),
    ) -> Result<Ran, Error> {
        let process = self.start(owner, &command).await?;
        let id = process.id;
        if command.start == Start::Background {
            return Ok(Ran::Backgrounded { id, so_far: process.output() });
        }
        let mut cancel = Cancel { processes: self, id: Some(id) };
        match timeout(command.patience, attend(&process, progress)).await {
            Ok(Some(report)) => {
                cancel.id = None;
                self.table().rows.remove(&id);
                Ok(Ran::Ended(report))
            }
            Ok(None) => Err(Error::Unknown { id }),
            Err(_) => {
                cancel.id = None;
                process.send_to_background();
                Ok(Ran::Backgrounded { id, so_far: process.output() })
            }
        }
    }

    async fn start(&self, owner: &str, command: &Command) -> Result<Arc<Process>, Error> {
        if command.argv.is_empty() {
            return Err(Error::Empty);
        }
        kept::check_folder(&command.cwd)?;
        let id = self.table().admit()?;
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        let (kept, ends) = self.keep(command, &mark).await?;
        let failed = |source| Error::Keeper { program: self.keeper.program.clone(), source };
        let escapes = match command.io {
            Io::Pipes => Escapes::Keep,
            Io::Terminal { .. } => Escapes::Strip,
        };
        let path = kept::spill_path(&command.spill_dir, &id, &mark);
        let store = Arc::new(Mutex::new(Store::new(path, escapes)));
        let news = Arc::new(Notify::new());
        let reader = Reader::new(ends.output, Arc::clone(&store), Arc::clone(&news));
        let reader = reader.map_err(failed)?;
        // A terminal is no pipe, but written to in the same way.
        let input = ends.input.map(Sender::from_owned_fd_unchecked);
        let input = input.transpose().map_err(failed)?;
        let (input, handed) = match &command.input {
            Input::Text(text) if command.io == Io::Pipes => (None, input.zip(Some(text.clone()))),
            Input::Nothing | Input::Open | Input::Text(_) => (input, None),
        };
        let (orders, heard) = mpsc::unbounded_channel();
        let process = Arc::new(Process {
            id,
            owner: owner.to_owned(),
            argv: command.argv.clone(),
            start: Mutex::new(command.start),
            began: Instant::now(),
            store,
            news,
            input: tokio::sync::Mutex::new(input),
            orders,
            scissors: kept.scissors().map_err(failed)?,
            report: watch::Sender::new(None),
        });
        let mut table = self.table();
        let attended = supervise(kept, reader, Arc::clone(&process), heard, command.timeout);
        table.tasks.spawn(async move {
            tokio::select! {
                () = attended => {}
                () = hand_in(handed) => {}
            }
        });
        table.rows.insert(id, Arc::clone(&process));
        Ok(process)
    }

    async fn keep(&self, command: &Command, mark: &str) -> Result<(Kept, kept::Ends), Error> {
        let auto = self.table().auto;
        let held = match command.hold {
            Hold::Auto => auto,
            Hold::Namespace => Held::Namespace,
            Hold::Tree => Held::Tree,
        };
        let first = kept::start(&self.keeper, command, held, mark).await;
        let second = match first {
            Ok(kept) => return Ok(kept),
            Err(Refusal::Namespace) if command.hold == Hold::Auto => {
                self.table().auto = Held::Tree;
                kept::start(&self.keeper, command, Held::Tree, mark).await
            }
            Err(refusal) => Err(refusal),
        };
        second.map_err(|refusal| match refusal {
            Refusal::Namespace => Error::NoNamespace,
            Refusal::Error(error) => error,
        })
    }

    /// Those of one owner, oldest first: all that run, and the last that ended.
    pub fn list(&self, owner: &str) -> Vec<Row> {
        let table = self.table();
        let own = table.rows.values().filter(|process| process.owner == owner);
        own.map(|process| process.row()).collect()
    }

    /// A part of what a process said, from a byte on.
    pub fn log(&self, id: Id, offset: u64, limit: usize) -> Result<Log, Error> {
        self.find(id)?.log(offset, limit.min(LOG_BYTES_MAX))
    }

    /// Writes to what a process reads. Keys of a terminal are bytes like any others.
    pub async fn write(&self, id: Id, bytes: &[u8]) -> Result<(), Error> {
        let process = self.find(id)?;
        let mut written = 0;
        let write = process.write(bytes, &mut written);
        match timeout(WRITE, write).await {
            Ok(result) => result,
            Err(_) => Err(Error::NotRead { id, written }),
        }
    }

    /// The process reads the end. In a terminal, write the end-of-file key instead.
    pub async fn close_input(&self, id: Id) -> Result<(), Error> {
        let process = self.find(id)?;
        let closed = timeout(WRITE, process.input.lock()).await.map(|mut input| input.take());
        match closed {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Error::NoInput { id }),
            Err(_) => Err(Error::NotRead { id, written: 0 }),
        }
    }

    /// Until it ends, or so long. What it says meanwhile is told as in `run`.
    pub async fn wait(
        &self,
        id: Id,
        longest: Duration,
        progress: impl FnMut(&Progress),
    ) -> Result<Ran, Error> {
        let process = self.find(id)?;
        match timeout(longest, attend(&process, progress)).await {
            Ok(Some(report)) => Ok(Ran::Ended(report)),
            Ok(None) => Err(Error::Unknown { id }),
            Err(_) => Ok(Ran::Backgrounded { id, so_far: process.output() }),
        }
    }

    /// Asks it to end; two seconds later it is killed, with all that it started.
    pub async fn kill(&self, id: Id) -> Result<Report, Error> {
        let process = self.find(id)?;
        let _ = process.orders.send(Order::End);
        process.ended().await.ok_or(Error::Unknown { id })
    }

    /// The owner is gone: all that is his is killed at once, even if nobody waits for this.
    /// Gives how many ran.
    pub fn end_owner(&self, owner: &str) -> impl Future<Output = usize> + use<> {
        let mut ended = Vec::new();
        self.table().rows.retain(|_, process| {
            let own = process.owner == owner;
            if own && process.is_running() {
                process.cut();
                ended.push(Arc::clone(process));
            }
            !own
        });
        async move {
            for process in &ended {
                process.ended().await;
            }
            ended.len()
        }
    }

    fn find(&self, id: Id) -> Result<Arc<Process>, Error> {
        self.table().rows.get(&id).cloned().ok_or(Error::Unknown { id })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Processes {
    /// Not only by dropping the tasks: that happens when the runtime comes to it, if ever.
    fn drop(&mut self) {
        self.table().rows.values().for_each(|process| process.cut());
    }
}

impl Table {
    /// A number for one more, and the oldest ends are forgotten.
    fn admit(&mut self) -> Result<Id, Error> {
        while self.tasks.try_join_next().is_some() {}
        // Tasks, not rows: a command that was cancelled is no row any more, but may still die.
        if self.tasks.len() >= RUNNING_MAX {
            return Err(Error::Full { running: self.tasks.len() });
        }
        let ended = self.rows.values().filter(|process| !process.is_running());
        let ended: Vec<Id> = ended.map(|process| process.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(ENDED_MAX)) {
            self.rows.remove(id);
        }
        self.last = self.last.saturating_add(1);
        Ok(Id(self.last))
    }
}

/// Until it ends, telling what it says.
async fn attend(process: &Process, mut progress: impl FnMut(&Progress)) -> Option<Report> {
    let told = async {
        loop {
            process.news.notified().await;
            progress(&process.progress(PROGRESS_BYTES));
            sleep(PROGRESS_EVERY).await;
        }
    };
    tokio::select! {
        report = process.ended() => report,
        () = told => None,
    }
}

/// Writes what a command is to read, as fast as it reads, then the end. Never done: how the command
/// ends is somebody else's business.
async fn hand_in(handed: Option<(Sender, String)>) {
    if let Some((mut input, text)) = handed {
        // Who does not want to read it all need not.
        let _ = input.write_all(text.as_bytes()).await;
    }
    pending::<()>().await;
}

/// Kills a command when whoever ran it goes away.
struct Cancel<'a> {
    processes: &'a Processes,
    id: Option<Id>,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if let Some(process) = self.processes.table().rows.remove(&id) {
            process.cut();
        }
    }
}
