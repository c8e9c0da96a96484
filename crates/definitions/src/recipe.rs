//! Recipes: YAML or JSON, with templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minijinja::UndefinedBehavior;

use crate::build::lost_sub_recipes;
use crate::definition::{Definition, Kind, Origin, Retry, Settings, SubRecipe};
use crate::fields::Fields;
use crate::pieces::{Pieces, is_mark};
use crate::problem::{Place, Problems};
use crate::template::Variables;
use crate::tree::{Fault, Node, Value};
use crate::yaml::{Tabs, Twice, tell_tabs};
use crate::{hidden, json, own, parameter, schema, server, template, tools, yaml};

/// Seconds; the defaults of the recipes' own program.
const CHECK_TIMEOUT_S: u64 = 300;
const ON_FAILURE_TIMEOUT_S: u64 = 600;

/// Each is looked for in the text and compared with every parameter.
const UNKNOWN_TOLD: usize = 20;

/// What a recipe's file says before anybody has given values.
pub(crate) fn load(text: &str, origin: &Origin, problems: &Problems) -> Option<Definition> {
    hidden::check(text, Place::START, problems);
    let told = |fault: Fault| {
        problems.error(fault.place, fault.what, "the recipe cannot be read", fault.how);
    };
    let pieces = Pieces::of(text).map_err(told).ok()?;
    let variables = template::variables(&pieces, origin.folder()).map_err(told).ok()?;
    let node = structure(&pieces, origin, problems)?;
    let mut definition = read(&node, origin, problems)?;
    compare(&definition, &variables, &pieces, problems);
    twice_in_any_case(&definition, &pieces, problems);
    // At building it is an error; before that the file may still be written.
    problems.extend_as_warnings(lost_sub_recipes(&definition));
    definition.template = Some(text.to_owned());
    Some(definition)
}

/// The tree of a template: as it is written, else with all branches at once, else rendered with
/// nothing known when it is made of several files.
fn structure(pieces: &Pieces<'_>, origin: &Origin, problems: &Problems) -> Option<Node> {
    let restored = |node: Node| node.map_text(&|text, _| pieces.restore(text));
    let first = if template::includes(pieces) {
        Err(Fault::new(Place::START, "made of several files", ""))
    } else {
        parse(&pieces.sketch(), &origin.file, Twice::Refused)
    };
    let mut fault = match first {
        Ok((node, tabs)) => {
            tell_tabs(tabs, problems);
            return Some(restored(node));
        }
        Err(fault) => fault,
    };
    if template::includes(pieces) {
        return rendered(pieces, origin, problems);
    }
    if pieces.keywords().next().is_some() && !fault.is_bound() {
        match parse(&pieces.bare_sketch(), &origin.file, Twice::FirstWins) {
            Ok((node, tabs)) => {
                tell_tabs(tabs, problems);
                return Some(restored(node));
            }
            // The reading that got further met the true mistake.
            Err(later) if later.place > fault.place => fault = later,
            Err(_) => {}
        }
    }
    problems.error(fault.place, fault.what, "the recipe cannot be read", fault.how);
    None
}

/// Branches may say the same key; outside of them it is a mistake.
fn twice_in_any_case(definition: &Definition, pieces: &Pieces<'_>, problems: &Problems) {
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
    let written = parse(&pieces.bare_sketch(), &origin.file, Twice::Refused).err();
    let written = written.filter(|other| other.what == fault.what).unwrap_or(fault);
    problems.error(written.place, written.what, "one of them would be lost", written.how);
}

fn rendered(pieces: &Pieces<'_>, origin: &Origin, problems: &Problems) -> Option<Node> {
    let nothing = BTreeMap::new();
    let folder = origin.folder();
    let text = template::render(pieces, folder, &nothing, UndefinedBehavior::Chainable);
    let tree = text.and_then(|text| {
        let (node, _) = parse(text.text(), &origin.file, Twice::Refused)?;
        Ok(node.map_text(&|part, indent| text.fill(part, indent)))
    });
    tree.map_err(|fault| {
        let why = "the recipe and what it includes cannot be read";
        problems.error(fault.place, fault.what, why, fault.how);
    })
    .ok()
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

/// Names and values as a definition.
pub(crate) fn read(node: &Node, origin: &Origin, problems: &Problems) -> Option<Definition> {
    // Some programs wrap the whole thing.
    let inner = node.get("recipe").filter(|inner| matches!(inner.value, Value::Map(_)));
    let node = inner.filter(|_| node.get("title").is_none()).unwrap_or(node);
    let fields = Fields::of(node, "a recipe", problems)?;
    hidden::check_escapes(node, problems);
    let title = fields.required(&["title"], "every recipe has one", "title: Code review");
    let why = "people and models choose by it";
    let about = fields.required(&["description"], why, "description: Reviews a change");
    let name = fields.text(&["name"]).filter(|name| !name.trim().is_empty());
    let name = name.unwrap_or_else(|| stem(&origin.file));
    let mut definition = Definition::new(name, Kind::Recipe, origin.clone());
    definition.instructions = fields.text(&["instructions"]).unwrap_or_default();
    definition.prompt = fields.message("prompt");
    let wrong = |key| fields.node(&[key]).is_some_and(|(_, node)| node.text().is_none());
    let silent = definition.instructions.trim().is_empty() && definition.prompt.is_none();
    if silent && !wrong("instructions") && !wrong("prompt") && !own::is_program(&fields) {
        let what = "there are neither instructions nor a prompt";
        let why = "an agent would not know what to do";
        problems.error(fields.place_of_table(), what, why, "write: instructions: …");
    }
    definition.activities = fields.texts(&["activities"]).unwrap_or_default();
    let parameters = fields.list(&["parameters"]).iter();
    definition.parameters = parameters.filter_map(|one| parameter::read(one, problems)).collect();
    let servers = fields.list(&["extensions"]).iter();
    definition.servers = servers.filter_map(|one| server::extension(one, problems)).collect();
    definition.settings = settings(&fields, origin);
    let subs = fields.list(&["sub_recipes"]).iter();
    definition.sub_recipes = subs.filter_map(|one| sub_recipe(one, problems)).collect();
    twice(&definition, problems);
    definition.response = response(&fields);
    definition.retry = retry(&fields);
    definition.version = fields.text(&["version"]);
    definition.author = fields.node(&["author"]).and_then(|(_, node)| author(node, problems));
    definition.own = own::read(&fields);
    // Ours, so that a recipe can be as narrow as an agent.
    if let Some(words) = fields.placed_words(&["tools"]) {
        definition.tools.allow = tools::ours(&words, problems);
    }
    own::forbid(&fields, origin.scope);
    let why = "it belongs under settings";
    let keys = ["goose_provider", "goose_model", "temperature", "max_turns"];
    fields.misplaced(&keys, why, "write: settings: {KEY: …}");
    fields.misplaced(&["json_schema"], "it belongs under response", "write: response: {KEY: …}");
    fields.misplaced(
        &["max_retries", "checks"],
        "it belongs under retry",
        "write: retry: {KEY: …}",
    );
    let why = "a recipe's servers are its extensions";
    fields.misplaced(&["mcpServers", "mcp_servers"], why, "write: extensions: [{type: stdio, …}]");
    fields.finish();
    definition.title = Some(title?);
    definition.about = about?;
    own::narrow(&mut definition, &fields);
    Some(definition)
}

pub(crate) fn stem(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    stem.strip_suffix(".agent").map_or(stem.clone(), str::to_owned)
}

fn settings(fields: &Fields<'_>, origin: &Origin) -> Settings {
    let Some(table) = fields.table(&["settings"], "\"settings\"") else {
        return Settings::default();
    };
    let turns = table.whole(&["max_turns"], 1, 100_000);
    let settings = Settings {
        provider: table.text(&["goose_provider", "provider"]),
        model: table.text(&["goose_model", "model"]),
        temperature: table.decimal(&["temperature"], 0.0, 2.0),
        turns_max: turns.and_then(|turns| u32::try_from(turns).ok()),
        effort: None,
    };
    own::forbid(&table, origin.scope);
    table.finish();
    settings
}

fn sub_recipe(node: &Node, problems: &Problems) -> Option<SubRecipe> {
    let fields = Fields::of(node, "a sub-recipe", problems)?;
    let name = fields.required(&["name"], "it is called by it", "name: analyse");
    let path = fields.required(&["path"], "it is the file", "path: ./analyse.yaml");
    let sub = SubRecipe {
        name: name.unwrap_or_default(),
        path: path?,
        values: fields.free(&["values"]),
        sequential_when_repeated: fields.flag(&["sequential_when_repeated"]).unwrap_or(false),
        about: fields.text(&["description"]),
        place: fields.place("path"),
    };
    fields.finish();
    (!sub.name.is_empty()).then_some(sub)
}

fn response(fields: &Fields<'_>) -> Option<serde_json::Value> {
    let table = fields.table(&["response"], "\"response\"")?;
    let schema = table.node(&["json_schema"]);
    if let Some((_, node)) = schema {
        schema::check(node, fields.problems());
    }
    table.finish();
    schema.map(|(_, node)| node.to_json())
}

fn retry(fields: &Fields<'_>) -> Option<Retry> {
    let table = fields.table(&["retry"], "\"retry\"")?;
    let at = fields.place("retry");
    if !table.has("max_retries") {
        let why = "it says how often to try";
        table.problems().error(at, "\"max_retries\" is missing", why, "write: max_retries: 3");
    }
    let tries = table.whole(&["max_retries"], 1, u64::from(u32::MAX));
    if !table.has("checks") {
        let why = "they say what success is";
        let how = "write: checks: [{type: shell, command: test -f out.txt}]";
        table.problems().error(at, "\"checks\" is missing", why, how);
    }
    let checks = table.list(&["checks"]).iter();
    let checks: Vec<String> = checks.filter_map(|node| check(node, table.problems())).collect();
    let second = |keys, default| table.whole(keys, 1, 86_400).unwrap_or(default);
    let retry = Retry {
        tries_max: tries.and_then(|tries| u32::try_from(tries).ok()).unwrap_or(1),
        checks,
        on_failure: table.text(&["on_failure"]),
        check_timeout_s: second(&["timeout_seconds"], CHECK_TIMEOUT_S),
        on_failure_timeout_s: second(&["on_failure_timeout_seconds"], ON_FAILURE_TIMEOUT_S),
    };
    table.finish();
    Some(retry)
}

fn check(node: &Node, problems: &Problems) -> Option<String> {
    let fields = Fields::of(node, "a check", problems)?;
    let kind = fields.required(&["type"], "it says how to check", "type: shell");
    let kind = kind.and_then(|_| fields.choice(&["type"], &[("shell", ())]));
    let command = fields.required(&["command"], "it is the check", "command: test -f out.txt");
    fields.finish();
    kind.and(command)
}

fn author(node: &Node, problems: &Problems) -> Option<String> {
    if let Some(text) = node.text() {
        return Some(text.to_owned());
    }
    let fields = Fields::of(node, "\"author\"", problems)?;
    let contact = fields.text(&["contact", "name", "email"]);
    let metadata = fields.text(&["metadata"]);
    fields.ignore(&["name", "email", "url"]);
    fields.finish();
    contact.or(metadata)
}

fn twice(definition: &Definition, problems: &Problems) {
    let mut names = BTreeSet::new();
    for sub in definition.sub_recipes.iter().filter(|sub| !names.insert(sub.name.as_str())) {
        let what = format!("the sub-recipe \"{}\" is there twice", sub.name);
        problems.warn(sub.place, what, "only the last of them can be called", "rename one");
    }
    let mut seen = BTreeSet::new();
    for parameter in &definition.parameters {
        if !seen.insert(parameter.key.as_str()) {
            let what = format!("the parameter \"{}\" is there twice", parameter.key);
            problems.error(parameter.place, what, "one of them would be lost", "keep one");
        }
    }
}

/// The template's variables and the parameters are the same set, but for the one every recipe has.
fn compare(
    definition: &Definition,
    Variables { used, given }: &Variables,
    pieces: &Pieces<'_>,
    problems: &Problems,
) {
    let keys = definition.parameters.iter().map(|parameter| parameter.key.as_str());
    let keys: BTreeSet<&str> = keys.collect();
    let unknown = used.difference(given).filter(|name| !keys.contains(name.as_str()));
    for name in unknown.take(UNKNOWN_TOLD) {
        let how = match crate::near::nearest(name, keys.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"? else add it to parameters"),
            None => "add it to parameters, or write {% raw %} around it".to_owned(),
        };
        let what = format!("\"{name}\" is used and is no parameter");
        problems.error(pieces.place_of(name), what, "it would have no value", how);
    }
    for parameter in &definition.parameters {
        let named = parameter::is_name(&parameter.key) && parameter.key != template::RECIPE_DIR;
        if named && !used.contains(&parameter.key) {
            let key = &parameter.key;
            let what = format!("the parameter \"{key}\" is not used");
            let why = "people would be asked for nothing";
            let how = format!("use {{{{ {key} }}}} in instructions or prompt, or delete it");
            problems.error(parameter.place, what, why, how);
        }
    }
}
