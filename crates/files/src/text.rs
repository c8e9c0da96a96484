//! Bytes as text and back, so that what was not edited stays byte for byte: UTF-8 with or without
//! a mark, UTF-16 with one, and Latin-1 (as Windows extends it) for whatever else looks like text.

use encoding_rs::WINDOWS_1252;

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_LE_MARK: &[u8] = &[0xff, 0xfe];
const UTF16_BE_MARK: &[u8] = &[0xfe, 0xff];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
    Latin1,
}

/// How its lines end. Of a text with both kinds each line keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Lf,
    CrLf,
    Mixed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Where all lines end in CR LF, they end in LF here.
    pub(crate) body: String,
    pub(crate) encoding: Encoding,
    pub(crate) ending: Ending,
}

/// Why a text cannot be written in its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It has a letter that the encoding does not have.
    Letter(char),
    /// It would be read as another text, or as none.
    Ambiguous,
}

impl Encoding {
    pub(crate) fn say(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf8Marked => "UTF-8 with byte order mark",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Latin1 => "Latin-1",
        }
    }
}

impl Text {
    /// None: this is not text.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Text> {
        let (encoding, body) = decode(bytes)?;
        let ending = ending(&body);
        let body = if ending == Ending::CrLf { body.replace("\r\n", "\n") } else { body };
        Some(Text { body, encoding, ending })
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, Misfit> {
        let ended;
        let body = match self.ending {
            Ending::CrLf => {
                ended = self.body.replace('\n', "\r\n");
                &ended
            }
            Ending::Lf | Ending::Mixed => &self.body,
        };
        let units = |write: fn(u16) -> [u8; 2], mark: &[u8]| {
            let units = body.encode_utf16().flat_map(write);
            mark.iter().copied().chain(units).collect()
        };
        let bytes = match self.encoding {
            Encoding::Utf8 => body.clone().into_bytes(),
            Encoding::Utf8Marked => [UTF8_MARK, body.as_bytes()].concat(),
            Encoding::Utf16Le => units(u16::to_le_bytes, UTF16_LE_MARK),
            Encoding::Utf16Be => units(u16::to_be_bytes, UTF16_BE_MARK),
            Encoding::Latin1 => latin1(body).map_err(Misfit::Letter)?,
        };
        match decode(&bytes) {
            Some((_, read)) if read == *body => Ok(bytes),
            Some(_) | None => Err(Misfit::Ambiguous),
        }
    }

    /// What somebody who edits it should know, if it is not plain.
    pub(crate) fn remark(&self) -> Option<String> {
        let mut remarks = Vec::new();
        if self.encoding != Encoding::Utf8 {
            remarks.push(self.encoding.say());
        }
        match self.ending {
            Ending::Lf => {}
            Ending::CrLf => remarks.push("lines end in CR LF"),
            Ending::Mixed => remarks.push("some lines end in CR LF, others in LF"),
        }
        let kept = || format!("{}; edit keeps it so", remarks.join(", "));
        (!remarks.is_empty()).then(kept)
    }
}

fn decode(bytes: &[u8]) -> Option<(Encoding, String)> {
    if let Some(rest) = bytes.strip_prefix(UTF8_MARK) {
        let body = String::from_utf8(rest.to_vec()).ok()?;
        return (!body.contains('\0')).then_some((Encoding::Utf8Marked, body));
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_LE_MARK) {
        return Some((Encoding::Utf16Le, wide(rest, u16::from_le_bytes)?));
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_BE_MARK) {
        return Some((Encoding::Utf16Be, wide(rest, u16::from_be_bytes)?));
    }
    if bytes.contains(&0) {
        return None;
    }
    match str::from_utf8(bytes) {
        Ok(body) => Some((Encoding::Utf8, body.to_owned())),
        // Programs and packed data are full of control characters; text is not.
        Err(_) if bytes.iter().any(|byte| is_odd(*byte)) => None,
        Err(_) => {
            let (body, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
            Some((Encoding::Latin1, body.into_owned()))
        }
    }
}

fn is_odd(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b)
}

fn wide(bytes: &[u8], read: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let body: String =
        char::decode_utf16(pairs.iter().map(|pair| read(*pair))).collect::<Result<_, _>>().ok()?;
    (!body.contains('\0')).then_some(body)
}

fn latin1(body: &str) -> Result<Vec<u8>, char> {
    let mut letter = [0; 4];
    let (bytes, _, replaced) = WINDOWS_1252.encode(body);
    if !replaced {
        return Ok(bytes.into_owned());
    }
    let mut letters = body.chars();
    let missing = letters.find(|sign| WINDOWS_1252.encode(sign.encode_utf8(&mut letter)).2);
    Err(missing.unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn ending(body: &str) -> Ending {
    // Most texts have none, and finding that out is quick.
    if !body.contains('\r') {
        return Ending::Lf;
    }
    let lf = body.matches('\n').count();
    let crlf = body.matches("\r\n").count();
    match crlf {
        0 => Ending::Lf,
        // `\r\r\n` would come back as it was, yet an edit might see `\r\n` where there is none.
        _ if crlf == lf && !body.contains("\r\r\n") => Ending::CrLf,
        _ => Ending::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (&'a [u8], Option<(Encoding, Ending, &'a str)>);

    #[test]
    fn what_is_text_and_what_comes_back() {
        let utf16 = |text: &str, write: fn(u16) -> [u8; 2], mark: &[u8]| {
            [mark, &text.encode_utf16().flat_map(write).collect::<Vec<_>>()].concat()
        };
        let le = utf16("a\r\nü𝄞\r\n", u16::to_le_bytes, UTF16_LE_MARK);
        let be = utf16("a\nü", u16::to_be_bytes, UTF16_BE_MARK);
        let cases: &[Case<'_>] = &[
            (b"", Some((Encoding::Utf8, Ending::Lf, ""))),
            (b"a\nb", Some((Encoding::Utf8, Ending::Lf, "a\nb"))),
            (b"a\r\nb\r\n", Some((Encoding::Utf8, Ending::CrLf, "a\nb\n"))),
            (b"a\r\nb\n", Some((Encoding::Utf8, Ending::Mixed, "a\r\nb\n"))),
            (b"a\r\r\n", Some((Encoding::Utf8, Ending::Mixed, "a\r\r\n"))),
            (b"a\rb", Some((Encoding::Utf8, Ending::Lf, "a\rb"))),
            (b"\xef\xbb\xbfa\n", Some((Encoding::Utf8Marked, Ending::Lf, "a\n"))),
            (&le, Some((Encoding::Utf16Le, Ending::CrLf, "a\nü𝄞\n"))),
            (&be, Some((Encoding::Utf16Be, Ending::Lf, "a\nü"))),
            (b"caf\xe9 \x80\x81\n", Some((Encoding::Latin1, Ending::Lf, "café €\u{81}\n"))),
            (b"\xff\xfe\x00\xd8", None),
            (b"\xff\xfea", None),
            (b"a\0b", None),
            (b"\x7fELF\x02\xff", None),
            (b"\x1b[1mbold\n", Some((Encoding::Utf8, Ending::Lf, "\u{1b}[1mbold\n"))),
        ];
        for (bytes, expected) in cases {
            let text = Text::decode(bytes);
            let found = text.as_ref().map(|text| (text.encoding, text.ending, &*text.body));
            assert_eq!(found, *expected, "{bytes:x?}");
            if let Some(text) = text {
                assert_eq!(text.encode().unwrap(), *bytes, "{bytes:x?}");
            }
        }
        let mut text = Text::decode(b"caf\xe9").unwrap();
        text.body.push('木');
        assert_eq!(text.encode(), Err(Misfit::Letter('木')));
        text.body = "Ã©".to_owned();
        assert_eq!(text.encode(), Err(Misfit::Ambiguous));
    }
}
