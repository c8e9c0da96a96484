//! The list of faults: text that people write and read, checked before anything is built.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// What it breaks, in one sentence: shown when nobody noticed.
    pub(super) breaks: String,
    pub(super) file: String,
    find: Vec<String>,
    put: Vec<String>,
}

impl Mutant {
    /// The whole text of its file with the fault in it.
    pub(super) fn applied(&self, root: &Path) -> Result<String> {
        let Self { name, file, .. } = self;
        let text = std::fs::read_to_string(root.join(file))
            .with_context(|| format!("{name}: cannot read {file}"))?;
        self.apply(&text)
    }

    /// Exactly once: elsewhere it would be another fault than the one that was thought of.
    fn apply(&self, text: &str) -> Result<String> {
        let Self { name, file, .. } = self;
        let find = self.find.join("\n");
        let count = text.matches(&find).count();
        ensure!(count == 1, "{name}: its text occurs {count} times in {file}, not once:\n{find}");
        Ok(text.replacen(&find, &self.put.join("\n"), 1))
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("line {}: {line}", number + 1);
        if let Some(head) = line.strip_prefix("== ") {
            mutants.push(head_of(head).with_context(place)?);
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            let mutant = mutants.last_mut().context("before the first mutant");
            mutant.and_then(|mutant| add(mutant, line)).with_context(place)?;
        }
    }
    for (at, mutant) in mutants.iter().enumerate() {
        let Mutant { name, file, find, .. } = mutant;
        ensure!(file.starts_with("crates/kernel/src/"), "{name}: its file is not the kernel's");
        ensure!(!find.is_empty(), "{name}: no text to find");
        ensure!(mutant.find != mutant.put, "{name}: changes nothing");
        ensure!(mutants[..at].iter().all(|other| other.name != *name), "{name}: listed twice");
    }
    Ok(mutants)
}

fn head_of(head: &str) -> Result<Mutant> {
    let (name, breaks) = head.split_once(": ").context("write: == name: what it breaks")?;
    ensure!(!name.contains(char::is_whitespace), "a name is one word");
    Ok(Mutant { name: name.to_owned(), breaks: breaks.to_owned(), ..Mutant::default() })
}

/// Editors strip spaces at the end of lines, so a bare sign stands for an empty line.
fn add(mutant: &mut Mutant, line: &str) -> Result<()> {
    if let Some(file) = line.strip_prefix("file: ") {
        file.trim().clone_into(&mut mutant.file);
    } else if let Some(find) = line.strip_prefix("- ").or((line == "-").then_some("")) {
        ensure!(mutant.put.is_empty(), "all `-` lines come before the `+` lines");
        mutant.find.push(find.to_owned());
    } else if let Some(put) = line.strip_prefix("+ ").or((line == "+").then_some("")) {
        mutant.put.push(put.to_owned());
    } else {
        bail!("neither `file:`, `- `, `+ ` nor `# `");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    const GOOD: &str = "\
# a remark
== forget: the answer is lost
file: crates/kernel/src/a.rs
-     let a = 1;
-
-     let b = 2;
+     let a = 2;
";

    #[test]
    fn applies_once() {
        let mutant = &parse(GOOD).unwrap()[0];
        assert_eq!(
            (mutant.name.as_str(), mutant.breaks.as_str()),
            ("forget", "the answer is lost")
        );
        let text = "{\n    let a = 1;\n\n    let b = 2;\n}\n";
        assert_eq!(mutant.apply(text).unwrap(), "{\n    let a = 2;\n}\n");
        for wrong in ["", &text.repeat(2)] {
            let error = mutant.apply(wrong).unwrap_err().to_string();
            assert!(error.starts_with("forget: its text occurs"), "{error}");
        }
    }

    #[test]
    fn refusals() {
        let file = "file: crates/kernel/src/a.rs";
        let cases = [
            ("file: x".to_owned(), "line 1: file: x"),
            ("== nameless".to_owned(), "line 1: == nameless"),
            ("== two words: x".to_owned(), "line 1: == two words: x"),
            ("== a: b\nnoise".to_owned(), "line 2: noise"),
            ("== a: b\n- x\n+ y\n- z".to_owned(), "line 4: - z"),
            (
                "== a: b\nfile: crates/web/src/a.rs\n- x".to_owned(),
                "a: its file is not the kernel's",
            ),
            (format!("== a: b\n{file}"), "a: no text to find"),
            (format!("== a: b\n{file}\n- x\n+ x"), "a: changes nothing"),
            (format!("== a: b\n{file}\n- x\n== a: c\n{file}\n- y"), "a: listed twice"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
