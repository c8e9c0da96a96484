//! What looking for definitions costs with five hundred of them: `cargo bench -p
//! locum-definitions`. Reading all of them is to take less than a tenth of a second, and seeing
//! whether anything changed much less than that, since it is done before every turn.

use std::fs;
use std::path::{Path, PathBuf};

use divan::Bencher;
use locum_definitions::{Given, Kind, Library, Origin, Places, Scope, build, fingerprint, parse};

fn main() {
    divan::main();
}

const BODY: &str = "Look at what changed and say what is wrong with it, worst first.\n";

const RECIPE: &str = "\
title: Review
description: Reviews a change
instructions: |
  Review {{ branch }} of {{ project }}.
  {% if strict %}Be strict.{% endif %}
prompt: Begin with {{ branch }}.
parameters:
  - {key: branch, input_type: string, requirement: required, description: Which branch}
  - {key: project, input_type: string, requirement: required, description: Which project}
  - {key: strict, input_type: boolean, requirement: optional, default: '', description: How}
extensions:
  - {type: builtin, name: developer}
";

/// A workspace with as many definitions as somebody who collects them has, gone when dropped.
struct Shelf(PathBuf);

impl Shelf {
    fn new() -> Shelf {
        let name = format!("locum-definitions-bench-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let body = BODY.repeat(60);
        for number in 0..500 {
            let head = format!("---\nname: one-{number}\ndescription: Does thing {number}\n");
            match number % 5 {
                0 => put(&root, &format!(".locum/recipes/one-{number}.yaml"), RECIPE),
                1 | 2 => {
                    let text = format!("{head}tools: Read, Grep, Bash\n---\n{body}");
                    put(&root, &format!(".claude/agents/one-{number}.md"), &text);
                }
                _ => {
                    let text = format!("{head}allowed-tools: Read\n---\n{body}");
                    put(&root, &format!(".claude/skills/one-{number}/SKILL.md"), &text);
                }
            }
        }
        Shelf(root)
    }

    fn places(&self) -> Places<'_> {
        Places { workspace: Some(&self.0), ..Places::default() }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

#[divan::bench]
fn scan_of_500(bencher: Bencher<'_, '_>) {
    let shelf = Shelf::new();
    assert!(Library::scan(&shelf.places()).found.len() >= 500);
    bencher.bench_local(|| Library::scan(&shelf.places()));
}

#[divan::bench]
fn fingerprint_of_500(bencher: Bencher<'_, '_>) {
    let shelf = Shelf::new();
    bencher.bench_local(|| fingerprint(&shelf.places()));
}

fn origin(name: &str) -> Origin {
    let root = PathBuf::from("/nowhere");
    Origin { file: root.join(name), root, scope: Scope::User }
}

#[divan::bench]
fn a_recipe(bencher: Bencher<'_, '_>) {
    let origin = origin("review.yaml");
    bencher.bench_local(|| parse(RECIPE, Kind::Recipe, &origin));
}

#[divan::bench]
fn a_recipe_built(bencher: Bencher<'_, '_>) {
    let recipe = parse(RECIPE, Kind::Recipe, &origin("review.yaml")).definition.expect("good");
    let values = ["branch", "project"].map(|key| (key.to_owned(), "main: [1]".to_owned())).into();
    let given = Given { values, ..Given::default() };
    bencher.bench_local(|| build(&recipe, &given));
}
