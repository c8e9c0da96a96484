//! Splits a stream of server-sent events as its bytes come in, however they were cut on the way.
//!
//! An event that lies whole in one chunk is shown where it lies; only what is torn between chunks
//! or spread over several `data` lines is copied. Every byte is looked at once.

use super::Framing;

/// Longest line and longest event. No provider sends a tenth of it; more is not a model speaking.
pub(crate) const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a reader of events is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'e> {
    /// Empty if the stream did not name it.
    pub(crate) name: &'e [u8],
    pub(crate) data: &'e [u8],
}

/// Why splitting stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop<E> {
    /// A line or an event is longer than allowed.
    TooLong,
    /// Whoever reads the events has had enough.
    Reader(E),
}

#[derive(Debug)]
pub(crate) struct Splitter {
    framing: Framing,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    name: Vec<u8>,
    /// The data of the event under way, as far as it could not be left where it was.
    data: Vec<u8>,
    /// The event under way has data, though it may be empty.
    has_data: bool,
    /// The last chunk ended in CR, so that LF at the start of the next ends no other line.
    after_cr: bool,
    /// Nothing has come yet, so a byte order mark may.
    at_start: bool,
    max: usize,
}

impl Splitter {
    pub(crate) fn new(framing: Framing) -> Splitter {
        Splitter::with_room(framing, EVENT_BYTES_MAX)
    }

    fn with_room(framing: Framing, max: usize) -> Splitter {
        Splitter {
            framing,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
            max,
        }
    }

    /// Takes the next bytes and shows every event they complete.
    pub(crate) fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut show: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        if self.framing == Framing::Whole {
            return self.hold_line(chunk);
        }
        let mut rest = chunk;
        // Data of the event under way that still lies in this chunk.
        let mut here: Option<&[u8]> = None;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = line_end(rest) {
            let (line, mut after) = (&rest[..at], &rest[at + 1..]);
            if rest[at] == b'\r' {
                self.after_cr = after.is_empty();
                after = after.strip_prefix(b"\n").unwrap_or(after);
            }
            rest = after;
            if self.line.is_empty() && !self.at_start {
                self.take(line, &mut here, &mut show)?;
            } else {
                self.hold_line(line)?;
                let whole = std::mem::take(&mut self.line);
                self.take_torn(self.unmarked(&whole), &mut here, &mut show)?;
                self.at_start = false;
                self.line = whole;
                self.line.clear();
            }
        }
        if let Some(data) = here {
            self.hold_data(data)?;
        }
        self.hold_line(rest)
    }

    /// The stream is over: what it left open counts as ended. A provider that leaves out the last
    /// empty line has still said everything.
    pub(crate) fn finish<E>(
        &mut self,
        mut show: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        let last = std::mem::take(&mut self.line);
        self.take_torn(self.unmarked(&last), &mut None, &mut show)?;
        self.take_torn(b"", &mut None, &mut show)
    }

    fn unmarked<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        if self.at_start { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line }
    }

    /// A line that lies whole in the chunk: its data may stay there.
    fn take<'c, E>(
        &mut self,
        line: &'c [u8],
        here: &mut Option<&'c [u8]>,
        show: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        if matches!(self.framing, Framing::Lines | Framing::Whole) {
            return show_line(line, show);
        }
        let field = self.field(line);
        if let Field::Data(data) = field
            && !self.has_data
        {
            self.has_data = true;
            *here = Some(data);
            return Ok(());
        }
        self.take_field(field, here, show)
    }

    /// A line that was torn: its data has to be kept.
    fn take_torn<E>(
        &mut self,
        line: &[u8],
        here: &mut Option<&[u8]>,
        show: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        if matches!(self.framing, Framing::Lines | Framing::Whole) {
            return show_line(line, show);
        }
        self.take_field(self.field(line), here, show)
    }

    fn field<'l>(&self, line: &'l [u8]) -> Field<'l> {
        let field = field(line);
        let bare = self.framing == Framing::LooseEvents && is_bare(line);
        if matches!(field, Field::Other) && bare { Field::Data(line) } else { field }
    }

    fn take_field<E>(
        &mut self,
        field: Field<'_>,
        here: &mut Option<&[u8]>,
        show: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        match field {
            Field::Data(data) => {
                if let Some(before) = here.take() {
                    self.hold_data(before)?;
                }
                if self.has_data {
                    self.hold_data(b"\n")?;
                }
                self.has_data = true;
                self.hold_data(data)
            }
            Field::Name(name) => {
                self.name.clear();
                self.name.extend_from_slice(name);
                Ok(())
            }
            Field::End => {
                let data = here.take().unwrap_or(&self.data);
                let event = Event { name: &self.name, data };
                let shown = if self.has_data { show(event) } else { Ok(()) };
                self.has_data = false;
                self.data.clear();
                self.name.clear();
                shown.map_err(Stop::Reader)
            }
            Field::Other => Ok(()),
        }
    }

    fn hold_line<E>(&mut self, part: &[u8]) -> Result<(), Stop<E>> {
        hold(&mut self.line, part, self.max)
    }

    fn hold_data<E>(&mut self, part: &[u8]) -> Result<(), Stop<E>> {
        hold(&mut self.data, part, self.max)
    }
}

/// Where every line is an event.
fn show_line<E>(
    line: &[u8],
    show: &mut impl FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), Stop<E>> {
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    show(Event { name: b"", data: line }).map_err(Stop::Reader)
}

fn hold<E>(held: &mut Vec<u8>, part: &[u8], max: usize) -> Result<(), Stop<E>> {
    if held.len() + part.len() > max {
        return Err(Stop::TooLong);
    }
    held.extend_from_slice(part);
    Ok(())
}

#[derive(Clone, Copy)]
enum Field<'l> {
    Data(&'l [u8]),
    Name(&'l [u8]),
    /// An empty line.
    End,
    /// A comment, or a field nobody here asks for.
    Other,
}

fn field(line: &[u8]) -> Field<'_> {
    let value = |rest: &'_ [u8]| -> Option<usize> {
        match rest {
            [] => Some(0),
            [b':', b' ', ..] => Some(2),
            [b':', ..] => Some(1),
            _ => None,
        }
    };
    if line.is_empty() {
        return Field::End;
    }
    if let Some(rest) = line.strip_prefix(b"data") {
        return value(rest).map_or(Field::Other, |skip| Field::Data(&rest[skip..]));
    }
    if let Some(rest) = line.strip_prefix(b"event") {
        return value(rest).map_or(Field::Other, |skip| Field::Name(&rest[skip..]));
    }
    Field::Other
}

/// Neither a comment nor a field that could be passed over.
fn is_bare(line: &[u8]) -> bool {
    let known = [b":".as_slice(), b"id:", b"retry:", b"\xEF\xBB\xBF"];
    !known.iter().any(|start| line.starts_with(start))
}

/// Where the first line ends. Looks at sixteen bytes at a time, which the compiler turns into a
/// few instructions.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r';
    let (blocks, rest) = bytes.as_chunks::<16>();
    for (at, block) in blocks.iter().enumerate() {
        let hits = block.iter().fold(0, |hits, byte| hits | u8::from(ends(byte)));
        if hits > 0 {
            return block.iter().position(ends).map(|within| at * 16 + within);
        }
    }
    rest.iter().position(ends).map(|within| blocks.len() * 16 + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]], max: usize) -> Result<Vec<(String, String)>, Stop<()>> {
        let mut splitter = Splitter::with_room(Framing::Events, max);
        let mut seen = Vec::new();
        let mut show = |event: Event<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            seen.push((text(event.name), text(event.data)));
            Ok::<(), ()>(())
        };
        for chunk in chunks {
            splitter.feed(chunk, &mut show)?;
        }
        splitter.finish(&mut show)?;
        Ok(seen)
    }

    const CASES: &[(&str, &[(&str, &str)])] = &[
        ("data: a\n\n", &[("", "a")]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]),
        ("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
        ("event: x\ndata:a\n\ndata: b\n\n", &[("x", "a"), ("", "b")]),
        ("data: a\ndata: b\ndata:\ndata: c\n\n", &[("", "a\nb\n\nc")]),
        ("data: a\r\ndata: b\r\n\r\n", &[("", "a\nb")]),
        ("data: a\rdata: b\r\r\n\n", &[("", "a\nb")]),
        (": hello\n\n:\ndata: a\n: between\nid: 7\nretry: 3\n\n", &[("", "a")]),
        ("data\n\nevent: lonely\n\ndata:  two\n\n", &[("", ""), ("", " two")]),
        ("data: no end", &[("", "no end")]),
        ("data: no blank line\n", &[("", "no blank line")]),
        ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a")]),
        ("database: a\nevents: b\n\n", &[]),
        ("data: Grüße 👋\n\n", &[("", "Grüße 👋")]),
        ("", &[]),
        ("\n\n\n", &[]),
    ];

    #[test]
    fn however_it_is_cut_it_says_the_same() {
        for (text, expected) in CASES {
            let expected: Vec<_> =
                expected.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
            let bytes = text.as_bytes();
            assert_eq!(split(&[bytes], 100).unwrap(), expected, "{text:?} in one");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(split(&single, 100).unwrap(), expected, "{text:?} byte by byte");
            for at in 0..bytes.len() {
                let (a, b) = bytes.split_at(at);
                assert_eq!(split(&[a, b, b""], 100).unwrap(), expected, "{text:?} cut at {at}");
            }
        }
    }

    #[test]
    fn what_stands_between_events_is_one_if_it_may() {
        let text = "data: a\n\n{\n  \"error\": 1\n}\n: hello\nid: 7\n\ndata: b\n\n[0]";
        for (framing, expected) in [
            (Framing::Events, vec!["a", "b"]),
            (Framing::LooseEvents, vec!["a", "{\n  \"error\": 1\n}", "b", "[0]"]),
        ] {
            for size in [1, 3, 1_000] {
                let mut seen = Vec::new();
                let mut show = |event: Event<'_>| {
                    seen.push(String::from_utf8_lossy(event.data).into_owned());
                    Ok::<(), ()>(())
                };
                let mut splitter = Splitter::new(framing);
                for chunk in text.as_bytes().chunks(size) {
                    splitter.feed(chunk, &mut show).unwrap();
                }
                splitter.finish(&mut show).unwrap();
                assert_eq!(seen, expected, "{framing:?} in {size}");
            }
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let long = [b'x'; 90];
        assert_eq!(split(&[&long, &long], 100), Err(Stop::TooLong), "a line without an end");
        let lines = [b"data: ".as_slice(), &long, b"\n"].concat();
        assert_eq!(split(&[&lines, &lines], 100), Err(Stop::TooLong), "data in many lines");
        assert!(split(&[&lines, b"\n", &lines], 100).is_ok(), "two events, each short enough");
    }

    #[test]
    fn line_ends_are_found_everywhere() {
        for at in 0..70 {
            let mut bytes = vec![b'x'; 80];
            assert_eq!(line_end(&bytes), None);
            bytes[at] = if at % 2 == 0 { b'\n' } else { b'\r' };
            assert_eq!(line_end(&bytes), Some(at));
        }
    }
}
