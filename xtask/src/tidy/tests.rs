//! Each rule is shown a tree that breaks it and has to say so; a tidy that is silent is no tidy.

use super::source::{Function, Source};
use super::tree::{File, Tree};
use super::{check, without_std};

const LIB: &str = "crates/kernel/src/lib.rs";
const SHARED: &str = r#"
[workspace.dependencies]
locum-kernel = { path = "crates/kernel" }
room = { package = "locum-runtime", path = "crates/runtime" }
serde = { version = "1", default-features = false, features = ["alloc"] }
serde_json = { version = "1", default-features = false }
loud = "1"
"#;
const KERNEL: &str = "[dependencies]\nserde.workspace = true\nserde_json.workspace = true\n";

/// A sound tree with these files put in or replaced, and what tidy says of it.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let sound = [
        (LIB, "//! k\n#![no_std]\n"),
        ("Cargo.toml", SHARED),
        ("crates/kernel/Cargo.toml", KERNEL),
    ];
    let replaced = |path: &str| files.iter().any(|(other, _)| *other == path);
    let kept = sound.iter().filter(|(path, _)| !replaced(path));
    let tree = Tree { files: kept.chain(files).map(|(p, t)| File::new(*p, *t)).collect() };
    check(&tree).iter().map(ToString::to_string).collect()
}

/// Rows: what is in the file, and how each finding begins. No finding: the row is fine as it is.
fn table(path: &str, rows: &[(&str, &[&str])]) {
    for (text, expected) in rows {
        let found = problems(&[(path, text)]);
        let expected: Vec<String> = expected.iter().map(|rest| format!("{path}:{rest}")).collect();
        let fits = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, start)| found.starts_with(start));
        assert!(fits, "{path}:\n{text}\nfound {found:#?}\nexpected {expected:#?}");
    }
}

#[test]
fn a_sound_tree_is_clean() {
    assert_eq!(problems(&[]), Vec::<String>::new());
}

#[test]
fn any_source() {
    let wide = format!("//! a\n// {}\n", "x".repeat(98));
    let edge = format!("//! a\n// {}\n", "ü".repeat(97));
    let long = format!("//! a\n{}", "\n".repeat(600));
    let with_tests = format!("//! a\n#[cfg(test)]\nmod tests {{{}}}\n", "\n".repeat(600));
    let longest = format!("//! a\nfn f(a: [u8; 2]) {{{}}}\n", "\n".repeat(69));
    let too_long = format!("//! a\nfn f(a: [u8; 2]) {{{}}}\n", "\n".repeat(70));
    let note = format!("//! a\n// {}: later\n", concat!("FIX", "ME"));
    let home = format!("//! a\n// see {}me/notes\n", "/ho");
    let address = format!("//! a\n// see https://example.org{}me/notes\n", "/ho");
    let rows: &[(&str, &[&str])] = &[
        ("// a\n", &["1: opening, the first line says"]),
        ("", &["1: opening"]),
        (&wide, &["2: line-width, 101 columns"]),
        (&edge, &[]),
        (&long, &["1: file-lines, 601 production lines"]),
        (&with_tests, &[]),
        (&longest, &[]),
        (&too_long, &["2: function-lines:f, 71 lines"]),
        (&note, &["2: unfinished"]),
        ("//! a\nfn f() {\n    todo!()\n}\n", &["3: unfinished, `todo!`"]),
        ("//! a\nfn f() {\n    unimplemented!(\"x\")\n}\n", &["3: unfinished, `unimplemented!`"]),
        ("//! a\nfn f() {\n    dbg!(1);\n}\n", &["3: unfinished, `dbg!`"]),
        ("//! a\n// todo!() in a remark\n", &[]),
        (&home, &["2: machine-path"]),
        (&address, &[]),
    ];
    table("crates/web/src/a.rs", rows);
}

#[test]
fn tests_and_benches() {
    let long = format!("//! a\n{}", "\n".repeat(700));
    let function = format!("//! a\nfn f() {{{}}}\n", "\n".repeat(80));
    let rows: &[(&str, &[&str])] = &[
        ("fn f() {}\n", &["1: opening"]),
        (&long, &[]),
        (&function, &["2: function-lines:f, 81 lines"]),
        ("//! a\nuse std::collections::HashMap;\n", &[]),
    ];
    for path in ["crates/kernel/tests/a.rs", "crates/kernel/benches/a.rs", "xtask/tests/a.rs"] {
        table(path, rows);
    }
}

#[test]
fn any_file() {
    let script = format!("cd {}rk/main\n", "/wo");
    for path in ["README.md", ".ci/run", "Cargo.lock"] {
        table(path, &[(&script, &["1: machine-path"])]);
    }
}

#[test]
fn kernel_source() {
    let rows: &[(&str, &[&str])] = &[
        ("//! std::, HashMap, f64 in remarks\n/* Instant /* tokio */ f32 */\n", &[]),
        ("//! a\nconst A: &str = \"std::HashMap\";\nconst B: char = '\"';\n", &[]),
        ("//! a\nconst A: &str = r#\"tokio \" f64\"#;\nfn f<'a>(r#type: &'a str) {}\n", &[]),
        ("//! a\nuse std::fmt;\n", &["2: purity, `std`"]),
        ("//! a\nuse std as s;\n", &["2: purity, `std`"]),
        ("//! a\n\nextern  crate  std;\n", &["3: purity, `std`"]),
        ("//! a\ntype M = HashMap<u8, u8>;\n", &["2: purity, `HashMap`"]),
        ("//! a\nfn f() { tokio::spawn(g) }\n", &["2: purity, `tokio`"]),
        ("//! a\nasync fn f() {}\n", &["2: purity, `async fn`"]),
        ("//! a\nfn f() {\n    g()\n        .await;\n}\n", &["4: purity, `.await`"]),
        ("//! a\nfn f(at: Instant) {}\n", &["2: purity, `Instant`"]),
        ("//! a\nfn f(at: SystemTime) {}\n", &["2: purity, `SystemTime`"]),
        ("//! a\nfn f(at: &'static str, instantly: Instants) {}\n", &[]),
        ("//! a\nfn f(a: f32) {}\n", &["2: float"]),
        ("//! a\nconst A: u8 = 1f64 as u8;\n", &["2: float"]),
        ("//! a\nfn f(a: &Value) { a.as_f64(); }\n", &["2: float"]),
        ("//! a\nfn f() { g(2.5) }\n", &["2: float"]),
        ("//! a\nfn f(a: ((u8, u8), u8)) { g(a.0.1, 0..5, 0x1f64) }\n", &[]),
        ("//! a\n#[allow(dead_code)]\nfn f() {}\n", &["2: allowance"]),
        ("//! a\n#![allow(dead_code)]\n", &["2: allowance"]),
        ("//! a\n#[cfg_attr(test, allow(dead_code))]\nfn f() {}\n", &["2: allowance"]),
        ("//! a\n#[expect(dead_code, reason = \"x\")]\nfn f() {}\n", &[]),
        (
            "//! a\n#[expect(\n    clippy::wildcard_enum_match_arm\n)]\nfn f() {}\n",
            &["2: allowance, wildcard"],
        ),
        ("//! a half-written file\n#[", &[]),
        ("//! a half-written file\nfn f() { (\"", &[]),
    ];
    table("crates/kernel/src/a.rs", rows);
    let rows: &[(&str, &[&str])] = &[
        ("//! k\n", &["1: purity, `#![no_std]`"]),
        ("//! k\n// #![no_std]\n", &["1: purity, `#![no_std]`"]),
        ("//! k\n#![cfg_attr(not(test), no_std)]\n", &["1: purity, `#![no_std]`"]),
    ];
    table(LIB, rows);
    table("crates/web/src/a.rs", &[("//! a\n#![allow(x)]\nuse std::time::Instant;\n", &[])]);
}

#[test]
fn kernel_manifest() {
    let plain = "[dependencies]\nserde = { version = \"1\", default-features = false }\n";
    let with = |more: &str| format!("{KERNEL}{more}");
    let platform = with("[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n");
    let build = with("[build-dependencies]\ncc = \"1\"\n");
    let features = with("[features]\nfast = []\n");
    let third = with("loud.workspace = true\n");
    let tests = with("[dev-dependencies]\nloud.workspace = true\n");
    let std = format!("{plain}serde_json = {{ workspace = true, features = [\"std\"] }}\n");
    let loud = format!("{plain}serde_json = \"1\"\n");
    let rows: &[(&str, &[&str])] = &[
        (plain, &["1: kernel-dependencies, serde_json is missing"]),
        (&platform, &["5: kernel-dependencies, only serde and serde_json, not libc"]),
        (&build, &["5: kernel-dependencies, only serde and serde_json, not cc"]),
        (&third, &["4: kernel-dependencies, only serde and serde_json, not loud"]),
        (&tests, &[]),
        (&std, &["3: kernel-dependencies, serde_json brings std in"]),
        (&loud, &["3: kernel-dependencies, serde_json brings std in"]),
        (&features, &["4: features"]),
        ("[dependencies\n", &["1: manifest"]),
    ];
    table("crates/kernel/Cargo.toml", rows);
}

#[test]
fn directions() {
    let ours = |name: &str| format!("[dependencies]\nlocum-{name}.workspace = true\n");
    let rooms = ["kernel", "journal", "runtime", "shell", "web", "tui"];
    let allowed = |from: &str, to: &str| match from {
        "journal" | "tui" => to == "kernel",
        "runtime" => ["kernel", "journal", "shell"].contains(&to),
        "shell" => false,
        "web" => to == "kernel" || to == "runtime",
        "locum" => to != "shell",
        _ => unreachable!("the kernel has a test of its own"),
    };
    for from in ["journal", "runtime", "shell", "web", "tui", "locum"] {
        for to in rooms {
            let finding = format!("2: direction, {from} may not use {to}");
            let finding = [finding.as_str()];
            let expected: &[&str] = if allowed(from, to) { &[] } else { &finding };
            table(&format!("crates/{from}/Cargo.toml"), &[(&ours(to), expected)]);
        }
    }
    let renamed = "[dependencies]\nroom.workspace = true\n";
    table("crates/tui/Cargo.toml", &[(renamed, &["2: direction, tui may not use runtime"])]);
    table("crates/annex/Cargo.toml", &[("[package]\n", &["1: direction, `annex` is not"])]);
}

#[test]
fn exemptions() {
    let long = format!("//! a\nfn f() {{{}}}\nfn g() {{{}}}\n", "\n".repeat(80), "\n".repeat(80));
    let float = "//! a\nfn f(a: f64) {}\n";
    let path = "crates/kernel/src/a.rs";
    let list = "xtask/tidy-exemptions.txt";
    let rows: &[(&str, &str, &[&str])] = &[
        (&long, "# a remark\n\ncrates/kernel/src/a.rs function-lines:f a table", &["a.rs:83: fun"]),
        (float, "crates/kernel/src/a.rs float shown to people", &[]),
        (float, "crates/kernel/src/b.rs float x", &["a.rs:2: float", "txt:1: exemption, crates/"]),
        ("//! a\n", "\ncrates/kernel/src/a.rs float x", &["txt:2: exemption, crates/"]),
        (float, "crates/kernel/src/a.rs float", &["a.rs:2: float", "txt:1: exemption, an exem"]),
        (float, "crates/kernel/src/a.rs purity x", &["a.rs:2: float", "txt:1: exemption, this"]),
        ("//! a\n", "crates/kernel/src/a.rs", &["txt:1: exemption, write"]),
    ];
    for (source, exemption, expected) in rows {
        let found = problems(&[(path, source), (list, exemption)]);
        let fits = found.len() == expected.len()
            && found.iter().zip(*expected).all(|(found, part)| found.contains(part));
        assert!(fits, "{exemption}\nfound {found:#?}\nexpected {expected:#?}");
    }
}

#[test]
fn functions_are_measured() {
    let text = "trait T {\n    fn a(&self);\n    fn b(f: fn(u8) -> u8) {\n        '}';\n    }\n}\n";
    let function = |name: &str, line, length| Function { name: name.to_owned(), line, length };
    assert_eq!(Source::new(text).functions(), [function("a", 2, 1), function("b", 3, 3)]);
}

#[test]
fn targets_without_std() {
    let rows = [
        ("x86_64-unknown-linux-gnu\n", None),
        ("x86_64-unknown-linux-gnu\nthumbv7em-none-eabi\n", Some("thumbv7em-none-eabi")),
        ("riscv32imac-unknown-none-elf\n", Some("riscv32imac-unknown-none-elf")),
        ("wasm32v1-none", Some("wasm32v1-none")),
        ("", None),
    ];
    for (installed, expected) in rows {
        assert_eq!(without_std(installed), expected);
    }
}
