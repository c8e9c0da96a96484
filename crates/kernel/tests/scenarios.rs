//! Runs every file of `scenarios/`: acts on the left margin, expectations in `|` lines under a
//! `?` query. `UPDATE=1 cargo test -p locum-kernel --test scenarios` rewrites the expectations;
//! read the difference before you keep it. `scenarios/README.md` explains the language.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an observer names only the variants it looks at"
)]

mod laws;
mod stage;

use stage::Stage;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn scenario_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the scenarios folder")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    files.sort();
    files
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Plays a scenario. Returns its text with the expectations as they came out.
pub(crate) fn play(text: &str) -> Result<(String, Stage), String> {
    let mut stage = Stage::new();
    let mut out = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let mut expected = Vec::new();
        while let Some((_, next)) = lines.peek()
            && (next.starts_with("| ") || *next == "|")
        {
            expected.push(next.to_string());
            lines.next();
        }
        out.push_str(line);
        out.push('\n');
        let shown =
            stage.line(line).map_err(|why| format!("line {}: {why}\n  {line}", number + 1))?;
        if shown.is_none() && !expected.is_empty() {
            return Err(format!(
                "line {}: expectations under a line that shows nothing",
                number + 1
            ));
        }
        for line in shown.unwrap_or_default().lines() {
            out.push_str(format!("| {line}").trim_end());
            out.push('\n');
        }
    }
    Ok((out, stage))
}

#[test]
fn every_scenario_holds() {
    let update = std::env::var_os("UPDATE").is_some();
    let only = std::env::var("ONLY").ok();
    let mut wrong = Vec::new();
    let mut played = 0;
    for path in scenario_files() {
        let name = name_of(&path);
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        played += 1;
        let text = fs::read_to_string(&path).expect("a readable scenario");
        let outcome = std::panic::catch_unwind(|| play(&text).map(|(out, _)| out));
        match outcome {
            Ok(Ok(out)) if out == text => {}
            Ok(Ok(out)) if update => fs::write(&path, out).expect("a writable scenario"),
            Ok(Ok(out)) => wrong.push(format!("scenario {name}:\n{}", difference(&text, &out))),
            Ok(Err(why)) => wrong.push(format!("scenario {name}: {why}")),
            Err(_) => wrong.push(format!("scenario {name}: panicked, see above")),
        }
    }
    assert!(wrong.is_empty(), "{} of {played} fail\n{}", wrong.len(), wrong.join("\n"));
    assert!(only.is_some() || played >= 80, "only {played} scenarios: 80 are owed");
}

/// The first place where two texts differ, with what was expected and what came.
fn difference(expected: &str, found: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let at = (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i)).unwrap_or(0);
    let show = |lines: &[&str], from: usize, many: usize, mark: &str| {
        let part = lines.iter().skip(from).take(many);
        part.map(|line| format!("  {mark} {line}")).collect::<Vec<_>>().join("\n")
    };
    let before = show(&a, at.saturating_sub(4), at.min(4), " ");
    let (expected, found) = (show(&a, at, 8, "-"), show(&b, at, 8, "+"));
    format!("line {}:\n{before}\n{expected}\n{found}", at + 1)
}
