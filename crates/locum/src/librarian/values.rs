//! Values for a definition: whose they are, what they may be, and why it cannot be built with them.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;

use locum_definitions::{
    Asker, Built, Definition, Given, InputType, Outcome, Parameter, Problem, Server, Severity,
    Unbuilt as Wrong, build_for,
};
use locum_kernel::Wanted;
use locum_runtime::form;
use serde_json::Value;

use super::{Librarian, listed};

impl Librarian {
    pub(crate) fn built(
        &self,
        asker: Asker,
        definition: &Definition,
        values: BTreeMap<String, String>,
    ) -> Result<Built, Unbuilt> {
        let workspace = self.world.shelves.workspace.clone();
        let given = match asker {
            Asker::People => chosen(definition, values, workspace),
            Asker::Models => Given { values, base: workspace.clone(), roots: vec![workspace] },
        };
        match build_for(asker, definition, &given) {
            Ok(Outcome::Built(built)) => match smuggled(definition, &built.definition) {
                Some(problem) if asker == Asker::Models => Err(Unbuilt::Wrong(vec![problem])),
                Some(_) | None => Ok(*built),
            },
            Ok(Outcome::Needs(needs)) => Err(Unbuilt::Needs(needs)),
            Err(Wrong::Values(problems)) => Err(Unbuilt::Values(problems)),
            Err(Wrong::File(problems)) => Err(Unbuilt::Wrong(problems)),
        }
    }
}

/// Files that a person names are where they stand, before they are in the workspace, and may be
/// anywhere: nobody else has chosen them.
fn chosen(
    definition: &Definition,
    mut values: BTreeMap<String, String>,
    workspace: PathBuf,
) -> Given {
    let here = env::current_dir().unwrap_or_else(|_| workspace.clone());
    for parameter in definition.parameters.iter().filter(|it| it.input == InputType::File) {
        if let Some(path) = values.get_mut(&parameter.key) {
            let found = Some(here.join(&*path)).filter(|it| it.exists());
            *path = found.map_or_else(|| path.clone(), |it| it.display().to_string());
        }
    }
    Given { values, base: workspace, roots: vec![PathBuf::from("/")] }
}

/// A value that names a variable of the person's where servers are started: only the file may.
fn smuggled(written: &Definition, built: &Definition) -> Option<Problem> {
    let wants = |it: &Definition| -> BTreeSet<String> {
        let all = it.servers.iter().map(Server::wants);
        all.flat_map(|it| it.names().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let known = wants(written);
    let name = wants(built).into_iter().find(|name| !known.contains(name))?;
    Some(Problem {
        file: written.origin.file.clone(),
        line: 1,
        column: 1,
        severity: Severity::Error,
        what: format!("a value puts ${{{name}}} into what a server is started with"),
        why: "which variables it is given is for the file to say".to_owned(),
        how: "give the value without ${…}".to_owned(),
    })
}

/// Why a definition could not be built.
pub(crate) enum Unbuilt {
    Needs(Vec<Parameter>),
    /// With other values it may be.
    Values(Vec<Problem>),
    Wrong(Vec<Problem>),
}

impl Unbuilt {
    pub(super) fn words(&self, name: &str) -> String {
        match self {
            Unbuilt::Needs(needs) => needed(name, needs),
            Unbuilt::Values(problems) | Unbuilt::Wrong(problems) => listed(problems),
        }
    }
}

/// Values as recipes have them: text. Other values are written as JSON.
pub(super) fn values(parameters: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
    let map = match parameters {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err("parameters must be an object: {\"key\": \"value\"}".into()),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(map.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

pub(super) fn check_input(schema: &Value, wanted: &Wanted) -> Result<(), String> {
    let input = match &wanted.parameters {
        Some(input) => input.clone(),
        None => form::value(&wanted.message).map_err(|why| {
            format!("{} takes input of a form. {why} It is: {schema}", wanted.name)
        })?,
    };
    match form::mismatch(schema, &input) {
        None => Ok(()),
        Some(why) => Err(format!("{} takes other input: {why} It is: {schema}", wanted.name)),
    }
}

fn needed(name: &str, needs: &[Parameter]) -> String {
    let keys: Vec<String> = needs.iter().map(|it| format!("{} ({})", it.key, it.about)).collect();
    format!("{name} needs values, give them as parameters: {}", keys.join(", "))
}
