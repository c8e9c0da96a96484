//! `${NAME}` and `${NAME:-default}` in what a server is started with: which of a person's variables
//! a text names, and what it is with them filled in. Everybody who reads such texts reads them
//! here, so what a person is asked about is what a server gets. `$NAME` alone is no variable.

use std::collections::BTreeMap;
use std::fmt;

use crate::server::{Reach, Server};

/// A text is words and variables in turn.
enum Part<'t> {
    Words(&'t str),
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
    /// `${` without its end.
    Open,
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take().filter(|text| !text.is_empty())?;
        let Some(inside) = text.strip_prefix("${") else {
            let (words, more) = text.split_at(text.find("${").unwrap_or(text.len()));
            rest = Some(more);
            return Some(Part::Words(words));
        };
        let Some((inside, more)) = inside.split_once('}') else { return Some(Part::Open) };
        rest = Some(more);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        Some(Part::Variable { name, default })
    })
}

/// The variables a text names, in its order.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    parts(text).filter_map(|part| match part {
        Part::Variable { name, .. } => Some(name),
        Part::Words(_) | Part::Open => None,
    })
}

/// The text with its variables filled in, once: what a value holds is never looked at again. An
/// error of `held` says why a variable is not to be had; a default stands in for it as for one
/// that is not set or empty.
pub fn fill(
    text: &str,
    held: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Words(words) => filled.push_str(words),
            Part::Open => return Err(format!("`{text}` has no `}}` after `${{`")),
            Part::Variable { name, default: None } => {
                let unset =
                    || format!("${{{name}}} is not set; set it or write ${{{name}:-default}}");
                filled.push_str(&held(name)?.ok_or_else(unset)?);
            }
            Part::Variable { name, default: Some(default) } => {
                let value = held(name).ok().flatten().filter(|value| !value.is_empty());
                filled.push_str(value.as_deref().unwrap_or(default));
            }
        }
    }
    Ok(filled)
}

/// Variables of a person, and what each becomes for a server, in words for the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants(BTreeMap<String, Vec<String>>);

impl Wants {
    /// Everything that `text` names goes `to` there.
    pub fn text(&mut self, text: &str, to: &str) {
        for name in names(text) {
            self.named(name, to);
        }
    }

    /// What a variable of the server's own is set to.
    pub fn variable(&mut self, variable: &str, text: &str) {
        for name in names(text) {
            let own = if name == variable { String::new() } else { format!("as {variable}") };
            self.named(name, &own);
        }
    }

    fn named(&mut self, name: &str, to: &str) {
        let spots = self.0.entry(name.to_owned()).or_default();
        if !to.is_empty() && !spots.iter().any(|spot| spot == to) {
            spots.push(to.to_owned());
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// `GITHUB_TOKEN of your environment as TOKEN and in its arguments`.
impl fmt::Display for Wants {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, spots)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let gap = if spots.is_empty() { "" } else { " " };
            write!(out, "{comma}{name} of your environment{gap}{}", spots.join(" and "))?;
        }
        Ok(())
    }
}

impl Server {
    /// The variables of a person's environment that it would be given.
    #[must_use]
    pub fn wants(&self) -> Wants {
        let mut wants = Wants::default();
        match &self.how {
            Reach::Stdio { command, args, env, env_keys } => {
                for name in env_keys {
                    wants.named(name, "");
                }
                wants.text(command, "in its command");
                for text in args {
                    wants.text(text, "in its arguments");
                }
                for (name, text) in env {
                    wants.variable(name, text);
                }
            }
            Reach::Http { url, headers, env, env_keys, .. } => {
                for name in env_keys {
                    wants.named(name, "");
                }
                let headers = headers.iter().map(|(name, text)| (format!("in {name}"), text));
                let address = ("in its address".to_owned(), url);
                for (to, text) in headers.chain([address]) {
                    for name in names(text) {
                        // What the file sets itself is its own, unless that names another.
                        match env.get(name) {
                            Some(own) => wants.text(own, &to),
                            None => wants.named(name, &to),
                        }
                    }
                }
            }
            Reach::Builtin { .. }
            | Reach::Python { .. }
            | Reach::Frontend { .. }
            | Reach::Named => {}
        }
        wants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str) -> Result<Option<String>, String> {
        match name {
            "HOME" => Ok(Some("/srv/a".to_owned())),
            "TOKEN" => Ok(Some("t0k".to_owned())),
            "EMPTY" => Ok(Some(String::new())),
            "NESTED" => Ok(Some("${TOKEN}".to_owned())),
            "KEY" => Err("KEY is kept".to_owned()),
            _ => Ok(None),
        }
    }

    #[test]
    fn filled() {
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("", Ok("")),
            ("plain $HOME", Ok("plain $HOME")),
            ("${HOME}/x", Ok("/srv/a/x")),
            ("${NONE:-d}${TOKEN}", Ok("dt0k")),
            ("${EMPTY:-d}", Ok("d")),
            ("${EMPTY}", Ok("")),
            ("${NONE:-}", Ok("")),
            ("${NONE:-$TOKEN}", Ok("$TOKEN")),
            ("${NONE}", Err("${NONE} is not set; set it or write ${NONE:-default}")),
            ("a${NONE", Err("`a${NONE` has no `}` after `${`")),
            ("é${HOME}é", Ok("é/srv/aé")),
            // A value is a value.
            ("${NESTED}", Ok("${TOKEN}")),
            ("$${NESTED}{TOKEN}", Ok("$${TOKEN}{TOKEN}")),
            ("${KEY}", Err("KEY is kept")),
            ("${KEY:-none}", Ok("none")),
        ];
        for (text, expected) in cases {
            let got = fill(text, held);
            assert_eq!(got.as_deref().map_err(String::as_str), *expected, "{text}");
        }
    }

    #[test]
    fn every_filled_variable_is_named() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("$A {B} $", &[]),
            ("${A}${B:-x} ${A}", &["A", "B", "A"]),
            ("${A:-${B}}", &["A"]),
            ("${A ${B}", &["A ${B"]),
            ("${", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(names(text).collect::<Vec<_>>(), *expected, "{text}");
            let asked = std::cell::RefCell::new(Vec::new());
            let _ = fill(text, |name| {
                asked.borrow_mut().push(name.to_owned());
                Ok(Some(String::new()))
            });
            assert_eq!(*asked.borrow(), *expected, "{text}");
        }
    }
}
