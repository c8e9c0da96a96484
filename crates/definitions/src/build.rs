//! A definition with its values: what the runtime can start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::UndefinedBehavior;
use serde::Serialize;

use crate::definition::{Definition, Scope, SubRecipe};
use crate::file::Refused;
use crate::limits::VALUE_BYTES_MAX;
use crate::near::nearest;
use crate::parameter::{InputType, Parameter, Requirement};
use crate::pieces::{Pieces, has_marks, is_mark};
use crate::problem::{Place, Problem, Problems};
use crate::tree::Fault;
use crate::yaml::Twice;
use crate::{file, hidden, recipe, shape, template, yaml};

/// What somebody gives a definition to start with.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub values: BTreeMap<String, String>,
    /// Where the relative paths of file parameters start.
    pub base: PathBuf,
    /// The folders that file parameters may be in.
    pub roots: Vec<PathBuf>,
}

/// Who gives the values, and so reads what is wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asker {
    /// At a command line.
    #[default]
    People,
    /// With the arguments of a call.
    Models,
}

impl Asker {
    /// How to give a value, in words of theirs.
    fn how(self, key: &str) -> String {
        match self {
            Asker::People => format!("--param {key}=…"),
            Asker::Models => format!("parameters: {{\"{key}\": \"…\"}}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Outcome {
    Built(Box<Built>),
    /// A person has to be asked for these first.
    Needs(Vec<Parameter>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Built {
    /// With every template rendered.
    pub definition: Definition,
    /// Sub-recipes by name, with where they really are.
    pub sub_recipes: BTreeMap<String, PathBuf>,
    /// Worth a word, and no reason to stop.
    pub problems: Vec<Problem>,
}

/// Why there is nothing to start.
#[derive(Clone, Debug, PartialEq)]
pub enum Unbuilt {
    /// With other values there may be.
    Values(Vec<Problem>),
    /// The file is to be mended.
    File(Vec<Problem>),
}

impl Unbuilt {
    #[must_use]
    pub fn problems(self) -> Vec<Problem> {
        match self {
            Unbuilt::Values(problems) | Unbuilt::File(problems) => problems,
        }
    }
}

/// Checks the values, reads the files among them and renders. Every problem is named at once.
pub fn build(definition: &Definition, given: &Given) -> Result<Outcome, Vec<Problem>> {
    build_for(Asker::People, definition, given).map_err(Unbuilt::problems)
}

/// What keeps it from being built if it can be seen before anybody gives a value.
#[must_use]
pub fn rehearsed(definition: &Definition) -> Vec<Problem> {
    if definition.parameters.iter().any(|parameter| parameter.default.is_none()) {
        return Vec::new();
    }
    build(definition, &Given::default()).err().unwrap_or_default()
}

/// The same in words that whoever asks can act on.
pub fn build_for(asker: Asker, definition: &Definition, given: &Given) -> Result<Outcome, Unbuilt> {
    let problems = Problems::new(&definition.origin.file);
    let (values, needs) = values(asker, definition, given, &problems);
    if problems.has_errors() {
        // Whoever has to come again brings these as well.
        for Parameter { key, about, place, .. } in &needs {
            let what = format!("the parameter \"{key}\" has no value");
            problems.error(*place, what, format!("it is asked for: {about}"), asker.how(key));
        }
        return Err(Unbuilt::Values(problems.take()));
    }
    if !needs.is_empty() {
        return Ok(Outcome::Needs(needs));
    }
    let rendered = match &definition.template {
        Some(text) => render(definition, text, &values, &problems),
        None => Some(definition.clone()),
    };
    let Some(definition) = rendered.filter(|_| !problems.has_errors()) else {
        return Err(Unbuilt::File(problems.take()));
    };
    let sub_recipes = sub_recipes(&definition, &problems);
    if problems.has_errors() {
        return Err(Unbuilt::File(problems.take()));
    }
    let built = Built { definition, sub_recipes, problems: problems.take() };
    Ok(Outcome::Built(Box::new(built)))
}

/// Given, else the default, else asked for, else missing.
fn values(
    asker: Asker,
    definition: &Definition,
    given: &Given,
    problems: &Problems,
) -> (BTreeMap<String, String>, Vec<Parameter>) {
    let mut values = BTreeMap::new();
    let mut needs = Vec::new();
    for parameter in &definition.parameters {
        let key = &parameter.key;
        match (given.values.get(key), &parameter.default, parameter.requirement) {
            (Some(value), _, _) => {
                if let Some(value) = accepted(asker, parameter, value, given, problems) {
                    values.insert(key.clone(), value);
                }
            }
            (None, Some(default), _) => {
                values.insert(key.clone(), default.clone());
            }
            (None, None, Requirement::UserPrompt) => needs.push(parameter.clone()),
            (None, None, Requirement::Required | Requirement::Optional) => {
                let what = format!("the parameter \"{key}\" has no value");
                let why = format!("it is required: {}", parameter.about);
                problems.error(parameter.place, what, why, asker.how(key));
            }
        }
    }
    let keys = || definition.parameters.iter().map(|parameter| parameter.key.as_str());
    for name in given.values.keys().filter(|name| keys().all(|key| key != name.as_str())) {
        let how = match nearest(name, keys()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if definition.parameters.is_empty() => "there are none here".to_owned(),
            None => format!("there are {}", keys().collect::<Vec<_>>().join(", ")),
        };
        let what = format!("there is no parameter \"{name}\"");
        // Where another has no value, this is probably the one that was meant for it.
        if problems.has_errors() || !needs.is_empty() {
            problems.error(Place::START, what, "its value is not used", how);
        } else {
            problems.warn(Place::START, what, "its value is not used", how);
        }
    }
    let folder = definition.origin.folder().display().to_string();
    values.insert(template::RECIPE_DIR.to_owned(), folder);
    (values, needs)
}

fn accepted(
    asker: Asker,
    parameter: &Parameter,
    value: &str,
    given: &Given,
    problems: &Problems,
) -> Option<String> {
    if let Err((what, how)) = parameter.check(value) {
        problems.error(parameter.place, what, "that is its input_type", how);
        return None;
    }
    let value = match parameter.input {
        InputType::File => contents(asker, parameter, value, given, problems)?,
        InputType::String
        | InputType::Number
        | InputType::Boolean
        | InputType::Date
        | InputType::Select => value.to_owned(),
    };
    let key = &parameter.key;
    let length = u64::try_from(value.len()).unwrap_or(u64::MAX);
    if length > VALUE_BYTES_MAX {
        let what = format!("the value of \"{key}\" has {length} bytes");
        let why = format!("at most {VALUE_BYTES_MAX} fit");
        problems.error(parameter.place, what, why, "give a shorter one");
        return None;
    }
    let mark = || if has_marks(&value) { value.chars().find(|sign| is_mark(*sign)) } else { None };
    let bad = hidden::refused(&value).or_else(mark);
    if let Some(sign) = bad {
        let what = format!("the value of \"{key}\" hides U+{:04X}", u32::from(sign));
        problems.error(parameter.place, what, "nobody sees it, the model does", "delete it");
        return None;
    }
    Some(value)
}

/// A file's text, from a folder that files may be taken from.
fn contents(
    asker: Asker,
    parameter: &Parameter,
    path: &str,
    given: &Given,
    problems: &Problems,
) -> Option<String> {
    let key = &parameter.key;
    let whole = given.base.join(path);
    let mut refusal = None;
    for root in &given.roots {
        match file::read(&whole, root, VALUE_BYTES_MAX) {
            Ok(text) => return Some(text),
            Err(refused) => refusal = Some(refused),
        }
    }
    let why = refusal.map_or("no folder is open for files".to_owned(), |why| why.to_string());
    let what = format!("the file for \"{key}\" was not read");
    let how = match asker {
        Asker::People => format!("{key}=path/of/a/file"),
        Asker::Models => format!("{key}=path/in/the/workspace"),
    };
    problems.error(parameter.place, what, why, how);
    None
}

fn render(
    definition: &Definition,
    text: &str,
    values: &BTreeMap<String, String>,
    problems: &Problems,
) -> Option<Definition> {
    let told = |fault: Fault, why: &str| problems.error(fault.place, fault.what, why, fault.how);
    let pieces = Pieces::of(text).map_err(|fault| told(fault, "it cannot be rendered")).ok()?;
    let origin = &definition.origin;
    let rendered = template::render(&pieces, origin.folder(), values, UndefinedBehavior::Strict);
    let rendered = rendered.map_err(|fault| told(fault, "it cannot be rendered")).ok()?;
    let tree = shape::parse(rendered.text(), &origin.file, Twice::Refused);
    let why = "with these values it cannot be read; the place is in the rendered text";
    let (node, tabs) = tree.map_err(|fault| told(fault, why)).ok()?;
    let node = node.map_text(&|part, indent| rendered.fill(part, indent));
    // Warnings were told when it was loaded, at places that were right.
    let quiet = Problems::new(&origin.file);
    yaml::tell_tabs(tabs, &quiet);
    let mut built = recipe::read(&node, origin, &quiet);
    let wrong: Vec<Problem> = quiet.take().into_iter().filter(Problem::is_error).collect();
    problems.extend(wrong);
    if let Some(built) = &mut built {
        // What stands around these in the file decides who they are, not the values.
        built.name.clone_from(&definition.name);
        built.parameters.clone_from(&definition.parameters);
    }
    built
}

/// Sub-recipes that a run would not find, or that lead out of the project. A path that is only
/// known with values says nothing before.
#[must_use]
pub fn lost_sub_recipes(definition: &Definition) -> Vec<Problem> {
    let problems = Problems::new(&definition.origin.file);
    let mut known = definition.clone();
    known.sub_recipes.retain(|sub| !sub.path.contains("{{"));
    sub_recipes(&known, &problems);
    problems.take()
}

fn lost(sub: &SubRecipe, refused: &Refused, problems: &Problems) {
    let what = format!("the sub-recipe \"{}\" was not found", sub.name);
    problems.error(sub.place, what, refused.to_string(), "check its path");
}

/// They must be there, and a project's must be in the project.
fn sub_recipes(definition: &Definition, problems: &Problems) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for sub in &definition.sub_recipes {
        let path = definition.origin.folder().join(&sub.path);
        let root = match definition.origin.scope {
            Scope::Workspace => &definition.origin.root,
            Scope::RecipePath | Scope::User | Scope::Builtin => Path::new("/"),
        };
        match file::beneath(&path, root) {
            Ok(real) => {
                found.insert(sub.name.clone(), real);
            }
            Err(refused) => lost(sub, &refused, problems),
        }
    }
    found
}
