//! How far a conversation was walked the last time, so that a long one is not walked from its
//! beginning at every turn. A bookmark only saves time: it is followed for as long as the lines
//! it was made of are the very same ones, and leads where a whole walk would lead. Where an agent
//! stands is still what the journal says, in a new process too, which has no bookmarks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use locum_kernel::{AgentId, Body, Line, Lines};

use super::walk::{Heard, Place, Turn};
use super::{Step, turns};
use crate::provider::Asked;

/// A shorter conversation is walked as quickly as it is looked up.
const LINES_MIN: usize = 64;

/// More long conversations than ever go on at once; beyond, all of them are walked once more.
const BOOKMARKS_MAX: usize = 1_024;

/// By agent. Agents of other sessions may have the same number: their lines are not the same.
#[derive(Debug, Default)]
pub(super) struct Bookmarks(Mutex<BTreeMap<AgentId, Bookmark>>);

#[derive(Clone, Debug)]
struct Bookmark {
    names: [String; 2],
    /// The ends of what was walked. Between them nothing ever changes: history grows at its end,
    /// and a compaction begins it anew.
    first: Arc<Line>,
    last: Arc<Line>,
    walk: Walk,
}

/// A line's number in the request, and which of its words.
type Spot = (usize, usize);

/// Where a walk has come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) place: Place,
    /// Lines behind it.
    lines: usize,
    /// Replies among them.
    replies: usize,
    /// Replies out of sight before them.
    hidden: usize,
    /// Failures it reckoned with.
    failures: u32,
    /// The newest words, and the newest words of the user.
    last: Option<Spot>,
    user: Option<Spot>,
}

impl Bookmarks {
    /// The same walk as [`Walk::whole`], from where the last one ended if that can be.
    pub(super) fn walk(&self, asked: &Asked, steps: &[Step]) -> Walk {
        let lines = &asked.request.lines;
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Walk::whole(asked, steps);
        };
        if lines.len() < LINES_MIN {
            return Walk::whole(asked, steps);
        }
        // Whoever died holding it left whole bookmarks.
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = marks.get(&asked.request.agent).filter(|mark| mark.is_of(asked));
        let further = kept.and_then(|mark| mark.walk.further(asked, steps));
        let walk = further.unwrap_or_else(|| Walk::whole(asked, steps));
        if marks.len() >= BOOKMARKS_MAX {
            marks.clear();
        }
        let names = [asked.definition.clone(), asked.label.clone()];
        let (first, last) = (Arc::clone(first), Arc::clone(last));
        marks.insert(asked.request.agent, Bookmark { names, first, last, walk });
        walk
    }
}

impl Bookmark {
    fn is_of(&self, asked: &Asked) -> bool {
        let lines = &asked.request.lines;
        let same = |at: Option<&Arc<Line>>, ours| at.is_some_and(|line| Arc::ptr_eq(line, ours));
        self.names == [asked.definition.as_str(), asked.label.as_str()]
            && same(lines.first(), &self.first)
            && same(lines.get(self.walk.lines.saturating_sub(1)), &self.last)
    }
}

impl Walk {
    pub(super) fn whole(asked: &Asked, steps: &[Step]) -> Walk {
        let replies = replies(&asked.request.lines, 0);
        // Replies that a compaction put out of sight: what was said then can match nothing now.
        let hidden = (asked.replies as usize).saturating_sub(replies);
        let mut place = Place::with(asked.failures);
        (0..hidden).for_each(|_| place.pass(steps, ""));
        let (lines, last, user) = (0, None, None);
        let begun = Walk { place, lines, replies: 0, hidden, failures: asked.failures, last, user };
        begun.along(&asked.request.lines, steps)
    }

    /// None: what was reckoned with before is no longer so, and may have led elsewhere.
    fn further(mut self, asked: &Asked, steps: &[Step]) -> Option<Walk> {
        let lines = &asked.request.lines;
        let replies = self.replies + replies(lines, self.lines);
        if (asked.replies as usize).saturating_sub(replies) != self.hidden {
            return None;
        }
        let more = asked.failures.checked_sub(self.failures)?;
        if more > 0 {
            self.place = self.place.failed_more(more)?;
            self.failures = asked.failures;
        }
        Some(self.along(lines, steps))
    }

    fn along(mut self, lines: &Lines, steps: &[Step]) -> Walk {
        let mut last = words(lines, self.last);
        for (at, line) in (self.lines..).zip(lines.after(self.lines)) {
            for (which, turn) in turns(line).into_iter().enumerate() {
                match turn {
                    Turn::User(text) => {
                        last = text;
                        self.last = Some((at, which));
                        self.user = self.last;
                    }
                    Turn::Heard(text) => {
                        last = text;
                        self.last = Some((at, which));
                    }
                    Turn::Replied => {
                        self.place.pass(steps, last);
                        self.replies += 1;
                    }
                }
            }
        }
        self.lines = lines.len();
        self
    }

    /// What the model has in front of it at the end of the walk.
    pub(super) fn now<'a>(&self, lines: &'a Lines) -> Heard<'a> {
        Heard { last: words(lines, self.last), user: words(lines, self.user) }
    }
}

/// Among the lines behind the first `start`.
fn replies(lines: &Lines, start: usize) -> usize {
    lines.after(start).filter(|line| matches!(line.body, Body::Replied(_))).count()
}

fn words(lines: &Lines, spot: Option<Spot>) -> &str {
    let turn = spot.and_then(|(at, which)| turns(lines.get(at)?).get(which).copied());
    match turn {
        Some(Turn::User(text) | Turn::Heard(text)) => text,
        Some(Turn::Replied) | None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bookmarks {
        /// Lines that would be walked now for this agent.
        pub(in crate::script) fn ahead(&self, asked: &Asked) -> usize {
            let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = marks.get(&asked.request.agent).filter(|mark| mark.is_of(asked));
            let further = kept.filter(|mark| mark.walk.further(asked, &[]).is_some());
            asked.request.lines.len() - further.map_or(0, |mark| mark.walk.lines)
        }
    }
}
