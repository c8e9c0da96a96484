//! One word of a command, after the shell has taken its quotes away.

use crate::UNKNOWN;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// What the program gets; [`UNKNOWN`] stands for what only the shell knows.
    pub(crate) text: String,
    /// Some of it was quoted or escaped: it is no keyword and no assignment.
    pub(crate) quoted: bool,
    /// It can become something else, or several words.
    pub(crate) unknown: bool,
}

impl Word {
    pub(crate) fn literal(text: &str) -> Word {
        Word { text: text.to_owned(), quoted: false, unknown: false }
    }

    pub(crate) fn anything() -> Word {
        Word { text: UNKNOWN.to_string(), quoted: false, unknown: true }
    }

    pub(crate) fn push_unknown(&mut self) {
        self.unknown = true;
        // Two unknowns in a row say no more than one.
        if !self.text.ends_with(UNKNOWN) {
            self.text.push(UNKNOWN);
        }
    }

    /// It could turn out to be a flag.
    pub(crate) fn may_be_flag(&self) -> bool {
        self.unknown && self.text.starts_with([UNKNOWN, '-'])
    }

    /// `NAME=value` before a command.
    pub(crate) fn assigns(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let mut letters = name.chars();
        let first = letters.next()?;
        let named = (first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        named.then_some(name)
    }

    /// As it stands in a part: bare if it can be, else in single quotes.
    pub(crate) fn shown(&self) -> String {
        let bare = |letter: char| letter.is_alphanumeric() || BARE.contains(letter);
        let home = self.text.starts_with('~') && !self.quoted;
        let rest = if home { &self.text[1..] } else { &self.text };
        let test = ["[", "]"].contains(&self.text.as_str());
        if test || !self.text.is_empty() && rest.chars().all(bare) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', r"'\''"))
    }
}

/// Marks that mean nothing to any shell inside a word. The unknown is one of them.
const BARE: &str = "-_./,:+@%=^…";

pub(crate) fn shown(words: &[Word]) -> String {
    words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
}
