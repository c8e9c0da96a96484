//! Results without their timings. A command that says how long it took, or when, says something
//! else each time although nothing has changed.

use alloc::vec::Vec;

/// What follows a number that is a length of time.
const UNITS: [&[u8]; 24] = [
    b"ns",
    b"us",
    b"\xc2\xb5s",
    b"\xce\xbcs",
    b"ms",
    b"msec",
    b"msecs",
    b"millisecond",
    b"milliseconds",
    b"s",
    b"sec",
    b"secs",
    b"second",
    b"seconds",
    b"m",
    b"min",
    b"mins",
    b"minute",
    b"minutes",
    b"h",
    b"hr",
    b"hrs",
    b"hour",
    b"hours",
];

/// The text with a mark in the place of every length of time, date and time of day.
pub(crate) fn without(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut before = b' ';
    while let Some(&byte) = bytes.get(at) {
        // Within a word or behind a colon (`main.rs:12:34`) it is something else.
        let starts = byte.is_ascii_digit() && !before.is_ascii_alphanumeric();
        let starts = starts && !matches!(before, b'_' | b':' | b'.' | b'-');
        let length =
            if starts { moment(&bytes[at..]).or_else(|| span(&bytes[at..])) } else { None };
        if let Some(length) = length {
            kept.push(b'#');
            at += length;
            before = b'#';
            continue;
        }
        kept.push(byte);
        before = byte;
        at += 1;
    }
    kept
}

/// `12:34:56.7`, `2026-11-15`, `1763233189`: how many bytes of the text are one, if it begins so.
fn moment(text: &[u8]) -> Option<usize> {
    let shapes: [&[u8]; 3] = [b"dddd-dd-ddTdd:dd:dd", b"dd:dd:dd", b"dddd-dd-dd"];
    let fits = |shape: &&&[u8]| {
        let fit = |(sign, byte): (&u8, &u8)| match sign {
            b'd' => byte.is_ascii_digit(),
            other => other == byte,
        };
        text.len() >= shape.len() && shape.iter().zip(text).all(fit)
    };
    let whole = digits(text);
    let since_1970 = matches!(whole, 10 | 13) && text.first() == Some(&b'1');
    let length = match shapes.iter().find(fits) {
        Some(shape) => shape.len(),
        None if since_1970 => whole,
        None => return None,
    };
    let length = length + fraction(&text[length..]);
    ends(&text[length..], b"Z").then_some(length)
}

/// `3.2 seconds`, `12ms`, `1m30s`, `0m0.012s`.
fn span(text: &[u8]) -> Option<usize> {
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let number = digits(rest);
        let number = number + fraction(&rest[number..]);
        let blank = usize::from(length == 0 && rest.get(number) == Some(&b' '));
        let after = &rest[number + blank..];
        let unit = after.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte > 127);
        let unit = &after[..unit.count()];
        if !UNITS.contains(&unit) {
            return None;
        }
        length += number + blank + unit.len();
        if digits(&text[length..]) == 0 {
            return ends(&text[length..], b"").then_some(length);
        }
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn fraction(text: &[u8]) -> usize {
    let more = text.get(1..).map_or(0, digits);
    if matches!(text.first(), Some(b'.' | b',')) && more > 0 { more + 1 } else { 0 }
}

/// Nothing of the same word follows, but for these.
fn ends(rest: &[u8], but: &[u8]) -> bool {
    let goes_on =
        |byte: &u8| (byte.is_ascii_alphanumeric() || *byte == b'_') && !but.contains(byte);
    !rest.first().is_some_and(goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn timings_are_left_out_and_nothing_else() {
        let cases = [
            (
                "test result: ok. 3 passed; finished in 1.23s",
                "test result: ok. 3 passed; finished in #",
            ),
            ("Finished `dev` in 12m 03s", "Finished `dev` in # #"),
            ("real\t0m0.012s", "real\t#"),
            ("took 15 ms, then 3 seconds.", "took #, then #."),
            ("12µs 4,5 s 1h30m", "# # #"),
            ("2026-11-15T12:34:56.789Z ok", "#Z ok"),
            ("[12:34:56] ok at 2026-11-15 01:02:03", "[#] ok at # #"),
            ("since 1763233189 and 1763233189123", "since # and #"),
            ("1 failed", "1 failed"),
            ("src/main.rs:12:34: error", "src/main.rs:12:34: error"),
            ("12:34 is no time of day", "12:34 is no time of day"),
            (
                "v1.2.3 of 5 shards, 3 mangoes, 7 small, x5s",
                "v1.2.3 of 5 shards, 3 mangoes, 7 small, x5s",
            ),
            ("10.0.0.1 4s_x 0x1763233189", "10.0.0.1 4s_x 0x1763233189"),
            ("2763233189 5 %", "2763233189 5 %"),
            ("", ""),
        ];
        for (text, expected) in cases {
            let found = String::from_utf8(without(text)).expect("text");
            assert_eq!(found, expected, "{text}");
        }
    }
}
