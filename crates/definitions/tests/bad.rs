//! Bad files: each gives an error with its line, in a sentence, quickly; and no bytes whatever
//! make a reader panic.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use locum_definitions::{Kind, Loaded, Origin, Problem, Scope, load, parse};

use support::spoil::spoil;
use support::{Dice, Folder, QUICK, shortest, watched};

fn origin(kind: Kind) -> Origin {
    let root = PathBuf::from("/nowhere");
    let name = match kind {
        Kind::Recipe => "x.yaml",
        Kind::Skill => "skills/x/SKILL.md",
        Kind::Agent => "agents/x.md",
    };
    Origin { file: root.join(name), root, scope: Scope::Workspace }
}

fn read(kind: Kind, name: &str, text: &str) -> Loaded {
    let mut origin = origin(kind);
    if name.contains("json") {
        origin.file.set_extension("json");
    }
    parse(text, kind, &origin)
}

/// The errors of a text that must have some.
fn refused(kind: Kind, name: &str, text: &str) -> Vec<Problem> {
    let took = shortest(QUICK, || drop(read(kind, name, text)));
    assert!(took < QUICK, "{text:?} took {took:?}");
    let loaded = read(kind, name, text);
    assert_eq!(loaded.definition, None, "{text:?} was taken");
    let errors: Vec<Problem> = loaded.problems.into_iter().filter(Problem::is_error).collect();
    assert!(!errors.is_empty(), "{text:?} has no error");
    let lines = text.lines().count().max(1);
    for error in &errors {
        let line = usize::try_from(error.line).unwrap();
        assert!((1..=lines + 1).contains(&line), "{text:?}: {error}");
        assert!(!error.what.is_empty() && !error.to_string().contains('\n'), "{error}");
    }
    errors
}

/// `kind | text | line | words`, one bad file for each line; `⏎` ends a line of the file.
#[test]
fn curated() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bad.txt");
    let table = std::fs::read_to_string(table).unwrap();
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, text, line, words] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let kind = match name {
            "recipe" | "json" | "plain" => Kind::Recipe,
            "skill" => Kind::Skill,
            "agent" => Kind::Agent,
            other => panic!("{other}"),
        };
        let text = text.replace('⏎', "\n").replace("<TAB>", "\t").replace("<ESC>", "\\");
        let text = match name {
            "recipe" => format!("title: t\ndescription: d\nprompt: p\n{text}\n"),
            _ => text,
        };
        // The first is the one people see first, so it must be the one that was meant.
        let error = refused(kind, name, &text).remove(0);
        let shown = error.to_string();
        if !shown.contains(words) || error.line.to_string() != line {
            wrong.push(format!("{case}\n    {shown}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 190, "{count} cases");
}

#[test]
fn spoilt() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let good = ["recipe.yaml", "part.yaml", "blocks.yml"];
    let mut seen = BTreeSet::new();
    for seed in 1..2_000 {
        let mut dice = Dice::new(seed);
        let name = good[dice.roll(good.len())];
        let text = std::fs::read_to_string(fixtures.join(name)).unwrap();
        let Some((bad, words)) = spoil(&text, &mut dice) else { continue };
        if !seen.insert(bad.clone()) {
            continue;
        }
        let errors = refused(Kind::Recipe, name, &bad);
        let told = errors.iter().any(|error| error.to_string().contains(words));
        assert!(told, "seed {seed}, {words}: {errors:#?}\n{bad}");
        if seen.len() == 300 {
            return;
        }
    }
    panic!("only {} bad files", seen.len());
}

/// Bytes changed, cut, doubled and swapped anywhere: an answer in time, and whoever gets no
/// definition gets an error.
#[test]
fn shaken() {
    let folder = Folder::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let good = [
        "recipe.yaml",
        "wrapped.json",
        "blocks.yml",
        "skills/all-fields/SKILL.md",
        "agents/all-fields.md",
        "agents/loose.md",
    ];
    let mut paths = Vec::new();
    for seed in 1..600_u64 {
        let mut dice = Dice::new(seed);
        let name = good[dice.roll(good.len())];
        let mut bytes = std::fs::read(fixtures.join(name)).unwrap();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            let end = (at + dice.roll(40)).min(bytes.len());
            match dice.roll(6) {
                0 => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
                1 => bytes.truncate(at.max(1)),
                2 => drop(bytes.drain(at..end)),
                3 => bytes.splice(at..at, *b"{{ x | y(").for_each(drop),
                4 => bytes.insert(at, b"\t:-[]{}%#&*!|>'\"\n"[dice.roll(17)]),
                _ => {
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part).for_each(drop);
                }
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        let file = Path::new(name).file_name().unwrap().to_str().unwrap();
        paths.push(folder.write(&format!("agents/{seed}/{file}"), bytes));
    }
    for path in paths {
        let loaded = watched(&path.display().to_string(), {
            let path = path.clone();
            move || load(&path)
        });
        let errors = loaded.problems.iter().filter(|problem| problem.is_error()).count();
        assert_eq!(loaded.definition.is_none(), errors > 0, "{}", path.display());
    }
}
