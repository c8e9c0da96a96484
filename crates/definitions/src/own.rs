//! Our own keys, under `locum:`, and what a project's file may not say.

use std::collections::BTreeSet;

use locum_kernel::{Class, Mode};

use crate::definition::{Definition, Own, PassInput, Passthrough, Scope};
use crate::fields::Fields;
use crate::problem::Problems;
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
    let text = table.text(&["budget", "budget_usd"])?;
    let dollars = text.trim().trim_start_matches('$').parse::<f64>().ok();
    let dollars = dollars.filter(|dollars| (0.0..=1_000_000.0).contains(dollars));
    if dollars.is_none() {
        let what = format!("\"budget\" is the text {}", crate::problem::quote(&text));
        let why = "an amount in dollars is expected";
        table.problems().error(table.place("budget"), what, why, "write: budget: 1.50");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked above"
    )]
    dollars.map(|dollars| (dollars * 1e6).round() as u64)
}

fn ceiling(table: &Fields<'_>) -> Option<BTreeSet<Class>> {
    let words = table.words(&["ceiling"])?;
    let mut classes = BTreeSet::new();
    for word in words {
        match CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word)) {
            Some((_, class)) => {
                classes.insert(*class);
            }
            None if word == "all" => classes.extend(Class::ALL),
            None => {
                let what = format!("\"{word}\" is no class of tools");
                let why = "there are read, write, exec, network, delegate";
                let how = "write: ceiling: [read, network]";
                table.problems().error(table.place("ceiling"), what, why, how);
            }
        }
    }
    Some(classes)
}

fn passthrough(table: &Fields<'_>) -> Option<Passthrough> {
    let inner = table.table(&["passthrough"], "\"passthrough\"")?;
    let inputs = [("stdin", PassInput::Stdin), ("arg", PassInput::Arg)];
    let wrong = inner.node(&["command"]).is_some();
    let command = inner.texts(&["command"]);
    if wrong && command.is_none() {
        return None;
    }
    let command = command.unwrap_or_default();
    let input = inner.choice(&["input"], &inputs).unwrap_or(PassInput::Stdin);
    let (env, writes) = (variables(&inner), folders(&inner));
    inner.finish();
    let place = table.place("passthrough");
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        let how = "write: passthrough: {command: [program, argument], input: stdin}";
        table.problems().error(place, "\"passthrough\" has no command", "nothing could run", how);
        return None;
    }
    Some(Passthrough { command, input, env, writes, place })
}

fn variables(inner: &Fields<'_>) -> Vec<String> {
    let mut names = inner.texts(&["env"]).unwrap_or_default();
    names.retain(|name| {
        let is_name = !name.is_empty() && !name.contains(['=', ' ', '\0']);
        if !is_name {
            let what = format!("{} is no name of a variable", crate::problem::quote(name));
            let why = "\"env\" names variables of yours; their values stay where they are";
            let how = "write: env: [SOME_API_KEY]";
            inner.problems().error(inner.place("env"), what, why, how);
        }
        is_name
    });
    names
}

fn folders(inner: &Fields<'_>) -> Vec<String> {
    let mut folders = inner.texts(&["writes"]).unwrap_or_default();
    folders.retain(|folder| {
        let is_whole = folder.starts_with('/') || folder.starts_with("~/");
        let is_plain = is_whole && !folder.split('/').any(|part| part == "..");
        if !is_plain {
            let what = format!("{} is no whole path", crate::problem::quote(folder));
            let why = "where a program may write does not depend on where it is started";
            let how = "write: writes: [~/.name-of-the-program]";
            inner.problems().error(inner.place("writes"), what, why, how);
        }
        is_plain
    });
    folders
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
pub(crate) fn narrow(definition: &mut Definition, problems: &Problems, at: crate::Place) {
    if definition.origin.scope != Scope::Workspace {
        return;
    }
    if definition.permission.is_some_and(crate::Permission::widens) {
        definition.permission = None;
        let what = "the permission mode is left out";
        let why = "a project's file may ask for less than is allowed, never for more";
        problems.warn(at, what, why, "set it in a definition of your own");
    }
    for server in &mut definition.servers {
        server.needs_consent = match server.how {
            Reach::Stdio { .. } | Reach::Http { .. } | Reach::Python { .. } => true,
            // Ours, a face's, or one the person configured.
            Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => false,
        };
    }
}
