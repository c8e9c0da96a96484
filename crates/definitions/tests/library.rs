//! Where definitions are looked for, which of two wins, what a wrong name is told, and what a
//! project may not say.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::path::{Path, PathBuf};

use locum_definitions::{
    Kind, Library, Permission, Places, Problem, Scope, fingerprint, notes, proposed_servers,
};

use support::{Folder, shortest};

fn recipe(title: &str) -> String {
    format!("title: {title}\ndescription: About {title}\nprompt: Go.\n")
}

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n{more}---\nWork.\n")
}

fn scan(folder: &Folder, extra: &[PathBuf]) -> Library {
    let (workspace, home) = (folder.path().join("work"), folder.path().join("home"));
    std::fs::create_dir_all(&workspace).unwrap();
    let config_dir = home.join(".config/locum");
    Library::scan(&Places {
        workspace: Some(&workspace),
        home: Some(&home),
        config_dir: Some(&config_dir),
        extra,
    })
}

fn short(path: &Path, folder: &Folder) -> String {
    path.strip_prefix(folder.path()).unwrap_or(path).display().to_string()
}

/// The same name in every place: they are found in this order, and the first hides the rest.
#[test]
fn order() {
    let cases: [(&str, Kind, &[&str]); 3] = [
        (
            "x.yaml",
            Kind::Recipe,
            &[
                "work/x.yaml",
                "work/.locum/recipes/x.yaml",
                "work/.goose/recipes/x.yaml",
                "work/.agents/recipes/x.yaml",
                "path/x.yaml",
                "home/.config/locum/recipes/x.yaml",
                "home/.goose/recipes/x.yaml",
                "home/.config/goose/recipes/x.yaml",
                "home/.agents/recipes/x.yaml",
            ],
        ),
        (
            "x.md",
            Kind::Agent,
            &[
                "work/.locum/agents/x.md",
                "work/.goose/agents/x.md",
                "work/.claude/agents/x.md",
                "work/.agents/agents/x.md",
                "home/.config/locum/agents/x.md",
                "home/.goose/agents/x.md",
                "home/.agents/agents/x.md",
                "home/.config/goose/agents/x.md",
                "home/.claude/agents/x.md",
            ],
        ),
        (
            "SKILL.md",
            Kind::Skill,
            &[
                "work/.locum/skills/x/SKILL.md",
                "work/.agents/skills/x/SKILL.md",
                "work/.goose/skills/x/SKILL.md",
                "work/.claude/skills/x/SKILL.md",
                "work/skills/x/SKILL.md",
                "home/.config/locum/skills/x/SKILL.md",
                "home/.agents/skills/x/SKILL.md",
                "home/.config/goose/skills/x/SKILL.md",
                "home/.claude/skills/x/SKILL.md",
                "home/.config/agents/skills/x/SKILL.md",
                "home/.ash/skills/x/SKILL.md",
            ],
        ),
    ];
    for (_, kind, places) in cases {
        let folder = Folder::new();
        for place in places {
            let text = if kind == Kind::Recipe { recipe("x") } else { agent("x", "") };
            folder.write(place, text);
        }
        let library = scan(&folder, &[folder.path().join("path")]);
        let named = library.found.iter().filter(|found| found.name == "x");
        let order: Vec<String> =
            named.clone().map(|found| short(&found.origin.file, &folder)).collect();
        assert_eq!(order, places, "{kind:?}");
        let first = folder.path().join(places[0]);
        for (number, found) in named.enumerate() {
            let hidden = (number > 0).then_some(&first);
            assert_eq!(found.shadowed_by.as_ref(), hidden, "{}", found.origin.file.display());
        }
        assert_eq!(library.named_as(kind, "X").unwrap().origin.file, first);
        assert_eq!(library.skipped, []);
    }
}

#[test]
fn names() {
    let folder = Folder::new();
    folder.write("work/.locum/recipes/code-review.yaml", recipe("Code review"));
    folder.write("work/.locum/recipes/review.yml", recipe("Review"));
    folder.write("work/.locum/recipes/research_assistant_recipe.yaml", recipe("Research"));
    folder.write("work/.locum/agents/file-name.md", agent("Own-Name", ""));
    folder.write("work/.locum/agents/two.md", agent("My Agent", ""));
    folder.write("work/.locum/skills/a/SKILL.md", "---\ndescription: d\naliases-for: bee\n---\nx");
    folder.write("work/.locum/recipes/broken.yaml", "title: [\n");
    let library = scan(&folder, &[]);
    let cases = [
        ("code-review", "code-review"),
        ("Code-Review.yaml", "code-review"),
        ("research_assistant_recipe.yaml", "research_assistant_recipe"),
        ("review", "review"),
        ("own-name", "Own-Name"),
        ("file-name", "Own-Name"),
        ("file-name.md", "Own-Name"),
        ("bee", "a"),
        ("a", "a"),
        ("reviewer", "reviewer"),
        ("my agent", "My Agent"),
        ("my-agent", "My Agent"),
        ("MY_AGENT", "My Agent"),
    ];
    for (asked, expected) in cases {
        let found = library.named(asked).map(|found| found.name.as_str());
        assert_eq!(found, Ok(expected), "{asked}");
    }
    let error = library.named_as(Kind::Recipe, "code_review").unwrap_err();
    let place = folder.path().join("work/.locum/recipes").display().to_string();
    let expected = format!(
        "There is no recipe \"code_review\". Near: code-review ({place}), review ({place})."
    );
    assert_eq!(error.to_string(), expected);
    let error = library.named("zzzzzz").unwrap_err();
    assert!(error.to_string().contains("Looked in: "), "{error}");
    assert!(error.to_string().contains(".claude/agents"), "{error}");
    let error = library.named("broken").unwrap_err();
    assert!(error.to_string().contains("broken.yaml:1:8: not YAML"), "{error}");
}

#[test]
fn bad_files_hide_nothing() {
    let folder = Folder::new();
    folder.write("work/.locum/agents/bad.md", "---\nname: good\ndescription: [\n");
    folder.write("work/.claude/agents/good.md", agent("good", ""));
    folder.write("work/.claude/agents/deep/down/more.md", agent("more", ""));
    folder.write("work/.claude/agents/README.md", "# About");
    folder.write("work/.claude/agents/notes.txt", "x");
    folder.write("work/.claude/agents/plain.md", "No front matter");
    folder.write("work/docker-compose.yaml", "services: {a: {image: b}}\n");
    folder.write("work/package.json", "{\"name\": \"x\"}");
    folder.write("work/stray.yaml", recipe("Stray"));
    folder.write("work/.locum/recipes/folder.yaml/x", "");
    folder.write("work/.claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nx");
    folder.write("work/.claude/skills/s/reference.md", "supporting file");
    folder.write("work/.claude/skills/group/t/SKILL.md", "---\nname: t\ndescription: d\n---\nx");
    let library = scan(&folder, &[]);
    let ours = |scope| scope == Scope::Workspace;
    let found: Vec<&str> = library
        .found
        .iter()
        .filter(|found| ours(found.origin.scope))
        .map(|found| found.name.as_str())
        .collect();
    assert_eq!(found, ["stray", "more", "good", "t", "s"]);
    let skipped: Vec<String> = library
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", short(&skipped.file, &folder), skipped.problems[0].what))
        .collect();
    assert_eq!(
        skipped,
        [
            "work/.locum/recipes/folder.yaml: this is a folder",
            "work/.locum/agents/bad.md: the front matter has no end",
            "work/.claude/agents/plain.md: there is no front matter",
        ]
    );
    assert_eq!(library.named("good").unwrap().shadowed_by, None);
    let json = serde_json::to_value(&library).unwrap();
    assert_eq!(json["found"][0]["origin"]["scope"], "workspace");
    assert_eq!(json["skipped"][0]["problems"][0]["line"], 1);
}

#[test]
fn builtins_are_there_and_good() {
    let library = Library::scan(&Places::default());
    let names: Vec<&str> = library.found.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["explorer", "planner", "researcher", "reviewer", "worker"]);
    assert_eq!(library.skipped, []);
    for found in &library.found {
        assert_eq!(found.problems, [], "{}", found.name);
        assert_eq!(found.origin.scope, Scope::Builtin);
        let definition = library.load(found).definition.unwrap();
        assert!(definition.instructions.len() > 100);
        assert!(definition.settings.turns_max.is_some());
    }
}

#[cfg(unix)]
#[test]
fn links_between_folders() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("home/dotfiles/skills/s/SKILL.md", "---\ndescription: d\n---\nx");
    folder.write("home/.claude/x", "");
    folder.write("work/.claude/agents/x.md", agent("x", ""));
    folder.write("outside/y.md", agent("y", ""));
    let at = |name: &str| folder.path().join(name);
    symlink(at("home/dotfiles/skills"), at("home/.claude/skills")).unwrap();
    symlink(at("work/.claude/agents"), at("work/.claude/agents/round")).unwrap();
    symlink(at("outside"), at("work/.claude/agents/out")).unwrap();
    symlink(at("outside/y.md"), at("work/.claude/agents/y.md")).unwrap();
    let library = scan(&folder, &[]);
    assert!(library.named("s").is_ok(), "a link inside the home folder is followed");
    assert!(library.named("x").is_ok());
    assert!(library.named("y").is_err());
    assert_eq!(library.problems.len(), 1, "{:?}", library.problems);
    assert!(library.problems[0].to_string().contains("leads to"));
    assert!(library.skipped[0].problems[0].to_string().contains("leads to"));
}

#[test]
fn changes_are_seen_without_reading() {
    let folder = Folder::new();
    let path = folder.write("work/.locum/agents/x.md", agent("x", ""));
    let work = folder.path().join("work");
    let places = Places { workspace: Some(&work), ..Places::default() };
    let before = Library::scan(&places).fingerprint;
    assert_eq!(fingerprint(&places), before);
    std::fs::write(&path, agent("x", "model: opus\n")).unwrap();
    let changed = fingerprint(&places);
    assert_ne!(changed, before);
    folder.write("work/.claude/skills/s/SKILL.md", "---\ndescription: d\n---\nx");
    assert_ne!(fingerprint(&places), changed);
    std::fs::remove_file(path).unwrap();
    let gone = fingerprint(&places);
    assert_ne!(gone, changed);
    assert_eq!(fingerprint(&places), gone);
}

/// A project narrows; what would widen is left out and told.
#[test]
fn projects_may_not_widen() {
    let more = "permissionMode: bypassPermissions\nhooks: {Stop: [x]}\nbase_url: http://evil\n\
                api_key: secret\nmcpServers: {s: {command: run}}\ntools: [read, mcp__s]\n";
    let folder = Folder::new();
    folder.write("work/.claude/agents/x.md", agent("x", more));
    folder.write("home/.claude/agents/mine.md", agent("mine", more));
    folder.write("work/.claude/agents/plan.md", agent("plan", "permissionMode: plan\n"));
    let library = scan(&folder, &[]);
    let found = library.named("x").unwrap();
    let definition = library.load(found).definition.unwrap();
    assert_eq!(definition.permission, None);
    assert!(definition.servers[0].needs_consent);
    let told: Vec<&str> = found.problems.iter().map(|problem| problem.what.as_str()).collect();
    assert_eq!(
        told,
        [
            "the permission mode is left out",
            "\"hooks\" is left out",
            "\"base_url\" is left out",
            "\"api_key\" is left out",
        ]
    );
    let mine = library.load(library.named("mine").unwrap()).definition.unwrap();
    assert_eq!(mine.permission, Some(Permission::Auto));
    assert!(!mine.servers[0].needs_consent);
    let plan = library.load(library.named("plan").unwrap()).definition.unwrap();
    assert_eq!(plan.permission, Some(Permission::Plan));
}

/// What a project would start, reach or read is listed for the person; their own is not.
#[test]
fn projects_ask() {
    let folder = Folder::new();
    let text = std::fs::read_to_string("tests/fixtures/recipe.yaml").unwrap();
    folder.write("work/.locum/recipes/x.yaml", &text);
    folder.write("home/.goose/recipes/mine.yaml", text.replace("name: all-fields", "name: mine"));
    let skill = "---\nname: s\ndescription: d\nenv: [TOKEN]\n---\nx";
    folder.write("work/.claude/skills/s/SKILL.md", skill);
    let library = scan(&folder, &[]);
    let consents = |name: &str| -> Vec<String> {
        let found = library.named(name).unwrap();
        let definition = library.load(found).definition.unwrap();
        definition.consents().into_iter().map(|consent| consent.what).collect()
    };
    assert_eq!(
        consents("all-fields"),
        [
            "start the server search: uvx mcp_websearch@latest 8080, with SEARCH_KEY of your \
             environment",
            "reach the server tracker: https://example.com/mcp, with TRACKER_KEY of your \
             environment in Authorization",
            "run the script sums",
            "let a program be the agent: other-agent --print",
            "run after every try: test -f out.txt",
            "run after every try: true",
            "run after every try: rm -f out.txt",
        ]
    );
    // It gets none, so there is nothing to agree to.
    assert_eq!(consents("s"), [""; 0]);
    assert_eq!(consents("mine"), [""; 0]);
}

#[test]
fn notes_are_nearest_first() {
    let folder = Folder::new();
    folder.write("work/AGENTS.md", "root");
    folder.write("work/CLAUDE.md", "not read: there is an AGENTS.md");
    folder.write("work/a/CLAUDE.md", "middle");
    folder.write("work/a/b/AGENTS.md", "near");
    folder.write("work/other/AGENTS.md", "elsewhere");
    folder.write("config/AGENTS.md", "mine");
    folder.write("AGENTS.md", "above the root");
    let at = |name: &str| folder.path().join(name);
    let config = at("config");
    let found = notes(&at("work"), &at("work/a/b"), Some(&config));
    let texts: Vec<&str> = found.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, ["near", "middle", "root", "mine"]);
    assert_eq!(found.problems, []);

    folder.write("work/a/b/AGENTS.md", format!("é{}", "x".repeat(40_000)));
    folder.write("work/a/CLAUDE.md", "hid\u{202E}den");
    folder.write("work/AGENTS.md", "y".repeat(40_000));
    let found = notes(&at("work"), &at("work/a/b"), Some(&config));
    let sizes: Vec<(usize, usize)> =
        found.notes.iter().map(|note| (note.text.len(), note.left_out)).collect();
    assert_eq!(sizes, [(32_768, 7_234), (32_768, 7_232)]);
    let told: Vec<bool> = found.problems.iter().map(Problem::is_error).collect();
    assert_eq!(told, [false, true, false, false], "{:?}", found.problems);
}

#[test]
fn proposed_servers_need_consent() {
    let folder = Folder::new();
    let text = r#"{"mcpServers": {
        "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${K}"}},
        "b": {"type": "http", "url": "https://example.com", "headers": {"A": "b"}},
        "c": {"type": "sse", "url": "https://example.com"},
        "d": {"command": "x", "disabled": true},
        "e": {"url": "gopher://x"}
    }}"#;
    folder.write(".mcp.json", text);
    let (servers, problems) = proposed_servers(folder.path());
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(servers.iter().all(|server| server.needs_consent));
    let lines: Vec<u32> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [4, 6], "{problems:?}");
    folder.write(".mcp.json", "{\"mcpServers\": ");
    let (servers, problems) = proposed_servers(folder.path());
    assert!(servers.is_empty() && problems[0].is_error());
}

/// Five hundred files; the figure is printed, the bound is wide for a busy machine.
#[test]
fn a_large_library_is_quick() {
    let folder = Folder::new();
    let body = "Do the work as it is described here, step by step.\n".repeat(100);
    for number in 0..200 {
        let text = format!("{}{body}", agent(&format!("agent-{number}"), "tools: Read, Grep\n"));
        folder.write(&format!("work/.claude/agents/{number}.md"), text);
        let text = format!("---\nname: skill-{number}\ndescription: d\n---\n{body}");
        folder.write(&format!("work/.claude/skills/{number}/SKILL.md"), text);
    }
    for number in 0..100 {
        let text = format!(
            "title: t\ndescription: d\ninstructions: |\n  {}\n  {{{{ topic }}}}\n{}",
            body.replace('\n', "\n  "),
            "parameters:\n  - {key: topic, input_type: string, requirement: required, \
             description: x}\n"
        );
        folder.write(&format!("work/.locum/recipes/r{number}.yaml"), text);
    }
    let most = std::time::Duration::from_millis(if cfg!(debug_assertions) { 4_000 } else { 100 });
    let took = shortest(most, || {
        let library = scan(&folder, &[]);
        assert_eq!((library.found.len(), library.skipped.len()), (505, 0));
    });
    let work = folder.path().join("work");
    let places = Places { workspace: Some(&work), ..Places::default() };
    let looked = shortest(most, || drop(fingerprint(&places)));
    eprintln!("500 definitions: scanned in {took:?}, looked at in {looked:?}");
    assert!(took < most, "{took:?}");
}
