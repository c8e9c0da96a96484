//! Bytes as text, in the charset that the server names, the page names, or that shows.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page says it, if it does.
const LOOKED_AT: usize = 1_024;

/// A mark at the beginning counts most, then the server's word, then the page's. What says
/// nothing and is no UTF-8 is what old western pages are written in.
pub(crate) fn decode(bytes: &[u8], label: Option<&str>) -> String {
    let named = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let named = named.or_else(|| in_page(bytes));
    let encoding = named.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        // Cut in the middle of a sign.
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        Ok(_) | Err(_) => UTF_8,
    });
    let (text, _, _) = encoding.decode(bytes);
    text.into_owned()
}

/// `<meta charset=…>` or the longer way to say it: both have the word and a name behind it.
fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(LOOKED_AT)].to_ascii_lowercase();
    let meta = find(start, b"<meta")?;
    let at = meta + find(&start[meta..], b"charset=")? + b"charset=".len();
    let rest = start[at..].trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
    let name: Vec<u8> = rest.iter().take_while(is_name).copied().collect();
    let encoding = Encoding::for_label(&name)?;
    // A page that could be read so far is not in two bytes for each letter.
    Some(encoding.output_encoding())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
