//! What running tools print, as lines for people while they run. What is over in a moment is left
//! to whoever called it; what takes longer is shown from its beginning, so many lines a second and
//! never after its result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::Time;
use locum_runtime::clock::Clock;
use locum_runtime::line::{Body, Line, ToolFinished};
use serde_json::Value;

use crate::screen::cut;
use crate::text::{clean, row, span};

/// Nobody wonders about what is over sooner.
const PATIENCE_MS: u64 = 1_000;
/// How often it is looked whether somebody wonders by now.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// As fast as people skim; the rest is counted.
const LINES_PER_SECOND: usize = 20;
/// Of one line, and of one that never ends.
const CHARACTERS_MAX: usize = 400;
const UNFINISHED_BYTES_MAX: usize = 4 << 10;
/// Lines that wait for patience to end, or for the next second: nobody wants to see what was
/// printed long ago.
const WAITING_MAX: usize = 2 * LINES_PER_SECOND;
/// As much as a piece is of, at most: of more than that between two pieces the rest is missing.
const PIECE_BYTES: u64 = 2 << 10;
/// Whoever printed so recently is thought to go on, and has a share of what is shown.
const BUSY_MS: u64 = 2_000;
/// Calls whose end is remembered. A piece comes at most a moment too late.
const OVER_MAX: usize = 256;
/// By so much of what was heard last its place in the result is found.
const KNOWN_BYTES: usize = 256;
/// Of what came too late for a piece.
const LAST_LINES_MAX: usize = 20;

pub(crate) struct Overheard {
    clock: Arc<dyn Clock>,
    calls: BTreeMap<String, Heard>,
    over: VecDeque<String>,
    /// The second in which so many lines were shown.
    second: u64,
    shown: usize,
}

/// One call that runs.
struct Heard {
    path: String,
    /// What it is, before the first line of it is shown.
    title: String,
    is_shown: bool,
    began: Time,
    bytes: u64,
    /// The newest piece, by which the next is known to go on.
    tail: String,
    unfinished: String,
    waiting: VecDeque<Waiting>,
    /// What nobody will see of what came before that.
    left_out: LeftOut,
    /// When it printed last, and when a line of it was shown last.
    printed: Time,
    told: Time,
    /// Lines shown in the second that is under way.
    shown: usize,
}

enum Waiting {
    Line(String),
    /// So many bytes were printed here and never heard.
    Unheard(u64),
}

/// Lines where they were heard, bytes where not even that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    lines: u64,
    bytes: u64,
}

impl LeftOut {
    fn add(&mut self, waiting: &Waiting) {
        match waiting {
            Waiting::Line(_) => self.lines += 1,
            Waiting::Unheard(bytes) => self.bytes += bytes,
        }
    }

    fn told(self) -> Option<String> {
        let lines = (self.lines > 0).then(|| many(self.lines, "line"));
        let bytes = (self.bytes > 0).then(|| many(self.bytes, "byte"));
        let told: Vec<String> = lines.into_iter().chain(bytes).collect();
        (!told.is_empty()).then(|| format!("[{} not shown]", told.join(" and ")))
    }
}

fn many(count: u64, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}

impl Overheard {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Overheard {
        let (calls, over) = (BTreeMap::new(), VecDeque::new());
        Overheard { clock, calls, over, second: 0, shown: 0 }
    }

    /// What is to be shown before whatever this line says.
    pub(crate) fn follow(&mut self, line: &Line) -> Vec<String> {
        let now = self.clock.now();
        let path = &line.agent.path;
        if let Body::ToolStarted { call, name, input, .. } = &line.body {
            self.calls.insert(call.clone(), Heard::new(path, title(name, input), now));
        }
        if let Body::ToolFinished(end) = &line.body {
            return self.finish(end);
        }
        // Whoever was stopped has calls without a result.
        if let Body::AgentFinished(_) = &line.body {
            let stopped = self.calls.extract_if(.., |_, heard| heard.path == *path);
            self.over.extend(stopped.map(|(call, _)| call));
            self.over.drain(..self.over.len().saturating_sub(OVER_MAX));
        }
        if let Body::RunResult(_) = &line.body {
            self.calls.clear();
        }
        let Body::ToolOutput { call, bytes, tail } = &line.body else { return Vec::new() };
        if self.over.contains(call) {
            return Vec::new();
        }
        // Programs that are agents have no beginning of their own.
        let begin = || Heard::new(path, String::new(), now);
        self.calls.entry(call.clone()).or_insert_with(begin).hear(*bytes, tail, now);
        self.tick()
    }

    /// What has waited long enough. Whoever prints has a share of their own: what comes first in a
    /// second must not take it all, second after second.
    pub(crate) fn tick(&mut self) -> Vec<String> {
        let now = self.clock.now();
        if self.second != now.0 / 1_000 {
            (self.second, self.shown) = (now.0 / 1_000, 0);
            self.calls.values_mut().for_each(|heard| heard.shown = 0);
        }
        let is_due = |it: &&mut Heard| now.since(it.began) >= PATIENCE_MS && it.is_busy(now);
        let mut busy: Vec<&mut Heard> = self.calls.values_mut().filter(is_due).collect();
        let share = (LINES_PER_SECOND / busy.len().max(1)).max(1);
        // More than there are lines for take turns.
        busy.sort_by_key(|heard| heard.told);
        let mut out = Vec::new();
        for heard in busy {
            let left = LINES_PER_SECOND.saturating_sub(self.shown);
            let room = share.saturating_sub(heard.shown).min(left);
            let before = out.len();
            heard.tell(room, &mut out);
            let lines = out.len() - before;
            if lines > 0 {
                heard.told = now;
            }
            heard.shown += lines;
            self.shown += lines;
        }
        out
    }

    fn finish(&mut self, end: &ToolFinished) -> Vec<String> {
        let now = self.clock.now();
        self.over.push_back(end.call.clone());
        self.over.drain(..self.over.len().saturating_sub(OVER_MAX));
        let Some(mut heard) = self.calls.remove(&end.call) else { return Vec::new() };
        let is_short = now.since(heard.began) < PATIENCE_MS;
        if is_short || (!heard.is_shown && heard.waiting.is_empty() && heard.bytes == 0) {
            return Vec::new();
        }
        heard.hear_rest(&end.output);
        let skipped = heard.waiting.len().saturating_sub(LAST_LINES_MAX);
        for waiting in heard.waiting.drain(..skipped) {
            heard.left_out.add(&waiting);
        }
        let mut out = Vec::new();
        heard.tell(usize::MAX, &mut out);
        let exit = end.exit.map(|exit| format!(", exit {exit}")).unwrap_or_default();
        let word = if end.ok { "ended" } else { "failed" };
        let after = span(end.ms);
        out.push(format!("{}: ({} {word} after {after}{exit})", heard.path, end.name));
        out
    }
}

impl Heard {
    fn new(path: &str, title: String, began: Time) -> Heard {
        Heard {
            path: path.to_owned(),
            title,
            is_shown: false,
            began,
            bytes: 0,
            tail: String::new(),
            unfinished: String::new(),
            waiting: VecDeque::new(),
            left_out: LeftOut::default(),
            printed: began,
            told: began,
            shown: 0,
        }
    }

    /// Has something to show, or will have.
    fn is_busy(&self, now: Time) -> bool {
        !self.waiting.is_empty()
            || self.left_out != LeftOut::default()
            || (self.bytes > 0 && now.since(self.printed) < BUSY_MS)
    }

    fn hear(&mut self, bytes: u64, tail: &str, now: Time) {
        self.printed = now;
        // Words about progress, which are whole.
        if bytes == 0 {
            if self.tail != tail {
                tail.clone_into(&mut self.tail);
                self.add(&format!("{tail}\n"));
            }
            return;
        }
        // A sign that is not whole yet.
        let tail = tail.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let more = bytes.saturating_sub(self.bytes);
        if more > PIECE_BYTES {
            self.miss(more - PIECE_BYTES);
            self.add(tail);
        } else {
            self.add(fresh(&self.tail, tail, more));
        }
        self.bytes = bytes;
        tail.clone_into(&mut self.tail);
    }

    /// So many bytes come between what was heard and what follows.
    fn miss(&mut self, bytes: u64) {
        // The line that was under way has its end there.
        if !self.unfinished.is_empty() {
            self.add("\n");
        }
        if let Some(Waiting::Unheard(before)) = self.waiting.back_mut() {
            *before += bytes;
        } else {
            self.push(Waiting::Unheard(bytes));
        }
    }

    /// What was printed after the last piece is at the end of the result.
    fn hear_rest(&mut self, output: &str) {
        let from = self.tail.len().saturating_sub(KNOWN_BYTES);
        let known = &self.tail[self.tail.ceil_char_boundary(from)..];
        let at = output.rfind(known).filter(|_| !known.is_empty());
        let rest = at.map(|at| output[at + known.len()..].to_owned());
        self.add(&rest.unwrap_or_default());
        if !self.unfinished.trim().is_empty() {
            self.add("\n");
        }
    }

    fn add(&mut self, text: &str) {
        self.unfinished.push_str(text);
        while let Some(end) = self.unfinished.find('\n') {
            let line: String = self.unfinished.drain(..=end).collect();
            self.wait(&line);
        }
        if self.unfinished.len() > UNFINISHED_BYTES_MAX {
            let from = self.unfinished.len() - UNFINISHED_BYTES_MAX / 2;
            let from = self.unfinished.ceil_char_boundary(from);
            self.unfinished.drain(..from);
            self.left_out.bytes += from as u64;
        }
    }

    fn wait(&mut self, line: &str) {
        let line = as_seen(line);
        if !line.is_empty() {
            self.push(Waiting::Line(line));
        }
    }

    fn push(&mut self, waiting: Waiting) {
        if self.waiting.len() == WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.left_out.add(&oldest);
        }
        self.waiting.push_back(waiting);
    }

    /// At most so many lines, which leaves nothing older to be shown after them.
    fn tell(&mut self, room: usize, out: &mut Vec<String>) {
        let path = &self.path;
        let is_silent = self.waiting.is_empty() && self.left_out == LeftOut::default();
        if is_silent || room == 0 {
            return;
        }
        if !std::mem::replace(&mut self.is_shown, true) && !self.title.is_empty() {
            out.push(format!("{path}: ({})", self.title));
        }
        let mut left_out = std::mem::take(&mut self.left_out);
        let lines = self.waiting.len().min(room);
        for waiting in self.waiting.drain(..lines) {
            if let Waiting::Line(line) = &waiting {
                let told = std::mem::take(&mut left_out).told();
                out.extend(told.iter().chain([line]).map(|it| format!("{path} | {it}")));
            } else {
                left_out.add(&waiting);
            }
        }
        // What goes on being left out is told as one.
        if self.waiting.is_empty() {
            out.extend(left_out.told().map(|told| format!("{path} | {told}")));
        } else {
            self.left_out = left_out;
        }
    }
}

/// The part of a piece that was not in the one before it, if `more` bytes came between them. Bytes
/// that no person sees are counted but not there, so what is known is looked for as well.
fn fresh<'t>(before: &str, tail: &'t str, more: u64) -> &'t str {
    let known = |at: usize| tail.get(..at).is_some_and(|head| before.ends_with(head));
    let counted = usize::try_from(more).ok().and_then(|more| tail.len().checked_sub(more));
    let counted = counted.filter(|at| known(*at));
    let found = || (0..=tail.len().min(before.len())).rev().find(|at| known(*at));
    let at = counted.or_else(found).unwrap_or_default();
    tail.get(at..).unwrap_or_default()
}

/// The newest line that can be seen, of what a tool prints.
pub(crate) fn newest(tail: &str) -> Option<String> {
    tail.lines().rev().map(as_seen).find(|line| !line.is_empty())
}

/// A line that was begun anew is seen as it was written last.
fn as_seen(line: &str) -> String {
    let last = line.trim_end().rsplit('\r').next().unwrap_or_default();
    let line = clean(last);
    let line = line.trim_end();
    if line.chars().count() <= CHARACTERS_MAX {
        return line.to_owned();
    }
    let kept: String = line.chars().take(CHARACTERS_MAX).collect();
    format!("{kept}{}", cut())
}

fn title(name: &str, input: &Value) -> String {
    match input.get("command").and_then(Value::as_str) {
        Some(command) => row(&format!("{name}: {command}"), 200),
        None => row(&format!("{name} {input}"), 200),
    }
}

#[cfg(test)]
mod tests;
