//! JSON as a tree with places. YAML reads most of it, but not tabs or surrogate pairs, and its
//! complaints speak of things that JSON does not have.

use std::collections::BTreeSet;

use crate::limits::DEPTH_MAX;
use crate::problem::Place;
use crate::tree::{Budget, Fault, Key, Node, Value, too_deep, twice};

pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, at: 0, line: 1, column: 1, budget: Budget::default() };
    let node = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(sign) => Err(reader.fault(&format!("'{sign}' after the end"), "delete it")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    column: usize,
    budget: Budget,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += sign.len_utf8();
        self.column += 1;
        if sign == '\n' {
            self.line += 1;
            self.column = 1;
        }
        Some(sign)
    }

    fn place(&self) -> Place {
        Place::new(self.line, self.column)
    }

    fn fault(&self, what: &str, how: &str) -> Fault {
        Fault::new(self.place(), format!("not JSON: {what}"), how)
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|sign| matches!(sign, ' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        self.space();
        let place = self.place();
        if depth > DEPTH_MAX {
            return Err(too_deep(place));
        }
        let value = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Value::Quoted(self.string()?),
            Some(_) => self.word()?,
            None => return Err(self.fault("the text ends too early", "close it")),
        };
        let node = Node::new(place, value);
        self.budget.spend_one(&node)?;
        Ok(node)
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.next();
        let mut fields = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            self.space();
            let place = self.place();
            match self.peek() {
                Some('}') if fields.is_empty() => {
                    self.next();
                    return Ok(Value::Map(fields));
                }
                Some('"') => {}
                Some('}') => {
                    return Err(self.fault("a comma before '}'", "delete the comma"));
                }
                _ => return Err(self.fault("a key in quotes is expected", "write: \"key\": value")),
            }
            let key = Key { place, text: self.string()? };
            if !seen.insert(key.text.clone()) {
                return Err(twice(&key));
            }
            self.space();
            if self.peek() != Some(':') {
                return Err(self.fault("':' is expected", "write: \"key\": value"));
            }
            self.next();
            fields.push((key, self.value(depth + 1)?));
            if self.is_last('}')? {
                return Ok(Value::Map(fields));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Fault> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.space();
            if self.peek() == Some(']') && items.is_empty() {
                self.next();
                return Ok(Value::List(items));
            }
            items.push(self.value(depth + 1)?);
            if self.is_last(']')? {
                return Ok(Value::List(items));
            }
        }
    }

    fn is_last(&mut self, close: char) -> Result<bool, Fault> {
        self.space();
        match self.peek() {
            Some(',') => {
                self.next();
                Ok(false)
            }
            Some(sign) if sign == close => {
                self.next();
                Ok(true)
            }
            _ => Err(self.fault(&format!("',' or '{close}' is expected"), "add one of them")),
        }
    }

    /// Where a string ends is found here; what its escapes mean is left to the library.
    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        let opened = self.place();
        self.next();
        loop {
            match self.next() {
                Some('"') => break,
                Some('\\') => {
                    self.next();
                }
                Some('\n') | None => {
                    return Err(Fault::new(
                        opened,
                        "not JSON: this text has no end",
                        "close it with \"",
                    ));
                }
                Some(_) => {}
            }
        }
        let raw = &self.text[start..self.at];
        serde_json::from_str::<String>(&raw.replace('\t', "\\t")).map_err(|error| {
            // Its place is one inside the text.
            let error = error.to_string();
            let what = error.split(" at line").next().unwrap_or_default();
            Fault::new(opened, format!("not JSON: {what}"), "write \\\\ for a backslash")
        })
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let place = self.place();
        while self.peek().is_some_and(|sign| sign.is_alphanumeric() || "+-._".contains(sign)) {
            self.next();
        }
        let word = &self.text[start..self.at];
        let number = || serde_json::from_str::<serde_json::Number>(word).is_ok();
        match word {
            "null" => Ok(Value::Null),
            "true" | "false" => Ok(Value::Plain(word.to_owned())),
            _ if number() => Ok(Value::Plain(word.to_owned())),
            _ => Err(Fault::new(place, "not JSON: a value is expected", "put text in quotes")),
        }
    }
}
