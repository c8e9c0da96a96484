//! The public files: all of them load or say why not, and recipes render as their own program
//! renders them.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use locum_definitions::{Definition, Given, InputType, Outcome, build, load};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;

use support::{corpus, files, sample};

/// Every file of a kind: how many there are, and the lines of those that do not load.
fn refused(kind: &str) -> Option<(usize, Vec<String>, Vec<Definition>)> {
    let files = files(&corpus()?.join(kind));
    let mut lines = Vec::new();
    let mut good = Vec::new();
    for file in &files {
        let loaded = load(file);
        match loaded.definition {
            Some(definition) => good.push(definition),
            None => lines.extend(loaded.problems.iter().map(ToString::to_string)),
        }
    }
    Some((files.len(), lines, good))
}

#[test]
fn all_agents_and_skills_load() {
    for (kind, count) in [("agents", 56), ("skills", 70)] {
        let Some((files, lines, good)) = refused(kind) else { return };
        assert_eq!((files, lines), (count, Vec::<String>::new()), "{kind}");
        assert_eq!(good.len(), count);
        for definition in good {
            assert!(!definition.about.is_empty(), "{:?}", definition.origin.file);
            assert!(definition.about.len() < 5_000, "{:?}", definition.origin.file);
        }
    }
}

/// Those that are not YAML keep all their fields: the tools of none end up in a description.
#[test]
fn loose_front_matter_keeps_its_fields() {
    let Some(corpus) = corpus() else { return };
    let mut loose = 0;
    for file in files(&corpus.join("agents")).into_iter().chain(files(&corpus.join("skills"))) {
        let loaded = load(&file);
        if !loaded.problems.iter().any(|problem| problem.what.contains("not YAML")) {
            continue;
        }
        loose += 1;
        let definition = loaded.definition.unwrap();
        for key in ["\nname:", "\ntools:", "\nmodel:"] {
            assert!(!definition.about.contains(key), "{}", file.display());
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let head = text.split("\n---").next().unwrap();
        let listed = head.contains("\ntools:") || head.contains("\nallowed-tools:");
        assert_eq!(listed, definition.tools.allow.is_some(), "{}", file.display());
    }
    assert_eq!(loose, 11);
}

fn build_with(definition: &Definition, values: BTreeMap<String, String>) -> Definition {
    let given = Given { values, base: PathBuf::new(), roots: vec![PathBuf::from("/")] };
    match build(definition, &given) {
        Ok(Outcome::Built(built)) => built.definition,
        other => panic!("{}: {other:#?}", definition.origin.file.display()),
    }
}

/// Text first, YAML after, as the original does it; possible as long as values are harmless.
fn original(text: &str, values: &BTreeMap<String, String>) -> Value {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("recipe", text).unwrap();
    let context = minijinja::Value::from(values.clone());
    let rendered = environment.get_template("recipe").unwrap().render(context).unwrap();
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&rendered, options).unwrap()
}

#[test]
fn all_recipes_build_as_the_original_builds_them() {
    let Some((files, lines, good)) = refused("recipes") else { return };
    assert_eq!((files, lines), (54, Vec::<String>::new()));
    for given in [false, true] {
        for definition in &good {
            let file = &definition.origin.file;
            let mut values = BTreeMap::new();
            for parameter in &definition.parameters {
                let default = parameter.default.clone().filter(|_| !given);
                let value = default.unwrap_or_else(|| {
                    sample(parameter, file, &format!("sample {}", parameter.key))
                });
                values.insert(parameter.key.clone(), value);
            }
            let built = build_with(definition, values.clone());
            if definition.parameters.iter().any(|one| one.input == InputType::File) {
                // The original would put a whole file into YAML and hope.
                continue;
            }
            let folder = file.parent().unwrap().display().to_string();
            values.insert("recipe_dir".to_owned(), folder);
            let text = std::fs::read_to_string(file).unwrap();
            let original = original(&text, &values);
            let name = file.display();
            let said = |key: &str| original[key].as_str().map(str::to_owned);
            // A last line without an end keeps none in the original; this reader adds one.
            let ended = |text: Option<String>| text.map(|text| text.trim_end().to_owned());
            let instructions = said("instructions").or(Some(String::new()));
            assert_eq!(ended(Some(built.instructions)), ended(instructions), "{name}");
            assert_eq!(ended(built.prompt), ended(said("prompt")), "{name}");
            assert_eq!(built.title, said("title"), "{name}");
            assert_eq!(Some(built.about), said("description"), "{name}");
            let activities = original["activities"].as_array().cloned().unwrap_or_default();
            let activities: Vec<&str> = activities.iter().filter_map(Value::as_str).collect();
            assert_eq!(built.activities, activities, "{name}");
            let count = |key: &str| original[key].as_array().map_or(0, Vec::len);
            assert_eq!(built.servers.len(), count("extensions"), "{name}");
            assert_eq!(built.sub_recipes.len(), count("sub_recipes"), "{name}");
            assert_eq!(built.parameters.len(), count("parameters"), "{name}");
        }
    }
}
