//! The bytes of a page, unpacked as they come and no more of them than are wanted.

use std::io::{self, Write};

use flate2::write::GzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

use crate::fetch::Limits;
use crate::page::{Cut, Kind};
use crate::refused::Refused;

/// Text shrinks to a tenth, very dull text to a fiftieth. More than this was made to hurt.
const RATIO_MAX: usize = 200;

/// So little at a time, to know how much of it was needed to fill the room.
const SLICE: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// As the server announced it.
    pub(crate) announced: Option<u64>,
    pub(crate) cut: Option<Cut>,
}

/// Takes bytes until it is full.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        if room == 0 && !more.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = room.min(more.len());
        self.bytes.extend_from_slice(&more[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Unpack {
    Not(Bounded),
    Gzip(Box<GzDecoder<Bounded>>),
}

impl Unpack {
    fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Unpack::Not(bounded) => bounded.write_all(bytes),
            Unpack::Gzip(decoder) => decoder.write_all(bytes),
        }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            Unpack::Not(bounded) => bounded.bytes,
            // What came through before the end is all there is.
            Unpack::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
        }
    }
}

/// A body that nobody can read as text is not read at all.
pub(crate) async fn read(
    mut response: Response,
    url: &str,
    kind: &Kind,
    limits: &Limits,
) -> Result<Body, Refused> {
    let announced = response.content_length();
    let mut body = Body { announced, ..Body::default() };
    if !kind.is_text() {
        return Ok(body);
    }
    let bounded = Bounded { bytes: Vec::new(), max: limits.body_bytes };
    let mut unpack = unpack(&response, url, bounded)?;
    let mut packed = 0_usize;
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            // What came is worth reading; that it is not all is said.
            Err(_) => {
                body.cut = Some(Cut::Broken);
                break;
            }
        };
        let fed = chunk.chunks(SLICE).try_for_each(|slice| {
            packed += slice.len();
            unpack.feed(slice)
        });
        match fed {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                if limits.body_bytes / packed.max(1) > RATIO_MAX {
                    return Err(Refused::Bomb { url: url.to_owned(), ratio: RATIO_MAX });
                }
                body.cut = Some(Cut::Size);
                break;
            }
            Err(error) => {
                return Err(Refused::Garbled { url: url.to_owned(), why: error.to_string() });
            }
        }
    }
    if let (Unpack::Gzip(decoder), None) = (&mut unpack, body.cut) {
        let ended = decoder.try_finish();
        let full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
        body.cut = match ended {
            Ok(()) => None,
            Err(error) if full(&error) => Some(Cut::Size),
            Err(_) => Some(Cut::Broken),
        };
    }
    body.bytes = unpack.bytes();
    Ok(body)
}

fn unpack(response: &Response, url: &str, bounded: Bounded) -> Result<Unpack, Refused> {
    let mut all = response.headers().get_all(CONTENT_ENCODING).iter();
    let encoding = all.next().map(|it| String::from_utf8_lossy(it.as_bytes()).to_lowercase());
    let many = all.next().is_some();
    match encoding.as_deref().map(str::trim) {
        None | Some("" | "identity") if !many => Ok(Unpack::Not(bounded)),
        Some("gzip" | "x-gzip") if !many => Ok(Unpack::Gzip(Box::new(GzDecoder::new(bounded)))),
        other => {
            let encoding = other.unwrap_or_default().chars().take(40).collect();
            Err(Refused::Encoding { url: url.to_owned(), encoding })
        }
    }
}
