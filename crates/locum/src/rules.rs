//! `locum rules`: those that hold (`list`), and `test`: what a command would really run, which rule
//! speaks about each part of it, and what the judge would say. Nothing is run.

mod list;

use std::path::Path;

use locum_definitions::to_kernel;
use locum_kernel::{Definition, Explanation, PolicyMode, Question, RuleKind, ToolSpec, explain};
use locum_runtime::rules::{USUAL, arguments, usual};
use locum_runtime::subjects::subjects;
use serde_json::json;

use crate::complaint::Complaint;
use crate::config;
use crate::data::{self, Places};
use crate::flags::{Rules, RulesAct, RulesTest};
use crate::library::library;
use crate::print;
use crate::setup::MAIN;
use crate::text::clean;
use crate::trust::{self, Said};
use crate::workshop;

/// It would not run without a person.
const NOT_FREE: u8 = 3;

pub(crate) fn obey(rules: &Rules, places: &Places<'_>) -> Result<u8, Complaint> {
    match &rules.act {
        RulesAct::Test(test) => try_out(test, places),
        RulesAct::List(it) => list::list(it, places),
        RulesAct::Forget(it) => list::forget(it, places),
        RulesAct::Check(it) => list::check(it, places),
    }
}

/// With the rules that hold here and those that are given.
fn try_out(test: &RulesTest, places: &Places<'_>) -> Result<u8, Complaint> {
    let tool = usual(&test.tool).ok_or_else(|| Complaint::no_such_tool(&test.tool, USUAL))?;
    let mut rules = list::in_force(places, None)?;
    rules.extend(test.rules());
    let mode = test.mode.map_or(PolicyMode::Ask, Into::into);
    let arguments = arguments(&tool, &test.subject);
    let here = std::env::current_dir().unwrap_or_default();
    let subjects = subjects(&tool, &arguments, &here);
    let definition = made_from(test, places, &here)?;
    let found = explain(&Question {
        rules: &rules,
        mode,
        agent: &test.agent,
        definition: definition.as_ref(),
        tool: &tool,
        arguments: &arguments,
        subjects: subjects.as_ref(),
    });
    if test.json {
        print::line(&in_json(&found));
    } else {
        for line in in_words(&found) {
            print::line(&line);
        }
    }
    Ok(if found.verdict == RuleKind::Allow { 0 } else { NOT_FREE })
}

/// What the agent is made from, if it is not main.
fn made_from(
    test: &RulesTest,
    places: &Places<'_>,
    here: &Path,
) -> Result<Option<Definition>, Complaint> {
    if test.agent == MAIN {
        return Ok(None);
    }
    let settings = config::read(places.config)?;
    let data = data::place(places.data)?;
    let place = workshop::place("rules", here, &data, places.config);
    let trust = trust::quietly(here, &data, Said::Nothing)?;
    let library = library(&place, &settings, &trust);
    let Ok(found) = library.named(&test.agent) else {
        let name = clean(&test.agent);
        print::note(&format!(
            "note: there is no {name} here, so only rules and the mode are tried"
        ));
        return Ok(None);
    };
    let tools: Vec<ToolSpec> = USUAL.iter().filter_map(|name| usual(name)).collect();
    Ok(library.load(found).definition.map(|definition| to_kernel(&definition, &tools)))
}

fn in_json(found: &Explanation) -> String {
    json!({
        "verdict": found.verdict.word(),
        "because": found.because,
        "opaque": found.opaque,
        "parts": found.parts,
    })
    .to_string()
}

fn in_words(found: &Explanation) -> Vec<String> {
    let width = found.parts.iter().map(|part| clean(&part.part).chars().count()).max();
    let width = width.unwrap_or_default().min(60);
    let mut lines = vec![format!("{}: {}", found.verdict.word(), clean(&found.because))];
    if let Some(why) = &found.opaque {
        lines.push(format!("  {}", clean(why)));
    }
    for part in &found.parts {
        let rule = part.rule.as_ref().map_or("no rule speaks of it", String::as_str);
        let unsure = match (part.verdict, rule.starts_with("deny ")) {
            (Some(RuleKind::Ask), true) => " (cannot be told)",
            _ => "",
        };
        lines.push(format!("  {:width$}   {}{unsure}", clean(&part.part), clean(rule)));
    }
    lines
}
