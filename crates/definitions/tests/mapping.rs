//! What the kernel is told: rights that are never wider than the file, limits and rules.

use std::path::PathBuf;

use locum_definitions::{Definition, Kind, Origin, Scope, parse, to_kernel};
use locum_kernel::{Class, Definition as Judged, Mode, PolicyMode, RuleKind, ToolSpec};

fn definition(kind: Kind, text: &str) -> Definition {
    definition_in(Scope::User, kind, text)
}

fn definition_in(scope: Scope, kind: Kind, text: &str) -> Definition {
    let root = PathBuf::from("/nowhere");
    let name = if kind == Kind::Recipe { "x.yaml" } else { "x.md" };
    let origin = Origin { file: root.join(name), root, scope };
    let loaded = parse(text, kind, &origin);
    loaded.definition.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

fn world() -> Vec<ToolSpec> {
    let tools = [
        ("read", Class::Read),
        ("grep", Class::Read),
        ("write", Class::Write),
        ("edit", Class::Write),
        ("exec", Class::Exec),
        ("process", Class::Exec),
        ("web_fetch", Class::Network),
        ("tracker__list", Class::Network),
        ("tracker__close", Class::Network),
        ("memory_save", Class::Write),
        ("memory_search", Class::Read),
        ("memory_get", Class::Read),
    ];
    let spec = |(name, class): (&str, Class)| ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: name.into(),
        class,
        idempotent: false,
        subject: None,
        timeout_ms: None,
    };
    tools.map(spec).to_vec()
}

fn agent(more: &str) -> Judged {
    let text = format!("---\nname: x\ndescription: d\n{more}\n---\nWork.\n");
    to_kernel(&definition(Kind::Agent, &text), &world())
}

/// The tools that may be used, in order, and the classes of the ceiling.
fn rights(mapped: &Judged) -> (String, String) {
    let definition = mapped;
    let tools: Vec<String> = world()
        .iter()
        .filter(|tool| definition.uses.allow(&tool.name, tool.class))
        .map(|tool| tool.name.clone())
        .collect();
    let ceiling: Vec<&str> = definition.ceiling.classes.iter().map(|class| class.word()).collect();
    (tools.join(" "), ceiling.join(" "))
}

const ALL: &str = "read grep write edit exec process web_fetch tracker__list tracker__close \
                   memory_save memory_search memory_get";
const CLASSES: &str = "read write exec network delegate";

#[test]
fn agents() {
    let cases = [
        ("color: red", ALL, CLASSES),
        ("tools: '*'", ALL, CLASSES),
        ("tools: []", "", CLASSES),
        ("tools: Read, Grep", "read grep", CLASSES),
        ("tools: [Read, Bash]", "read exec process", CLASSES),
        ("tools: mcp__tracker", "tracker__list tracker__close", CLASSES),
        ("tools: [tracker/*]", "tracker__list tracker__close", CLASSES),
        ("tools: mcp__tracker__list", "tracker__list", CLASSES),
        ("tools: developer__shell", "exec process", CLASSES),
        ("tools: NoSuchTool", "", CLASSES),
        (
            "disallowedTools: Bash, Write",
            "read grep edit process web_fetch tracker__list tracker__close memory_save \
             memory_search memory_get",
            CLASSES,
        ),
        ("disallowedTools: '*'", "", CLASSES),
        ("tools: Read, Write\ndisallowedTools: Write", "read", CLASSES),
        ("memory: user", ALL, CLASSES),
        ("tools: Read\nmemory: project", "read memory_save memory_search memory_get", CLASSES),
        (
            "tools: Read\nmemory: local\ndisallowedTools: memory_save",
            "read memory_search memory_get",
            CLASSES,
        ),
        (
            "tools: Read\nmemory: user\npermissionMode: plan",
            "read memory_search memory_get",
            "read",
        ),
        ("permissionMode: plan", "read grep memory_search memory_get", "read"),
        ("locum: {ceiling: [read]}", "read grep memory_search memory_get", "read"),
        (
            "locum: {ceiling: [read, exec]}\ntools: Read, Write, Bash",
            "read exec process",
            "read exec",
        ),
        ("locum: {ceiling: all}\ntools: Read", "read", CLASSES),
    ];
    for (more, tools, ceiling) in cases {
        let found = rights(&agent(more));
        assert_eq!(found, (tools.to_owned(), ceiling.to_owned()), "{more}");
        let definition = agent(more);
        assert!(definition.uses.within(&definition.ceiling), "{more}");
    }
}

/// Whoever is to ask asks in any mode; what a project's file would allow only narrows.
#[test]
fn modes_are_capped() {
    let cases = [
        ("color: red", None, None),
        ("permissionMode: default", None, None),
        ("permissionMode: ask", Some(PolicyMode::Ask), Some(PolicyMode::Ask)),
        ("permissionMode: acceptEdits", None, Some(PolicyMode::Edits)),
        ("permissionMode: bypassPermissions", None, None),
    ];
    for (more, mine, projects) in cases {
        let mapped = |scope| {
            let text = format!("---\nname: x\ndescription: d\n{more}\n---\nWork.\n");
            let mapped = to_kernel(&definition_in(scope, Kind::Agent, &text), &world());
            if scope == Scope::Workspace {
                assert_eq!(mapped.rules, [], "{more}");
            }
            mapped.cap
        };
        assert_eq!((mapped(Scope::User), mapped(Scope::Workspace)), (mine, projects), "{more}");
    }
}

/// What a rule says: kind, tool, pattern.
type Said<'a> = (RuleKind, &'a str, Option<&'a str>);

#[test]
fn rules() {
    let cases: [(&str, &[Said]); 6] = [
        ("color: red", &[]),
        ("tools: Bash(git diff:*), Read", &[]),
        ("disallowedTools: Bash(rm:*)", &[(RuleKind::Deny, "exec", Some("rm:*"))]),
        (
            "permissionMode: acceptEdits",
            &[(RuleKind::Allow, "write", None), (RuleKind::Allow, "edit", None)],
        ),
        ("permissionMode: bypassPermissions", &[(RuleKind::Allow, "*", None)]),
        ("permissionMode: plan", &[]),
    ];
    for (more, expected) in cases {
        let mapped = agent(more);
        let found: Vec<Said> = mapped
            .rules
            .iter()
            .map(|rule| (rule.kind, rule.tool.as_str(), rule.pattern.as_deref()))
            .collect();
        assert_eq!(found, expected, "{more}");
        assert!(mapped.rules.iter().all(|rule| rule.agent.is_none()), "{more}");
    }
}

/// A list with patterns is the only calls there are; a tool that is listed whole is all of it.
#[test]
fn only_these_calls() {
    let cases: [(&str, &[(&str, &str)]); 10] = [
        ("color: red", &[]),
        ("tools: Read, Bash", &[]),
        ("tools: Read, Bash(git status:*)", &[("exec", "git status:*")]),
        (
            "tools: [Bash(ls), 'Bash(git log *)', Write(src/*)]",
            &[("exec", "ls"), ("exec", "git log:*"), ("write", "src/*")],
        ),
        ("tools: Bash(git status:*), Bash", &[]),
        ("tools: Bash(*)", &[]),
        ("tools: WebFetch(domain:example.com)", &[("web_fetch", "domain:example.com")]),
        (
            "allowed-tools: [Read, 'WebFetch(domain:*.example.com)', 'WebFetch(domain:b.org)']",
            &[("web_fetch", "domain:*.example.com"), ("web_fetch", "domain:b.org")],
        ),
        (
            "tools: [Read, 'WebFetch(domain:*.example.com)', 'WebFetch(domain:*)']",
            &[("web_fetch", "domain:*.example.com"), ("web_fetch", "domain:*")],
        ),
        ("tools: mcp__tracker, mcp__tracker__list(open)", &[]),
    ];
    for (more, expected) in cases {
        let only = agent(more).only;
        let found: Vec<(&str, &str)> =
            only.iter().map(|only| (only.tool.as_str(), only.pattern.as_str())).collect();
        assert_eq!(found, expected, "{more}");
    }
}

#[test]
fn the_rest() {
    let mapped = agent(
        "model: opus\nmaxTurns: 7\nbackground: true\nisolation: worktree\nlocum: {budget: 0.5}",
    );
    let found = &mapped;
    assert_eq!(found.model.as_deref(), Some("opus"));
    assert_eq!(found.limits.turns_max, Some(7));
    assert_eq!(found.limits.micro_usd_max, Some(500_000));
    assert!(found.setup);
    assert!(found.kit.worktree);
    assert_eq!(found.mode, Some(Mode::Worker));
    assert_eq!((found.about.as_str(), found.instructions.as_str()), ("d", "Work."));
    assert_eq!(agent("locum: {mode: call}\nbackground: true").mode, Some(Mode::Call));
    assert_eq!(agent("model: inherit").model, None);
}

/// A recipe has the tools of its extensions and no others.
#[test]
fn recipes() {
    let cases = [
        ("settings: {goose_provider: openai, goose_model: m}", ALL),
        ("extensions: [{type: builtin, name: developer}]", "read grep write edit exec process"),
        ("extensions: [{type: builtin, name: developer, available_tools: [shell]}]", "exec"),
        ("extensions: [{type: stdio, name: tracker, cmd: x}]", "tracker__list tracker__close"),
        (
            "extensions: [{type: stdio, name: tracker, cmd: x, available_tools: [list]}]",
            "tracker__list",
        ),
        ("tools: [read]\nextensions: [{type: builtin, name: developer}]", "read"),
    ];
    for (more, tools) in cases {
        let text = format!("title: t\ndescription: d\nprompt: p\n{more}\n");
        let mapped = to_kernel(&definition(Kind::Recipe, &text), &world());
        assert_eq!(rights(&mapped).0, tools, "{more}");
    }
    let text = "title: t\ndescription: d\nprompt: p\n\
                settings: {goose_provider: openai, goose_model: m}\n";
    let mapped = to_kernel(&definition(Kind::Recipe, text), &world());
    assert_eq!(mapped.model.as_deref(), Some("openai/m"));
}

/// What a file wants to be asked for is asked, for that agent and those calls only.
#[test]
fn asked_for() {
    let mapped = agent("permission: {bash: {\"rm *\": ask}}");
    let [rule] = &mapped.rules[..] else { panic!("{:?}", mapped.rules) };
    let said = (rule.kind, rule.tool.as_str(), rule.pattern.as_deref(), rule.agent.as_deref());
    assert_eq!(said, (RuleKind::Ask, "exec", Some("rm *"), None));
}

/// Where a skill may be used goes along, in the letters that messengers use; what is sensitive is
/// for a person alone unless the file says otherwise.
#[test]
fn chats() {
    let cases = [
        ("license: MIT", ""),
        ("access: {chat_types: [Private, group]}", "group private"),
        ("access: {chat_types: group}", "group"),
        ("sensitive: true", "private"),
        ("sensitive: true\naccess: {chat_types: [group]}", "group"),
        ("sensitive: false", ""),
    ];
    for (line, expected) in cases {
        let text = format!("---\nname: x\ndescription: d\n{line}\n---\nWork.\n");
        let judged = to_kernel(&definition(Kind::Skill, &text), &world());
        let chats: Vec<&str> = judged.chats.iter().map(String::as_str).collect();
        assert_eq!(chats.join(" "), expected, "{line}");
    }
}
