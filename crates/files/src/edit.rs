//! `edit`: exact replacement, each in its one place, all of them or none. Encoding and line
//! endings stay as they are.

use crate::args::{Edit, Swap};
use crate::binary;
use crate::desk::{Answer, Desk};
use crate::diff::{Change, ChangeKind, hex, unified};
use crate::error::Error;
use crate::hint;
use crate::read::WHOLE_BYTES_MAX;
use crate::seen::Mark;
use crate::text::{Ending, Misfit, Text};

/// In one call.
const SWAPS_MAX: usize = 1000;
/// Places named when a text occurs more than once.
const PLACES_MAX: usize = 5;

impl Desk {
    pub fn edit(&self, reader: &str, args: &Edit) -> Result<Answer, Error> {
        let spot = self.roots.to_write(&args.path)?;
        let spot = self.with_hint(spot)?;
        let path = || spot.named.clone();
        let before = self.before(reader, &spot)?;
        let Some(bytes) = before.bytes.as_deref() else {
            let (bytes, most) = (before.facts.size, WHOLE_BYTES_MAX);
            return Err(Error::Large { path: path(), tool: "edit", bytes, most });
        };
        let Some(old) = Text::decode(bytes) else {
            let what = binary::kind(bytes).to_owned();
            return Err(Error::NotText { path: path(), what });
        };
        let body = apply(&old, &args.edits).map_err(|why| Error::Edit { path: path(), why })?;
        let new = Text { body, ..old };
        let encoded = new.encode().map_err(|misfit| match misfit {
            Misfit::Letter(letter) => {
                let encoding = new.encoding.say();
                Error::Letter { path: path(), encoding, letter }
            }
            Misfit::Ambiguous => {
                let why = "the result would not be read as the same text".to_owned();
                Error::Edit { path: path(), why }
            }
        })?;
        if encoded.len() as u64 > WHOLE_BYTES_MAX {
            let (bytes, most) = (encoded.len() as u64, WHOLE_BYTES_MAX);
            return Err(Error::Large { path: path(), tool: "edit", bytes, most });
        }
        self.put(reader, &spot, Some(&before.facts), &encoded)?;
        let said = spot.root.say(&spot.path);
        let diff = unified(&said, &old.body, &new.body);
        let text = format!("{said} edited\n{diff}");
        let was = match before.mark {
            Mark::Content(digest) => Some(hex(&digest)),
            Mark::Stamp(_) => None,
        };
        let change = Change::new(said, ChangeKind::Changed, was, &encoded, diff);
        Ok(Answer { change: Some(change), ..Answer::text(text) })
    }
}

/// Each swap sees what the ones before it left. Err says why nothing was done.
pub(crate) fn apply(text: &Text, swaps: &[Swap]) -> Result<String, String> {
    if swaps.is_empty() {
        return Err("`edits` is empty".to_owned());
    }
    if swaps.len() > SWAPS_MAX {
        return Err(format!("{} edits at once; at most {SWAPS_MAX}", swaps.len()));
    }
    let mut body = text.body.clone();
    for (swap, number) in swaps.iter().zip(1..) {
        body = one(&body, text.ending, swap).map_err(|why| {
            if swaps.len() == 1 { why } else { format!("edit {number} of {}: {why}", swaps.len()) }
        })?;
    }
    if body == text.body {
        return Err("the edits undo each other".to_owned());
    }
    Ok(body)
}

fn one(body: &str, ending: Ending, swap: &Swap) -> Result<String, String> {
    let (old, new) = (in_kind(&swap.old, ending), in_kind(&swap.new, ending));
    if old.is_empty() {
        return Err("`old` is empty; write makes a whole file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let (old, new) = match ending {
        // Whoever saw the line did not see how it ends.
        Ending::Mixed if !body.contains(&*old) => (with_cr(&old), with_cr(&new)),
        Ending::Lf | Ending::CrLf | Ending::Mixed => (old, new),
    };
    let places: Vec<usize> = body.match_indices(&*old).map(|(at, _)| at).collect();
    match places.len() {
        0 => Err(hint::not_found(body, &swap.old, &swap.new)),
        1 => Ok(body.replacen(&*old, &new, 1)),
        _ if swap.all == Some(true) && fits(body, &old, &new, places.len()) => {
            Ok(body.replace(&*old, &new))
        }
        _ if swap.all == Some(true) => Err("the result would be too large".to_owned()),
        count => {
            let lines = places.iter().take(PLACES_MAX).map(|at| line_of(body, *at).to_string());
            let lines = lines.collect::<Vec<_>>().join(", ");
            let rest = if count > PLACES_MAX { ", …" } else { "" };
            Err(format!(
                "`old` occurs {count} times (lines {lines}{rest}); add lines around it until it \
                 is the only one, or set `all`"
            ))
        }
    }
}

/// Where all lines end in CR LF, the text at hand has LF, so what is looked for must too.
fn in_kind(text: &str, ending: Ending) -> String {
    match ending {
        Ending::CrLf => text.replace("\r\n", "\n"),
        Ending::Lf | Ending::Mixed => text.to_owned(),
    }
}

fn with_cr(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Before it is made: a thousand large texts in the place of a thousand small ones.
fn fits(body: &str, old: &str, new: &str, count: usize) -> bool {
    let grown = count.saturating_mul(new.len().saturating_sub(old.len()));
    (body.len() as u64).saturating_add(grown as u64) <= WHOLE_BYTES_MAX
}

pub(crate) fn line_of(body: &str, at: usize) -> usize {
    body[..at].matches('\n').count() + 1
}
