//! Our own keys, under `locum:`, and what a project's file may not say.

use std::collections::BTreeSet;

use locum_kernel::{Class, Mode};

use crate::bound;
use crate::definition::{Definition, Own, PassInput, Passthrough, Scope};
use crate::fields::{Fields, Placed};
use crate::problem::{Place, Problems, quote};
use crate::server::Reach;

const MODES: &[(&str, Mode)] =
    &[("floor", Mode::Floor), ("worker", Mode::Worker), ("call", Mode::Call)];

const CLASSES: &[(&str, Class)] = &[
    ("read", Class::Read),
    ("write", Class::Write),
    ("exec", Class::Exec),
    ("network", Class::Network),
    ("delegate", Class::Delegate),
];

/// How an agent's file says how far it goes before it asks.
pub(crate) const MODE: [&str; 2] = ["permissionMode", "permission_mode"];

/// Whether another program is the agent. It needs no instructions.
pub(crate) fn is_program(fields: &Fields<'_>) -> bool {
    let table = fields.node(&["locum"]).map(|(_, table)| table);
    table.and_then(|table| table.get("passthrough")).is_some_and(|it| !it.is_null())
}

/// Where the keys are looked for in every format.
pub(crate) fn read(fields: &Fields<'_>) -> Own {
    let Some(table) = fields.table(&["locum"], "\"locum\"") else { return Own::default() };
    let own = Own {
        mode: table.choice(&["mode"], MODES),
        slots: table.whole(&["slots"], 1, 1024).and_then(|slots| u32::try_from(slots).ok()),
        budget_micro_usd: budget(&table),
        ceiling: ceiling(&table),
        checkpoint: table.flag(&["checkpoint"]),
        passthrough: passthrough(&table),
    };
    table.finish();
    own
}

/// `1.50` or `$1.50`, in dollars.
fn budget(table: &Fields<'_>) -> Option<u64> {
    let keys = ["budget", "budget_usd"];
    let (key, node) = table.node(&keys)?;
    let text = table.text(&keys)?;
    let dollars = text.trim().trim_start_matches('$').parse::<f64>().ok();
    let dollars = dollars.filter(|dollars| (0.0..=1_000_000.0).contains(dollars));
    if dollars.is_none() {
        let what = format!("\"{}\" is the text {}", key.text, quote(&text));
        let why = "an amount in dollars is expected";
        table.problems().error(node.place, what, why, format!("write: {}: 1.50", key.text));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked above"
    )]
    dollars.map(|dollars| (dollars * 1e6).round() as u64)
}

fn ceiling(table: &Fields<'_>) -> Option<BTreeSet<Class>> {
    let words = table.placed_words(&["ceiling"])?;
    let mut classes = BTreeSet::new();
    for (word, at) in words {
        match CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word)) {
            Some((_, class)) => {
                classes.insert(*class);
            }
            None if word == "all" => classes.extend(Class::ALL),
            None => {
                let what = format!("\"{word}\" is no class of tools");
                let why = "there are read, write, exec, network, delegate";
                let how = "write: ceiling: [read, network]";
                table.problems().error(at, what, why, how);
            }
        }
    }
    Some(classes)
}

fn passthrough(table: &Fields<'_>) -> Option<Passthrough> {
    let inner = table.table(&["passthrough"], "\"passthrough\"")?;
    let inputs = [("stdin", PassInput::Stdin), ("arg", PassInput::Arg)];
    let is_there = inner.node(&["command"]).is_some();
    let command = command(&inner);
    let input = inner.choice(&["input"], &inputs).unwrap_or(PassInput::Stdin);
    let (env, folders) = (variables(&inner), folders(&inner));
    inner.finish();
    if is_there && command.is_none() {
        return None;
    }
    let command = command.unwrap_or_default();
    let place = table.place("passthrough");
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        let how = "write: passthrough: {command: [program, argument], input: stdin}";
        table.problems().error(place, "\"passthrough\" has no command", "nothing could run", how);
        return None;
    }
    let (writes, writes_at) = folders.into_iter().unzip();
    Some(Passthrough { command, input, env, writes, writes_at, place })
}

/// A list of words. No shell reads it, so a text is one word, whatever is in it.
fn command(inner: &Fields<'_>) -> Option<Vec<String>> {
    let (_, node) = inner.node(&["command"])?;
    let words = inner.texts(&["command"])?;
    let is_open = |text: &str| text.contains("{{");
    let has_space = |text: &str| text.trim().contains(char::is_whitespace) && !is_open(text);
    let program = words.first().filter(|text| has_space(text));
    let parts = || {
        let part = |word: &str| {
            let is_plain = word.chars().all(|it| it.is_alphanumeric() || "-_./=+@".contains(it));
            if is_plain { word.to_owned() } else { format!("{word:?}") }
        };
        let line = program.map(String::as_str).unwrap_or_default();
        let parts: Vec<String> = line.split_whitespace().map(part).collect();
        format!("write: command: [{}]", parts.join(", "))
    };
    match (node.text().is_some(), program) {
        (true, Some(text)) => {
            let what = format!("\"command\" is the text {}", quote(text));
            let why = "no shell takes it apart, so it would be the name of one program";
            inner.problems().error(node.place, what, why, parts());
            None
        }
        (false, Some(text)) if !text.contains('/') => {
            let what = format!("the program is called {}, with a space", quote(text));
            let why = "no shell takes it apart";
            inner.problems().warn(inner.place("command"), what, why, parts());
            Some(words)
        }
        (_, Some(_) | None) => Some(words),
    }
}

fn variables(inner: &Fields<'_>) -> Vec<String> {
    let mut names = inner.placed_texts(&["env"]).unwrap_or_default();
    names.retain(|(name, at)| {
        let is_name = !name.is_empty() && !name.contains(['=', ' ', '\0']);
        if !is_name {
            let what = format!("{} is no name of a variable", quote(name));
            let why = "\"env\" names variables of yours; their values stay where they are";
            inner.problems().error(*at, what, why, "write: env: [SOME_API_KEY]");
        }
        is_name
    });
    names.into_iter().map(|(name, _)| name).collect()
}

fn folders(inner: &Fields<'_>) -> Vec<Placed> {
    for at in inner.nothings("writes") {
        let what = "\"writes\" names no folder here";
        let why = "~ alone is nothing to YAML, and nobody is given a whole home";
        inner.problems().warn(at, what, why, "write: writes: [~/.name-of-the-program]");
    }
    let mut folders = inner.placed_texts(&["writes"]).unwrap_or_default();
    folders.retain(|(folder, at)| {
        let is_whole = folder.starts_with('/') || folder.starts_with("~/");
        let is_plain = is_whole && !folder.split('/').any(|part| part == "..");
        if !is_plain {
            let what = format!("{} is no whole path", quote(folder));
            let why = "where a program may write does not depend on where it is started";
            let how = "write: writes: [~/.name-of-the-program]";
            inner.problems().error(*at, what, why, how);
        }
        is_plain
    });
    folders
}

/// Words for a program that is only told the task.
pub(crate) fn unheard(definition: &Definition, at: Place, problems: &Problems) {
    if definition.own.passthrough.is_some() && !definition.instructions.trim().is_empty() {
        let why = "the program is given the message and nothing else";
        let how = "delete them, or put them into the program's command";
        problems.warn(at, "nobody reads these instructions", why, how);
    }
}

/// Checks that the file itself forbids to run.
pub(crate) fn unchecked(definition: &Definition, at: Place, problems: &Problems) {
    let ceiling = definition.own.ceiling.as_ref();
    if definition.retry.is_some() && ceiling.is_some_and(|it| !it.contains(&Class::Exec)) {
        let why = "they are commands, and the ceiling has no exec";
        let how = "add exec to the ceiling, or take the checks out";
        problems.warn(at, "the checks of \"retry\" can never pass", why, how);
    }
}

/// Keys by which a file would choose where words and keys go, or what runs unasked.
const FORBIDDEN: &[&str] = &[
    "base_url",
    "baseUrl",
    "api_base",
    "endpoint",
    "endpoints",
    "host",
    "api_key",
    "apiKey",
    "api_keys",
    "auth",
    "token",
    "hooks",
    "goose_host",
    "provider_url",
];

/// Tells of them; they are never read.
pub(crate) fn forbid(fields: &Fields<'_>, scope: Scope) {
    for name in FORBIDDEN {
        if !fields.has(name) {
            continue;
        }
        fields.ignore(&[name]);
        let why = match scope {
            Scope::Workspace => "a project's file may not set endpoints, keys or hooks",
            Scope::RecipePath | Scope::User | Scope::Builtin => {
                "a definition does not set endpoints, keys or hooks"
            }
        };
        let how = "delete it here; the configuration is the place for it";
        fields.problems().warn(fields.place(name), format!("\"{name}\" is left out"), why, how);
    }
}

/// A project's file narrows. What would widen is taken out and told.
pub(crate) fn narrow(definition: &mut Definition, fields: &Fields<'_>) {
    bound::bind(definition, fields.problems());
    if definition.origin.scope != Scope::Workspace {
        return;
    }
    let problems = fields.problems();
    if definition.permission.is_some_and(crate::Permission::widens) {
        // Fewer questions are not for a project to say; that it goes no further is.
        definition.permission.take_if(|it| *it == crate::Permission::Auto);
        let what = match definition.permission {
            Some(_) => "the permission mode only narrows",
            None => "the permission mode is left out",
        };
        let why = "a project's file may ask for less than is allowed, never for more";
        problems.warn(fields.place_as(&MODE), what, why, "set it in a definition of your own");
    }
    if !std::mem::take(&mut definition.skill.env).is_empty() {
        let what = "a project's skill gets no variables of yours";
        problems.warn(fields.place("env"), what, "they may be secrets", "keep the skill at home");
    }
    if let Some(program) = &mut definition.own.passthrough {
        let env = std::mem::take(&mut program.env);
        let writes = std::mem::take(&mut program.writes);
        program.writes_at.clear();
        let given = [("env", env, "variables"), ("writes", writes, "folders")];
        for (key, _, what) in given.into_iter().filter(|(_, names, _)| !names.is_empty()) {
            let at = fields.place_below(&["locum", "passthrough", key]);
            let what = format!("a project's program gets no {what} of yours");
            let why = "they may be or hold secrets";
            problems.warn(at, what, why, "keep the definition at home");
        }
    }
    for server in &mut definition.servers {
        server.needs_consent = match server.how {
            Reach::Stdio { .. } | Reach::Http { .. } | Reach::Python { .. } => true,
            // Ours, a face's, or one the person configured.
            Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => false,
        };
    }
}
