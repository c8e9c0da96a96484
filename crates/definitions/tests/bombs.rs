//! Files that were made to do harm, or are no files at all: an error at once, never a wait.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use std::path::{Path, PathBuf};

use locum_definitions::{Given, Origin, Problem, Scope, build, load, load_from};

use support::{Folder, QUICK, shortest, watched};

/// Loads under a watch, and quickly; the first error.
fn refused(path: &Path, root: &Path) -> Problem {
    let origin = Origin { file: path.into(), root: root.into(), scope: Scope::Workspace };
    let name = path.display().to_string();
    watched(&name.clone(), move || {
        let took = shortest(QUICK, || drop(load_from(&origin)));
        assert!(took < QUICK, "{name} took {took:?}");
        let loaded = load_from(&origin);
        assert_eq!(loaded.definition, None, "{name}");
        loaded.problems.into_iter().find(Problem::is_error).unwrap()
    })
}

fn recipe(more: &str) -> String {
    format!("title: t\ndescription: d\nprompt: p\n{more}\n")
}

fn aliases() -> String {
    let level = |level: usize| {
        let one = format!("*a{}, ", level - 1);
        format!("a{level}: &a{level} [{}x]", one.repeat(9))
    };
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned();
    let lines: Vec<String> = [first].into_iter().chain((1..12).map(level)).collect();
    recipe(&lines.join("\n"))
}

#[test]
fn texts() {
    let folder = Folder::new();
    let nested = |open: &str, close: &str, depth: usize| {
        recipe(&format!("settings: {}{}", open.repeat(depth), close.repeat(depth)))
    };
    let blocks: Vec<String> = (0..200).map(|depth| format!("{}- ", " ".repeat(depth))).collect();
    let blocks = blocks.join("\n");
    let includes = recipe("instructions: \"{% include 'self.yaml' %}\"");
    let many =
        |count: usize, line: &dyn Fn(usize) -> String| -> String { (0..count).map(line).collect() };
    let long = format!("prompt: {}", "x".repeat(256 * 1024 + 1));
    let cases: Vec<(&str, String, &str)> = vec![
        ("alias.yaml", aliases(), "values"),
        ("deep.yaml", nested("[", "]", 5_000), "collections inside"),
        ("deepmap.yaml", nested("{a: ", "}", 5_000), "collections inside"),
        ("deepblock.yaml", recipe(&format!("x:\n{blocks}")), "collections inside"),
        ("deep.json", format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "collections"),
        ("big.yaml", "# x\n".repeat(2_600_000), "bytes"),
        ("big.md", "x".repeat(10_400_000), "bytes"),
        ("self.yaml", includes, "leads back to itself"),
        ("keys.yaml", recipe(&many(60_000, &|n| format!("k{n}: v\n"))), "values"),
        ("braces.yaml", recipe(&format!("x: |\n  {}", "{{ a b }}".repeat(60_000))), "too many"),
        ("values.yaml", recipe(&format!("x: |\n  {}", "{{ a }}".repeat(60_000))), "too many"),
        (
            "distinct.yaml",
            recipe(&format!("x: |\n  {}", many(4_000, &|n| format!("{{{{ v{n} }}}}")))),
            "is used and is no parameter",
        ),
        ("tags.yaml", recipe(&format!("x: |\n  {}", "{% if a %}".repeat(4_000))), "template"),
        ("open.yaml", recipe(&format!("x: |\n  {}", "{{".repeat(300_000))), "template"),
        ("quotes.yaml", recipe(&format!("x: \"{}", "{{ '".repeat(200_000))), ""),
        ("comment.yaml", recipe(&format!("x: |\n  {}", "{#".repeat(300_000))), "template"),
        ("parens.yaml", recipe(&format!("x: '{{{{ {} }}}}'", "(".repeat(100_000))), ""),
        ("unclosed.yaml", recipe(&format!("x: \"{}", "y".repeat(900_000))), "not YAML"),
        ("anchors.yaml", recipe(&many(50_000, &|n| format!("a{n}: &a{n} *b\n"))), "not YAML"),
        ("merge.yaml", recipe("a: &a {<<: *a}"), "alias"),
        ("long.yaml", recipe("name: x").replace("prompt: p", &long), "at most 262144"),
        ("twice.md", format!("---\n{}---\n", "metadata:\n  a: 1\n  a: 2\n".repeat(4_000)), "twice"),
        ("spaces.md", format!("---\n{}", " \n".repeat(400_000)), "no end"),
        ("dashes.md", "---\n".repeat(200_000), "missing"),
        ("colons.md", format!("---\nname: {}\n---\n", "a: ".repeat(300_000)), "missing"),
    ];
    for (name, text, expected) in cases {
        let path = folder.write(name, text);
        let problem = refused(&path, folder.path());
        assert!(problem.to_string().contains(expected), "{name}: {problem}");
    }
}

/// These load, and burst when they are built; or are refused before.
#[test]
fn templates() {
    let folder = Folder::new();
    let doubling = format!("{{% set a = 'x' %}}{}", "{% set a = a ~ a %}".repeat(40));
    let many = format!("{{{{ {} }}}}", vec!["'x' * 90000"; 200].join(" ~ "));
    let cases = [
        (
            "loops",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x\
             {% endfor %}{% endfor %}{% endfor %}",
            "fuel",
        ),
        ("long", "{% for a in range(9999) %}{{ 'x' * 90000 }}{% endfor %}", "too long"),
        ("doubling", &*doubling, "put together"),
        ("many", &*many, "put together"),
        ("replace", "{{ ('a' * 90000) | replace('a', 'b' * 90000) }}", "too long"),
        ("join", "{{ range(9999) | join('b' * 90000) }}", "too long"),
        ("indent", "{{ 'a' | indent(999999999) }}", "at most 64"),
        ("center", "{{ 'a' | center(999999999) }}", "unknown filter"),
        ("format", "{{ '%0999999999d' | format(1) }}", "unknown filter"),
        ("batch", "{{ [1] | batch(999999999, 'x') | list }}", "unknown filter"),
        ("times", "{{ 'x' * 999999999 }}", "too large"),
        ("list", "{{ [1] * 999999999 }}", "too large"),
    ];
    for (name, line, expected) in cases {
        let text = recipe("").replace("prompt: p", &format!("prompt: |\n  {line}"));
        let path = folder.write(&format!("{name}.yaml"), text);
        let problem = watched(name, move || {
            let loaded = load(&path);
            let Some(definition) = loaded.definition else {
                return loaded.problems.into_iter().find(Problem::is_error).unwrap();
            };
            let took = shortest(QUICK, || drop(build(&definition, &Given::default())));
            assert!(took < 4 * QUICK, "{name} took {took:?}");
            build(&definition, &Given::default()).unwrap_err().remove(0)
        });
        assert!(problem.to_string().contains(expected), "{name}: {problem}");
    }
}

#[test]
fn includes_that_go_round_or_out() {
    let folder = Folder::new();
    folder.write("a.part", "{% include 'b.part' %}");
    folder.write("b.part", "{% include 'a.part' %}");
    folder.write("secret.txt", "key");
    folder.write("in/up.part", "{% extends 'up.part' %}");
    let long = "x".repeat(2_000_000);
    folder.write("in/long.part", long);
    folder.write("in/hidden.part", "a\u{202E}b");
    let cases = [
        ("round.yaml", "{% include 'a.part' %}", "leads back to itself"),
        ("in/out.yaml", "{% include '../secret.txt' %}", "leads out"),
        ("in/root.yaml", "{% include '/etc/passwd' %}", "leads out"),
        ("in/none.yaml", "{% include 'none.part' %}", "not found"),
        ("in/extends.yaml", "{% extends 'up.part' %}", ""),
        ("in/longer.yaml", "{% include 'long.part' %}", "bytes"),
        ("in/unseen.yaml", "{% include 'hidden.part' %}", "U+202E"),
    ];
    for (name, line, expected) in cases {
        let text = format!("title: t\ndescription: d\nprompt: \"{line}\"\n");
        let path = folder.write(name, text);
        let problem = refused(&path, folder.path());
        assert!(problem.to_string().contains(expected), "{name}: {problem}");
    }
}

#[cfg(unix)]
#[test]
fn things_that_are_no_files() {
    use std::os::unix::fs::symlink;
    let outside = Folder::new();
    let secret = outside.write("secret.yaml", recipe(""));
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("folder.yaml")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe.yaml")).status().unwrap();
    assert!(pipe.success());
    let socket = std::os::unix::net::UnixListener::bind(at("socket.yaml")).unwrap();
    let links: [(&str, PathBuf); 6] = [
        ("out.yaml", secret),
        ("zero.yaml", "/dev/zero".into()),
        ("round.yaml", at("round.yaml")),
        ("dangling.yaml", at("nothing.yaml")),
        ("topipe.yaml", at("pipe.yaml")),
        ("proc.yaml", "/proc/self/mem".into()),
    ];
    for (name, target) in links {
        symlink(target, at(name)).unwrap();
    }
    let cases = [
        ("folder.yaml", "a folder"),
        ("pipe.yaml", "a pipe"),
        ("socket.yaml", "a socket"),
        ("out.yaml", "leads to"),
        ("zero.yaml", "leads to"),
        ("round.yaml", "cannot be read"),
        ("dangling.yaml", "does not exist"),
        ("topipe.yaml", "a pipe"),
        ("proc.yaml", "leads to"),
        ("missing.yaml", "does not exist"),
        ("odd.txt", "not a definition"),
    ];
    for (name, expected) in cases {
        let problem = refused(&at(name), folder.path());
        assert!(problem.to_string().contains(expected), "{name}: {problem}");
    }
    let device = load(Path::new("/dev/null"));
    assert!(device.problems[0].is_error());
    drop(socket);
}

/// A link inside the folder is as good as the file.
#[cfg(unix)]
#[test]
fn links_inside_are_followed() {
    let folder = Folder::new();
    folder.write("real.yaml", recipe(""));
    let link = folder.path().join("link.yaml");
    std::os::unix::fs::symlink("real.yaml", &link).unwrap();
    let root = folder.path().to_owned();
    let loaded = load_from(&Origin { file: link, root, scope: Scope::Workspace });
    assert_eq!(loaded.definition.unwrap().name, "link");
}
