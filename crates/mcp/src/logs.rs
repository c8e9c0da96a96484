//! The last lines of what a server wrote to its log and what we noticed about it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Source {
    /// The server's error output.
    Stderr,
    /// A logging message of the protocol.
    Message,
    /// What we say about it.
    Client,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    pub source: Source,
    pub text: String,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Stderr => "stderr",
            Source::Message => "log",
            Source::Client => "locum",
        };
        write!(f, "{source}: {}", self.text)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Logs(Mutex<VecDeque<LogLine>>);

impl Logs {
    pub(crate) fn push(&self, source: Source, text: &str) {
        let text = clip(text.trim_end(), limits::LOG_LINE_BYTES);
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= limits::LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(LogLine { source, text });
    }

    pub(crate) fn note(&self, text: &str) {
        self.push(Source::Client, text);
    }

    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// What a program said last, usually why it died. What we noted stands between one that was
    /// started and the one before it.
    pub(crate) fn last_words(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = |line: &&LogLine| line.source == Source::Client;
        let said = lines.iter().rev().skip_while(ours).take_while(|line| !ours(line));
        let said = said.filter(|line| line.source == Source::Stderr).take(3);
        let said: Vec<&str> = said.map(|line| line.text.as_str()).collect();
        let said: Vec<String> = said.into_iter().rev().map(|line| clip(line, 200)).collect();
        (!said.is_empty()).then(|| said.join(" / "))
    }
}

/// At most so many bytes, on a character's border, and visibly so.
pub(crate) fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{Logs, Source, clip};
    use crate::limits;

    #[test]
    fn bounded() {
        let logs = Logs::default();
        for number in 0..limits::LOG_LINES * 3 {
            logs.push(Source::Stderr, &format!("{number} {}", "x".repeat(10_000)));
        }
        logs.push(Source::Stderr, "\n");
        let lines = logs.lines();
        assert_eq!(lines.len(), limits::LOG_LINES);
        assert!(lines.iter().all(|line| line.text.len() <= limits::LOG_LINE_BYTES + 3));
        assert!(lines.last().is_some_and(|line| line.text.starts_with("599 ")));
    }

    #[test]
    fn last_words_are_of_the_last_start() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&[], None),
            (&["-no connection"], None),
            (&["a", "b", "c", "d"], Some("b / c / d")),
            (&["boom", "-tries the older way", "boom", "-no connection"], Some("boom")),
        ];
        for (lines, expected) in cases {
            let logs = Logs::default();
            for line in *lines {
                match line.strip_prefix('-') {
                    Some(note) => logs.note(note),
                    None => logs.push(Source::Stderr, line),
                }
            }
            assert_eq!(logs.last_words().as_deref(), *expected, "{lines:?}");
        }
    }

    #[test]
    fn clipped_between_characters() {
        let cases = [("abc", 3, "abc"), ("abcd", 3, "abc…"), ("aéé", 2, "a…"), ("", 0, "")];
        for (text, bytes, expected) in cases {
            assert_eq!(clip(text, bytes), expected);
        }
    }
}
