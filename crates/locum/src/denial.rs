//! What helps after a call was denied. Leaving asks open helps only where somebody would have been
//! asked: nobody can be asked about a rule, a mode or what a definition does not give.

use std::path::Path;

use locum_kernel::{
    Denial, Explanation, PolicyMode, Question, Rule, RuleKind, Session, Time, ToolSpec, explain,
    view,
};
use locum_runtime::line::RunResult;
use locum_runtime::rules::{parse_as, usual};
use locum_runtime::subjects::subjects;
use serde_json::Value;

use crate::ending::approvals_here;
use crate::flags::Approvals;
use crate::text::quote;

/// Whoever is to allow more at once should look at them first.
const PARTS_MAX: usize = 4;

/// What was denied, and why.
pub(crate) fn told(result: &RunResult) -> String {
    let reasons = result.denial_reasons.iter().map(Some).chain(std::iter::repeat(None));
    let told = result.denials.iter().zip(reasons).map(|(denial, reason)| match reason {
        Some(reason) => format!("{denial} ({})", reason.text),
        None => denial.clone(),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Whether somebody would have been asked, had they been there.
pub(crate) fn is_unheard(result: &RunResult) -> bool {
    // A run that an older version began does not tell why.
    let is_old = result.denial_reasons.len() < result.denials.len();
    is_old || result.denial_reasons.iter().any(|it| it.cause == Some(Denial::Unheard))
}

/// What to do first, each once; then it goes on with `resume`. `seen` is the session it was in.
pub(crate) fn remedies(
    result: &RunResult,
    key: &str,
    resume: &str,
    seen: Option<&Session>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (denial, reason) in result.denials.iter().zip(&result.denial_reasons) {
        let remedy = match reason.cause {
            Some(Denial::Unheard | Denial::Person) | None => resume.to_owned(),
            Some(Denial::NeverAsks) => {
                let denied = seen.and_then(|seen| Denied::read(denial, seen));
                denied.map_or_else(|| listing(key), |denied| denied.remedy(key, resume))
            }
            Some(Denial::Rule) => listing(key),
            Some(Denial::Plan) => format!("{resume} --mode ask{}", parked(resume)),
            // It says from which definition the agent is, and what it may do.
            Some(Denial::Beyond(agent)) => format!("locum show {agent} -s {}", quote(key)),
        };
        if !all.contains(&remedy) {
            all.push(remedy);
        }
    }
    if !all.iter().any(|remedy| remedy.starts_with(resume)) {
        all.push(resume.to_owned());
    }
    all
}

fn listing(key: &str) -> String {
    format!("locum rules list -s {}", quote(key))
}

/// Whoever may ask from now on finds nobody here, and would be denied again.
fn parked(resume: &str) -> &'static str {
    let is_heard = resume.contains("--approvals") || approvals_here() == Approvals::Ask;
    if is_heard { "" } else { " --approvals park" }
}

/// A call that was denied.
struct Denied<'a> {
    session: &'a Session,
    tool: ToolSpec,
    arguments: Value,
    subject: String,
    /// The definition's name.
    agent: String,
}

impl Denied<'_> {
    /// From how it was told; none, if that was cut or a rule cannot tell such calls apart.
    fn read<'a>(denial: &str, session: &'a Session) -> Option<Denied<'a>> {
        let (who, arguments) = denial.split_once(" {")?;
        let (path, tool) = who.rsplit_once(": ")?;
        let tool = session.tool(tool).cloned().or_else(|| usual(tool))?;
        let arguments: Value = serde_json::from_str(&format!("{{{arguments}")).ok()?;
        let subject = arguments.get(tool.subject.as_ref()?)?.as_str()?.to_owned();
        let rows = view(session, Time(0)).agents;
        let agent = rows.into_iter().find(|row| row.path == path).map(|row| row.definition);
        Some(Denied { session, tool, arguments, subject, agent: agent.unwrap_or_default() })
    }

    fn remedy(&self, key: &str, resume: &str) -> String {
        if let Some(rules) = self.rules() {
            let flags = rules.iter().map(|rule| format!(" --allow {}", quote(rule)));
            return format!("{resume}{}", flags.collect::<String>());
        }
        if usual(&self.tool.name).is_none() || self.subject.contains('\n') {
            return listing(key);
        }
        // It shows the parts, and which rule speaks of each.
        let tool = match self.tool.name.as_str() {
            "exec" => String::new(),
            name => format!(" --tool {name}"),
        };
        let agent = format!(" --agent {}", quote(&self.agent));
        format!("locum rules test{tool}{agent} -- {}", quote(&self.subject))
    }

    /// Rules that would have allowed just this call, if rules can say it: one for the whole, or one
    /// for each of its parts. The judge itself says whether they would.
    fn rules(&self) -> Option<Vec<String>> {
        let whole = self.rule(&self.subject).map(|rule| vec![rule]);
        if let Some(whole) = whole.filter(|rules| self.judged(rules).verdict == RuleKind::Allow) {
            return Some(whole);
        }
        let parts = self.judged(&[]).parts;
        if parts.is_empty() || parts.len() > PARTS_MAX {
            return None;
        }
        let rules: Option<Vec<String>> = parts.iter().map(|it| self.rule(&it.part)).collect();
        rules.filter(|rules| self.judged(rules).verdict == RuleKind::Allow)
    }

    /// None if it would allow more, or cannot be pasted.
    fn rule(&self, subject: &str) -> Option<String> {
        let is_plain = !subject.contains(['"', '*', '?', '\\', '\n']) && !subject.ends_with(':');
        is_plain.then(|| format!("{} \"{subject}\"", self.tool.name))
    }

    fn judged(&self, more: &[String]) -> Explanation {
        let more = more.iter().filter_map(|rule| parse_as(RuleKind::Allow, rule).ok());
        let rules: Vec<Rule> = self.session.rules().iter().cloned().chain(more).collect();
        let workspace = Path::new(self.session.workspace());
        let subjects = subjects(&self.tool, &self.arguments, workspace);
        explain(&Question {
            rules: &rules,
            mode: PolicyMode::Ask,
            agent: &self.agent,
            definition: None,
            tool: &self.tool,
            arguments: &self.arguments,
            subjects: subjects.as_ref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_would_allow_just_this_call() {
        let go_on = "GO";
        let cases = [
            ("main/a: b: exec {\"command\":\"cargo test\"}", "GO --allow 'exec \"cargo test\"'"),
            ("main: write {\"content\":\"{}\",\"path\":\"a b\"}", "GO --allow 'write \"a b\"'"),
            // Where it runs is part of it.
            (
                "main: exec {\"command\":\"touch made\",\"cwd\":\"sub\"}",
                "GO --allow 'exec \"cd sub\"' --allow 'exec \"touch made\"'",
            ),
            (
                "main: exec {\"command\":\"curl x\",\"network\":true}",
                "GO --allow 'exec \"curl x\"' --allow 'exec \"+network\"'",
            ),
            // How long it may take is not.
            (
                "main: exec {\"command\":\"touch made\",\"timeout_ms\":5}",
                "GO --allow 'exec \"touch made\"'",
            ),
            (
                "main: exec {\"command\":\"touch made\",\"env\":{\"A\":\"b\"}}",
                "locum rules test --agent '' -- 'touch made'",
            ),
            ("main: exec {\"command\":\"rm *\"}", "locum rules test --agent '' -- 'rm *'"),
            ("main: exec {\"command\":\"a\\nb $x\"}", "locum rules list -s s"),
            ("main: mcp__tool {}", "locum rules list -s s"),
        ];
        let session = Session::default();
        for (denial, expected) in cases {
            let denied = Denied::read(denial, &session);
            let remedy = denied.map_or_else(|| listing("s"), |denied| denied.remedy("s", go_on));
            assert_eq!(remedy, expected, "{denial}");
        }
    }
}
