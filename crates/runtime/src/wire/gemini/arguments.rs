//! Arguments that come in pieces: each names its place by a path (`$.edits[0].old`) and is a value,
//! or one more part of a text that was begun there.

use locum_kernel::Failure;
use serde_json::{Map, Value};

use super::event::Partial;
use crate::wire::malformed;

/// How deep arguments may go. The kernel takes no more than this anyway.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Arguments {
    whole: Map<String, Value>,
    /// The place of a text that goes on.
    unfinished: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step<'p> {
    Name(&'p str),
    Place(usize),
}

impl Arguments {
    /// Those that are there from the start.
    pub(super) fn begin(&mut self, args: Value) -> Result<(), Failure> {
        match args {
            Value::Object(args) if self.whole.is_empty() && self.unfinished.is_none() => {
                self.whole = args;
                Ok(())
            }
            Value::Null => Ok(()),
            Value::Object(_)
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(malformed("arguments in pieces and as a whole")),
        }
    }

    /// Takes a piece; says how many bytes it added.
    pub(super) fn add(&mut self, piece: Partial<'_>) -> Result<usize, Failure> {
        let path = &*piece.json_path;
        let same = self.unfinished.as_deref() == Some(path);
        if same && !piece.will_continue {
            self.unfinished = None;
        }
        if same && let Some(text) = &piece.string_value {
            if let Some(Value::String(begun)) = find(&mut self.whole, path)? {
                begun.push_str(text);
            }
            return Ok(text.len());
        }
        let empty = piece.string_value.is_none()
            && piece.number_value.is_none()
            && piece.bool_value.is_none()
            && !piece.null_value.0;
        // Only says that something comes there, or that it was all.
        if empty && (same || piece.will_continue) {
            return Ok(0);
        }
        if same || self.unfinished.is_some() {
            return Err(malformed("an argument begins inside another"));
        }
        let value = match (piece.string_value, piece.number_value, piece.bool_value) {
            (Some(text), _, _) => Value::String(text),
            (None, Some(number), _) => Value::Number(number),
            (None, None, Some(flag)) => Value::Bool(flag),
            (None, None, None) if piece.null_value.0 => Value::Null,
            // Something of a kind not known here: the arguments are not whole without it.
            (None, None, None) => return Err(malformed("a part of an argument without a value")),
        };
        let added = path.len() + value.as_str().map_or(8, str::len);
        let goes_on = piece.will_continue && value.is_string();
        let place = make(&mut self.whole, path)?;
        if !place.is_null() {
            return Err(malformed("an argument comes twice"));
        }
        *place = value;
        self.unfinished = goes_on.then(|| path.to_owned());
        Ok(added)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.unfinished.is_none()
    }

    /// What there is so far.
    pub(super) fn value(&self) -> Value {
        Value::Object(self.whole.clone())
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.whole)
    }
}

fn find<'v>(
    root: &'v mut Map<String, Value>,
    path: &str,
) -> Result<Option<&'v mut Value>, Failure> {
    let mut steps = steps(path)?.into_iter();
    let Some(Step::Name(name)) = steps.next() else { return Ok(None) };
    let mut at = root.get_mut(name);
    for step in steps {
        at = at.and_then(|value| match step {
            Step::Name(name) => value.get_mut(name),
            Step::Place(place) => value.get_mut(place),
        });
    }
    Ok(at)
}

/// The place a path leads to, with everything on the way to it made.
fn make<'v>(root: &'v mut Map<String, Value>, path: &str) -> Result<&'v mut Value, Failure> {
    let mut steps = steps(path)?.into_iter();
    let Some(Step::Name(name)) = steps.next() else {
        return Err(malformed("arguments that are no object"));
    };
    let mut at = root.entry(name).or_insert(Value::Null);
    for step in steps {
        at = match step {
            Step::Name(name) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let inside = at.as_object_mut().map(|it| it.entry(name).or_insert(Value::Null));
                inside.ok_or_else(|| malformed("an argument inside one that is no object"))?
            }
            Step::Place(place) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut();
                let list =
                    list.ok_or_else(|| malformed("an argument inside one that is no list"))?;
                if place == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(place)
                    .ok_or_else(|| malformed("an argument beyond the end of a list"))?
            }
        };
    }
    Ok(at)
}

/// `$.a.b[0]['c']`, step by step.
fn steps(path: &str) -> Result<Vec<Step<'_>>, Failure> {
    let odd = || malformed("an argument at a path that does not parse");
    let mut rest = path.strip_prefix('$').ok_or_else(odd)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(Step::Name(&after[..end]));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let quote = if rest.as_bytes()[1] == b'"' { "\"]" } else { "']" };
            let (name, after) = after.split_once(quote).ok_or_else(odd)?;
            steps.push(Step::Name(name));
            rest = after;
        } else {
            let (place, after) =
                rest.strip_prefix('[').and_then(|it| it.split_once(']')).ok_or_else(odd)?;
            steps.push(Step::Place(place.parse().map_err(|_| odd())?));
            rest = after;
        }
        if steps.len() > DEPTH_MAX || steps.last() == Some(&Step::Name("")) {
            return Err(odd());
        }
    }
    if steps.is_empty() { Err(odd()) } else { Ok(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_steps() {
        use Step::{Name, Place};
        let cases: [(&str, Option<&[Step<'_>]>); 10] = [
            ("$.a", Some(&[Name("a")])),
            ("$.a.b[0].c", Some(&[Name("a"), Name("b"), Place(0), Name("c")])),
            ("$['a.b'][2]", Some(&[Name("a.b"), Place(2)])),
            ("$[\"a'b\"]", Some(&[Name("a'b")])),
            ("$", None),
            ("a", None),
            ("$..a", None),
            ("$[x]", None),
            ("$[-1]", None),
            ("$['a", None),
        ];
        for (path, expected) in cases {
            assert_eq!(steps(path).ok().as_deref(), expected, "{path}");
        }
        assert!(steps(&format!("${}", ".a".repeat(DEPTH_MAX + 1))).is_err());
    }
}
