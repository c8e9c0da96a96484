//! Bad files: each gives an error with its line, in a sentence, quickly; and no bytes whatever
//! make a reader panic.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use locum_definitions::{
    Kind, Loaded, Origin, Place, Problem, Scope, load, parse, proposed_servers,
};

use support::shake::{Dice, shaken};
use support::spoil::spoil;
use support::{Folder, QUICK, shortest, spelled_out, watched};

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

/// The errors of a text that must have some, or what is wrong with them.
fn refused(kind: Kind, name: &str, text: &str) -> Result<Vec<Problem>, String> {
    let took = shortest(QUICK, || drop(read(kind, name, text)));
    if took >= QUICK {
        return Err(format!("took {took:?}"));
    }
    let loaded = read(kind, name, text);
    let errors: Vec<Problem> = loaded.problems.into_iter().filter(Problem::is_error).collect();
    if loaded.definition.is_some() || errors.is_empty() {
        return Err("was taken".to_owned());
    }
    let lines = text.lines().count().max(1);
    for error in &errors {
        let line = usize::try_from(error.line).unwrap();
        let words = [&error.what, &error.why, &error.how];
        let whole = words.iter().all(|part| !part.is_empty());
        if !whole || !(1..=lines + 1).contains(&line) || error.to_string().contains('\n') {
            return Err(format!("{error:?}"));
        }
    }
    Ok(errors)
}

/// `kind | text | line | words`, one bad file for each line; `⏎` ends a line of the file.
#[test]
fn curated() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bad.txt");
    let table = std::fs::read_to_string(table).unwrap();
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((name, rest)) = case.split_once(" | ") else { panic!("{case}") };
        let [words, line, text] = rest.rsplitn(3, " | ").collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let line: u32 = line.parse().unwrap();
        let kind = match name {
            "recipe" | "json" | "plain" => Kind::Recipe,
            "skill" => Kind::Skill,
            "agent" => Kind::Agent,
            other => panic!("{other}"),
        };
        let text = spelled_out(text);
        let text = match name {
            "recipe" => format!("title: t\ndescription: d\nprompt: p\n{text}\n"),
            _ => text,
        };
        // The first is the one people see first, so it must be the one that was meant.
        match refused(kind, name, &text) {
            Ok(errors) if errors[0].to_string().contains(words) && errors[0].line == line => {}
            Ok(errors) => wrong.push(format!("{case}\n    {}", errors[0])),
            Err(why) => wrong.push(format!("{case}\n    {why}")),
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 450, "{count} cases");
}

/// What is told stands at the very key or value that it is told of, and is told once.
#[test]
fn places() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/places.txt");
    let table = std::fs::read_to_string(table).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for case in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, marked, words] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let (kind, scope) = match name {
            "recipe" => (Kind::Recipe, Scope::User),
            "skill" => (Kind::Skill, Scope::User),
            "agent" => (Kind::Agent, Scope::User),
            "project" => (Kind::Agent, Scope::Workspace),
            other => panic!("{other}"),
        };
        let marked = spelled_out(marked);
        let about = if marked.contains("description: a: b") { "" } else { "description: d\n" };
        let marked = match kind {
            Kind::Recipe => format!("title: t\ndescription: d\nprompt: p\n{marked}\n"),
            Kind::Skill | Kind::Agent => format!("---\nname: x\n{about}{marked}\n---\nHi.\n"),
        };
        let byte = marked.find('‸').unwrap_or_else(|| panic!("{case}"));
        let text = marked.replace('‸', "");
        let loaded = parse(&text, kind, &Origin { scope, ..origin(kind) });
        let place = Place::of_byte(&text, byte);
        let told = loaded.problems.iter().filter(|it| it.to_string().contains(words));
        let told: Vec<Place> = told.map(|it| Place { line: it.line, column: it.column }).collect();
        if told != [place] {
            wrong.push(format!("{case}\n    {place:?}\n    {:#?}", loaded.problems));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 75, "{count} cases");
}

/// `.mcp.json` of a project: one bad server is told and the others stay.
#[test]
fn servers_of_a_project() {
    let cases = [
        ("", 1, "JSON"),
        ("[]", 1, "the file is a list"),
        ("{}", 1, "\"mcpServers\" is missing"),
        ("{\"mcpServers\": {\"a\": 5}}", 1, "the server \"a\" is text"),
        ("{\"mcpServers\": {\"a\": {}}}", 1, "write: command: npx"),
        ("{\"mcpServers\": {\"a\": {\"command\": [\"x\"]}}}", 1, "text is expected"),
        (
            "{\"mcpServers\":\n{\"a\":\n{\"command\": \"x\", \"args\": {}}}}",
            3,
            "a list is expected",
        ),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": []}}}", 1, "names with values"),
        ("{\"mcpServers\": {\"a\": {\"url\": \"ftp://x\"}}}", 1, "not http or https"),
        ("{\"mcpServers\": {\"a\": {\"url\": [1]}}}", 1, "text is expected"),
        ("{\"mcpServers\": {\"a\": {\"type\": \"pigeon\"}}}", 1, "one of stdio"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"timeout\": 0}}}", 1, "a whole number"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n}}", 2, "comma before"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"mcpServers\": {}}", 1, "twice"),
    ];
    for (text, line, words) in cases {
        let folder = Folder::new();
        folder.write(".mcp.json", text);
        let (_, problems) = proposed_servers(folder.path());
        let error = problems.into_iter().find(Problem::is_error);
        let error = error.unwrap_or_else(|| panic!("{text} was taken"));
        assert!(error.to_string().contains(words) && error.line == line, "{text}\n{error}");
    }
    // Plugins leave the outer table away.
    let bare = Folder::new();
    bare.write(".mcp.json", "{\"a\": {\"command\": \"x\"}, \"b\": {\"url\": \"https://y\"}}");
    let (servers, problems) = proposed_servers(bare.path());
    assert_eq!((servers.len(), problems.len()), (2, 0), "{problems:?}");
    assert!(servers.iter().all(|server| server.needs_consent));
    let folder = Folder::new();
    folder.write(".mcp.json", "{\"mcpServers\": {\"a\": {}, \"b\": {\"command\": \"x\"}}}");
    let (servers, problems) = proposed_servers(folder.path());
    assert_eq!((servers.len(), servers[0].name.as_str(), problems.len()), (1, "b", 1));
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
        let errors = refused(Kind::Recipe, name, &bad).unwrap_or_else(|why| panic!("{why}\n{bad}"));
        let told = errors.iter().any(|error| error.to_string().contains(words));
        assert!(told, "seed {seed}, {words}: {errors:#?}\n{bad}");
        if seen.len() == 300 {
            return;
        }
    }
    panic!("only {} bad files", seen.len());
}

/// Spoilt in every way a file can be: an answer in time, and whoever gets no definition gets an
/// error with a place and a reason.
#[test]
fn shaken_files() {
    let folder = Folder::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let good = [
        "recipe.yaml",
        "wrapped.json",
        "blocks.yml",
        "child.yaml",
        "skills/all-fields/SKILL.md",
        "agents/all-fields.md",
        "agents/loose.md",
        "agents/table.md",
    ];
    let (mut loaded_at_all, mut ways) = (0, BTreeSet::new());
    for seed in 1..600_u64 {
        let mut dice = Dice::new(seed);
        let name = good[dice.roll(good.len())];
        let (bytes, way) = shaken(&std::fs::read(fixtures.join(name)).unwrap(), &mut dice);
        ways.insert(way);
        let file = Path::new(name).file_name().unwrap().to_str().unwrap();
        let path = folder.write(&format!("agents/{file}"), bytes);
        let what = format!("seed {seed}: {name} spoilt by {way}");
        let loaded = watched(&what.clone(), move || {
            let mut loaded = None;
            let took = shortest(QUICK, || loaded = Some(load(&path)));
            assert!(took < QUICK, "{what} took {took:?}");
            loaded.unwrap()
        });
        let errors = loaded.problems.iter().filter(|problem| problem.is_error());
        assert_eq!(loaded.definition.is_none(), errors.clone().count() > 0, "seed {seed}");
        for problem in &loaded.problems {
            let words = [&problem.what, &problem.why, &problem.how];
            assert!(words.iter().all(|part| !part.is_empty()), "seed {seed}: {problem:?}");
        }
        loaded_at_all += usize::from(loaded.definition.is_some());
    }
    assert!(ways.len() >= 15, "{ways:?}");
    assert!(loaded_at_all > 50, "only {loaded_at_all} load: nothing is proved of those that do");
}
