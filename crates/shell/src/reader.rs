//! Characters to words: quoting, expansion, substitution. One cursor goes over the text once.

use crate::word::Word;
use crate::{DEPTH_MAX, Found, UNKNOWN, Why};

pub(crate) struct Reader<'a> {
    pub(crate) text: Vec<char>,
    pub(crate) at: usize,
    pub(crate) depth: u32,
    pub(crate) found: &'a mut Found,
    /// Here-documents whose text begins after the next line end.
    pub(crate) pending: Vec<Here>,
}

/// A here-document that has been announced.
pub(crate) struct Here {
    pub(crate) end: String,
    /// A quoted end means that nothing in the text is expanded.
    pub(crate) literal: bool,
    /// `<<-` takes tabs off.
    pub(crate) indented: bool,
}

/// Where a bare word ends.
pub(crate) const DELIMITERS: &[char] = &[' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &str, depth: u32, found: &'a mut Found) -> Reader<'a> {
        Reader { text: text.chars().collect(), at: 0, depth, found, pending: Vec::new() }
    }

    pub(crate) fn line(&mut self) -> Result<(), Why> {
        self.list(&[""])?;
        if self.pending.is_empty() { Ok(()) } else { Err(Why::Syntax(NO_END)) }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    pub(crate) fn take(&mut self, expected: &str) -> bool {
        let found = expected.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c));
        if found {
            self.at += expected.chars().count();
        }
        found
    }

    pub(crate) fn deeper<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Why>,
    ) -> Result<T, Why> {
        if self.depth >= DEPTH_MAX {
            return Err(Why::TooDeep);
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Blanks, and lines continued between words.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            match (self.peek(), self.peek_at(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) if self.after_blank() => self.at += 2,
                _ => return,
            }
        }
    }

    fn after_blank(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_none_or(|c| DELIMITERS.contains(c))
    }

    pub(crate) fn word(&mut self) -> Result<Word, Why> {
        let mut word = Word::default();
        let begin = self.at;
        while let Some(c) = self.peek() {
            if DELIMITERS.contains(&c) {
                break;
            }
            self.at += 1;
            match c {
                '\'' => self.single(&mut word)?,
                '"' => {
                    word.quoted = true;
                    self.double(&mut word)?;
                }
                '\\' => match self.next() {
                    None => return Err(Why::Syntax("it ends in a backslash")),
                    Some('\n') => return Err(Why::Syntax("a word is broken over two lines")),
                    Some(c) => {
                        word.quoted = true;
                        word.text.push(c);
                    }
                },
                '$' => self.dollar(&mut word, Quotes::No)?,
                '`' => self.backticks(&mut word)?,
                '*' | '?' | UNKNOWN => word.push_unknown(),
                '[' if self.is_bracket_command(begin) => word.text.push(c),
                '{' if self.peek() == Some('}') => {
                    self.at += 1;
                    word.text.push_str("{}");
                }
                '[' | '{' => self.unknown_to_the_end(&mut word)?,
                '!' => self.bang(&mut word)?,
                c => word.text.push(c),
            }
        }
        Ok(word)
    }

    /// `[` alone, or as `[[`: a command, no pattern of file names.
    fn is_bracket_command(&self, begin: usize) -> bool {
        let rest = &self.text[begin..];
        let ends = |at: usize| rest.get(at).is_none_or(|c| DELIMITERS.contains(c));
        ends(1) || (rest.get(1) == Some(&'[') && ends(2))
    }

    /// What a bracket or a brace makes of the rest of a word is not worked out.
    fn unknown_to_the_end(&mut self, word: &mut Word) -> Result<(), Why> {
        let mut rest = Word::default();
        // The rest is still read, because commands can be in it.
        while self.peek().is_some_and(|c| !DELIMITERS.contains(&c)) {
            match self.next() {
                Some('\'') => self.single(&mut rest)?,
                Some('"') => self.double(&mut rest)?,
                Some('\\') => drop(self.next()),
                Some('$') => self.dollar(&mut rest, Quotes::No)?,
                Some('`') => self.backticks(&mut rest)?,
                Some(_) | None => {}
            }
        }
        word.push_unknown();
        Ok(())
    }

    /// An interactive shell would put an older line here.
    fn bang(&mut self, word: &mut Word) -> Result<(), Why> {
        let recalls = |c: char| c.is_ascii_alphanumeric() || "!$?-".contains(c);
        if self.peek().is_some_and(recalls) {
            return Err(Why::Syntax("! can recall another line"));
        }
        word.text.push('!');
        Ok(())
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Why> {
        word.quoted = true;
        loop {
            match self.next() {
                None => return Err(Why::Syntax("a quote is not closed")),
                Some('\'') => return Ok(()),
                Some('\n') if !self.pending.is_empty() => return Err(Why::Syntax(HERE)),
                Some(c) => word.text.push(c),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Why> {
        loop {
            match self.next() {
                None => return Err(Why::Syntax("a quote is not closed")),
                Some('"') => return Ok(()),
                Some('\n') if !self.pending.is_empty() => return Err(Why::Syntax(HERE)),
                Some(c) => self.expanding(c, word)?,
            }
        }
    }

    /// One character of a text in which only `$`, `` ` `` and `\` mean something.
    fn expanding(&mut self, c: char, word: &mut Word) -> Result<(), Why> {
        match c {
            '$' => self.dollar(word, Quotes::Double)?,
            '`' => self.backticks(word)?,
            '\\' => match self.peek() {
                Some(c @ ('$' | '`' | '"' | '\\')) => {
                    self.at += 1;
                    word.text.push(c);
                }
                Some('\n') => return Err(Why::Syntax("a word is broken over two lines")),
                Some(_) | None => word.text.push('\\'),
            },
            '!' => self.bang(word)?,
            UNKNOWN => word.push_unknown(),
            c => word.text.push(c),
        }
        Ok(())
    }

    /// The text of a here-document whose end was not quoted.
    pub(crate) fn here_text(&mut self) -> Result<(), Why> {
        let mut word = Word::default();
        while let Some(c) = self.next() {
            // No older line is recalled in here.
            if c != '!' {
                self.expanding(c, &mut word)?;
            }
        }
        Ok(())
    }

    fn dollar(&mut self, word: &mut Word, quotes: Quotes) -> Result<(), Why> {
        match self.peek() {
            Some('(') if self.peek_at(1) == Some('(') => self.arithmetic()?,
            Some('(') => {
                self.at += 1;
                self.substitution()?;
            }
            Some('{') => {
                self.at += 1;
                self.parameter()?;
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => self.at += 1,
            Some('\'' | '"') if quotes == Quotes::No => {
                return Err(Why::Syntax("$'…' and $\"…\" differ between shells"));
            }
            Some('[') => return Err(Why::Syntax("$[…] differs between shells")),
            Some(_) | None => {
                word.text.push('$');
                return Ok(());
            }
        }
        word.push_unknown();
        Ok(())
    }

    /// The inside of `$(…)`, `<(…)` and `>(…)`: its commands are parts.
    pub(crate) fn substitution(&mut self) -> Result<(), Why> {
        // Whether the text of a here-document goes on inside differs between shells.
        if !self.pending.is_empty() {
            return Err(Why::Syntax(HERE));
        }
        self.deeper(|inside| inside.list(&[")"]))?;
        if self.pending.is_empty() { Ok(()) } else { Err(Why::Syntax(HERE)) }
    }

    /// Numbers only: a name in arithmetic can hold a command.
    fn arithmetic(&mut self) -> Result<(), Why> {
        self.at += 2;
        let mut open = 2u32;
        while open > 0 {
            match self.next() {
                Some('(') => open += 1,
                Some(')') => open -= 1,
                Some(c) if c.is_ascii_digit() || " +-*/%<>=&|^~!,?:".contains(c) => {}
                Some(_) => return Err(Why::Syntax("arithmetic with names can run commands")),
                None => return Err(Why::Syntax("arithmetic is not closed")),
            }
        }
        let closed = self.at >= 2 && self.text[self.at - 2] == ')';
        if closed { Ok(()) } else { Err(Why::Syntax("arithmetic is not closed")) }
    }

    /// `${name}`, `${#name}` and `${name:-plain}`. Other forms assign, recall or run.
    fn parameter(&mut self) -> Result<(), Why> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c != '}') {
            self.at += 1;
        }
        let inside: String = self.text[begin..self.at].iter().collect();
        if self.next().is_none() {
            return Err(Why::Syntax("${ is not closed"));
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let (name, other) = inside.split_once(":-").unwrap_or((&inside, ""));
        let plain = other.chars().all(|c| c.is_ascii_alphanumeric() || "_./-:".contains(c));
        let special = ["@", "*", "#", "?", "$", "!", "-"].contains(&name);
        let counted = name.strip_prefix('#').is_some_and(is_name);
        if plain && (is_name(name) || special || counted) {
            return Ok(());
        }
        Err(Why::Syntax("${…} with more than a name can run or set something"))
    }

    fn backticks(&mut self, word: &mut Word) -> Result<(), Why> {
        let begin = self.at;
        loop {
            match self.next() {
                None => return Err(Why::Syntax("a backtick is not closed")),
                Some('`') => break,
                Some('\\') => return Err(Why::Syntax("backslashes between backticks")),
                Some('\n') if !self.pending.is_empty() => return Err(Why::Syntax(HERE)),
                Some(_) => {}
            }
        }
        let inside: String = self.text[begin..self.at - 1].iter().collect();
        let depth = self.depth;
        self.deeper(|reader| {
            reader.found.read(&inside, depth + 1);
            Ok(())
        })?;
        word.push_unknown();
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    No,
    Double,
}

pub(crate) const HERE: &str = "a here-document crosses a quote or a substitution";
pub(crate) const NO_END: &str = "a here-document has no end";
