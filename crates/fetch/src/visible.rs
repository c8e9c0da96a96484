//! What a person would see. A model also reads what nobody sees, and whoever hides words in a
//! page hides them for it.

/// Letters that are only tags, marks of no width, marks that turn a line around, and what a
/// terminal would obey. The joiners of emoji and of Persian words stay.
pub(crate) fn is_invisible(sign: char) -> bool {
    match sign {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        sign => sign.is_control(),
    }
}

pub(crate) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|sign| !is_invisible(*sign)).collect()
}

/// A `style` that shows nothing. Style sheets are not read: what hides a class is not known here.
pub(crate) fn hides(style: &str) -> bool {
    let mut plain = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.retain(|sign| !sign.is_whitespace());
    plain.make_ascii_lowercase();
    plain.split(';').any(|one| {
        let (name, value) = one.split_once(':').unwrap_or_default();
        let value = value.trim_end_matches("!important");
        match name {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" | "font-size" => is_nothing(value),
            _ => false,
        }
    })
}

fn is_nothing(value: &str) -> bool {
    let number = value.trim_end_matches(|sign: char| sign.is_ascii_alphabetic() || sign == '%');
    number.parse::<f64>().is_ok_and(|number| number <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_hide() {
        let cases = [
            ("display:none", true),
            ("Display : NONE !important", true),
            ("color:red;display:none;", true),
            ("dis/**/play:no/* x */ne", true),
            ("display:/* none", false),
            ("visibility:hidden", true),
            ("opacity:0", true),
            ("opacity: 0.0", true),
            ("opacity:.5", false),
            ("font-size:0px", true),
            ("font-size:0", true),
            ("font-size:10px", false),
            ("display:block", false),
            ("", false),
            ("none", false),
            ("background:url(display:none)", false),
        ];
        for (style, expected) in cases {
            assert_eq!(hides(style), expected, "{style}");
        }
    }

    #[test]
    fn invisible_signs_are_taken_out() {
        let cases = [
            ("plain", "plain"),
            ("a\u{e0069}\u{e0067}b", "ab"),
            ("a\u{200b}\u{2060}\u{feff}b", "ab"),
            ("a\u{202e}b\u{2066}", "ab"),
            ("a\u{e0100}\u{fe00}b", "ab"),
            ("👩\u{200d}👧 ❤\u{fe0f}", "👩\u{200d}👧 ❤\u{fe0f}"),
            ("a\r\nb\rc\u{0}\u{1b}[0m", "a\nb\nc[0m"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }
}
