//! Why something was not found, and what was probably meant. A model that is told the nearest line
//! gets it right the next time; one that is told "not found" guesses again.

use std::collections::HashSet;

use rustix::fs::Dir;

use crate::desk::Desk;
use crate::edit::line_of;
use crate::error::{Error, shown};
use crate::spot::Spot;

/// A line that shares less with what was looked for is not worth naming.
const LIKENESS_MIN: f64 = 0.5;
const LINES_MAX: usize = 50_000;
const LINE_CHARS_MAX: usize = 200;
const NAMES_MAX: usize = 5_000;

pub(crate) fn not_found(body: &str, old: &str, new: &str) -> String {
    let said = "`old` is not in the file";
    if !new.trim().is_empty() && body.contains(new) {
        let line = body.find(new).map_or(1, |at| line_of(body, at));
        return format!("{said}, but `new` is (line {line}): it may have been applied already");
    }
    if let Some(line) = but_for_space(body, old) {
        let there = quoted(body, line);
        return format!("{said}; line {line} differs from it only in white space: {there}");
    }
    let first = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match nearest(body, first) {
        Some(line) => {
            format!("{said}; the nearest to its first line is line {line}: {}", quoted(body, line))
        }
        None => format!("{said}, nor anything like it; read it again"),
    }
}

fn quoted(body: &str, line: usize) -> String {
    let text = body.lines().nth(line - 1).unwrap_or_default();
    let cut: String = text.chars().take(LINE_CHARS_MAX).collect();
    format!("{cut:?}")
}

/// The line where it would begin if white space did not count.
fn but_for_space(body: &str, old: &str) -> Option<usize> {
    let wanted: String = old.split_whitespace().collect();
    if wanted.is_empty() {
        return None;
    }
    let mut squeezed = String::with_capacity(body.len());
    let mut starts = Vec::new();
    for line in body.lines() {
        starts.push(squeezed.len());
        squeezed.extend(line.split_whitespace());
    }
    let at = squeezed.find(&wanted)?;
    Some(starts.partition_point(|start| *start <= at))
}

fn nearest(body: &str, wanted: &str) -> Option<usize> {
    let wanted = pairs(wanted);
    let lines = body.lines().take(LINES_MAX).zip(1..);
    let liked = lines.map(|(line, number)| (likeness(&wanted, &pairs(line.trim())), number));
    // Of equals the first.
    let best = liked.fold((0.0, 0), |best, line| if line.0 > best.0 { line } else { best });
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

fn pairs(line: &str) -> HashSet<(char, char)> {
    let line = line.chars().take(LINE_CHARS_MAX);
    line.clone().zip(line.skip(1)).collect()
}

/// How many pairs of letters two lines share: 0 for none, 1 for all.
fn likeness(a: &HashSet<(char, char)>, b: &HashSet<(char, char)>) -> f64 {
    let most = u32::try_from(a.len() + b.len()).unwrap_or(u32::MAX);
    let shared = u32::try_from(a.intersection(b).count()).unwrap_or(u32::MAX);
    if most == 0 { 0.0 } else { 2.0 * f64::from(shared) / f64::from(most) }
}

impl Desk {
    /// What does not exist may be misspelt: say which name in the folder is nearest.
    pub(crate) fn with_hint(&self, spot: Spot) -> Result<Spot, Error> {
        if spot.facts.is_some() {
            return Ok(spot);
        }
        let path = spot.named.clone();
        if !spot.absent.is_empty() {
            return Err(Error::Missing { path, hint: String::new() });
        }
        let wanted = pairs(&spot.name.to_string_lossy());
        let mut best = (0.0, String::new());
        let entries = Dir::read_from(&spot.folder).into_iter().flatten();
        for entry in entries.flatten().take(NAMES_MAX) {
            let name = entry.file_name().to_string_lossy();
            let like = likeness(&wanted, &pairs(&name));
            let place = spot.path.with_file_name(&*name);
            if like > best.0 && !self.roots.hides(&spot.root, &place) {
                best = (like, spot.root.say(&place));
            }
        }
        let hint = if best.0 >= LIKENESS_MIN {
            format!("; did you mean {}?", shown(&best.1))
        } else {
            String::new()
        };
        Err(Error::Missing { path, hint })
    }
}
