//! Keys that do something in another program and nothing here. They are told, so that nobody
//! relies on them. Keys that only describe a file do nothing anywhere and are not told.

use crate::fields::Fields;

/// A key, the values that ask for nothing we would not do, and what is so instead.
struct Foreign {
    key: &'static str,
    fine: &'static [&'static str],
    why: &'static str,
    how: &'static str,
}

const fn foreign(
    key: &'static str,
    fine: &'static [&'static str],
    why: &'static str,
    how: &'static str,
) -> Foreign {
    Foreign { key, fine, why, how }
}

const ANY_AGENT: &str = "people and agents alike can start every agent here";
const OWN_TOOLS: &str = "to keep it from starting others: disallowedTools: Task";

const AGENT: &[Foreign] = &[
    foreign("top_p", &[], "the model's own is used", "temperature is passed on"),
    foreign("mode", &["subagent", "all", "agent"], ANY_AGENT, "delete it"),
    foreign("hidden", &["false"], ANY_AGENT, "disable: true turns it off"),
    foreign("user-invocable", &["true"], ANY_AGENT, "delete it"),
    foreign("disable-model-invocation", &["false"], ANY_AGENT, "disable: true turns it off"),
    foreign("infer", &["true"], ANY_AGENT, "disable: true turns it off"),
    foreign("agents", &["*"], "it may start whichever agents there are", OWN_TOOLS),
    foreign("handoffs", &[], "there are no buttons to hand on with", "say it in the instructions"),
    foreign("prompt", &[], "the text below the front matter is the prompt", "move it there"),
    foreign("context", &["fork"], "an agent has a context of its own", "delete it"),
    foreign("kind", &["local"], "only agents of this machine are run", "delete it"),
    foreign("target", &[], "the agent is used all the same", "delete it"),
];

const SKILL: &[Foreign] = &[
    foreign("context", &[], "whoever uses the skill reads it", "make it an agent to keep it apart"),
    foreign("agent", &[], "whoever uses the skill reads it", "make it an agent to keep it apart"),
    foreign("arguments", &[], "what is said with the skill stands below it", "name it in the text"),
    foreign("paths", &[], "a skill is offered whatever the files are", "say it in description"),
    foreign("shell", &["bash"], "no command in the text is run beforehand", "delete it"),
];

pub(crate) fn agent(fields: &Fields<'_>) {
    tell(fields, AGENT);
}

pub(crate) fn skill(fields: &Fields<'_>) {
    tell(fields, SKILL);
}

fn tell(fields: &Fields<'_>, table: &[Foreign]) {
    for Foreign { key, fine, why, how } in table {
        let Some((found, node)) = fields.node(&[key]) else { continue };
        let word = node.text().unwrap_or_default().trim();
        if !fine.iter().any(|value| value.eq_ignore_ascii_case(word)) {
            let what = format!("\"{key}\" does nothing here");
            fields.problems().warn(found.place, what, *why, *how);
        }
    }
}
