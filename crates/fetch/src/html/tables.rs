//! Which tables are tables. Many pages are laid out with them, and as a table such a page would be
//! one endless row. A table is one if it has columns and holds nothing but short text.

use super::tag::Tag;
use super::token::{self, Token};

/// A cell with more is a part of a page.
const CELL_BYTES_MAX: usize = 2_000;

struct Open {
    number: usize,
    columns: usize,
    widest: usize,
    cell_bytes: usize,
}

/// For each table in the order in which they begin.
pub(super) fn judge(html: &str) -> Vec<bool> {
    let mut is_table: Vec<bool> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    token::each(html, |token| match token {
        Token::Start { name, attributes, .. } => {
            let tag = Tag::of(name);
            if tag == Tag::Table {
                if let Some(outer) = open.last() {
                    is_table[outer.number] = false;
                }
                let role = attributes.role.as_deref();
                let is_layout = matches!(role, Some("presentation" | "none"));
                let number = is_table.len();
                is_table.push(!is_layout);
                open.push(Open { number, columns: 0, widest: 0, cell_bytes: 0 });
            } else if let Some(table) = open.last_mut() {
                if tag == Tag::Row {
                    table.columns = 0;
                } else if tag == Tag::Cell {
                    table.columns += 1;
                    table.widest = table.widest.max(table.columns);
                    table.cell_bytes = 0;
                } else if is_more_than_text(tag) {
                    is_table[table.number] = false;
                }
            }
        }
        Token::End { name } => {
            if Tag::of(name) == Tag::Table {
                close(open.pop(), &mut is_table);
            }
        }
        Token::Text(text) => {
            if let Some(table) = open.last_mut() {
                table.cell_bytes += text.trim().len();
                if table.cell_bytes > CELL_BYTES_MAX {
                    is_table[table.number] = false;
                }
            }
        }
    });
    while !open.is_empty() {
        close(open.pop(), &mut is_table);
    }
    is_table
}

fn close(table: Option<Open>, is_table: &mut [bool]) {
    if let Some(table) = table.filter(|table| table.widest < 2) {
        is_table[table.number] = false;
    }
}

fn is_more_than_text(tag: Tag) -> bool {
    matches!(tag, Tag::Heading(_) | Tag::Ordered | Tag::Unordered | Tag::Pre | Tag::Quote)
}
