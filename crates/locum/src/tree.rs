//! The live tree of a run on a terminal: what is said scrolls by, and below it everybody who is
//! at work has a row that is drawn anew as things change. Only standard error is drawn on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{AskTo, State, Time};
use locum_runtime::clock::Clock;
use locum_runtime::line::{AgentRef, AskOpened, Body, Line};

use crate::face::{Face, Spoken, hint, spoken};
use crate::overheard::newest;
use crate::print::{Beside, Word, line};
use crate::screen::{Ink, between, cut, cut_end, err, of_state, ours, quoted, spinner};
use crate::text::{clean, row};

/// How often the clock and the spinner move.
const TICK: Duration = Duration::from_millis(200);
/// Rows of agents; more are counted.
const ROWS_MAX: usize = 12;

pub(crate) struct Tree {
    clock: Arc<dyn Clock>,
    began: Time,
    /// By path, which keeps children below their parents.
    rows: BTreeMap<String, Shown>,
    usd: Option<f64>,
    /// Lines of the region that is drawn anew.
    drawn: usize,
    frame: usize,
    /// Somebody is asked: the region stands still, so that what is typed stays readable.
    asking: Vec<Asking>,
    /// What main said last was shown; the final text need not be said twice.
    last_words: String,
    beside: Beside,
}

struct Shown {
    depth: u32,
    state: State,
    doing: String,
    since: Time,
    /// How long it had been doing that by then, where it says so.
    ran_s: Option<u64>,
    /// What its tools print, by call: the newest line.
    prints: BTreeMap<String, String>,
}

/// An ask that is open, and how it is shown.
struct Asking {
    id: String,
    shown: String,
}

impl Tree {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Tree {
        let began = clock.now();
        Tree {
            clock,
            began,
            rows: BTreeMap::new(),
            usd: Some(0.0),
            drawn: 0,
            frame: 0,
            asking: Vec::new(),
            last_words: String::new(),
            beside: Beside::begin(),
        }
    }

    /// Takes the region away, says something above where it was, and leaves drawing to later.
    fn say(&mut self, text: &str) {
        let mut out = self.erased();
        out.push_str(text);
        out.push('\n');
        show(&out);
    }

    fn erased(&mut self) -> String {
        let mut out = String::new();
        if self.drawn > 0 {
            // To the left first: what was typed meanwhile, such as ^C, has moved the cursor.
            let _ = write!(out, "\r\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
        out
    }

    fn draw(&mut self) {
        if !self.asking.is_empty() {
            return;
        }
        let (width, height) = terminal_size::terminal_size()
            .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        let mut out = self.erased();
        let busy: Vec<_> = self.rows.iter().filter(|(_, shown)| !is_over(shown.state)).collect();
        let mut lines = 0;
        // What has scrolled away cannot be drawn anew. Agents come first, then what they print.
        let rows_max = ROWS_MAX.min(height.saturating_sub(3)).max(1);
        let mut room_below = height.saturating_sub(busy.len().min(rows_max) + 3).min(ROWS_MAX);
        for (path, shown) in busy.iter().take(rows_max) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let indent = "  ".repeat(shown.depth as usize + 1);
            let seconds = self.clock.now().since(shown.since) / 1_000;
            let word = shown.state.word();
            let ran = shown.ran_s.map(|ran| format!(", {}s", ran + seconds)).unwrap_or_default();
            let text = format!("{name} {word} {} {}{ran}", clock(seconds), shown.doing);
            let room = width.saturating_sub(indent.len() + 1);
            let text = row(&text, room);
            // Coloured last: what a colour takes is no room.
            let (plain, ink) = (format!(" {word} "), err(of_state(shown.state), word));
            let text = text.replacen(&plain, &format!(" {ink} "), 1);
            let _ = writeln!(out, "{indent}{text}");
            lines += 1;
            for line in shown.prints.values().take(room_below) {
                let line = row(line, room.saturating_sub(4));
                let _ = writeln!(out, "{indent}  | {}", err(Ink::Faint, &line));
                room_below -= 1;
                lines += 1;
            }
        }
        if busy.len() > rows_max {
            let _ = writeln!(out, "  {} and {} more", cut(), busy.len() - rows_max);
            lines += 1;
        }
        let _ = writeln!(out, "{}", row(&self.summary(), width.saturating_sub(1)));
        self.drawn = lines + 1;
        show(&out);
    }

    fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for shown in self.rows.values() {
            *counts.entry(shown.state.word()).or_default() += 1;
        }
        let counts = counts.iter().map(|(word, count)| format!("{count} {word}"));
        let counts = counts.collect::<Vec<_>>().join(between());
        let cost = self.usd.map_or_else(|| "$?".to_owned(), |cost| format!("${cost:.2}"));
        let elapsed = clock(self.clock.now().since(self.began) / 1_000);
        let told = [&counts, &elapsed, &cost].map(String::as_str).join(between());
        format!("{} {told}", spinner(self.frame))
    }

    fn follow(&mut self, told: &Line) {
        let now = self.clock.now();
        let depth = told.agent.depth;
        let shown = self.rows.entry(told.agent.path.clone()).or_insert(Shown {
            depth,
            state: State::Done,
            doing: String::new(),
            since: now,
            ran_s: None,
            prints: BTreeMap::new(),
        });
        match &told.body {
            Body::AgentState { state, attention, .. } => {
                shown.state = *state;
                if *state != State::Tool {
                    shown.prints.clear();
                }
                shown.since = now;
                let said = cut_end(&attention.sentence);
                let (doing, ran_s) = timed(&said);
                (shown.doing, shown.ran_s) = (doing.to_owned(), ran_s);
            }
            Body::ToolStarted { name, input, .. } => {
                (shown.doing, shown.ran_s) = (format!("{name} {input}"), None);
            }
            Body::ToolOutput { call, tail, .. } => {
                // A piece that comes too late is of a tool that does not run any more.
                if !is_over(shown.state)
                    && let Some(line) = newest(tail)
                {
                    shown.prints.insert(call.clone(), line);
                }
            }
            Body::ToolFinished(end) => drop(shown.prints.remove(&end.call)),
            Body::Retry { attempt, max, wait_ms, cause, .. } => {
                let seconds = wait_ms.div_ceil(1_000);
                let doing = format!("try {attempt} of {max} in {seconds} s: {cause}");
                (shown.doing, shown.ran_s) = (doing, None);
            }
            Body::TurnFinished { cost_usd, usage: Some(_), .. } => {
                self.usd = self.usd.zip(*cost_usd).map(|(sum, cost)| sum + cost);
            }
            // What is for the agent above is for nobody at the keyboard.
            Body::AskOpened(ask) if ask.to == AskTo::Person => {
                self.asking.push(Asking::new(&told.agent, ask));
            }
            Body::AskClosed { id, .. } => self.asking.retain(|open| open.id != *id),
            Body::RunStarted(run) => {
                let open = run.asks.iter().filter(|open| open.ask.to == AskTo::Person);
                self.asking = open.map(|open| Asking::new(&open.agent, &open.ask)).collect();
            }
            Body::AskOpened(_)
            | Body::InputQueued(_)
            | Body::InputStarted(_)
            | Body::InputDropped(_)
            | Body::AgentSpawned { .. }
            | Body::FloorChanged { .. }
            | Body::TurnStarted { .. }
            | Body::TurnFinished { .. }
            | Body::MessageDelta { .. }
            | Body::ThinkingDelta { .. }
            | Body::Gap { .. }
            | Body::Message { .. }
            | Body::AgentFinished(_)
            | Body::Attention { .. }
            | Body::Compacted { .. }
            | Body::Error { .. }
            | Body::RunResult(_) => {}
        }
    }

    /// What scrolls by.
    fn tell(&mut self, told: &Line) {
        let path = &told.agent.path;
        let Some(spoken) = spoken(&told.body) else { return };
        let text = match spoken {
            Spoken::Message(text) => {
                if told.agent.depth == 0 {
                    text.clone_into(&mut self.last_words);
                }
                format!("{path}: {}", quoted(text))
            }
            Spoken::Asked(ask) if ask.to == AskTo::Person => self.newest_ask(),
            Spoken::Asked(ask) => format!("{path} asks its parent: {}", ask.summary),
            Spoken::StillAsked(_) => {
                let open = self.asking.iter().map(|ask| ask.shown.clone());
                open.collect::<Vec<_>>().join("\n")
            }
            Spoken::Answered { id, decision, by } => {
                format!("{id} {decision} by {by}{}", self.still_asking())
            }
            Spoken::Failed(end) => format!("{path} {}: {}", end.outcome.word(), end.reason),
            Spoken::Retry { .. } => format!("{path}: ({})", self.doing(path)),
            Spoken::Error(message) => format!("{path}: {message}"),
            Spoken::Result(result) => {
                let erased = self.erased();
                show(&erased);
                // It is over, also for those who have not ended: nothing is drawn after this.
                self.rows.clear();
                // On a terminal the words were just said; elsewhere they are the output.
                if result.text != self.last_words || !io::IsTerminal::is_terminal(&io::stdout()) {
                    line(&clean(&quoted(&result.text)));
                }
                return;
            }
        };
        self.say(&clean(&text));
    }

    /// The ask that was just opened. If it is not the only one, a bare answer would not say whose
    /// it is.
    fn newest_ask(&self) -> String {
        match &self.asking[..] {
            [] => String::new(),
            [only] => only.shown.clone(),
            [.., newest] => format!("{}\n    {}", newest.shown, several(self.asking.len(), newest)),
        }
    }

    /// What an answer leaves open; it may have scrolled away.
    fn still_asking(&self) -> String {
        match &self.asking[..] {
            [] => String::new(),
            [only] => format!("; still open:\n{}", only.shown),
            [oldest, ..] => {
                let count = self.asking.len();
                format!("; still open:\n{}\n    {}", oldest.shown, several(count, oldest))
            }
        }
    }

    /// What others have to say, and what was typed. The terminal has shown that itself, below the
    /// region, and gone to the next line: it is taken away with the region and said above it.
    fn listen(&mut self) {
        for word in self.beside.take() {
            match word {
                Word::Said(text) => self.say(&text),
                // What stands among what was said may stay there.
                Word::Typed(_) if self.drawn == 0 => {}
                Word::Typed(text) => {
                    self.drawn += 1;
                    if !text.trim().is_empty() {
                        self.say(&format!("> {}", clean(text.trim())));
                    }
                }
            }
        }
    }

    fn doing(&self, path: &str) -> String {
        self.rows.get(path).map(|shown| shown.doing.clone()).unwrap_or_default()
    }
}

impl Face for Tree {
    fn line(&mut self, told: &Line) {
        self.listen();
        self.follow(told);
        self.tell(told);
    }

    fn pause(&mut self) {
        self.listen();
        if !self.rows.values().all(|shown| is_over(shown.state)) {
            self.draw();
        }
    }

    fn tick(&mut self) {
        self.frame += 1;
        self.pause();
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }
}

impl Asking {
    fn new(agent: &AgentRef, ask: &AskOpened) -> Asking {
        let path = &agent.path;
        let hint = hint(ask.kind, &ask.options, agent.depth);
        let because =
            ask.because.as_deref().map(|why| format!("\n    because: {}", ours(&clean(why))));
        let because = because.unwrap_or_default();
        let summary = cut_end(&ask.summary);
        let shown = format!("{} {path}: {summary}{because}\n    {hint}", ask.id);
        Asking { id: ask.id.clone(), shown }
    }
}

fn several(count: usize, one: &Asking) -> String {
    format!("{count} are open: begin with which one you mean, as in {} y", one.id)
}

fn is_over(state: State) -> bool {
    match state {
        State::Done | State::Failed | State::Cancelled => true,
        State::Queued
        | State::Starting
        | State::Model
        | State::Tool
        | State::Child
        | State::Approve
        | State::Input
        | State::Paused => false,
    }
}

/// A sentence that ends with how long it has been so, such as `exec runs, 3s`, apart from that.
fn timed(sentence: &str) -> (&str, Option<u64>) {
    let seconds = |text: &str| text.strip_suffix('s')?.parse().ok();
    let parts = sentence.rsplit_once(", ").and_then(|(doing, ran)| Some((doing, seconds(ran)?)));
    parts.map_or((sentence, None), |(doing, ran)| (doing, Some(ran)))
}

fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// A terminal that is gone is nobody to draw for.
fn show(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_gone_on_goes_on() {
        let cases = [
            ("exec runs, 0s", ("exec runs", Some(0))),
            ("waits for the model, 12s", ("waits for the model", Some(12))),
            // Time that is left is another thing, and so are words.
            ("waits for one of 2 agents, 30s left", ("waits for one of 2 agents, 30s left", None)),
            ("starts after a, as", ("starts after a, as", None)),
            ("between calls", ("between calls", None)),
        ];
        for (sentence, expected) in cases {
            assert_eq!(timed(sentence), expected, "{sentence}");
        }
    }
}
