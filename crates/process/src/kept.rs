//! Our side of one command: starts its keeper, keeps what it says, and sees it to its end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{Notify, oneshot};

use crate::command::{Command, Error, Input, Io, Keeper};
use crate::keeper::forget;
use crate::leash::{MARK, Order, Tidings};
use crate::output::Store;
use crate::tree;

/// A keeper that says nothing for so long when it starts does not work.
const START: Duration = Duration::from_secs(10);
const WAKE_EVERY: Duration = Duration::from_millis(100);
/// Read at once.
const CHUNK: usize = 64 << 10;

/// How this command is held; what `Hold` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Namespace,
    Tree,
}

/// A keeper and its leash.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) child: Child,
    leash: BufReader<UnixStream>,
    pub(crate) held: Held,
    mark: String,
}

/// Our ends of what the command writes to and reads from.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) output: OwnedFd,
    pub(crate) input: Option<OwnedFd>,
}

/// The keeper's ends.
struct Far {
    output: OwnedFd,
    input: Stdio,
}

/// Why there is no command.
pub(crate) enum Refusal {
    /// No namespace here.
    Namespace,
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

/// Starts a command. Dropped before it is done, it leaves nobody: the keeper sees the leash go.
pub(crate) async fn start(
    keeper: &Keeper,
    command: &Command,
    held: Held,
    mark: &str,
) -> Result<(Kept, Ends), Refusal> {
    let failed = |source| Error::Keeper { program: keeper.program.clone(), source };
    let (near, far) = ends(command.io, &command.input).map_err(failed)?;
    let (leash, other) = Socket::pair().map_err(failed)?;
    leash.set_nonblocking(true).map_err(failed)?;
    let leash = UnixStream::from_std(leash).map_err(failed)?;
    let words = match held {
        Held::Namespace => ["keep", "namespace"],
        Held::Tree => ["keep", "tree"],
    };
    let mut program = std::process::Command::new(&keeper.program);
    program.arg0("locum-keeper").args(&keeper.args).args(words).arg(mark);
    program.arg(command.pids_max.to_string()).env_clear().env(MARK, mark).current_dir("/");
    program.stdin(OwnedFd::from(other)).stdout(far.output).stderr(far.input);
    let mut program = tokio::process::Command::from(program);
    let child = program.spawn().map_err(failed)?;
    // It has copies of the far ends, and as long as we have them there is no end of the output.
    drop(program);
    let leash = BufReader::new(leash);
    let mut kept = Kept { child, leash, held, mark: mark.to_owned() };
    let order = order(command, mark);
    let begun = tokio::time::timeout(START, kept.begin(&order)).await;
    let begun = begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    if begun.is_err() {
        // The command may have run already, and have killed its keeper.
        kept.strike().await;
    }
    match begun.map_err(failed)? {
        Tidings::Started => Ok((kept, near)),
        Tidings::Refused => Err(Refusal::Namespace),
        Tidings::Failed(number) => {
            let program = command.argv.first().map(|word| word.to_string_lossy().into_owned());
            let source = io::Error::from_raw_os_error(number);
            Err(Error::Start { program: program.unwrap_or_default(), source }.into())
        }
        Tidings::Ready | Tidings::Ended(_) => Err(failed(io::ErrorKind::InvalidData.into()).into()),
    }
}

fn order(command: &Command, mark: &str) -> Order {
    let mut env = command.env.clone();
    env.push((MARK.into(), mark.into()));
    let cwd = std::path::absolute(&command.cwd).unwrap_or_else(|_| command.cwd.clone());
    let terminal = matches!(command.io, Io::Terminal { .. });
    let errors = command.errors.clone().unwrap_or_default();
    Order { argv: command.argv.clone(), env, cwd, terminal, errors }
}

fn ends(io: Io, input: &Input) -> io::Result<(Ends, Far)> {
    match io {
        Io::Pipes => {
            let (output, far) = io::pipe()?;
            let (near_input, far_input) = match input {
                // Not `Stdio::null`: it travels as an error output, which one cannot read from.
                Input::Nothing => (None, Stdio::from(File::open("/dev/null")?)),
                Input::Open | Input::Text(_) => {
                    let (reader, writer) = io::pipe()?;
                    let writer = OwnedFd::from(writer);
                    never_block(&writer)?;
                    (Some(writer), Stdio::from(reader))
                }
            };
            let output = OwnedFd::from(output);
            never_block(&output)?;
            let near = Ends { output, input: near_input };
            Ok((near, Far { output: far.into(), input: far_input }))
        }
        Io::Terminal { rows, cols } => {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let near = openpt(flags)?;
            grantpt(&near)?;
            unlockpt(&near)?;
            let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&near, size)?;
            let far = ioctl_tiocgptpeer(&near, flags)?;
            never_block(&near)?;
            let input = near.try_clone()?;
            Ok((
                Ends { output: near, input: Some(input) },
                Far { output: far, input: Stdio::null() },
            ))
        }
    }
}

/// Only our end: theirs is another file to the system.
fn never_block(file: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)?)
}

impl Kept {
    /// Until the keeper says how the start went. A command can stop its keeper so early that
    /// it has not said so yet.
    async fn begin(&mut self, order: &Order) -> io::Result<Tidings> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        match self.hear().await? {
            Some(Tidings::Ready) => {}
            Some(other) => return Ok(other),
            None => return Err(gone()),
        }
        let order = order.encode();
        tokio::io::AsyncWriteExt::write_all(self.leash.get_mut(), &order).await?;
        loop {
            match tokio::time::timeout(WAKE_EVERY, self.hear()).await {
                Ok(heard) => return heard?.ok_or_else(gone),
                Err(_) => self.wake(),
            }
        }
    }

    /// What the keeper says next; None: it is gone. Nothing is lost if this is dropped half-way
    /// only because a line of a keeper is written, and so read, at once.
    pub(crate) async fn hear(&mut self) -> io::Result<Option<Tidings>> {
        let mut line = String::new();
        if self.leash.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        Tidings::parse(&line).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// One letter. It finds room, or the keeper is stuck and ends in another way.
    pub(crate) fn say(&self, letter: u8) {
        let _ = self.leash.get_ref().try_write(&[letter]);
        self.wake();
    }

    /// A second handle to the leash, to cut it at any moment and from anywhere.
    pub(crate) fn scissors(&self) -> io::Result<Scissors> {
        let socket = self.leash.get_ref().as_fd().try_clone_to_owned()?;
        Ok(Scissors(Socket::from(socket)))
    }

    fn pid(&self) -> Option<i32> {
        self.child.id().map(u32::cast_signed)
    }

    /// Outside a namespace a command can have stopped its keeper.
    fn wake(&self) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// For when the keeper did not do its work. A namespace ends with its keeper. The keeper of a
    /// tree is helped and not killed: it alone hears of orphans. Where it is gone already, we
    /// look for its mark.
    pub(crate) async fn strike(&mut self) {
        self.wake();
        let gone = matches!(self.child.try_wait(), Ok(Some(_)));
        if self.held == Held::Namespace {
            let _ = self.child.start_kill();
        }
        let (held, pid, mark) = (self.held, self.pid(), self.mark.clone());
        let (done, struck) = oneshot::channel();
        let work = move || match (held, pid) {
            (Held::Tree, Some(pid)) if !gone => {
                tree::end(|| tree::below(pid), || tree::below(pid).is_empty())
            }
            _ => {
                let ended = tree::end(|| tree::marked(&mark), || tree::marked(&mark).is_empty());
                forget(&mark);
                ended
            }
        };
        // A thread of our own: the runtime panics where the system has none left to give, and
        // that is just when this is needed. Then everybody waits, for two seconds at most.
        let work = Arc::new(work);
        let again = Arc::clone(&work);
        let thread = thread::Builder::new().spawn(move || done.send(work()));
        if thread.is_err() {
            again();
        }
        let _ = struck.await;
    }
}

impl Drop for Kept {
    /// The leash goes with us; a keeper that was stopped must wake up to notice.
    fn drop(&mut self) {
        self.wake();
    }
}

/// Cuts a leash.
#[derive(Debug)]
pub(crate) struct Scissors(Socket);

impl Scissors {
    /// All below the keeper are killed, without a word of warning. We still hear how it went.
    pub(crate) fn cut(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}

/// Reads what a command says, on a thread of its own: a disk that is slow or a command that
/// never stops talking must not keep anybody else waiting.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Dropped, it tells the thread to end.
    stop: Option<PipeWriter>,
    done: oneshot::Receiver<()>,
}

impl Reader {
    pub(crate) fn new(
        output: OwnedFd,
        store: Arc<Mutex<Store>>,
        news: Arc<Notify>,
    ) -> io::Result<Reader> {
        let (stopped, stop) = io::pipe()?;
        let (finished, done) = oneshot::channel();
        thread::Builder::new().name("locum-output".to_owned()).spawn(move || {
            pump(&output, &stopped, &store, &news);
            let _ = finished.send(());
            news.notify_one();
        })?;
        Ok(Reader { stop: Some(stop), done })
    }

    /// The end of the output, or so long and no longer: somebody we do not know of may hold it.
    pub(crate) async fn finish(&mut self, longest: Duration) {
        let _ = tokio::time::timeout(longest, &mut self.done).await;
        self.stop = None;
    }
}

fn pump(output: &OwnedFd, stopped: &PipeReader, store: &Mutex<Store>, news: &Notify) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut files = [PollFd::new(output, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut files, None) {
            Ok(_) if !files[1].revents().is_empty() => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        match rustix::io::read(output, &mut chunk) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            // A terminal that nobody has open any more is an error; it means the same.
            Ok(0) | Err(_) => return,
            Ok(read) => {
                store.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..read]);
                news.notify_one();
            }
        }
    }
}

/// A folder that a command can run in.
pub(crate) fn check_folder(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Folder { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(());
    }
    Err(failed(io::ErrorKind::NotADirectory.into()))
}

/// Where the output of a process goes when it is too long.
pub(crate) fn spill_path(folder: &Path, name: &dyn std::fmt::Display, mark: &str) -> PathBuf {
    folder.join(AsRef::<OsStr>::as_ref(&format!("{name}-{mark}.out")))
}
