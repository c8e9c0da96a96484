//! What a search finds in a file, and the page that is made of it.

use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::error::shown;
use crate::walk::Stop;

/// A line above this is cut around what matches.
const LINE_CHARS_MAX: usize = 300;
/// What may precede the match on a line that is cut.
const LEAD_CHARS: usize = 60;
const PAGE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    what: What,
    line: u64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Match,
    /// Shown because of the match that follows, or the one before.
    Before,
    After,
    /// Lines between are left out.
    Gap,
}

impl Found {
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of::<Found>()
    }
}

#[derive(Debug)]
pub(crate) struct Collector<'a> {
    matcher: &'a RegexMatcher,
    most: usize,
    stop: &'a Stop,
    matches: usize,
    pub(crate) found: Vec<Found>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(matcher: &'a RegexMatcher, most: usize, stop: &'a Stop) -> Collector<'a> {
        Collector { matcher, most, stop, matches: 0, found: Vec::new() }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        let start = self.matcher.find(line.bytes()).ok().flatten().map_or(0, |at| at.start());
        let text = cut(line.bytes(), start);
        self.found.push(Found { what: What::Match, line: line.line_number().unwrap_or(0), text });
        self.matches += 1;
        Ok(self.matches < self.most && !self.stop.is_set())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let what = match line.kind() {
            SinkContextKind::Before => What::Before,
            SinkContextKind::After | SinkContextKind::Other => What::After,
        };
        let (line, text) = (line.line_number().unwrap_or(0), cut(line.bytes(), 0));
        self.found.push(Found { what, line, text });
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.push(Found { what: What::Gap, line: 0, text: String::new() });
        Ok(true)
    }

    /// Lines of something that is not text say nothing.
    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.found.clear();
        Ok(false)
    }
}

fn cut(line: &[u8], start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_CHARS_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    // A window around the match first, so that a line of a megabyte is not decoded for it.
    let from = start.min(line.len()).saturating_sub(LEAD_CHARS * 4);
    let to = (from + (LINE_CHARS_MAX + LEAD_CHARS) * 4).min(line.len());
    let lead = String::from_utf8_lossy(&line[from..start.clamp(from, to)]).chars().count();
    let window = String::from_utf8_lossy(&line[from..to]);
    let skipped = lead.saturating_sub(LEAD_CHARS);
    let kept: String = window.chars().skip(skipped).take(LINE_CHARS_MAX).collect();
    let before = if from > 0 || skipped > 0 { "…" } else { "" };
    let is_rest = to < line.len() || window.chars().count() > skipped + LINE_CHARS_MAX;
    format!("{before}{kept}{}", if is_rest { "…" } else { "" })
}

/// The matches from `offset` on, as many as fit.
#[derive(Debug)]
pub(crate) struct Page {
    offset: usize,
    limit: usize,
    /// All matches so far, those before the page too.
    seen: usize,
    shown: usize,
    text: String,
    has_more: bool,
}

impl Page {
    pub(crate) fn new(offset: usize, limit: usize) -> Page {
        Page { offset, limit, seen: 0, shown: 0, text: String::new(), has_more: false }
    }

    /// And it is known that more follow.
    pub(crate) fn is_full(&self) -> bool {
        self.has_more
    }

    pub(crate) fn add(&mut self, path: &str, found: Vec<Found>) {
        for Found { what, line, text } in found {
            let number = match what {
                What::Match | What::Before => self.seen,
                What::After | What::Gap => self.seen.saturating_sub(1),
            };
            let is_on_page = number >= self.offset;
            let has_room = number < self.offset + self.limit && self.text.len() < PAGE_BYTES_MAX;
            if what == What::Match && is_on_page && !has_room {
                self.has_more = true;
            }
            if self.has_more {
                return;
            }
            self.seen += usize::from(what == What::Match);
            if is_on_page && has_room {
                self.shown += usize::from(what == What::Match);
                let row = match what {
                    What::Match => format!("{path}:{line}:{text}\n"),
                    What::Before | What::After => format!("{path}-{line}-{text}\n"),
                    What::Gap => "--\n".to_owned(),
                };
                self.text.push_str(&row);
            }
        }
    }

    pub(crate) fn finish(
        self,
        pattern: &str,
        cut: Option<&'static str>,
        trouble: &[String],
    ) -> String {
        let mut text = self.text;
        text.truncate(text.strip_suffix("\n--\n").map_or(text.len(), |kept| kept.len() + 1));
        let mut notes = Vec::new();
        if self.has_more {
            let next = self.offset + self.shown;
            notes.push(format!("[more match: the next are at \"offset\": {next}]"));
        } else if self.seen == 0 {
            notes.push(format!("nothing matches {}", shown(pattern)));
        } else if self.shown == 0 {
            notes.push(format!("[{} lines match; offset is past them]", self.seen));
        }
        for why in cut.iter().copied().chain(trouble.iter().map(String::as_str)) {
            notes.push(format!("[not everything was searched: {why}]"));
        }
        text.push_str(&notes.join("\n"));
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}
