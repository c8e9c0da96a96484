//! Redirects and here-documents. A file that is opened is a part: `> file`, `< file`.

use crate::Why;
use crate::reader::{HERE, Here, NO_END, Reader};
use crate::word::Word;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirected {
    Yes,
    No,
}

impl Reader<'_> {
    /// Takes one redirect, if there is one here.
    pub(crate) fn redirect(&mut self) -> Result<Redirected, Why> {
        let begin = self.at;
        let digits = self.text[begin..].iter().take_while(|c| c.is_ascii_digit()).count();
        let numbered = digits > 0 && matches!(self.peek_at(digits), Some('<' | '>'));
        if numbered {
            self.at += digits;
        }
        let Some(mark) = self.mark() else {
            self.at = begin;
            return Ok(Redirected::No);
        };
        // `{name}>` lets bash choose a number, and is a word to others.
        if begin > 0 && self.text[begin - 1] == '}' {
            return Err(Why::Syntax("{name}> differs between shells"));
        }
        match mark {
            "<<<" => {
                self.skip_blanks();
                self.target()?;
            }
            "<<" | "<<-" => self.announce(mark == "<<-")?,
            _ => {
                self.skip_blanks();
                let target = self.target()?;
                self.opened(mark, &target);
            }
        }
        Ok(Redirected::Yes)
    }

    fn mark(&mut self) -> Option<&'static str> {
        let substitutes = |at: Option<char>| at == Some('(');
        // `<(…)` is a word.
        if matches!(self.peek(), Some('<' | '>')) && substitutes(self.peek_at(1)) {
            return None;
        }
        MARKS.iter().find(|mark| self.take(mark)).copied()
    }

    fn target(&mut self) -> Result<Word, Why> {
        if matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(') {
            self.at += 2;
            self.substitution()?;
            return Ok(Word::anything());
        }
        let begin = self.at;
        let word = self.word()?;
        if self.at == begin { Err(Why::Syntax("a redirect to nothing")) } else { Ok(word) }
    }

    fn opened(&mut self, mark: &str, target: &Word) {
        let copies = mark.ends_with('&')
            && !target.text.is_empty()
            && target.text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
        if copies || SINKS.contains(&target.text.as_str()) {
            return;
        }
        let network = ["/dev/tcp/", "/dev/udp/"].iter().any(|at| target.text.contains(at));
        if network {
            self.found.hides("a redirect to the network");
        }
        let reads = mark == "<" || mark == "<&";
        let sign = if reads { "<" } else { ">" };
        self.found.part(format!("{sign} {}", target.shown()));
    }

    fn announce(&mut self, indented: bool) -> Result<(), Why> {
        self.skip_blanks();
        let begin = self.at;
        let end = self.word()?;
        if self.at == begin || end.unknown {
            return Err(Why::Syntax(NO_END));
        }
        self.pending.push(Here { end: end.text, literal: end.quoted, indented });
        Ok(())
    }

    /// Takes a line end, and the here-documents that begin after it.
    pub(crate) fn line_end(&mut self) -> Result<(), Why> {
        self.at += 1;
        for here in std::mem::take(&mut self.pending) {
            let text = self.here_document(&here)?;
            if here.literal {
                continue;
            }
            let depth = self.depth;
            self.deeper(|outer| {
                let mut inside = Reader::new(&text, depth + 1, outer.found);
                inside.here_text()?;
                if inside.pending.is_empty() { Ok(()) } else { Err(Why::Syntax(HERE)) }
            })?;
        }
        Ok(())
    }

    fn here_document(&mut self, here: &Here) -> Result<String, Why> {
        let mut text = String::new();
        loop {
            let begin = self.at;
            while self.peek().is_some_and(|c| c != '\n') {
                self.at += 1;
            }
            let line: String = self.text[begin..self.at].iter().collect();
            let bare = if here.indented { line.trim_start_matches('\t') } else { &line };
            if bare == here.end {
                return Ok(text);
            }
            // A line that is continued hides where the end is.
            if !here.literal && line.ends_with('\\') {
                return Err(Why::Syntax("a here-document with a continued line"));
            }
            text.push_str(&line);
            text.push('\n');
            if self.next().is_none() {
                return Err(Why::Syntax(NO_END));
            }
        }
    }
}

/// Longer marks first.
const MARKS: &[&str] = &["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">&", ">|", ">"];
/// Opening these changes nothing and tells nothing.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"];
