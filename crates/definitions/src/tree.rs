//! A file's values with their places, whichever syntax it is written in. Plain words keep their
//! letters: whether `15`, `no` or `1.0` is text or a number is for who reads the field.

use serde_json::{Map, Number, Value as Json};

use crate::limits::{DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX};
use crate::problem::Place;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// How far the lines of a block are indented in the file; everything else has no such lines.
    pub(crate) indent: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Written as nothing, `~` or `null`.
    Null,
    /// Written without quotes.
    Plain(String),
    /// Written in quotes or as a block.
    Quoted(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// What a text could not be read for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) what: String,
    pub(crate) how: String,
}

impl Fault {
    pub(crate) fn new(place: Place, what: impl Into<String>, how: &str) -> Fault {
        Fault { place, what: what.into(), how: how.to_owned() }
    }
}

impl Node {
    pub(crate) fn new(place: Place, value: Value) -> Node {
        Node { place, value, indent: None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Plain(text) | Value::Quoted(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(fields) => fields.iter().find(|(k, _)| k.text == key).map(|(_, node)| node),
            Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::List(_) => None,
        }
    }

    /// In a person's words.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Plain(_) | Value::Quoted(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a table of keys",
        }
    }

    /// As a program wants it: plain words become numbers, truth values and nothing.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Plain(text) => plain_json(text),
            Value::Quoted(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(fields) => {
                let pairs = fields.iter().map(|(key, node)| (key.text.clone(), node.to_json()));
                Json::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Every text in it, with where it starts.
    pub(crate) fn each_text(&self, tell: &mut dyn FnMut(&str, Place)) {
        match &self.value {
            Value::Null => {}
            Value::Plain(text) | Value::Quoted(text) => tell(text, self.place),
            Value::List(items) => items.iter().for_each(|item| item.each_text(tell)),
            Value::Map(fields) => {
                for (key, node) in fields {
                    tell(&key.text, key.place);
                    node.each_text(tell);
                }
            }
        }
    }

    /// The same with every text changed, given how far it is indented.
    pub(crate) fn map_text(self, change: &dyn Fn(String, Option<usize>) -> String) -> Node {
        let indent = self.indent;
        let value = match self.value {
            Value::Null => Value::Null,
            Value::Plain(text) => Value::Plain(change(text, indent)),
            Value::Quoted(text) => Value::Quoted(change(text, indent)),
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| item.map_text(change)).collect())
            }
            Value::Map(fields) => {
                let changed = fields.into_iter().map(|(key, node)| (key, node.map_text(change)));
                Value::Map(changed.collect())
            }
        };
        Node { place: self.place, value, indent }
    }
}

impl Node {
    /// The same with everything elsewhere.
    pub(crate) fn map_places(self, moved: &dyn Fn(Place) -> Place) -> Node {
        let value = match self.value {
            value @ (Value::Null | Value::Plain(_) | Value::Quoted(_)) => value,
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| item.map_places(moved)).collect())
            }
            Value::Map(fields) => {
                let there = |key: Key| Key { place: moved(key.place), ..key };
                let fields = fields.into_iter();
                Value::Map(fields.map(|(key, it)| (there(key), it.map_places(moved))).collect())
            }
        };
        Node { place: moved(self.place), value, indent: self.indent }
    }
}

/// `0755` and `1_000` stay text, as the authors of identifiers expect.
fn plain_json(text: &str) -> Json {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let octal = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let number = digits.starts_with(|sign: char| sign.is_ascii_digit()) && !octal;
    match text {
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ if number => {
            let whole = text.parse::<i64>().map(Number::from).ok();
            let whole = whole.or_else(|| text.parse::<u64>().map(Number::from).ok());
            let fraction = || text.parse::<f64>().ok().and_then(Number::from_f64);
            let number = whole.or_else(fraction).map(Json::Number);
            number.unwrap_or_else(|| Json::String(text.to_owned()))
        }
        _ => Json::String(text.to_owned()),
    }
}

/// Counts what is built, so that a small file cannot become a large tree.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    nodes: usize,
    bytes: usize,
}

impl Budget {
    /// For a value whose parts were paid for when they were read.
    pub(crate) fn spend_one(&mut self, node: &Node) -> Result<(), Fault> {
        self.nodes += 1;
        self.bytes += node.text().map_or(0, str::len);
        self.check(node)
    }

    /// For a copy, with all its parts.
    pub(crate) fn spend(&mut self, node: &Node) -> Result<(), Fault> {
        self.count(node);
        self.check(node)
    }

    fn check(&self, node: &Node) -> Result<(), Fault> {
        if self.nodes > NODES_MAX || self.bytes > TEXT_BYTES_MAX {
            let what = format!("more than {NODES_MAX} values or {TEXT_BYTES_MAX} bytes of text");
            return Err(Fault::new(node.place, what, "use fewer aliases, or split the file"));
        }
        Ok(())
    }

    /// Stops soon after the bound, so that counting itself is bounded.
    fn count(&mut self, node: &Node) {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return;
        }
        match &node.value {
            Value::Null => {}
            Value::Plain(text) | Value::Quoted(text) => self.bytes += text.len(),
            Value::List(items) => items.iter().for_each(|item| self.count(item)),
            Value::Map(fields) => {
                for (key, value) in fields {
                    self.bytes += key.text.len();
                    self.count(value);
                }
            }
        }
    }
}

pub(crate) fn too_deep(place: Place) -> Fault {
    let what = format!("more than {DEPTH_MAX} collections inside each other");
    Fault::new(place, what, "make it flatter")
}

const TWICE: &str = " is there twice";

impl Fault {
    /// Too much of something, which another reading would only find again.
    pub(crate) fn is_bound(&self) -> bool {
        self.what.starts_with("more than ")
    }

    pub(crate) fn is_twice(&self) -> bool {
        self.what.ends_with(TWICE)
    }
}

/// A second key of the same name hides the first from half of all readers.
pub(crate) fn twice(key: &Key) -> Fault {
    let what = format!("the key \"{}\"{TWICE}", key.text);
    Fault::new(key.place, what, "keep one of them")
}
