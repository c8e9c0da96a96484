//! What the elements that are shown make of the text, when they begin and when they end.

use reqwest::Url;

use super::{Element, NEAR, Row, Verbatim, Walk};
use crate::html::out::Gap;
use crate::html::tag::Tag;
use crate::html::token::Attributes;
use crate::visible::clean;

impl Walk {
    /// An element that is shown begins.
    pub(super) fn begin(&mut self, at: usize, attributes: &Attributes) {
        let Some(element) = self.open.get(at).copied() else { return };
        if self.verbatim.is_some() {
            if let (Tag::Code, Some(verbatim)) = (element.tag, &mut self.verbatim) {
                verbatim.language = language(attributes, &verbatim.language);
            }
            return;
        }
        match element.tag {
            Tag::Link => self.out.begin_link(self.address(attributes)),
            Tag::Quote => {
                self.out.apart(Gap::Paragraph);
                self.out.quotes += 1;
            }
            Tag::Code | Tag::Pre => {
                if element.tag == Tag::Pre {
                    self.out.apart(Gap::Paragraph);
                }
                let language = language(attributes, "");
                self.verbatim = Some(Verbatim { text: String::new(), language, at });
            }
            Tag::Heading(level) => {
                self.out.apart(Gap::Paragraph);
                self.out.mark(&format!("{} ", "#".repeat(level)));
                self.out.one_line += 1;
            }
            Tag::Ordered => {
                let first = attributes.start.as_deref().and_then(|first| first.trim().parse().ok());
                self.open[at].next = Some(first.unwrap_or(1));
                self.list();
            }
            Tag::Unordered => self.list(),
            Tag::Item => self.item(at),
            Tag::Paragraph => self.out.apart(Gap::Paragraph),
            Tag::Meaning => {
                self.out.apart(Gap::Line);
                self.out.margins.push(2);
            }
            Tag::Table if element.is_table => {
                self.out.apart(Gap::Paragraph);
                self.row = Row::default();
            }
            Tag::Row if element.is_table => self.row.cells = 0,
            Tag::Cell if element.is_table => self.cell(),
            Tag::Cell => self.out.apart(Gap::Space),
            Tag::Table | Tag::Rows | Tag::Row | Tag::Term | Tag::Body | Tag::Block => {
                self.out.apart(Gap::Line);
            }
            Tag::Title => self.in_title = self.title.is_none(),
            Tag::Base
            | Tag::Break
            | Tag::Button
            | Tag::Rule
            | Tag::Image
            | Tag::Dropped
            | Tag::Void
            | Tag::Inline => {}
        }
    }

    fn list(&mut self) {
        let inner = !self.out.margins.is_empty();
        self.out.apart(if inner { Gap::Line } else { Gap::Paragraph });
    }

    fn item(&mut self, at: usize) {
        let lists = self.open[..at].iter_mut().rev().take(NEAR);
        let mut lists = lists.filter(|open| matches!(open.tag, Tag::Ordered | Tag::Unordered));
        let number = lists.next().and_then(|list| {
            let number = list.next?;
            list.next = Some(number.saturating_add(1));
            Some(number)
        });
        let mark = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
        self.out.apart(Gap::Line);
        self.out.unmark();
        self.out.margins.push(mark.len());
        self.out.mark(&mark);
    }

    fn cell(&mut self) {
        if self.row.cells == 0 {
            if self.row.rows > 0 {
                self.out.next_line();
            }
            self.out.row();
            self.out.border("| ");
        } else {
            self.out.border(" | ");
        }
        self.row.cells += 1;
        self.out.one_line += 1;
        self.out.in_cell = true;
    }

    /// An element that has no end.
    pub(super) fn lone(&mut self, tag: Tag, attributes: &Attributes) {
        if let Some(verbatim) = &mut self.verbatim {
            if tag == Tag::Break {
                verbatim.text.push('\n');
            }
            return;
        }
        if tag == Tag::Break {
            self.out.apart(Gap::Line);
        } else if tag == Tag::Rule {
            self.out.apart(Gap::Paragraph);
            if self.out.one_line == 0 {
                self.out.word("---");
            }
            self.out.apart(Gap::Paragraph);
        } else if tag == Tag::Image {
            let alt = attributes.alt.as_deref().map(clean).unwrap_or_default();
            let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
            if !alt.is_empty() {
                self.out.words(&format!("[image: {alt}]"));
            }
        } else if tag == Tag::Base && !self.base_is_said {
            let base = attributes.href.as_deref();
            let base = base.and_then(|base| self.base.as_ref()?.join(base).ok());
            self.base_is_said = base.is_some();
            self.base = base.or(self.base.take());
        }
    }

    /// The address a link leads to, if it leads to another page.
    fn address(&self, attributes: &Attributes) -> Option<String> {
        let href = attributes.href.as_deref()?.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href).ok()?,
            None => Url::parse(href).ok()?,
        };
        let known = matches!(url.scheme(), "http" | "https" | "mailto");
        // A bracket would end the link where it does not end.
        let url = url.as_str().replace('(', "%28").replace(')', "%29");
        known.then_some(url)
    }

    /// An element that was shown ends.
    pub(super) fn close(&mut self, element: Element, at: usize) {
        if let Some(verbatim) = self.verbatim.take_if(|verbatim| verbatim.at == at) {
            return self.unload(&verbatim, element.tag);
        }
        if self.verbatim.is_some() {
            return;
        }
        match element.tag {
            Tag::Link => self.out.end_link(),
            Tag::Quote => {
                self.out.apart(Gap::Paragraph);
                self.out.quotes = self.out.quotes.saturating_sub(1);
            }
            Tag::Heading(_) => {
                self.out.one_line = self.out.one_line.saturating_sub(1);
                self.out.unmark();
                self.out.apart(Gap::Paragraph);
            }
            Tag::Item | Tag::Meaning => {
                self.out.unmark();
                self.out.margins.pop();
                self.out.apart(Gap::Line);
            }
            Tag::Ordered | Tag::Unordered => self.list(),
            Tag::Cell if element.is_table => {
                self.out.end_link();
                self.out.one_line = self.out.one_line.saturating_sub(1);
                self.out.in_cell = false;
            }
            Tag::Row if element.is_table => self.end_row(),
            Tag::Paragraph => self.out.apart(Gap::Paragraph),
            Tag::Table if element.is_table => self.out.apart(Gap::Paragraph),
            Tag::Table | Tag::Rows | Tag::Row | Tag::Term | Tag::Body | Tag::Block => {
                self.out.apart(Gap::Line);
            }
            Tag::Title => self.in_title = false,
            Tag::Cell
            | Tag::Base
            | Tag::Break
            | Tag::Button
            | Tag::Code
            | Tag::Pre
            | Tag::Rule
            | Tag::Image
            | Tag::Dropped
            | Tag::Void
            | Tag::Inline => {}
        }
    }

    fn end_row(&mut self) {
        if self.row.cells == 0 {
            return;
        }
        self.out.border(" |");
        if self.row.rows == 0 {
            self.out.next_line();
            self.out.row();
            self.out.border(&format!("|{}", "---|".repeat(self.row.cells)));
        }
        self.row.rows += 1;
        self.out.next_line();
    }

    /// Code goes out as it came in.
    fn unload(&mut self, verbatim: &Verbatim, tag: Tag) {
        let text = verbatim.text.replace("\r\n", "\n");
        let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or_default();
        if tag == Tag::Pre && self.out.one_line == 0 {
            let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
            if !text.is_empty() {
                let fence = "`".repeat(longest.max(2) + 1);
                self.out.lines(text, &fence, &verbatim.language);
            }
            return;
        }
        let words = clean(&text).split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.out.apart(Gap::Space);
        }
        let fence = "`".repeat(longest + 1);
        let space = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
        self.out.word(&format!("{fence}{space}{words}{space}{fence}"));
        if text.ends_with(char::is_whitespace) {
            self.out.apart(Gap::Space);
        }
    }
}

/// `language-rust`, as most pages say it.
fn language(attributes: &Attributes, before: &str) -> String {
    let class = attributes.class.as_deref().unwrap_or_default();
    let named = class.split_whitespace().find_map(|word| {
        let word = word.strip_prefix("language-").or_else(|| word.strip_prefix("lang-"))?;
        let plain = |sign: char| sign.is_ascii_alphanumeric() || "+#-_.".contains(sign);
        (word.len() <= 30 && word.chars().all(plain)).then_some(word)
    });
    named.unwrap_or(before).to_owned()
}
