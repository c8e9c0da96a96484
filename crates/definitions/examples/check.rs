//! `cargo run --example check -- PATH…`: every definition in these folders, its problems, and the
//! sums. For trying the readers on files that are not ours.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_definitions::{Given, InputType, Kind, Outcome, build, load};

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        walk(Path::new(&argument), &mut files)?;
    }
    files.sort();
    let mut out = io::stdout().lock();
    let (mut good, mut bad, mut built) = (0, 0, 0);
    let mut slowest = (Duration::ZERO, PathBuf::new());
    for file in files {
        // Measuring is the point here, and nothing is replayed.
        #[expect(clippy::disallowed_methods, reason = "an example measures real time")]
        let began = std::time::Instant::now();
        let loaded = load(&file);
        let took = began.elapsed();
        slowest = slowest.max((took, file.clone()));
        for problem in &loaded.problems {
            writeln!(out, "{problem}")?;
        }
        let Some(definition) = loaded.definition else {
            bad += 1;
            continue;
        };
        good += 1;
        let sample = |parameter: &locum_definitions::Parameter| match parameter.input {
            InputType::Number => "7".to_owned(),
            InputType::Boolean => "true".to_owned(),
            InputType::Date => "2026-01-31".to_owned(),
            InputType::Select => parameter.options.first().cloned().unwrap_or_default(),
            InputType::File => file.display().to_string(),
            InputType::String => "sample: \"text\"\n- with: [structure".to_owned(),
        };
        let keys = definition.parameters.iter();
        let values: BTreeMap<_, _> = keys.map(|one| (one.key.clone(), sample(one))).collect();
        let given = Given { values, base: PathBuf::new(), roots: vec![PathBuf::from("/")] };
        match build(&definition, &given) {
            Ok(Outcome::Built(_)) => built += 1,
            Ok(Outcome::Needs(_)) => {}
            Err(problems) => {
                for problem in problems {
                    writeln!(out, "BUILD {problem}")?;
                }
            }
        }
    }
    writeln!(out, "{good} load, {bad} do not, {built} build")?;
    writeln!(out, "slowest: {:?} {}", slowest.0, slowest.1.display())
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            walk(&entry?.path(), files)?;
        }
    } else if Kind::of(path).is_some() {
        files.push(path.to_owned());
    }
    Ok(())
}
