//! Which rules hold in a folder or in a session, and where each comes from; taking back what was
//! kept; trying the examples of all.

use std::path::{Path, PathBuf};

use locum_kernel::{Command, Input, Rule, Session};
use serde_json::json;

use crate::complaint::Complaint;
use crate::config::{self, Config};
use crate::data;
use crate::data::Places;
use crate::flags::{RulesCheck, RulesForget, RulesList};
use crate::kept::{self, Kept};
use crate::look::{Seen, Sight};
use crate::people::me;
use crate::print;
use crate::reach;
use crate::setup;
use crate::text::{clean, table};

/// A rule that holds, and who said so.
struct Shown {
    rule: Rule,
    from: From,
    /// Where exactly.
    place: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    BuiltIn,
    Config,
    Kept,
    /// Only a session remembers them.
    Flags,
}

impl From {
    fn word(self) -> &'static str {
        match self {
            From::BuiltIn => "built in",
            From::Config => "configuration",
            From::Kept => "kept for this folder",
            From::Flags => "flags",
        }
    }
}

pub(super) fn list(flags: &RulesList, places: &Places<'_>) -> Result<u8, Complaint> {
    let shown = match &flags.session {
        Some(key) => {
            let (_, session) = Sight::open(Some(&data::place(places.data)?))?.find(Some(key))?;
            let known = known(places, Path::new(session.workspace()))?;
            session.rules().iter().map(|rule| placed(rule, &known)).collect()
        }
        None => known(places, &folder(flags.workspace.as_deref())?)?,
    };
    if flags.json {
        let row = |(at, it): (usize, &Shown)| {
            let (rule, from) = (it.rule.to_string(), it.from.word());
            json!({ "number": at + 1, "rule": rule, "from": from, "place": it.place })
        };
        let rows: Vec<_> = shown.iter().enumerate().map(row).collect();
        print::line(&json!(rows).to_string());
        return Ok(0);
    }
    let row = |(at, it): (usize, &Shown)| {
        let from = match it.place.as_str() {
            "" => it.from.word().to_owned(),
            place => format!("{}: {place}", it.from.word()),
        };
        vec![(at + 1).to_string(), clean(&it.rule.to_string()), clean(&from)]
    };
    let rows: Vec<Vec<String>> = shown.iter().enumerate().map(row).collect();
    print::line(table(&["", "RULE", "FROM"], &rows).trim_end());
    Ok(0)
}

pub(super) fn forget(flags: &RulesForget, places: &Places<'_>) -> Result<u8, Complaint> {
    let workspace = folder(flags.workspace.as_deref())?;
    let shown = known(places, &workspace)?;
    let found = flags.number.checked_sub(1).and_then(|at| shown.get(at));
    let Some(Shown { rule, from, place }) = found else {
        let cause = format!("{} is none of the {} that hold here.", flags.number, shown.len());
        return Err(Complaint::no_such_rule(cause));
    };
    match from {
        From::Kept => {
            let folder = data::folder(places.data)?;
            Kept::forget(&folder, &workspace, rule)?;
            print::line(&clean(&format!("forgotten: {rule}")));
            revoke(&folder, &workspace, rule)?;
            Ok(0)
        }
        From::Config => {
            let next = format!("take it out of {place}");
            let cause = format!("{rule} stands in the configuration.");
            Err(Complaint { next, ..Complaint::no_such_rule(cause) })
        }
        From::BuiltIn | From::Flags => {
            let cause = format!("{rule} is built in: a deny of your own is stronger.");
            Err(Complaint::no_such_rule(cause))
        }
    }
}

/// Takes it back from the sessions of the folder in which it was allowed, and from one that runs
/// with it. The others are told the rules that hold when they are next opened.
fn revoke(data: &Path, workspace: &Path, rule: &Rule) -> Result<(), Complaint> {
    let is_anybody_there = reach::is_anybody_there(data);
    let holds = |session: &Session| {
        let granted = session.grants().any(|grant| grant.rules.contains(rule));
        granted || (is_anybody_there && session.rules().contains(rule))
    };
    let mut unreached = Ok(());
    for Seen { key, session, .. } in Sight::open(Some(data))?.all()? {
        let Ok(session) = session else { continue };
        if Path::new(session.workspace()) != workspace || !holds(&session) {
            continue;
        }
        let command = Command::Revoke { rule: rule.clone() };
        match reach::reach(data, &key, &Input::Commanded { by: me(), command }) {
            Ok(_) => print::line(&clean(&format!("{key} asks again"))),
            Err(why) => unreached = unreached.and(Err(why)),
        }
    }
    unreached
}

/// Reading them is trying their examples.
pub(super) fn check(flags: &RulesCheck, places: &Places<'_>) -> Result<u8, Complaint> {
    let workspace = folder(flags.workspace.as_deref())?;
    let config = config::read(places.config)?;
    config.warn();
    let kept = kept::read(&data::place(places.data)?, &workspace)?;
    let examples: usize = config.rule_lines.iter().map(|(_, examples)| examples).sum();
    let rules = config.rules.len() + kept.in_force(None).len();
    print::line(&format!("{rules} rules and {examples} examples, all good"));
    Ok(0)
}

/// What `rules test` judges by, besides its flags.
pub(super) fn in_force(places: &Places<'_>, at: Option<&Path>) -> Result<Vec<Rule>, Complaint> {
    Ok(known(places, &folder(at)?)?.into_iter().map(|it| it.rule).collect())
}

fn known(places: &Places<'_>, workspace: &Path) -> Result<Vec<Shown>, Complaint> {
    let config = config::read(places.config)?;
    let kept = kept::read(&data::place(places.data)?, workspace)?;
    let built_in =
        setup::built_in().map(|rule| Shown { rule, from: From::BuiltIn, place: String::new() });
    let mut shown: Vec<Shown> = built_in.collect();
    shown.extend(of_config(&config));
    shown.extend(kept.in_force(None).into_iter().map(|(rule, row)| {
        let by = if row.by.is_empty() { String::new() } else { format!("by {}", row.by) };
        let place = if row.from.is_empty() { by } else { format!("{by} in {}", row.from) };
        Shown { rule: rule.clone(), from: From::Kept, place }
    }));
    Ok(shown)
}

fn of_config(config: &Config) -> impl Iterator<Item = Shown> {
    let file = config.path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    config.rules.iter().zip(&config.rule_lines).map(move |(rule, (line, _))| Shown {
        rule: rule.clone(),
        from: From::Config,
        place: format!("{file}:{line}"),
    })
}

/// Where a rule of a session comes from, as far as it can still be told.
fn placed(rule: &Rule, known: &[Shown]) -> Shown {
    let found = known.iter().find(|it| it.rule == *rule);
    let (from, place) =
        found.map_or((From::Flags, String::new()), |it| (it.from, it.place.clone()));
    Shown { rule: rule.clone(), from, place }
}

fn folder(named: Option<&Path>) -> Result<PathBuf, Complaint> {
    let named = named.unwrap_or(Path::new("."));
    named.canonicalize().map_err(|error| Complaint::workspace(named, &error))
}
