//! How many lines there are, per crate and in all, printed at the end of every `ci` run so that
//! growth is seen when it happens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::tidy::source::Source;
use crate::tidy::tree::Tree;

/// STYLE: the whole stays small enough to be read; tests count too.
const TOTAL_LINES: usize = 15_000;

pub(crate) fn report(root: &Path) -> Result<String> {
    Ok(table(&Tree::load(root)?))
}

fn table(tree: &Tree) -> String {
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in tree.rust() {
        let name = file.path.strip_prefix("crates/").unwrap_or(&file.path);
        let name = name.split('/').next().unwrap_or(name);
        let production =
            if file.is_production() { Source::new(&file.text).production_lines() } else { 0 };
        let (sum, tests) = crates.entry(name).or_default();
        *sum += production;
        *tests += file.text.lines().count() - production;
    }
    let mut table = format!("{:<12} {:>10} {:>8}\n", "lines", "production", "tests");
    let (mut production, mut tests) = (0, 0);
    for (name, (p, t)) in crates {
        writeln!(table, "{name:<12} {p:>10} {t:>8}").expect("a string takes any text");
        production += p;
        tests += t;
    }
    writeln!(table, "{:<12} {production:>10} {tests:>8}", "all").expect("a string takes any text");
    let total = production + tests;
    writeln!(table, "{total} of {TOTAL_LINES} lines").expect("a string takes any text");
    table
}

#[cfg(test)]
mod tests {
    use crate::tidy::tree::{File, Tree};

    #[test]
    fn inline_tests_are_not_production() {
        let text = "//! a\nfn f() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let tree = Tree {
            files: vec![
                File::new("crates/kernel/src/a.rs", text),
                File::new("crates/kernel/tests/b.rs", "//! b\n"),
            ],
        };
        let table = super::table(&tree);
        assert!(table.contains("kernel                2        4\n"), "{table}");
        assert!(table.contains("6 of 15000 lines"), "{table}");
    }
}
