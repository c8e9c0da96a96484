//! YAML as a tree with places. One document, bounded depth, aliases paid for, keys once.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Parser, ScalarStyle, Span};

use crate::limits::DEPTH_MAX;
use crate::problem::{Place, Problems};
use crate::tree::{Budget, Fault, Key, Node, Value, too_deep, twice};
use crate::yaml_words;

/// Whether a key may come again: a sketch of a template holds all its branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    Refused,
    FirstWins,
}

/// The one document in a text, or `None` if there is only white space.
pub(crate) fn parse(text: &str, again: Twice) -> Result<Option<Node>, Fault> {
    let options = granit_parser::options! {
        flow_nesting_limit: DEPTH_MAX + 1,
        block_nesting_limit: DEPTH_MAX + 1,
        emit_comments: false,
    };
    let mut tree = Tree::new(text, again);
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => tree.take(event, span)?,
            Err(error) => {
                let at = error.marker();
                let place = Place::new(at.line(), at.col() + 1);
                if error.info().contains("recursion limit") {
                    return Err(too_deep(place));
                }
                // Its own place is the value before the tab.
                let tab = error.info().contains("found a tab");
                let place = untabbed(text).filter(|_| tab).map_or(place, |(_, tab)| tab);
                let (what, how) = yaml_words::plain(&error.info());
                return Err(Fault::new(place, what, cure(text, how)));
            }
        }
    }
    Ok(tree.root)
}

/// Where a line was indented with a tab.
pub(crate) type Tabs = Option<Place>;

pub(crate) fn tell_tabs(tabs: Tabs, problems: &Problems) {
    if let Some(place) = tabs {
        let why = "YAML has no tabs there; each was read as two spaces";
        problems.warn(place, "a line is indented with a tab", why, "indent with spaces");
    }
}

/// The same, and once more without tabs if that is what is wrong.
pub(crate) fn parse_with_tabs(text: &str, again: Twice) -> Result<(Option<Node>, Tabs), Fault> {
    match (parse(text, again), untabbed(text)) {
        (Ok(node), _) => Ok((node, None)),
        (Err(fault), None) => Err(fault),
        (Err(fault), Some(_)) if fault.is_bound() => Err(fault),
        // What is still wrong without them was wrong anyway, at a place that is right here.
        (Err(fault), Some((spaces, place))) => match parse(&spaces, again) {
            Ok(node) => Ok((node, Some(place))),
            Err(_) => Err(fault),
        },
    }
}

/// With two spaces for every tab at the start of a line.
fn untabbed(text: &str) -> Option<(String, Place)> {
    let indented = |line: &str| line.trim_start_matches(' ').starts_with('\t');
    let first = text.lines().position(indented)?;
    let mut spaces = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches([' ', '\t']);
        spaces.push_str(&line[..line.len() - rest.len()].replace('\t', "  "));
        spaces.push_str(rest);
    }
    Some((spaces, Place::new(first + 1, 1)))
}

/// A tab may be the cause of anything.
fn cure(text: &str, how: &'static str) -> &'static str {
    let tabs = text.lines().any(|line| line.trim_start_matches(' ').starts_with('\t'));
    if tabs { "indent with spaces instead of tabs" } else { how }
}

#[derive(Debug)]
struct Open {
    anchor: usize,
    place: Place,
    body: Body,
}

#[derive(Debug)]
enum Body {
    List(Vec<Node>),
    Map { fields: Vec<(Key, Node)>, seen: BTreeSet<String>, key: Option<Key> },
}

#[derive(Debug)]
struct Tree<'a> {
    again: Twice,
    text: &'a str,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    budget: Budget,
    documents: usize,
    root: Option<Node>,
}

impl<'a> Tree<'a> {
    fn new(text: &'a str, again: Twice) -> Tree<'a> {
        Tree {
            again,
            text,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            budget: Budget::default(),
            documents: 0,
            root: None,
        }
    }

    /// A block's lines are indented as the first of them that is not empty.
    fn block(&self, span: Span) -> Option<usize> {
        let start = span.start.byte_offset()?;
        let rest = self.text.get(start..)?;
        // The place of a block is its mark, `|`, or somewhere in its first line.
        let line = if rest.starts_with(['|', '>']) {
            start + rest.find('\n')? + 1
        } else {
            self.text[..start].rfind('\n').map_or(0, |end| end + 1)
        };
        let indent = |line: &str| line.find(|sign| sign != ' ');
        self.text.get(line..)?.split('\n').find_map(indent)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the rest carries no value, and the parser's features add to it"
    )]
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let place = Place::new(span.start.line(), span.start.col() + 1);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let forced = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let text =
                    if block { self.ended(text.into_owned(), span) } else { text.into_owned() };
                let indent = if block { self.block(span) } else { None };
                let value = scalar(text, style, forced);
                self.put(Node { place, value, indent }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.start(place, anchor, Body::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                let body = Body::Map { fields: Vec::new(), seen: BTreeSet::new(), key: None };
                self.start(place, anchor, body)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    self.budget.spend(node)?;
                    let copy = Node { place, ..node.clone() };
                    self.put(copy, 0)
                }
                None => Err(Fault::new(place, "an alias inside what it names", "write it out")),
            },
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let what = "a second document starts here";
                    return Err(Fault::new(place, what, "put it in a file of its own"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A block that is cut off by the end of the file has no last line break to keep.
    fn ended(&self, mut text: String, span: Span) -> String {
        let last = span.end.byte_offset().is_some_and(|end| end >= self.text.len());
        // A last line of nothing but spaces comes after a line that was ended.
        let cut = self.text.rsplit('\n').next().is_some_and(|line| !line.trim().is_empty());
        if last && cut && text.ends_with('\n') {
            text.pop();
        }
        text
    }

    fn start(&mut self, place: Place, anchor: usize, body: Body) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(place));
        }
        self.open.push(Open { anchor, place, body });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(Open { anchor, place, body }) = self.open.pop() else { return Ok(()) };
        let value = match body {
            Body::List(items) => Value::List(items),
            Body::Map { fields, .. } => Value::Map(fields),
        };
        self.put(Node::new(place, value), anchor)
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        self.budget.spend_one(&node)?;
        if anchor != 0 {
            self.budget.spend(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        let again = self.again;
        match self.open.last_mut().map(|open| &mut open.body) {
            None => self.root = Some(node),
            Some(Body::List(items)) => items.push(node),
            Some(Body::Map { fields, seen, key }) => match key.take() {
                None => *key = Some(as_key(node)?),
                Some(name) if seen.insert(name.text.clone()) => fields.push((name, node)),
                Some(name) if again == Twice::Refused => return Err(twice(&name)),
                Some(_) => {}
            },
        }
        Ok(())
    }
}

fn as_key(node: Node) -> Result<Key, Fault> {
    match node.value {
        Value::Plain(text) | Value::Quoted(text) => Ok(Key { place: node.place, text }),
        Value::Null => Ok(Key { place: node.place, text: "null".to_owned() }),
        Value::List(_) | Value::Map(_) => {
            let what = format!("{} where a key is expected", node.kind());
            let table = matches!(node.value, Value::Map(_));
            let how =
                if table { "put {{ … }} in quotes: \"{{ … }}\"" } else { "write: key: value" };
            Err(Fault::new(node.place, what, how))
        }
    }
}

fn scalar(text: String, style: ScalarStyle, forced: bool) -> Value {
    match style {
        ScalarStyle::Plain if forced => Value::Quoted(text),
        ScalarStyle::Plain if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") => Value::Null,
        ScalarStyle::Plain => Value::Plain(text),
        ScalarStyle::SingleQuoted
        | ScalarStyle::DoubleQuoted
        | ScalarStyle::Literal
        | ScalarStyle::Folded => Value::Quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text under `a` is what `PyYAML` makes of it.
    #[test]
    fn texts() {
        let cases = [
            ("a: |\n  x\n  y\n", "x\ny\n"),
            ("a: |\n  x\n  y", "x\ny"),
            ("a: |\n  x\n  y\n  ", "x\ny\n"),
            ("a: |-\n  x\n", "x"),
            ("a: |+\n  x\n\n", "x\n\n"),
            ("a: >\n  x\n  y\n", "x y\n"),
            ("a: >\n  x\n  y", "x y"),
            ("a: 'it''s'", "it's"),
            ("a: \"q\\\"\\n\"", "q\"\n"),
            ("a: 0755", "0755"),
            ("a: no", "no"),
            ("a: 1.0", "1.0"),
            ("a: x # y", "x"),
            ("a: |\n  x\nb: 1", "x\n"),
        ];
        for (text, expected) in cases {
            let node = parse(text, Twice::Refused).unwrap().unwrap();
            assert_eq!(node.get("a").and_then(Node::text), Some(expected), "{text:?}");
        }
    }
}
