//! `cargo xtask licences`: may we ship what we build on, where is it from, and how much is it?

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::run;

/// What a user may do with these needs no lawyer. MPL-2.0 asks only for changes to its own files.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // For data, here lists of certificates; asks only that its text goes along.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Each package is code we answer for. Raise this in the commit that needs it, and say why there.
const PACKAGES_MAX: usize = 330;

/// The only place we take packages from; anything else in the lock file was not meant.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn main() -> Result<ExitCode> {
    Ok(if run(&run::root()?)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// True: nothing to complain about.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut problems: Vec<String> = packages.iter().filter_map(problem).collect();
    let lock =
        std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let locked = lock.lines().filter(|line| *line == "[[package]]").count();
    if locked > PACKAGES_MAX {
        problems.push(format!("Cargo.lock: {locked} packages, at most {PACKAGES_MAX}"));
    }
    for problem in &problems {
        println!("{problem}");
    }
    println!("{locked} of {PACKAGES_MAX} packages, {} problems", problems.len());
    Ok(problems.is_empty())
}

/// Without the network if it can be: packages for other systems may not be on the disk yet.
fn metadata(root: &Path) -> Result<Value> {
    let words = ["metadata", "--format-version", "1", "--locked"];
    let mut output = run::cargo(root).args(words).arg("--offline").output()?;
    if !output.status.success() {
        output = run::cargo(root).args(words).output()?;
    }
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn problem(package: &Value) -> Option<String> {
    let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
    let source = package["source"].as_str().unwrap_or(SOURCE);
    if source != SOURCE {
        return Some(format!("{name}: comes from {source}"));
    }
    match package["license"].as_str().map(|expression| (expression, allowed(expression))) {
        Some((_, Some(true))) => None,
        Some((expression, Some(false))) => Some(format!("{name}: {expression} is not allowed")),
        Some((expression, None)) => Some(format!("{name}: cannot read licence `{expression}`")),
        None => Some(format!("{name}: names no licence")),
    }
}

/// Can the expression be satisfied from the list? None: it is not an SPDX expression.
fn allowed(expression: &str) -> Option<bool> {
    // Older packages write MIT/Apache-2.0 for a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let answer = any(&mut rest)?;
    rest.is_empty().then_some(answer)
}

fn any(rest: &mut &[&str]) -> Option<bool> {
    let mut answer = all(rest)?;
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        answer |= all(rest)?;
    }
    Some(answer)
}

fn all(rest: &mut &[&str]) -> Option<bool> {
    let mut answer = one(rest)?;
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        answer &= one(rest)?;
    }
    Some(answer)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let answer = any(rest)?;
            *rest = rest.strip_prefix(&[")"])?;
            Some(answer)
        }
        [")" | "OR" | "AND" | "WITH", ..] | [] => None,
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            Some(ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        [licence, tail @ ..] => {
            *rest = tail;
            Some(ALLOWED.contains(licence))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn expressions() {
        let cases: &[(&str, Option<bool>)] = &[
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT/Apache-2.0", Some(true)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("GPL-2.0 OR GPL-3.0 AND MIT", Some(false)),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", Some(true)),
            ("GPL-2.0 WITH Classpath-exception-2.0", Some(false)),
            ("(MIT", None),
            ("MIT GPL-3.0", None),
            ("MIT OR", None),
            ("", None),
        ];
        for (expression, expected) in cases {
            assert_eq!(super::allowed(expression), *expected, "{expression}");
        }
    }

    #[test]
    fn packages() {
        let ours = super::SOURCE;
        let cases = [
            (json!({"license": "MIT", "source": ours}), None),
            (json!({"license": "MIT", "source": null}), None),
            (
                json!({"license": "SSPL-1.0", "source": ours}),
                Some("p 1.0.0: SSPL-1.0 is not allowed"),
            ),
            (json!({"license": null, "source": ours}), Some("p 1.0.0: names no licence")),
            (json!({"license": "a b", "source": ours}), Some("p 1.0.0: cannot read licence `a b`")),
            (json!({"license": "MIT", "source": "git+x"}), Some("p 1.0.0: comes from git+x")),
        ];
        for (mut package, expected) in cases {
            package["name"] = "p".into();
            package["version"] = "1.0.0".into();
            assert_eq!(super::problem(&package).as_deref(), expected);
        }
    }
}
