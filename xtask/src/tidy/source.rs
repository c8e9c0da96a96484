//! Rust source as tokens, without comments and literals. Not a parser: enough to ask what is named,
//! how long a function is and which lines are only for tests.

use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) tokens: Vec<Token>,
    lines: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) length: usize,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        Self { tokens: tokens(&mask(text)), lines: text.lines().count() }
    }

    pub(crate) fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    pub(crate) fn starts_with(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.text(at + offset) == *word)
    }

    pub(crate) fn find(&self, words: &[&str]) -> impl Iterator<Item = usize> {
        (0..self.tokens.len()).filter(|at| self.starts_with(*at, words))
    }

    /// From the line of `fn` to that of the closing brace: what a reader has to scroll through.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let named = self.find(&["fn"]).filter(|at| self.text(at + 1) != "(");
        let function = |at: usize| {
            let line = self.tokens[at].line;
            let length = self.tokens[self.item_end(at)].line - line + 1;
            Function { name: self.text(at + 1).to_owned(), line, length }
        };
        named.map(function).collect()
    }

    /// The inside of every attribute, `#[…]` and `#![…]`, without the brackets.
    pub(crate) fn attributes(&self) -> Vec<Range<usize>> {
        let opened = |at: usize| match (self.text(at + 1), self.text(at + 2)) {
            ("[", _) => Some(at + 1),
            ("!", "[") => Some(at + 2),
            _ => None,
        };
        let inside = |open: usize| open + 1..self.closing(open, "[", "]");
        // A half-written file may end inside one.
        self.find(&["#"]).filter_map(opened).map(inside).filter(|range| !range.is_empty()).collect()
    }

    /// Lines outside `#[cfg(test)]`.
    pub(crate) fn production_lines(&self) -> usize {
        let mut test = vec![false; self.lines + 1];
        for inside in self.attributes() {
            let words = &self.tokens[inside.clone()];
            let has = |word: &str| words.iter().any(|token| token.text == word);
            if self.text(inside.start) == "cfg" && has("test") && !has("not") {
                let first = self.tokens[inside.start].line;
                let last = self.tokens[self.item_end(inside.end + 1)].line;
                test[first..=last].fill(true);
            }
        }
        test.iter().skip(1).filter(|test| !**test).count()
    }

    /// The last token of the item that starts here: its closing brace or its semicolon.
    fn item_end(&self, from: usize) -> usize {
        let mut depth = 0_usize;
        for at in from..self.tokens.len() {
            match self.text(at) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                "{" if depth == 0 => return self.closing(at, "{", "}"),
                ";" if depth == 0 => return at,
                _ => {}
            }
        }
        self.tokens.len() - 1
    }

    fn closing(&self, open: usize, left: &str, right: &str) -> usize {
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            let text = self.text(at);
            depth += usize::from(text == left);
            depth -= usize::from(text == right);
            if depth == 0 {
                return at;
            }
        }
        self.tokens.len() - 1
    }
}

/// Words and numbers whole, everything else sign by sign.
fn tokens(masked: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for (number, line) in masked.lines().enumerate() {
        let mut in_word = false;
        for sign in line.chars() {
            let word = sign.is_alphanumeric() || sign == '_';
            match tokens.last_mut() {
                Some(last) if word && in_word => last.text.push(sign),
                _ if sign.is_whitespace() => {}
                _ => tokens.push(Token { text: sign.to_string(), line: number + 1 }),
            }
            in_word = word;
        }
    }
    tokens
}

/// The same text with comments, strings and characters blanked out. Lines stay where they are.
fn mask(text: &str) -> String {
    let mut masker = Masker { signs: text.chars().collect(), at: 0, masked: String::new() };
    while masker.at < masker.signs.len() {
        masker.next();
    }
    masker.masked
}

struct Masker {
    signs: Vec<char>,
    at: usize,
    masked: String,
}

impl Masker {
    fn next(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.blank_while(|masker| masker.peek(0) != '\n'),
            ('/', '*') => self.block_comment(),
            ('"', _) => self.quoted('"'),
            ('r', '"' | '#') => self.raw_string(),
            ('\'', '\\') => self.quoted('\''),
            ('\'', _) if self.peek(2) == '\'' => self.blank(3),
            (sign, _) => {
                self.masked.push(sign);
                self.at += 1;
            }
        }
    }

    fn peek(&self, ahead: usize) -> char {
        self.signs.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            self.masked.push(if self.peek(0) == '\n' { '\n' } else { ' ' });
            self.at += 1;
        }
    }

    fn blank_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        while self.at < self.signs.len() && go_on(self) {
            self.blank(1);
        }
    }

    /// Block comments nest in Rust.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ if self.at >= self.signs.len() => return,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self, quote: char) {
        self.blank(1);
        while self.at < self.signs.len() && self.peek(0) != quote {
            self.blank(if self.peek(0) == '\\' { 2 } else { 1 });
        }
        self.blank(1);
    }

    /// `r"…"`, `r#"…"#` and their `b` and `c` kin; `r#name` is a word and stays.
    fn raw_string(&mut self) {
        let after = self.signs[self.at + 1..].iter();
        let hashes = after.take_while(|sign| **sign == '#').count();
        if self.peek(1 + hashes) != '"' {
            self.masked.push('r');
            self.at += 1;
            return;
        }
        self.blank(2 + hashes);
        let closed = |masker: &Self| {
            masker.peek(0) == '"' && (1..=hashes).all(|ahead| masker.peek(ahead) == '#')
        };
        self.blank_while(|masker| !closed(masker));
        self.blank(1 + hashes);
    }
}
