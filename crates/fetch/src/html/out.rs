//! The text as it grows. Space is only remembered when it is met and written when a word follows,
//! so that there is never too much of it; so are the marks of headings, items and links, so that
//! what stays empty leaves nothing.

use crate::visible::is_invisible;

/// No page makes more of itself than is read.
const TEXT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Deeper lists and quotes look like these: an endless margin is no text.
const QUOTES_MAX: usize = 4;
const MARGIN_MAX: usize = 24;

/// What lies between the last word and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

#[derive(Debug)]
struct Link {
    to: Option<String>,
    /// Its first word was written.
    is_open: bool,
}

#[derive(Debug, Default)]
pub(super) struct Out {
    text: String,
    gap: Gap,
    /// Written before the next word, at the beginning of its line.
    mark: String,
    link: Option<Link>,
    pub(super) quotes: usize,
    /// How far the text of each open item is set in.
    pub(super) margins: Vec<usize>,
    /// Everything is on one line: in a heading or in a cell of a table.
    pub(super) one_line: usize,
    pub(super) in_cell: bool,
    pub(super) is_cut: bool,
}

impl Out {
    pub(super) fn finish(mut self) -> (String, bool) {
        self.end_link();
        (self.text, self.is_cut)
    }

    pub(super) fn apart(&mut self, gap: Gap) {
        let is_line = self.one_line > 0 || self.link.as_ref().is_some_and(|link| link.is_open);
        let gap = if is_line { gap.min(Gap::Space) } else { gap };
        self.gap = self.gap.max(gap);
    }

    /// For the next item of a list: however its elder ended, it is on the next line.
    pub(super) fn next_line(&mut self) {
        if self.one_line == 0 && !self.text.is_empty() {
            self.gap = Gap::Line;
        }
    }

    /// Something that the next word is to begin with.
    pub(super) fn mark(&mut self, mark: &str) {
        if self.one_line == 0 {
            self.mark.push_str(mark);
        }
    }

    pub(super) fn unmark(&mut self) {
        self.mark.clear();
    }

    /// Words with any space between them.
    pub(super) fn words(&mut self, text: &str) {
        for sign in text.chars() {
            if sign.is_whitespace() {
                self.gap = self.gap.max(Gap::Space);
            } else if !is_invisible(sign) {
                self.lead();
                if sign == '|' && self.in_cell {
                    self.push("\\");
                }
                self.push(sign.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// One word as it is, whatever is in it.
    pub(super) fn word(&mut self, word: &str) {
        self.lead();
        let escaped = if self.in_cell { word.replace('|', "\\|") } else { word.to_owned() };
        self.push(&escaped);
    }

    /// A sign of a table, with no space remembered before it.
    pub(super) fn border(&mut self, border: &str) {
        self.gap = Gap::None;
        self.push(border);
    }

    /// The beginning of a row.
    pub(super) fn row(&mut self) {
        if self.text.is_empty() {
            self.gap = Gap::None;
        }
        self.lead();
    }

    /// Lines as they are.
    pub(super) fn lines(&mut self, text: &str, fence: &str, language: &str) {
        self.gap = self.gap.max(Gap::Paragraph);
        self.word(&format!("{fence}{language}"));
        for line in text.lines() {
            self.new_line();
            let line: String = line.chars().filter(|sign| !is_invisible(*sign)).collect();
            self.push(&line);
        }
        self.new_line();
        self.push(fence);
        self.gap = Gap::Paragraph;
    }

    pub(super) fn begin_link(&mut self, to: Option<String>) {
        self.end_link();
        self.link = Some(Link { to, is_open: false });
    }

    pub(super) fn end_link(&mut self) {
        if let Some(Link { to: Some(to), is_open: true }) = self.link.take() {
            self.push(&format!("]({to})"));
        }
    }

    /// What is between this word and the one before.
    fn lead(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        let is_new = self.text.is_empty();
        match gap {
            _ if is_new => self.margin(),
            Gap::None => {}
            Gap::Space => {
                if !self.text.ends_with([' ', '\n']) {
                    self.push(" ");
                }
            }
            Gap::Line => self.new_line(),
            Gap::Paragraph => {
                self.push("\n");
                self.new_line();
            }
        }
        let mark = std::mem::take(&mut self.mark);
        self.push(&mark);
        if let Some(link) = self.link.as_mut().filter(|link| !link.is_open) {
            link.is_open = true;
            if link.to.is_some() {
                self.push("[");
            }
        }
    }

    fn new_line(&mut self) {
        self.push("\n");
        self.margin();
    }

    fn margin(&mut self) {
        self.push(&"> ".repeat(self.quotes.min(QUOTES_MAX)));
        // The mark of an item stands in the margin of its text.
        let own = if self.mark.is_empty() { 0 } else { self.margins.last().copied().unwrap_or(0) };
        let width: usize = self.margins.iter().take(MARGIN_MAX).sum();
        let width = width.min(MARGIN_MAX).saturating_sub(own);
        self.push(&" ".repeat(width));
    }

    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() > TEXT_BYTES_MAX {
            self.is_cut = true;
        } else {
            self.text.push_str(text);
        }
    }
}
