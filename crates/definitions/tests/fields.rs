//! Every field of every format arrives in the definition: one line for each.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::path::{Path, PathBuf};

use locum_definitions::{Definition, Given, Loaded, Outcome, build, load};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn definition(name: &str) -> Definition {
    let Loaded { definition, problems } = load(&fixture(name));
    definition.unwrap_or_else(|| panic!("{name}: {problems:#?}"))
}

/// The section of `expected.txt` with that name.
fn expect(section: &str, definition: &Definition) {
    let table = std::fs::read_to_string(fixture("expected.txt")).unwrap();
    let (_, rest) = table.split_once(&format!("\n## {section}\n")).expect(section);
    let cases: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
    assert!(!cases.is_empty(), "{section}");
    let value = serde_json::to_value(definition).unwrap();
    for case in cases {
        let (pointer, expected) = case.split_once(" = ").unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        let found = value.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(found, &expected, "{section} {pointer}");
    }
}

fn built(name: &str, values: &[(&str, &str)]) -> Definition {
    let values = values.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let root = fixture("");
    let given = Given { values, base: root.clone(), roots: vec![root] };
    match build(&definition(name), &given) {
        Ok(Outcome::Built(built)) => built.definition,
        other => panic!("{name}: {other:#?}"),
    }
}

#[test]
fn every_field_arrives() {
    let files = [
        "recipe.yaml",
        "skills/all-fields/SKILL.md",
        "skills/flat.md",
        "agents/all-fields.md",
        "agents/loose.md",
        "agents/table.md",
    ];
    for file in files {
        expect(file, &definition(file));
    }
}

#[test]
fn values_are_put_in() {
    let values = [("topic", "Rust: fast?"), ("paper", "words.part"), ("style", "long")];
    expect("recipe.yaml built", &built("recipe.yaml", &values));
    expect("wrapped.json built", &built("wrapped.json", &[]));

    let off = built("blocks.yml", &[]);
    assert_eq!(off.instructions, "Names:\n\n- A\n\n- B\n");
    assert_eq!(off.servers.len(), 1);
    let on = built("blocks.yml", &[("web", "true"), ("names", "x,y")]);
    expect("blocks.yml built with web", &on);

    let child = built("child.yaml", &[("topic", "\"bugs\": [all]")]);
    let folder = fixture("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let expected = format!("Look at \"bugs\": [all] in {folder}. Mind \"bugs\": [all].");
    assert_eq!(child.prompt, Some(expected));
    assert_eq!(child.title.as_deref(), Some("Base"));
}

#[test]
fn the_fixtures_have_only_the_problems_they_should() {
    let cases: [(&str, &[&str]); 8] = [
        (
            "recipe.yaml",
            &[
                ":5:1: warning: nobody reads these instructions",
                "32:24: warning: the variable LD_PRELOAD is left out",
                ":47:5: warning: a frontend",
            ],
        ),
        ("wrapped.json", &[]),
        ("blocks.yml", &[]),
        ("child.yaml", &[]),
        ("skills/all-fields/SKILL.md", &[":14:10: warning: \"chat_types\"", "not YAML"]),
        ("agents/all-fields.md", &[":22:1: warning: nobody reads these instructions"]),
        ("agents/loose.md", &["3:27: warning: not YAML"]),
        ("agents/table.md", &[]),
    ];
    for (name, expected) in cases {
        let problems = load(&fixture(name)).problems;
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let fits = lines.len() == expected.len()
            && lines.iter().zip(expected).all(|(line, words)| line.contains(words));
        assert!(fits, "{name}: {lines:#?}");
    }
}

#[test]
fn who_must_be_asked_is_said() {
    let root = fixture("");
    let values = [("topic", "x"), ("paper", "words.part")];
    let values = values.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let given = Given { values, base: root.clone(), roots: vec![root] };
    let Ok(Outcome::Needs(needs)) = build(&definition("recipe.yaml"), &given) else {
        panic!("nobody was asked")
    };
    assert_eq!(needs.len(), 1);
    assert_eq!(json!(needs[0].key), json!("style"));
}
