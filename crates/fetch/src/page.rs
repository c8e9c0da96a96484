//! What is made of an answer: its text, with where it is from and what is missing.

use std::fmt::Write as _;

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::body::Body;
use crate::fetch::told;
use crate::{charset, html, visible};

/// Why the text is not all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// There was more than is read.
    Size,
    /// The server stopped in the middle.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it was found in the end.
    pub url: String,
    /// The addresses that led there.
    pub hops: Vec<String>,
    pub status: u16,
    /// Such as `text/html`.
    pub kind: String,
    pub title: Option<String>,
    /// Markdown for HTML; other text as it is; nothing if it is no text.
    pub text: String,
    pub is_text: bool,
    /// Of the body as it was read, or announced if it was not.
    pub bytes: Option<u64>,
    pub cut: Option<Cut>,
}

impl Page {
    /// As a model reads it: from a character on, and so many of them. What is left out is said.
    #[must_use]
    pub fn show(&self, offset: usize, limit: usize) -> String {
        let mut out = format!("{} ({}, {})\n", self.url, self.status, self.kind);
        if let Some(title) = &self.title {
            let _ = writeln!(out, "title: {title}");
        }
        if let Some(first) = self.hops.first() {
            let _ = writeln!(out, "redirected from: {first}");
        }
        match self.cut {
            Some(Cut::Size) => {
                out.push_str("note: the page is longer than is read; this is its beginning\n");
            }
            Some(Cut::Broken) => {
                out.push_str("note: the server stopped in the middle; the rest is missing\n");
            }
            None => {}
        }
        out.push('\n');
        if !self.is_text {
            let bytes = self.bytes.map_or("of unknown size".to_owned(), |it| format!("{it} bytes"));
            let _ = write!(out, "({}, {bytes}: not text, so not shown)", self.kind);
            return out;
        }
        if self.text.is_empty() {
            out.push_str("(no text)");
            return out;
        }
        let mut rest = self.text.char_indices().skip(offset).map(|(at, _)| at);
        let Some(from) = rest.next() else {
            let _ = write!(out, "(the text ends before character {offset})");
            return out;
        };
        let to = rest.nth(limit.max(1) - 1).unwrap_or(self.text.len());
        out.push_str(&self.text[from..to]);
        let left = self.text[to..].chars().count();
        if left > 0 {
            let next = offset + limit.max(1);
            let _ = write!(out, "\n\n({left} more characters; go on with offset {next})");
        }
        out
    }
}

/// What a server says the body is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Lower case, without parameters; empty if nothing was said.
    name: String,
    charset: Option<String>,
}

impl Kind {
    pub(crate) fn of(header: Option<&HeaderValue>) -> Kind {
        let text = header.map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
        let text = visible::clean(&text.unwrap_or_default());
        let mut parts = text.split(';').map(str::trim);
        let name: String = parts.next().unwrap_or_default().chars().take(100).collect();
        let charset = parts.find_map(|part| part.strip_prefix("charset="));
        Kind { name, charset: charset.map(|name| name.trim_matches(['"', '\'']).to_owned()) }
    }

    pub(crate) fn is_text(&self) -> bool {
        let (first, second) = self.name.split_once('/').unwrap_or_default();
        let structured = ["json", "xml", "javascript", "yaml", "toml", "x-ndjson", "x-sh", "sql"];
        self.name.is_empty()
            || first == "text"
            || structured.contains(&second)
            || second.ends_with("+json")
            || second.ends_with("+xml")
            || second.ends_with("+yaml")
            || ["x-yaml", "ld+json", "x-javascript", "markdown", "graphql"].contains(&second)
    }

    fn is_html(&self, text: &str) -> bool {
        let named = self.name == "text/html" || self.name == "application/xhtml+xml";
        let start = text.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
        let looks = start.starts_with("<!doctype html") || start.starts_with("<html");
        named || (self.name.is_empty() && looks)
    }
}

pub(crate) struct Raw {
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) kind: Kind,
    pub(crate) body: Body,
    pub(crate) hops: Vec<String>,
}

pub(crate) fn make(raw: Raw) -> Page {
    let Raw { url, status, kind, body, hops } = raw;
    // A server that says nothing, or says text and means something else.
    let is_text = kind.is_text() && !is_binary(&body.bytes);
    let read = if kind.is_text() { u64::try_from(body.bytes.len()).ok() } else { None };
    let mut page = Page {
        url: told(&url),
        hops,
        status,
        kind: if kind.name.is_empty() { "unnamed".to_owned() } else { kind.name.clone() },
        title: None,
        text: String::new(),
        is_text,
        bytes: read.or(body.announced),
        cut: body.cut.filter(|_| is_text),
    };
    if !is_text {
        return page;
    }
    let text = charset::decode(&body.bytes, kind.charset.as_deref());
    if kind.is_html(&text) {
        let read = html::to_markdown(&text, url.as_str());
        page.title = read.title;
        page.text = read.text;
        if read.is_cut {
            page.cut = page.cut.or(Some(Cut::Size));
        }
    } else {
        visible::clean(&text).trim_end().clone_into(&mut page.text);
    }
    page
}

/// No text has zeros in it, but for text of two bytes a letter, which begins with a mark.
fn is_binary(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1_024)];
    let marked = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    start.contains(&0) && !marked
}
