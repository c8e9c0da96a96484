//! Who is at the root of a run when it is not main: a recipe from a file, or a definition by name,
//! built with the values that were given and, on a terminal, those that people are asked for.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use locum_definitions::{
    Asker, Built, Definition, Kind, Library as Files, Loaded, NotFound, Parameter, Problem,
    load_from,
};
use locum_kernel::{Definition as Judged, Kind as JudgedKind};
use locum_runtime::script::Script;

use crate::complaint::{Complaint, USAGE};
use crate::flags::Run;
use crate::librarian::{Librarian, Unbuilt, listed, origin, without_servers};
use crate::model::Instead;
use crate::print;
use crate::text::{clean, row};
use crate::trust::{self, Person};

/// Times a person is asked again after an answer that does not fit.
const ANSWERS_MAX: usize = 5;

/// The definition the flags name, as the root of a session; `None` if they name none, or one that
/// only a script knows.
pub(crate) fn of(
    flags: &Run,
    librarian: &Librarian,
    script: Option<&Script>,
    (person, words): (Person, Option<&str>),
) -> Result<Option<Judged>, Complaint> {
    // Who is only played by whoever has no part of their own is nobody in particular.
    let has_part = |name: &str| script.is_some_and(|script| script.names().any(|it| it == name));
    let values = values(flags)?;
    let files = librarian.files();
    let no_values =
        |name: &str| if values.is_empty() { Ok(None) } else { Err(Complaint::no_values(name)) };
    let definition = match (&flags.recipe, &flags.agent) {
        (Some(recipe), _) => recipe_of(recipe, librarian, &files)?,
        (None, Some(name)) => match files.named(name) {
            Ok(found) => {
                let taken = librarian.taken(files.load(found));
                taken.map_err(|problems| Complaint::definition(name, &problems))?
            }
            Err(_) if has_part(name) => return no_values(name),
            Err(not_found) => return Err(Complaint::not_found(&not_found).with_parts(script)),
        },
        (None, None) => return no_values("main"),
    };
    if definition.parameters.is_empty() {
        no_values(&definition.name)?;
    }
    let built = built(&definition, librarian, values)?;
    let mut judged = librarian.judged(&files, &built, words.unwrap_or_default());
    judged.kind = JudgedKind::Main;
    if flags.model.is_some() {
        judged.model = None;
    }
    if let Some(caution) = judged.caution.take() {
        let is_agreed =
            person == Person::There && trust::agrees(&format!("{caution}. Let it? [y/N]"));
        if !is_agreed {
            let how = "do: run it on a terminal, or with --trust";
            print::note(&format!("note: not done, because nobody agreed: {caution}. {how}"));
            without_servers(&mut judged);
        }
    }
    // A script that has nothing for the root would only say that it ended.
    let is_silent = script.is_some_and(|script| !script.plays(&judged.name));
    if is_silent && judged.program.is_none() {
        print::note(&format!("note: the script has nothing for {}", judged.name));
    }
    Ok(Some(judged))
}

/// What `--param` gives, each once.
fn values(flags: &Run) -> Result<BTreeMap<String, String>, Complaint> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &flags.param {
        if let Some(before) = values.insert(key.clone(), value.clone()) {
            return Err(Complaint::twice(key, [&before, value]));
        }
    }
    Ok(values)
}

/// What the root needs where no model is to be found, as far as its file says before it is built.
pub(crate) fn instead(flags: &Run, files: &Files, workspace: &Path) -> Instead {
    let loaded = match (&flags.recipe, &flags.agent) {
        (Some(recipe), _) => from_recipe(recipe, files, workspace).ok(),
        (None, Some(name)) => files.named(name).ok().map(|found| files.load(found)),
        (None, None) => None,
    };
    let Some(definition) = loaded.and_then(|loaded| loaded.definition) else {
        return Instead::Nothing;
    };
    if definition.own.passthrough.is_some() {
        return Instead::Program;
    }
    // What a template makes of it is not known yet.
    let is_plain = |name: &String| !name.contains(['{', '}']) && name.is_ascii();
    let settings = &definition.settings;
    let model = settings.model.clone().filter(is_plain);
    let provider = settings.provider.clone().filter(is_plain);
    match (provider, model) {
        (Some(provider), Some(model)) => Instead::Model(format!("{provider}/{model}")),
        (None, Some(model)) => Instead::Model(model),
        (_, None) => Instead::Nothing,
    }
}

/// What is said first: what the root's definition begins with, then what was typed.
pub(crate) fn first_words(root: Option<&Judged>, typed: Option<String>) -> Option<String> {
    let Some(root) = root else { return typed };
    match (root.opening.clone(), typed) {
        (None, None) => Some("Begin.".into()),
        (Some(opening), Some(typed)) => Some(format!("{opening}\n\n{typed}")),
        (opening, typed) => opening.or(typed),
    }
}

/// A file if there is one, else the recipe of that name.
fn from_recipe(named: &Path, files: &Files, workspace: &Path) -> Result<Loaded, NotFound> {
    if named.exists() || named.components().count() > 1 {
        return Ok(load_from(&origin(named, workspace)));
    }
    Ok(files.load(files.named_as(Kind::Recipe, &named.display().to_string())?))
}

fn recipe_of(named: &Path, librarian: &Librarian, files: &Files) -> Result<Definition, Complaint> {
    let name = named.display().to_string();
    let loaded = from_recipe(named, files, librarian.workspace());
    let loaded = loaded.map_err(|not_found| Complaint::not_found(&not_found))?;
    librarian.taken(loaded).map_err(|problems| Complaint::definition(&name, &problems))
}

fn built(
    definition: &Definition,
    librarian: &Librarian,
    mut values: BTreeMap<String, String>,
) -> Result<Built, Complaint> {
    let name = &definition.name;
    for _ in 0..=definition.parameters.len() {
        match librarian.built(Asker::People, definition, values.clone()) {
            Ok(built) => return Ok(built),
            Err(Unbuilt::Wrong(problems)) => return Err(Complaint::definition(name, &problems)),
            Err(Unbuilt::Values(problems)) => return Err(Complaint::values(name, &problems)),
            Err(Unbuilt::Needs(needs)) if io::stdin().is_terminal() => {
                for parameter in &needs {
                    values.insert(parameter.key.clone(), asked(parameter)?);
                }
            }
            Err(Unbuilt::Needs(needs)) => return Err(Complaint::parameters(name, &needs)),
        }
    }
    Err(Complaint::definition(name, &[] as &[Problem]))
}

/// Asks the person at the terminal.
fn asked(parameter: &Parameter) -> Result<String, Complaint> {
    let mut out = io::stderr().lock();
    let options = match parameter.options.as_slice() {
        [] => String::new(),
        options => format!(" [{}]", options.join(", ")),
    };
    for _ in 0..ANSWERS_MAX {
        let said = write!(out, "{}{options}\n{}: ", parameter.about, parameter.key);
        said.and_then(|()| out.flush()).map_err(|error| Complaint::machine(&error))?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        if read.map_err(|error| Complaint::stdin(&error))? == 0 {
            break;
        }
        let value = line.trim_end_matches(['\r', '\n']).to_owned();
        match parameter.check(&value) {
            Ok(()) => return Ok(value),
            Err((what, how)) => {
                let told = writeln!(out, "{what}: {how}");
                told.map_err(|error| Complaint::machine(&error))?;
            }
        }
    }
    Err(Complaint::parameters(&parameter.key, std::slice::from_ref(parameter)))
}

impl Complaint {
    pub(crate) fn not_found(not_found: &NotFound) -> Complaint {
        Complaint {
            code: "E120",
            what: not_found.to_string(),
            cause: "Names are those of files and of what they say of themselves.".into(),
            next: "locum definitions".into(),
            exit: USAGE,
        }
    }

    fn definition(name: &str, problems: &[Problem]) -> Complaint {
        Complaint {
            code: "E410",
            what: format!("{name} cannot be used."),
            cause: listed(problems),
            next: "correct that, then locum check FILE".into(),
            exit: USAGE,
        }
    }

    /// Those that the script has a part for can be named as well.
    fn with_parts(self, script: Option<&Script>) -> Complaint {
        let parts: Vec<&str> = script.into_iter().flat_map(Script::names).take(10).collect();
        if parts.is_empty() {
            return self;
        }
        let cause = format!("{} The script has parts for {}.", self.cause, parts.join(", "));
        Complaint { cause: clean(&cause), ..self }
    }

    fn values(name: &str, problems: &[Problem]) -> Complaint {
        Complaint {
            code: "E410",
            what: format!("{name} cannot start with these values."),
            cause: listed(problems),
            next: "run again with other values, each as --param KEY=VALUE".into(),
            exit: USAGE,
        }
    }

    fn no_values(name: &str) -> Complaint {
        Complaint {
            code: "E411",
            what: format!("{} takes no values.", clean(name)),
            cause: "--param is for what a recipe asks for, and nobody here asks.".into(),
            next: "run again without --param, or with --recipe FILE".into(),
            exit: USAGE,
        }
    }

    fn twice(key: &str, values: [&str; 2]) -> Complaint {
        let [one, other] = values.map(|value| row(value, 60));
        let key = clean(key);
        Complaint {
            code: "E411",
            what: format!("--param {key} is given twice."),
            cause: format!("It is {one:?} and {other:?}, and only one of them can hold."),
            next: "run again with one of them".into(),
            exit: USAGE,
        }
    }

    fn parameters(name: &str, needs: &[Parameter]) -> Complaint {
        let keys: Vec<String> =
            needs.iter().map(|it| format!("{}: {}", it.key, it.about)).collect();
        let flags: Vec<String> = needs.iter().map(|it| format!("--param {}=…", it.key)).collect();
        Complaint {
            code: "E411",
            what: format!("{name} has to be told more before it starts."),
            cause: keys.join("\n"),
            next: format!("run again with {}", flags.join(" ")),
            exit: USAGE,
        }
    }
}
