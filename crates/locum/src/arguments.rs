//! `$ARGUMENTS` in the text of a skill: what it was called with, as the format's own tool puts it.

use locum_definitions::limits::VALUE_BYTES_MAX;

const NAME: &str = "$ARGUMENTS";

/// The text with the message in every place that names it. A text full of such places must not
/// grow without end: what would not fit stays as it is.
pub(crate) fn filled(text: &str, message: &str) -> String {
    let most = usize::try_from(VALUE_BYTES_MAX).unwrap_or(usize::MAX);
    let mut full = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(NAME) {
        let (before, after) = (&rest[..at], &rest[at + NAME.len()..]);
        full.push_str(before);
        // `$ARGUMENTS[0]` and `$ARGUMENTS_X` are other names.
        let is_longer = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '[');
        let fits = full.len() + message.len() + after.len() <= most;
        let is_whole = !after.starts_with(is_longer);
        full.push_str(if is_whole && fits { message } else { NAME });
        rest = after;
    }
    full.push_str(rest);
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_stands_where_it_is_named() {
        let cases = [
            ("do $ARGUMENTS now", "it", "do it now"),
            ("$ARGUMENTS, $ARGUMENTS", "a $ARGUMENTS", "a $ARGUMENTS, a $ARGUMENTS"),
            ("$ARGUMENTS", "", ""),
            ("$ARGUMENTS[0] $ARGUMENTS_X $ARGUMENT", "x", "$ARGUMENTS[0] $ARGUMENTS_X $ARGUMENT"),
            ("nothing", "x", "nothing"),
        ];
        for (text, message, expected) in cases {
            assert_eq!(filled(text, message), expected, "{text}");
        }
        let most = usize::try_from(VALUE_BYTES_MAX).unwrap();
        let full = filled(&NAME.repeat(10_000), &"m".repeat(100_000));
        assert!(full.len() <= most && full.ends_with(NAME), "{}", full.len());
    }
}
