//! What a run prints, on a thread of its own: nobody waits for a terminal or a pipe. With `--json`
//! every line; without, who speaks on standard error and the final text on standard output, so
//! that `$(locum run …)` is the answer and nothing else.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use locum_journal::Journal;
use locum_kernel::{AskTo, Config};
use locum_runtime::clock::System;
use locum_runtime::driver::{Driver, retell};
use locum_runtime::line::{AskOpened, Body, Line};
use locum_runtime::live::{PieceKind, Reader, Told};
use tokio::sync::oneshot;

use crate::complaint::Complaint;
use crate::log;
use crate::look::text::clean;
use crate::overheard::{self, Overheard};
use crate::screen::{Ink, cut_end, err, ours};
use crate::terminal::hint;
use crate::tree::Tree;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Json,
    /// With how to answer under every ask, if somebody can type.
    Plain {
        hints: bool,
    },
    Tree,
    /// For the log alone.
    Log,
}

/// What a printer reads, and where it reads again what it missed.
pub(crate) struct Source {
    pub(crate) reader: Reader,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) session: String,
    /// As the lines of this run tell it.
    pub(crate) cwd: String,
}

impl Source {
    pub(crate) fn of(driver: &Driver, journal: &Arc<dyn Journal>, config: &Config) -> Source {
        Source {
            reader: driver.subscribe(),
            journal: Arc::clone(journal),
            session: config.session.clone(),
            cwd: config.workspace.clone(),
        }
    }
}

/// Whoever looks, and the log if there is one: each reads for itself, so that a pipe nobody
/// empties does not hold up the log.
pub(crate) fn start_all(
    style: Style,
    source: impl Fn() -> Source,
) -> Result<Vec<oneshot::Receiver<()>>, Complaint> {
    let styles = [Some(style), log::is_on().then_some(Style::Log)];
    styles.into_iter().flatten().map(|style| start(style, source())).collect()
}

/// Prints until the session is closed. What is returned is settled when everything is out.
fn start(style: Style, source: Source) -> Result<oneshot::Receiver<()>, Complaint> {
    let tasks = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let face: Box<dyn Face + Send> = match style {
        Style::Json => Box::new(Json(BufWriter::new(io::stdout()))),
        Style::Plain { hints } => Box::new(Plain::new(hints)),
        Style::Tree => Box::new(Tree::new(Arc::new(System))),
        Style::Log => Box::new(log::Teller),
    };
    let thread = thread::Builder::new().name("printer".into());
    let (out, printed) = oneshot::channel();
    let thread = thread.spawn(move || {
        tasks.block_on(print(face, source));
        // Whoever gave up waiting does not want to know.
        let _ = out.send(());
    });
    thread.map_err(|error| Complaint::machine(&error))?;
    Ok(printed)
}

/// How lines look.
pub(crate) trait Face {
    fn line(&mut self, line: &Line);

    /// Nothing more is waiting to be shown just now.
    fn pause(&mut self) {}

    /// Time passes although nothing happens.
    fn tick(&mut self) {}

    /// How often, if at all.
    fn tick_every(&self) -> Option<Duration> {
        None
    }
}

/// The next thing to show; what only moves with time is moved meanwhile.
async fn next(face: &mut dyn Face, reader: &mut Reader) -> Option<Told> {
    let Some(tick) = face.tick_every() else { return reader.next().await };
    loop {
        match tokio::time::timeout(tick, reader.next()).await {
            Ok(told) => return told,
            Err(_) => face.tick(),
        }
    }
}

async fn print(mut face: Box<dyn Face + Send>, mut source: Source) {
    // The newest line, whose head a piece that follows it is shown under.
    let mut last: Option<Arc<Line>> = None;
    while let Some(told) = next(face.as_mut(), &mut source.reader).await {
        match told {
            Told::Line(line) => {
                face.line(&line);
                last = Some(line);
            }
            Told::Piece { seq, piece } => {
                if let Some(last) = &last {
                    let text = piece.text.clone();
                    let body = match piece.kind {
                        PieceKind::Text => Body::MessageDelta { text },
                        PieceKind::Thinking => Body::ThinkingDelta { text },
                        PieceKind::Output { call, bytes } => {
                            Body::ToolOutput { call: call.to_string(), bytes, tail: text }
                        }
                    };
                    let agent = (*piece.agent).clone();
                    face.line(&Line { seq, agent, body, ..Line::clone(last) });
                }
            }
            Told::Gap { seq, missed } => {
                catch_up(face.as_mut(), &mut source, &mut last, seq, missed);
            }
        }
        if source.reader.is_idle() {
            face.pause();
        }
    }
    face.pause();
}

/// Shows from the journal what was missed while printing was too slow.
fn catch_up(
    face: &mut dyn Face,
    source: &mut Source,
    last: &mut Option<Arc<Line>>,
    seq: u64,
    missed: u64,
) {
    let gap = |before: &Line| Line { body: Body::Gap { missed }, ..before.clone() };
    if let Some(last) = &last {
        face.line(&gap(last));
    }
    let mut seen = seq;
    let read = retell(source.journal.as_ref(), &source.session, |_, _, lines| {
        for mut line in lines.into_iter().filter(|line| line.seq > seq) {
            // The journal does not know where this run was started.
            if let Body::RunStarted(run) = &mut line.body {
                run.cwd.clone_from(&source.cwd);
            }
            face.line(&line);
            if last.is_none() {
                face.line(&gap(&line));
            }
            seen = line.seq;
            *last = Some(Arc::new(line));
        }
        true
    });
    if let Err(error) = read {
        note(&format!("lines after {seen} cannot be shown: {error}"));
    }
    source.reader.caught_up(seen);
}

struct Json(BufWriter<Stdout>);

impl Face for Json {
    /// A reader who left is no reason to stop: the work goes on and is in the journal.
    fn line(&mut self, line: &Line) {
        match serde_json::to_writer(&mut self.0, line) {
            Ok(()) => drop(self.0.write_all(b"\n")),
            Err(error) if error.is_io() => {}
            Err(error) => note(&format!("line {} cannot be written: {error}", line.seq)),
        }
    }

    fn pause(&mut self) {
        let _ = self.0.flush();
    }
}

/// Holds back what main said last: it may be the final text. Everything else is shown at once.
struct Plain {
    hints: bool,
    held: Option<String>,
    overheard: Overheard,
}

impl Plain {
    fn new(hints: bool) -> Plain {
        Plain { hints, held: None, overheard: Overheard::new(Arc::new(System)) }
    }

    /// What tools print, in its place among what is said.
    fn show(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.flush();
        }
        for line in lines {
            say(&clean(line));
        }
    }

    fn flush(&mut self) {
        if let Some(before) = self.held.take() {
            say(&clean(&before));
        }
    }
}

impl Face for Plain {
    fn line(&mut self, told: &Line) {
        let lines = self.overheard.follow(told);
        self.show(&lines);
        if let Body::RunResult(result) = &told.body {
            let last = format!("{}: {}", told.agent.path, result.text);
            self.held.take_if(|before| *before == last);
            self.flush();
            // Exactly as it was said it is in the JSON lines and behind `-o`.
            line(&clean(&result.text));
            return;
        }
        let Some(shown) = plain(told, self.hints) else { return };
        // In the order in which it was said.
        self.flush();
        let may_be_final = told.agent.depth == 0 && matches!(told.body, Body::Message { .. });
        if may_be_final { self.held = Some(shown) } else { say(&clean(&shown)) }
    }

    fn tick(&mut self) {
        let lines = self.overheard.tick();
        self.show(&lines);
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(overheard::TICK)
    }
}

fn asked(path: &str, ask: &AskOpened, hints: bool) -> String {
    let because = ask.because.as_deref().map(|why| format!("\n    because: {}", ours(&clean(why))));
    let because = because.unwrap_or_default();
    let summary = cut_end(&ask.summary);
    let shown = format!("{path}: ({} {}: {summary}){because}", ask.kind, ask.id);
    match (hints, ask.to) {
        (true, AskTo::Person) => format!("{shown}\n    {}", hint(ask.kind, &ask.options)),
        (true, AskTo::Parent) | (false, _) => shown,
    }
}

fn plain(told: &Line, hints: bool) -> Option<String> {
    let path = &told.agent.path;
    match &told.body {
        Body::AskOpened(ask) => Some(asked(path, ask, hints)),
        // Whoever is here now was not there when they were opened.
        Body::RunStarted(run) if !run.asks.is_empty() => {
            let open = run.asks.iter().map(|open| asked(&open.agent.path, &open.ask, hints));
            Some(open.collect::<Vec<_>>().join("\n"))
        }
        Body::Message { text, .. } => Some(format!("{path}: {text}")),
        Body::Retry { attempt, max, wait_ms, cause, .. } => {
            let seconds = wait_ms.div_ceil(1_000);
            Some(format!("{path}: (try {attempt} of {max} in {seconds} s: {cause})"))
        }
        Body::AskClosed { id, decision, by, .. } => {
            Some(format!("{path}: ({id} {decision} by {by})"))
        }
        Body::AgentFinished(end) if end.is_error => {
            Some(format!("{path}: ({}: {})", end.outcome.word(), end.reason))
        }
        Body::RunStarted(_)
        | Body::InputQueued(_)
        | Body::InputStarted(_)
        | Body::InputDropped(_)
        | Body::AgentSpawned { .. }
        | Body::AgentState { .. }
        | Body::FloorChanged { .. }
        | Body::TurnStarted { .. }
        | Body::TurnFinished { .. }
        | Body::MessageDelta { .. }
        | Body::ThinkingDelta { .. }
        | Body::ToolOutput { .. }
        | Body::Gap { .. }
        | Body::ToolStarted { .. }
        | Body::ToolFinished(_)
        | Body::AgentFinished(_)
        | Body::Attention { .. }
        | Body::Compacted { .. }
        | Body::Error { .. }
        | Body::RunResult(_) => None,
    }
}

/// A reader who left is no reason to stop, here as well.
pub(crate) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A word of ours to whoever is there, and to the log.
pub(crate) fn note(text: &str) {
    let shown = ours(text);
    let marks = [("warning: ", Ink::Warn), ("note: ", Ink::Faint), ("do: ", Ink::Next)];
    let found = marks.iter().find_map(|(mark, ink)| Some((shown.strip_prefix(mark)?, mark, ink)));
    match found {
        Some((rest, mark, ink)) => say(&format!("{} {rest}", err(*ink, mark.trim_end()))),
        None => say(&shown),
    }
    if text.starts_with("warning: ") {
        tracing::warn!(target: log::NOTE, "{text}");
    } else if !text.is_empty() {
        tracing::info!(target: log::NOTE, "{text}");
    }
}

/// Something that is shown beside the output, as it is. While a live tree is drawn there, it is
/// for the tree to make room.
pub(crate) fn say(text: &str) {
    let mut beside = beside();
    match &mut *beside {
        Some(waiting) if waiting.len() < BESIDE_MAX => waiting.push(text.to_owned()),
        // The tree stands still, and so does whoever would read it.
        Some(_) => {}
        None => {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// What others say while a tree is drawn, until it has room for it.
static BESIDE: Mutex<Option<Vec<String>>> = Mutex::new(None);
const BESIDE_MAX: usize = 256;

fn beside() -> MutexGuard<'static, Option<Vec<String>>> {
    BESIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, what is said goes through [`Beside::take`].
pub(crate) struct Beside(());

impl Beside {
    pub(crate) fn begin() -> Beside {
        *beside() = Some(Vec::new());
        Beside(())
    }

    #[expect(clippy::unused_self, reason = "only whoever draws the tree has room for it")]
    pub(crate) fn take(&self) -> Vec<String> {
        beside().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let left = beside().take();
        left.into_iter().flatten().for_each(|text| say(&text));
    }
}
