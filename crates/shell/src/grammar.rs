//! Words to commands: lists, pipelines, loops, conditions. Every simple command goes to `peel`.

use crate::Why;
use crate::reader::{DELIMITERS, Reader};
use crate::redirect::Redirected;
use crate::word::{Word, shown};

type Parsed<T> = Result<T, Why>;

impl Reader<'_> {
    /// Commands up to one of the closing words or marks, which is taken. The empty word is the
    /// end of the text.
    pub(crate) fn list(&mut self, closers: &[&'static str]) -> Parsed<&'static str> {
        loop {
            self.skip_to_command()?;
            if let Some(closer) = self.closer(closers)? {
                return Ok(closer);
            }
            self.command()?;
            self.skip_blanks();
            self.separator()?;
        }
    }

    /// Blanks, line ends, comments.
    fn skip_to_command(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n') => self.line_end()?,
                Some('#') => self.comment(),
                Some(_) | None => return Ok(()),
            }
        }
    }

    fn comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn closer(&mut self, closers: &[&'static str]) -> Parsed<Option<&'static str>> {
        let wanted = |mark: &str| closers.iter().find(|closer| **closer == mark).copied();
        let Some(c) = self.peek() else {
            return wanted("").map(Some).ok_or(Why::Syntax("something is not closed"));
        };
        if c == ')' {
            self.at += 1;
            return wanted(")").map(Some).ok_or(Why::Syntax("a ) that closes nothing"));
        }
        if c == ';' {
            let ends = self.take(";;&") || self.take(";;") || self.take(";&");
            let closer = if ends { wanted(";;") } else { None };
            return closer.map(Some).ok_or(Why::Syntax("a ; after nothing"));
        }
        let word = self.keyword();
        if let Some(closer) = wanted(&word).filter(|closer| !closer.is_empty()) {
            self.at += word.chars().count();
            return Ok(Some(closer));
        }
        if CLOSING.contains(&word.as_str()) {
            return Err(Why::Syntax("a word of a loop or condition that closes nothing"));
        }
        Ok(None)
    }

    /// The bare letters and braces ahead, if a blank or mark ends them.
    fn keyword(&self) -> String {
        let rest = self.text[self.at..].iter();
        rest.take_while(|c| !DELIMITERS.contains(c)).take(10).collect()
    }

    fn takes_keyword(&mut self, word: &str) -> bool {
        let here = self.keyword() == word;
        if here {
            self.at += word.chars().count();
        }
        here
    }

    /// What stands between two commands. Closing marks are left for the list.
    fn separator(&mut self) -> Parsed<()> {
        let closes = self.take_ahead(";;") || self.take_ahead(";&");
        match self.peek() {
            None | Some(')' | '\n' | '#') => Ok(()),
            Some(';') if closes => Ok(()),
            Some(_) => {
                for mark in ["&&", "||", "|&", "|"] {
                    if self.take(mark) {
                        return self.goes_on();
                    }
                }
                for mark in [";", "&"] {
                    if self.take(mark) {
                        return Ok(());
                    }
                }
                // `done` after `}` and the like: the list looks for it.
                let word = self.keyword();
                let closes = CLOSING.contains(&word.as_str());
                if closes { Ok(()) } else { Err(Why::Syntax("something after a command")) }
            }
        }
    }

    /// After some marks a command must follow: a shell would wait for it, or refuse the line.
    fn goes_on(&self) -> Parsed<()> {
        let next = self.text[self.at..].iter().find(|c| !c.is_whitespace());
        match next {
            None | Some('|' | '&' | ';' | ')') => Err(Why::Syntax("it is not complete")),
            Some(_) => Ok(()),
        }
    }

    fn take_ahead(&self, mark: &str) -> bool {
        mark.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c))
    }

    fn command(&mut self) -> Parsed<()> {
        self.deeper(Reader::command_inside)
    }

    fn command_inside(&mut self) -> Parsed<()> {
        self.skip_blanks();
        if let Some('|' | '&') = self.peek() {
            return Err(Why::Syntax("a mark between commands after nothing"));
        }
        if self.peek() == Some('(') {
            self.at += 1;
            if self.peek() == Some('(') {
                return Err(Why::Syntax("arithmetic can run commands"));
            }
            self.list(&[")"])?;
            return self.redirects_after();
        }
        let word = self.keyword();
        let length = word.chars().count();
        match word.as_str() {
            "!" => {
                self.at += length;
                self.command()
            }
            "time" => {
                self.at += length;
                self.skip_blanks();
                self.takes_keyword("-p");
                self.skip_blanks();
                let ends = self.peek().is_none_or(|c| ";&|\n)".contains(c));
                if ends { Ok(()) } else { self.command() }
            }
            "{" => {
                self.at += length;
                self.list(&["}"])?;
                self.redirects_after()
            }
            "if" => {
                self.at += length;
                self.condition()
            }
            "while" | "until" => {
                self.at += length;
                self.list(&["do"])?;
                self.list(&["done"])?;
                self.redirects_after()
            }
            "for" => {
                self.at += length;
                self.for_loop()
            }
            "case" => {
                self.at += length;
                self.case()
            }
            "[[" => {
                self.at += length;
                self.test()
            }
            "function" => Err(Why::Syntax("it defines a function")),
            "select" => Err(Why::Syntax("select differs between shells")),
            "coproc" => Err(Why::Syntax("coproc differs between shells")),
            _ => self.simple(),
        }
    }

    fn condition(&mut self) -> Parsed<()> {
        self.list(&["then"])?;
        loop {
            match self.list(&["elif", "else", "fi"])? {
                "elif" => drop(self.list(&["then"])?),
                "else" => {
                    self.list(&["fi"])?;
                    break;
                }
                _ => break,
            }
        }
        self.redirects_after()
    }

    fn for_loop(&mut self) -> Parsed<()> {
        self.skip_blanks();
        let name = self.word()?;
        // A loop over PATH or IFS changes what later words mean.
        let harmless = !name.quoted
            && !name.unknown
            && name.text.starts_with(|c: char| c.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !harmless {
            self.found.hides(format!("it loops over {:?}", name.text));
        }
        self.skip_blanks();
        if self.takes_keyword("in") {
            loop {
                self.skip_blanks();
                match self.peek() {
                    Some(';' | '\n') => break,
                    Some(c) if DELIMITERS.contains(&c) => return Err(Why::Syntax(LOOP)),
                    Some(_) => drop(self.word()?),
                    None => return Err(Why::Syntax(LOOP)),
                }
            }
        }
        self.skip_blanks();
        self.take(";");
        self.skip_to_command()?;
        if !self.takes_keyword("do") {
            return Err(Why::Syntax(LOOP));
        }
        self.list(&["done"])?;
        self.redirects_after()
    }

    fn case(&mut self) -> Parsed<()> {
        self.skip_blanks();
        self.word()?;
        self.skip_to_command()?;
        if !self.takes_keyword("in") {
            return Err(Why::Syntax(CASE));
        }
        loop {
            self.skip_to_command()?;
            if self.takes_keyword("esac") {
                return self.redirects_after();
            }
            self.take("(");
            loop {
                self.skip_blanks();
                match self.peek() {
                    Some('|') => self.at += 1,
                    Some(')') => break,
                    Some(c) if DELIMITERS.contains(&c) => return Err(Why::Syntax(CASE)),
                    Some(_) => drop(self.word()?),
                    None => return Err(Why::Syntax(CASE)),
                }
            }
            self.at += 1;
            if self.list(&[";;", "esac"])? == "esac" {
                return self.redirects_after();
            }
        }
    }

    /// `[[ … ]]` is a part of its own. In numbers and subscripts it can run commands.
    fn test(&mut self) -> Parsed<()> {
        let mut words = vec![Word::literal("[[")];
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some('\n' | ';') => return Err(Why::Syntax("[[ is not closed")),
                Some(c) if DELIMITERS.contains(&c) => {
                    self.at += 1;
                    words.push(Word { text: c.to_string(), quoted: true, unknown: false });
                }
                Some(_) => words.push(self.word()?),
            }
            let Some(last) = words.last() else { continue };
            let counts = NUMERIC.contains(&last.text.as_str());
            if counts || last.text.contains('[') && words.len() > 1 {
                self.found.hides("numbers and subscripts in [[ … ]] can run commands");
            }
            if last.text == "]]" && !last.quoted {
                break;
            }
        }
        let inner: Vec<String> = words[1..words.len() - 1].iter().map(Word::shown).collect();
        self.found.part(format!("[[ {} ]]", inner.join(" ")));
        self.redirects_after()
    }

    fn redirects_after(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks();
            if self.redirect()? == Redirected::No {
                return Ok(());
            }
        }
    }

    fn simple(&mut self) -> Parsed<()> {
        let mut words: Vec<Word> = Vec::new();
        let mut sets: Vec<Word> = Vec::new();
        let mut splits = false;
        loop {
            self.skip_blanks();
            // Where `&>` is no redirect it ends the command: what follows would be another one.
            splits |= self.take_ahead("&>");
            if self.redirect()? == Redirected::Yes {
                continue;
            }
            match self.peek() {
                None | Some(';' | '&' | '|' | '\n' | ')') => break,
                Some('#') => self.comment(),
                Some(_) if splits => {
                    return Err(Why::Syntax("words after &> differ between shells"));
                }
                Some('(') if words.len() == 1 => {
                    return Err(Why::Syntax("it defines a function"));
                }
                Some('(') => return Err(Why::Syntax("a ( where none can be")),
                Some('<' | '>') => {
                    self.at += 2;
                    self.substitution()?;
                    words.push(Word::anything());
                }
                Some(_) => {
                    let begin = self.at;
                    let word = self.word()?;
                    let bare = self.text[begin..self.at].iter().take_while(|c| **c != '=');
                    let bare = bare.copied().all(|c| c.is_ascii_alphanumeric() || "_+".contains(c));
                    if words.is_empty() && bare && word.assigns().is_some() {
                        sets.push(word);
                    } else {
                        words.push(word);
                    }
                }
            }
        }
        self.assignments(&sets, &words);
        if !words.is_empty() {
            self.found.command(&words, self.depth);
        }
        Ok(())
    }

    fn assignments(&mut self, sets: &[Word], words: &[Word]) {
        for set in sets {
            let name = set.assigns().unwrap_or_default();
            let calm = HARMLESS.contains(&name) && !set.unknown && !words.is_empty();
            if !calm {
                self.found.hides(format!("it sets {name}"));
            }
        }
        if words.is_empty() && !sets.is_empty() {
            self.found.part(shown(sets));
        }
    }
}

/// Words that only close or continue something.
const CLOSING: &[&str] = &["then", "do", "done", "fi", "else", "elif", "esac", "}"];
const NUMERIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];
const LOOP: &str = "a loop that is not one";
const CASE: &str = "a case that is not one";
/// Variables that change how much is said, not what is run.
pub(crate) const HARMLESS: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "NO_COLOR",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];
