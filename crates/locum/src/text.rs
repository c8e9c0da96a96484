//! How things look: what models and people wrote is made harmless, rows are aligned, money and
//! time are readable. JSON keeps every character, but spells out those a terminal would obey.

use std::fmt::Write as _;

use locum_kernel::Time;
use locum_runtime::clock::rfc3339;
use serde_json::Value;

use crate::screen::{Ink, cut, cut_end, out};

/// Text that moves no cursor, sets no colour and turns no line around. Lines stay lines.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\u{1b}' => skip_sequence(&mut signs),
            '\u{9b}' => skip_until_final(&mut signs),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut signs),
            '\n' | '\t' => out.push(sign),
            sign if is_obeyed(sign) => {}
            sign => out.push(sign),
        }
    }
    out
}

type Signs<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// After an escape: `[` begins a sequence, `]PX^_` a string, anything else is one sign.
fn skip_sequence(signs: &mut Signs<'_>) {
    match signs.peek() {
        Some('[') => {
            signs.next();
            skip_until_final(signs);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            signs.next();
            skip_string(signs);
        }
        Some(' '..='/') => {
            while signs.next_if(|sign| (' '..='/').contains(sign)).is_some() {}
            signs.next_if(|sign| ('0'..='~').contains(sign));
        }
        Some('0'..='~') => drop(signs.next()),
        Some(_) | None => {}
    }
}

fn skip_until_final(signs: &mut Signs<'_>) {
    while signs.next_if(|sign| (' '..='?').contains(sign)).is_some() {}
    signs.next_if(|sign| ('@'..='~').contains(sign));
}

/// Until the bell, the string terminator or the end of the line: a string that is never closed
/// must not swallow everything after it.
fn skip_string(signs: &mut Signs<'_>) {
    while let Some(sign) = signs.next_if(|sign| *sign != '\n') {
        match sign {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                signs.next_if(|sign| *sign == '\\');
                return;
            }
            _ => {}
        }
    }
}

/// Control characters, and those that change the direction of what follows.
fn is_obeyed(sign: char) -> bool {
    let turns = matches!(
        sign,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    );
    turns || sign.is_control()
}

/// The same on one line, at most so many characters.
pub(crate) fn row(text: &str, max: usize) -> String {
    let clean = clean(text);
    let words = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = cut_end(&words);
    if words.chars().count() <= max {
        return words.into_owned();
    }
    let cut = cut();
    let kept: String = words.chars().take(max.saturating_sub(cut.chars().count())).collect();
    format!("{kept}{cut}")
}

/// Every line of a text, set in.
pub(crate) fn block(text: &str, indent: &str) -> String {
    let clean = clean(text);
    let lines = clean.lines().map(|line| format!("{indent}{line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Rows under their names, as wide as they must be. The last column is not filled up.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    painted(head, rows, |_, _| None)
}

/// The same, with the ink of each cell, by its row and column. Colour takes no room.
pub(crate) fn painted(
    head: &[&str],
    rows: &[Vec<String>],
    ink: impl Fn(usize, usize) -> Option<Ink>,
) -> String {
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(wide).collect();
    let named: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let lines = std::iter::once(&named).chain(rows).enumerate().map(|(at, row)| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let ink = at.checked_sub(1).and_then(|at| ink(at, column));
            let shown = ink.map_or_else(|| cell.clone(), |ink| out(ink, cell));
            let room = width.saturating_sub(cell.chars().count());
            format!("{shown}{:room$}", "")
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Dollars with two digits, or six where two would lie; a price that is not known is no price.
pub(crate) fn money(micro_usd: u64, known: bool) -> String {
    if !known {
        return "?".to_owned();
    }
    let (whole, part) = (micro_usd / 1_000_000, micro_usd % 1_000_000);
    match part % 10_000 {
        0 => format!("${whole}.{:02}", part / 10_000),
        _ => format!("${whole}.{part:06}"),
    }
}

/// The same as a number; through text, because text is exact and a cast is not.
pub(crate) fn usd(micro_usd: u64, known: bool) -> Value {
    let text = format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000);
    let number = text.parse::<f64>().ok().filter(|_| known);
    number.map_or(Value::Null, Value::from)
}

pub(crate) fn span(ms: u64) -> String {
    match ms / 1_000 {
        0 => format!("{ms}ms"),
        s @ 1..=59 => format!("{s}.{}s", ms % 1_000 / 100),
        s @ 60..=3_599 => format!("{}m{:02}s", s / 60, s % 60),
        s => format!("{}h{:02}m", s / 3_600, s / 60 % 60),
    }
}

/// `2026-01-31 12:00:00`, in UTC.
pub(crate) fn moment(at: Time) -> String {
    rfc3339(at).get(..19).unwrap_or_default().replace('T', " ")
}

/// A word as a shell takes it.
pub(crate) fn quote(word: &str) -> String {
    let word = clean(word);
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:@%+=,".contains(sign);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// JSON text whose value is exact and which no terminal obeys.
pub(crate) fn json(value: &Value) -> String {
    spelled_out(value.to_string())
}

pub(crate) fn spelled_out(text: String) -> String {
    if !text.contains(is_obeyed) {
        return text;
    }
    // Such a sign can only stand inside a string.
    let mut out = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if is_obeyed(sign) {
            let _ = write!(out, "\\u{:04x}", u32::from(sign));
        } else {
            out.push(sign);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        let cases = [
            ("plain\ttext\nand more", "plain\ttext\nand more"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]52;c;ZXZpbA==\nnext", "\nnext"),
            ("\u{9b}2Jgone\u{9d}0;t\u{9c}x", "gonex"),
            ("over\rwrite\u{8}\u{7f}\u{0}", "overwrite"),
            ("\u{202e}txt.exe\u{2066}\u{200f}", "txt.exe"),
            ("\u{1b}(Bset \u{1b}cfull", "set full"),
            ("ends in \u{1b}", "ends in "),
            ("ends in \u{1b}[", "ends in "),
            ("é ü 漢字 🦀", "é ü 漢字 🦀"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{9b}b\u{202e}c\u{7f}\u{1b}\n";
        let written = json(&text.into());
        assert!(!written.contains(is_obeyed), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }

    #[test]
    fn money_time_and_words() {
        assert_eq!(money(0, true), "$0.00");
        assert_eq!(money(0, false), "?");
        assert_eq!(money(1_230_000, true), "$1.23");
        assert_eq!(money(1_234, true), "$0.001234");
        assert_eq!(usd(1_500_000, true), Value::from(1.5));
        assert_eq!(usd(1_500_000, false), Value::Null);
        let spans = [(7, "7ms"), (1_250, "1.2s"), (61_000, "1m01s"), (3_660_000, "1h01m")];
        for (ms, text) in spans {
            assert_eq!(span(ms), text);
        }
        assert_eq!(quote("run_1"), "run_1");
        assert_eq!(quote("it's"), "'it'\\''s'");
        assert_eq!(row("a\n  b\tc", 4), "a b…");
    }
}
