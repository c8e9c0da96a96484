//! Skills and agents: Markdown with front matter. The keys of several programs mean the same, and
//! a key that means nothing here is told.

use std::collections::BTreeSet;

use locum_kernel::{at_name, is_same_name};

use crate::definition::{Definition, Isolation, Kind, Memory, Origin, Permission, StartedBy};
use crate::fields::Fields;
use crate::front::{self, Front};
use crate::front_keys::{AGENT_KEYS, SKILL_KEYS};
use crate::problem::{Place, Problems, quote};
use crate::recipe::stem;
use crate::server::Server;
use crate::tree::{Key, Node, Value};
use crate::{foreign, hidden, own, permission, schema, server, tools};

/// The tools there are, in the spellings of several programs.
const TOOLS: &[&str] = &["tools", "allowed-tools", "allowed_tools", "allowedTools"];

const PERMISSIONS: &[(&str, Permission)] = &[
    ("default", Permission::Default),
    ("ask", Permission::Ask),
    ("manual", Permission::Ask),
    ("acceptEdits", Permission::Edits),
    ("edits", Permission::Edits),
    ("auto", Permission::Auto),
    ("bypassPermissions", Permission::Auto),
    ("dontAsk", Permission::Deny),
    ("plan", Permission::Plan),
];

pub(crate) fn skill(text: &str, origin: &Origin, problems: &Problems) -> Option<Definition> {
    hidden::check(text, Place::START, problems);
    let front = front::read(text, SKILL_KEYS, problems);
    front.head.iter().for_each(|head| hidden::check_escapes(head, problems));
    if problems.has_errors() {
        return None;
    }
    let nothing = Node::new(Place::START, Value::Map(Vec::new()));
    let fields = Fields::of(front.head.as_ref().unwrap_or(&nothing), "front matter", problems)?;
    let given = fields.text(&["name"]).filter(|name| !name.trim().is_empty());
    let mut skill = Definition::new(
        given.unwrap_or_else(|| skill_name(origin)).trim().to_owned(),
        Kind::Skill,
        origin.clone(),
    );
    skill_name_rules(&skill.name, &fields);
    front.body.trim().clone_into(&mut skill.instructions);
    skill.about = about(&fields, &front, problems)?;
    shared(&mut skill, &fields);
    let names = ["allowed_tools", "allowed-tools", "allowedTools", "tools"];
    if let Some(words) = fields.placed_words(&names) {
        skill.tools.allow = tools::ours(&words, problems);
    }
    skill_only(&mut skill, &fields);
    fields.ignore(&[
        "license",
        "metadata",
        "authors",
        "rationale",
        "compatibility",
        "id",
        "has-sub-skill",
        "created",
        "updated",
        "category",
        "tags",
        "keywords",
    ]);
    foreign::skill(&fields);
    fields.finish_but(|key| key.starts_with("description_"));
    own::narrow(&mut skill, &fields);
    own::unheard(&skill, front.body_at, problems);
    Some(skill)
}

fn skill_only(skill: &mut Definition, fields: &Fields<'_>) {
    let only = &mut skill.skill;
    only.env = match fields.node(&["env"]) {
        Some((_, node)) if matches!(node.value, Value::Map(_)) => {
            fields.free(&["env"]).into_keys().collect()
        }
        _ => fields.words(&["env"]).unwrap_or_default(),
    };
    only.packages = fields.words(&["packages"]).unwrap_or_default();
    only.capabilities = fields.words(&["capabilities"]).unwrap_or_default();
    only.triggers = fields.texts(&["triggers", "when_to_use"]).unwrap_or_default();
    only.opt_in = fields.flag(&["opt_in"]).unwrap_or(false);
    only.sensitive = fields.flag(&["sensitive"]).unwrap_or(false);
    only.argument_hint = hint(fields);
    only.aliases = fields.words(&["aliases-for", "aliases"]).unwrap_or_default();
    let told = fields.flag(&["disable-model-invocation"]).unwrap_or(false);
    let words = [("model+user", false), ("user+model", false), ("explicit-only", true)];
    let models = !fields.choice(&["invocation"], &words).unwrap_or(told);
    let people = fields.flag(&["user-invocable", "user-invokable"]).unwrap_or(true);
    only.started_by = match (people, models) {
        (true, true) => StartedBy::Anybody,
        (true, false) => StartedBy::People,
        (false, true) => StartedBy::Models,
        (false, false) => StartedBy::Nobody,
    };
    if let Some((_, node)) = fields.node(&["input_schema"]) {
        schema::check(node, fields.problems());
        only.input_schema = Some(node.to_json());
    }
    only.chat_types = chat_types(fields);
    if only.sensitive && only.chat_types.is_empty() {
        // What is nobody else's business is for a person alone, unless the file says otherwise.
        only.chat_types.insert("private".to_owned());
    }
}

/// The kinds that messengers know, in small letters. Another one is kept: it may be a newer one.
fn chat_types(fields: &Fields<'_>) -> BTreeSet<String> {
    const KINDS: [&str; 4] = ["private", "group", "supergroup", "channel"];
    let Some(access) = fields.table(&["access"], "\"access\"") else { return BTreeSet::new() };
    let mut types = BTreeSet::new();
    for (word, at) in access.placed_words(&["chat_types"]).unwrap_or_default() {
        let word = word.to_lowercase();
        if !KINDS.contains(&word.as_str()) {
            let what = format!("{} is no kind of chat", crate::problem::quote(&word));
            let why = "there are private, group, supergroup and channel";
            let near = crate::near::nearest(&word, KINDS).unwrap_or("private");
            let how = format!("write: chat_types: [{near}]");
            fields.problems().warn(at, what, why, how);
        }
        types.insert(word);
    }
    if !types.is_empty() {
        let what = "\"chat_types\" keeps nobody out yet";
        let why = "it holds only in chats, which do not exist yet";
        let how = "set disable-model-invocation: true if models must not start it";
        fields.problems().warn(access.place("chat_types"), what, why, how);
    }
    access.finish();
    types
}

/// `[track] [--all]` is a list to YAML and a hint to people.
fn hint(fields: &Fields<'_>) -> Option<String> {
    let (_, node) = fields.node(&["argument-hint", "argument_hint"])?;
    Some(node.text().map_or_else(|| node.to_json().to_string(), str::to_owned))
}

fn skill_name(origin: &Origin) -> String {
    let file = stem(&origin.file);
    let folder = origin.folder().file_name().map(|name| name.to_string_lossy().into_owned());
    if file.eq_ignore_ascii_case("skill") { folder.unwrap_or(file) } else { file }
}

fn skill_name_rules(name: &str, fields: &Fields<'_>) {
    const LETTERS_MAX: usize = 64;
    let good = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let long = name.chars().count() > LETTERS_MAX;
    if long || !name.chars().all(good) {
        let what = format!("the name {} is not a skill's name elsewhere", quote(name));
        let why = "the rule is at most 64 of a-z, 0-9 and -";
        let how = format!("name: {}", plain_name(name));
        fields.problems().warn(fields.place("name"), what, why, how);
    }
}

fn plain_name(name: &str) -> String {
    let letter = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    name.to_ascii_lowercase().chars().map(letter).take(64).collect()
}

/// Without a description the first words of the body are one, as other programs have it.
fn about(fields: &Fields<'_>, front: &Front<'_>, problems: &Problems) -> Option<String> {
    if let Some(text) = fields.text(&["description"]).filter(|text| !text.trim().is_empty()) {
        return Some(text.trim().to_owned());
    }
    let paragraphs = front.body.split("\n\n").map(str::trim);
    let words = |part: &&str| !part.is_empty() && !part.starts_with('#');
    let first =
        paragraphs.clone().find(words).or_else(|| paragraphs.clone().find(|p| !p.is_empty()));
    let why = "models choose by it";
    let how = "write: description: What it does and when to use it";
    let at = fields.place("description");
    let Some(first) = first else {
        problems.error(at, "\"description\" is missing, and there is no text", why, how);
        return None;
    };
    let what = "\"description\" is missing, the first words of the text stand in";
    problems.warn(at, what, why, how);
    let line = first.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line.chars().take(200).collect())
}

pub(crate) fn agent(text: &str, origin: &Origin, problems: &Problems) -> Option<Definition> {
    hidden::check(text, Place::START, problems);
    let front = front::read(text, AGENT_KEYS, problems);
    front.head.iter().for_each(|head| hidden::check_escapes(head, problems));
    if problems.has_errors() {
        return None;
    }
    let commands = origin.folder().file_name().is_some_and(|folder| folder == "commands");
    if front.head.is_none() && !commands {
        let why = "an agent's file starts with front matter";
        let how = "write above: --- / name: reviewer / description: Reviews a change / ---";
        problems.error(Place::START, "there is no front matter", why, how);
        return None;
    }
    let nothing = Node::new(Place::START, Value::Map(Vec::new()));
    let fields = Fields::of(front.head.as_ref().unwrap_or(&nothing), "front matter", problems)?;
    let given = fields.text(&["name"]).filter(|name| !name.trim().is_empty());
    if given.is_none() && !AGENT_KEYS.iter().any(|key| fields.has(key)) && !commands {
        let why = "nothing in the front matter says what this agent is";
        let how = "write: name: reviewer / description: Reviews a change";
        problems.error(fields.place_of_table(), "\"name\" is missing", why, how);
        return None;
    }
    let name = given.unwrap_or_else(|| stem(&origin.file)).trim().to_owned();
    let mut agent = Definition::new(name, Kind::Agent, origin.clone());
    odd_name(&agent.name, fields.place("name"), problems);
    front.body.trim().clone_into(&mut agent.instructions);
    agent.about = about(&fields, &front, problems)?;
    if agent.instructions.is_empty() && !own::is_program(&fields) {
        let why = "the agent has only its description to go by";
        problems.warn(front.body_at, "there are no instructions", why, "write them below ---");
        agent.instructions.clone_from(&agent.about);
    }
    shared(&mut agent, &fields);
    agent_only(&mut agent, &fields);
    fields.ignore(&[
        "color",
        "author",
        "version",
        "license",
        "tags",
        "category",
        "argument-hint",
        "metadata",
        "display_name",
        "title",
        "domains",
        "keywords",
    ]);
    foreign::agent(&fields);
    fields.finish();
    own::narrow(&mut agent, &fields);
    own::unheard(&agent, front.body_at, problems);
    Some(agent)
}

/// A name that does not end where it ends after `@`.
pub(crate) fn odd_name(name: &str, at: Place, problems: &Problems) {
    let quoted = at_name(name);
    if quoted.starts_with("@\"") {
        let what = format!("the name {} has more than letters, digits, - and _", quote(name));
        let plain = plain_name(name);
        let how = if is_same_name(&plain, name) {
            format!("to call it write @{plain} or {quoted}")
        } else {
            format!("to call it write {quoted}")
        };
        problems.warn(at, what, "such a name is read as several words", how);
    }
}

fn agent_only(agent: &mut Definition, fields: &Fields<'_>) {
    let problems = fields.problems();
    tool_lists(agent, fields);
    agent.permission = fields.choice(&own::MODE, PERMISSIONS);
    let skills = fields.placed_words(&["skills"]).unwrap_or_default();
    (agent.skills, agent.skills_at) = skills.into_iter().unzip();
    if let Some((_, node)) = fields.node(&["mcpServers", "mcp-servers", "mcp_servers"]) {
        // An agent without one of its servers is still that agent.
        let found = Problems::new(problems.file());
        let servers = server::servers(node, &found).into_iter();
        let named = |it: Server| if it.brings() { it.named_for_agents() } else { it };
        agent.servers = servers.map(named).collect();
        problems.extend_as_warnings(found.take());
    }
    agent.background = fields.flag(&["background"]).unwrap_or(false);
    let isolations = [("worktree", Some(Isolation::Worktree)), ("none", None), ("inline", None)];
    agent.isolation = fields.choice(&["isolation"], &isolations).flatten();
    let memories = [("user", Memory::User), ("project", Memory::Project), ("local", Memory::Local)];
    agent.memory = fields.choice(&["memory"], &memories);
    agent.prompt = fields.message("initialPrompt");
    agent.skill.opt_in = fields.flag(&["disable", "disabled"]).unwrap_or(false);
}

/// `tools` is a list, text with commas, or a table of which are on.
fn tool_lists(agent: &mut Definition, fields: &Fields<'_>) {
    let problems = fields.problems();
    match fields.node(TOOLS) {
        Some((_, Node { value: Value::Map(entries), .. })) => switches(agent, entries, problems),
        Some(_) => {
            let words = fields.placed_words(TOOLS);
            agent.tools.allow = words.and_then(|words| tools::ours(&words, problems));
        }
        None => {}
    }
    let denied = ["disallowedTools", "disallowed-tools", "disallowed_tools"];
    if let Some(words) = fields.placed_words(&denied) {
        // Everything denied is an agent with no tools.
        match tools::ours(&words, problems) {
            Some(uses) => agent.tools.deny.extend(uses),
            None => agent.tools.allow = Some(Vec::new()),
        }
    }
    permission::read(fields, &mut agent.tools);
}

/// `{write: false}` takes one away; `{"*": false, read: true}` leaves one.
fn switches(agent: &mut Definition, entries: &[(Key, Node)], problems: &Problems) {
    // What is neither is off: a file does not get more by saying it badly.
    let off = |node: &Node| node.text() != Some("true");
    for (tool, on) in entries.iter().filter(|(_, on)| !matches!(on.text(), Some("true" | "false")))
    {
        let what = format!("the tool {:?} is neither on nor off", tool.text);
        problems.warn(on.place, what, "it is taken away", "write: true or false");
    }
    let none = entries.iter().any(|(tool, on)| tool.text == "*" && off(on));
    let listed = entries.iter().filter(|(tool, on)| tool.text != "*" && off(on) != none);
    let uses: Vec<_> =
        listed.flat_map(|(tool, _)| tools::one(&tool.text, tool.place, problems)).collect();
    if none {
        agent.tools.allow = Some(uses);
    } else {
        agent.tools.deny.extend(uses);
    }
}

/// What skills and agents have in common.
fn shared(definition: &mut Definition, fields: &Fields<'_>) {
    let model = fields.node(&["model"]).and_then(|(_, node)| match &node.value {
        // Some programs take a list to fall back on; the first is the one meant.
        Value::List(items) => items.first().and_then(Node::text).map(str::to_owned),
        Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::Map(_) => fields.text(&["model"]),
    });
    let model = model.map(|model| model.trim().to_owned());
    definition.settings.model = model.filter(|model| !model.is_empty() && model != "inherit");
    definition.settings.temperature = fields.decimal(&["temperature"], 0.0, 2.0);
    definition.settings.effort = effort(fields);
    let turns =
        fields.whole(&["maxTurns", "max_turns", "max_iterations", "maxSteps", "steps"], 1, 100_000);
    definition.settings.turns_max = turns.and_then(|turns| u32::try_from(turns).ok());
    definition.author = fields.text(&["author"]);
    definition.version = fields.text(&["version"]);
    definition.own = own::read(fields);
    own::forbid(fields, definition.origin.scope);
}

/// The words that every provider has. With another one the model thinks as it likes.
fn effort(fields: &Fields<'_>) -> Option<String> {
    const WORDS: [&str; 3] = ["low", "medium", "high"];
    let keys = ["effort", "reasoningEffort", "reasoning_effort"];
    let (key, node) = fields.node(&keys)?;
    let word = fields.text(&keys)?.trim().to_owned();
    if WORDS.contains(&word.as_str()) {
        return Some(word);
    }
    let what = format!("\"{}\" is {} and is left out", key.text, quote(&word));
    let near = crate::near::nearest(&word, WORDS).unwrap_or("high");
    let how = format!("write: {}: {near}", key.text);
    fields.problems().warn(node.place, what, "it is low, medium or high", how);
    None
}
