//! Commands in words that are not understood. Whatever could be one is seen, so that a deny still
//! holds where nobody can tell what really runs.

use crate::word::{Word, shown};
use crate::{Found, LINE_BYTES_MAX, PARTS_MAX, UNKNOWN, guard, peel};

/// Tails of a command that are looked at.
const TAILS_MAX: usize = 24;
/// Guesses at one line. They nest, and every one of them looks at the rest of the line.
const GUESSES_MAX: u32 = 256;
/// Places within a word at which a command could begin.
const PLACES_MAX: usize = 8;

impl Found {
    /// A program that starts others in a way that is not understood.
    pub(crate) fn tangled(&mut self, words: &[Word], name: &str, depth: u32) {
        self.part(shown(words));
        self.hides(format!("{name} starts other programs"));
        self.suspect(&words[1..], depth);
    }

    /// Flags with which a harmless program runs another.
    pub(crate) fn guarded(&mut self, name: &str, words: &[Word], depth: u32) {
        let Some(doubt) = guard::doubt(name, words) else { return };
        self.hides(doubt.why);
        for at in doubt.at.into_iter().take(TAILS_MAX) {
            let Some(word) = words.get(at) else { continue };
            self.within_word(word, depth);
            // Its value may be a program with all that follows, or a line of its own.
            self.suspect(&words[at + 1..words.len().min(at + 2)], depth);
            self.tail(&words[at + 1..], depth);
        }
    }

    /// Every word may be where a command begins, and may be a line itself.
    fn suspect(&mut self, words: &[Word], depth: u32) {
        for at in 0..words.len().min(TAILS_MAX) {
            self.tail(&words[at..], depth);
            self.within_word(&words[at], depth);
        }
    }

    fn tail(&mut self, words: &[Word], depth: u32) {
        let Some(first) = words.first().filter(|_| !self.is_full()) else { return };
        if !self.may_guess() || !peel::is_program(first) {
            return self.part(shown(words));
        }
        self.command(words, depth + 1);
    }

    fn within_word(&mut self, word: &Word, depth: u32) {
        for line in lines(&word.text) {
            if self.may_guess() && !self.is_full() {
                self.read(line, depth + 1);
                // A mere name is given words by whoever starts it.
                if !line.contains(char::is_whitespace) {
                    self.part(format!("{line} {UNKNOWN}"));
                }
            }
        }
    }

    /// What is found would not be kept, so looking further is in vain: the line is opaque anyway.
    fn is_full(&self) -> bool {
        self.parts.len() >= PARTS_MAX || self.bytes >= LINE_BYTES_MAX
    }

    fn may_guess(&mut self) -> bool {
        self.guesses += 1;
        self.guesses <= GUESSES_MAX
    }
}

/// In front of a command, in the languages that programs have for telling them one.
const MARKS: &[&str] = &[
    "=", "!", ":", "(", "{", ";", "|", "+", ".shell ", ".system ", "system ", "shell ", "spawn ",
    "e ",
];

/// What could be a line in a word: `alias.x=!rm y`, `-xrm y`, `.shell rm y`, `system("rm y")`.
fn lines(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    if text.trim().contains([' ', '\t', '\n']) && !text.starts_with(['-', '+', '!', ':']) {
        found.push(text);
    }
    for mark in MARKS {
        let places = text.match_indices(*mark).take(PLACES_MAX);
        found.extend(places.map(|(at, mark)| &text[at + mark.len()..]));
    }
    for quote in ['"', '\''] {
        let quoted = text.split(quote).skip(1).step_by(2);
        found.extend(quoted.take(PLACES_MAX));
    }
    let is_cluster = text.starts_with('-') && !text.starts_with("--");
    if is_cluster {
        let behind = text.char_indices().skip(2).take(PLACES_MAX);
        found.extend(behind.map(|(at, _)| &text[at..]));
    }
    found.retain(|line| !line.trim().is_empty());
    found.dedup();
    found
}
