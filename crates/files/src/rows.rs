//! A file in rows that can be shown: lines, and what becomes of very long ones. No more than one
//! row is in memory at a time, however long the file or the line is.

use std::io::{self, BufRead, Read as _};

/// More of one line is not shown at once.
pub(crate) const ROW_BYTES_MAX: usize = 4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    /// The rest of the line is left out, with a note: rows are lines.
    Cut,
    /// It goes on in the next row: everything can be reached.
    Wrap,
}

#[derive(Debug)]
pub(crate) struct Rows<R> {
    from: R,
    long: Long,
    /// The first bytes of a letter that the last row had no room for.
    left: Vec<u8>,
}

/// Some rows in a row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) rows: usize,
    /// Rows had to be left for the next page.
    pub(crate) has_more: bool,
}

impl<R: BufRead> Rows<R> {
    pub(crate) fn new(from: R, long: Long) -> Rows<R> {
        Rows { from, long, left: Vec::new() }
    }

    /// With its line ending, if it has one.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut row = std::mem::take(&mut self.left);
        let room = (ROW_BYTES_MAX - row.len()) as u64;
        self.from.by_ref().take(room).read_until(b'\n', &mut row)?;
        if row.is_empty() {
            return Ok(None);
        }
        if row.len() < ROW_BYTES_MAX || row.ends_with(b"\n") {
            return Ok(Some(String::from_utf8_lossy(&row).into_owned()));
        }
        let cut = row.split_off(whole_letters(&row));
        let mut text = String::from_utf8_lossy(&row).into_owned();
        match self.long {
            Long::Wrap => {
                self.left = cut;
                text.push('\n');
            }
            Long::Cut => {
                let dropped = skip_line(&mut self.from)? + cut.len() as u64;
                if dropped > 1 {
                    let note = format!(" [… {dropped} more bytes in this line]");
                    text.push_str(&note);
                }
                text.push('\n');
            }
        }
        Ok(Some(text))
    }

    /// How many of `count` rows there were to skip.
    pub(crate) fn skip(&mut self, count: usize) -> io::Result<usize> {
        for skipped in 0..count {
            let is_over = match self.long {
                Long::Cut => skip_line(&mut self.from)? == 0,
                Long::Wrap => self.next()?.is_none(),
            };
            if is_over {
                return Ok(skipped);
            }
        }
        Ok(count)
    }

    /// At most so many rows and bytes, and at least one row if there is any.
    pub(crate) fn page(&mut self, rows_max: usize, bytes_max: usize) -> io::Result<Page> {
        let mut page = Page::default();
        while page.rows < rows_max && page.text.len() + ROW_BYTES_MAX <= bytes_max {
            let Some(row) = self.next()? else { return Ok(page) };
            page.text.push_str(&row);
            page.rows += 1;
        }
        page.has_more = !self.left.is_empty() || !self.from.fill_buf()?.is_empty();
        Ok(page)
    }
}

/// How many bytes were skipped, the line ending among them.
fn skip_line(from: &mut impl BufRead) -> io::Result<u64> {
    from.skip_until(b'\n').map(|count| count as u64)
}

/// Up to where the bytes do not end inside a letter.
fn whole_letters(bytes: &[u8]) -> usize {
    let starts = |at: &usize| bytes[*at] & 0xc0 != 0x80;
    let Some(last) = (bytes.len().saturating_sub(4)..bytes.len()).rev().find(starts) else {
        return bytes.len();
    };
    let wanted = match bytes[last] {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    if last + wanted > bytes.len() { last } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, long: Long) -> Vec<String> {
        let mut rows = Rows::new(text.as_bytes(), long);
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            found.push(row);
        }
        found
    }

    #[test]
    fn long_lines() {
        let wide = "ä".repeat(ROW_BYTES_MAX);
        let wrapped = all(&format!("x{wide}\nend"), Long::Wrap);
        assert_eq!(wrapped.concat().replace('\n', ""), format!("x{wide}end"));
        assert!(wrapped.iter().all(|row| row.len() <= ROW_BYTES_MAX + 1));
        assert_eq!(wrapped.len(), 4);
        let cut = all(&format!("x{wide}\nend"), Long::Cut);
        assert_eq!(cut.len(), 2);
        assert!(cut[0].ends_with(" [… 4003 more bytes in this line]\n"), "{}", &cut[0][3990..]);
        assert_eq!(cut[1], "end");
        let exact = format!("{}\nend", "x".repeat(ROW_BYTES_MAX));
        assert_eq!(all(&exact, Long::Cut).concat(), exact);
    }

    #[test]
    fn of_endless_files_no_more_is_read_than_is_shown() {
        let mut rows = Rows::new(io::BufReader::new(io::repeat(b'\n')), Long::Cut);
        let page = rows.page(usize::MAX, 10_000).unwrap();
        assert!(page.has_more && page.text.len() <= 10_000);
        let mut rows = Rows::new(io::BufReader::new(io::repeat(b'x')), Long::Wrap);
        let page = rows.page(usize::MAX, 10_000).unwrap();
        assert_eq!((page.rows, page.has_more), (2, true));
    }

    #[test]
    fn skipping_and_paging_meet() {
        for long in [Long::Cut, Long::Wrap] {
            let text = "1\n2\n3\n4";
            let mut rows = Rows::new(text.as_bytes(), long);
            assert_eq!(rows.skip(1).unwrap(), 1);
            let page = rows.page(2, 10_000).unwrap();
            assert_eq!(page, Page { text: "2\n3\n".to_owned(), rows: 2, has_more: true });
            assert_eq!(rows.skip(9).unwrap(), 1);
        }
    }
}
