//! Where a line of a rendered text was written: in the file itself, or in a part that it includes.
//! Found by what the line says, because a template engine does not keep track of it.

use std::path::PathBuf;

use crate::problem::{Place, Problem};

/// A rendered text and what it was made of, the file itself first.
#[derive(Debug)]
pub(crate) struct Whence {
    pub(crate) rendered: String,
    pub(crate) sources: Vec<(PathBuf, String)>,
}

impl Whence {
    /// The same problem where a person can mend it. What cannot be found is told of the whole file.
    pub(crate) fn mended(&self, problem: Problem) -> Problem {
        let at = Place { line: problem.line, column: problem.column };
        match self.find(at.line as usize) {
            Some((source, line)) => {
                let file = self.sources[source].0.clone();
                Problem { file, line: Place::new(line, 1).line, ..problem }
            }
            None => Problem { line: Place::START.line, column: Place::START.column, ..problem },
        }
    }

    /// Its place in the file itself.
    pub(crate) fn place(&self, at: Place) -> Place {
        match self.find(at.line as usize) {
            Some((0, line)) => Place::new(line, at.column as usize),
            Some(_) | None => Place::START,
        }
    }

    /// The source and the line in it. The second of two lines that say the same is the second in
    /// the sources, too.
    fn find(&self, line: usize) -> Option<(usize, usize)> {
        let above = line.checked_sub(1)?;
        let wanted = self.rendered.lines().nth(above).filter(|it| !it.trim().is_empty())?;
        let before = self.rendered.lines().take(above).filter(|it| *it == wanted).count();
        let lines = || {
            self.sources.iter().enumerate().flat_map(|(source, (_, text))| {
                text.lines().enumerate().map(move |(at, line)| (source, at + 1, line))
            })
        };
        let same: Vec<(usize, usize)> = lines()
            .filter(|(_, _, line)| *line == wanted)
            .map(|(source, at, _)| (source, at))
            .collect();
        if let Some(found) = same.get(before).or(same.last()) {
            return Some(*found);
        }
        // A line with tags is known by what stands before the first of them.
        let begins = lines().filter_map(|(source, at, line)| {
            let tag = ["{{", "{%", "{#"].iter().filter_map(|open| line.find(open)).min()?;
            let start = &line[..tag];
            let fits = !start.trim().is_empty() && wanted.starts_with(start);
            fits.then_some((start.len(), (source, at)))
        });
        begins.max_by_key(|(length, _)| *length).map(|(_, found)| found)
    }
}
