//! Recipes: YAML or JSON, with templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::build::lost_sub_recipes;
use crate::definition::{Definition, Kind, Origin, Retry, Settings, SubRecipe};
use crate::fields::Fields;
use crate::pieces::Pieces;
use crate::problem::{Place, Problems};
use crate::shape::{structure, twice_in_any_case};
use crate::template::Variables;
use crate::tree::{Fault, Node, Value};
use crate::whence::Whence;
use crate::{hidden, markdown, own, parameter, schema, server, template, tools};

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
    let (node, whence) = structure(&pieces, origin, problems)?;
    let mut definition = match whence {
        None => read(&node, origin, problems)?,
        Some(whence) => read_parts(&node, origin, &whence, problems)?,
    };
    markdown::odd_name(&definition.name, Place::START, problems);
    compare(&definition, &variables, &pieces, problems);
    twice_in_any_case(&definition, &pieces, problems);
    // At building it is an error; before that the file may still be written.
    problems.extend_as_warnings(lost_sub_recipes(&definition));
    definition.template = Some(text.to_owned());
    Some(definition)
}

/// The same as [`read`] with everything told where it was written.
fn read_parts(
    node: &Node,
    origin: &Origin,
    whence: &Whence,
    problems: &Problems,
) -> Option<Definition> {
    let found = Problems::new(&origin.file);
    let mut definition = read(node, origin, &found);
    problems.extend(found.take().into_iter().map(|it| whence.mended(it)).collect());
    if let Some(definition) = &mut definition {
        let parameters = definition.parameters.iter_mut().map(|it| &mut it.place);
        let subs = definition.sub_recipes.iter_mut().map(|it| &mut it.place);
        let program = definition
            .own
            .passthrough
            .iter_mut()
            .flat_map(|it| std::iter::once(&mut it.place).chain(&mut it.writes_at));
        for place in parameters.chain(subs).chain(program) {
            *place = whence.place(*place);
        }
    }
    definition
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
    own::unheard(&definition, fields.place("instructions"), problems);
    own::unchecked(&definition, fields.place("retry"), problems);
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
        values: values(&fields),
        sequential_when_repeated: fields.flag(&["sequential_when_repeated"]).unwrap_or(false),
        about: fields.text(&["description"]),
        place: fields.place("path"),
    };
    fields.finish();
    (!sub.name.is_empty()).then_some(sub)
}

/// Text stays as it is, and all else is JSON: nothing is `null`.
fn values(fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut values = fields.free(&["values"]);
    if let Some((_, Node { value: Value::Map(given), .. })) = fields.node(&["values"]) {
        for (key, _) in given.iter().filter(|(_, node)| node.is_null()) {
            values.insert(key.text.clone(), "null".to_owned());
        }
    }
    values
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
    for (number, parameter) in definition.parameters.iter().enumerate() {
        let named = parameter::is_name(&parameter.key) && parameter.key != template::RECIPE_DIR;
        // What is wrong in it is to be mended first.
        let at = parameter.place.line;
        let next = definition.parameters.get(number + 1).map_or(u32::MAX, |it| it.place.line);
        let is_broken = problems.has_error_in(at..next.max(at + 1));
        if named && !used.contains(&parameter.key) && !is_broken {
            let key = &parameter.key;
            let what = format!("the parameter \"{key}\" is not used");
            let why = "people would be asked for nothing";
            let how = format!("use {{{{ {key} }}}} in instructions or prompt, or delete it");
            problems.error(parameter.place, what, why, how);
        }
    }
}
