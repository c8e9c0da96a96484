//! A big set of public files that is no part of this project: `LOCUM_PUBLIC_SET` names a folder
//! of folders `recipes*`, `agents`, `skills`, `mcp` and so on. Every file is loaded under a watch,
//! recipes are built, and every refusal is printed. Run it with `--ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]
#![expect(clippy::print_stdout, reason = "the table is what this test is for")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use locum_definitions::{
    Given, Kind, Origin, Outcome, Problem, Scope, build, load_from, proposed_servers,
};

use support::{Folder, files, sample, watched};

/// A value that became structure would show.
const STRUCTURE: &str = "a: \"b\"\n- c: [d";

#[derive(Debug, Default)]
struct Sums {
    files: usize,
    loaded: usize,
    built: usize,
    warned: usize,
    times: Vec<Duration>,
}

/// What came of one file: it loaded, it was built, its warnings, its errors.
struct Came {
    loaded: bool,
    built: bool,
    warnings: usize,
    errors: Vec<Problem>,
}

fn definition(file: &Path, root: &Path) -> Came {
    let origin = Origin { file: file.into(), root: root.into(), scope: Scope::Workspace };
    let loaded = load_from(&origin);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        loaded.problems.into_iter().partition(Problem::is_error);
    let warnings = warnings.len();
    let Some(definition) = loaded.definition else {
        assert!(!errors.is_empty(), "{} was refused without a word", file.display());
        return Came { loaded: false, built: false, warnings, errors };
    };
    assert!(errors.is_empty(), "{} loaded with an error", file.display());
    let values = definition.parameters.iter();
    let values = values.map(|one| (one.key.clone(), sample(one, file, STRUCTURE))).collect();
    let given = Given { values, base: PathBuf::new(), roots: vec![PathBuf::from("/")] };
    match build(&definition, &given) {
        Ok(Outcome::Built(built)) => {
            assert_eq!(built.definition.servers.len(), definition.servers.len());
            Came { loaded: true, built: true, warnings, errors }
        }
        Ok(Outcome::Needs(_)) => Came { loaded: true, built: false, warnings, errors },
        Err(errors) => Came { loaded: true, built: false, warnings, errors },
    }
}

fn servers(file: &Path) -> Came {
    let folder = Folder::new();
    folder.write(".mcp.json", std::fs::read(file).unwrap());
    let (servers, problems) = proposed_servers(folder.path());
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(Problem::is_error);
    // One bad server does not hide the others.
    let good = errors.is_empty() || !servers.is_empty();
    Came { loaded: good, built: good, warnings: warnings.len(), errors }
}

#[test]
#[ignore = "needs public files: LOCUM_PUBLIC_SET=folder"]
#[expect(clippy::disallowed_methods, reason = "a promise about time is measured in time")]
fn all_of_them() {
    let Some(set) = std::env::var_os("LOCUM_PUBLIC_SET").map(PathBuf::from) else {
        println!("SKIPPED: LOCUM_PUBLIC_SET names no folder: nothing is proved here");
        return;
    };
    let mut table: BTreeMap<String, Sums> = BTreeMap::new();
    for file in files(&set) {
        let kind = file.strip_prefix(&set).unwrap().components().next().unwrap();
        let kind = kind.as_os_str().to_string_lossy().into_owned();
        let is_mcp = kind == "mcp";
        if !is_mcp && Kind::of(&file).is_none() {
            continue;
        }
        let (came, took) = watched(&file.display().to_string(), {
            let (file, root) = (file.clone(), set.clone());
            move || {
                let began = Instant::now();
                let came = if is_mcp { servers(&file) } else { definition(&file, &root) };
                (came, began.elapsed())
            }
        });
        let sums = table.entry(kind).or_default();
        sums.files += 1;
        sums.loaded += usize::from(came.loaded);
        sums.built += usize::from(came.built);
        sums.warned += usize::from(came.warnings > 0);
        sums.times.push(took);
        for error in came.errors {
            println!("{} {error}", if came.loaded { "not built:" } else { "refused:" });
        }
    }
    println!("{:<18}{:>7}{:>8}{:>8}{:>8}   p50 p99 max", "", "files", "loaded", "built", "warned");
    for (kind, mut sums) in table {
        sums.times.sort();
        let at = |part: usize| sums.times[(sums.times.len() - 1) * part / 100];
        let Sums { files, loaded, built, warned, .. } = sums;
        let (half, most, last) = (at(50), at(99), at(100));
        println!(
            "{kind:<18}{files:>7}{loaded:>8}{built:>8}{warned:>8}   {half:?} {most:?} {last:?}"
        );
    }
}
