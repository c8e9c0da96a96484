//! How a text is taken apart to be found again. The database cuts at what is no letter, folds
//! accents and reduces English words to their stems. Two things it cannot do are done here, the
//! same way for texts and for questions: scripts that put no space between words are cut into
//! single signs, which a question then looks for in a row; and names such as `ErrorHandler` are
//! indexed with their parts.
//!
//! An index of three signs at a time would be the other way; it is larger and cannot
//! find words of two signs, which in Chinese most are.

/// More words than these make no question clearer.
const TERMS_MAX: usize = 16;
const QUESTION_BYTES_MAX: usize = 1_024;

/// Shorter beginnings of words are the beginning of too many.
const PREFIX_SIGNS_MIN: usize = 3;

/// What stands around a find, in bytes.
const AROUND: usize = 90;

/// Chinese, Japanese, Thai, Lao, Burmese and Khmer.
fn has_no_spaces(sign: char) -> bool {
    matches!(
        sign,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// The text as it is given to the index.
pub(crate) fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    for sign in text.chars() {
        if has_no_spaces(sign) {
            out.extend([' ', sign, ' ']);
        } else {
            out.push(sign);
        }
    }
    for word in text.split(|sign: char| !sign.is_alphanumeric()) {
        for part in parts(word) {
            out.push(' ');
            out.push_str(part);
        }
    }
    out
}

/// The parts of `ErrorHandler` and `parseURL`; nothing if there is only one.
fn parts(word: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let mut was_small = false;
    for (at, sign) in word.char_indices() {
        if sign.is_uppercase() && was_small {
            cuts.push(at);
        }
        was_small = sign.is_lowercase() || sign.is_numeric();
    }
    if cuts.len() == 1 {
        return Vec::new();
    }
    let ends = cuts.iter().skip(1).copied().chain([word.len()]);
    cuts.iter().zip(ends).map(|(from, to)| &word[*from..to]).collect()
}

/// The words of a question, each as the index has it. Everything that the database's language
/// of questions would obey is gone: only letters and digits are left, in quotes.
pub(crate) fn terms(question: &str) -> Vec<String> {
    let question = if question.len() > QUESTION_BYTES_MAX {
        let cut = &question[..question.floor_char_boundary(QUESTION_BYTES_MAX)];
        // Half a word would be another word.
        cut.rfind(char::is_whitespace).map_or(cut, |end| &cut[..end])
    } else {
        question
    };
    let mut terms: Vec<String> = Vec::new();
    for word in question.split(|sign: char| !sign.is_alphanumeric() && !has_no_spaces(sign)) {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let apart = has_no_spaces(first);
            let end = rest.find(|sign| has_no_spaces(sign) != apart).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            let term = if apart { spaced(run) } else { run.to_owned() };
            if !terms.contains(&term) {
                terms.push(term);
            }
            rest = after;
        }
    }
    terms.truncate(TERMS_MAX);
    terms
}

fn spaced(run: &str) -> String {
    run.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

/// Every word.
pub(crate) fn all(terms: &[String]) -> String {
    terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" AND ")
}

/// Some word, or the beginning of one.
pub(crate) fn any(terms: &[String]) -> String {
    let each = terms.iter().map(|term| match term.chars().count() {
        ..PREFIX_SIGNS_MIN => format!("\"{term}\""),
        _ => format!("\"{term}\" OR \"{term}\"*"),
    });
    each.collect::<Vec<_>>().join(" OR ")
}

/// The place in a text that a question is about, on one line.
pub(crate) fn snippet(text: &str, terms: &[String], question: &str) -> String {
    let (low, starts) = lowered(text);
    let wanted = terms.iter().map(|term| term.replace(' ', "").to_lowercase());
    let wanted: Vec<String> = wanted.chain([question.trim().to_lowercase()]).collect();
    let whole = wanted.iter().filter(|word| !word.is_empty()).filter_map(|word| low.find(word));
    // A stem: `running` is found by `runs`.
    let stems = wanted.iter().filter(|word| word.chars().count() > PREFIX_SIGNS_MIN);
    let stems = stems.filter_map(|word| {
        let (end, _) = word.char_indices().nth(PREFIX_SIGNS_MIN)?;
        low.find(&word[..end])
    });
    let found = whole.min().or_else(|| stems.min()).unwrap_or_default();
    let at = starts.get(found).copied().unwrap_or_default();
    let from = text.floor_char_boundary(at.saturating_sub(AROUND));
    let to = text.ceil_char_boundary((at + AROUND).min(text.len()));
    let line = text[from..to].split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{before}{line}{after}")
}

/// In lower case, with where each byte of it was: some signs are longer in lower case.
fn lowered(text: &str) -> (String, Vec<usize>) {
    let (mut low, mut starts) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (at, sign) in text.char_indices() {
        for sign in sign.to_lowercase() {
            starts.extend(std::iter::repeat_n(at, sign.len_utf8()));
            low.push(sign);
        }
    }
    (low, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_words() {
        let cases: &[(&str, &[&str])] = &[
            ("cargo test", &["cargo", "test"]),
            (
                "\"a\" AND b* NEAR(c) col:d ^e -f",
                &["a", "AND", "b", "NEAR", "c", "col", "d", "e", "f"],
            ),
            ("漢字です", &["漢 字 で す"]),
            ("用Rust写", &["用", "Rust", "写"]),
            ("*** \"' ;--", &[]),
            ("", &[]),
            ("same same", &["same"]),
        ];
        for (question, expected) in cases {
            assert_eq!(terms(question), *expected, "{question}");
        }
        assert_eq!(terms(&"word1 x2 ".repeat(500)).len(), 2);
        let many: Vec<String> = (0..99).map(|number| format!("w{number}")).collect();
        assert_eq!(terms(&many.join(" ")).len(), TERMS_MAX);
    }

    #[test]
    fn texts_are_indexed_with_their_parts() {
        assert_eq!(indexed("parseURL ok"), "parseURL ok parse URL");
        assert_eq!(indexed("漢字"), " 漢  字 ");
        assert_eq!(indexed("plain words"), "plain words");
    }

    #[test]
    fn a_snippet_shows_the_place() {
        let text = format!("{} the Needle is here {}", "a ".repeat(200), "z ".repeat(200));
        let shown = snippet(&text, &["needle".into()], "needle");
        assert!(shown.contains("Needle is here"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.len() < 250, "{shown}");
        assert_eq!(snippet("short\ntext", &["nowhere".into()], "nowhere"), "short text");
        assert_eq!(snippet("İİİİ x", &["x".into()], "x"), "İİİİ x");
    }
}
