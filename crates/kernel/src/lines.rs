//! The lines of a conversation, which only ever grow at their end. A copy shares everything but
//! the newest few lines, so that what a model is asked costs the same after ten turns and after
//! ten thousand. Whether calls and results pair is seen line by line as they come, never again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Body, CallId, Line, Seq};

/// A node has `1 << BITS` places: four levels hold a million lines.
const BITS: usize = 5;
const WIDTH: usize = 1 << BITS;

#[derive(Clone, Default)]
pub struct Lines {
    /// Whole leaves, in a tree whose leaves are all as far from its root.
    root: Option<Arc<Node>>,
    height: usize,
    /// What is not yet a whole leaf.
    tail: Vec<Arc<Line>>,
    len: usize,
    /// The first line at which calls and results did not pair.
    unpaired: Option<Seq>,
}

#[derive(Clone)]
enum Node {
    Leaf(Vec<Arc<Line>>),
    Branch(Vec<Arc<Node>>),
}

impl Lines {
    #[must_use]
    pub fn new() -> Lines {
        Lines::default()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[must_use]
    pub fn get(&self, at: usize) -> Option<&Arc<Line>> {
        let kept = self.len - self.tail.len();
        if at >= kept {
            return self.tail.get(at - kept);
        }
        let mut node = self.root.as_deref()?;
        let mut height = self.height;
        loop {
            match node {
                Node::Leaf(lines) => return lines.get(at % WIDTH),
                Node::Branch(below) => node = below.get(place(at, height))?,
            }
            height = height.saturating_sub(1);
        }
    }

    #[must_use]
    pub fn first(&self) -> Option<&Arc<Line>> {
        self.get(0)
    }

    #[must_use]
    pub fn last(&self) -> Option<&Arc<Line>> {
        self.get(self.len.checked_sub(1)?)
    }

    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.after(0)
    }

    /// Those behind the first `start`.
    #[must_use]
    pub fn after(&self, start: usize) -> Iter<'_> {
        Iter { lines: self, ahead: start..self.len }
    }

    pub fn push(&mut self, line: Arc<Line>) {
        if self.unpaired.is_none() && !pairs(self.last().map(|line| &**line), &line) {
            self.unpaired = Some(line.seq);
        }
        if self.tail.len() == WIDTH {
            let leaf = Node::Leaf(core::mem::take(&mut self.tail));
            self.hang(leaf);
        }
        self.tail.push(line);
        self.len += 1;
    }

    /// All but the newest line.
    pub(crate) fn without_last(&self) -> Lines {
        let mut lines = self.clone();
        // The tail is empty only if everything is: a whole one is kept until the next line comes.
        if lines.tail.pop().is_some() {
            lines.len -= 1;
        }
        lines
    }

    /// The first line at which a call lacks its result, or a result its call. Calls of the last
    /// line are not missed yet.
    pub(crate) fn unpaired(&self) -> Option<Seq> {
        self.unpaired
    }

    /// Puts a whole leaf behind the others.
    fn hang(&mut self, leaf: Node) {
        let at = self.len - WIDTH;
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(leaf));
            return;
        };
        if at == WIDTH << (BITS * self.height) {
            let beside = path(leaf, self.height);
            *root = Arc::new(Node::Branch(Vec::from([Arc::clone(root), beside])));
            self.height += 1;
        } else {
            hang(root, self.height, at, leaf);
        }
    }
}

fn hang(node: &mut Arc<Node>, height: usize, at: usize, leaf: Node) {
    // Only what a copy shares is copied: one node on each level.
    let Node::Branch(below) = Arc::make_mut(node) else { return };
    match below.get_mut(place(at, height)) {
        Some(child) => hang(child, height - 1, at, leaf),
        None => below.push(path(leaf, height - 1)),
    }
}

/// A leaf, so many levels further down.
fn path(leaf: Node, height: usize) -> Arc<Node> {
    (0..height).fold(Arc::new(leaf), |node, _| Arc::new(Node::Branch(Vec::from([node]))))
}

fn place(at: usize, height: usize) -> usize {
    (at >> (BITS * height)) % WIDTH
}

/// Whether a line may follow another: results after their calls and nowhere else.
fn pairs(before: Option<&Line>, line: &Line) -> bool {
    let reply = before.and_then(|line| Some((line.seq, line.reply()?)));
    match (reply.filter(|(_, reply)| !reply.calls.is_empty()), &line.body) {
        (Some((turn, reply)), Body::Results(results)) => {
            let expected = (0..reply.calls.len()).map(|index| (turn, index));
            let found =
                results.iter().map(|(CallId { turn, index }, _)| (*turn, usize::from(*index)));
            expected.eq(found)
        }
        (Some(_), Body::Told(_) | Body::Replied(_) | Body::Summary(_))
        | (None, Body::Results(_)) => false,
        (None, Body::Told(_) | Body::Replied(_) | Body::Summary(_)) => true,
    }
}

#[derive(Clone, Debug)]
pub struct Iter<'a> {
    lines: &'a Lines,
    ahead: Range<usize>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.lines.get(self.ahead.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ahead.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.lines.get(self.ahead.next_back()?)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Lines {
    type Item = &'a Arc<Line>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Arc<Line>> for Lines {
    fn extend<I: IntoIterator<Item = Arc<Line>>>(&mut self, lines: I) {
        lines.into_iter().for_each(|line| self.push(line));
    }
}

impl FromIterator<Arc<Line>> for Lines {
    fn from_iter<I: IntoIterator<Item = Arc<Line>>>(lines: I) -> Lines {
        let mut all = Lines::new();
        all.extend(lines);
        all
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Lines) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl Eq for Lines {}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for Lines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lines, D::Error> {
        deserializer.deserialize_seq(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Lines;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lines of a conversation")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut found: A) -> Result<Lines, A::Error> {
        let mut lines = Lines::new();
        while let Some(line) = found.next_element()? {
            lines.push(line);
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests;
