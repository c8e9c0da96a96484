//! What models are told of a definition in one line: what it takes, then what it is for.

use crate::definition::{Definition, Origin, Scope, SubRecipe};
use crate::load::load_from;
use crate::parameter::Parameter;

/// `needs` are its parameters, each with whether it must be given.
#[must_use]
pub fn line(about: &str, needs: &[(String, bool)]) -> String {
    let text = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |(key, needed): &(String, bool)| format!("{key}{}", if *needed { "" } else { "?" });
    let keys: Vec<String> = needs.iter().map(shown).collect();
    if keys.is_empty() { text } else { format!("(parameters: {}) {text}", keys.join(", ")) }
}

/// Its own file says what it takes, and what it is for where its recipe does not. One that cannot
/// be read is still offered: whoever calls it hears why.
pub(crate) fn of_sub_recipe(definition: &Definition, sub: &SubRecipe) -> String {
    let origin = &definition.origin;
    let root = match origin.scope {
        Scope::Workspace => origin.root.clone(),
        Scope::RecipePath | Scope::User | Scope::Builtin => "/".into(),
    };
    let file = origin.folder().join(&sub.path);
    let found = load_from(&Origin { file, root, scope: origin.scope }).definition;
    let about = sub.about.as_ref().or(found.as_ref().map(|found| &found.about));
    let needs = found.iter().flat_map(|found| &found.parameters).map(Parameter::need);
    // What the recipe gives may still be said otherwise.
    let needs = needs.map(|(key, needed)| {
        let is_given = sub.values.contains_key(&key);
        (key, needed && !is_given)
    });
    line(about.map(String::as_str).unwrap_or_default(), &needs.collect::<Vec<_>>())
}
