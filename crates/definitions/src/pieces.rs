//! A template cut into what is text and what is not, as the recipes' own program would see it.
//! Nothing is rendered here; this is what lets a file be checked before anybody has values.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::problem::Place;
use crate::tree::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// `{{ x }}` that is an expression.
    Value,
    /// `{{ any words }}` that is none, and stays as it is written.
    Literal,
    /// `{% if x %}`.
    Statement,
    /// `{# … #}`.
    Comment,
}

#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    text: &'a str,
    list: Vec<(Piece, Range<usize>)>,
}

/// Values in one file that are more than a name; each of them is compiled to see what it is.
const COMPLEX_MAX: usize = 2_000;

/// Tags in one file; the busiest public recipe has a hundred.
const TAGS_MAX: usize = 5_000;

const TAG_BYTES_MAX: usize = 10_000;
const LINE_BYTES_MAX: usize = 50_000;
const LINES_MAX: usize = 50_000;

const SKETCH: u32 = 0x10_0000;
const FILLER: char = '\u{10FFFD}';

/// Characters that stand for values. No public text uses them, and ours may not.
pub(crate) fn is_mark(sign: char) -> bool {
    u32::from(sign) >= SKETCH
}

/// All of them, and nothing else, start with this byte in UTF-8. Looking for a byte is quick.
pub(crate) fn has_marks(text: &str) -> bool {
    text.as_bytes().contains(&0xF4)
}

/// The mark with a number.
pub(crate) fn mark(number: usize) -> char {
    u32::try_from(number).ok().and_then(|n| char::from_u32(SKETCH + n)).unwrap_or(FILLER)
}

pub(crate) fn number(mark: char) -> usize {
    (u32::from(mark) - SKETCH) as usize
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Pieces<'a>, Fault> {
        if has_marks(text) {
            let byte = text.find(is_mark).unwrap_or(0);
            let sign = text[byte..].chars().next().map_or(0, u32::from);
            let what = format!("U+{sign:04X} has no meaning");
            return Err(Fault::new(Place::of_byte(text, byte), what, "delete it"));
        }
        let mut pieces = Pieces { text, list: Vec::new() };
        pieces.small()?;
        let mut judge = Judge::default();
        let mut at = 0;
        while let Some(found) = text[at..].find('{') {
            let open = at + found;
            if pieces.list.len() >= TAGS_MAX || judge.seen.len() > COMPLEX_MAX {
                let what = "too many {{ … }} and {% … %} in one file";
                return Err(Fault::new(Place::of_byte(text, open), what, "split the file"));
            }
            at = match text.as_bytes().get(open + 1) {
                Some(b'{') => pieces.value(open, &mut judge)?,
                Some(b'%') => pieces.statement(open)?,
                Some(b'#') => pieces.comment(open)?,
                _ => open + 1,
            };
        }
        pieces.bounded()?;
        Ok(pieces)
    }

    /// The template engine counts lines and columns in sixteen bits and does not look whether
    /// they fit. Seen before any tag is tried, which takes longer than looking.
    fn small(&self) -> Result<(), Fault> {
        let has = |open: &str| self.text.contains(open);
        if !has("{{") && !has("{%") && !has("{#") {
            return Ok(());
        }
        let lines = self.text.split('\n');
        let wide = lines.clone().position(|line| line.len() > LINE_BYTES_MAX);
        if let Some(line) = wide.or((lines.count() > LINES_MAX).then_some(LINES_MAX)) {
            let what = "a line that is too long, or too many lines, for a template";
            return Err(Fault::new(Place::new(line + 1, 1), what, "break it, or split the file"));
        }
        Ok(())
    }

    fn bounded(&self) -> Result<(), Fault> {
        let long = self.list.iter().find(|(_, range)| range.len() > TAG_BYTES_MAX);
        if let Some((_, range)) = long {
            let what = "a tag that is too long: the template fails";
            return Err(Fault::new(self.place(range.start), what, "close it, or make it short"));
        }
        Ok(())
    }

    pub(crate) fn is_template(&self) -> bool {
        !self.list.is_empty()
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    fn comment(&mut self, open: usize) -> Result<usize, Fault> {
        let end = self.text[open + 2..].find("#}").map(|at| open + 2 + at + 2);
        let end = end.ok_or_else(|| self.unclosed(open, "#}"))?;
        self.list.push((Piece::Comment, open..end));
        Ok(end)
    }

    fn value(&mut self, open: usize, judge: &mut Judge) -> Result<usize, Fault> {
        let rest = &self.text[open + 2..];
        let inner = rest.find("}}").map(|end| &rest[..end]).filter(|inner| !inner.contains('\n'));
        let closed = || {
            closing(rest, "}}").map(|end| &rest[..end - 2]).ok_or_else(|| self.unclosed(open, "}}"))
        };
        let (piece, inner) = match inner {
            Some(inner) if inner.trim_start().starts_with(['\'', '"']) => (Piece::Value, closed()?),
            Some(inner) if judge.is_value(inner) => (Piece::Value, inner),
            Some(inner) => (Piece::Literal, inner),
            // What closes it far below belongs to another: the mistake is where it was opened.
            None => match closed()? {
                inner if inner.len() <= TAG_BYTES_MAX && judge.is_value(inner) => {
                    (Piece::Value, inner)
                }
                _ => return Err(self.unclosed(open, "}}")),
            },
        };
        let end = open + inner.len() + 4;
        self.list.push((piece, open..end));
        Ok(end)
    }

    fn statement(&mut self, open: usize) -> Result<usize, Fault> {
        let close = |at: usize| closing(&self.text[at + 2..], "%}").map(|end| at + 2 + end);
        let end = close(open).ok_or_else(|| self.unclosed(open, "%}"))?;
        let mut found = vec![(Piece::Statement, open..end)];
        let mut at = end;
        if keyword(&self.text[open..end]) == "raw" {
            // Nothing in between is ours.
            at = self.text.len();
            for (start, _) in self.text[end..].match_indices("{%") {
                let start = end + start;
                let is_end = keyword(&self.text[start..]) == "endraw";
                if let Some(close) = is_end.then(|| close(start)).flatten() {
                    found.push((Piece::Statement, start..close));
                    at = close;
                    break;
                }
            }
        }
        self.list.extend(found);
        Ok(at)
    }

    fn unclosed(&self, open: usize, close: &str) -> Fault {
        let what = format!("{} is opened here and not closed", &self.text[open..open + 2]);
        let how =
            format!("write {close} behind it; braces as they are: {{% raw %}} … {{% endraw %}}");
        Fault::new(self.place(open), what, &how)
    }

    /// The same of every tag; an expression has no first word.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&'a str, &'a str, usize)> {
        let live = |piece: Piece| matches!(piece, Piece::Statement | Piece::Value);
        self.list.iter().filter(move |(piece, _)| live(*piece)).map(|(piece, range)| {
            let tag = &self.text[range.clone()];
            let word = if *piece == Piece::Statement { keyword(tag) } else { "" };
            (word, tag, range.start)
        })
    }

    /// First words of its statements, with the whole of them and the byte they start at.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = (&'a str, &'a str, usize)> {
        let statements = self.list.iter().filter(|(piece, _)| *piece == Piece::Statement);
        statements.map(|(_, range)| {
            let tag = &self.text[range.clone()];
            (keyword(tag), tag, range.start)
        })
    }

    pub(crate) fn place(&self, byte: usize) -> Place {
        Place::of_byte(self.text, byte)
    }

    /// What minijinja gets: literals are wrapped, the rest is as it was.
    pub(crate) fn prepared(&self) -> String {
        self.replaced(|piece, source, _| match piece {
            Piece::Literal => format!("{{% raw %}}{source}{{% endraw %}}"),
            Piece::Value | Piece::Statement | Piece::Comment => source.to_owned(),
        })
    }

    /// The text with a mark, as wide as what it stands for, in the place of every value: its
    /// structure can be read whatever is written in the braces.
    pub(crate) fn sketch(&self) -> String {
        self.replaced(|piece, source, number| match piece {
            Piece::Value | Piece::Literal => stand_in(source, number),
            Piece::Statement | Piece::Comment => source.to_owned(),
        })
    }

    /// The same without statements: all branches at once. One that begins a line takes no room,
    /// as when it is rendered: YAML counts what stands before the first word.
    pub(crate) fn bare_sketch(&self) -> Bare {
        let text = String::with_capacity(self.text.len());
        let mut bare = Bare { text, line: 1, cut: BTreeMap::new() };
        let mut at = 0;
        for (number, (piece, range)) in self.list.iter().enumerate() {
            bare.push(&self.text[at..range.start]);
            let source = &self.text[range.clone()];
            match piece {
                Piece::Value | Piece::Literal => bare.push(&stand_in(source, number)),
                Piece::Statement | Piece::Comment => bare.leave_out(source),
            }
            at = range.end;
        }
        bare.push(&self.text[at..]);
        bare
    }

    /// A text of the sketch with what was written.
    pub(crate) fn restore(&self, sketch: String) -> String {
        if !has_marks(&sketch) {
            return sketch;
        }
        let mut text = String::with_capacity(sketch.len());
        for sign in sketch.chars() {
            match sign {
                FILLER => {}
                sign if is_mark(sign) => {
                    let range = self.list.get(number(sign)).map(|(_, range)| range.clone());
                    text.push_str(&self.text[range.unwrap_or_default()]);
                }
                sign => text.push(sign),
            }
        }
        text
    }

    /// Where a variable is first used.
    pub(crate) fn place_of(&self, variable: &str) -> Place {
        let word = |sign: char| sign.is_alphanumeric() || sign == '_';
        let uses = |range: &Range<usize>| {
            let tag = &self.text[range.clone()];
            tag.split(|sign| !word(sign)).any(|part| part == variable)
        };
        let found = self.list.iter().find(|(_, range)| uses(range));
        found.map_or(Place::START, |(_, range)| Place::of_byte(self.text, range.start))
    }

    fn replaced(&self, with: impl Fn(Piece, &str, usize) -> String) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for (number, (piece, range)) in self.list.iter().enumerate() {
            text.push_str(&self.text[at..range.start]);
            text.push_str(&with(*piece, &self.text[range.clone()], number));
            at = range.end;
        }
        text.push_str(&self.text[at..]);
        text
    }
}

/// A sketch without statements.
#[derive(Debug)]
pub(crate) struct Bare {
    pub(crate) text: String,
    line: usize,
    /// Signs that were left out at the start of a line, by its number.
    cut: BTreeMap<usize, usize>,
}

impl Bare {
    fn push(&mut self, part: &str) {
        self.line += part.matches('\n').count();
        self.text.push_str(part);
    }

    fn leave_out(&mut self, source: &str) {
        let before = self.text.rsplit('\n').next().unwrap_or_default();
        if before.trim().is_empty() {
            self.push(&"\n".repeat(source.matches('\n').count()));
            let last = source.rsplit('\n').next().unwrap_or_default();
            *self.cut.entry(self.line).or_default() += last.chars().count();
        } else {
            let blank = |sign| if sign == '\n' { '\n' } else { ' ' };
            self.push(&source.chars().map(blank).collect::<String>());
        }
    }

    /// Where it stands in the file.
    pub(crate) fn place(&self, at: Place) -> Place {
        let (line, column) = (at.line as usize, at.column as usize);
        Place::new(line, column + self.cut.get(&line).copied().unwrap_or(0))
    }
}

fn stand_in(source: &str, number: usize) -> String {
    let width = source.chars().count().saturating_sub(1);
    std::iter::once(mark(number)).chain(std::iter::repeat_n(FILLER, width)).collect()
}

fn keyword(tag: &str) -> &str {
    let inside = tag.trim_start_matches(['{', '%', '-', '+']).trim_start();
    inside.split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or("")
}

/// Behind the mark that closes a tag, which is no part of a text in quotes.
fn closing(rest: &str, close: &str) -> Option<usize> {
    let mut quoted: Option<char> = None;
    let mut escaped = false;
    for (at, sign) in rest.char_indices() {
        match quoted {
            _ if escaped => escaped = false,
            Some(_) if sign == '\\' => escaped = true,
            Some(quote) if sign == quote => quoted = None,
            None if rest[at..].starts_with(close) => return Some(at + close.len()),
            None if matches!(sign, '"' | '\'') => quoted = Some(sign),
            Some(_) | None => {}
        }
    }
    None
}

/// Is it an expression? A bare name is; the rest is tried, each once.
#[derive(Debug, Default)]
struct Judge {
    seen: BTreeMap<String, bool>,
    environment: minijinja::Environment<'static>,
}

impl Judge {
    fn is_value(&mut self, inner: &str) -> bool {
        let name = inner.trim();
        let letters = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        if name.chars().all(letters) && name.starts_with(|s: char| s.is_alphabetic() || s == '_') {
            return true;
        }
        if let Some(known) = self.seen.get(inner) {
            return *known;
        }
        let compiles = self.environment.template_from_str(&format!("{{{{{inner}}}}}")).is_ok();
        self.seen.insert(inner.to_owned(), compiles);
        compiles
    }
}
