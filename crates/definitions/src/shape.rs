//! The tree of a recipe's text, which is a template: what can be read of it before anybody has
//! values, and every text once they are in.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::UndefinedBehavior;

use crate::definition::{Definition, Origin};
use crate::pieces::{Pieces, is_mark};
use crate::problem::{Place, Problems};
use crate::tree::{Fault, Node, Value};
use crate::whence::Whence;
use crate::yaml::{Tabs, Twice, tell_tabs};
use crate::{json, parameter, template, yaml};

/// The tree of a template: as it is written, else with all branches at once, else rendered with
/// nothing known when it is made of several files.
pub(crate) fn structure(
    pieces: &Pieces<'_>,
    origin: &Origin,
    problems: &Problems,
) -> Option<(Node, Option<Whence>)> {
    let restored = |node: Node| node.map_text(&|text, _| pieces.restore(text));
    let first = if template::includes(pieces) {
        Err(Fault::new(Place::START, "made of several files", ""))
    } else {
        parse(&pieces.sketch(), &origin.file, Twice::Refused)
    };
    let mut fault = match first {
        Ok((node, tabs)) => {
            tell_tabs(tabs, problems);
            return Some((restored(node), None));
        }
        Err(fault) => fault,
    };
    if template::includes(pieces) {
        return rendered(pieces, origin, problems);
    }
    if pieces.keywords().next().is_some() && !fault.is_bound() {
        let bare = pieces.bare_sketch();
        match parse(&bare.text, &origin.file, Twice::FirstWins) {
            Ok((node, tabs)) => {
                tell_tabs(tabs, problems);
                let node = node.map_places(&|place| bare.place(place));
                return Some((restored(node), None));
            }
            // The reading that got further met the true mistake.
            Err(later) if bare.place(later.place) > fault.place => {
                fault = Fault { place: bare.place(later.place), ..later };
            }
            Err(_) => {}
        }
        // All branches at once may be no YAML where each of them is.
        let quiet = Problems::new(&origin.file);
        let one = rendered(pieces, origin, &quiet).filter(|_| !fault.is_bound());
        if one.is_some() {
            return one;
        }
    }
    problems.error(fault.place, fault.what, "the recipe cannot be read", fault.how);
    None
}

/// Branches may say the same key; outside of them it is a mistake.
pub(crate) fn twice_in_any_case(definition: &Definition, pieces: &Pieces<'_>, problems: &Problems) {
    if pieces.keywords().next().is_none() {
        return;
    }
    let origin = &definition.origin;
    let value = |one: &parameter::Parameter| one.default.clone().unwrap_or_else(|| "1".to_owned());
    let values = definition.parameters.iter().map(|one| (one.key.clone(), value(one))).collect();
    let text = template::render(pieces, origin.folder(), &values, UndefinedBehavior::Chainable);
    let Ok(text) = text else { return };
    let found = parse(text.text(), &origin.file, Twice::Refused).err();
    let Some(fault) = found.filter(Fault::is_twice) else { return };
    let bare = pieces.bare_sketch();
    let written = parse(&bare.text, &origin.file, Twice::Refused).err();
    let written = written.filter(|other| other.what == fault.what);
    let written = written.map_or(fault, |it| Fault { place: bare.place(it.place), ..it });
    problems.error(written.place, written.what, "one of them would be lost", written.how);
}

fn rendered(
    pieces: &Pieces<'_>,
    origin: &Origin,
    problems: &Problems,
) -> Option<(Node, Option<Whence>)> {
    let told = |fault: Fault, problems: &Problems| {
        let why = "the recipe and what it includes cannot be read";
        problems.error(fault.place, fault.what, why, fault.how);
    };
    let nothing = BTreeMap::new();
    let text = template::render(pieces, origin.folder(), &nothing, UndefinedBehavior::Chainable);
    let text = text.map_err(|fault| told(fault, problems)).ok()?;
    let whence = text.whence(origin, pieces.text());
    match parse(text.text(), &origin.file, Twice::Refused) {
        Ok((node, _)) => {
            let node = node.map_text(&|part, indent| text.fill(part, indent));
            Some((node, Some(whence)))
        }
        Err(fault) => {
            let found = Problems::new(&origin.file);
            told(fault, &found);
            problems.extend(found.take().into_iter().map(|it| whence.mended(it)).collect());
            None
        }
    }
}

/// The tree of a text in the syntax its name says.
pub(crate) fn parse(text: &str, file: &Path, again: Twice) -> Result<(Node, Tabs), Fault> {
    let is_json = file.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("json"));
    if is_json {
        return json::parse(text).and_then(checked_keys).map(|node| (node, None));
    }
    let nothing = || Fault::new(Place::START, "the file is empty", "write: title: …");
    let (node, tabs) = yaml::parse_with_tabs(text, again)?;
    Ok((checked_keys(node.ok_or_else(nothing)?)?, tabs))
}

/// A value may be any text and no name of a field.
fn checked_keys(node: Node) -> Result<Node, Fault> {
    let mut found = None;
    walk_keys(&node, &mut found);
    match found {
        None => Ok(node),
        Some(place) => {
            let what = "{{ … }} stands where a key is expected";
            Err(Fault::new(place, what, "write the key out; values may be templates"))
        }
    }
}

fn walk_keys(node: &Node, found: &mut Option<Place>) {
    match &node.value {
        Value::Null | Value::Plain(_) | Value::Quoted(_) => {}
        Value::List(items) => items.iter().for_each(|item| walk_keys(item, found)),
        Value::Map(fields) => {
            for (key, value) in fields {
                if key.text.contains(is_mark) {
                    found.get_or_insert(key.place);
                }
                walk_keys(value, found);
            }
        }
    }
}
