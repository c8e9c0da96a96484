//! What helps after a call was denied. Leaving asks open helps only where somebody would have been
//! asked: nobody can be asked about a rule, a mode or what a definition does not give.

use locum_kernel::Denial;
use locum_runtime::line::RunResult;
use serde_json::Value;

use crate::text::quote;

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

/// What to do first, each once; then it goes on with `resume`.
pub(crate) fn remedies(result: &RunResult, session: &str, resume: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (denial, reason) in result.denials.iter().zip(&result.denial_reasons) {
        let remedy = match reason.cause {
            Some(Denial::Unheard | Denial::Person) | None => resume.to_owned(),
            Some(Denial::NeverAsks) => match rule(denial) {
                Some(rule) => format!("{resume} --allow {}", quote(&rule)),
                None => format!("locum rules list -s {}", quote(session)),
            },
            Some(Denial::Rule) => format!("locum rules list -s {}", quote(session)),
            Some(Denial::Plan) => format!("{resume} --mode ask"),
            // It says from which definition the agent is.
            Some(Denial::Beyond(agent)) => format!("locum show {agent} -s {}", quote(session)),
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

/// The rule that would have allowed just this call, if a rule can say it.
fn rule(denial: &str) -> Option<String> {
    let (who, arguments) = denial.split_once(" {")?;
    let tool = who.rsplit(": ").next()?;
    let arguments: Value = serde_json::from_str(&format!("{{{arguments}")).ok()?;
    let subject = ["command", "path", "url"].iter().find_map(|key| arguments.get(key)?.as_str())?;
    let is_plain = !subject.contains(['"', '*', '?', '\\', '\n']);
    is_plain.then(|| format!("{tool} \"{subject}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_says_just_this_call_or_nothing() {
        let cases = [
            ("main/a: b: exec {\"command\":\"cargo test\"}", Some("exec \"cargo test\"")),
            ("main: write {\"content\":\"{}\",\"path\":\"a b\"}", Some("write \"a b\"")),
            ("main: exec {\"command\":\"rm *\"}", None),
            ("main: exec {\"command\":\"echo \\\"x\\\"\"}", None),
            ("main: mcp__tool {}", None),
        ];
        for (denial, expected) in cases {
            assert_eq!(rule(denial).as_deref(), expected, "{denial}");
        }
    }
}
