//! What a file is that is not text, by its first bytes, and how large a picture is.

/// Larger pictures are named and not shown.
pub(crate) const IMAGE_BYTES_MAX: u64 = 5 << 20;

/// A picture for a model that can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: &'static str,
    /// None: its header does not say.
    pub size: Option<(u32, u32)>,
    pub bytes: Vec<u8>,
}

/// Its media type, if the bytes begin like a picture.
pub(crate) fn picture(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

const KINDS: &[(&[u8], &str)] = &[
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive, or a format made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x7fELF", "ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"MZ", "Windows program or library"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"wOF2", "web font"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"BM", "BMP picture"),
    (b"II*\0", "TIFF picture"),
    (b"MM\0*", "TIFF picture"),
];

pub(crate) fn kind(head: &[u8]) -> &'static str {
    let known = KINDS.iter().find(|(magic, _)| head.starts_with(magic));
    known.map_or("binary data", |(_, kind)| kind)
}

pub(crate) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    match picture(bytes)? {
        "image/png" => Some((be32(bytes, 16)?, be32(bytes, 20)?)),
        "image/gif" => Some((le16(bytes, 6)?, le16(bytes, 8)?)),
        "image/webp" => webp(bytes),
        _ => jpeg(bytes),
    }
}

/// Segments follow one another until the one that starts a frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let (&mark, &code) = (bytes.get(at)?, bytes.get(at + 1)?);
        match (mark, code) {
            (0xff, 0xff) => at += 1,
            (0xff, 0xc4 | 0xc8 | 0xcc) => at += 2 + be16(bytes, at + 2)? as usize,
            (0xff, 0xc0..=0xcf) => return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?)),
            (0xff, 0xd0..=0xd9 | 0x01) => at += 2,
            (0xff, _) => at += 2 + be16(bytes, at + 2)? as usize,
            _ => return None,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        b"VP8L" => {
            let packed = le16(bytes, 21)? | (le16(bytes, 23)? << 16);
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => {
            let three = |at| Some(le16(bytes, at)? | (u32::from(*bytes.get(at + 2)?) << 16));
            Some((three(24)? + 1, three(27)? + 1))
        }
        _ => None,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    let two = bytes.get(at..at + 2)?;
    Some(u32::from(two[0]) << 8 | u32::from(two[1]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(be16(bytes, at)? << 16 | be16(bytes, at + 2)?)
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    let two = bytes.get(at..at + 2)?;
    Some(u32::from(two[1]) << 8 | u32::from(two[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (&'a [u8], Option<&'a str>, Option<(u32, u32)>);

    #[test]
    fn pictures_and_their_sizes() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x06";
        let gif = b"GIF89a\x03\x00\x05\x00";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x03a\xff\xc2\0\x11\x08\0\x10\0\x20";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\x00";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\x00";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0";
        let cases: &[Case<'_>] = &[
            (png, Some("image/png"), Some((320, 240))),
            (&png[..18], Some("image/png"), None),
            (gif, Some("image/gif"), Some((3, 5))),
            (jpeg, Some("image/jpeg"), Some((32, 16))),
            (&jpeg[..9], Some("image/jpeg"), None),
            (b"\xff\xd8\xff\xe0\0\0", Some("image/jpeg"), None),
            (lossy, Some("image/webp"), Some((320, 240))),
            (lossless, Some("image/webp"), Some((320, 240))),
            (extended, Some("image/webp"), Some((320, 240))),
            (b"%PDF-1.7", None, None),
            (b"", None, None),
        ];
        for (bytes, kind, size) in cases {
            assert_eq!(picture(bytes), *kind, "{bytes:x?}");
            assert_eq!(dimensions(bytes), *size, "{bytes:x?}");
        }
        assert_eq!(kind(b"%PDF-1.7"), "PDF document");
        assert_eq!(kind(b"\x01\x02"), "binary data");
    }
}
