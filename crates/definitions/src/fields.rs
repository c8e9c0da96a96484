//! The fields of one table, read tolerantly and told strictly: numbers and truth values where
//! text is expected are text, text where a list is expected is a list, and a key that nobody
//! asked for is told with the nearest one that somebody did.

use std::cell::RefCell;
use std::collections::BTreeMap;

use locum_kernel::limits::INPUT_BYTES_MAX;

use crate::near::nearest;
use crate::problem::{Place, Problems, quote};
use crate::tree::{Key, Node, Value};

pub(crate) struct Fields<'a> {
    pairs: &'a [(Key, Node)],
    place: Place,
    problems: &'a Problems,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// `what` is said when it is no table.
    pub(crate) fn of(node: &'a Node, what: &str, problems: &'a Problems) -> Option<Fields<'a>> {
        let pairs: &[(Key, Node)] = match &node.value {
            Value::Map(pairs) => pairs,
            Value::Null => &[],
            Value::Plain(_) | Value::Quoted(_) | Value::List(_) => {
                let found = format!("{what} is {}", node.kind());
                problems.error(node.place, found, "keys and values are expected", example(what));
                return None;
            }
        };
        Some(Fields { pairs, place: node.place, problems, asked: RefCell::default() })
    }

    pub(crate) fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Where the field is, or where the table starts.
    pub(crate) fn place(&self, key: &str) -> Place {
        self.pairs.iter().find(|(k, _)| k.text == key).map_or(self.place, |(k, _)| k.place)
    }

    /// The same for a field with several spellings.
    pub(crate) fn place_as(&self, keys: &[&str]) -> Place {
        let key = keys.iter().find(|key| self.has(key));
        key.map_or(self.place, |key| self.place(key))
    }

    /// Where a field of a table below is, or as much of the way there as is written.
    pub(crate) fn place_below(&self, way: &[&str]) -> Place {
        let (mut pairs, mut place) = (self.pairs, self.place);
        for name in way {
            let Some((key, node)) = pairs.iter().find(|(key, _)| key.text == *name) else { break };
            place = key.place;
            pairs = match &node.value {
                Value::Map(pairs) => pairs,
                Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::List(_) => &[],
            };
        }
        place
    }

    pub(crate) fn place_of_table(&self) -> Place {
        self.place
    }

    /// The first of several spellings that is there and not empty.
    pub(crate) fn node(&self, keys: &[&'static str]) -> Option<(&'a Key, &'a Node)> {
        self.asked.borrow_mut().extend(keys);
        let wanted = |name: &&str| self.pairs.iter().find(|(key, _)| key.text == **name);
        let (key, node) = keys.iter().find_map(wanted)?;
        (!node.is_null()).then_some((key, node))
    }

    /// Where there is nothing in a list of texts, or in its stead: `~` alone is nothing to YAML.
    pub(crate) fn nothings(&self, key: &str) -> Vec<Place> {
        let pair = self.pairs.iter().find(|(known, _)| known.text == key);
        let nodes = match pair.map(|(_, node)| (node, &node.value)) {
            Some((_, Value::List(items))) => items.as_slice(),
            Some((node, _)) => std::slice::from_ref(node),
            None => &[],
        };
        nodes.iter().filter(|node| node.is_null()).map(|node| node.place).collect()
    }

    /// These keys belong to others and mean nothing here.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        self.asked.borrow_mut().extend(keys);
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(k, _)| k.text == key)
    }

    pub(crate) fn text(&self, keys: &[&'static str]) -> Option<String> {
        let (key, node) = self.node(keys)?;
        let text = node.text();
        if text.is_none() {
            let how = format!("{}: some text", key.text);
            self.wrong(key, node, "text is expected", &how);
        }
        text.map(str::to_owned)
    }

    /// What is said first. A session takes no longer message, so no definition has one.
    pub(crate) fn message(&self, key: &'static str) -> Option<String> {
        let text = self.text(&[key]).filter(|text| !text.trim().is_empty())?;
        if text.len() > INPUT_BYTES_MAX {
            let what = format!("\"{key}\" has {} bytes", text.len());
            let why = format!("a message has at most {INPUT_BYTES_MAX}");
            let how = "keep the long part in a file and let the agent read it";
            self.problems.error(self.place(key), what, why, how);
        }
        Some(text)
    }

    /// Text that must be there and say something.
    pub(crate) fn required(&self, keys: &[&'static str], why: &str, how: &str) -> Option<String> {
        let there = self.node(keys).is_some();
        let text = self.text(keys);
        match text {
            Some(text) if !text.trim().is_empty() => Some(text),
            Some(_) => {
                let at = self.place_as(keys);
                let how = format!("write: {how}");
                self.problems.error(at, format!("\"{}\" is empty", keys[0]), why, how);
                None
            }
            None if there => None,
            None => {
                let what = format!("\"{}\" is missing", keys[0]);
                self.problems.error(self.place, what, why, format!("write: {how}"));
                None
            }
        }
    }

    pub(crate) fn flag(&self, keys: &[&'static str]) -> Option<bool> {
        let (key, node) = self.node(keys)?;
        let word = node.text().map(str::to_lowercase);
        let flag = match word.as_deref() {
            Some("true" | "yes" | "on" | "1") => Some(true),
            Some("false" | "no" | "off" | "0") => Some(false),
            _ => None,
        };
        if flag.is_none() {
            let how = format!("{}: true", key.text);
            self.wrong(key, node, "true or false is expected", &how);
        }
        flag
    }

    /// A whole number in a range.
    pub(crate) fn whole(&self, keys: &[&'static str], least: u64, most: u64) -> Option<u64> {
        let (key, node) = self.node(keys)?;
        let text = node.text().map(str::trim).unwrap_or_default();
        // `15.0` is what some programs write for 15.
        let text = text.strip_suffix(".0").unwrap_or(text);
        let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let rule = match most {
                u64::MAX => format!("a whole number of at least {least} is expected"),
                _ => format!("a whole number from {least} to {most} is expected"),
            };
            // The nearest that would do.
            let high = text.parse::<f64>().is_ok_and(|number| number > 1.0);
            let near = if high && most < 1_000_000 { most } else { least };
            self.wrong(key, node, &rule, &format!("{}: {near}", key.text));
        }
        number
    }

    pub(crate) fn decimal(&self, keys: &[&'static str], least: f64, most: f64) -> Option<f64> {
        let (key, node) = self.node(keys)?;
        let number = node.text().and_then(|text| text.trim().parse::<f64>().ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let rule = format!("a number from {least} to {most} is expected");
            self.wrong(key, node, &rule, &format!("{}: {least}", key.text));
        }
        number
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&self, keys: &[&'static str], of: &[(&str, T)]) -> Option<T> {
        let (key, node) = self.node(keys)?;
        let word = node.text().unwrap_or_default().trim();
        let found = of.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        if found.is_none() {
            let names: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
            let meant = nearest(word, names.iter().copied()).or(names.first().copied());
            let rule = format!("one of {} is expected", names.join(", "));
            self.wrong(key, node, &rule, &format!("{}: {}", key.text, meant.unwrap_or("")));
        }
        found.map(|(_, value)| *value)
    }

    pub(crate) fn list(&self, keys: &[&'static str]) -> &'a [Node] {
        let Some((key, node)) = self.node(keys) else { return &[] };
        if let Value::List(items) = &node.value {
            return items;
        }
        let how = format!("{}: [{{…}}], or one line with - for each", key.text);
        self.wrong(key, node, "a list is expected", &how);
        &[]
    }

    /// A list of texts; one text alone is a list of one.
    pub(crate) fn texts(&self, keys: &[&'static str]) -> Option<Vec<String>> {
        Some(bare(self.placed_texts(keys)?))
    }

    pub(crate) fn placed_texts(&self, keys: &[&'static str]) -> Option<Vec<Placed>> {
        let (key, node) = self.node(keys)?;
        match &node.value {
            Value::List(items) => Some(self.scalars(key, items)),
            Value::Plain(text) | Value::Quoted(text) => Some(vec![(text.clone(), node.place)]),
            Value::Null | Value::Map(_) => {
                let how = format!("{}: [one, two]", key.text);
                self.wrong(key, node, "a list is expected", &how);
                None
            }
        }
    }

    /// A list of words; text with commas or spaces between them is one too.
    pub(crate) fn words(&self, keys: &[&'static str]) -> Option<Vec<String>> {
        Some(bare(self.placed_words(keys)?))
    }

    pub(crate) fn placed_words(&self, keys: &[&'static str]) -> Option<Vec<Placed>> {
        let (_, node) = self.node(keys)?;
        match node.text() {
            Some(text) => Some(split(text).into_iter().map(|word| (word, node.place)).collect()),
            None => self.placed_texts(keys),
        }
    }

    fn scalars(&self, key: &Key, items: &[Node]) -> Vec<Placed> {
        let how = format!("{}: [one, two]", key.text);
        let mut texts = Vec::new();
        for item in items {
            match item.text() {
                Some(text) => texts.push((text.to_owned(), item.place)),
                None if item.is_null() => {}
                None => self.wrong_at(item.place, key, item, "text is expected in this list", &how),
            }
        }
        texts
    }

    pub(crate) fn table(&self, keys: &[&'static str], what: &str) -> Option<Fields<'a>> {
        let (_, node) = self.node(keys)?;
        Fields::of(node, what, self.problems)
    }

    /// Free names with text, as for an environment. Anything else is written as JSON.
    pub(crate) fn free(&self, keys: &[&'static str]) -> BTreeMap<String, String> {
        let Some((key, node)) = self.node(keys) else { return BTreeMap::new() };
        let Value::Map(fields) = &node.value else {
            let how = format!("{}: {{NAME: value}}", key.text);
            self.wrong(key, node, "names with values are expected", &how);
            return BTreeMap::new();
        };
        let text = |node: &Node| match node.text() {
            Some(text) => text.to_owned(),
            None if node.is_null() => String::new(),
            None => node.to_json().to_string(),
        };
        fields.iter().map(|(key, node)| (key.text.clone(), text(node))).collect()
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &'a (Key, Node)> {
        self.pairs.iter()
    }

    fn wrong(&self, key: &Key, node: &Node, rule: &str, how: &str) {
        self.wrong_at(node.place, key, node, rule, how);
    }

    fn wrong_at(&self, at: Place, key: &Key, node: &Node, rule: &str, how: &str) {
        let found = match node.text() {
            Some(text) => format!("the text {}", quote(text)),
            None => node.kind().to_owned(),
        };
        let how = format!("write: {how}");
        self.problems.error(at, format!("\"{}\" is {found}", key.text), rule, how);
    }

    /// Keys that are right one table further in or out.
    pub(crate) fn misplaced(&self, keys: &[&'static str], why: &str, how: &str) {
        self.ignore(keys);
        for (key, _) in self.pairs.iter().filter(|(key, _)| keys.contains(&key.text.as_str())) {
            let what = format!("the key {} does nothing here", quote(&key.text));
            self.problems.warn(key.place, what, why, how.replace("KEY", &key.text));
        }
    }

    /// Tells every key that was not asked for.
    pub(crate) fn finish(&self) {
        self.finish_but(|_| false);
    }

    /// The same but for keys that are none of ours by their looks.
    pub(crate) fn finish_but(&self, fine: impl Fn(&str) -> bool) {
        // Finding near names takes a while, and nobody reads more.
        const TOLD: usize = 20;
        let asked = self.asked.borrow();
        let unknown = self.pairs.iter().filter(|(key, _)| !asked.contains(&key.text.as_str()));
        let unknown = unknown.filter(|(key, _)| !fine(&key.text));
        for (key, _) in unknown.take(TOLD) {
            let near = nearest(&key.text, asked.iter().copied());
            let how =
                near.map_or("delete it".to_owned(), |name| format!("did you mean \"{name}\"?"));
            let what = format!("the key {} is not known here", quote(&key.text));
            self.problems.warn(key.place, what, "it does nothing", how);
        }
    }
}

/// A text and where it stands.
pub(crate) type Placed = (String, Place);

fn bare(placed: Vec<Placed>) -> Vec<String> {
    placed.into_iter().map(|(text, _)| text).collect()
}

/// What a table looks like.
fn example(what: &str) -> &'static str {
    match what {
        "a recipe" => "write: title: …, description: … and prompt: … on lines of their own",
        "front matter" => "write: name: … and description: … on lines of their own",
        "a parameter" => {
            "write: {key: topic, input_type: string, requirement: required, description: …}"
        }
        "an extension" => "write: {type: builtin, name: developer}",
        "a sub-recipe" => "write: {name: analyse, path: ./analyse.yaml}",
        "a check" => "write: {type: shell, command: test -f out.txt}",
        "a schema" => "write: {type: object, properties: {…}}",
        "\"settings\"" => "write: settings: {temperature: 0.5}",
        "\"response\"" => "write: response: {json_schema: {type: object}}",
        "\"retry\"" => "write: retry: {max_retries: 3, checks: […]}",
        "\"author\"" => "write: author: {contact: ann}",
        "\"locum\"" => "write: locum: {mode: worker}",
        "\"passthrough\"" => "write: passthrough: {command: [program, argument]}",
        "\"access\"" => "write: access: {chat_types: [private]}",
        _ => "write: key: value",
    }
}

/// `Read, Bash(git add:*)` and `Read Grep`: commas part words, and without commas spaces do, but
/// nothing inside brackets.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut outside = |sign: char| {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    };
    let mut marks: Vec<(char, bool)> = Vec::new();
    let text = text.trim();
    // `[Read, Grep]` that a line reader left as text.
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    for sign in text.chars() {
        marks.push((sign, outside(sign)));
    }
    let commas = marks.iter().any(|(sign, outside)| *outside && matches!(sign, ',' | '\n'));
    let parts = |sign: char| if commas { matches!(sign, ',' | '\n') } else { sign.is_whitespace() };
    let mut words = vec![String::new()];
    for (sign, outside) in marks {
        if outside && parts(sign) {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(sign);
        }
    }
    let clean = |word: String| word.trim().trim_matches(['"', '\'']).to_owned();
    words.into_iter().map(clean).filter(|word| !word.is_empty()).collect()
}
