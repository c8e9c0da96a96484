//! Bytes of a program as text that people and models can read.

/// What becomes of escape sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// A program that writes them into a pipe was told to.
    Keep,
    /// In a terminal every program writes them, and they say nothing.
    Strip,
}

/// Invalid text and zeros get a visible sign. Of a line that was written over with carriage
/// returns, as progress bars do, only what was written last stays.
pub(crate) fn clean(bytes: &[u8], escapes: Escapes) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = match escapes {
        Escapes::Keep => text.replace('\0', "␀"),
        Escapes::Strip => strip(&text),
    };
    let mut cleaned = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        cleaned.push_str(line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default());
        cleaned.push_str(end);
    }
    cleaned
}

/// Bytes at the start that belong to a sign whose first byte was cut off.
pub(crate) fn torn(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

/// Bytes at the end that begin a sign whose last byte has not come yet.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    let end = bytes.len().saturating_sub(4);
    match std::str::from_utf8(&bytes[end + torn(&bytes[end..])..]) {
        Err(error) if error.error_len().is_none() => {
            bytes.len() - end - torn(&bytes[end..]) - error.valid_up_to()
        }
        Ok(_) | Err(_) => 0,
    }
}

fn strip(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\u{1b}' => skip_escape(&mut signs),
            '\0' => plain.push('␀'),
            '\u{8}' => {
                // Written over, as manual pages do for bold; never into the line before.
                if plain.ends_with(|last| last != '\n' && last != '\r') {
                    plain.pop();
                }
            }
            '\n' | '\r' | '\t' => plain.push(sign),
            sign if sign.is_control() => {}
            sign => plain.push(sign),
        }
    }
    plain
}

fn skip_escape(signs: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let Some(kind) = signs.next() else { return };
    match kind {
        '[' => {
            while signs.next_if(|sign| matches!(sign, ' '..='?')).is_some() {}
            signs.next_if(|sign| matches!(sign, '@'..='~'));
        }
        // A string, ended by a bell or by escape and backslash. One that does not end on its
        // line has lost its end; the line after it is text again.
        ']' | 'P' | 'X' | '^' | '_' => {
            while let Some(sign) = signs.next_if(|sign| *sign != '\n') {
                if sign == '\u{7}' {
                    break;
                }
                if sign == '\u{1b}' {
                    signs.next_if_eq(&'\\');
                    break;
                }
            }
        }
        ' '..='/' => {
            while signs.next_if(|sign| matches!(sign, ' '..='/')).is_some() {}
            signs.next_if(|sign| matches!(sign, '0'..='~'));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_text() {
        let cases: &[(&[u8], &str, &str)] = &[
            (b"plain\n", "plain\n", "plain\n"),
            (b"a\0b", "a␀b", "a␀b"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}", "\u{fffd}\u{fffd}"),
            (b"one\r\ntwo\r\n", "one\ntwo\n", "one\ntwo\n"),
            (b" 1%\r 50%\r100%\ndone", "100%\ndone", "100%\ndone"),
            (b" 1%\r 50%\r", " 50%", " 50%"),
            (b"\r\r\n", "\n", "\n"),
            (b"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m", "red"),
            (b"\x1b]0;title\x07x\x1b]8;;u\x1b\\y", "\x1b]0;title\x07x\x1b]8;;u\x1b\\y", "xy"),
            (b"\x1b]0;no end\nx", "\x1b]0;no end\nx", "\nx"),
            (b"\x1b(Bx\x1b=y\x1b", "\x1b(Bx\x1b=y\x1b", "xy"),
            (b"b\x08bo\x08ol\x08ld\n\x08x", "b\x08bo\x08ol\x08ld\n\x08x", "bold\nx"),
            (b"bell\x07", "bell\x07", "bell"),
            (b"10%\x1b[K\r20%\x1b[K\n", "20%\x1b[K\n", "20%\n"),
        ];
        for (bytes, kept, stripped) in cases {
            assert_eq!(clean(bytes, Escapes::Keep), *kept);
            assert_eq!(clean(bytes, Escapes::Strip), *stripped);
        }
    }

    #[test]
    fn signs_are_not_torn() {
        let cases: &[(&[u8], usize, usize)] = &[
            (b"", 0, 0),
            (b"abc", 0, 0),
            ("é".as_bytes(), 0, 0),
            (&"é".as_bytes()[1..], 1, 0),
            (&"aé".as_bytes()[..2], 0, 1),
            (&"a😀".as_bytes()[..4], 0, 3),
            (&"😀".as_bytes()[1..], 3, 0),
            ("😀é".as_bytes(), 0, 0),
            (b"abc\xff", 0, 0),
        ];
        for (bytes, start, end) in cases {
            assert_eq!((torn(bytes), unfinished(bytes)), (*start, *end), "{bytes:x?}");
        }
    }
}
