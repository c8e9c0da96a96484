//! Purity of the kernel: what would make two runs of it differ cannot even be named there.

use super::Problem;
use super::source::Source;
use super::tree::{File, Tree};

const LIB: &str = "crates/kernel/src/lib.rs";

/// What may not be named, and what goes wrong if it is.
const BANNED: &[(&[&str], &str)] = &[
    (&["std"], "`std`: the kernel is no_std, so that it cannot reach the machine"),
    (&["HashMap"], "`HashMap`: its order differs from run to run; use BTreeMap"),
    (&["tokio"], "`tokio`: waiting is a value in the state, not a task"),
    (&["async", "fn"], "`async fn`: waiting is a value in the state, not a future"),
    (&[".", "await"], "`.await`: waiting is a value in the state, not a future"),
    (&["Instant"], "`Instant`: time is an input"),
    (&["SystemTime"], "`SystemTime`: time is an input"),
];

pub(super) fn check_file(file: &File, source: &Source, problems: &mut Vec<Problem>) {
    if !file.path.starts_with("crates/kernel/") {
        return;
    }
    allowances(file, source, problems);
    if file.path.starts_with("crates/kernel/src/") {
        names(file, source, problems);
        floats(file, source, problems);
    }
}

/// That the library says `no_std` is what makes the compiler hold all the rest.
pub(super) fn check_root(tree: &Tree, problems: &mut Vec<Problem>) {
    let source = tree.get(LIB).map(|file| Source::new(&file.text));
    let says =
        source.is_some_and(|source| source.find(&["#", "!", "[", "no_std", "]"]).next().is_some());
    if !says {
        problems.push(Problem::new(LIB, 1, "purity", "`#![no_std]` is missing"));
    }
}

fn names(file: &File, source: &Source, problems: &mut Vec<Problem>) {
    for (words, why) in BANNED {
        for at in source.find(words) {
            problems.push(Problem::new(&file.path, source.tokens[at].line, "purity", *why));
        }
    }
}

/// Floats round differently in other hands and `NaN` is not itself. Its own rule, because it is
/// the only part of purity that has an excuse: text for people.
fn floats(file: &File, source: &Source, problems: &mut Vec<Problem>) {
    for (at, token) in source.tokens.iter().enumerate() {
        if is_float(&token.text) || is_float_literal(source, at) {
            let why = "a float in the kernel; count in whole units";
            problems.push(Problem::new(&file.path, token.line, "float", why));
        }
    }
}

/// `f64`, `1f64`, `as_f64`.
fn is_float(word: &str) -> bool {
    ["f32", "f64"].iter().any(|float| {
        word.strip_suffix(float).is_some_and(|rest| {
            rest.is_empty() || rest.ends_with('_') || rest.starts_with(|c: char| c.is_ascii_digit())
        }) && !word.starts_with("0x")
    })
}

/// `1.5` but not `pair.0.1`.
fn is_float_literal(source: &Source, at: usize) -> bool {
    let number = |at: usize| source.text(at).starts_with(|sign: char| sign.is_ascii_digit());
    let field = at > 0 && source.text(at - 1) == ".";
    number(at) && source.text(at + 1) == "." && number(at + 2) && !field
}

/// A match that forgets a variant is how a fact gets lost, so nobody here may turn that lint off.
/// Tests may: an observer names only what it looks at.
fn allowances(file: &File, source: &Source, problems: &mut Vec<Problem>) {
    for inside in source.attributes() {
        let words: Vec<&str> = inside.clone().map(|at| source.text(at)).collect();
        let switches_off = |word: &str| words.windows(2).any(|pair| pair == [word, "("]);
        let line = source.tokens[inside.start].line;
        if switches_off("allow") {
            let why = "`allow` in the kernel; use `expect` with a reason";
            problems.push(Problem::new(&file.path, line, "allowance", why));
        }
        let production = file.path.starts_with("crates/kernel/src");
        if production && switches_off("expect") && words.contains(&"wildcard_enum_match_arm") {
            let why = "wildcard arms over our enums hide new variants; name them all";
            problems.push(Problem::new(&file.path, line, "allowance", why));
        }
    }
}
