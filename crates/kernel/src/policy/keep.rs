//! What an allow for the whole project comes to as rules, so that it can be written down where
//! people read it. Rules that would say more than was allowed are not made: then the allow holds
//! for the session only.

use alloc::string::String;
use alloc::vec::Vec;

use super::{declared, heard};
use crate::{Call, Rule, RuleKind, Session};

/// The rule for what the call is about: the line, the path, the address. None: no rule says this
/// and nothing more.
pub(crate) fn rules(session: &Session, call: &Call, pattern: Option<&String>) -> Vec<Rule> {
    let Some((tool, class)) = declared(session, &call.name) else { return Vec::new() };
    let rule = |pattern: String| Rule {
        kind: RuleKind::Allow,
        tool: tool.into(),
        pattern: Some(pattern),
        agent: None,
    };
    if let Some(pattern) = pattern {
        return Vec::from([rule(pattern.clone())]);
    }
    let heard = heard(session, call, class);
    // Several commands are allowed together, not each by itself, so only the line as it was
    // written says so. What stands beside a line (a folder, the network) no rule can bind to it.
    let part = (heard.parts.len() == 1).then(|| heard.parts.first()).flatten();
    let ways = [part, Some(&heard.whole)];
    let says_it =
        |pattern: &&String| !pattern.contains(['*', '?']) && heard.is_admitted(&[pattern.as_str()]);
    let pattern = ways.into_iter().flatten().find(says_it);
    pattern.map(|pattern| rule(pattern.clone())).into_iter().collect()
}
