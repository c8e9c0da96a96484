//! Notes as one page of Markdown that people read and edit: a heading for each note, its text
//! below. At the end, in a comment, the page says what it was made from, so that it can be taken
//! back in hours later and still be known what was changed in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::store::{digest, tidy};
use crate::{Id, Note, Scope};

const BASE: &str = "<!-- locum base:";
const HELP: &str = "<!-- locum: change a text, delete a note with its heading, or write a new one \
    under the heading `## new`. -->";

/// Notes for each line of the base, so that no editor has to show one that never ends.
const BASE_ROW: usize = 4;

/// What the notes of a page said when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base(BTreeMap<Id, Mark>);

/// The beginning of a digest: enough to notice any change that was not made on purpose to be
/// overlooked, and its author could as well edit the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    pub(crate) fn of(text: &str) -> Mark {
        Mark(digest(text).iter().take(8).fold(0, |mark, byte| mark << 8 | u64::from(*byte)))
    }
}

impl Base {
    #[must_use]
    pub fn of(notes: &[Note]) -> Base {
        Base(notes.iter().map(|note| (note.id, Mark::of(&note.text))).collect())
    }

    /// As a page says it itself; empty if it does not, and then nothing counts as deleted.
    #[must_use]
    pub fn in_page(page: &str) -> Base {
        let mut base = BTreeMap::new();
        for line in page.lines().filter_map(|line| line.trim().strip_prefix(BASE)) {
            for pair in line.trim_end_matches("-->").split_whitespace() {
                let pair = pair.split_once('=');
                let pair = pair.and_then(|(id, mark)| {
                    Some((id.parse().ok()?, Mark(u64::from_str_radix(mark, 16).ok()?)))
                });
                base.extend(pair);
            }
        }
        Base(base)
    }

    pub(crate) fn get(&self, id: Id) -> Option<Mark> {
        self.0.get(&id).copied()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        self.0.keys().copied()
    }
}

#[must_use]
pub fn render(scope: &Scope, notes: &[Note]) -> String {
    let mut page = format!("# Memory: {}\n\n{HELP}\n", one_line(&scope.to_string()));
    for note in notes {
        let _ = write!(page, "\n## {} · {}\n\n", note.id, one_line(&origin(note)));
        for line in note.text.lines() {
            if is_ours(line) {
                page.push('\\');
            }
            page.push_str(line);
            page.push('\n');
        }
    }
    let base = Base::of(notes).0;
    for pairs in base.iter().collect::<Vec<_>>().chunks(BASE_ROW) {
        let pairs = pairs.iter().map(|(id, mark)| format!("{id}={:016x}", mark.0));
        let _ = write!(page, "\n{BASE} {} -->", pairs.collect::<Vec<_>>().join(" "));
    }
    if !base.is_empty() {
        page.push('\n');
    }
    page
}

/// `model, main/builder in run_1, 2026-01-31`.
fn origin(note: &Note) -> String {
    let from = &note.provenance;
    let mut told = from.source.word().to_owned();
    if let Some(agent) = &from.agent {
        let _ = write!(told, ", {agent}");
    }
    if let Some(session) = &from.session {
        let _ = write!(told, " in {session}");
    }
    let (year, month, day) = civil(from.at / 86_400_000);
    let _ = write!(told, ", {year:04}-{month:02}-{day:02}");
    told
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Year, month and day of a day since 1970, counted in eras of 400 years that begin in March.
fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// A line of a text that would be taken for one of the page's own, however often it was marked.
fn is_ours(line: &str) -> bool {
    let line = line.trim_start_matches('\\');
    heading(line).is_some() || line.trim_start().starts_with("<!-- locum")
}

/// Whose text begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Of(Id),
    New,
}

fn heading(line: &str) -> Option<Heading> {
    let word = line.strip_prefix("## ")?.split_whitespace().next()?;
    if word.eq_ignore_ascii_case("new") {
        return Some(Heading::New);
    }
    word.parse().ok().map(Heading::Of)
}

/// The notes of a page as they stand in it. What stands before the first heading is a new one.
pub(crate) fn read(page: &str) -> Vec<(Option<Id>, String)> {
    let mut notes: Vec<(Option<Id>, String)> = vec![(None, String::new())];
    let page = page.replace("\r\n", "\n");
    let page = page.trim_start_matches('\u{feff}');
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = heading(line) {
            let id = match heading {
                Heading::Of(id) => Some(id),
                Heading::New => None,
            };
            notes.push((id, String::new()));
            continue;
        }
        let is_title = number == 0 && line.starts_with("# Memory:");
        if is_title || line.trim_start().starts_with("<!-- locum") {
            continue;
        }
        let line = if is_ours(line) { line.strip_prefix('\\').unwrap_or(line) } else { line };
        if let Some((_, text)) = notes.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let notes = notes.into_iter().map(|(id, text)| (id, tidy(&text)));
    notes.filter(|(id, text)| id.is_some() || !text.is_empty()).collect()
}
