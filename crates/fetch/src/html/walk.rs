//! From tokens to text. Open elements are a list; an end tag closes what it names and everything
//! in it, as far as that is near enough to be meant.

mod show;

use reqwest::Url;

use super::Read;
use super::out::Out;
use super::tag::Tag;
use super::token::{self, Attributes, Token};
use crate::visible::{clean, hides};

/// How far up an end tag looks for its beginning. Real pages need a few.
const NEAR: usize = 100;

const TITLE_SIGNS_MAX: usize = 300;

#[derive(Clone, Copy, Debug)]
struct Element {
    name: u64,
    tag: Tag,
    /// Of a list: the number of its next item, if items have one.
    next: Option<u64>,
    /// Of a table, row or cell: it is shown as one.
    is_table: bool,
}

pub(super) fn walk(html: &str, address: &str, tables: Vec<bool>) -> Read {
    let mut walk = Walk {
        out: Out::default(),
        open: Vec::new(),
        base: Url::parse(address).ok(),
        base_is_said: false,
        hidden: None,
        paragraphs: 0,
        verbatim: None,
        title: None,
        in_title: false,
        tables: tables.into_iter(),
        row: Row::default(),
    };
    token::each(html, |token| walk.take(token));
    walk.close_to(0);
    let title = walk.title.map(|title| clean(&title));
    let title = title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
    let title = title.map(|title| title.chars().take(TITLE_SIGNS_MAX).collect::<String>());
    let (text, is_cut) = walk.out.finish();
    Read { title: title.filter(|title| !title.is_empty()), text, is_cut }
}

/// How looking for the beginning of an element went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Found,
    /// It is not open, or belongs to what is outside.
    Wall,
    TooFar,
}

/// The row of a table that is being written.
#[derive(Debug, Default)]
struct Row {
    cells: usize,
    /// Of the table; the first is its head.
    rows: usize,
}

/// Text that is kept as it is until its element ends.
#[derive(Debug)]
struct Verbatim {
    text: String,
    language: String,
    /// The element, by its place in the list of those open.
    at: usize,
}

struct Walk {
    out: Out,
    open: Vec<Element>,
    base: Option<Url>,
    base_is_said: bool,
    /// The outermost open element that is not shown.
    hidden: Option<usize>,
    /// How many are open, to save looking for one.
    paragraphs: usize,
    verbatim: Option<Verbatim>,
    title: Option<String>,
    in_title: bool,
    tables: std::vec::IntoIter<bool>,
    row: Row,
}

impl Walk {
    fn take(&mut self, token: Token<'_>) {
        match token {
            Token::Start { name, attributes, self_closing } => {
                self.start(name, &attributes, self_closing);
            }
            Token::End { name } => self.end(name),
            Token::Text(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if self.hidden.is_some() {
            // Nobody sees it.
        } else if let Some(verbatim) = &mut self.verbatim {
            verbatim.text.push_str(text);
        } else {
            self.out.words(text);
        }
    }

    fn start(&mut self, name: &[u8], attributes: &Attributes, self_closing: bool) {
        let tag = Tag::of(name);
        self.end_what_ends_by_itself(tag);
        if tag == Tag::Cell && matches!(self.part_of_table(), Some(Tag::Table | Tag::Rows)) {
            // A row that nobody wrote.
            self.start(b"tr", &Attributes::default(), false);
        }
        let is_table = self.is_table(tag);
        if !tag.has_end() {
            if self.hidden.is_none() && !is_hidden(attributes) {
                self.lone(tag, attributes);
            }
            return;
        }
        // In drawings, and only there, this means what it says.
        if self_closing && self.hidden.is_some() {
            return;
        }
        let at = self.open.len();
        self.open.push(Element { name: key(name), tag, next: None, is_table });
        self.paragraphs += usize::from(tag == Tag::Paragraph);
        if self.hidden.is_some() {
            return;
        }
        let in_heading = self.out.one_line > 0;
        let dropped = tag == Tag::Dropped || (tag == Tag::Button && !in_heading);
        if dropped || is_hidden(attributes) || is_furniture(attributes) {
            self.hidden = Some(at);
        } else {
            self.begin(at, attributes);
        }
    }

    fn part_of_table(&self) -> Option<Tag> {
        let mut near = self.open.iter().rev().take(NEAR).map(|open| open.tag);
        near.find(|tag| tag.is_of_table())
    }

    /// The parts of a table are shown as such if it is; those of no table are not.
    fn is_table(&mut self, tag: Tag) -> bool {
        if tag == Tag::Table {
            return self.tables.next().unwrap_or(false);
        }
        let mut near = self.open.iter().rev().take(NEAR);
        tag.is_of_table() && near.find(|open| open.tag.is_of_table()).is_some_and(|it| it.is_table)
    }

    /// Ends that nobody writes: a paragraph before a block, an item before the next one.
    fn end_what_ends_by_itself(&mut self, tag: Tag) {
        if tag.ends_paragraph() && self.paragraphs > 0 {
            self.close_near(|open| open.tag == Tag::Paragraph, Tag::is_wall);
        }
        let is_list = |tag: Tag| matches!(tag, Tag::Ordered | Tag::Unordered) || tag.is_wall();
        if tag == Tag::Item {
            self.close_near(|open| open.tag == Tag::Item, is_list);
        } else if matches!(tag, Tag::Term | Tag::Meaning) {
            self.close_near(|open| matches!(open.tag, Tag::Term | Tag::Meaning), is_list);
        } else if tag == Tag::Cell {
            let is_wall = |tag| matches!(tag, Tag::Row | Tag::Table);
            self.close_near(|open| open.tag == Tag::Cell, is_wall);
        } else if matches!(tag, Tag::Row | Tag::Rows) {
            self.close_near(|open| open.tag == tag, |tag| tag == Tag::Table);
        }
    }

    fn end(&mut self, name: &[u8]) {
        let (tag, name) = (Tag::of(name), key(name));
        if matches!(tag, Tag::Break) {
            return self.lone(tag, &Attributes::default());
        }
        if tag == Tag::Link && self.hidden.is_none() && self.verbatim.is_none() {
            self.out.end_link();
        }
        // An end inside of a block is not the end of what is around the block.
        let in_line = matches!(tag, Tag::Inline | Tag::Link | Tag::Code);
        let wall = |open: Tag| {
            (in_line && open.ends_paragraph()) || (open.is_wall() && !tag.is_of_table())
        };
        let search = self.close_near(|open| open.name == name, wall);
        // What is not shown ends where it says, however much is in it.
        if let Some(at) = self.hidden
            && let Some(open) = self.open.get(at).filter(|open| open.name == name)
            && (search == Search::TooFar || (search == Search::Wall && open.tag == Tag::Dropped))
        {
            self.close_to(at);
        }
    }

    /// Closes the nearest element that is so, with all that is in it, unless a wall is nearer.
    fn close_near(
        &mut self,
        is_so: impl Fn(&Element) -> bool,
        is_wall: impl Fn(Tag) -> bool,
    ) -> Search {
        for (steps, (at, open)) in self.open.iter().enumerate().rev().enumerate() {
            if is_so(open) {
                self.close_to(at);
                return Search::Found;
            }
            if is_wall(open.tag) {
                return Search::Wall;
            }
            if steps >= NEAR {
                return Search::TooFar;
            }
        }
        Search::Wall
    }

    fn close_to(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(element) = self.open.pop() else { return };
            self.paragraphs -= usize::from(element.tag == Tag::Paragraph);
            let here = self.open.len();
            if self.hidden.is_some_and(|hidden| hidden < here) {
                continue;
            }
            if self.hidden.take().is_none() {
                self.close(element, here);
            }
        }
    }
}

/// A name as a number: comparing is all that is done with it, and a page that makes two names
/// alike only confuses itself.
fn key(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |key, byte| {
        (key ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn is_hidden(attributes: &Attributes) -> bool {
    let aria = attributes.aria_hidden.as_deref().map(str::trim);
    attributes.hidden.is_some()
        || aria.is_some_and(|said| said.eq_ignore_ascii_case("true"))
        || attributes.style.as_deref().is_some_and(hides)
}

/// What is on every page of a site and not what this page is about.
fn is_furniture(attributes: &Attributes) -> bool {
    let role = attributes.role.as_deref().map(str::trim).unwrap_or_default();
    let roles =
        ["navigation", "contentinfo", "dialog", "alertdialog", "menu", "menubar", "tooltip"];
    roles.iter().any(|known| role.eq_ignore_ascii_case(known))
}
