//! One definition, whole: what it may use, what it needs, what it would ask for.

use locum_definitions::{
    Definition, Found, InputType, Isolation, Loaded, Parameter, PassInput, Passthrough, Permission,
    Reach, Requirement, Retry, Scope, Server, ToolUse,
};
use serde_json::{Value, json};

use super::Sight;
use crate::check::{line, object, painted};
use crate::complaint::{Complaint, USAGE};
use crate::config::Config;
use crate::flags::Definitions;
use crate::library::is_on;
use crate::print;
use crate::reading::{self, Around, Reader};
use crate::text::{self, block, clean, quote};

impl Sight {
    pub(super) fn one(&self, name: &str, flags: &Definitions) -> Result<u8, Complaint> {
        let found = self.library.named(name).map_err(|missing| self.not_found(&missing))?;
        let loaded = self.library.load(found);
        let has_skill = |name: &str| reading::has_skill(&self.library, &self.settings, name);
        let around = Around { place: &self.place, has_skill: &has_skill };
        let Loaded { definition, problems } = reading::with(loaded, &around, Reader::Uses);
        let Some(definition) = definition else {
            let told: Vec<String> = problems.iter().map(line).collect();
            return Err(Complaint {
                code: "E404",
                what: format!("{} changed just now and cannot be used.", clean(name)),
                cause: told.join("\n"),
                next: format!("locum check {}", quote(&found.origin.file.display().to_string())),
                exit: USAGE,
            });
        };
        if flags.json {
            let consents: Vec<String> =
                definition.consents().into_iter().map(|consent| consent.what).collect();
            let whole = json!({
                "found": self.brief(found),
                "definition": harmless(&definition),
                "consents": consents,
                "problems": problems.iter().map(object).collect::<Vec<_>>(),
            });
            print::line(&text::json(&whole));
            return Ok(0);
        }
        for (name, value) in facts(&definition, found, &self.settings) {
            let value = clean(&value).replace('\n', "\n              ");
            print::line(&format!("{name:<12}  {value}"));
        }
        for problem in &problems {
            print::line(&painted(problem));
        }
        for (heading, text) in [
            ("instructions", Some(&definition.instructions)),
            ("first message", definition.prompt.as_ref()),
        ] {
            let text = text.filter(|text| !text.trim().is_empty());
            if let Some(text) = text {
                print::line(&format!("\n{heading}:\n{}", block(text, "  ")));
            }
        }
        Ok(0)
    }
}

/// Values of environments and headers may be keys; only their names are told.
fn harmless(definition: &Definition) -> Value {
    let mut definition = definition.clone();
    for server in &mut definition.servers {
        match &mut server.how {
            Reach::Stdio { env, .. } => env.values_mut().for_each(String::clear),
            Reach::Http { env, headers, .. } => {
                env.values_mut().chain(headers.values_mut()).for_each(String::clear);
            }
            Reach::Builtin { .. }
            | Reach::Python { .. }
            | Reach::Frontend { .. }
            | Reach::Named => {}
        }
    }
    serde_json::to_value(&definition).unwrap_or_default()
}

type Fact = (&'static str, String);

/// What is worth a line; what the file does not say has none.
fn facts(it: &Definition, found: &Found, settings: &Config) -> Vec<Fact> {
    let origin = &it.origin;
    let mut facts: Vec<Fact> = vec![
        ("name", it.name.clone()),
        ("kind", it.kind.word().to_owned()),
        ("from", format!("{} {}", origin.scope.word(), origin.file.display())),
    ];
    let list = |texts: &[String]| (!texts.is_empty()).then(|| texts.join(", "));
    let rows = |rows: Vec<String>| (!rows.is_empty()).then(|| rows.join("\n"));
    let on = is_on(found, settings);
    let settings = &it.settings;
    let model = settings.model.as_ref().map(|model| match &settings.provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model.clone(),
    });
    let denied = &it.tools.deny;
    let money = |micro: u64| crate::text::money(micro, true);
    let told = [
        ("title", it.title.clone()),
        ("about", Some(it.about.clone()).filter(|about| !about.is_empty())),
        ("other names", list(&found.aliases)),
        ("state", (!on).then(|| "off until named in config.toml, as enable = [\"NAME\"]".into())),
        ("model", Some(model.unwrap_or_else(|| "its parent's".into()))),
        ("temperature", settings.temperature.map(|number| number.to_string())),
        ("effort", settings.effort.clone()),
        ("tools", Some(it.tools.allow.as_ref().map_or_else(|| "all".into(), |them| tools(them)))),
        ("not", (!denied.is_empty()).then(|| tools(denied))),
        ("asked", (!it.tools.ask.is_empty()).then(|| tools(&it.tools.ask))),
        ("permission", it.permission.map(|permission| permitted(permission, origin.scope))),
        ("turns", settings.turns_max.map(|turns| format!("at most {turns} model calls"))),
        ("budget", it.own.budget_micro_usd.map(|micro| format!("at most {}", money(micro)))),
        ("slots", it.own.slots.map(|slots| slots.to_string())),
        ("ceiling", it.own.ceiling.as_ref().and_then(word)),
        ("mode", it.own.mode.as_ref().and_then(word)),
        ("background", it.background.then(|| "works beside its parent".into())),
        ("isolation", it.isolation.map(isolation)),
        ("checkpoint", it.own.checkpoint.map(checkpoint)),
        ("program", it.own.passthrough.as_ref().map(passthrough)),
        ("memory", it.memory.as_ref().and_then(word)),
        ("parameters", rows(it.parameters.iter().map(parameter).collect())),
        ("servers", rows(it.servers.iter().map(server).collect())),
        (
            "sub-recipes",
            rows(it.sub_recipes.iter().map(|sub| format!("{}: {}", sub.name, sub.path)).collect()),
        ),
        ("skills", list(&it.skills)),
        ("chats", chats(it)),
        (
            "input",
            it.skill.input_schema.as_ref().and_then(|it| serde_json::to_string_pretty(it).ok()),
        ),
        ("output", it.response.as_ref().map(|_| "JSON of a schema".into())),
        ("retry", it.retry.as_ref().map(retry)),
        ("activities", rows(it.activities.clone())),
        ("variables", list(&it.skill.env)),
        ("programs", list(&it.skill.packages)),
        ("asks for", rows(it.consents().into_iter().map(|consent| consent.what).collect())),
        ("author", it.author.clone()),
        ("version", it.version.clone()),
    ];
    facts.extend(told.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts
}

fn permitted(it: Permission, scope: Scope) -> String {
    let meaning = match it {
        Permission::Plan => "it changes nothing",
        Permission::Deny => "what would have to be asked is denied",
        Permission::Ask => "it asks even where the run's mode would not",
        Permission::Default => "as the run it is in",
        Permission::Edits if scope == Scope::Workspace => {
            "it asks before all but edits, even where the run's mode would not"
        }
        Permission::Edits => "edits are free",
        Permission::Auto => "nothing is asked",
    };
    format!("{}: {meaning}", word(&it).unwrap_or_default())
}

fn isolation(it: Isolation) -> String {
    match it {
        Isolation::Worktree => "worktree: a copy of the repository of its own".into(),
    }
}

fn checkpoint(kept: bool) -> String {
    if kept { "files are kept before it changes them".into() } else { "none".into() }
}

fn passthrough(it: &Passthrough) -> String {
    let words: Vec<String> = it.command.iter().map(|word| quote(word)).collect();
    let input = match it.input {
        PassInput::Stdin => "reads the message",
        PassInput::Arg => "gets the message as its last argument",
    };
    let mut rows = vec![format!("{} instead of a model; it {input}", words.join(" "))];
    if !it.env.is_empty() {
        rows.push(format!("it sees the variables {}", it.env.join(", ")));
    }
    if !it.writes.is_empty() {
        rows.push(format!("it may write to {}", it.writes.join(", ")));
    }
    rows.join("\n")
}

fn retry(it: &Retry) -> String {
    let mut rows = vec![format!("at most {} tries until all of these end with 0", it.tries_max)];
    rows.extend(
        it.checks.iter().map(|check| format!("{check} (at most {} s)", it.check_timeout_s)),
    );
    rows.extend(
        it.on_failure.iter().map(|line| {
            format!("before another try: {line} (at most {} s)", it.on_failure_timeout_s)
        }),
    );
    rows.join("\n")
}

fn chats(it: &Definition) -> Option<String> {
    let types: Vec<&str> = it.skill.chat_types.iter().map(String::as_str).collect();
    let note = "holds only in chats, which do not exist yet";
    (!types.is_empty()).then(|| format!("{} ({note})", types.join(", ")))
}

fn tools(list: &[ToolUse]) -> String {
    let one = |tool: &ToolUse| match &tool.pattern {
        Some(pattern) => format!("{} {pattern:?}", tool.name),
        None => tool.name.clone(),
    };
    if list.is_empty() {
        "none".into()
    } else {
        list.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The word that JSON has for it.
fn word<T: serde::Serialize>(value: &T) -> Option<String> {
    match serde_json::to_value(value).ok()? {
        Value::String(word) => Some(word),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(", "))
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

fn parameter(it: &Parameter) -> String {
    let input = match it.input {
        InputType::String => "string",
        InputType::Number => "number",
        InputType::Boolean => "boolean",
        InputType::Date => "date",
        InputType::File => "file",
        InputType::Select => "one of",
    };
    let input = if it.options.is_empty() {
        input.to_owned()
    } else {
        format!("{input} {}", it.options.join(" | "))
    };
    let requirement = match it.requirement {
        Requirement::Required => "required",
        Requirement::Optional => "optional",
        Requirement::UserPrompt => "asked for if missing",
    };
    let default = it.default.as_ref().map(|it| format!(", default {it:?}")).unwrap_or_default();
    format!("{} ({input}, {requirement}{default}): {}", it.key, it.about)
}

fn server(it: &Server) -> String {
    let how = match &it.how {
        Reach::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args).map(|word| quote(word));
            words.collect::<Vec<_>>().join(" ")
        }
        Reach::Http { url, .. } => url.clone(),
        Reach::Builtin { tools } if tools.is_empty() => "nothing of ours".into(),
        Reach::Builtin { tools } => format!("our {}", tools.join(", ")),
        Reach::Python { .. } => "a script in the file".into(),
        Reach::Frontend { .. } => "answered by a face".into(),
        Reach::Named => "as configured".into(),
    };
    let only = if it.available_tools.is_empty() {
        String::new()
    } else {
        format!(" (only {})", it.available_tools.join(", "))
    };
    format!("{}: {how}{only}", it.name)
}
