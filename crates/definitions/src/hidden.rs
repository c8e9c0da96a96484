//! Characters that a person reading a definition does not see and a model does.

use crate::problem::{Place, Problems};
use crate::tree::Node;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// Can hold whole sentences, or show a line in another order than it is read.
    Refused,
    /// Seen in honest text too; worth a word.
    Told,
}

/// What the character is, if it is one of them.
fn hidden(sign: char, before: Option<char>) -> Option<(Harm, &'static str)> {
    match sign {
        '\u{E0000}'..='\u{E007F}' => Some((Harm::Refused, "a tag character")),
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            Some((Harm::Refused, "a text direction control"))
        }
        '\u{FFF9}'..='\u{FFFB}' => Some((Harm::Refused, "an annotation control")),
        // After an ideograph they choose its shape; anywhere else they can only hide something.
        '\u{E0100}'..='\u{E01EF}' if !before.is_some_and(is_ideograph) => {
            Some((Harm::Refused, "a variation selector"))
        }
        '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{180E}' | '\u{FEFF}' => {
            Some((Harm::Told, "a character of no width"))
        }
        _ => None,
    }
}

fn is_ideograph(sign: char) -> bool {
    matches!(sign, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The first of each kind, with its code point. `start` is where the text begins.
pub(crate) fn check(text: &str, start: Place, problems: &Problems) {
    if text.is_ascii() {
        return;
    }
    let mut told = Vec::new();
    let mut before = None;
    for (byte, sign) in text.char_indices() {
        if let Some((harm, name)) = hidden(sign, before)
            && !told.contains(&name)
        {
            told.push(name);
            report(text, byte, (sign, harm, name), start, problems);
        }
        before = Some(sign);
    }
}

fn report(
    text: &str,
    byte: usize,
    (sign, harm, name): (char, Harm, &str),
    start: Place,
    problems: &Problems,
) {
    let inside = Place::of_byte(text, byte);
    let line = start.line + inside.line - 1;
    let column = if inside.line == 1 { start.column + inside.column - 1 } else { inside.column };
    let what = format!("U+{:04X} is {name}", u32::from(sign));
    let why = "nobody sees it and the model reads it";
    let at = Place { line, column };
    match harm {
        Harm::Refused => problems.error(at, what, why, "delete it"),
        Harm::Told => problems.warn(at, what, why, "delete it"),
    }
}

/// `"\u202e"` in quotes is not seen in the file's text.
pub(crate) fn check_escapes(node: &Node, problems: &Problems) {
    node.each_text(&mut |text, place| {
        if refused(text).is_some() && !problems.has_errors() {
            check(text, place, problems);
        }
    });
}

/// The code point of the first one that is refused.
pub(crate) fn refused(text: &str) -> Option<char> {
    if text.is_ascii() {
        return None;
    }
    let mut before = None;
    text.chars().find(|sign| {
        let found = matches!(hidden(*sign, before), Some((Harm::Refused, _)));
        before = Some(*sign);
        found
    })
}
