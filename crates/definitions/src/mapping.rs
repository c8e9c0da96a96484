//! A definition as the kernel judges by it: rights, limits and rules, never wider than the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use locum_kernel::{
    AgentLimits, Check, Class, Definition as Judged, Kind as JudgedKind, Kit, Mode, Offer, Only,
    PolicyMode, Program, ProgramInput, Proof, Rights, Rule, RuleKind, Sub, ToolSpec, Tuning,
};

use crate::definition::{
    Definition, Isolation, Kind, PassInput, Passthrough, Permission, Retry, Scope, SubRecipe,
    ToolUse,
};
use crate::problem::{Place, Problems};
use crate::server::Reach;
use crate::{offer, tools};

/// What was to be told of it was told when it was read. `world` is every tool there is; a pattern
/// of names stands for what is in it now.
#[must_use]
pub fn to_kernel(definition: &Definition, world: &[ToolSpec]) -> Judged {
    let kind = match definition.kind {
        Kind::Recipe => JudgedKind::Recipe,
        Kind::Skill => JudgedKind::Skill,
        Kind::Agent => JudgedKind::Agent,
    };
    let mut judged = Judged::new(&definition.name, kind);
    judged.about.clone_from(&definition.about);
    judged.instructions.clone_from(&definition.instructions);
    judged.model = model(definition);
    judged.uses = uses(definition, world);
    judged.ceiling = match &definition.own.ceiling {
        Some(classes) => Rights { classes: classes.clone(), tools: None },
        // What a recipe lists is for itself; the recipes below it list their own.
        None if definition.kind == Kind::Recipe => Rights::all(),
        None => judged.uses.clone(),
    };
    if definition.permission == Some(Permission::Plan) {
        judged.ceiling.classes.retain(|class| *class == Class::Read);
    }
    judged.uses = judged.uses.meet(&judged.ceiling);
    judged.limits = AgentLimits {
        turns_max: definition.settings.turns_max,
        micro_usd_max: definition.own.budget_micro_usd,
        slots: definition.own.slots,
        ..AgentLimits::default()
    };
    judged.opening.clone_from(&definition.prompt);
    judged.output = definition.response.clone().map(Arc::new);
    judged.mode = definition.own.mode.or(definition.background.then_some(Mode::Worker));
    judged.rules = rules(definition);
    judged.only = only(definition, world);
    judged.chats.clone_from(&definition.skill.chat_types);
    judged.cap = match (definition.permission, definition.origin.scope) {
        (Some(Permission::Ask), _) => Some(PolicyMode::Ask),
        (Some(Permission::Edits), Scope::Workspace) => Some(PolicyMode::Edits),
        (Some(_) | None, _) => None,
    };
    judged.unasked = definition.permission == Some(Permission::Deny);
    judged.subs = definition.sub_recipes.iter().map(|sub| below(definition, sub)).collect();
    judged.proof = definition.retry.as_ref().map(proof);
    judged.program = definition.own.passthrough.as_ref().map(program);
    judged.kit = kit(definition);
    judged.setup = judged.kit.needs_setup();
    judged
}

fn below(definition: &Definition, sub: &SubRecipe) -> Sub {
    let about = offer::of_sub_recipe(definition, sub);
    Sub {
        offer: Offer { name: sub.name.clone(), kind: JudgedKind::Recipe, about },
        file: definition.origin.folder().join(&sub.path).display().to_string(),
        values: sub.values.clone(),
        in_turn: sub.sequential_when_repeated,
    }
}

/// What the lines would run is read by whoever has a parser.
fn proof(retry: &Retry) -> Proof {
    let check = |command: &String| Check { command: command.clone(), subjects: None };
    Proof {
        checks: retry.checks.iter().map(check).collect(),
        on_failure: retry.on_failure.as_ref().map(check),
        check_timeout_s: retry.check_timeout_s,
        on_failure_timeout_s: retry.on_failure_timeout_s,
        tries_max: retry.tries_max,
    }
}

fn program(passthrough: &Passthrough) -> Program {
    let input = match passthrough.input {
        PassInput::Stdin => ProgramInput::Stdin,
        PassInput::Arg => ProgramInput::Arg,
    };
    Program { command: passthrough.command.clone(), input }
}

fn kit(definition: &Definition) -> Kit {
    let program = definition.own.passthrough.as_ref();
    let named = program.into_iter().flat_map(|it| &it.env);
    let env: BTreeSet<String> = definition.skill.env.iter().chain(named).cloned().collect();
    let started = definition.servers.iter().filter(|server| server.brings());
    Kit {
        origin: Some(definition.origin.file.display().to_string()),
        tuning: Tuning {
            temperature_milli: definition.settings.temperature.and_then(milli),
            effort: definition.settings.effort.clone(),
        },
        env,
        writes: program.map(|it| it.writes.clone()).unwrap_or_default(),
        worktree: definition.isolation == Some(Isolation::Worktree),
        checkpoint: definition.own.checkpoint.unwrap_or(false),
        servers: started.filter_map(|server| serde_json::to_value(server).ok()).collect(),
    }
}

/// Thousandths of a temperature. No provider takes more than two.
fn milli(temperature: f64) -> Option<u32> {
    let milli = (temperature * 1_000.0).round().clamp(0.0, 2_000.0);
    // Through text: a number of this size has no other way to be a whole one without a cast.
    format!("{milli:.0}").parse().ok()
}

fn model(definition: &Definition) -> Option<String> {
    let settings = &definition.settings;
    match (&settings.provider, &settings.model) {
        (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
        (_, model) => model.clone(),
    }
}

fn uses(definition: &Definition, world: &[ToolSpec]) -> Rights {
    let mut listed = definition.tools.allow.as_ref().map(|list| named(list, world));
    if let (Some(listed), Some(_)) = (&mut listed, definition.memory) {
        // Who is to remember needs the tools for it, whatever else the file lists.
        listed.extend(MEMORY.iter().map(|name| (*name).to_owned()));
    }
    if let Some(listed) = listed.as_mut().filter(|listed| listed.contains("exec")) {
        // A command that takes long goes on as a process: who started it must reach it.
        listed.insert("process".to_owned());
    }
    let brought = brought(definition, world);
    let allow = match (listed, brought) {
        (Some(listed), Some(brought)) => Some(listed.intersection(&brought).cloned().collect()),
        (listed, brought) => listed.or(brought),
    };
    // Only a whole tool is taken away here; a part of one is a rule.
    let whole: Vec<ToolUse> =
        definition.tools.deny.iter().filter(|tool| tool.pattern.is_none()).cloned().collect();
    if whole.is_empty() && allow.is_none() {
        return Rights::all();
    }
    let mut allow: BTreeSet<String> = allow.unwrap_or_else(|| every(world));
    let denied = named(&whole, world);
    allow.retain(|name| !denied.contains(name));
    Rights::all().with_tools(allow.iter().map(String::as_str))
}

/// The ways to make agents, which no server offers.
const MAKING: &[&str] = &["use_agent", "use_skill", "spawn_agent", "call_recipe"];

const MEMORY: &[&str] = &["memory_save", "memory_search", "memory_get"];

fn every(world: &[ToolSpec]) -> BTreeSet<String> {
    let names = world.iter().map(|tool| tool.name.as_str());
    names.chain(MAKING.iter().copied()).map(str::to_owned).collect()
}

/// Names, and for a pattern of names everything in the world it fits.
fn named(list: &[ToolUse], world: &[ToolSpec]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tool in list {
        match tool.name.strip_suffix('*') {
            Some(start) => {
                let fit = world.iter().filter(|known| known.name.starts_with(start));
                names.extend(fit.map(|known| known.name.clone()));
            }
            None => {
                names.insert(tool.name.clone());
            }
        }
    }
    names
}

/// A recipe that lists its extensions has these and no others.
fn brought(definition: &Definition, world: &[ToolSpec]) -> Option<BTreeSet<String>> {
    if definition.kind != Kind::Recipe || definition.servers.is_empty() {
        return None;
    }
    let mut names = BTreeSet::new();
    for server in &definition.servers {
        let only = &server.available_tools;
        let quiet = Problems::new(&definition.origin.file);
        match &server.how {
            Reach::Builtin { tools: ours } => {
                let wanted = only.iter().flat_map(|tool| tools::one(tool, Place::START, &quiet));
                let wanted: BTreeSet<String> = wanted.map(|tool| tool.name).collect();
                let kept = ours.iter().filter(|tool| only.is_empty() || wanted.contains(*tool));
                names.extend(kept.cloned());
            }
            Reach::Stdio { .. }
            | Reach::Http { .. }
            | Reach::Python { .. }
            | Reach::Frontend { .. }
            | Reach::Named => {
                let start = server.prefix();
                let offered = world.iter().filter_map(|tool| tool.name.strip_prefix(&*start));
                let kept = offered.filter(|tool| only.is_empty() || only.iter().any(|o| o == tool));
                names.extend(kept.map(|tool| format!("{start}{tool}")));
            }
        }
    }
    if !definition.sub_recipes.is_empty() || definition.servers.iter().any(|s| s.name == "summon") {
        names.extend(MAKING.iter().map(|name| (*name).to_owned()));
    }
    Some(names)
}

/// The calls that a list of tools is confined to. A tool that is also listed whole is not.
fn only(definition: &Definition, world: &[ToolSpec]) -> Vec<Only> {
    let list = definition.tools.allow.as_deref().unwrap_or_default();
    let (parts, whole): (Vec<&ToolUse>, Vec<&ToolUse>) =
        list.iter().partition(|tool| tool.pattern.is_some());
    let whole = named(&whole.into_iter().cloned().collect::<Vec<_>>(), world);
    let parts = parts.into_iter().filter(|tool| !whole.contains(&tool.name));
    parts
        .filter_map(|tool| Some(Only { tool: tool.name.clone(), pattern: tool.pattern.clone()? }))
        .collect()
}

fn rules(definition: &Definition) -> Vec<Rule> {
    let rule = |kind, tool: &str, pattern: Option<&String>| Rule {
        kind,
        tool: tool.to_owned(),
        pattern: pattern.cloned(),
        agent: None,
    };
    let mut rules = Vec::new();
    for tool in definition.tools.deny.iter().filter(|tool| tool.pattern.is_some()) {
        rules.push(rule(RuleKind::Deny, &tool.name, tool.pattern.as_ref()));
    }
    for tool in &definition.tools.ask {
        rules.push(rule(RuleKind::Ask, &tool.name, tool.pattern.as_ref()));
    }
    match definition.permission {
        None
        | Some(Permission::Plan | Permission::Ask | Permission::Default | Permission::Deny) => {}
        Some(Permission::Edits) if definition.origin.scope == Scope::Workspace => {}
        Some(Permission::Edits) => {
            rules.extend(["write", "edit"].map(|tool| rule(RuleKind::Allow, tool, None)));
        }
        Some(Permission::Auto) => rules.push(rule(RuleKind::Allow, "*", None)),
    }
    rules.dedup();
    rules
}
