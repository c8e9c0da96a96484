//! Text that models, tools and channels wrote, made harmless for a terminal: no escape sequence,
//! no control character and no invisible mark of direction reaches the screen.

use std::fmt::Write as _;

/// New lines and tabs stay; everything else that a terminal would obey is shown as its number.
pub(crate) fn clean(text: &str) -> String {
    if text.chars().all(is_harmless) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_harmless(letter) {
            shown.push(letter);
        } else {
            let _ = write!(shown, "‹U+{:04X}›", u32::from(letter));
        }
    }
    shown
}

fn is_harmless(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        // Marks of direction, joiners of width zero, and tags.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => false,
        other => !other.is_control(),
    }
}

/// One row of at most `width` characters.
pub(crate) fn row(text: &str, width: usize) -> String {
    let line: String =
        clean(text).chars().map(|it| if it.is_whitespace() { ' ' } else { it }).collect();
    if line.chars().count() <= width {
        return line;
    }
    let cut: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        assert_eq!(clean("a\x1b[2Jb\u{202e}c\u{9b}d\te\n"), "a‹U+001B›[2Jb‹U+202E›c‹U+009B›d\te\n");
        assert_eq!(row("one\ntwo", 5), "one …");
    }
}
