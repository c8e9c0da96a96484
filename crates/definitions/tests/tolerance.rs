//! What is read although it is not quite right, and told; and what nobody can see, which is not.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::collections::BTreeMap;

use locum_definitions::{Asker, Given, Kind, Loaded, Outcome, build, build_for, load};

use support::{Folder, read};

/// These load, with these warnings.
#[test]
fn slips_of_the_pen() {
    let recipe = "title: t\ndescription: d\nprompt: p\n";
    let cases: Vec<(Kind, String, &[&str])> = vec![
        (Kind::Recipe, recipe.to_owned(), &[]),
        (Kind::Recipe, format!("\u{feff}{recipe}"), &[]),
        (Kind::Recipe, recipe.replace('\n', "\r\n"), &[]),
        (Kind::Recipe, recipe.replace('\n', "\r"), &[]),
        (Kind::Recipe, format!("---\n{recipe}"), &[]),
        (Kind::Recipe, format!("---\n{recipe}...\n"), &[]),
        (Kind::Recipe, "title: 1\ndescription: true\nprompt: 2.5\n".to_owned(), &[]),
        (Kind::Recipe, format!("{recipe}settings:\n\ttemperature: 1\n"), &["5:1: warning: a line"]),
        (
            Kind::Recipe,
            format!("{recipe}instruction: x\n"),
            &["4:1: warning: the key \"instruction\" is not known here, it does nothing, did you \
               mean \"instructions\"?"],
        ),
        (Kind::Recipe, format!("{recipe}zzz: x\n"), &["the key \"zzz\""]),
        (Kind::Recipe, format!("{recipe}settings: {{temprature: 1}}\n"), &["\"temperature\"?"]),
        (Kind::Recipe, format!("{recipe}sub_recipes: [{{name: a, path: b}}]\n"), &["4:25"]),
        (Kind::Recipe, format!("{recipe}# caf\u{e9} \u{1F469}\u{200D}\u{1F52C}\n"), &[]),
        (Kind::Recipe, format!("{recipe}# a\u{200B}b\n"), &["4:4: warning: U+200B"]),
        (Kind::Agent, "---\nname: a\ndescription: d\n---\nx".to_owned(), &[]),
        (Kind::Agent, "\u{feff}\n\n---  \r\nname: a\r\ndescription: d\r\n---\r\nx".to_owned(), &[]),
        (Kind::Agent, "---\nname: a\ndescription: a: b: c\n---\nx".to_owned(), &["3:15"]),
        (Kind::Agent, "---\nname: a\ndescription: @x\n---\nx".to_owned(), &["not YAML"]),
        (Kind::Agent, "---\nname: a\ndescription: \"x\" y\n---\nx".to_owned(), &["not YAML"]),
        (Kind::Agent, "---\nname: a\ndescription: d\ntools:\n\t- Read\n---\nx".to_owned(), &["5:"]),
        (Kind::Agent, "---\nname: a\ndescription: d\n---\n".to_owned(), &["no instructions"]),
        (
            Kind::Agent,
            "---\nname: a\ndescription: d\nmodell: x\n---\nx".to_owned(),
            &["\"model\"?"],
        ),
        (Kind::Agent, "---\nname: a\n---\nDoes things.".to_owned(), &["first words"]),
        (Kind::Agent, "---\nmode: subagent\n---\nDoes things.".to_owned(), &["first words"]),
        (Kind::Skill, "---\ntitle: {{t}}\ndescription: {{d}}\n---\nx".to_owned(), &["2:", "2:"]),
        (Kind::Skill, "---\nname: {{title}}\ndescription: d\n---\nx".to_owned(), &["2:", "2:"]),
        (Kind::Skill, "---\ndescription: d\ndescription_de: e\nzzz: 1\n---\nx".into(), &["zzz"]),
        (
            Kind::Recipe,
            format!("{recipe}sub_recipes: [{{name: a, path: /}}, {{name: a, path: /}}]\n"),
            &["only the last"],
        ),
        (
            Kind::Recipe,
            format!(
                "{recipe}extensions:\n  - {{type: stdio, name: x, cmd: y, \
                 envs: {{A: \"${{A}}\", B: \"b-$C ${{C}}\"}}}}\n"
            ),
            &["B has \"b-$C ${C}\" in it, which stays as it is"],
        ),
        (Kind::Recipe, format!("{recipe}max_turns: 5\n"), &["belongs under settings, write: set"]),
        (Kind::Recipe, format!("{recipe}json_schema: {{}}\n"), &["belongs under response"]),
        (Kind::Recipe, format!("{recipe}mcpServers: {{}}\n"), &["write: extensions"]),
        (Kind::Skill, "# Title\n\nDoes things.".to_owned(), &["first words"]),
        (Kind::Skill, "---\nname: A b\ndescription: d\n---\nx".to_owned(), &["2:1: warning: the"]),
        (Kind::Skill, "---\ndescription: d\n...\nx".to_owned(), &[]),
    ];
    for (kind, text, expected) in cases {
        let Loaded { definition, problems } = read(kind, &text);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(definition.is_some(), "{text:?}: {lines:#?}");
        assert_eq!(lines.len(), expected.len(), "{text:?}: {lines:#?}");
        for (line, words) in lines.iter().zip(expected) {
            assert!(line.contains(words), "{text:?}: {line}");
        }
    }
}

/// In the text, in a body, and written as an escape.
#[test]
fn hidden_characters() {
    let signs = [
        "E0000", "E0001", "E0020", "E0041", "E007F", "202A", "202B", "202C", "202D", "202E",
        "2066", "2067", "2068", "2069", "FFF9", "FFFB", "E0100", "E01EF",
    ];
    for code in signs {
        let sign = char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
        let escape = format!("\\U{:08X}", u32::from(sign));
        let cases = [
            (Kind::Recipe, format!("title: t\ndescription: d\nprompt: ab{sign}c\n"), 3),
            (Kind::Recipe, format!("title: t\ndescription: d\nprompt: \"ab{escape}c\"\n"), 3),
            (Kind::Recipe, format!("title: t\ndescription: d\nprompt: p\nactivities: [{sign}]"), 4),
            (Kind::Agent, format!("---\nname: a\ndescription: d\n---\nab{sign}c\n"), 5),
            (Kind::Agent, format!("---\nname: a\ndescription: d{sign}\n---\nx\n"), 3),
            (Kind::Agent, format!("---\nname: a\ndescription: \"d{escape}\"\n---\nx\n"), 3),
            (Kind::Skill, format!("---\ndescription: d\n---\n\nab{sign}c\n"), 5),
        ];
        for (kind, text, line) in cases {
            let Loaded { definition, problems } = read(kind, &text);
            assert!(definition.is_none(), "{text:?}");
            let error = problems.iter().find(|problem| problem.is_error()).unwrap();
            assert!(error.what.contains(&format!("U+{code}")), "{error}");
            assert_eq!(error.line, line, "{text:?}: {error}");
        }
    }
    let ideograph = "title: \u{845B}\u{E0100}\ndescription: d\nprompt: p\n";
    assert!(read(Kind::Recipe, ideograph).definition.is_some());
}

#[test]
fn extensions_that_nobody_answers() {
    let text = "title: t\ndescription: d\nprompt: p\nextensions:\n- type: frontend\n  name: f\n  \
                tools: []\n  instructions: i\n";
    let loaded = read(Kind::Recipe, text);
    assert!(loaded.definition.is_some());
    let lines: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let told = |line: &String| line.contains(":5:") && line.contains("brings no tools");
    assert!(lines.len() == 1 && lines.iter().all(told), "{lines:?}");
}

#[test]
fn encodings() {
    let folder = Folder::new();
    let cases: [(&str, &[u8], &str); 5] = [
        ("latin.yaml", b"title: caf\xe9\n", "1:11: byte 10 is not UTF-8"),
        ("wide.yaml", b"\xff\xfet\0i\0", "1:1: byte 0"),
        ("nul.yaml", b"title: t\ndescription: \0\n", "2:14: byte 22 is a NUL"),
        ("cut.md", b"---\nname: \xf0\x9f\n---\n", "2:7: byte 10"),
        ("empty.json", b"", "1:1: not JSON: the text ends too early"),
    ];
    for (name, bytes, expected) in cases {
        let path = folder.write(name, bytes);
        let problems = load(&path).problems;
        assert!(problems[0].to_string().contains(expected), "{}", problems[0]);
    }
}

/// `type: value` and whether it is taken.
#[test]
fn parameter_types() {
    let cases = [
        ("string", "", true),
        ("string", "anything: at\nall", true),
        ("number", "7", true),
        ("number", "-1.5e3", true),
        ("number", "seven", false),
        ("number", "", false),
        ("number", "inf", false),
        ("boolean", "true", true),
        ("boolean", "No", true),
        ("boolean", "maybe", false),
        ("date", "2024-02-29", true),
        ("date", "2026-02-29", false),
        ("date", "2026-01-31T10:00:00Z", true),
        ("date", "31.1.2026", false),
        ("date", "2026-13-01", false),
        ("date", "2026-00-10", false),
        ("date", "tomorrow", false),
        ("select", "one", true),
        ("select", "three", false),
        ("select", "", false),
        ("file", "in/a.txt", true),
        ("file", "./in/../in/a.txt", true),
        ("file", "missing.txt", false),
        ("file", "in", false),
        ("file", "../outside.txt", false),
        ("file", "/etc/passwd", false),
    ];
    let folder = Folder::new();
    folder.write("root/in/a.txt", "content: [of a file");
    folder.write("outside.txt", "secret");
    let root = folder.path().join("root");
    for (kind, value, good) in cases {
        let text = format!(
            "title: t\ndescription: d\nprompt: '{{{{ v }}}}'\nparameters:\n  - key: v\n    \
             input_type: {kind}\n    requirement: required\n    description: A value\n    \
             options: [one, two]\n"
        );
        let definition = read(Kind::Recipe, &text).definition.unwrap();
        let values = BTreeMap::from([("v".to_owned(), value.to_owned())]);
        let given = Given { values, base: root.clone(), roots: vec![root.clone()] };
        match build(&definition, &given) {
            Ok(Outcome::Built(built)) => {
                assert!(good, "{kind} {value:?}");
                let expected = if kind == "file" { "content: [of a file" } else { value };
                let expected = Some(expected).filter(|text| !text.is_empty());
                assert_eq!(built.definition.prompt.as_deref(), expected);
            }
            Ok(Outcome::Needs(needs)) => panic!("{needs:?}"),
            // An empty prompt leaves nothing to do, which is an error of its own.
            Err(problems) if kind == "string" => assert_eq!((value, problems.len()), ("", 1)),
            Err(problems) => {
                assert!(!good, "{kind} {value:?}: {problems:?}");
                assert_eq!(problems[0].line, 5, "{}", problems[0]);
                assert!(problems[0].to_string().contains("\"v\""), "{}", problems[0]);
            }
        }
    }
}

/// All that is missing is named at once, and what nobody asked for is told.
#[test]
fn missing_and_unknown_values() {
    let text = "title: t\ndescription: d\nprompt: '{{ aa }}{{ bb }}{{ cc }}'\nparameters:\n\
                - {key: aa, input_type: string, requirement: required, description: First}\n\
                - {key: bb, input_type: string, requirement: required, description: Second}\n\
                - {key: cc, input_type: string, requirement: optional, description: x, \
                default: ''}\n";
    let definition = read(Kind::Recipe, text).definition.unwrap();
    let problems = build(&definition, &Given::default()).unwrap_err();
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let missing = |line: u32, key: &str, about: &str| {
        format!(
            "/nowhere/x.yaml:{line}:4: the parameter \"{key}\" has no value, it is required: \
             {about}, --param {key}=…"
        )
    };
    assert_eq!(lines, [missing(5, "aa", "First"), missing(6, "bb", "Second")]);
    let problems = build_for(Asker::Models, &definition, &Given::default()).unwrap_err().problems();
    for (problem, key) in problems.iter().zip(["aa", "bb"]) {
        assert_eq!(problem.how, format!("parameters: {{\"{key}\": \"…\"}}"));
    }
    // What a person would be asked for is named beside what is missing, and alone it is asked.
    let text = text.replacen("required", "user_prompt", 1);
    let definition = read(Kind::Recipe, &text).definition.unwrap();
    let problems = build(&definition, &Given::default()).unwrap_err();
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let asked = missing(5, "aa", "First").replace("required", "asked for");
    assert!(lines.contains(&asked) && lines.contains(&missing(6, "bb", "Second")), "{lines:?}");
    let values = [("bb".to_owned(), "2".to_owned())].into();
    let Ok(Outcome::Needs(needs)) = build(&definition, &Given { values, ..Given::default() })
    else {
        panic!("not asked for")
    };
    assert_eq!(needs.len(), 1);
    let values = [("aa", "1"), ("bb", "2"), ("ccc", "3")];
    let values = values.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let given = Given { values, ..Given::default() };
    let Ok(Outcome::Built(built)) = build(&definition, &given) else { panic!("not built") };
    assert_eq!(built.definition.prompt.as_deref(), Some("12"));
    assert_eq!(built.problems.len(), 1);
    assert!(built.problems[0].to_string().contains("\"cc\"?"), "{}", built.problems[0]);
}

/// What another program would do for these keys is not done here, and said; nothing is said for
/// the values that ask for nothing.
#[test]
fn keys_of_other_programs() {
    let cases = [
        (Kind::Agent, "top_p: 0.5", "the model's own"),
        (Kind::Agent, "mode: primary", "start every agent"),
        (Kind::Agent, "mode: all", ""),
        (Kind::Agent, "hidden: true", "start every agent"),
        (Kind::Agent, "hidden: false", ""),
        (Kind::Agent, "user-invocable: false", "start every agent"),
        (Kind::Agent, "user-invocable: true", ""),
        (Kind::Agent, "disable-model-invocation: true", "start every agent"),
        (Kind::Agent, "infer: false", "start every agent"),
        (Kind::Agent, "agents: [a, b]", "whichever agents there are"),
        (Kind::Agent, "handoffs: [{label: a, agent: b}]", "buttons"),
        (Kind::Agent, "prompt: x", "is the prompt"),
        (Kind::Agent, "kind: remote", "of this machine"),
        (Kind::Agent, "kind: local", ""),
        (Kind::Agent, "target: vscode", "all the same"),
        (Kind::Agent, "hooks: {a: b}", "does not set endpoints"),
        (Kind::Agent, "color: red", ""),
        (Kind::Agent, "mcpServers: {a: {command: x, cwd: y}}", "where it starts"),
        (Kind::Agent, "mcpServers: {a: {command: x, autoApprove: [y]}}", "only a person allows"),
        (Kind::Agent, "mcpServers: {a: {url: \"https://x\", oauth: {}}}", "signing in"),
        (Kind::Agent, "mcpServers: {a: {command: x, env: {B: \"${B}\"}}}", ""),
        (Kind::Skill, "context: fork", "reads it"),
        (Kind::Skill, "agent: explorer", "reads it"),
        (Kind::Skill, "arguments: [a]", "below it"),
        (Kind::Skill, "paths: [a]", "whatever the files"),
        (Kind::Skill, "license: MIT", ""),
        (Kind::Skill, "access: {chat_types: [private]}", "only in chats, which do not exist yet"),
        (Kind::Skill, "access: {chat_types: []}", ""),
        (Kind::Skill, "metadata: {a: 1}", ""),
        (Kind::Skill, "metadata: {a: {os: x}, a: 2}", "twice"),
        (Kind::Skill, "sensitive: true", ""),
        (Kind::Skill, "user-invokable: false", ""),
        (Kind::Agent, "permission: {bash: allow, edit: allow}", "only a person allows"),
        (Kind::Agent, "permission: {bash: {\"*\": deny, \"git *\": allow}}", "so \"git *\" is too"),
    ];
    for (kind, line, expected) in cases {
        let loaded = read(kind, &format!("---\nname: a\ndescription: d\n{line}\n---\nx"));
        let lines: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert!(loaded.definition.is_some(), "{line}: {lines:?}");
        let count = usize::from(!expected.is_empty());
        assert_eq!(lines.len(), count, "{line}: {lines:?}");
        let at_its_line = |told: &String| told.contains(":4:") && told.contains(expected);
        assert!(lines.iter().all(at_its_line), "{line}: {lines:?}");
    }
}

/// `name pattern` of what is denied, then of what is asked, then of what is left.
#[test]
fn tables_of_permissions() {
    let cases = [
        ("permission: {bash: deny}", "exec", "", None),
        ("permission: {edit: deny}", "edit write", "", None),
        ("permission: {edit: ask, bash: deny}", "exec", "edit write", None),
        (
            "permissions: {bash: {\"sudo *\": deny, \"rm *\": ask}}",
            "exec(sudo *)",
            "exec(rm *)",
            None,
        ),
        ("permission: {bash: {\"*\": ask, \"ls *\": allow}}", "", "exec", None),
        ("permission: {bash: {\"*\": deny, \"ls *\": allow}}", "exec", "", None),
        ("permission: {edit: {\"**/*.key\": deny}}", "edit(**/*.key) write(**/*.key)", "", None),
        ("permission: ask", "", "*", None),
        ("permission: deny", "", "", Some("")),
        ("permission: {\"*\": deny}", "", "", Some("")),
        ("tools: {write: false, read: true}", "write", "", None),
        ("tools: {\"*\": false, read: true, grep: true}", "", "", Some("read grep")),
        ("allowedTools: [fs_read]", "", "", Some("read ls grep")),
    ];
    let shown = |uses: &[locum_definitions::ToolUse]| {
        let one = |tool: &locum_definitions::ToolUse| match &tool.pattern {
            Some(pattern) => format!("{}({pattern})", tool.name),
            None => tool.name.clone(),
        };
        uses.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    for (line, denied, asked, left) in cases {
        let loaded = read(Kind::Agent, &format!("---\nname: a\ndescription: d\n{line}\n---\nx"));
        let tools = loaded.definition.unwrap().tools;
        assert_eq!(shown(&tools.deny), denied, "{line}");
        assert_eq!(shown(&tools.ask), asked, "{line}");
        assert_eq!(tools.allow.as_deref().map(shown), left.map(str::to_owned), "{line}");
    }
    let off = read(Kind::Agent, "---\nname: a\ndescription: d\ndisable: true\n---\nx");
    assert!(off.definition.unwrap().skill.opt_in);
}
