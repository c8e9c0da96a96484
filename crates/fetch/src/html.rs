//! HTML as Markdown, made from its tokens in one go, without a tree: links, headings, lists,
//! tables and code are kept; scripts, navigation, hidden elements and comments are not. Depth
//! costs a line in a list and no stack, and no page makes more text than is read of it.
//!
//! In reading order: tokens, what tags mean (`tag`), which tables are tables (`tables`), the text
//! that grows (`out`), and the walk from one to the other (`walk`).

mod out;
mod tables;
mod tag;
mod token;
mod walk;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub title: Option<String>,
    pub text: String,
    /// There would have been more.
    pub is_cut: bool,
}

/// Links are made whole with the address of the page.
#[must_use]
pub fn to_markdown(html: &str, address: &str) -> Read {
    let tables = tables::judge(html);
    walk::walk(html, address, tables)
}
