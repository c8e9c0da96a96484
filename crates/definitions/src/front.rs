//! Front matter: keys between two lines of `---` at the top of a Markdown file. Much of what is
//! published is not quite YAML (a colon in a description is enough), and every program that reads
//! it has its own way round that. Ours: if YAML fails, a known key at the start of a line begins
//! a field, and every other line goes on with the one before.

use crate::problem::{Place, Problems};
use crate::tree::{Fault, Key, Node, Value};
use crate::yaml::{self, Twice};

#[derive(Debug)]
pub(crate) struct Front<'a> {
    /// What stands between the marks, at its places in the file. `None`: there are no marks.
    pub(crate) head: Option<Node>,
    pub(crate) body: &'a str,
    /// Where the body starts.
    pub(crate) body_at: Place,
}

/// A file's two parts, in a text with lines ended by `\n`.
pub(crate) fn read<'a>(text: &'a str, known: &[&str], problems: &Problems) -> Front<'a> {
    let blank = text.len() - text.trim_start_matches(['\n', ' ', '\t']).len();
    let above = text[..blank].matches('\n').count();
    let Some((head, body)) = cut(&text[blank..]) else {
        if text[blank..].starts_with("---\n") {
            let why = "front matter goes on until a line of three dashes";
            let at = Place::new(above + 1, 1);
            problems.error(at, "the front matter has no end", why, "add a line: ---");
        }
        return Front { head: None, body: text, body_at: Place::START };
    };
    let lines = text.len() - body.len();
    let body_at = Place::new(text[..lines].matches('\n').count() + 1, 1);
    Front { head: Some(parse(head, above + 1, known, problems)), body, body_at }
}

/// The marks stand alone on their lines, so that dashes inside a value end nothing.
fn cut(text: &str) -> Option<(&str, &str)> {
    let first = text.find('\n')?;
    if text[..first].trim_end() != "---" {
        return None;
    }
    // Looked for as a piece of text: a file may have a million lines and no end.
    let ends = ["\n---", "\n..."].into_iter().filter_map(|mark| closed(text, first, mark));
    let end = ends.min()?;
    let rest = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    Some((&text[first + 1..end], &text[rest..]))
}

/// Where the first line from `first` on starts that is this mark and nothing else.
fn closed(text: &str, first: usize, mark: &str) -> Option<usize> {
    let alone = |at: &usize| {
        let rest = &text[at + mark.len()..];
        rest[..rest.find('\n').unwrap_or(rest.len())].trim().is_empty()
    };
    text[first..].match_indices(mark).map(|(at, _)| first + at).find(alone).map(|at| at + 1)
}

fn parse(head: &str, above: usize, known: &[&str], problems: &Problems) -> Node {
    let empty = || Node::new(Place::new(above + 1, 1), Value::Map(Vec::new()));
    let fault = match yaml::parse_with_tabs(head, Twice::Refused) {
        Ok((Some(node), tabs)) if matches!(node.value, Value::Map(_)) => {
            let tabs = tabs.map(|at| Place::new(at.line as usize + above, at.column as usize));
            yaml::tell_tabs(tabs, problems);
            return lower(node, above);
        }
        Ok((None, _)) => return empty(),
        Ok((Some(node), _)) => {
            Fault::new(node.place, format!("front matter is {}", node.kind()), "write: key: value")
        }
        Err(fault) => fault,
    };
    let at = Place::new(fault.place.line as usize + above, fault.place.column as usize);
    let rest = fault.is_twice().then(|| without_metadata(head, fault.place)).flatten();
    let rest = rest.and_then(|rest| yaml::parse(&rest, Twice::Refused).ok().flatten());
    if let Some(node) = rest.filter(|node| matches!(node.value, Value::Map(_))) {
        problems.warn(at, fault.what, "nothing of the metadata is used here", fault.how);
        return lower(node, above);
    }
    // A bomb or a key that is there twice is no slip of the pen.
    let slips = ["not YAML", "a second document", "a table of keys where", "a list where"];
    let slip = slips.iter().any(|start| fault.what.starts_with(start));
    match lines(head, known) {
        Some(node) if slip => {
            problems.warn(at, fault.what, "it was read line by line instead", fault.how);
            lower(node, above)
        }
        _ => {
            problems.error(at, fault.what, "the front matter cannot be read", fault.how);
            empty()
        }
    }
}

/// The same lines without those below `metadata`, if this place is one of them. What is there is
/// only for other programs, and some of them take it.
fn without_metadata(head: &str, place: Place) -> Option<String> {
    let starts = |line: &str| !line.starts_with([' ', '\t', '#', '-']) && !line.trim().is_empty();
    let lines: Vec<&str> = head.lines().collect();
    let at = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let first = lines.get(..=at)?.iter().rposition(|line| starts(line))?;
    if lines[first].split(':').next()?.trim_end() != "metadata" {
        return None;
    }
    let below = lines[at + 1..].iter().position(|line| starts(line));
    let end = below.map_or(lines.len(), |below| at + 1 + below);
    let kept = |(number, line): (usize, &&str)| {
        let out = (first..end).contains(&number);
        if out { "\n".to_owned() } else { format!("{line}\n") }
    };
    Some(lines.iter().enumerate().map(kept).collect())
}

/// Places in the head become places in the file.
fn lower(node: Node, above: usize) -> Node {
    let down = |place: Place| Place::new(place.line as usize + above, place.column as usize);
    let place = down(node.place);
    let value = match node.value {
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| lower(item, above)).collect())
        }
        Value::Map(fields) => {
            let moved = fields.into_iter().map(|(key, node)| {
                (Key { place: down(key.place), text: key.text }, lower(node, above))
            });
            Value::Map(moved.collect())
        }
        Value::Null | Value::Plain(_) | Value::Quoted(_) => node.value,
    };
    Node { place, value, indent: node.indent }
}

/// Lines of one field, from where its key stands.
struct Field<'a> {
    key: Key,
    /// Of the first line, from nought.
    number: usize,
    first: &'a str,
    rest: &'a str,
    more: Vec<&'a str>,
}

/// Known keys start a field, every other line goes on with it.
fn lines(head: &str, known: &[&str]) -> Option<Node> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    for (number, line) in head.lines().enumerate() {
        let start = line.split_once(':').map(|(key, rest)| (key.trim_end(), rest));
        // Where nothing goes on yet, whatever looks like a key is one.
        let is_key = |key: &str| known.contains(&key) || (fields.is_empty() && is_word(key));
        match start {
            Some((key, rest)) if is_key(key) => {
                let key = Key { place: Place::new(number + 1, 1), text: key.to_owned() };
                fields.push(Field { key, number, first: line, rest, more: Vec::new() });
            }
            _ if fields.is_empty() && (line.trim().is_empty() || line.starts_with('#')) => {}
            _ => fields.last_mut()?.more.push(line),
        }
    }
    let mut read: Vec<(Key, Node)> = Vec::new();
    for field in fields {
        let value = value(&field);
        // A later line that only looks like the key is a part of what is there.
        if read.iter().all(|(other, _)| other.text != field.key.text) {
            read.push((field.key, value));
        }
    }
    (!read.is_empty()).then(|| Node::new(Place::START, Value::Map(read)))
}

fn is_word(key: &str) -> bool {
    let letter = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
    !key.is_empty() && key.chars().all(letter)
}

/// A field by itself may still be YAML: a list under its key, a block, a quoted line.
fn value(field: &Field<'_>) -> Node {
    let Field { number, first, rest, more, .. } = field;
    // `key:value` is text to YAML and a field to whoever wrote it.
    let spaced = first.replacen(':', ": ", 1);
    let is_tight = !rest.is_empty() && !rest.starts_with(char::is_whitespace);
    let first_line = if is_tight { &spaced } else { *first };
    let alone: Vec<&str> = [first_line].into_iter().chain(more.iter().copied()).collect();
    if let Ok(Some(Node { value: Value::Map(mut fields), .. })) =
        yaml::parse(&format!("{}\n", alone.join("\n")), Twice::Refused)
        && fields.len() == 1
    {
        return lower(fields.remove(0).1, *number);
    }
    let mut text = String::new();
    for line in [*rest].iter().chain(more).map(|line| line.trim()) {
        let parted = text.is_empty() || text.ends_with('\n');
        match line {
            "" => text.push('\n'),
            _ if parted => text.push_str(line),
            _ => {
                text.push(' ');
                text.push_str(line);
            }
        }
    }
    let text = text.trim().trim_start_matches(['|', '>']).trim();
    let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let bare = bare.or_else(|| text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')));
    let value = Value::Quoted(bare.unwrap_or(text).replace("\\n", "\n"));
    let before = first.len() - rest.trim_start().len();
    Node::new(Place::new(number + 1, first[..before].chars().count() + 1), value)
}
