//! What a run prints, on a thread of its own: nobody waits for a terminal or a pipe. With `--json`
//! every line, else what a face makes of them.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Arc;
use std::thread;

use locum_journal::Journal;
use locum_kernel::Config;
use locum_runtime::clock::{System, rfc3339};
use locum_runtime::driver::{Driver, retell};
use locum_runtime::line::{Body, Line};
use locum_runtime::live::{PieceKind, Reader, Told};
use tokio::sync::oneshot;

use crate::complaint::Complaint;
use crate::face::Face;
use crate::log;
use crate::plain::Plain;
use crate::print::note;
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
                    let ts = rfc3339(piece.at);
                    face.line(&Line { seq, ts, agent, body, ..Line::clone(last) });
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
