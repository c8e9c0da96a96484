//! Whoever allows something for the project is told at once when no rule can say just that.

use locum_kernel::{
    Approval, AskKind, Input, PolicyMode, Question, Rule, RuleKind, Scope, Verdict, View, explain,
};
use locum_runtime::rules::usual;
use locum_runtime::subjects::subjects;

/// One line for whoever gives this answer, if it will not be kept for the project.
pub(crate) fn of_answer(view: &View, input: &Input) -> Option<String> {
    let Input::Answered { ask, verdict: Verdict::Allow(allow), .. } = input else { return None };
    if allow.scope != Scope::Project || allow.pattern.is_some() {
        return None;
    }
    let card = view.asks.iter().find(|card| card.id == *ask)?;
    let AskKind::Approval(approval) = &card.kind else { return None };
    let changed =
        allow.arguments.clone().map(|arguments| Approval { arguments, ..(**approval).clone() });
    why(changed.as_ref().unwrap_or(approval)).map(|why| told(&card.id.to_string(), why))
}

pub(crate) fn told(id: &str, why: &str) -> String {
    format!("{id} holds for this session only, because {why}")
}

const SIGNS: &str = "a rule with its * or ? would allow more";
const BESIDE: &str = "no rule can say what stands beside the command, or tell what it runs";

/// Why no rule says this call and nothing more.
pub(crate) fn why(approval: &Approval) -> Option<&'static str> {
    let has_signs = |text: &str| text.contains(['*', '?']);
    let Some(tool) = usual(&approval.tool) else {
        return has_signs(&approval.arguments.to_string()).then_some(SIGNS);
    };
    let key = tool.subject.as_deref().unwrap_or_default();
    let whole = approval.arguments.get(key)?.as_str()?.to_owned();
    let here = std::env::current_dir().unwrap_or_default();
    let subjects = subjects(&tool, &approval.arguments, &here);
    let judged = |rules: &[Rule]| {
        explain(&Question {
            rules,
            mode: PolicyMode::Ask,
            agent: "",
            definition: None,
            tool: &tool,
            arguments: &approval.arguments,
            subjects: subjects.as_ref(),
        })
    };
    let mut ways: Vec<String> = judged(&[]).parts.into_iter().map(|part| part.part).collect();
    // Several commands are allowed together, not each by itself.
    if ways.len() > 1 {
        ways.clear();
    }
    ways.push(whole);
    let says = |pattern: &String| {
        let (kind, tool) = (RuleKind::Allow, approval.tool.clone());
        let rule = Rule { kind, tool, pattern: Some(pattern.clone()), agent: None };
        judged(&[rule]).verdict == RuleKind::Allow
    };
    if ways.iter().any(|way| !has_signs(way) && says(way)) {
        return None;
    }
    Some(if ways.iter().any(|way| has_signs(way)) { SIGNS } else { BESIDE })
}

#[cfg(test)]
mod tests {
    use locum_kernel::{Class, Digest};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_rule_says_is_told_with_the_reason() {
        let cases = [
            ("exec", json!({"command": "make"}), None),
            ("exec", json!({"command": "echo a && echo b"}), None),
            ("exec", json!({"command": "ls *.rs"}), Some(SIGNS)),
            ("exec", json!({"command": "make", "cwd": "sub"}), Some(BESIDE)),
            ("exec", json!({"command": "make", "network": true}), Some(BESIDE)),
            ("write", json!({"path": "a.txt", "content": "?"}), None),
            ("web_fetch", json!({"url": "https://a.b/?c"}), Some(SIGNS)),
            ("publish", json!({"version": "1.0"}), None),
            ("publish", json!({"version": "1.*"}), Some(SIGNS)),
        ];
        for (tool, arguments, expected) in cases {
            let approval = Approval {
                tool: tool.into(),
                digest: Digest::of_call(tool, &arguments),
                class: Class::Exec,
                reason: String::new(),
                because: String::new(),
                arguments: arguments.clone(),
            };
            assert_eq!(why(&approval), expected, "{tool} {arguments}");
        }
    }
}
