//! What a definition's lists of tools leave of the servers that come with it: a list of what may be
//! used that names nothing of a server is a list without it, as in the formats these come from.

use crate::definition::{Definition, Kind, ToolUse};
use crate::problem::Problems;
use crate::server::{Reach, Server};
use crate::server_name::{MARK, spelled};

/// Servers that are left without a tool are taken out and told; others keep what is left.
pub(crate) fn bind(definition: &mut Definition, problems: &Problems) {
    let tools = &definition.tools;
    let kind = definition.kind;
    definition.servers.retain_mut(|server| {
        let is_started = match server.how {
            Reach::Stdio { .. } | Reach::Http { .. } | Reach::Python { .. } => true,
            Reach::Builtin { .. } | Reach::Frontend { .. } | Reach::Named => false,
        };
        // What a recipe lists as its extensions is listed.
        let names_it = |it: &ToolUse| part(server, &it.name).is_some();
        let is_listed = kind == Kind::Recipe
            && !tools.allow.as_ref().is_some_and(|list| list.iter().any(names_it));
        let allow = tools.allow.as_deref().filter(|_| !is_listed);
        let lost = is_started.then(|| narrowed(server, allow, &tools.deny));
        let Some(why) = lost.flatten() else { return true };
        let what = format!("the server \"{}\" is not started", server.name);
        let how = format!("name what it may be used for: mcp__{}", server.name);
        problems.warn(server.place, what, why, how);
        false
    });
}

/// Why nothing is left of it.
fn narrowed(
    server: &mut Server,
    allow: Option<&[ToolUse]>,
    deny: &[ToolUse],
) -> Option<&'static str> {
    // Only a whole tool is taken away here; a part of one is a rule.
    let denied = deny.iter().filter(|tool| tool.pattern.is_none());
    let denied: Vec<String> = denied.filter_map(|tool| part(server, &tool.name)).collect();
    if denied.iter().any(|tool| tool == "*") {
        return Some("every tool of it is taken away");
    }
    server.denied_tools = denied;
    let listed: Vec<String> = allow?.iter().filter_map(|it| part(server, &it.name)).collect();
    if listed.is_empty() {
        return Some("the list of tools has none of its");
    }
    if listed.iter().any(|tool| tool == "*") {
        return None;
    }
    if server.available_tools.is_empty() {
        server.available_tools = listed;
        return None;
    }
    // A star is a part of a name: what both lists have is what one of them fits in the other.
    let both = |tool: &String| listed.iter().any(|other| fits(other, tool));
    server.available_tools.retain(both);
    server.available_tools.is_empty().then_some("the list of tools has none of its")
}

fn fits(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    }
}

/// What a name says of this server: a tool of it, the start of some with a star, or `*` for all.
fn part(server: &Server, name: &str) -> Option<String> {
    let written = std::iter::once(&server.name).chain(&server.called);
    let names: Vec<String> = written.flat_map(|it| [it.clone(), spelled(it)]).collect();
    let own = names.iter().find_map(|server| {
        let tool = name.strip_prefix(server.as_str())?.strip_prefix(MARK)?;
        (!tool.is_empty()).then(|| tool.to_owned())
    });
    // `mcp__*`, and what stands for every tool there is.
    let every = || {
        let start = name.strip_suffix('*')?;
        let fit = |server: &String| format!("{server}{MARK}").starts_with(start);
        (name == "*__*" || names.iter().any(fit)).then(|| "*".to_owned())
    };
    own.or_else(every)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Place;

    fn server(available: &[&str]) -> Server {
        let how = Reach::Python { code: String::new(), dependencies: Vec::new() };
        Server {
            called: None,
            name: "my.srv".into(),
            about: String::new(),
            how,
            available_tools: available.iter().map(|it| (*it).to_owned()).collect(),
            denied_tools: Vec::new(),
            timeout_s: 1,
            needs_consent: false,
            place: Place::START,
        }
    }

    #[test]
    fn lists_bind() {
        // Allowed, denied, available; what is left of it: allowed and denied, or none.
        type Left = Option<(&'static [&'static str], &'static [&'static str])>;
        type Names = &'static [&'static str];
        let cases: &[(Option<Names>, Names, Names, Left)] = &[
            (None, &[], &[], Some((&[], &[]))),
            (None, &[], &["a"], Some((&["a"], &[]))),
            (Some(&["read"]), &[], &[], None),
            (Some(&[]), &[], &[], None),
            (Some(&["read", "my.srv__a"]), &[], &[], Some((&["a"], &[]))),
            (Some(&["my_srv__a"]), &[], &[], Some((&["a"], &[]))),
            (Some(&["my_srv__*"]), &["my_srv__b"], &[], Some((&[], &["b"]))),
            (Some(&["my_srv__g*"]), &[], &[], Some((&["g*"], &[]))),
            (Some(&["*__*"]), &[], &[], Some((&[], &[]))),
            (Some(&["other__a"]), &[], &[], None),
            (Some(&["my_srv2__a"]), &[], &[], None),
            (None, &["my_srv__a", "read"], &[], Some((&[], &["a"]))),
            (None, &["my_srv__*"], &[], None),
            (None, &["*"], &[], None),
            (Some(&["my_srv__a"]), &[], &["b"], None),
            (Some(&["my_srv__g*"]), &[], &["get", "put"], Some((&["get"], &[]))),
        ];
        let uses = |names: &[&str]| -> Vec<ToolUse> {
            let one = |name: &&str| ToolUse { name: (*name).to_owned(), pattern: None };
            names.iter().map(one).collect()
        };
        for (allow, deny, available, left) in cases {
            let mut it = server(available);
            let allow_list = allow.map(uses);
            let lost = narrowed(&mut it, allow_list.as_deref(), &uses(deny));
            let got = lost.is_none().then(|| {
                let texts = |list: Vec<String>| list.join(" ");
                (texts(it.available_tools), texts(it.denied_tools))
            });
            let left = left.map(|(a, b)| (a.join(" "), b.join(" ")));
            assert_eq!(got, left, "{allow:?} {deny:?} {available:?}");
        }
    }
}
