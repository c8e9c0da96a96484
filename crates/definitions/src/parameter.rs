//! What a recipe wants to know before it starts: six types, three ways of being needed.

use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::near::nearest;
use crate::problem::{Place, Problems, quote};
use crate::tree::Node;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub key: String,
    pub about: String,
    pub input: InputType,
    pub requirement: Requirement,
    pub default: Option<String>,
    /// What can be chosen, for `select`.
    pub options: Vec<String>,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    String,
    Number,
    Boolean,
    Date,
    /// The value is a path, what is rendered is the file's text.
    File,
    Select,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    Required,
    Optional,
    /// A person is asked if nobody says.
    UserPrompt,
}

const INPUTS: &[(&str, InputType)] = &[
    ("string", InputType::String),
    ("number", InputType::Number),
    ("boolean", InputType::Boolean),
    ("date", InputType::Date),
    ("file", InputType::File),
    ("select", InputType::Select),
];

const REQUIREMENTS: &[(&str, Requirement)] = &[
    ("required", Requirement::Required),
    ("optional", Requirement::Optional),
    ("user_prompt", Requirement::UserPrompt),
];

impl Parameter {
    /// Its key, and whether there must be a value from somebody.
    pub(crate) fn need(&self) -> (String, bool) {
        (self.key.clone(), self.default.is_none())
    }
}

pub(crate) fn read(node: &Node, problems: &Problems) -> Option<Parameter> {
    let fields = Fields::of(node, "a parameter", problems)?;
    let key = fields.required(&["key", "name"], "the template names it", "key: topic");
    let why = "it says what kind of value this is";
    let input = fields.required(&["input_type"], why, "input_type: string");
    let input = input.and_then(|_| fields.choice(&["input_type"], INPUTS));
    let why = "it says whether there must be a value";
    let requirement = fields.required(&["requirement"], why, "requirement: required");
    let requirement = requirement.and_then(|_| fields.choice(&["requirement"], REQUIREMENTS));
    let why = "people are asked with it";
    let about = fields.required(&["description"], why, "description: What to search for");
    let default = fields.text(&["default"]);
    // `default: ""` is a default, and YAML's nothing is none.
    let options = fields.texts(&["options"]).unwrap_or_default();
    let why = "a parameter has input_type and requirement";
    fields.misplaced(&["type"], why, "write: input_type: string");
    fields.misplaced(&["required"], why, "write: requirement: required");
    fields.misplaced(&["value"], why, "write: default: …");
    fields.finish();
    let place = fields.place_as(&["key", "name"]);
    // Whatever else is wrong with it was told, and nobody uses such a file: what can be said of
    // the rest is said at once, and the template's name for it is one.
    let parameter = Parameter {
        key: key?,
        about: about.unwrap_or_default(),
        input: input.unwrap_or(InputType::String),
        requirement: requirement.unwrap_or(Requirement::Required),
        default,
        options,
        place,
    };
    rules(&parameter, &fields, problems);
    Some(parameter)
}

/// What a template can name.
pub(crate) fn is_name(key: &str) -> bool {
    let named = |sign: char| sign.is_alphanumeric() || sign == '_';
    key.chars().all(named) && !key.starts_with(|sign: char| sign.is_ascii_digit())
}

fn rules(parameter: &Parameter, fields: &Fields<'_>, problems: &Problems) {
    let Parameter { key, input, requirement, default, options, place, .. } = parameter;
    if !is_name(key) {
        let what = format!("the key {} is no name", quote(key));
        problems.error(
            *place,
            what,
            "a template could not name it",
            "write it with letters, digits and _",
        );
    }
    if *requirement == Requirement::Optional && default.is_none() {
        let what = format!("the parameter \"{key}\" is optional and has no default");
        let why = "nothing could be put in its place";
        problems.error(*place, what, why, "add default: \"\" or write requirement: required");
    }
    if *input == InputType::File && default.is_some() {
        let what = format!("the file parameter \"{key}\" has a default");
        let why = "a recipe may not choose which file of a person it reads";
        problems.error(fields.place("default"), what, why, "delete the default");
    }
    if *input == InputType::Select && options.is_empty() {
        let what = format!("the parameter \"{key}\" has nothing to select from");
        problems.warn(*place, what, "every value is taken", "write: options: [one, two]");
    }
    // The recipes' own program takes any default, so a wrong one is only told.
    let odd = |value: &&String| !value.is_empty() && !value.contains("{{");
    let odd = default.as_ref().filter(odd).filter(|_| *input != InputType::File);
    if let Some(Err((what, how))) = odd.map(|value| parameter.check(value)) {
        problems.warn(fields.place("default"), what, "that is its input_type", how);
    }
}

impl Parameter {
    /// Whether a value is of its type: what is wrong, and how to write it.
    pub fn check(&self, value: &str) -> Result<(), (String, String)> {
        let key = &self.key;
        let shown = quote(value);
        let wrong = |kind: &str, how: &str| {
            Err((format!("{shown} for \"{key}\" is not {kind}"), format!("{key}={how}")))
        };
        let word = value.trim();
        match self.input {
            InputType::String | InputType::File => Ok(()),
            InputType::Number => match word.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(()),
                Ok(_) | Err(_) => wrong("a number", "15"),
            },
            InputType::Boolean => match word.to_ascii_lowercase().as_str() {
                "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" => Ok(()),
                _ => wrong("true or false", "true"),
            },
            InputType::Date if is_date(word) => Ok(()),
            InputType::Date => wrong("a date", "2026-01-31"),
            InputType::Select if self.options.is_empty() => Ok(()),
            InputType::Select if self.options.iter().any(|option| option == value) => Ok(()),
            InputType::Select => {
                let options = self.options.iter().map(String::as_str);
                let meant = nearest(value, options).or(self.options.first().map(String::as_str));
                let kind = format!("one of {}", self.options.join(", "));
                wrong(&kind, meant.unwrap_or(""))
            }
        }
    }
}

/// `2026-01-31`, alone or before a time of day.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or("");
    let parts: Vec<&str> = day.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let digits = |part: &str, count| {
        let number = part.len() == count && part.chars().all(|sign| sign.is_ascii_digit());
        number.then(|| part.parse::<u32>().unwrap_or(0))
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}
